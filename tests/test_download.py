"""`download` against a local server that misbehaves in the ways real ones do."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from refusals import refused

from benchmark.contracts.datasets import RemoteFile
from benchmark.core.errors import UserError
from benchmark.fetch.__main__ import ChecksumError, download

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Answers from `script`, one behaviour per request; the last one is repeated for ever."""

    def __init__(self, *script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = list(script)
        self.ranges: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802, the name http.server calls
        script = self.server.script
        self.server.ranges.append(self.headers["Range"])
        behaviour = script.pop(0) if len(script) > 1 else script[0]
        behaviour(self)

    def log_message(self, *words):
        pass

    def answer(self, status: int, body: bytes, **headers: object) -> None:
        self.send_response(status)
        for name, value in ({"Content_Length": len(body)} | headers).items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    @property
    def start(self) -> int:
        asked = self.headers["Range"]
        return int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0


def status(code: int):
    return lambda handler: handler.answer(code, b"")


def whole(content: bytes = CONTENT, **headers: object):
    """Sends everything, and ignores Range."""
    return lambda handler: handler.answer(200, content, **headers)


def cut(share: int, content: bytes = CONTENT, **headers: object):
    """Sends no more than `share` bytes of what it announced; heeds Range."""

    def behaviour(handler: Handler) -> None:
        start, total = handler.start, len(content)
        if start >= total:
            return handler.answer(416, b"", Content_Range=f"bytes */{total}")
        span = f"bytes {start}-{total - 1}/{total}" if start else None
        length = {"Content_Length": total - start, "Content_Range": span}
        return handler.answer(
            206 if start else 200, content[start : start + share], **(length | headers)
        )

    return behaviour


def ranged(content: bytes = CONTENT, **headers: object):
    return cut(len(content), content, **headers)


@pytest.fixture
def serve(monkeypatch) -> Iterator:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("benchmark.fetch.__main__.CHUNK", 500)
    servers = []

    def start(*script) -> Server:
        server = Server(*script)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def fetch(target: Path, *servers: Server, sha256: str | None = SHA256, attempts: int = 3) -> None:
    urls = tuple(server.url for server in servers)
    remote = RemoteFile(name="file.bin", urls=urls, sha256=sha256)
    download(remote, target, attempts=attempts, pause=0.0)


def assert_only(target: Path) -> None:
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_whole_file(serve, tmp_path):
    server = serve(whole())
    fetch(tmp_path / "new" / "file.bin", server)
    assert_only(tmp_path / "new" / "file.bin")
    assert server.ranges == [None]


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_cut_connections_are_resumed_for_as_long_as_each_brings_something(serve, tmp_path, sha256):
    server = serve(cut(1500, ETag='"a"'))
    fetch(tmp_path / "file.bin", server, sha256=sha256)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, *(f"bytes={start}-" for start in range(1500, 10240, 1500))]


@pytest.mark.parametrize(
    "span", ["bytes 0-10239/10240", "bytes 1500-10239/99999", "bytes 15000-1/10240", None]
)
def test_wrong_range_is_not_spliced(serve, tmp_path, span):
    def wrong(handler: Handler) -> None:
        handler.answer(206, CONTENT[1500:], Content_Range=span)

    server = serve(cut(1500, ETag='"a"'), wrong, ranged())
    fetch(tmp_path / "file.bin", server, sha256=None)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=1500-", None]


def test_wrong_bytes(serve, tmp_path):
    checksum = hashlib.sha256(b"wrong").hexdigest()
    found = f"expected sha256 {SHA256}, found {checksum}"
    do = f"place the file at {tmp_path / 'file.bin'}"
    with refused("file.bin", "a download", found, do, kind=ChecksumError):
        fetch(tmp_path / "file.bin", serve(whole(b"wrong")))
    assert list(tmp_path.iterdir()) == []


def test_the_next_address_is_tried(serve, tmp_path):
    wrong, gone, good = serve(whole(b"wrong")), serve(status(404)), serve(whole())
    fetch(tmp_path / "file.bin", wrong, gone, good)
    assert_only(tmp_path / "file.bin")
    assert len(gone.ranges) == 1


def test_addresses_are_not_spliced(serve, tmp_path):
    left, right = serve(cut(1500, b"y" * 10240), status(500)), serve(ranged())
    fetch(tmp_path / "file.bin", left, right, sha256=None)
    assert_only(tmp_path / "file.bin")
    assert right.ranges == [None]


def test_unknown_size_and_no_checksum_is_refused(serve, tmp_path):
    server = serve(whole(Content_Length=None))
    with refused("file.bin", "a download", "sent no size", kind=UserError):
        fetch(tmp_path / "file.bin", server, sha256=None)
    assert not (tmp_path / "file.bin").exists()


OTHER = bytes(reversed(CONTENT))  # another release of the same size


@pytest.mark.parametrize("tag", ["ETag", "Last_Modified"])
def test_a_release_that_changes_between_cut_and_resume_is_not_spliced(serve, tmp_path, tag):
    """The server heeds Range but not If-Range."""
    old, new = {tag: '"old"'}, {tag: '"new"'}
    server = serve(cut(1500, OTHER, **old), ranged(**new))
    fetch(tmp_path / "file.bin", server, sha256=None)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=1500-", None]


def cut_and_killed(target: Path, server: Server, sha256: str | None) -> None:
    """What a process leaves that ends after the first 1,500 bytes."""
    with pytest.raises(UserError):
        fetch(target, server, sha256=sha256, attempts=1)
    assert [path.name for path in target.parent.glob("*.part")]


@pytest.mark.parametrize(("sha256", "tags"), [(SHA256, {}), (None, {"ETag": '"a"'})])
def test_a_later_process_goes_on_after_a_kill(serve, tmp_path, sha256, tags):
    server = serve(cut(1500, **tags), ranged(**tags))
    cut_and_killed(tmp_path / "file.bin", server, sha256)
    fetch(tmp_path / "file.bin", server, sha256=sha256)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=1500-"]


@pytest.mark.parametrize(("sha256", "tags"), [(SHA256, {}), (None, {"ETag": '"a"'})])
def test_a_part_that_a_kill_left_whole_is_not_sent_again(serve, tmp_path, sha256, tags):
    """The server answers 416 with the size of the file."""
    server = serve(cut(1500, **tags), ranged(**tags))
    cut_and_killed(tmp_path / "file.bin", server, sha256)
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    fetch(tmp_path / "file.bin", server, sha256=sha256, attempts=1)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=10240-"]


def test_a_whole_part_of_another_release_is_sent_again(serve, tmp_path):
    server = serve(cut(1500), ranged())
    cut_and_killed(tmp_path / "file.bin", server, SHA256)
    (tmp_path / "file.bin.part").write_bytes(OTHER)
    fetch(tmp_path / "file.bin", server)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=10240-", None]


def test_after_a_kill_without_checksum_and_release_it_begins_anew(serve, tmp_path):
    server = serve(cut(1500, OTHER), ranged())
    cut_and_killed(tmp_path / "file.bin", server, None)
    fetch(tmp_path / "file.bin", server, sha256=None)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, None]


def test_bytes_of_another_release_before_a_kill_are_found_by_the_checksum(serve, tmp_path):
    server = serve(cut(1500, OTHER), ranged())
    cut_and_killed(tmp_path / "file.bin", server, SHA256)
    fetch(tmp_path / "file.bin", server)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=1500-", None]

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
    """Answers from `script`, one behaviour per request; the last one is repeated for
    ever."""

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


def fetch(
    target: Path, *servers: Server, sha256: str | None = SHA256, attempts: int = 3
) -> None:
    urls = tuple(server.url for server in servers)
    remote = RemoteFile(name="file.bin", urls=urls, sha256=sha256)
    download(remote, target, attempts=attempts, pause=0.0)


def assert_only(target: Path) -> None:
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == [target.name]


OTHER = bytes(reversed(CONTENT))  # another release of the same size
TAG = {"ETag": '"a"'}
RESUMED = [None, *(f"bytes={start}-" for start in range(1500, 10240, 1500))]
ONCE_AGAIN = [None, "bytes=1500-", None]


def wrong(span: str | None):
    return lambda handler: handler.answer(206, CONTENT[1500:], Content_Range=span)


SCRIPTS = {  # what the server does, the checksum, and the ranges that it is asked for
    "whole": ((whole(),), SHA256, [None]),
    # Resumed for as long as each connection brings something.
    "cut, checksum": ((cut(1500, **TAG),), SHA256, RESUMED),
    "cut, release": ((cut(1500, **TAG),), None, RESUMED),
    **{  # a wrong range is not spliced
        f"range {span}": ((cut(1500, **TAG), wrong(span), ranged()), None, ONCE_AGAIN)
        for span in (
            *("bytes 0-10239/10240", "bytes 1500-10239/99999", "bytes 15000-1/10240"),
            None,
        )
    },
    # nor is a release that changes meanwhile; the server heeds Range but not If-Range
    **{
        f"other {tag}": (
            (cut(1500, OTHER, **{tag: '"old"'}), ranged(**{tag: '"new"'})),
            None,
            ONCE_AGAIN,
        )
        for tag in ("ETag", "Last_Modified")
    },
}


@pytest.mark.parametrize(("script", "sha256", "ranges"), SCRIPTS.values(), ids=SCRIPTS)
def test_one_process_fetches_the_whole_file(serve, tmp_path, script, sha256, ranges):
    server = serve(*script)
    fetch(tmp_path / "new" / "file.bin", server, sha256=sha256)
    assert_only(tmp_path / "new" / "file.bin")
    assert server.ranges == ranges


# a whole part: 416 with its size
ON, WHOLE = [None, "bytes=1500-"], [None, "bytes=10240-"]
# checksum, what is sent before and after, what is left (None: the part), the ranges
KILLED = {
    "goes on, checksum": (SHA256, cut(1500), None, ranged(), ON),
    "goes on, release": (None, cut(1500, **TAG), None, ranged(**TAG), ON),
    "whole part, checksum": (SHA256, cut(1500), CONTENT, ranged(), WHOLE),
    "whole part, release": (None, cut(1500, **TAG), CONTENT, ranged(**TAG), WHOLE),
    "whole, other release": (
        SHA256,
        cut(1500),
        OTHER,
        ranged(),
        [*WHOLE, None],
    ),
    "no checksum, release": (
        None,
        cut(1500, OTHER),
        None,
        ranged(),
        [None, None],
    ),
    "other release": (SHA256, cut(1500, OTHER), None, ranged(), ONCE_AGAIN),
}


@pytest.mark.parametrize("case", KILLED)
def test_a_later_process_fetches_the_rest_after_a_kill(serve, tmp_path, case):
    sha256, before, left, after, ranges = KILLED[case]
    server, target = serve(before, after), tmp_path / "file.bin"
    with pytest.raises(UserError):
        fetch(target, server, sha256=sha256, attempts=1)
    assert [path.name for path in tmp_path.glob("*.part")]
    if left:
        (tmp_path / "file.bin.part").write_bytes(left)
    fetch(target, server, sha256=sha256, attempts=1 if len(ranges) == 2 else 3)
    assert_only(target)
    assert server.ranges == ranges


def test_wrong_bytes_are_refused_and_removed(serve, tmp_path):
    checksum = hashlib.sha256(b"wrong").hexdigest()
    found = f"expected sha256 {SHA256}, found {checksum}"
    do = str(tmp_path / "file.bin")
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

"""`download` against a local server that misbehaves in the ways real ones do."""

import hashlib
import os
import resource
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from forks import begun
from refusals import refused

from benchmark.core.errors import UserError
from benchmark.fetch.download import ChecksumError, download
from datasets import RemoteFile

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
    monkeypatch.setattr("benchmark.fetch.download.CHUNK", 500)
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


def fetch(target: Path, *servers: Server, sha256: str | None = SHA256) -> None:
    urls = tuple(server.url for server in servers)
    remote = RemoteFile(name="file.bin", urls=urls, sha256=sha256)
    download(remote, target, attempts=3, pause=0.0)


def assert_only(target: Path) -> None:
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def assert_nothing_in_place(target: Path) -> None:
    assert not target.exists()


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


def test_a_later_run_resumes(serve, tmp_path):
    server = serve(cut(1500), status(503))
    with refused("file.bin", "a download", "HTTP 503", kind=UserError):
        fetch(tmp_path / "file.bin", server)
    assert_nothing_in_place(tmp_path / "file.bin")
    server.script[:] = [ranged()]
    fetch(tmp_path / "file.bin", server)
    assert_only(tmp_path / "file.bin")
    assert server.ranges[-1] == "bytes=1500-"


def test_a_part_of_unknown_origin_is_not_resumed(serve, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"x" * 500)
    server = serve(ranged())
    fetch(tmp_path / "file.bin", server, sha256=None)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None]


def test_server_that_ignores_range_starts_over(serve, tmp_path):
    server = serve(cut(1500), whole())
    fetch(tmp_path / "file.bin", server)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=1500-"]


def test_server_that_ignores_range_and_always_cuts_is_given_up(serve, tmp_path):
    server = serve(lambda handler: handler.answer(200, CONTENT[:1500], Content_Length=10240))
    with refused("file.bin", "a download", "interrupted", kind=UserError):
        fetch(tmp_path / "file.bin", server)
    assert_nothing_in_place(tmp_path / "file.bin")


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


def test_part_that_is_whole_already(serve, tmp_path):
    server = serve(cut(1500), status(500))
    with pytest.raises(UserError):
        fetch(tmp_path / "file.bin", server)
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    server.script[:] = [ranged()]
    fetch(tmp_path / "file.bin", server)
    assert_only(tmp_path / "file.bin")
    assert server.ranges[-1] == "bytes=10240-"


def test_part_that_is_too_long_starts_over(serve, tmp_path):
    server = serve(cut(1500, ETag='"a"'), status(500))
    with pytest.raises(UserError):
        fetch(tmp_path / "file.bin", server)
    (tmp_path / "file.bin.part").write_bytes(CONTENT + b"more")
    server.script[:] = [ranged()]
    fetch(tmp_path / "file.bin", server, sha256=None)
    assert_only(tmp_path / "file.bin")
    assert server.ranges[-2:] == ["bytes=10244-", None]


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_if_range_is_sent(serve, tmp_path, sha256):
    seen = []

    def strict(handler: Handler) -> None:
        seen.append(handler.headers["If-Range"])
        ranged()(handler)

    fetch(tmp_path / "file.bin", serve(cut(1500, ETag='"v1"'), strict), sha256=sha256)
    assert seen == ['"v1"']


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


@pytest.mark.parametrize(("code", "asked"), [(404, 1), (403, 1), (500, 3), (503, 3), (429, 3)])
def test_status_that_stays(serve, tmp_path, code, asked):
    server = serve(status(code))
    with refused("file.bin", "a download", f"HTTP {code}", kind=UserError) as caught:
        fetch(tmp_path / "file.bin", server)
    assert not isinstance(caught.value, ChecksumError)
    assert len(server.ranges) == asked
    assert list(tmp_path.iterdir()) == []


def test_status_that_passes(serve, tmp_path):
    fetch(tmp_path / "file.bin", serve(status(500), status(429), whole()))
    assert_only(tmp_path / "file.bin")


def test_unknown_size_and_no_checksum_is_refused(serve, tmp_path):
    server = serve(whole(Content_Length=None))
    with refused("file.bin", "a download", "sent no size", kind=UserError):
        fetch(tmp_path / "file.bin", server, sha256=None)
    assert_nothing_in_place(tmp_path / "file.bin")


def test_unknown_size_with_a_checksum_is_fine(serve, tmp_path):
    fetch(tmp_path / "file.bin", serve(whole(Content_Length=None)))
    assert_only(tmp_path / "file.bin")


def test_no_server(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    remote = RemoteFile(name="file.bin", urls=("http://127.0.0.1:9/file",))
    with refused("file.bin", "a download", "no connection", kind=UserError) as caught:
        download(remote, tmp_path / "file.bin", attempts=2, pause=0.0)
    assert "0x" not in str(caught.value)


def test_no_address(tmp_path):
    do = f"place it at {tmp_path / 'file.bin'}"
    with refused("file.bin", "an address", "nothing", do, kind=UserError):
        download(RemoteFile(name="file.bin", urls=()), tmp_path / "file.bin")


def test_pause_doubles(serve, tmp_path, monkeypatch):
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    remote = RemoteFile(name="file.bin", urls=(serve(status(500)).url,))
    with pytest.raises(UserError):
        download(remote, tmp_path / "file.bin", attempts=4, pause=1.0)
    assert slept == [1.0, 2.0, 4.0]


OTHER = bytes(reversed(CONTENT))  # another release of the same size


@pytest.mark.parametrize("head", [b"", b"HTTP/1.0 200 OK\r\nContent-Le"])
@pytest.mark.parametrize("sha256", [SHA256, None])
def test_a_cut_within_the_headers_is_tried_again(serve, tmp_path, head, sha256):
    server = serve(lambda handler: handler.wfile.write(head), whole())
    fetch(tmp_path / "file.bin", server, sha256=sha256)
    assert_only(tmp_path / "file.bin")


@pytest.mark.parametrize("tag", ["ETag", "Last_Modified"])
def test_a_release_that_changes_between_cut_and_resume_is_not_spliced(serve, tmp_path, tag):
    """The server heeds Range but not If-Range."""
    old, new = {tag: '"old"'}, {tag: '"new"'}
    server = serve(cut(1500, OTHER, **old), ranged(**new))
    fetch(tmp_path / "file.bin", server, sha256=None)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=1500-", None]


def test_a_server_that_names_no_release_is_resumed_only_where_a_checksum_decides(serve, tmp_path):
    server = serve(cut(1500, OTHER), ranged())
    fetch(tmp_path / "one" / "file.bin", server, sha256=None)
    assert_only(tmp_path / "one" / "file.bin")
    assert server.ranges == [None, None]
    server = serve(cut(1500, OTHER), ranged())
    fetch(tmp_path / "two" / "file.bin", server)  # spliced, noticed, and asked for again
    assert_only(tmp_path / "two" / "file.bin")
    assert server.ranges == [None, "bytes=1500-", None]


def test_another_address_goes_on_where_a_checksum_decides(serve, tmp_path):
    left, right = serve(cut(1500), status(404)), serve(ranged(ETag='"b"'))
    fetch(tmp_path / "file.bin", left, right)
    assert_only(tmp_path / "file.bin")
    assert right.ranges == ["bytes=1500-"]


def test_wrong_bytes_of_one_address_do_not_spoil_the_next(serve, tmp_path):
    left, right = serve(cut(1500, OTHER), status(404)), serve(ranged())
    fetch(tmp_path / "file.bin", left, right)
    assert_only(tmp_path / "file.bin")
    assert right.ranges == ["bytes=1500-", None]


def test_wrong_bytes_in_one_piece_are_not_asked_for_again(serve, tmp_path):
    server = serve(whole(OTHER))
    with refused("file.bin", "a download", f"expected sha256 {SHA256}", kind=ChecksumError):
        fetch(tmp_path / "file.bin", server)
    assert len(server.ranges) == 1
    assert_nothing_in_place(tmp_path / "file.bin")


def test_a_length_that_is_too_short(serve, tmp_path):
    with refused("file.bin", "a download", f"expected sha256 {SHA256}", kind=ChecksumError):
        fetch(tmp_path / "file.bin", serve(whole(Content_Length=5000)))
    assert_nothing_in_place(tmp_path / "file.bin")


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_a_length_that_is_too_long(serve, tmp_path, sha256):
    lying = whole(Content_Length=99999, ETag='"a"')
    server = serve(lying, ranged())
    fetch(tmp_path / "file.bin", server, sha256=sha256)
    assert_only(tmp_path / "file.bin")
    with refused("file.bin", "a download", kind=UserError):
        fetch(tmp_path / "new" / "file.bin", serve(lying), sha256=sha256)
    assert_nothing_in_place(tmp_path / "new" / "file.bin")


def chunked(content: bytes, ends: bool = True):
    """Sends no length but chunks, of which an empty one is the last."""

    def behaviour(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for start in range(0, len(content), 1000):
            chunk = content[start : start + 1000]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        handler.wfile.write(b"0\r\n\r\n" if ends else b"")

    return behaviour


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_chunks_tell_their_own_end(serve, tmp_path, sha256):
    server = serve(chunked(CONTENT[:3000], ends=False), chunked(CONTENT))
    fetch(tmp_path / "file.bin", server, sha256=sha256)
    assert_only(tmp_path / "file.bin")
    assert len(server.ranges) == 2


def test_a_cut_without_a_length_is_noticed_by_the_checksum(serve, tmp_path):
    server = serve(whole(CONTENT[:1500], Content_Length=None), whole(Content_Length=None))
    fetch(tmp_path / "file.bin", server)
    assert_only(tmp_path / "file.bin")
    assert len(server.ranges) == 2


def test_a_page_for_readers_is_not_the_file(serve, tmp_path):
    page = whole(b"<html>Log in first.</html>", Content_Type="text/html; charset=utf-8")
    with refused("file.bin", "a download", "sent a web page instead", kind=UserError):
        fetch(tmp_path / "file.bin", serve(page), sha256=None)
    fetch(tmp_path / "file.bin", serve(page), serve(whole()), sha256=None)
    assert_only(tmp_path / "file.bin")


def test_an_empty_file_is_not_the_file(serve, tmp_path):
    with refused("file.bin", "a download", "sent an empty file", kind=UserError):
        fetch(tmp_path / "file.bin", serve(whole(b"")), sha256=None)
    assert_nothing_in_place(tmp_path / "file.bin")


def test_redirects_are_followed_and_resumed(serve, tmp_path):
    store = serve(cut(6000, ETag='"a"'))
    server = serve(lambda handler: handler.answer(302, b"", Location=store.url))
    fetch(tmp_path / "file.bin", server, sha256=None)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=6000-"]


def test_redirects_that_never_end(serve, tmp_path):
    server = serve(lambda handler: handler.answer(302, b"", Location="/file"))
    with refused("file.bin", "a download", "TooManyRedirects", kind=UserError):
        fetch(tmp_path / "file.bin", server)
    assert_nothing_in_place(tmp_path / "file.bin")


def stalls(content: bytes, total: int, wait: Callable[[], object]):
    """Sends a part of what it announced and then nothing, with the connection open."""

    def behaviour(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(total))
        handler.send_header("ETag", '"a"')
        handler.end_headers()
        handler.wfile.write(content)
        handler.wfile.flush()
        wait()

    return behaviour


def test_a_server_that_falls_silent_is_left_and_asked_again(serve, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmark.fetch.download.TIMEOUT", (1, 0.2))
    server = serve(stalls(CONTENT[:3000], len(CONTENT), lambda: time.sleep(1)), ranged())
    fetch(tmp_path / "file.bin", server, sha256=None)
    assert_only(tmp_path / "file.bin")
    assert server.ranges == [None, "bytes=3000-"]


def test_too_little_disk_is_told_before_anything_is_written(serve, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=10_000)
    monkeypatch.setattr("benchmark.fetch.download.shutil.disk_usage", lambda place: usage)
    server = serve(whole())
    part = tmp_path / "file.bin.part"
    with refused(part, "0.0 GiB more", "0.0 GiB free", "free some disk", kind=UserError):
        fetch(tmp_path / "file.bin", server)
    assert len(server.ranges) == 1
    assert not (tmp_path / "file.bin.part").exists()
    assert_nothing_in_place(tmp_path / "file.bin")


def test_a_disk_that_fills_up_is_one_line_and_a_later_run_goes_on(serve, tmp_path):
    server, target = serve(whole()), tmp_path / "file.bin"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with refused("file.bin.part", "to write on", "File too large", kind=UserError):
            fetch(target, server)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_nothing_in_place(target)
    fetch(target, server)
    assert target.read_bytes() == CONTENT


def test_a_killed_process_is_gone_on_from(serve, tmp_path):
    content, killed = 10 * CONTENT, threading.Event()
    server = serve(stalls(content[:90_000], len(content), lambda: killed.wait(30)))
    target, part = tmp_path / "file.bin", tmp_path / "file.bin.part"
    process = begun(lambda: download(RemoteFile(name="file.bin", urls=(server.url,)), target))
    deadline = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    killed.set()
    assert_nothing_in_place(target)
    kept = part.stat().st_size
    server.script[:] = [ranged(content, ETag='"a"')]
    fetch(target, server, sha256=None)
    assert kept > 0 and server.ranges[-1] == f"bytes={kept}-"
    assert target.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["file.bin"]

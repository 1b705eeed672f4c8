"""Attacks on what reads foreign files: each must end with one line, soon, in little
memory, and without reading, writing or starting anything outside of the folder that it
comes in."""

import io
import os
import resource
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image
from refusals import outcome

from benchmark.core.errors import UserError
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare

SECONDS, MEMORY = 10, 1 << 29  # of an attack, beyond what the process held before
SPACE = 1 << 33  # bytes of addresses; allocators reserve more of them than they use
LONGEST_LINE = 2000
RAW = Path("data/raw/mine")
# beside the raw folder; nothing of it is the reader's to open
OUTSIDE = Path("outside")
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork")

_opened: list[str] = []
_started: list[str] = []


class Trap:
    """Unpickling it leaves a file behind."""

    def __reduce__(self):
        return Path.touch, (Path("sprung").absolute(),)


def _watch(event: str, arguments: tuple) -> None:
    if event == "open":
        _opened.append(str(arguments[0]))
    elif event in STARTS:
        _started.append(event)


sys.addaudithook(_watch)


def picture(number: int = 0, kind: str = "PNG") -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (20, 20), (40 * number, 0, 0)).save(content, kind)
    return content.getvalue()


def tar_header(
    name: str, size: int, kind: bytes = tarfile.REGTYPE, target: str = ""
) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, target
    return info.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape")


def outside() -> None:
    OUTSIDE.mkdir()
    (OUTSIDE / "secret.txt").write_text("secret")


@contextmanager
def besieged() -> Iterator[None]:
    """The block ends in time and memory, and leaves everything outside alone."""
    before = sorted(path.stat().st_mtime_ns for path in OUTSIDE.rglob("*"))
    _opened.clear()
    _started.clear()
    try:
        with _in_time(), _in_memory():
            yield
    finally:
        real = os.path.realpath(OUTSIDE)
        touched = [name for name in _opened if os.path.realpath(name).startswith(real)]
        assert not touched, f"read outside: {touched}"
        assert not _started, "started a program"
        assert sorted(path.stat().st_mtime_ns for path in OUTSIDE.rglob("*")) == before
        assert not Path("sprung").exists(), "executed a pickle"


@contextmanager
def _in_time() -> Iterator[None]:
    def late(*_: object) -> None:
        # no Exception, so that no reader catches it
        pytest.fail(f"took more than {SECONDS} s")

    earlier = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)


@contextmanager
def _in_memory() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + SPACE, hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak)
    assert grown < MEMORY, f"took {grown} bytes"


def repelled(action: Callable[[], object], *names: str) -> UserError:
    """Its refusal, one line with each of `names`."""
    with besieged():
        try:
            result = action()
        except UserError as error:
            check_line(error, *names)
            return error
    return pytest.fail(f"taken for good: {result!r:.200}")


def check_line(error: UserError, *names: str) -> None:
    """One line, shown as it is, with each of `names`."""
    line = str(error)
    assert line.isprintable()
    assert len(line) <= LONGEST_LINE, len(line)
    assert " at 0x" not in line, line
    for name in names:
        assert name in line, line


def repelled_stages(*names: str) -> UserError:
    def stages() -> None:
        for stage in (fetch, prepare):
            error = outcome(stage, "mine")
            if error is not None:
                raise error

    error = repelled(stages, *names)
    assert not Path("data/prepared/mine").exists()
    return error

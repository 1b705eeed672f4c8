"""One process at a time."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from zc.lockfile import LockError, LockFile

from benchmark.core.errors import UserError


@contextmanager
def alone(lock_file: Path, verb: str) -> Iterator[None]:
    """Two at once would write the same scratch files. A process that ends gives its lock back."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = LockFile(str(lock_file))
    except LockError as error:
        other = f"process {lock_file.read_text().strip()}"
        raise UserError(verb, "one at a time in this folder", other, "wait for it") from error
    with closing(lock):
        yield

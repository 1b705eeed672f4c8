"""One process at a time."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from zc.lockfile import LockError, SimpleLockFile

from benchmark.core.errors import UserError


def lock_of(folder: str) -> Path:
    """The lock of what writes a folder, by its path from the root."""
    return Path(".scratch") / f"{folder}.lock"


@contextmanager
def alone(lock_file: Path, verb: str) -> Iterator[None]:
    """Two at once would write the same files. A process gives its lock back when it ends, however
    that is. Raises UserError while another one has it. Nothing is written, as the disk may be full.
    Where the file system knows no locks, as on some clusters, nobody is refused."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(closing(SimpleLockFile(str(lock_file))))
        except LockError as error:
            if isinstance(error.__context__, BlockingIOError):
                expected, found = "one at a time in this folder", "another process"
                raise UserError(verb, expected, found, "wait for its end") from error
        yield

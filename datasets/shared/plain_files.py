"""Reading ordinary files of a raw folder, as much as is allowed and no more.

A raw folder may come from anyone. A pipe or a device in the place of a file would block the reader
or never end, and a small compressed file may unpack to more than the memory holds.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from datasets import DataError

MOST = 1 << 30  # bytes of one file or member that is read as a whole
STEP = 1 << 20  # bytes read at once
ALWAYS, RATIO = 1 << 24, 100  # bytes that anything may unpack to, and more per compressed byte
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """An ordinary file, opened to read its bytes.

    Raises DataError for a folder, pipe or device, without waiting for it, and for a name that no
    file can have; FileNotFoundError and other OSErrors as `open` does.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # for example a name that is too long
        raise _unreadable(path, f"what cannot be opened ({_reason(error)})") from error
    kind = stat.S_IFMT(os.fstat(number).st_mode)
    if kind != stat.S_IFREG:
        os.close(number)
        raise _unreadable(path, KINDS.get(kind, "a device"))
    with open(number, "rb") as file:
        yield file


def content(path: Path, most: int = MOST) -> bytes:
    """The bytes of an ordinary file. Raises as `opened`, and DataError for more than `most`."""
    with opened(path) as file:
        return bounded(file, most, path)


def bounded(file: BinaryIO, most: int, where: object) -> bytes:
    """What is left of an open file. Raises DataError if that is more than `most` bytes."""
    pieces, left = [], most + 1
    while left and (piece := file.read(min(left, STEP))):  # `read` may reserve what it is asked for
        pieces.append(piece)
        left -= len(piece)
    if not left:
        raise too_large(where, most)
    return b"".join(pieces)


def allowance(compressed: int, most: int | None = None) -> int:
    """How many bytes so many compressed ones may unpack to."""
    return min(MOST if most is None else most, ALWAYS + RATIO * compressed)


def too_large(where: object, most: int) -> DataError:
    """The error for content of more than `most` bytes, to be raised."""
    return DataError(where, f"at most {most} bytes", "more", "get the file again, or a part of it")


def is_file(path: Path) -> bool:
    """Whether there is an ordinary file; not for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:  # too long
        return False


def _unreadable(path: Path, found: str) -> DataError:
    return DataError(path, "an ordinary file", found, "replace it, or correct its name")


def _reason(error: OSError | ValueError) -> str:
    return error.strerror if isinstance(error, OSError) else str(error)

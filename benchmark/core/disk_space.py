"""Space on the disk, asked for before it is needed."""

import os
import shutil
from pathlib import Path

from benchmark.core.errors import UserError

GB = 1e9


def require(path: Path, size: int) -> None:
    """Raises UserError where the disk of `path` has less than `size` bytes left."""
    free = free_below(path)
    if free < size:
        raise UserError(
            where=path,
            expected=f"{size / GB:.2f} GB of free space",
            found=f"{free / GB:.2f} GB",
            do="make room, or begin in a folder on a larger disk",
        )


def free_below(path: Path) -> int:
    """Free bytes where `path` is, or would be."""
    while not path.exists():
        path = path.absolute().parent
    return shutil.disk_usage(path).free


def reserve(path: Path, size: int) -> None:
    """Let a file have `size` bytes of the disk: a memory map of one that only claims them kills
    the process once the disk is full. Raises UserError where there is too little space."""
    require(path, size)
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, size)

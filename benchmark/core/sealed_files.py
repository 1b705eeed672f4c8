"""Files of tensors that end with a digest of their bytes.

torch.load does not check the checksums of its archives: a flipped bit of a weight is loaded
without a word. The 32 bytes of the digest come after the archive, and torch.load overlooks them.
"""

import hashlib
from pathlib import Path
from typing import BinaryIO

import torch

from benchmark.core.files import atomic

DIGEST_BYTES = hashlib.sha256().digest_size
CHUNK = 1 << 24  # bytes


class DamagedError(ValueError):
    """A file is not what was written."""


def save(path: Path, content: dict) -> None:
    """Write tensors and plain values, atomically. Equal content gives equal bytes. Raises OSError
    where the disk is full."""
    with atomic(path) as part:
        with part.open("wb") as file:  # a path would put its random name into the archive
            _save(content, file)
        digest = _digest(part, part.stat().st_size)
        with part.open("ab") as file:
            file.write(digest)


def _save(content: dict, file: BinaryIO) -> None:
    try:
        torch.save(content, file)
    except RuntimeError as error:  # torch closes its archive after a failed write, and fails again
        if isinstance(error.__context__, OSError):
            raise error.__context__ from error
        raise


def load(path: Path) -> dict:
    """Read what `save` wrote, onto the host. Raises DamagedError for a file of other bytes."""
    size = path.stat().st_size - DIGEST_BYTES
    with path.open("rb") as file:
        file.seek(max(size, 0))
        if size < 0 or file.read() != _digest(path, size):
            raise DamagedError(f"{path}: its bytes do not have its digest")
        file.seek(0)
        return torch.load(file, map_location="cpu", weights_only=True)


def _digest(path: Path, size: int) -> bytes:
    """sha256 of the first `size` bytes."""
    digest, left = hashlib.sha256(), size
    with path.open("rb") as file:
        while left and (chunk := file.read(min(CHUNK, left))):
            digest.update(chunk)
            left -= len(chunk)
    return digest.digest()

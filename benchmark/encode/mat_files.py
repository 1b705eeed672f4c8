"""MATLAB's .mat up to version 7, read without trust: a small file may unpack to gigabytes.

Knows no torch.
"""

import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from scipy.io import loadmat, whosmat
from scipy.io.matlab import MatReadError

from datasets import DataError
from datasets.shared import plain_files

# What SciPy raises for damaged files; NotImplementedError is that of version 7.3.
BAD_MAT = (OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, EOFError)
BAD_MAT += (MemoryError, RuntimeError, NotImplementedError, MatReadError, struct.error, zlib.error)
HEADER, TAG, COMPRESSED = 128, 8, 15  # bytes of the header and of a tag; the type of an element
STEP = 1 << 20  # bytes unpacked at once
LARGEST = 1 << 33  # bytes of a file; its variables hold 2 GB at most


def variables(path: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and class of every variable of a file, for example (2, 3) and "double".

    Raises DataError for what is no ordinary file or unpacks to too much, and otherwise what BAD_MAT
    lists.
    """
    with plain_files.opened(path) as file:
        _check_unpacked(file, path)
        file.seek(0)
        return {name: (shape, kind) for name, shape, kind in whosmat(file)}


def variable(path: Path, name: str) -> np.ndarray:
    """A variable that `variables` lists. Raises as it does."""
    shape, kind = variables(path)[name]
    with plain_files.opened(path) as file:
        most = plain_files.allowance(path.stat().st_size, LARGEST)
        if math.prod(shape) > most:
            raise plain_files.too_large(f"{path}: {name} {kind} {shape}", most)
        return loadmat(file, variable_names=[name])[name]


def described(variables: Mapping[str, tuple[tuple[int, ...], str]]) -> str:
    """The variables of a file in words."""
    return ", ".join(f"{name} {kind} {shape}" for name, (shape, kind) in variables.items())


def _check_unpacked(file: BinaryIO, path: Path) -> None:
    """Raise DataError if the compressed elements hold more than honest ones of their size would."""
    header = file.read(HEADER)
    if header[126:128] not in (b"IM", b"MI"):
        return  # version 4, which compresses nothing
    order = "<" if header[126:128] == b"IM" else ">"
    while len(tag := file.read(TAG)) == TAG:
        kind, size = struct.unpack(f"{order}II", tag)
        if kind == COMPRESSED:
            _check_element(file, size, path)
        else:
            file.seek(size, 1)


def _check_element(file: BinaryIO, size: int, path: Path) -> None:
    unpacker, left = zlib.decompressobj(), plain_files.allowance(size, LARGEST)
    ahead, end = size, file.tell() + size
    while ahead and not unpacker.eof:
        packed = unpacker.unconsumed_tail or file.read(min(ahead, STEP))
        if not packed:
            break  # cut off: the reader says so
        left -= len(unpacker.decompress(packed, STEP))
        ahead -= len(packed) - len(unpacker.unconsumed_tail)
        if left < 0:
            raise DataError(
                path, "variables of an honest size", "more in a compressed one", "get it again"
            )
    file.seek(end)

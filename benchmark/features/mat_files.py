"""MATLAB's .mat up to version 7, read without trust: a small file may unpack to
gigabytes."""

import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmark.core.errors import UserError
from benchmark.core.files import allowance, opened, readable, too_large

# bytes of the header and of a tag; the type of an element
HEADER, TAG, COMPRESSED = 128, 8, 15
STEP = 1 << 20  # bytes unpacked at once
LARGEST = 1 << 33  # bytes of a file; its variables hold 2 GB at most
# MATLAB's names of floating-point numbers, and of whole ones
REAL = ("single", "double")
WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LOGICAL = "logical"  # true and false


def matrix(
    path: Path,
    name: str,
    shape: str,
    kinds: tuple[str, ...] = REAL,
) -> np.ndarray:
    """The variable `name`, a matrix of numbers of one of `kinds`; messages tell its
    `shape`.

    Raises UserError for a file without it, for what is no ordinary file, and for what
    unpacks to too much.
    """
    # where it is needed: it writes a variable into the environment
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError

    with readable(path, "a .mat file of version 7 or older", "save it again with -v7"):
        try:
            with opened(path) as file:
                _check_unpacked(file, path)
                file.seek(0)
                variables = whosmat(file)
                named = [facts for other, *facts in variables if other == name]
                size, kind = named[0] if named else ((), "none")
                most = allowance(path.stat().st_size, LARGEST)
                if math.prod(size) > most:  # each number takes a byte or more
                    raise too_large(f"{path}: {name} {kind} {size}", most)
                if kind in kinds and len(size) == 2:
                    file.seek(0)
                    values = loadmat(file, variable_names=[name])[name]
                    # complex ones are of a real kind, too
                    if values.dtype.kind in "fiu":
                        return values
        except MatReadError as error:
            raise ValueError(error) from error
    listed = [f"{other} {kind} {size}" for other, size, kind in variables]
    raise UserError(
        path,
        expected=f"a variable `{name}` of numbers {shape}",
        found=", ".join(listed) or "none",
        do="get the file again, or save it with this name",
    )


def _check_unpacked(file: BinaryIO, path: Path) -> None:
    """Raise UserError if the compressed elements hold more than honest ones of their
    size would."""
    header = file.read(HEADER)
    if header[126:128] not in (b"IM", b"MI"):
        return  # version 4, which compresses nothing
    order = "<" if header[126:128] == b"IM" else ">"
    while len(tag := file.read(TAG)) == TAG:
        kind, size = struct.unpack(f"{order}II", tag)
        end = file.tell() + size
        if kind == COMPRESSED:
            most = allowance(size, LARGEST)
            if _unpacks_to_more(file, end, most):
                raise too_large(path, most)
        file.seek(end)


def _unpacks_to_more(file: BinaryIO, end: int, most: int) -> bool:
    """Whether the compressed bytes up to `end` hold more than `most`."""
    unpacker = zlib.decompressobj()
    unpacked = 0
    while not unpacker.eof and unpacked <= most:
        packed = unpacker.unconsumed_tail
        if not packed:
            packed = file.read(min(end - file.tell(), STEP))
        if not packed:
            break
        unpacked += len(unpacker.decompress(packed, STEP))
    return unpacked > most

"""MATLAB's .mat up to version 7, read without trust: a small file may unpack to gigabytes."""

import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
from scipy.io import loadmat, whosmat
from scipy.io.matlab import MatReadError

from benchmark.core.errors import UserError
from benchmark.core.files import allowance, opened, readable, too_large

HEADER, TAG, COMPRESSED = 128, 8, 15  # bytes of the header and of a tag; the type of an element
STEP = 1 << 20  # bytes unpacked at once
LARGEST = 1 << 33  # bytes of a file; its variables hold 2 GB at most
REAL = ("single", "double")  # MATLAB's names of floating-point numbers, and of whole ones
WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
LOGICAL = "logical"  # true and false


def matrix(path: Path, name: str, shape: str, kinds: tuple[str, ...] = REAL) -> np.ndarray:
    """The variable `name`, a matrix of numbers of one of `kinds`; messages tell its `shape`.

    Raises UserError for a file without it, for what is no ordinary file, and for what unpacks to
    too much.
    """
    with readable(path, "a .mat file of version 7 or older", "save it again with -v7"):
        try:
            with opened(path) as file:
                _check_unpacked(file, path)
                file.seek(0)
                found = {each: (size, kind) for each, size, kind in whosmat(file)}
                size, kind = found.get(name, ((), "none"))
                if math.prod(size) > allowance(path.stat().st_size, LARGEST):
                    raise too_large(f"{path}: {name} {kind} {size}", allowance(0))
                if kind in kinds and len(size) == 2:
                    file.seek(0)
                    values = loadmat(file, variable_names=[name])[name]
                    if values.dtype.kind in "fiu":  # complex ones are of a real kind, too
                        return values
        except MatReadError as error:
            raise ValueError(error) from error
    there = ", ".join(f"{each} {kind} {size}" for each, (size, kind) in found.items()) or "none"
    expected = f"a variable `{name}` of numbers {shape}"
    raise UserError(path, expected, there, "get the file again, or save it with this name")


def _check_unpacked(file: BinaryIO, path: Path) -> None:
    """Raise UserError if the compressed elements hold more than honest ones of their size would."""
    header = file.read(HEADER)
    if header[126:128] not in (b"IM", b"MI"):
        return  # version 4, which compresses nothing
    order = "<" if header[126:128] == b"IM" else ">"
    while len(tag := file.read(TAG)) == TAG:
        kind, size = struct.unpack(f"{order}II", tag)
        end = file.tell() + size
        if kind == COMPRESSED:
            unpacker, left = zlib.decompressobj(), allowance(size, LARGEST)
            while not unpacker.eof and (
                packed := unpacker.unconsumed_tail or file.read(min(end - file.tell(), STEP))
            ):
                left -= len(unpacker.decompress(packed, STEP))
                if left < 0:
                    raise too_large(path, allowance(size, LARGEST))
        file.seek(end)

"""NumPy's .npy, read without trust: its header may say anything, and objects in it are pickles."""

import math
import tokenize
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# What NumPy raises for damaged headers, which it takes for Python.
BAD_HEADER = (ValueError, TypeError, LookupError, ArithmeticError, SyntaxError)
BAD_HEADER += (AttributeError, RecursionError, MemoryError, tokenize.TokenError)


@dataclass(frozen=True)
class Header:
    """What a file says of its array; `offset` is where its first value stands, in bytes."""

    dtype: np.dtype
    shape: tuple[int, ...]
    is_fortran: bool
    offset: int

    def check_values(self) -> None:
        """Raise ValueError for objects, which are pickles."""
        if self.dtype.hasobject:
            raise ValueError("objects, which are never unpickled")

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: BinaryIO) -> Header:
    """The header of an open .npy file. Raises ValueError for anything else."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in HEADERS:
            raise ValueError(f"version {version} of the format")
        shape, is_fortran, dtype = HEADERS[version](file)
    except BAD_HEADER as error:
        reason = str(error.args[0] if error.args else type(error).__name__)
        # What NumPy could not evaluate follows, with a memory address.
        raise ValueError(reason.partition(": <")[0].partition("\n")[0]) from error
    if min(shape, default=0) < 0:
        raise ValueError(f"the shape {shape}")
    return Header(dtype, shape, is_fortran, file.tell())


def array_of(content: bytes) -> np.ndarray:
    """The array of a whole .npy file. Raises ValueError for anything else and for objects."""
    header = read_header(BytesIO(content))
    header.check_values()
    if len(content) - header.offset != header.size:
        found = len(content) - header.offset
        raise ValueError(f"{found} bytes of values, where {header.dtype} {header.shape} has others")
    flat = np.frombuffer(content, header.dtype, offset=header.offset)
    return flat.reshape(header.shape, order="F" if header.is_fortran else "C")

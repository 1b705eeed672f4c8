"""NumPy's .npy, read without trust: its header may say anything, and objects in it are pickles."""

import math
from dataclasses import dataclass
from io import BytesIO
from tokenize import TokenError
from typing import BinaryIO

import numpy as np

from benchmark.core.files import DAMAGED

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class Header:
    """What a file says of its array; `offset` is where its first value stands, in bytes."""

    dtype: np.dtype
    shape: tuple[int, ...]
    is_fortran: bool
    offset: int

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: BinaryIO) -> Header:
    """The header of an open .npy file. Raises ValueError for anything else, and for objects, which
    are pickles."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in HEADERS:
            raise ValueError(f"version {version} of the format")
        shape, is_fortran, dtype = HEADERS[version](file)
    except (*DAMAGED, TokenError) as error:  # NumPy takes headers for Python
        reason = str(error.args[0] if error.args else type(error).__name__)
        # What NumPy could not evaluate follows, with a memory address.
        raise ValueError(reason.partition(": <")[0].partition("\n")[0]) from error
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(
            "objects, never unpickled: text as dtype str, numbers as float32"
            if dtype.hasobject
            else f"the shape {shape}"
        )
    return Header(dtype, shape, is_fortran, file.tell())


def array_of(content: bytes) -> np.ndarray:
    """The array of a whole .npy file. Raises ValueError as `read_header`."""
    header = read_header(BytesIO(content))
    if len(content) - header.offset != header.size:
        found = len(content) - header.offset
        raise ValueError(f"{found} bytes of values, where {header.dtype} {header.shape} has others")
    flat = np.frombuffer(content, header.dtype, offset=header.offset)
    return flat.reshape(header.shape, order="F" if header.is_fortran else "C")

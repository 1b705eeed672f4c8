"""NumPy's .npy and .npz, read without trust: a header may say anything, and objects are
pickles."""

import math
import mmap
from collections.abc import Container
from io import BytesIO
from pathlib import Path
from tokenize import TokenError

import numpy as np

from benchmark.core.files import DAMAGED, opened
from benchmark.readers import archives

LONGEST = 1 << 16  # bytes of a header; NumPy refuses those of more than 10,000


def array_of(content: bytes | mmap.mmap) -> np.ndarray:
    """The array of a whole .npy file, which it shares. Raises ValueError for anything
    else, and for objects, which are pickles."""
    file = BytesIO(content[:LONGEST])
    try:
        major, minor = np.lib.format.read_magic(file)
        read = getattr(np.lib.format, f"read_array_header_{major}_{minor}", None)
        if read is None:
            raise ValueError(f"version {major}.{minor} of the format")
        shape, is_fortran, dtype = read(file)
    except (*DAMAGED, TokenError) as error:  # NumPy takes headers for Python
        reason = str(error.args[0] if error.args else type(error).__name__)
        # What NumPy could not evaluate follows, with a memory address.
        raise ValueError(reason.partition(": <")[0].partition("\n")[0]) from error
    if dtype.hasobject:
        raise ValueError("pickled objects; save texts as str, numbers as float32")
    size = len(content) - file.tell()
    claimed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != claimed:
        raise ValueError(f"{size} bytes of values, but {dtype} {shape} has {claimed}")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C")


def mapped(path: Path) -> np.ndarray:
    """The array of a .npy file, of which nothing is read yet. Raises as `array_of`."""
    with opened(path) as file:
        return array_of(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def arrays_of(
    path: Path, names: Container[str] | None = None, most: int | None = None
) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, or those of some names, each of at most so many
    bytes."""
    arrays = {}
    with archives.unzipped(path) as zipped:
        for info in zipped.infolist():
            name = info.filename.removesuffix(".npy")
            if names is None or name in names:
                member = archives.read_member(zipped, info, f"{path}: {name}", most)
                arrays[name] = array_of(member)
    return arrays

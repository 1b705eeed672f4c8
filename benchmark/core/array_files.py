"""Arrays and tables that stages leave behind, read with one line where a file is damaged."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core.errors import UserError
from benchmark.core.files import sha256

# What the readers of pandas and numpy raise for bytes that are none of theirs.
DAMAGED = (OSError, ValueError, TypeError, EOFError, LookupError, ArithmeticError, RuntimeError)
DAMAGED += (AssertionError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error)

LONGEST = 200  # characters of what a reader says


def read_parquet(path: Path) -> pd.DataFrame:
    """The table of a parquet file. Raises UserError for a missing or damaged one."""
    with _readable(path, "a parquet file"):
        return pd.read_parquet(path)


def read_csv(path: Path, kind: type | None = None) -> pd.DataFrame:
    """The table of a CSV file, whose values are of a kind if it is named. Raises UserError for a
    missing or damaged one."""
    with _readable(path, "a CSV file"):
        return pd.read_csv(path, dtype=kind)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file. Raises UserError for a missing or damaged one."""
    # Numpy leaves a file open that it opened and could not read.
    with _readable(path, "arrays"), path.open("rb") as file:
        stored = np.load(file, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise ValueError("a single array")
        return dict(stored)


def check_bytes(folder: Path, digests: dict[str, str]) -> None:
    """Raises UserError where a file of a folder is missing or has another sha256."""
    for name, digest in digests.items():
        with _readable(folder / name, "the bytes that were written"):
            if sha256(folder / name) != digest:
                raise ValueError("others")


@contextmanager
def _readable(path: Path, expected: str) -> Iterator[None]:
    try:
        yield
    except DAMAGED as error:
        text = " ".join(str(error).split())[:LONGEST] or type(error).__name__
        found = "nothing" if isinstance(error, FileNotFoundError) else text
        raise UserError(path, expected, found, "run: dvc repro --force") from error

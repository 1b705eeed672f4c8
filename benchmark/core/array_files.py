"""Arrays and tables that stages leave behind, read with one line where a file is damaged."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core.errors import UserError
from benchmark.core.files import sha256

DAMAGED = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


def read_parquet(path: Path) -> pd.DataFrame:
    """The table of a parquet file. Raises UserError for a missing or damaged one."""
    with _readable(path, "a parquet file"):
        return pd.read_parquet(path)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file. Raises UserError for a missing or damaged one."""
    with _readable(path, "arrays"), np.load(path, allow_pickle=False) as stored:
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
        found = "nothing" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
        raise UserError(path, expected, found or "no end", "run: dvc repro --force") from error

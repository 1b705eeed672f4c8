"""The ranks that cells keep. A report needs them several times: a file is read once, until it is
written again."""

from functools import lru_cache
from pathlib import Path

import pandas as pd

from benchmark.core.array_files import read_parquet


def read_ranks(path: Path) -> pd.DataFrame:
    """scores/ranks.parquet of a cell, not to be changed. Raises UserError for a damaged file,
    OSError for a missing one."""
    return _read(path.absolute(), path.stat().st_mtime_ns)


def shown(path: Path) -> Path:
    """A path as a message names it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@lru_cache(maxsize=2048)
def _read(path: Path, written: int) -> pd.DataFrame:
    return read_parquet(shown(path))

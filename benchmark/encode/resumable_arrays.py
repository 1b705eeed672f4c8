"""Arrays that are filled chunk by chunk in a scratch folder; a killed run can be resumed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmark.core.files import read_json, write_json


def chunks(scratch: Path, card: dict, total: int, size: int, name: str) -> Iterator[slice]:
    """Slices of `total` images, at most `size` in each, that are not encoded yet.

    `card` says what is being encoded: a killed run with the same card is resumed, anything else in
    `scratch` is removed. A slice counts as done when the next one is asked for. `name` is shown
    with the progress.
    """
    done = _resumed(scratch, card)
    with tqdm(total=total, initial=done, unit="image", desc=name, disable=None) as bar:
        for start in range(done, total, size):
            stop = min(start + size, total)
            yield slice(start, stop)
            write_json(scratch / "progress.json", {"done": stop, "card": card})
            bar.update(stop - start)


def _resumed(scratch: Path, card: dict) -> int:
    """The number of images that a killed run has done; without such a run, an empty `scratch`."""
    path = scratch / "progress.json"
    if path.is_file():
        progress = read_json(path)
        if progress["card"] == card:
            return progress["done"]
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    return 0


def scratch_array(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The array at `path`, to be written to; a new one is filled with zeros."""
    if path.is_file():
        return np.lib.format.open_memmap(path, mode="r+")
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)

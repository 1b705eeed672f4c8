"""Arrays that are filled chunk by chunk in a scratch folder; a killed run can be resumed."""

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from benchmark.core import disk_space
from benchmark.core.devices import kind
from benchmark.core.files import read_json, write_json
from benchmark.core.fingerprint import fingerprint
from benchmark.core.locks import alone, lock_of
from benchmark.core.progress_bars import ProgressBar
from benchmark.season import code_digests
from benchmark.season.parameters import FeatureSet

PROGRESS = "progress.json"  # with it a scratch folder is resumed


@contextmanager
def scratch_folder(feature_set: FeatureSet) -> Iterator[Path]:
    """The scratch folder of a feature set, for one process at a time; it is removed when the block
    ends well. Raises UserError while another process has it."""
    scratch = Path(".scratch") / feature_set.folder
    with alone(lock_of(feature_set.folder), f"encode {feature_set.folder}"):
        yield scratch
        (scratch / PROGRESS).unlink(missing_ok=True)  # first, since half a folder is not resumed
        shutil.rmtree(scratch)


def identity(feature_set: FeatureSet, card: dict, device: torch.device) -> dict:
    """All that decides the bytes of an encoding: only the same one is resumed, on such a device."""
    modules = [
        "benchmark/encode/__main__.py",
        f"benchmark/encode/{feature_set.kind}.py",
        f"benchmark/encoders/{feature_set.encoder}.py",
    ]
    return {
        "card": card,
        "code": code_digests.sha256_of(modules),
        "device": kind(device),
        "numerics": fingerprint(),
    }


def chunks(scratch: Path, identity: dict, total: int, size: int, name: str) -> Iterator[slice]:
    """Slices of `total` images, at most `size` in each, that are not encoded yet.

    A killed run of the same `identity` is resumed, anything else in `scratch` is removed. A slice
    counts as done when the next one is asked for. `name` is shown with the progress.
    """
    done = _resumed(scratch, identity)
    with ProgressBar(total=total, initial=done, unit="image", desc=name) as bar:
        for start in range(done, total, size):
            stop = min(start + size, total)
            yield slice(start, stop)
            write_json(scratch / PROGRESS, {"done": stop, "identity": identity})
            bar.update(stop - start)


def _resumed(scratch: Path, identity: dict) -> int:
    """The number of images that a killed run has done; without such a run, an empty `scratch`."""
    path = scratch / PROGRESS
    if path.is_file():
        progress = read_json(path)
        if progress.get("identity") == identity:
            return progress["done"]
        path.unlink()  # first, since half a folder is not resumed
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    return 0


def scratch_array(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The array at `path`, to be written to; a new one is filled with zeros. Raises UserError where
    the disk has no room for it."""
    if path.is_file():
        return np.lib.format.open_memmap(path, mode="r+")
    disk_space.require(path, math.prod(shape) * np.dtype(dtype).itemsize)
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    disk_space.reserve(path, path.stat().st_size)
    return array

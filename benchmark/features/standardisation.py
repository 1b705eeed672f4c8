"""Zero mean and unit deviation per channel, measured on training rows."""

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmark.data.feature_folders import array_at, as_float16

BLOCK = 1 << 22  # numbers read at once
CONSTANT = 1e-6  # a channel with a smaller deviation is not scaled


class Standardiser:
    """Mean and deviation of the channels of rows (..., F) that come a block at a
    time."""

    def __init__(self) -> None:
        self._scaler = StandardScaler()

    @classmethod
    def of(cls, array: np.ndarray, counted: np.ndarray) -> "Standardiser":
        """Measured on the rows of `array` where `counted`, a mask of its leading axes,
        is true."""
        standardiser = cls()
        for rows in _blocks(array):
            standardiser.add(array[rows][counted[rows]])
        return standardiser

    def add(self, rows: np.ndarray) -> None:
        """Count the rows (..., F) of a block, which may be empty."""
        vectors = rows.reshape(-1, rows.shape[-1])
        if len(vectors):
            self._scaler.partial_fit(vectors)

    @property
    def mean(self) -> np.ndarray:
        """(F,) float32"""
        return self._scaler.mean_.astype(np.float32)

    @property
    def deviation(self) -> np.ndarray:
        """(F,) float32; 1 for a channel that does not vary, so that it becomes zero.

        Not the scaler's own rule, which would blow up the noise of a channel that is
        almost zero.
        """
        deviation = np.sqrt(self._scaler.var_)
        return np.where(deviation > CONSTANT, deviation, 1.0).astype(np.float32)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Standardised rows (..., F), float32."""
        return (rows.astype(np.float32, copy=False) - self.mean) / self.deviation


def measured(path: Path, counted: np.ndarray | None) -> Standardiser | None:
    """What standardises an array by its rows where `counted` is true; None does not."""
    if counted is None:
        return None
    return Standardiser.of(np.load(path, mmap_mode="r", allow_pickle=False), counted)


def write_standardised(
    source: Path,
    target: Path,
    standardiser: Standardiser | None,
    kept: np.ndarray | None = None,
    order: np.ndarray | None = None,
) -> None:
    """Copy a .npy file with its rows standardised, as float16; as they are without a
    standardiser.

    Where `kept`, a mask of the leading axes, is false, what was standardised is set to
    zero. `order` says which row of the file each row of the copy is, if others than
    those in their order.
    """
    if standardiser is None and order is None:
        shutil.copyfile(source, target)
        return
    raw = np.load(source, mmap_mode="r", allow_pickle=False)
    count = len(raw) if order is None else len(order)
    kind = raw.dtype if standardiser is None else np.float16
    out = array_at(target, (count, *raw.shape[1:]), kind)
    for rows in _blocks(out):
        read = rows if order is None else order[rows]
        values = raw[read]
        if standardiser is not None:
            values = standardiser(values)
            if kept is not None:
                values[~kept[read]] = 0
            values = as_float16(values)
        out[rows] = values
    out.flush()


def _blocks(array: np.ndarray) -> Iterator[slice]:
    """Slices of the first axis, of about BLOCK numbers each."""
    size = max(1, BLOCK // max(1, math.prod(array.shape[1:])))
    return (slice(start, start + size) for start in range(0, len(array), size))

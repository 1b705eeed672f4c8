"""Mean and deviation per channel of rows that come a block at a time. Knows no torch."""

import numpy as np


class Moments:
    """Adds up rows (..., F); `mean` and `deviation` are (F,) float32."""

    def __init__(self) -> None:
        self._count, self._total, self._squares = 0, 0.0, 0.0

    def add(self, rows: np.ndarray) -> None:
        """Count every vector of a block, which may be empty."""
        vectors = rows.reshape(-1, rows.shape[-1]).astype(np.float64)
        self._count += len(vectors)
        self._total = self._total + vectors.sum(0)
        self._squares = self._squares + (vectors**2).sum(0)

    @property
    def mean(self) -> np.ndarray:
        return (self._total / self._count).astype(np.float32)

    @property
    def deviation(self) -> np.ndarray:
        """A channel that never changes has no scale: 1, so that it is left at zero."""
        mean = self._total / self._count
        found = np.sqrt(np.maximum(self._squares / self._count - mean**2, 0))
        return np.where(found > 1e-6, found, 1.0).astype(np.float32)

"""Whether one quantity falls or rises with another over rows: Spearman's rank
correlation with an interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.core.confidence import LEVEL

FEWEST = 10  # pairs
RESAMPLES, SEED = 2000, 0


@dataclass(frozen=True, kw_only=True)
class RankCorrelation:
    """From -1, one falls as the other rises, to 1."""

    count: int  # of pairs
    groups: int
    value: float
    low: float  # ends of the interval
    high: float


def rank_correlation(
    first: Sequence[float], second: Sequence[float], groups: Sequence[str]
) -> RankCorrelation | None:
    """Of pairs; the interval is that of groups of pairs drawn again, each with all its
    pairs, since those of one group are alike. None for fewer than FEWEST pairs, of a
    single group, and where nothing varies."""
    names = sorted({*groups})
    is_constant = len({*first}) == 1 or len({*second}) == 1
    if len(first) < FEWEST or len(names) == 1 or is_constant:
        return None
    x, y = np.array(first), np.array(second)
    rows_of = [np.flatnonzero(np.array(groups) == name) for name in names]
    rng, values = np.random.default_rng(SEED), []
    for _ in range(RESAMPLES):
        drawn = rng.integers(len(names), size=len(names))
        rows = np.concatenate([rows_of[group] for group in drawn])
        values.append(spearman(x[rows], y[rows]))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    value = spearman(x, y)
    return RankCorrelation(
        count=len(x), groups=len(names), value=value, low=float(low), high=float(high)
    )


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """0 where nothing varies."""
    x, y = (ranks - ranks.mean() for ranks in map(_ranks, (first, second)))
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / spread if spread else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """From 1; equal values share the mean of their ranks."""
    return pd.Series(values).rank().to_numpy()

"""Whether one quantity falls or rises with another over rows: Spearman's rank
correlation with an interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmark.core.confidence import LEVEL

FEWEST = 10  # pairs
RESAMPLES, SEED = 9999, 0


@dataclass(frozen=True, kw_only=True)
class RankCorrelation:
    """From -1, one falls as the other rises, to 1."""

    count: int  # of pairs
    value: float
    low: float  # ends of the interval
    high: float


def rank_correlation(
    first: Sequence[float], second: Sequence[float]
) -> RankCorrelation | None:
    """Of pairs; the interval is that of pairs drawn again, each by itself. None for
    fewer than FEWEST pairs, and where nothing varies."""
    if len(first) < FEWEST or len({*first}) == 1 or len({*second}) == 1:
        return None
    from scipy.stats import bootstrap  # takes a second to import

    pairs = np.array(first), np.array(second)
    drawn = bootstrap(
        pairs,
        spearman,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    low, high = drawn.confidence_interval
    return RankCorrelation(
        count=len(first),
        value=float(spearman(*pairs)),
        low=float(low),
        high=float(high),
    )


def spearman(first: np.ndarray, second: np.ndarray, axis: int = -1) -> np.ndarray:
    """Along an axis; 0 where nothing varies."""
    from scipy.stats import rankdata

    ranks = [rankdata(values, axis=axis) for values in (first, second)]
    x, y = (of - of.mean(axis, keepdims=True) for of in ranks)
    spread = np.sqrt(np.square(x).sum(axis) * np.square(y).sum(axis))
    covariance = (x * y).sum(axis)
    return np.divide(
        covariance, spread, out=np.zeros_like(covariance), where=spread > 0
    )

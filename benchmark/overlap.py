"""S, the overlap of two similarity distributions (instance-loss paper, Section IV-B).

S is the area under min(P, Q), with P the density of matched and Q that of unmatched pairs: 0 when
they are apart, 1 when they are alike. Densities are histograms over shared bins.
"""

import numpy as np

BINS = 200  # of the range; the paper gives no estimator
COSINE_RANGE = (-1.0, 1.0)


def overlap(
    matched: np.ndarray,
    unmatched: np.ndarray,
    bins: int = BINS,
    range: tuple[float, float] | None = COSINE_RANGE,
) -> float:
    """S in [0, 1] of two samples of scores.

    `range` None takes the common support, for scores that are no cosines. Raises ValueError for
    an empty sample, a score that is not finite, or one outside of the range.
    """
    low, high = support(matched, unmatched) if range is None else range
    p, q = (shares(sample, bins, low, high) for sample in (matched, unmatched))
    return float(np.minimum(p, q).sum())


def support(matched: np.ndarray, unmatched: np.ndarray) -> tuple[float, float]:
    """Smallest range that holds both samples; never empty."""
    low = min(float(np.min(matched)), float(np.min(unmatched)))
    high = max(float(np.max(matched)), float(np.max(unmatched)))
    return (low, high) if high > low else (low, low + 1.0)


def shares(sample: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    """Share of the sample in each of `bins` equal bins of [low, high]; sums to 1."""
    sample = np.asarray(sample).ravel()
    if not sample.size:
        raise ValueError("a distribution needs at least one score")
    if not np.isfinite(sample).all():
        raise ValueError("scores contain NaN or infinity")
    # A cosine may leave [-1, 1] by rounding, by no more than a few units of float32.
    slack = 1e-5 * (high - low)
    if sample.min() < low - slack or sample.max() > high + slack:
        raise ValueError(
            f"scores must lie in [{low}, {high}], got [{sample.min()}, {sample.max()}]"
        )
    counts, _ = np.histogram(np.clip(sample, low, high), bins=bins, range=(low, high))
    return counts / sample.size


def one_minus_ks(matched: np.ndarray, unmatched: np.ndarray) -> float:
    """1 - the Kolmogorov-Smirnov distance: a bound on S that needs no bins (S <= 1 - KS)."""
    matched, unmatched = np.sort(matched, axis=None), np.sort(unmatched, axis=None)
    points = np.concatenate([matched, unmatched])
    below_p = np.searchsorted(matched, points, side="right") / matched.size
    below_q = np.searchsorted(unmatched, points, side="right") / unmatched.size
    return float(1 - np.abs(below_p - below_q).max())

"""S, the overlap of two similarity distributions (instance-loss paper, Section IV-B).

S is the area under min(P, Q), where P is the density of the scores of matched pairs and Q that of
unmatched pairs: 0 if the two have nothing in common, 1 if they are the same. Densities are
histograms over shared bins. Knows no torch.
"""

import numpy as np
from scipy.sparse import csc_array

BINS = 200  # of the range; the paper gives no estimator
COSINE_RANGE = (-1.0, 1.0)
RESAMPLES = 200
ROUNDING = 1e-9  # values of S that are closer are the same
SEED = 0  # of the resamples: all cells of a dataset have the same ones


def overlap(
    matched: np.ndarray,
    unmatched: np.ndarray,
    bins: int = BINS,
    range: tuple[float, float] | None = COSINE_RANGE,
) -> float:
    """S, in [0, 1], of two samples of scores.

    `range` is that of the bins; None takes the common support, for scores that are not cosines.
    Raises ValueError for an empty sample, and for a score that is not finite or not in the range.
    """
    low, high = support(matched, unmatched) if range is None else range
    p, q = (shares(sample, bins, low, high) for sample in (matched, unmatched))
    return float(np.minimum(p, q).sum())


def support(matched: np.ndarray, unmatched: np.ndarray) -> tuple[float, float]:
    """Smallest range that contains both samples; of width 1, or a millionth of them, if all scores
    are equal."""
    low = min(float(np.min(matched)), float(np.min(unmatched)))
    high = max(float(np.max(matched)), float(np.max(unmatched)))
    return (low, high) if high > low else (low, low + max(1.0, 1e-6 * abs(low)))


def shares(sample: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    """Share of the sample in each of `bins` equal bins of [low, high], (bins,); sums to 1.

    Raises as `overlap`.
    """
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


def interval(estimate: float, replicates: np.ndarray) -> tuple[float, float] | None:
    """The basic 95% bootstrap interval of S: the percentiles reflected at the estimate.

    Noise lowers the area under the lower of two histograms, and a resample is noisier than its
    sample: its percentiles are too low by about as much as the estimate itself. The reflection
    corrects this, wholly with 1,000 matched pairs, partly with 200. With few pairs it may lie
    wholly on one side of the estimate, or outside [0, 1]: it is widened to contain the estimate
    and cut to the range of S. Replicates that are NaN are left out. None where the replicates have
    no spread, and where nothing but a point is left.
    """
    finite = replicates[np.isfinite(replicates)]
    if not finite.size or np.ptp(finite) < ROUNDING:
        return None
    below, above = np.quantile(finite, (0.025, 0.975))
    low = max(0.0, min(estimate, 2 * estimate - float(above)))
    high = min(1.0, max(estimate, 2 * estimate - float(below)))
    return (low, high) if high - low > ROUNDING else None


def one_minus_ks(matched: np.ndarray, unmatched: np.ndarray) -> float:
    """1 - the Kolmogorov-Smirnov distance, in [0, 1]: a bound that needs no bins (S <= 1 - KS)."""
    matched, unmatched = np.sort(matched, axis=None), np.sort(unmatched, axis=None)
    points = np.concatenate([matched, unmatched])
    below_p = np.searchsorted(matched, points, side="right") / matched.size
    below_q = np.searchsorted(unmatched, points, side="right") / unmatched.size
    return float(1 - np.abs(below_p - below_q).max())


def resamples(groups: int, count: int = RESAMPLES) -> np.ndarray:
    """How often each bootstrap resample draws each of G groups, (count, G) int64; rows sum to G."""
    draws = np.random.default_rng(SEED).integers(groups, size=(count, groups))
    return np.stack([np.bincount(draw, minlength=groups) for draw in draws])


def replicates(
    scores_IC: np.ndarray,
    group_of_image_I: np.ndarray,
    group_of_caption_C: np.ndarray,
    drawn_RG: np.ndarray,
    range: tuple[float, float],
    bins: int = BINS,
) -> np.ndarray:
    """S of R resamples of the groups, (R,), over the bins of `overlap`.

    A drawn group brings its images and captions; if drawn w times, it counts as w separate groups.
    So a matched pair counts w times, and an unmatched pair as often as its image's group was drawn
    times its caption's. The images of one copy of a group with the captions of another copy are
    left out: in Q they would be matched scores, in P their weight would grow with w squared. NaN
    where a resample is a single group and has no unmatched pair.
    """
    edges = np.histogram_bin_edges(scores_IC, bins, range)
    drawn_RC = drawn_RG[:, group_of_caption_C]
    drawn_CR = np.ascontiguousarray(drawn_RC.T, dtype=np.float64)
    columns_C1 = np.arange(len(drawn_CR) + 1)  # one entry per caption
    p_RN = np.zeros((len(drawn_RG), bins))
    q_RN = np.zeros((len(drawn_RG), bins))
    for group, scores_C in zip(group_of_image_I, scores_IC, strict=True):
        bin_C = _bins_of(scores_C, edges)
        own_C = group_of_caption_C == group
        weight_R1 = drawn_RG[:, group, None]
        p_RN += weight_R1 * np.bincount(bin_C[own_C], minlength=bins)
        others_NC = csc_array((1.0 - own_C, bin_C, columns_C1), shape=(bins, len(bin_C)))
        q_RN += weight_R1 * (others_NC @ drawn_CR).T
    with np.errstate(invalid="ignore"):  # 0 / 0 of a single group
        return np.minimum(*(n_RN / n_RN.sum(1, keepdims=True) for n_RN in (p_RN, q_RN))).sum(1)


def _bins_of(scores: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each score as in np.histogram: the last bin includes its upper edge."""
    bins = np.searchsorted(edges, scores, side="right") - 1
    return np.clip(bins, 0, len(edges) - 2)  # rounding beyond a cosine's range

"""S, the overlap of two similarity distributions (instance-loss paper, Section IV-B).

S is the area under min(P, Q), where P is the density of the scores of matched pairs and Q that of
unmatched pairs: 0 if the two have nothing in common, 1 if they are the same. Densities are
histograms over shared bins. Knows no torch.
"""

import numpy as np
from scipy.sparse import csr_array

BINS = 200  # of the range; the paper gives no estimator
COSINE_RANGE = (-1.0, 1.0)
RESAMPLES = 200
ROUNDING = 1e-9  # values of S that are closer are the same
EXACT = 2**24  # integers below it are exact in single precision
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
    return widened(low, high)


def widened(low: float, high: float) -> tuple[float, float]:
    return (low, high) if high > low else (low, low + max(1.0, 1e-6 * abs(low)))


def range_of_bins(low: float, high: float) -> tuple[float, float]:
    """[-1, 1] for cosines, and the common support for other scores."""
    return COSINE_RANGE if low >= -1.00001 and high <= 1.00001 else (low, high)


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


class Bootstrap:
    """S of R resamples of the groups, from tiles of scores.

    A drawn group brings its images and captions; if drawn w times, it counts as w separate groups.
    So a matched pair counts w times, and an unmatched pair as often as its image's group was drawn
    times its caption's. The images of one copy of a group with the captions of another copy are
    left out: in Q they would be matched scores, in P their weight would grow with w squared. NaN
    where a resample is a single group and has no unmatched pair.

    A bin is settled once the unmatched pairs seen so far hold a share of at least P in every
    resample: more of them change nothing of min(P, Q). So most unmatched pairs, which lie where few
    matched ones do, need not be counted.
    """

    def __init__(
        self,
        group_of_image_I: np.ndarray,
        group_of_caption_C: np.ndarray,
        drawn_RG: np.ndarray,
        edges: np.ndarray,
        matched_images_M: np.ndarray,
        matched_M: np.ndarray,
    ) -> None:
        self.edges, bins = edges, len(edges) - 1
        matched_bin_M = bins_of(matched_M, edges)
        drawn_GR = np.ascontiguousarray(drawn_RG.T, dtype=np.float64)
        self.drawn_GR = drawn_GR.astype(np.float32)  # small integers
        self.group_of_image, self.group_of_caption = group_of_image_I, group_of_caption_C
        images_G, captions_G, matched_G = (
            np.bincount(groups, minlength=len(drawn_GR))
            for groups in (group_of_image_I, group_of_caption_C, group_of_image_I[matched_images_M])
        )
        pairs = (np.ones(len(matched_bin_M)), (matched_bin_M, group_of_image_I[matched_images_M]))
        p_NR = csr_array(pairs, (bins, len(drawn_GR))) @ drawn_GR
        unmatched_R = (images_G @ drawn_GR) * (captions_G @ drawn_GR)
        total_R = unmatched_R - matched_G @ np.square(drawn_GR)
        with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 of a single group
            self.p_NR, self.total_R = p_NR / p_NR.sum(0), np.where(total_R > 0, total_R, np.nan)
        self.q_NR = np.zeros_like(p_NR)
        self._settle()

    @property
    def replicates(self) -> np.ndarray:
        return np.minimum(self.p_NR, self.q_NR / self.total_R).T.copy().sum(1)

    def add(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        scores_rc: np.ndarray,
        matched: tuple[np.ndarray, ...],
    ) -> None:
        """The scores of a tile; row and column of the matched ones."""
        pairs = self._open_pairs(scores_rc, matched)
        if not len(pairs):
            return
        row, column = np.divmod(pairs, len(columns))
        bin_P = bins_of(scores_rc.ravel()[pairs], self.edges)
        image_rR = self.drawn_GR[self.group_of_image[rows]]
        caption_cR = self.drawn_GR[self.group_of_caption[columns]]
        drawn_R = image_rR.sum(0, dtype=np.float64) * caption_cR.sum(0, dtype=np.float64)
        is_small = drawn_R.max() < EXACT  # sums of integers
        number = np.float32 if is_small else np.float64
        # The captions of an image in a bin add up, then all images in the bin.
        bins = len(self.is_open)
        cell = row * bins + bin_P
        cells = np.flatnonzero(np.bincount(cell, minlength=len(rows) * bins))
        place = np.zeros(len(rows) * bins, np.intp)
        place[cells] = np.arange(len(cells))
        caption_cR = caption_cR.astype(number, copy=False)
        sums = _sums(place[cell], column, (len(cells), len(columns)), caption_cR)
        sums *= image_rR[cells // bins]
        self.q_NR += _sums(cells % bins, np.arange(len(cells)), (bins, len(cells)), sums)
        self._settle()

    def _open_pairs(self, scores_rc: np.ndarray, matched: tuple[np.ndarray, ...]) -> np.ndarray:
        """(P,) where in the tile lie unmatched pairs between the first and the last open bin."""
        opened = np.flatnonzero(self.is_open)
        if not len(opened):
            return opened
        is_open_rc = np.ones(scores_rc.shape, bool)
        if opened[0] > 0:
            is_open_rc &= scores_rc >= self.edges[opened[0]]
        if opened[-1] < len(self.is_open) - 1:
            is_open_rc &= scores_rc < self.edges[opened[-1] + 1]
        is_open_rc[matched] = False
        pairs = np.flatnonzero(is_open_rc)
        return pairs[self.is_open[bins_of(scores_rc.ravel()[pairs], self.edges)]]

    def _settle(self) -> None:
        self.is_open = ~(self.q_NR / self.total_R >= self.p_NR).all(1)


def _sums(
    place: np.ndarray, row: np.ndarray, shape: tuple[int, int], values: np.ndarray
) -> np.ndarray:
    """At each place the sum of some rows of the values."""
    return csr_array((np.ones(len(row), values.dtype), (place, row)), shape) @ values


def edges_of(dtype: np.dtype, range: tuple[float, float], bins: int) -> np.ndarray:
    """The edges of equal bins as np.histogram rounds them for scores of this type."""
    return np.histogram_bin_edges(np.empty(0, dtype), bins, range)


def bins_of(scores: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each score as in np.histogram: the last bin includes its upper edge."""
    low, high, last = float(edges[0]), float(edges[-1]), len(edges) - 2
    place = (scores - scores.dtype.type(low)) * scores.dtype.type((last + 1) / (high - low))
    rounding = 8 * np.finfo(edges.dtype).eps * (1 + max(abs(low), abs(high)) / (high - low))
    is_unsure = np.abs(place - np.rint(place)) < rounding * len(edges)
    bins = np.clip(place, 0, last).astype(np.intp)  # rounding beyond a cosine's range
    if is_unsure.any():
        exact = np.searchsorted(edges, scores[is_unsure], side="right") - 1
        bins[is_unsure] = np.clip(exact, 0, last)
    return bins

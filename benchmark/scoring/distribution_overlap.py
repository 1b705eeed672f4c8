"""S, the overlap of two similarity distributions (instance-loss paper, Section IV-B).

S is the area under min(P, Q), where P is the density of the scores of matched pairs and
Q that of unmatched pairs: 0 if the two have nothing in common, 1 if they are the same.
Densities are histograms over shared bins. Imports no torch.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are loaded where they are used

from benchmark.data.results import BINS as FINE_BINS
from benchmark.data.results import Histograms
from benchmark.stats import TAILS

BINS = 200  # of the range; the paper gives no estimator
# S hangs on its bins where it differs between them
BIN_COUNTS = (BINS // 2, BINS, BINS * 2)
COSINE_RANGE = (-1.0, 1.0)
RESAMPLES = 200
ROUNDING = 1e-9  # values of S that are closer are the same
# Pairs that are counted at once. Fewer would take longer in all, since those of an
# image in a bin add up before they are weighed.
AT_ONCE = 2**17
# Scores for each point that are sorted at once, so that most of the time is sorting.
SORTED_PER_POINT = 8
EXACT = 2**24  # integers below it are exact in single precision
SEED = 0  # of the resamples: all cells of a dataset have the same ones


@dataclass(frozen=True, kw_only=True)
class ScoreSummary:
    """What the metrics of scores are made of."""

    range: tuple[float, float]  # of the bins
    overlaps: dict[int, float]  # number of bins -> S
    one_minus_ks: float
    mean_matched: float
    mean_unmatched: float


def widened(low: float, high: float) -> tuple[float, float]:
    """The range of scores; of width 1, or a millionth of them, if all are equal. Where
    they are so close that edges of bins would be one number, it reaches further."""
    if high <= low:
        return low, low + max(1.0, 1e-6 * abs(low))
    if (np.diff(np.linspace(low, high, FINE_BINS + 1)) <= 0).any():
        high = low + 2 * FINE_BINS * float(np.spacing(max(abs(low), abs(high))))
    return low, high


def range_of_bins(low: float, high: float) -> tuple[float, float]:
    """[-1, 1] for cosines, and the range itself for other scores."""
    return COSINE_RANGE if low >= -1.00001 and high <= 1.00001 else (low, high)


def shares(sample: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    """Share of the scores in each of `bins` equal bins of [low, high], (bins,); sums to
    1. A cosine may leave [-1, 1] by rounding."""
    counts, _ = np.histogram(np.clip(sample, low, high), bins=bins, range=(low, high))
    return counts / sample.size


def interval(estimate: float, replicates: np.ndarray) -> tuple[float, float] | None:
    """The basic bootstrap interval of S: the percentiles reflected at the estimate.

    Noise lowers the area under the lower of two histograms, and a resample is noisier
    than its sample: its percentiles are too low by about as much as the estimate
    itself. The reflection corrects this. It is widened to contain the estimate and cut
    to the range of S. Replicates that are NaN are left out. None where the replicates
    have no spread, or a point is left.
    """
    finite = replicates[np.isfinite(replicates)]
    if not finite.size or np.ptp(finite) < ROUNDING:
        return None
    below, above = np.quantile(finite, TAILS)
    low = max(0.0, min(estimate, 2 * estimate - float(above)))
    high = min(1.0, max(estimate, 2 * estimate - float(below)))
    return (low, high) if high - low > ROUNDING else None


def resamples(groups: int, count: int = RESAMPLES) -> np.ndarray:
    """How often each bootstrap resample draws each of G groups, (count, G) int64; rows
    sum to G."""
    draws = np.random.default_rng(SEED).integers(groups, size=(count, groups))
    return np.stack([np.bincount(draw, minlength=groups) for draw in draws])


class Bootstrap:
    """S of R resamples of the groups, from tiles of scores.

    A drawn group brings its images and captions; if drawn w times, it counts as w
    separate groups. So a matched pair counts w times, and an unmatched pair as often as
    its image's group was drawn times its caption's. The images of one copy of a group
    with the captions of another copy are left out: in Q they would be matched scores,
    in P their weight would grow with w squared. NaN where a resample is a single group
    and has no unmatched pair.

    A bin is settled once the unmatched pairs seen so far hold a share of at least P in
    every resample: more of them change nothing of min(P, Q). So most unmatched pairs,
    which lie where few matched ones do, need not be counted.
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
        self.group_of_image = group_of_image_I
        self.group_of_caption = group_of_caption_C
        groups, group_M = len(drawn_GR), group_of_image_I[matched_images_M]
        images_G = np.bincount(group_of_image_I, minlength=groups)
        captions_G = np.bincount(group_of_caption_C, minlength=groups)
        matched_G = np.bincount(group_M, minlength=groups)
        pairs = np.ones(len(matched_bin_M)), (matched_bin_M, group_M)
        p_NR = scipy.sparse.csr_array(pairs, (bins, groups)) @ drawn_GR
        unmatched_R = (images_G @ drawn_GR) * (captions_G @ drawn_GR)
        total_R = unmatched_R - matched_G @ np.square(drawn_GR)
        with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 of a single group
            self.p_NR = p_NR / p_NR.sum(0)
        self.total_R = np.where(total_R > 0, total_R, np.nan)
        self.q_NR = np.zeros_like(p_NR)
        # image, caption and bin of pairs
        self.waiting: list[tuple[np.ndarray, ...]] = []
        self._settle()

    @property
    def replicates(self) -> np.ndarray:
        """After all tiles."""
        self._count()
        return np.minimum(self.p_NR, self.q_NR / self.total_R).T.copy().sum(1)

    def add(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        scores_rc: np.ndarray,
        matched: tuple[np.ndarray, ...],
    ) -> None:
        """The scores of a tile; row and column of the matched ones."""
        opened = np.flatnonzero(self.is_open)
        if not len(opened):
            return
        ends = np.r_[-np.inf, self.edges[1:-1], np.inf].astype(self.edges.dtype)
        is_open_rc = scores_rc >= ends[opened[0]]
        if ends[opened[-1] + 1] < np.inf:
            is_open_rc &= scores_rc < ends[opened[-1] + 1]
        is_open_rc[matched] = False
        pairs = np.flatnonzero(is_open_rc)
        bin_P = bins_of(scores_rc.ravel()[pairs], self.edges)
        is_kept = self.is_open[bin_P]
        pairs, bin_P = pairs[is_kept], bin_P[is_kept]
        if not len(pairs):
            return
        row, column = np.divmod(pairs, len(columns))
        for start in range(0, len(pairs), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            self.waiting.append((rows[row[some]], columns[column[some]], bin_P[some]))
            if sum(len(bins) for _, _, bins in self.waiting) >= AT_ONCE:
                self._count()

    def _count(self) -> None:
        """Count the pairs that wait."""
        if not self.waiting:
            return
        columns = zip(*self.waiting, strict=True)
        image_P, caption_P, bin_P = map(np.concatenate, columns)
        self.waiting.clear()
        bins, groups = len(self.is_open), len(self.drawn_GR)
        most = float(self.drawn_GR.max()) ** 2 * len(bin_P)
        precision = np.float32 if most < EXACT else np.float64
        drawn_GR = self.drawn_GR.astype(precision, copy=False)
        # The captions of an image in a bin add up, then all images in the bin.
        cell_P = self.group_of_image[image_P] * bins + bin_P
        cells = np.flatnonzero(np.bincount(cell_P))
        place = np.zeros(groups * bins, np.intp)
        place[cells] = np.arange(len(cells))
        ones_P = np.ones(len(bin_P), drawn_GR.dtype)
        of_captions = ones_P, (place[cell_P], self.group_of_caption[caption_P])
        sums = scipy.sparse.csr_array(of_captions, (len(cells), groups)) @ drawn_GR
        sums *= drawn_GR[cells // bins]
        of_images = ones_P[: len(cells)], (cells % bins, np.arange(len(cells)))
        self.q_NR += scipy.sparse.csr_array(of_images, (bins, len(cells))) @ sums
        self._settle()

    def _settle(self) -> None:
        self.is_open = ~(self.q_NR / self.total_R >= self.p_NR).all(1)


def edges_of(dtype: np.dtype, range: tuple[float, float], bins: int) -> np.ndarray:
    """The edges of equal bins as np.histogram rounds them for scores of this type."""
    return np.histogram_bin_edges(np.empty(0, dtype), bins, range)


def bins_of(scores: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each score as in np.histogram: the last bin includes its upper
    edge."""
    low, high, last = float(edges[0]), float(edges[-1]), len(edges) - 2
    precision, width = scores.dtype.type, high - low
    place = (scores - precision(low)) * precision((last + 1) / width)
    farthest = max(abs(low), abs(high))
    rounding = 8 * np.finfo(edges.dtype).eps * (1 + farthest / width)
    is_unsure = np.abs(place - np.rint(place)) < rounding * len(edges)
    bins = np.clip(place, 0, last).astype(np.intp)  # rounding beyond a cosine's range
    if is_unsure.any():
        exact = np.searchsorted(edges, scores[is_unsure], side="right") - 1
        bins[is_unsure] = np.clip(exact, 0, last)
    return bins


class Distributions:
    """S and what goes with it, of matched and unmatched scores, from tiles of all
    scores.

    `matched_M` are all matched scores, `range` that of all scores, and `pairs` their
    number. How many scores lie below each edge and each matched score, and at it or
    below, is counted tile by tile: edges are compared with scores as np.histogram does.
    """

    def __init__(
        self, matched_M: np.ndarray, range: tuple[float, float], pairs: int
    ) -> None:
        self.matched_M, self.unmatched = np.sort(matched_M), pairs - len(matched_M)
        self.mean_matched = float(np.mean(matched_M, dtype=np.float64))
        self.range, dtype = range_of_bins(*widened(*range)), matched_M.dtype
        self.edges = {count: edges_of(dtype, self.range, count) for count in BIN_COUNTS}
        self.fine_edges = edges_of(dtype, widened(*range), FINE_BINS)
        points = np.concatenate([*self.edges.values(), self.fine_edges, self.matched_M])
        self.points = np.sort(points)
        self.below, self.at_most = np.zeros((2, len(points)), np.int64)
        self.waiting: list[np.ndarray] = []  # scores

    def add(self, scores: np.ndarray) -> None:
        """All scores of a tile, matched ones too."""
        self.waiting.append(scores.ravel())
        if sum(map(len, self.waiting)) >= SORTED_PER_POINT * len(self.points):
            self._count()

    def _count(self) -> None:
        """Count the scores that wait."""
        if not self.waiting:
            return
        ordered = np.concatenate(self.waiting)
        self.waiting.clear()
        ordered.sort()
        place = np.searchsorted(ordered, self.points)
        self.below += place
        is_met = ordered[np.minimum(place, len(ordered) - 1)] == self.points
        place[is_met] = np.searchsorted(ordered, self.points[is_met], "right")
        self.at_most += place

    def summary(self, mean_unmatched: float) -> ScoreSummary:
        """After all tiles."""
        self._count()
        overlaps = {}
        for bins, edges in self.edges.items():
            p = shares(self.matched_M, bins, *self.range)
            q = self._unmatched(edges) / self.unmatched
            overlaps[bins] = float(np.minimum(p, q).sum())
        # The two distribution functions are farthest apart at a matched score, or just
        # below one.
        farthest, place = 0.0, np.searchsorted(self.points, self.matched_M)
        for side, counts in (("left", self.below), ("right", self.at_most)):
            matched = np.searchsorted(self.matched_M, self.matched_M, side)
            p_M = matched / len(self.matched_M)
            q_M = (counts[place] - matched) / self.unmatched
            farthest = max(farthest, float(np.abs(p_M - q_M).max()))
        return ScoreSummary(
            range=self.range,
            overlaps=overlaps,
            one_minus_ks=float(1 - farthest),
            mean_matched=self.mean_matched,
            mean_unmatched=mean_unmatched,
        )

    @property
    def histograms(self) -> Histograms:
        """After all tiles: for figures."""
        self._count()
        ends = self.fine_edges[[0, -1]]  # rounding beyond a cosine's range
        matched = np.histogram(np.clip(self.matched_M, *ends), self.fine_edges)[0]
        unmatched = self._unmatched(self.fine_edges)
        return Histograms(self.fine_edges.astype(np.float64), matched, unmatched)

    def _unmatched(self, edges: np.ndarray) -> np.ndarray:
        """How many unmatched scores lie in each bin, (bins,)."""
        below = self.below[np.searchsorted(self.points, edges)]
        below -= np.searchsorted(self.matched_M, edges)
        below[0], below[-1] = 0, self.unmatched  # rounding beyond a cosine's range
        return np.diff(below)

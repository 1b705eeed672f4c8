"""The distributions of matched and unmatched scores, from tiles (score_tiles.py): histograms, the
Kolmogorov-Smirnov distance and single order statistics, all of them exact.

Order statistics of many scores need not sort them. The first pass counts how many lie in each of
many cells; the second one keeps those that lie in the cells where something is asked.
"""

from collections.abc import Sequence

import numpy as np

from benchmark.protocol import distribution_overlap
from benchmark.protocol.metrics import ScoreSummary
from benchmark.protocol.score_tiles import Overview, Pairing, Tile

CELLS = 2**18
MARGIN = (
    0.25  # of the first tile's range, on both sides of it; what lies beyond is in the end cells
)


class UnmatchedOrder:
    """Order statistics of the unmatched scores, and how they compare with the matched ones."""

    def __init__(self) -> None:
        self.low, self.scale = None, 1.0
        self.counts = np.zeros(CELLS, np.int64)
        self.kept: list[np.ndarray] = []

    def count(self, scores: np.ndarray, matched: np.ndarray) -> None:
        """First pass: scores of a tile, and those of them that are matched."""
        if self.low is None:
            low, high = scores.min(), scores.max()
            self.low = low - scores.dtype.type(MARGIN) * (high - low)
            width = float(high - low) * (1 + 2 * MARGIN)
            self.scale = scores.dtype.type(CELLS / width) if width > 0 else scores.dtype.type(1)
        self.counts += np.bincount(self._cells(scores).ravel(), minlength=CELLS)
        self.counts -= np.bincount(self._cells(matched), minlength=CELLS)

    def ask(self, ranks: np.ndarray, matched: np.ndarray) -> None:
        """Between the passes: ranks of the unmatched scores that are wanted, and all matched
        scores."""
        self.ranks, self.matched, self.end = ranks, np.sort(matched), self.counts.cumsum()
        cells_M = np.bincount(self._cells(self.matched), minlength=CELLS)
        p, q = cells_M.cumsum() / len(matched), self.end / self.end[-1]
        before_p = (cells_M.cumsum() - cells_M) / len(matched)
        before_q = (self.end - self.counts) / self.end[-1]
        self.distance = float(np.abs(p - q).max())  # at the ends of cells
        most = np.maximum(np.abs(p - before_q), np.abs(q - before_p))
        self.may_be_farthest = (cells_M > 0) & (most > self.distance)
        self.is_wanted = self.may_be_farthest.copy()
        self.is_wanted[np.searchsorted(self.end, ranks, side="right")] = True

    def keep(self, scores: np.ndarray, matched: tuple[np.ndarray, ...]) -> None:
        """Second pass: scores (r, c) of a tile; row and column of the matched ones."""
        is_kept = self.is_wanted[self._cells(scores)]
        is_kept[matched] = False
        self.kept.append(scores[is_kept])

    def answer(self) -> tuple[np.ndarray, float]:
        """The scores of the wanted ranks, and 1 - the Kolmogorov-Smirnov distance."""
        kept = np.sort(np.concatenate(self.kept))
        held = np.where(self.is_wanted, self.counts, 0)
        below = self.end - self.counts - (held.cumsum() - held)  # not kept, and below the cell
        wanted = kept[self.ranks - below[np.searchsorted(self.end, self.ranks, side="right")]]
        near = self.matched[self.may_be_farthest[self._cells(self.matched)]]
        base, farthest = below[self._cells(near)], self.distance
        for side in ("left", "right"):
            p = np.searchsorted(self.matched, near, side) / len(self.matched)
            q = (base + np.searchsorted(kept, near, side)) / self.end[-1]
            farthest = max(farthest, float(np.abs(p - q).max(initial=0.0)))
        return wanted, float(1 - farthest)

    def _cells(self, scores: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            place = (scores - self.low) * self.scale
        return np.clip(place, 0, CELLS - 1, out=place).astype(np.intp)


class Histograms:
    """Histograms of the unmatched scores over bins of several numbers."""

    def __init__(self, range: tuple[float, float], dtype: np.dtype, bins: Sequence[int]) -> None:
        self.bins = sorted(bins)
        self.edges = {count: distribution_overlap.edges_of(dtype, range, count) for count in bins}
        self.counts = {count: np.zeros(count, np.int64) for count in bins}

    def add(self, scores: np.ndarray, matched: tuple[np.ndarray, ...]) -> dict[int, np.ndarray]:
        """Scores (r, c) of a tile; row and column of the matched ones. The bins of all of them by
        number of bins."""
        finest = self.bins[-1]
        placed = {finest: distribution_overlap.bins_of(scores, self.edges[finest])}
        for count in self.bins[-2::-1]:
            every = finest // count
            if finest % count == 0 and np.array_equal(
                self.edges[finest][::every], self.edges[count]
            ):
                placed[count] = placed[finest] // every
            else:
                placed[count] = distribution_overlap.bins_of(scores, self.edges[count])
        for count, bin_rc in placed.items():
            self.counts[count] += np.bincount(bin_rc.ravel(), minlength=count)
            self.counts[count] -= np.bincount(bin_rc[matched], minlength=count)
        return placed

    def shares(self, count: int) -> np.ndarray:
        return self.counts[count] / self.counts[count].sum()


class Distributions:
    """The second pass over the scores of i2t, for S and what goes with it.

    `order` has seen the first pass; `samples` are how many evenly spaced scores of each
    distribution are kept.
    """

    def __init__(
        self,
        found: Overview,
        order: UnmatchedOrder,
        pairing: Pairing,
        drawn_RG: np.ndarray,
        bins: Sequence[int],
        samples: int,
    ) -> None:
        self.found, self.order, self.dtype = found, order, found.dtype("i2t")
        self.matched = found.matched["i2t"].astype(self.dtype)
        low, high = distribution_overlap.widened(*found.ranges["i2t"])
        self.range = distribution_overlap.range_of_bins(low, high)
        self.histograms = Histograms(self.range, self.dtype, bins)
        edges = self.histograms.edges[distribution_overlap.BINS]
        bin_M = distribution_overlap.bins_of(self.matched, edges)
        groups = pairing.group_of_image, pairing.group_of_caption
        self.bootstrap = distribution_overlap.Bootstrap(*groups, drawn_RG, found.images, bin_M)
        self.places = _evenly(len(self.matched), samples)
        unmatched = pairing.size - len(self.matched)
        order.ask(_evenly(unmatched, samples), found.matched["i2t"])

    def add(self, tile: Tile, pairs: tuple[np.ndarray, ...]) -> None:
        """A tile; row and column of its matched pairs."""
        scores = tile.of("i2t")
        self.order.keep(scores, pairs)
        placed = self.histograms.add(scores.astype(self.dtype, copy=False), pairs)
        of_tile = placed[distribution_overlap.BINS]
        self.bootstrap.add(tile.rows, tile.columns, of_tile, pairs)

    def finish(self) -> None:
        """After the pass."""
        sample, self.one_minus_ks = self.order.answer()
        self.unmatched_sample = sample.astype(self.dtype)

    @property
    def summary(self) -> ScoreSummary:
        overlaps = {
            bins: float(np.minimum(self._matched_shares(bins), self.histograms.shares(bins)).sum())
            for bins in self.histograms.bins
        }
        return ScoreSummary(
            range=self.range,
            overlaps=overlaps,
            one_minus_ks=self.one_minus_ks,
            mean_matched=float(np.mean(self.matched, dtype=np.float64)),
            mean_unmatched=self.found.mean_unmatched,
        )

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Histograms over S's bins, and evenly spaced samples."""
        bins = distribution_overlap.BINS
        return {
            "edges": np.linspace(*self.range, bins + 1),
            "matched": self._matched_shares(bins),
            "matched_sample": np.sort(self.matched)[self.places],
            "unmatched": self.histograms.shares(bins),
            "unmatched_sample": self.unmatched_sample,
        }

    def _matched_shares(self, bins: int) -> np.ndarray:
        return distribution_overlap.shares(self.matched, bins, *self.range)


def _evenly(count: int, wanted: int) -> np.ndarray:
    return np.linspace(0, count - 1, wanted).astype(int)

"""The distributions of matched and unmatched scores, from tiles (score_tiles.py): histograms, the
Kolmogorov-Smirnov distance and single order statistics, all of them exact.

Order statistics of many scores need not sort them. The first pass counts how many lie in each of
many cells; the second one keeps those that lie in the cells where something is asked. Histograms
are differences of how many scores lie below their edges.
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

    def count(self, scores: np.ndarray) -> None:
        """First pass: scores of a tile."""
        if self.low is None:
            low, high, limits = float(scores.min()), float(scores.max()), np.finfo(scores.dtype)
            width = (high - low) * (1 + 2 * MARGIN)
            scale = min(CELLS / width, float(limits.max)) if width > 0 else 1.0
            self.low = limits.dtype.type(max(low - MARGIN * (high - low), float(limits.min)))
            self.scale = limits.dtype.type(scale)
        self.counts += np.bincount(self._cells(scores).ravel(), minlength=CELLS)

    def ask(self, ranks: np.ndarray, points: np.ndarray, matched: np.ndarray) -> None:
        """Between the passes: ranks of the unmatched scores that are wanted, points below which
        they are counted, and all matched scores."""
        self.ranks, self.points, self.matched = ranks, points, np.sort(matched)
        of_cell = np.bincount(self._cells(self.matched), minlength=CELLS)
        self.counts -= of_cell
        self.end = self.counts.cumsum()
        p, q = of_cell.cumsum() / len(matched), self.end / self.end[-1]
        before_p = (of_cell.cumsum() - of_cell) / len(matched)
        before_q = (self.end - self.counts) / self.end[-1]
        self.distance = float(np.abs(p - q).max())  # at the ends of cells
        most = np.maximum(np.abs(p - before_q), np.abs(q - before_p))
        self.may_be_farthest = (of_cell > 0) & (most > self.distance)
        self.is_wanted = self.may_be_farthest.copy()
        self.is_wanted[np.searchsorted(self.end, ranks, side="right")] = True
        for first, last in zip(*self._cells_around(points), strict=True):
            self.is_wanted[first : last + 1] = True

    def keep(self, scores: np.ndarray, matched: tuple[np.ndarray, ...]) -> None:
        """Second pass: scores (r, c) of a tile; row and column of the matched ones."""
        is_kept = self.is_wanted[self._cells(scores)]
        is_kept[matched] = False
        self.kept.append(scores[is_kept])

    def finish(self) -> None:
        """After the second pass."""
        self.kept = np.sort(np.concatenate(self.kept))
        held = np.where(self.is_wanted, self.counts, 0)
        self.below = self.end - self.counts - (held.cumsum() - held)  # not kept, below the cell

    @property
    def ranked(self) -> np.ndarray:
        """The scores of the wanted ranks."""
        cells = np.searchsorted(self.end, self.ranks, side="right")
        return self.kept[self.ranks - self.below[cells]]

    @property
    def counts_below(self) -> np.ndarray:
        """How many unmatched scores are smaller than each point."""
        first, _ = self._cells_around(self.points)
        return self.below[first] + np.searchsorted(self.kept, self.points, "left")

    @property
    def one_minus_ks(self) -> float:
        """1 - the Kolmogorov-Smirnov distance of matched and unmatched scores."""
        near = self.matched[self.may_be_farthest[self._cells(self.matched)]]
        base, farthest = self.below[self._cells(near)], self.distance
        for side in ("left", "right"):
            p = np.searchsorted(self.matched, near, side) / len(self.matched)
            q = (base + np.searchsorted(self.kept, near, side)) / self.end[-1]
            farthest = max(farthest, float(np.abs(p - q).max(initial=0.0)))
        return float(1 - farthest)

    def _cells(self, scores: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            place = scores - self.low
            place *= self.scale
        return np.clip(place, 0, CELLS - 1, out=place).astype(np.intp)

    def _cells_around(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cells of the scores just below and just above points, which may be of another
        type."""
        rounded = points.astype(self.low.dtype)
        return tuple(
            self._cells(np.nextafter(rounded, end)) for end in rounded.dtype.type((-np.inf, np.inf))
        )


class Distributions:
    """The second pass over the scores of i2t, for S and what goes with it.

    `order` has seen the first pass; `samples` are how many evenly spaced scores of each
    distribution are kept.
    """

    def __init__(
        self,
        overview: Overview,
        order: UnmatchedOrder,
        pairing: Pairing,
        drawn_RG: np.ndarray,
        bins: Sequence[int],
        samples: int,
    ) -> None:
        self.overview, self.order, self.dtype = overview, order, overview.dtype("i2t")
        self.matched = overview.matched["i2t"].astype(self.dtype)
        low, high = distribution_overlap.widened(*overview.ranges["i2t"])
        self.range = distribution_overlap.range_of_bins(low, high)
        self.edges = {
            count: distribution_overlap.edges_of(self.dtype, self.range, count) for count in bins
        }
        edges = self.edges[distribution_overlap.BINS]
        groups = pairing.group_of_image, pairing.group_of_caption
        self.bootstrap = distribution_overlap.Bootstrap(
            *groups, drawn_RG, edges, overview.images, self.matched
        )
        self.places = _evenly(len(self.matched), samples)
        unmatched = pairing.size - len(self.matched)
        points = np.concatenate(list(self.edges.values()))
        order.ask(_evenly(unmatched, samples), points, overview.matched["i2t"])

    def add(self, tile: Tile, pairs: tuple[np.ndarray, ...]) -> None:
        """A tile; row and column of its matched pairs."""
        scores = tile.of("i2t")
        self.order.keep(scores, pairs)
        wide = scores.astype(self.dtype, copy=False)
        self.bootstrap.add(tile.rows, tile.columns, wide, pairs)

    def finish(self) -> None:
        """After the pass."""
        self.order.finish()
        ends = np.cumsum([len(edges) for edges in self.edges.values()])[:-1]
        below = np.split(self.order.counts_below, ends)
        self.unmatched_shares = {}
        for bins, counts in zip(self.edges, below, strict=True):
            counts[0], counts[-1] = 0, self.order.end[-1]  # rounding beyond a cosine's range
            self.unmatched_shares[bins] = np.diff(counts) / self.order.end[-1]

    @property
    def summary(self) -> ScoreSummary:
        overlaps = {
            bins: float(np.minimum(self._matched_shares(bins), self.unmatched_shares[bins]).sum())
            for bins in self.edges
        }
        return ScoreSummary(
            range=self.range,
            overlaps=overlaps,
            one_minus_ks=self.order.one_minus_ks,
            mean_matched=float(np.mean(self.matched, dtype=np.float64)),
            mean_unmatched=self.overview.mean_unmatched,
        )

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Histograms over S's bins, and evenly spaced samples."""
        bins = distribution_overlap.BINS
        return {
            "edges": np.linspace(*self.range, bins + 1),
            "matched": self._matched_shares(bins),
            "matched_sample": np.sort(self.matched)[self.places],
            "unmatched": self.unmatched_shares[bins],
            "unmatched_sample": self.order.ranked.astype(self.dtype),
        }

    def _matched_shares(self, bins: int) -> np.ndarray:
        return distribution_overlap.shares(self.matched, bins, *self.range)


def _evenly(count: int, wanted: int) -> np.ndarray:
    return np.linspace(0, count - 1, wanted).astype(int)

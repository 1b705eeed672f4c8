"""A board by several layers of relevance: what counts as right beside a caption's own image.

Where people judged only some pairs, an R@K has bounds: an answer that nobody judged counts as
wrong, or as right. Between them, unjudged answers are left out: of a ranking shortened to what was
judged, the first answer tells R@1. All this follows from the first answers that a cell keeps; in
these, too few are judged for longer rankings without the others.

A verdict is that of the claim on the queries of the layer and in its directions; beside it stands
the verdict by `own` on the same queries, so that nothing but the truth differs. Two such verdicts
may differ by chance, as the spread of trainings is estimated anew. So a verdict counts as changed
if, besides, the layer moves the difference of the claim by more than chance: the same queries and
trainings count under both, so that this is known far better than either difference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

from benchmark.boards import claims, comparisons
from benchmark.boards.boards import Board, Row
from benchmark.boards.claims import OfLayers, Verdict
from benchmark.papers.printed_tables import quantity, sides
from benchmark.scoring.metrics import METRICS, query_terms
from benchmark.stats import comparisons as stats
from benchmark.stats.verdicts import Pair


class Bounds(NamedTuple):
    """An R@K in percent, mean over the seeds, by what becomes of unjudged answers."""

    wrong: float
    left_out: float | None  # of R@1, over the queries with a judged one among the first answers
    right: float


class Judged(NamedTuple):
    """A claim by `own` and by a layer, on the queries of the layer."""

    own: Verdict
    here: Verdict
    steps: list[tuple[float, float]]  # of each part: what the layer adds to its difference, 95%

    @property
    def is_changed(self) -> bool:
        """Whether the verdict is another one, and the layer moves a part by more than chance."""
        is_moved = any(low > 0 or high < 0 for low, high in self.steps)
        return self.own.conclusion != self.here.conclusion and is_moved


class Change(NamedTuple):
    """Two rows that stand in another order."""

    first: Row
    second: Row
    own: float  # first minus second, in points of R@1; by `own` above or equal to zero
    layer: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """A layer of relevance on a board."""

    name: str
    board: Board  # by `own`, with all its queries

    @property
    def rule(self) -> str:
        return self.board.card["layers"][self.name]["rule"]

    @property
    def is_partial(self) -> bool:
        return self.board.card["layers"][self.name]["partial"]

    @property
    def ways(self) -> list[str]:
        return list(self.board.layers[self.name])

    @cached_property
    def here(self) -> Board:
        """The board by the layer."""
        return self.board.under(self.name)

    @cached_property
    def own(self) -> Board:
        """The board by `own`, with the queries of the layer."""
        return self.board.under(self.name, is_own=True)

    @cached_property
    def judged(self) -> dict[tuple[str, str], list[np.ndarray]]:
        """Of each row of `here` by preset and direction what was said of its first answers, one
        array (Q, K) a seed: Layer.judged."""
        return {
            (row.preset, way): [layer.judged(outcome.retrieved[way]) for outcome in row.played]
            for row in self.here.rows
            for way, layer in self.board.layers[self.name].items()
        }

    def facts(self, way: str) -> dict[str, float]:
        """Numbers of queries and pairs of a direction, and the share of the rows' first answers
        that were judged, in percent."""
        layer = self.board.layers[self.name][way]
        of_rows = [of for (_, direction), of in self.judged.items() if direction == way]
        judged = [float((of[:, 0] != 0).mean()) for of_row in of_rows for of in of_row]
        return {
            "queries": len(layer.queries),
            "right": len(layer.right),
            "judged": len(layer.right) + len(layer.wrong),
            "first answers judged": 100 * fmean(judged),
        }

    def bounds(self, row: Row, way: str, k: int) -> Bounds:
        """Of a row of `here`."""
        ends = []
        for judged_QK in self.judged[row.preset, way]:
            of_first = judged_QK[np.arange(len(judged_QK)), (judged_QK != 0).argmax(1)]
            left = (of_first == 1).sum() / max(1, (of_first != 0).sum())
            wrong, right = ((judged_QK[:, :k] >= least).any(1).mean() for least in (1, 0))
            ends.append((wrong, left, right))
        wrong, left, right = (100 * float(np.mean(of)) for of in zip(*ends, strict=True))
        return Bounds(wrong, left if k == 1 else None, right)

    def changes(self, way: str) -> list[Change]:
        """The pairs of rows that `own` and the layer put in another order by R@1, both on the
        queries of the layer; those that differ most by the layer first."""
        values = {
            row.preset: (self.own.row(row.preset).mean(f"{way}_r1"), row.mean(f"{way}_r1"))
            for row in self.here.rows
        }
        found = []
        for pair in combinations(self.here.rows, 2):
            first, second = sorted(pair, key=lambda row: -values[row.preset][0])
            own, layer = (
                a - b for a, b in zip(values[first.preset], values[second.preset], strict=True)
            )
            if own * layer < 0:
                found.append(Change(first, second, own, layer))
        return sorted(found, key=lambda change: change.layer)

    def agreement(self, way: str) -> float:
        """Kendall's tau-b of the rows by R@1."""
        pairs = [(self.own.row(row.preset), row) for row in self.here.rows]
        values = [[row.mean(f"{way}_r1") for row in both] for both in pairs]
        return float(kendalltau(*zip(*values, strict=True)).statistic)

    def other_cuts(self, way: str) -> list[tuple[float, int, Board]]:
        """Other least scores of a right pair, with the number of right pairs and the board."""
        cuts = self.board.card["layers"][self.name]["cuts"]
        boards = [self.board.under(self.name, cut=cut) for cut in cuts]
        return [(cut, len(of.asked[way].right), of) for cut, of in zip(cuts, boards, strict=True)]

    @cached_property
    def judged_claims(self) -> list[Judged]:
        """The claims that count and are of means over queries, all of whose parts the layer tells:
        by `own` on its queries, and by the layer."""
        found = []
        for own, here in zip(claims.verdicts(self.own), claims.verdicts(self.here), strict=True):
            metrics = [part.metric for part in own.claim.parts]
            is_told = own.is_counted and len(own.pairs) == len(here.pairs) == len(metrics)
            if is_told and all(map(_is_of_queries, metrics)):
                found.append(Judged(own, here, [self._step(pair) for pair in here.pairs]))
        return found

    def _step(self, pair: Pair) -> tuple[float, float]:
        """95% interval of what the layer adds to the difference of a part."""
        metric, compared = pair.comparison.metric, {}
        for board in (self.own, self.here):
            for row in board.rows:
                sample = comparisons.sample_of(board, row, metric)
                compared.setdefault(row.preset, []).append(sample)
        samples = {
            preset: stats.differences(here, own)
            for preset, (own, here) in compared.items()
            if own.values and here.values
        }
        trained = {row.preset for row in self.here.rows if not row.declared.fuse}
        names = [name for name in (pair.comparison.first, pair.comparison.second) if name]
        spread, less = stats.spread(samples, trained), quantity(metric).less_is_better
        of = stats.compare(names, [samples[n] for n in names], spread, less_is_better=less)
        return of.interval or (of.difference, of.difference)  # nothing varies


def _is_of_queries(metric: str) -> bool:
    return all(s in METRICS and query_terms(s, ("i2t_r1", "t2i_r1")) for s in sides(metric))


def truths(board: Board) -> list[Truth]:
    """The layers beside `own` that rows of a board have results for; none of most datasets."""
    of = [Truth(name=name, board=board) for name in board.layers]
    return [truth for truth in of if truth.here.rows]


def of_claims(truths: Iterable[Truth]) -> OfLayers:
    """The verdicts of all layers of a board, by claim."""
    found: dict[tuple[str, str], dict] = {}
    for truth in truths:
        for of in truth.judged_claims:
            conclusions = of.own.conclusion, of.here.conclusion, of.is_changed
            found.setdefault((of.own.paper, of.own.claim.id), {})[truth.name] = conclusions
    return found

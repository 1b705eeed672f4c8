"""A board by several layers of relevance: what counts as right beside a caption's own
image.

Where people judged only some pairs, an R@K has bounds: an answer that nobody judged
counts as wrong, or as right. Between them, unjudged answers are left out: of a ranking
shortened to what was judged, the first answer tells R@1. All this follows from the
first answers that a cell keeps; in these, too few are judged for longer rankings
without the others.

A verdict is that of the claim on the queries of the layer and in its directions; beside
it stands the verdict by `own` on the same queries, so that nothing but the layer
differs. Two such verdicts may differ by chance, as the spread of trainings is estimated
anew. So a verdict counts as changed if, besides, the layer moves the difference of the
claim by more than chance: the same queries and trainings count under both, so that this
is known far better than either difference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np

from benchmark.boards import claims, comparisons
from benchmark.boards.boards import Board, Row
from benchmark.boards.claims import ClaimTest
from benchmark.papers.printed_tables import Claim, quantity, sides
from benchmark.scoring.metrics import METRICS, query_terms
from benchmark.scoring.relevance import LayerPairs, layers_of
from benchmark.stats import comparisons as stats
from benchmark.stats.verdicts import Verdict

R1 = ("i2t_r1", "t2i_r1")  # what a record by a layer has, of one direction or both


class Judged(NamedTuple):
    """A claim by `own` and by a layer, on the queries of the layer."""

    own: ClaimTest
    here: ClaimTest
    # of each part: what the layer adds to its difference: its interval
    steps: list[tuple[float, float]]

    @property
    def is_changed(self) -> bool:
        """Whether the verdict is another one, and the layer moves a part by more than
        chance."""
        is_moved = any(low > 0 or high < 0 for low, high in self.steps)
        return self.own.conclusion != self.here.conclusion and is_moved


@dataclass(frozen=True)
class Bounds:
    """R@K in percent, mean over the seeds, where people judged only some pairs."""

    wrong: float  # with unjudged answers counted as wrong
    # R@1 with them left out, over the queries with a judged one among the first
    # answers; None of other K, and where no query has one
    left_out: float | None
    right: float  # with them counted as right


@dataclass(frozen=True)
class RowRecall:
    """R@1 of a row in percent, on the queries of a layer."""

    row: Row
    own: float
    here: float  # by the layer


@dataclass(frozen=True)
class OrderChange:
    """Two rows that `own` and a layer put in another order by R@1, with the first minus
    the second."""

    first: Row
    second: Row
    own: float  # zero or more
    here: float


@dataclass(frozen=True)
class Cut:
    """A layer with another least score of a right pair."""

    least: float
    right_pairs: int
    board: Board


@dataclass(frozen=True, eq=False)
class BoardLayer:
    """A layer of relevance on a board."""

    name: str
    board: Board  # by `own`, with all its queries

    @property
    def card(self) -> dict:
        """Its rule, whether people judged only some pairs (partial), and other cuts."""
        return self.board.card["layers"][self.name]

    @property
    def pairs(self) -> Mapping[str, LayerPairs]:
        """By direction."""
        return self.board.layers[self.name]

    @cached_property
    def here(self) -> Board:
        """The board by the layer."""
        return self.board.under(self.name)

    @cached_property
    def own(self) -> Board:
        """The board by `own`, with the queries of the layer."""
        return self.board.judged(self.pairs, lambda outcome, pairs: outcome.on(pairs))

    def judged(self, row: Row, way: str) -> list[np.ndarray]:
        """What was said of the first answers of a row, (Q, K) a seed:
        LayerPairs.judged."""
        pairs = self.pairs[way]
        return [pairs.judged(outcome.retrieved[way]) for outcome in row.played]

    def share_judged(self, way: str) -> float:
        """How many of the first answers of all rows were judged, in percent."""
        shares = []
        for row in self.here.rows:
            for judged_QK in self.judged(row, way):
                shares.append(float((judged_QK[:, 0] != 0).mean()))
        return 100 * fmean(shares)

    def bounds(self, row: Row, way: str, k: int) -> Bounds:
        """R@K of a row of `here`."""
        wrong, left_out, right = [], [], []  # of each seed
        for judged_QK in self.judged(row, way):
            first_judged = (judged_QK != 0).argmax(1)
            answer_Q = judged_QK[np.arange(len(judged_QK)), first_judged]
            judged_Q = answer_Q[answer_Q != 0]
            if k == 1 and len(judged_Q):
                left_out.append((judged_Q == 1).mean())
            wrong.append((judged_QK[:, :k] >= 1).any(1).mean())
            right.append((judged_QK[:, :k] >= 0).any(1).mean())
        return Bounds(
            wrong=100 * float(np.mean(wrong)),
            left_out=100 * float(np.mean(left_out)) if left_out else None,
            right=100 * float(np.mean(right)),
        )

    def recalls(self, way: str) -> list[RowRecall]:
        """R@1 of each row."""
        metric = f"{way}_r1"
        own = {row.preset: row.mean(metric) for row in self.own.rows}
        rows = self.here.rows
        return [RowRecall(row, own[row.preset], row.mean(metric)) for row in rows]

    def changes(self, way: str) -> list[OrderChange]:
        """The pairs of rows in another order, those that differ most by the layer
        first."""
        changes = []
        for one, other in combinations(self.recalls(way), 2):
            first, second = (other, one) if other.own > one.own else (one, other)
            own, here = first.own - second.own, first.here - second.here
            if own * here < 0:
                changes.append(OrderChange(first.row, second.row, own, here))
        return sorted(changes, key=lambda change: change.here)

    def agreement(self, way: str) -> float:
        """Kendall's tau-b of the rows by R@1."""
        from scipy.stats import kendalltau  # takes a second to import

        recalls = self.recalls(way)
        own = [recall.own for recall in recalls]
        here = [recall.here for recall in recalls]
        return float(kendalltau(own, here).statistic)

    def other_cuts(self, way: str) -> list[Cut]:
        """The layer by the other least scores of its card."""
        data = self.board.data
        split = data.split("test")
        cuts = []
        for least in self.card["cuts"]:
            pairs = layers_of(data, split, least)[self.name]
            board = self.board.judged(pairs, lambda outcome, pairs: outcome.by(pairs))
            cuts.append(Cut(least, len(pairs[way].right), board))
        return cuts

    @cached_property
    def judged_claims(self) -> dict[tuple[str, str], Judged]:
        """The claims that count and are of means over queries, all of whose parts the
        layer tells, by paper and id: by `own` on its queries, and by the layer."""
        by_own, by_layer = claims.claim_tests(self.own), claims.claim_tests(self.here)
        judged = {}
        for own, here in zip(by_own, by_layer, strict=True):
            parts = len(own.claim.parts)
            is_whole = len(own.verdicts) == len(here.verdicts) == parts
            if own.is_counted and is_whole and _is_of_queries(own.claim):
                steps = [self._step(verdict) for verdict in here.verdicts]
                judged[own.paper, own.claim.id] = Judged(own, here, steps)
        return judged

    def _step(self, pair: Verdict) -> tuple[float, float]:
        """Interval of what the layer adds to the difference of a part."""
        metric, samples = pair.comparison.metric, {}
        for row in self.here.rows:
            own = comparisons.sample_of(self.own, self.own.row(row.preset), metric)
            here = comparisons.sample_of(self.here, row, metric)
            if own.values and here.values:
                samples[row.preset] = stats.differences(here, own)
        names = list(filter(None, (pair.comparison.first, pair.comparison.second)))
        trained = {row.preset for row in self.here.rows if not row.declared.fuse}
        added = stats.compare(
            names,
            [samples[name] for name in names],
            stats.spread(samples, trained),
            less_is_better=quantity(metric).less_is_better,
        )
        return added.interval or (added.difference, added.difference)  # nothing varies


def _is_of_queries(claim: Claim) -> bool:
    """Whether all that a claim compares are means over queries that a layer tells."""
    names = chain.from_iterable(sides(part.metric) for part in claim.parts)
    return all(name in METRICS and query_terms(name, R1) for name in names)


@lru_cache(maxsize=64)
def board_layers(board: Board) -> list[BoardLayer]:
    """The layers beside `own` that rows of a board have results for; none of most
    datasets."""
    layers = [BoardLayer(name, board) for name in board.layers]
    return [layer for layer in layers if layer.here.rows]

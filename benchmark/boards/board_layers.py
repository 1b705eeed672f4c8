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
from itertools import combinations
from operator import itemgetter
from statistics import fmean
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

from benchmark.boards import claims, comparisons
from benchmark.boards.boards import Board, Row
from benchmark.boards.claims import ClaimTest
from benchmark.data import prepared_tables
from benchmark.papers.printed_tables import quantity, sides
from benchmark.scoring.metrics import METRICS, query_terms
from benchmark.scoring.relevance import LayerPairs, layers_of
from benchmark.stats import comparisons as stats
from benchmark.stats.verdicts import Verdict

R1 = ("i2t_r1", "t2i_r1")  # what a record by a layer has, of one direction or both


class Judged(NamedTuple):
    """A claim by `own` and by a layer, on the queries of the layer."""

    own: ClaimTest
    here: ClaimTest
    # of each part: what the layer adds to its difference, 95%
    steps: list[tuple[float, float]]

    @property
    def is_changed(self) -> bool:
        """Whether the verdict is another one, and the layer moves a part by more than
        chance."""
        is_moved = any(low > 0 or high < 0 for low, high in self.steps)
        return self.own.conclusion != self.here.conclusion and is_moved


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
        return [
            self.pairs[way].judged(outcome.retrieved[way]) for outcome in row.played
        ]

    def share_judged(self, way: str) -> float:
        """How many of the first answers of all rows were judged, in percent."""
        every = [judged for row in self.here.rows for judged in self.judged(row, way)]
        return 100 * fmean(float((judged_QK[:, 0] != 0).mean()) for judged_QK in every)

    def bounds(self, row: Row, way: str, k: int) -> tuple[float, float | None, float]:
        """R@K of a row of `here` in percent, mean over the seeds: with unjudged answers
        counted as wrong; R@1 with them left out, over the queries with a judged one
        among the first answers; with them counted as right."""
        ends = []
        for judged_QK in self.judged(row, way):
            of_first = judged_QK[np.arange(len(judged_QK)), (judged_QK != 0).argmax(1)]
            left = (of_first == 1).sum() / max(1, (of_first != 0).sum())
            wrong, right = (
                (judged_QK[:, :k] >= least).any(1).mean() for least in (1, 0)
            )
            ends.append((wrong, left, right))
        wrong, left, right = (
            100 * float(np.mean(of)) for of in zip(*ends, strict=True)
        )
        return wrong, left if k == 1 else None, right

    def recalls(self, way: str) -> list[tuple[Row, float, float]]:
        """R@1 of each row by `own` on the queries of the layer, and by the layer."""
        metric = f"{way}_r1"
        rows = self.here.rows
        return [
            (row, self.own.row(row.preset).mean(metric), row.mean(metric))
            for row in rows
        ]

    def changes(self, way: str) -> list[tuple[Row, Row, float, float]]:
        """The pairs of rows that `own` and the layer put in another order by R@1, with
        the first minus the second by `own`, zero or more, and by the layer; by the
        latter."""
        found = []
        for pair in combinations(self.recalls(way), 2):
            (first, *ahead), (second, *behind) = sorted(pair, key=lambda of: -of[1])
            own, layer = (a - b for a, b in zip(ahead, behind, strict=True))
            if own * layer < 0:
                found.append((first, second, own, layer))
        return sorted(found, key=itemgetter(3))

    def agreement(self, way: str) -> float:
        """Kendall's tau-b of the rows by R@1."""
        _, own, here = zip(*self.recalls(way), strict=True)
        return float(kendalltau(own, here).statistic)

    def other_cuts(self, way: str) -> list[tuple[float, int, Board]]:
        """Other least scores of a right pair, with the number of right pairs and the
        board."""
        found = []
        for cut in self.card["cuts"]:
            pairs = layers_of(prepared_tables.read(self.board.dataset), cut)[self.name]
            of_cut = self.board.judged(pairs, lambda outcome, pairs: outcome.by(pairs))
            found.append((cut, len(pairs[way].right), of_cut))
        return found

    @cached_property
    def judged_claims(self) -> dict[tuple[str, str], Judged]:
        """The claims that count and are of means over queries, all of whose parts the
        layer tells, by paper and id: by `own` on its queries, and by the layer."""
        found = {}
        for own, here in zip(
            claims.claim_tests(self.own), claims.claim_tests(self.here), strict=True
        ):
            metrics = [part.metric for part in own.claim.parts]
            terms = [
                s in METRICS and query_terms(s, R1) for of in metrics for s in sides(of)
            ]
            is_told = own.is_counted and len(own.verdicts) == len(here.verdicts) == len(
                metrics
            )
            if is_told and all(terms):
                steps = [self._step(verdict) for verdict in here.verdicts]
                found[own.paper, own.claim.id] = Judged(own, here, steps)
        return found

    def _step(self, verdict: Verdict) -> tuple[float, float]:
        """95% interval of what the layer adds to the difference of a part."""
        metric, samples = verdict.comparison.metric, {}
        for row in self.here.rows:
            both = ((self.own, self.own.row(row.preset)), (self.here, row))
            own, here = (comparisons.sample_of(*of, metric) for of in both)
            if own.values and here.values:
                samples[row.preset] = stats.differences(here, own)
        names = [
            name
            for name in (verdict.comparison.first, verdict.comparison.second)
            if name
        ]
        trained = {row.preset for row in self.here.rows if not row.declared.fuse}
        spread, less = stats.spread(samples, trained), quantity(metric).less_is_better
        of = stats.compare(
            names, [samples[n] for n in names], spread, less_is_better=less
        )
        return of.interval or (of.difference, of.difference)  # nothing varies


@lru_cache(maxsize=64)
def board_layers(board: Board) -> list[BoardLayer]:
    """The layers beside `own` that rows of a board have results for; none of most
    datasets."""
    return [of for name in board.layers if (of := BoardLayer(name, board)).here.rows]

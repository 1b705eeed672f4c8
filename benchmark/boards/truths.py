"""A board by several layers of relevance: what counts as right beside a caption's own image.

Where people judged only some pairs, an R@K has bounds: an answer that nobody judged counts as
wrong, or as right. Between them, unjudged answers are left out: of a ranking shortened to what was
judged, the first answer tells R@1. All this follows from the first answers that a cell keeps; in
these, too few are judged for longer rankings without the others.

A verdict is that of the claim on the queries of the layer and in its directions; beside it stands
the verdict by `own` on the same queries, so that nothing but the truth differs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmark.boards import claims
from benchmark.boards.boards import Board, Row
from benchmark.boards.claims import OfLayers, Verdict
from benchmark.data import prepared_tables
from benchmark.scoring.relevance import layers_of


class Bounds(NamedTuple):
    """An R@K in percent, mean over the seeds, by what becomes of unjudged answers."""

    wrong: float
    left_out: float | None  # of R@1, over the queries with a judged one among the first answers
    right: float


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
        layer = self.board.layers[self.name]
        return self.board.under(self.name, {way: of.alone for way, of in layer.items()})

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
            "own": len(layer.own),
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
            if np.sign(own) != np.sign(layer) and own * layer < 0:
                found.append(Change(first, second, own, layer))
        return sorted(found, key=lambda change: change.layer)

    def agreement(self, way: str) -> float:
        """Kendall's tau-b of the rows by R@1."""
        rows = [(self.own.row(row.preset), row) for row in self.here.rows]
        return float(
            stats.kendalltau(
                *zip(*[[of.mean(f"{way}_r1") for of in both] for both in rows], strict=True)
            ).statistic
        )

    def other_cuts(self, way: str) -> list[tuple[float, int, "Board"]]:
        """Other least scores of a right pair, with the number of right pairs and the board."""
        data, found = prepared_tables.read(self.board.dataset), []
        for cut in self.board.card["layers"][self.name]["cuts"]:
            layer = layers_of(data, cut)[self.name]
            found.append((cut, len(layer[way].right), self.board.under(self.name, layer)))
        return found

    @cached_property
    def verdicts(self) -> list[tuple[Verdict, Verdict]]:
        """The claims that count and were run in directions of the layer: by `own` on its queries,
        and by the layer."""
        both = zip(claims.verdicts(self.own), claims.verdicts(self.here), strict=True)
        return [(own, here) for own, here in both if own.is_counted and own.pairs and here.pairs]

    @property
    def changed(self) -> list[tuple[Verdict, Verdict]]:
        """Those whose conclusion the layer changes."""
        return [(own, here) for own, here in self.verdicts if own.conclusion != here.conclusion]


def truths(board: Board) -> list[Truth]:
    """The layers beside `own` that rows of a board have results for; none of most datasets."""
    of = [Truth(name=name, board=board) for name in board.layers]
    return [truth for truth in of if truth.here.rows]


def of_claims(truths: Iterable[Truth]) -> OfLayers:
    """The verdicts of all layers of a board, by claim."""
    found: dict[tuple[str, str], dict] = {}
    for truth in truths:
        for own, here in truth.verdicts:
            of_claim = found.setdefault((own.paper, own.claim.id), {})
            of_claim[truth.name] = own.conclusion, here.conclusion
    return found

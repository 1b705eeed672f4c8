"""Corrections of scores for hubs, items that score high with every query. Knows no torch.

s(q, g) is the score of query q with gallery item g, and s(b, g) that of query b of a bank:

nnn               s(q, g) - alpha * mean of the k largest s(b, g). Chowdhury et al., Nearest
                  Neighbor Normalization Improves Multimodal Retrieval, EMNLP 2024
inverted_softmax  exp(beta s(q, g)) / sum_b exp(beta s(b, g)). Smith et al., Offline bilingual word
                  vectors, orthogonal transformations and the inverted softmax, ICLR 2017
qb_norm           the same where argmax_g s(q, g) is in the activation set, the items that are the
                  best of some b; elsewhere s(q, g). Bogolin et al., Cross Modal Retrieval with
                  Querybank Normalisation, CVPR 2022: dynamic inverted softmax, its k = 1
dual_softmax      s(q, g) exp(beta s(q, g)) / sum_b exp(beta s(b, g)), where the bank are the test
                  queries themselves. Cheng et al., Improving Video-Text Retrieval by Multi-Stream
                  Corpus Alignment and Dual Softmax Loss, 2021; in its code beta is 1 / temp

An inverted softmax is written as its logarithm over beta: the order of a query's items is the same.
The gallery is the whole split, within folds too. G = gallery, Q = queries.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmark.scoring.evaluation import overview, rank_counts
from benchmark.scoring.metrics import retrieval_metrics
from benchmark.scoring.relevance import Relevance, Tile, check_finite, of_direction

BETAS = [{"beta": beta} for beta in (1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)]  # QB-Norm's: 20
GRIDS = {  # correction -> what is tried on validation
    # Some of the paper's, alpha from 0.25 to 1.5 and k from 1 to 512.
    "nnn": [{"k": k, "alpha": a} for k in (1, 4, 16, 64, 256) for a in (0.25, 0.5, 0.75, 1.0, 1.5)],
    "inverted_softmax": BETAS,
    "qb_norm": BETAS,
    "dual_softmax": BETAS,
}
LEAST = float(np.finfo(np.float32).min)


class Asked(NamedTuple):
    """The scores of `queries` queries of a split or a bank with `items` items, in a direction."""

    way: str
    queries: int
    items: int
    tiles: Iterable[Tile]


class Hubs:
    """What queries tell of the items of a gallery, in one pass over their scores. Raises
    RefusedError for scores that are not finite."""

    def __init__(self, asked: Asked, tried: Sequence[Mapping[str, float]]) -> None:
        self.betas = sorted({each["beta"] for each in tried if "beta" in each})
        depth = min(max(each.get("k", 1) for each in tried), asked.queries)
        self.largest_GK = np.full((asked.items, depth), LEAST)  # scores, the largest one last
        self.sums = np.zeros((len(self.betas), asked.items))  # of exp(beta (s - the largest s))
        self.best_Q, self.item_Q = np.full(asked.queries, -np.inf), np.full(asked.queries, -1)
        for tile in asked.tiles:
            scores = tile.of("i2t").astype(np.float64)
            check_finite(scores)
            self._add(*of_direction(asked.way, tile, scores))

    def _add(self, queries: np.ndarray, items: np.ndarray, scores_QG: np.ndarray) -> None:
        before = self.largest_GK[items].T
        largest = np.sort(np.vstack([before, scores_QG]), axis=0)[-len(before) :]
        for beta, sum_G in zip(self.betas, self.sums, strict=True):
            sum_G[items] *= np.exp(beta * (before[-1] - largest[-1]))
            sum_G[items] += np.exp(beta * (scores_QG - largest[-1])).sum(0)
        self.largest_GK[items] = largest.T
        best, value_Q = items[scores_QG.argmax(1)], scores_QG.max(1)
        is_better = value_Q > self.best_Q[queries]
        self.best_Q[queries[is_better]] = value_Q[is_better]
        self.item_Q[queries[is_better]] = best[is_better]

    def bias(self, items: np.ndarray, given: Mapping[str, float]) -> np.ndarray:
        """What is subtracted from the scores of some items, (G,)."""
        if "k" in given:
            return given["alpha"] * self.largest_GK[items, -given["k"] :].mean(1)
        sum_G = self.sums[self.betas.index(given["beta"]), items]
        return self.largest_GK[items, -1] + np.log(sum_G) / given["beta"]


def correction(
    how: str, split: Asked, bank: Asked, tried: Sequence[Mapping[str, float]]
) -> Callable[[Mapping[str, float], Tile], np.ndarray]:
    """What corrects the scores of a tile of the split, (r, c) float64, with some of the parameters
    of `tried`. The bank of a dual softmax is the split."""
    hubs, own = Hubs(bank, tried), Hubs(split, tried) if how == "qb_norm" else None

    def corrected(given: Mapping[str, float], tile: Tile) -> np.ndarray:
        scores = tile.of("i2t").astype(np.float64)
        queries, items, scores_QG = of_direction(split.way, tile, scores)
        bias_G = hubs.bias(items, given)
        if how == "dual_softmax":
            found = scores_QG * np.exp(given["beta"] * (scores_QG - bias_G))
        elif how == "qb_norm":
            is_active_Q = np.isin(own.item_Q[queries], hubs.item_Q)
            found = scores_QG - is_active_Q[:, None] * bias_G
        else:
            found = scores_QG - bias_G
        return found if split.way == "i2t" else found.T

    return corrected


@dataclass(frozen=True)
class Corrected:
    """Tiles with corrected scores, by names that begin with their direction, and with i2t as it is
    where it is not among them."""

    tiles: Iterable[Tile]
    by: Mapping[str, Callable[[Tile], np.ndarray]]

    def __iter__(self) -> Iterator[Tile]:
        for tile in self.tiles:
            scores = {name: corrected(tile) for name, corrected in self.by.items()}
            yield Tile(tile.rows, tile.columns, {"i2t": tile.of("i2t")} | scores)


def chosen(how: str, split: Asked, bank: Asked, relevance: Relevance) -> dict[str, float]:
    """Of GRIDS the parameters with the highest rsum of a direction of the validation split, the
    first of equals."""
    grid = {f"{split.way} {number}": given for number, given in enumerate(GRIDS[how])}
    of = correction(how, split, bank, GRIDS[how])
    tiles = Corrected(split.tiles, {name: partial(of, given) for name, given in grid.items()})
    seen = overview(tiles, relevance, grid)
    counts = {name: rank_counts(name, seen, relevance) for name in grid}
    for tile in tiles:
        for name, count in counts.items():
            queries, _, scores_QG = of_direction(name, tile, tile.of(name))
            count.add(queries, scores_QG)
    rsum = {name: retrieval_metrics({split.way: of.ranks})["rsum"] for name, of in counts.items()}
    return grid[max(rsum, key=rsum.__getitem__)]

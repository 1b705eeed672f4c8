"""Corrections of scores for hubs, items that score high with every query. Knows no
torch.

s(q, g) is the score of query q with item g of the gallery, s(b, g) that of query b of a
bank.

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

An inverted softmax is written as its logarithm over beta: the order of a query's items
is the same. The gallery is the whole split, within folds too. G = gallery, Q = queries.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from benchmark.scoring.metrics import retrieval_metrics
from benchmark.scoring.ranking import (
    BestItems,
    LayerRanks,
    Tile,
    check_finite,
    of_direction,
)
from benchmark.scoring.relevance import Relevance

BANK = 2000  # images, and captions, of the training split, drawn by the seed
# QB-Norm's: 20
BETAS = [{"beta": beta} for beta in (1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)]
# correction -> what is tried on validation; of nnn some of what its paper tries
GRIDS = {
    "nnn": [
        {"k": k, "alpha": a}
        for k in (1, 4, 16, 64, 256)
        for a in (0.25, 0.5, 0.75, 1.0, 1.5)
    ],
    **dict.fromkeys(("inverted_softmax", "qb_norm", "dual_softmax"), BETAS),
}
Given = Mapping[str, float]  # k and alpha, or beta


class Asked(NamedTuple):
    """Scores of so many queries, of a split or of a bank, with the items of a split."""

    way: str
    queries: int
    items: int
    tiles: Iterable[Tile]


class Hubs:
    """What queries tell of the items of a gallery, in one pass over their scores: the
    largest ones of each item, log sum exp(beta s), and the best item of each query.
    Raises RefusedError for scores that are not finite."""

    def __init__(self, asked: Asked, tried: Iterable[Given]) -> None:
        way, queries, items, tiles = asked
        depth = min(max(each.get("k", 1) for each in tried), queries)
        self.nearest = BestItems(np.zeros(items), np.ones(queries), depth)
        self.best = BestItems(np.zeros(queries), np.ones(items), 1)
        self.logs = {
            each["beta"]: np.full(items, -np.inf) for each in tried if "beta" in each
        }
        for tile in tiles:
            scores = tile.of("i2t").astype(np.float64)
            check_finite(scores)
            rows, columns, scores_QG = of_direction(way, tile, scores)
            self.nearest.add(columns, rows, scores_QG.T)
            self.best.add(rows, columns, scores_QG)
            for beta, log_G in self.logs.items():
                log_G[columns] = np.logaddexp(
                    log_G[columns], logsumexp(beta * scores_QG, axis=0)
                )

    def bias(self, items: np.ndarray, given: Given) -> np.ndarray:
        """What is subtracted from the scores of some items, (G,)."""
        if "beta" in given:
            return self.logs[given["beta"]][items] / given["beta"]
        return given["alpha"] * self.nearest.scores[items, : given["k"]].mean(1)


class Corrected:
    """Tiles of corrected scores, float64, under the names of `parameters`, which begin
    with their direction, and of i2t as it is if that is none of them. `asked` has the
    split and the bank of a direction; the bank of a dual softmax is the split."""

    def __init__(
        self,
        how: str,
        asked: Mapping[str, tuple[Asked, Asked]],
        parameters: Mapping[str, Given],
    ) -> None:
        self.how, self.parameters, tried = how, parameters, list(parameters.values())
        sizes = {way: bank.queries for way, (_, bank) in asked.items()}
        self.facts = {"how": how, "bank": sizes, **parameters}  # for records
        self.tiles = next(iter(asked.values()))[0].tiles
        self.hubs = {way: Hubs(bank, tried) for way, (_, bank) in asked.items()}
        self.own = {
            w: Hubs(split, tried) for w, (split, _) in asked.items() if how == "qb_norm"
        }

    def __iter__(self) -> Iterator[Tile]:
        for tile in self.tiles:
            scores = {name: self._scores(name, tile) for name in self.parameters}
            yield Tile(tile.rows, tile.columns, {"i2t": tile.of("i2t")} | scores)

    def _scores(self, name: str, tile: Tile) -> np.ndarray:
        scores, way, given = (
            tile.of("i2t").astype(np.float64),
            name[:3],
            self.parameters[name],
        )
        queries, items, scores_QG = of_direction(way, tile, scores)
        found = scores_QG - self.hubs[way].bias(items, given)
        if self.how == "dual_softmax":
            found = scores_QG * np.exp(given["beta"] * found)
        if self.how == "qb_norm":
            is_active_Q = np.isin(
                self.own[way].best.items[queries], self.hubs[way].best.items
            )
            found = np.where(is_active_Q, found, scores_QG)
        return found if way == "i2t" else found.T


def chosen(how: str, split: Asked, bank: Asked, relevance: Relevance) -> Given:
    """Of GRIDS the parameters with the highest rsum of a direction of the validation
    split, the first of equals."""
    grid = {f"{split.way} {number}": given for number, given in enumerate(GRIDS[how])}
    tiles = Corrected(how, {split.way: (split, bank)}, grid)
    counts = {name: LayerRanks(name, relevance.own(split.way)) for name in grid}
    for tile in tiles:
        for name, count in counts.items():
            check_finite(tile.of(name))
            count.see(tile)
    for tile in tiles:
        for count in counts.values():
            count.add(tile)
    rsum = {
        name: retrieval_metrics({split.way: of.ranks})["rsum"]
        for name, of in counts.items()
    }
    return grid[max(rsum, key=rsum.__getitem__)]

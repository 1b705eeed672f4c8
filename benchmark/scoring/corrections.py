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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import logsumexp

from benchmark.data.rank_keys import I2T, RankKey
from benchmark.scoring.metrics import retrieval_metrics
from benchmark.scoring.ranking import (
    BestItems,
    LayerRanks,
    Tile,
    check_finite,
    of_direction,
)
from benchmark.scoring.relevance import Relevance
from benchmark.scoring.score_stream import ScoreStream

BANK = 2000  # images, and captions, of the training split, drawn by the seed
# that of QB-Norm is 20
BETAS = [{"beta": beta} for beta in (1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)]
NEIGHBOURS = (1, 4, 16, 64, 256)
ALPHAS = (0.25, 0.5, 0.75, 1.0, 1.5)
# correction -> what is tried on validation; of nnn some of what its paper tries
GRIDS = {
    "nnn": [{"k": k, "alpha": alpha} for k, alpha in product(NEIGHBOURS, ALPHAS)],
    **dict.fromkeys(("inverted_softmax", "qb_norm", "dual_softmax"), BETAS),
}
Given = Mapping[str, float]  # k and alpha, or beta


@dataclass(frozen=True, eq=False)
class Asked:
    """Scores of so many queries, of a split or of a bank, with the items of a split."""

    way: str
    queries: int
    items: int
    tiles: Iterable[Tile]

    @classmethod
    def of(cls, way: str, stream: ScoreStream) -> "Asked":
        """All scores of a stream, in one direction."""
        images, captions = stream.shape
        queries, items = (images, captions) if way == "i2t" else (captions, images)
        return cls(way, queries, items, stream)


class Hubs:
    """What queries tell of the items of a gallery, in one pass over their scores: the
    largest ones of each item, log sum exp(beta s), and the best item of each query.
    Raises RefusedError for scores that are not finite."""

    def __init__(self, asked: Asked, tried: Iterable[Given]) -> None:
        queries, items = asked.queries, asked.items
        depth = min(max(given.get("k", 1) for given in tried), queries)
        betas = [given["beta"] for given in tried if "beta" in given]
        self.nearest = BestItems(np.zeros(items), np.ones(queries), depth)
        self.best = BestItems(np.zeros(queries), np.ones(items), 1)
        self.logs = {beta: np.full(items, -np.inf) for beta in betas}
        for tile in asked.tiles:
            scores = tile.of(I2T).astype(np.float64)
            check_finite(scores)
            rows, columns, scores_QG = of_direction(asked.way, tile, scores)
            self.nearest.add(columns, rows, scores_QG.T)
            self.best.add(rows, columns, scores_QG)
            for beta, log_G in self.logs.items():
                log_of_tile = logsumexp(beta * scores_QG, axis=0)
                log_G[columns] = np.logaddexp(log_G[columns], log_of_tile)

    def bias(self, items: np.ndarray, given: Given) -> np.ndarray:
        """What is subtracted from the scores of some items, (G,)."""
        if "beta" in given:
            return self.logs[given["beta"]][items] / given["beta"]
        return given["alpha"] * self.nearest.scores[items, : given["k"]].mean(1)


class Correction:
    """A correction of the scores of one direction, whose hubs the bank tells; of a dual
    softmax the bank is the split. `tried` are all parameters that will be asked for."""

    def __init__(
        self, how: str, split: Asked, bank: Asked, tried: Sequence[Given]
    ) -> None:
        self.how, self.way = how, split.way
        self.hubs = Hubs(bank, tried)
        self.hubs_of_split = Hubs(split, tried) if how == "qb_norm" else None

    def scores(self, tile: Tile, given: Given) -> np.ndarray:
        """The corrected scores (r, c) of a tile, float64."""
        scores = tile.of(I2T).astype(np.float64)
        queries, items, scores_QG = of_direction(self.way, tile, scores)
        corrected = scores_QG - self.hubs.bias(items, given)
        if self.how == "dual_softmax":
            corrected = scores_QG * np.exp(given["beta"] * corrected)
        if self.how == "qb_norm":
            best_Q1 = self.hubs_of_split.best.items[queries]
            is_active_Q1 = np.isin(best_Q1, self.hubs.best.items)
            corrected = np.where(is_active_Q1, corrected, scores_QG)
        return corrected if self.way == "i2t" else corrected.T


class Corrected:
    """Tiles of corrected scores, float64, of some directions, and of i2t as it is if
    that is none of them. `asked` has the split and the bank of a direction."""

    def __init__(
        self,
        how: str,
        asked: Mapping[str, tuple[Asked, Asked]],
        parameters: Mapping[str, Given],
    ) -> None:
        self.parameters = parameters
        self.corrections = {}
        for way, (split, bank) in asked.items():
            self.tiles = split.tiles
            self.corrections[way] = Correction(how, split, bank, [parameters[way]])
        sizes = {way: bank.queries for way, (_, bank) in asked.items()}
        self.facts = {"how": how, "bank": sizes, **parameters}  # for records

    def __iter__(self) -> Iterator[Tile]:
        for tile in self.tiles:
            scores = {I2T: tile.of(I2T)}
            for way, correction in self.corrections.items():
                scores[RankKey(way)] = correction.scores(tile, self.parameters[way])
            yield Tile(tile.rows, tile.columns, scores)


def chosen(how: str, split: Asked, bank: Asked, relevance: Relevance) -> Given:
    """Of GRIDS the parameters with the highest rsum of a direction of the validation
    split, the first of equals."""
    grid, key = GRIDS[how], RankKey(split.way)
    correction = Correction(how, split, bank, grid)
    counts = [LayerRanks(key, relevance.own(key)) for _ in grid]
    for tile in split.tiles:
        for given, count in zip(grid, counts, strict=True):
            scores = correction.scores(tile, given)
            check_finite(scores)
            count.see(Tile(tile.rows, tile.columns, {key: scores}))
    for tile in split.tiles:
        for given, count in zip(grid, counts, strict=True):
            scores = correction.scores(tile, given)
            count.add(Tile(tile.rows, tile.columns, {key: scores}))
    rsums = [retrieval_metrics({split.way: count.ranks})["rsum"] for count in counts]
    return grid[int(np.argmax(rsums))]

"""Ranks of relevant items, counted from tiles of scores. Imports no torch.

The rank of an item is how many items stand before it. Only one tile of scores needs to
exist at a time: everything that looks at scores accumulates over tiles, and no result
depends on their size or order, integers exactly and means up to rounding.

Ranks are zero-based. Among equal scores the relevant items come last, so that ties
count against the method. The rank of a query's nth relevant item, best first and n from
0, is therefore n plus the number of other items that score at least as much.

I = images, C = captions, r = rows of a tile (images), c = its columns (captions), Q =
queries, G = gallery, R = relevant items of a query, N = phrases, P = proposals of an
image. Ranks of validation are counted on the device in benchmark/scoring/validation.py;
tests hold both together.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy  # whose parts are loaded where they are used

from benchmark.data.prepared_tables import has_sibling
from benchmark.data.rank_keys import I2T, RankKey
from benchmark.data.results import Ranks
from benchmark.scoring.metrics import LARGEST_K
from benchmark.scoring.relevance import LayerPairs, Relevance
from benchmark.scoring.ties import (
    TiedItems,
    by_other_rule,
    comes_last,
    stands_before,
)

CORRECT_IOU = 0.5  # of a right proposal with the true box (two-branch paper, Section 4)
AT_ONCE = 255  # rows that bytes can count
FEW = 0.4  # share of queries from which on a copy of their scores costs too much
NO_ITEM = 2**62
NO_RELEVANT = "every query needs at least one relevant item"


class RefusedError(ValueError):
    """Scores that cannot be ranked: the cell fails, with this reason."""


@dataclass(frozen=True, eq=False)
class Tile:
    """Scores (r, c) of some images with some captions, by the ranks that they count
    for: i2t, and t2i and those within folds where a fusion weights these otherwise."""

    rows: np.ndarray  # (r,) int64, images
    columns: np.ndarray  # (c,) int64, captions
    scores: dict[RankKey, np.ndarray]

    def of(self, key: RankKey) -> np.ndarray:
        """The scores that count for these ranks: their own, else those of the
        direction, else those of i2t."""
        for wanted in (key, RankKey(key.direction)):
            if wanted in self.scores:
                return self.scores[wanted]
        return self.scores[I2T]


class Matrices:
    """Scores that are there as a whole, (I, C) each, by the names of the ranks that
    they count for; cut into tiles of `size` images and captions at most."""

    def __init__(
        self, size: tuple[int, int] = (256, 1024), **scores_IC: np.ndarray
    ) -> None:
        self.size = size
        self.scores = {RankKey.read(name): scores_IC[name] for name in scores_IC}

    def __iter__(self) -> Iterator[Tile]:
        shape = next(iter(self.scores.values())).shape
        for rows, columns in product(*map(spans, shape, self.size)):
            parts = {key: matrix[rows, columns] for key, matrix in self.scores.items()}
            yield Tile(np.r_[rows], np.r_[columns], parts)


class Picked:
    """The scores of some images with some captions, (r, c), from tiles."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray) -> None:
        self.rows, self.columns = rows, columns
        self.scores = np.full((len(rows), len(columns)), np.nan)

    def add(self, tile: Tile, scores: np.ndarray) -> None:
        """Scores (r, c) of a tile."""
        to_row, row = np.nonzero(np.equal.outer(self.rows, tile.rows))
        to_column, column = np.nonzero(np.equal.outer(self.columns, tile.columns))
        self.scores[np.ix_(to_row, to_column)] = scores[np.ix_(row, column)]


def spans(count: int, size: int) -> list[slice]:
    """Consecutive slices of at most `size` that cover `count` items."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


class LayerRanks:
    """Ranks of all right items of a layer's queries, in two passes over the tiles:
    first `see` is called with each tile, then `add`.

    `gallery` returns, for some images and captions, which pairs count, (r, c) bool.
    Scores of the other pairs are ignored, and may be NaN.
    """

    def __init__(
        self, key: RankKey, pairs: LayerPairs, gallery: Callable | None = None
    ) -> None:
        self.key, self.counts, self.gallery = key, pairs.counts, gallery
        self.nth = (pairs.said > 0).astype(np.int64)  # of a query's right items, from 1
        self.nth.data = (
            1 + np.arange(self.nth.nnz) - self.nth.indptr[:-1].repeat(self.counts)
        )
        self.is_there_QR = np.arange(self.counts.max(initial=0)) < self.counts[:, None]
        self.score_QR = np.full(self.is_there_QR.shape, -np.inf)
        # items, other right ones too, that a right item does not stand before
        self.reached_QR = np.zeros(self.is_there_QR.shape, np.int64)
        # the rank of the best right item by the other rule for ties
        self.by_other_rule = np.zeros(len(self.counts), np.int64)

    def nth_of(
        self, queries: np.ndarray, items: np.ndarray
    ) -> "scipy.sparse.coo_array":
        """`nth` of some queries and items."""
        right = self.nth[queries].tocoo()
        place_G = np.full(self.nth.shape[1], -1)
        place_G[items] = np.arange(len(items))
        place = place_G[right.col]
        is_here = place >= 0
        places = right.row[is_here], place[is_here]
        shape = len(queries), len(items)
        return scipy.sparse.coo_array((right.data[is_here], places), shape)

    def see(self, tile: Tile) -> None:
        """First pass: keep the scores of the right pairs."""
        scores = tile.of(self.key)
        queries, items, scores_QG = of_direction(self.key.direction, tile, scores)
        right = self.nth_of(queries, items)
        places = queries[right.row], right.data - 1
        self.score_QR[places] = scores_QG[right.row, right.col]

    def add(self, tile: Tile) -> None:
        """Second pass: count the items that stand before them."""
        scores = tile.of(self.key)
        if self.gallery is not None:
            scores = np.where(self.gallery(tile.rows, tile.columns), scores, -np.inf)
        queries, _, scores_QG = of_direction(self.key.direction, tile, scores)
        highest_Q = scores_QG.max(1)
        for n in range(self.counts[queries].max(initial=0)):
            nth_Q = self.score_QR[queries, n].astype(scores_QG.dtype)
            has_nth_Q = self.counts[queries] > n
            some = _compared(has_nth_Q, stands_before(highest_Q, nth_Q))
            is_before = stands_before(_rows(scores_QG, some), nth_Q[some, None])
            self.reached_QR[queries[some], n] += _trues(is_before)
        best_Q = self.score_QR[queries].max(1, initial=-np.inf).astype(scores_QG.dtype)
        some = _compared(self.counts[queries] > 0, by_other_rule(highest_Q, best_Q))
        is_before = by_other_rule(_rows(scores_QG, some), best_Q[some, None])
        self.by_other_rule[queries[some]] += _trues(is_before)

    @property
    def tied(self) -> TiedItems:
        """After all tiles: what ties with the best right item of each query."""
        best_Q1 = self.score_QR.max(1, keepdims=True, initial=-np.inf)
        is_best_QR = self.is_there_QR & (self.score_QR == best_Q1)
        reached_Q = self.reached_QR.max(1, where=is_best_QR, initial=0)
        right_Q = is_best_QR.sum(1)
        # one rule counts the tied items, the best ones themselves too, the other none
        before_Q = np.minimum(reached_Q, self.by_other_rule)
        tied_Q = np.maximum(reached_Q, self.by_other_rule) - before_Q
        return TiedItems(before_Q, right_Q, tied_Q - right_Q)

    @property
    def ranks(self) -> Ranks:
        """After all tiles."""
        others_QR = np.where(self.is_there_QR, self.reached_QR, NO_ITEM)
        # `reached_QR` also counts right items, and each of them itself: subtract these
        for score_Q in self.score_QR.T:
            others_QR -= stands_before(score_Q[:, None], self.score_QR)
        others_QR.sort(1)  # the best first
        ranks_QR = others_QR + np.arange(others_QR.shape[1])
        return Ranks(ranks_QR[self.is_there_QR], self.counts[self.counts > 0])


def _compared(is_asked_Q: np.ndarray, is_reached_Q: np.ndarray) -> np.ndarray:
    """The queries whose scores are compared one by one: those that a score of the tile
    reaches, if they are few; a copy of the scores of many costs more than it saves."""
    some = is_asked_Q & is_reached_Q
    are_few = np.count_nonzero(some) < FEW * len(some)
    return some if are_few else is_asked_Q


def _rows(scores_QG: np.ndarray, is_kept_Q: np.ndarray) -> np.ndarray:
    """The scores of some queries, in the layout of all: transposed ones stay so."""
    if is_kept_Q.all():
        return scores_QG  # without a copy
    if scores_QG.flags.c_contiguous:
        return scores_QG[is_kept_Q]
    return scores_QG.T[:, is_kept_Q].T


def _trues(mask_QG: np.ndarray) -> np.ndarray:
    """How many are true in each row. Masks of transposed scores are counted by their
    columns."""
    if mask_QG.flags.c_contiguous:
        return np.bitwise_count(np.packbits(mask_QG, axis=1)).sum(1, dtype=np.int64)
    mask_GQ = np.ascontiguousarray(mask_QG.T).view(np.uint8)
    starts = range(0, len(mask_GQ), AT_ONCE)
    counts = np.zeros(mask_GQ.shape[1], np.int64)
    for start in starts:
        counts += mask_GQ[start : start + AT_ONCE].sum(0, dtype=np.uint8)
    return counts


def ranks_of(
    scores_QG: np.ndarray, relevant_QG: np.ndarray, gallery_QG: np.ndarray | None = None
) -> Ranks:
    """Ranks of all relevant items of a matrix of scores, with a gallery of its own for
    each query where one is given.

    Raises RefusedError for scores that are not finite, and ValueError for a query
    without a relevant item.
    """
    if gallery_QG is not None:
        relevant_QG = relevant_QG & gallery_QG
    check_finite(scores_QG if gallery_QG is None else scores_QG[gallery_QG])
    if not relevant_QG.any(1).all():
        raise ValueError(NO_RELEVANT)
    gallery = None if gallery_QG is None else lambda rows, columns: gallery_QG
    pairs = LayerPairs(scipy.sparse.csr_array(relevant_QG.astype(np.int8)))
    ranks = LayerRanks(I2T, pairs, gallery)
    tile = Tile(*map(np.arange, scores_QG.shape), {I2T: scores_QG})
    ranks.see(tile)
    ranks.add(tile)
    return ranks.ranks


def tiles_of_right_pairs(
    tiles: Iterable[Tile], counts: Iterable[LayerRanks]
) -> Iterable[Tile]:
    """The tiles that `see` must be called with: only those with right pairs if the
    stream can compute them alone, as ScoreStream does; else all."""
    if not hasattr(tiles, "holding"):
        return tiles
    images, captions = [], []
    for count in counts:
        pairs = count.nth.nonzero()
        if count.key.direction == "t2i":
            pairs = pairs[::-1]
        images.append(pairs[0])
        captions.append(pairs[1])
    return tiles.holding(np.concatenate(images), np.concatenate(captions))


def direction_ranks(tiles: Iterable[Tile], relevance: Relevance) -> dict[str, Ranks]:
    """Ranks of a whole split by `own`, in both directions, from tiles that pass twice.

    Raises RefusedError for scores that are not finite.
    """
    counts = {}
    for key in map(RankKey, ("i2t", "t2i")):
        counts[key.direction] = LayerRanks(key, relevance.own(key))
    for tile in tiles_of_right_pairs(tiles, counts.values()):
        for count in counts.values():
            count.see(tile)
    for tile in tiles:
        check_finite(tile.of(I2T))
        for count in counts.values():
            count.add(tile)
    return {way: count.ranks for way, count in counts.items()}


def sentence_ranks(
    scores_QC: np.ndarray, query_Q: np.ndarray, owner_C: np.ndarray
) -> Ranks:
    """Sentence-to-sentence (two-branch paper, Section 5.5): ranks of the captions
    `query_Q`.

    `owner_C` is the image of each caption. Relevant are the other captions of the
    query's image; the query itself is not in the gallery. A caption without a sibling
    is no query. Raises RefusedError for scores that are not finite.
    """
    check_finite(scores_QC)
    is_query_Q = has_sibling(owner_C)[query_Q]
    scores_QC, query_Q = scores_QC[is_query_Q], query_Q[is_query_Q]
    is_other_QC = query_Q[:, None] != np.arange(len(owner_C))
    return ranks_of(scores_QC, np.equal.outer(owner_C[query_Q], owner_C), is_other_QC)


def localisation_ranks(scores_NP: np.ndarray, ious_NP: np.ndarray) -> Ranks:
    """Ranks of the right proposals of every phrase (two-branch paper, Section 4).

    `ious_NP` is NaN where an image has fewer than P proposals. A phrase without a right
    proposal is never found: it has one rank, P, or the largest K of the declared R@K
    where P is less. Raises RefusedError for scores that are not finite.
    """
    is_there_NP, right_NP = ~np.isnan(ious_NP), ious_NP >= CORRECT_IOU
    check_finite(scores_NP[is_there_NP])
    right_N = right_NP.sum(1)
    has_right_N = right_N > 0
    of_found = ranks_of(
        scores_NP[has_right_N], right_NP[has_right_N], is_there_NP[has_right_N]
    )
    counts_N = np.maximum(right_N, 1)
    never_found = max(scores_NP.shape[1], LARGEST_K)
    values = np.full(counts_N.sum(), never_found)
    values[has_right_N.repeat(counts_N)] = of_found.values
    return Ranks(values, counts_N)


def area(boxes: np.ndarray) -> np.ndarray:
    """Areas (...) in square pixels; 0 where a box ends before it starts."""
    return np.clip(boxes[..., 2:] - boxes[..., :2], 0, None).prod(-1)


def iou(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union (...), in [0, 1], of boxes that broadcast against each
    other. It is 0 where neither box has an area. Inclusive pixel coordinates, as in the
    two-branch paper's evaluation, give the same number: half-open boxes end one pixel
    later."""
    low = np.maximum(boxes[..., :2], others[..., :2])
    high = np.minimum(boxes[..., 2:], others[..., 2:])
    intersection = np.clip(high - low, 0, None).prod(-1)
    total = area(boxes) + area(others) - intersection
    return np.divide(intersection, total, out=np.zeros_like(total), where=total > 0)


class BestItems:
    """The best K items of every query of a direction, best first. Among equal scores
    the items that are not relevant come first, so that the order agrees with the
    ranks."""

    def __init__(
        self, group_of_query: np.ndarray, group_of_item: np.ndarray, count: int
    ) -> None:
        self.group_of_query, self.group_of_item = group_of_query, group_of_item
        self.scores = np.full((len(group_of_query), count), -np.inf)
        self.kept = np.full((len(group_of_query), count), NO_ITEM)

    @property
    def items(self) -> np.ndarray:
        """(Q, K) int32; K is at most the size of the gallery."""
        return self.kept[:, : len(self.group_of_item)].astype(np.int32)

    def add(
        self, queries: np.ndarray, items: np.ndarray, scores_QG: np.ndarray
    ) -> None:
        """Scores of some queries, at most 2^16, with some items; one row per query."""
        queries, least_Q, scores_QG = self._reached(queries, scores_QG)
        is_kept = scores_QG >= least_Q[:, None]
        if is_kept.flags.c_contiguous:
            row, column = np.divmod(np.flatnonzero(is_kept), len(items))
        else:  # a transposed tile, in the order in which it lies in memory
            column, row = np.divmod(np.flatnonzero(is_kept.T), len(queries))
        touched, new_row = np.unique(row, return_inverse=True)
        old_row, old_column = np.nonzero(self.kept[queries[touched]] != NO_ITEM)
        at_old = queries[touched[old_row]], old_column
        # The kept items and the new ones of the touched queries, sorted; the first K
        # are kept.
        place = np.concatenate([old_row, new_row])
        score = np.concatenate([self.scores[at_old], scores_QG[row, column]])
        item = np.concatenate([self.kept[at_old], items[column]])
        # by place, then by score: two sorts, one of short integers, are faster than
        # np.lexsort
        short_place = place.astype(np.uint16)
        order = np.argsort(-score)
        order = order[np.argsort(short_place[order], kind="stable")]
        is_tied = (np.diff(score[order]) == 0) & (np.diff(place[order]) == 0)
        if is_tied.any():
            group_of_place = self.group_of_query[queries[touched[place]]]
            is_own = group_of_place == self.group_of_item[item]
            behind = NO_ITEM * comes_last(is_own)
            order = np.lexsort((item + behind, -score, short_place))
        place, score, item = place[order], score[order], item[order]
        nth = np.arange(len(place)) - np.searchsorted(place, place)
        first = nth < self.scores.shape[1]
        places = queries[touched[place[first]]], nth[first]
        self.scores[places], self.kept[places] = score[first], item[first]

    def _reached(
        self, queries: np.ndarray, scores_QG: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The queries of which a score of the tile may be kept, the least one that can
        be, and their scores."""
        count = self.scores.shape[1]
        least_Q = self.scores[queries, -1].astype(scores_QG.dtype)
        if np.isneginf(least_Q).any() and scores_QG.shape[1] > count:
            of_tile_Q = np.partition(scores_QG, -count, axis=1)[:, -count]
            least_Q = np.maximum(least_Q, of_tile_Q)
        every_Q = np.ones(len(queries), bool)
        some = _compared(every_Q, scores_QG.max(1) >= least_Q)
        return queries[some], least_Q[some], _rows(scores_QG, some)


def of_direction(
    direction: str, tile: Tile, scores: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Queries, items and scores (one row a query) of a tile, for i2t or t2i."""
    if direction == "i2t":
        return tile.rows, tile.columns, scores
    return tile.columns, tile.rows, scores.T


def check_finite(scores: np.ndarray) -> None:
    """Raises RefusedError for NaN, which compares false with everything and would rank
    first, and for infinity."""
    bad = int((~np.isfinite(scores)).sum())
    if bad:
        raise RefusedError(f"{bad} of {scores.size} scores are NaN or infinite")

"""Which items are relevant, scores that pass a tile at a time, and ranks: how many items stand
before each relevant one. Knows no torch.

Relevance is data. `own` is equality of groups: a group is an image with its captions, or a person
with all images and captions. A layer beside it is a list of pairs that people judged.
No more than a tile of scores need exist at once: whatever looks at scores adds up what it sees, and
no result depends on the size of tiles or on their order. Integers add up to the bit, means to
rounding.

Ranks are zero-based. Among equal scores the relevant items come last, so that ties count against
the method. The rank of a query's nth relevant item, best first and n from 0, is therefore n plus
the number of other items that score at least as much.

I = images, C = captions, r = rows of a tile (images), c = its columns (captions), Q = queries,
G = gallery, R = relevant items of a query, N = phrases, P = proposals of an image, M = matched
pairs. Ranks of validation are counted on the device in benchmark/train/selection.py; tests hold
both together.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.data.prepared_tables import Prepared
from benchmark.data.results import Ranks, of_layer, test_queries
from benchmark.scoring.metrics import LARGEST_K

CORRECT_IOU = 0.5  # of a right proposal with the true box (two-branch paper, Section 4)
AT_ONCE = 255  # rows that bytes can count
NO_ITEM = 2**62


class RefusedError(ValueError):
    """Scores that cannot be ranked: the cell fails, with this reason."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """Which images and captions belong together, and in which folds they lie."""

    group_of_image: np.ndarray  # (I,)
    group_of_caption: np.ndarray  # (C,)
    fold_of_image: np.ndarray | None = None
    fold_of_caption: np.ndarray | None = None

    @classmethod
    def of(
        cls, group_of_image: np.ndarray, image_of_caption: np.ndarray, folds: int = 1
    ) -> "Relevance":
        """A caption is of its image's group. Each of `folds` consecutive parts of the images, with
        their captions, is a fold (MSCOCO 1K). Raises ValueError for parts that are not equal."""
        groups = group_of_image, group_of_image[image_of_caption]
        if folds == 1:
            return cls(*groups)
        images = len(group_of_image)
        if images % folds:
            raise ValueError(f"{images} images cannot be divided into {folds} equal folds")
        fold_of_image = np.arange(images) // (images // folds)
        return cls(*groups, fold_of_image, fold_of_image[image_of_caption])

    @property
    def size(self) -> int:
        """Number of pairs."""
        return len(self.group_of_image) * len(self.group_of_caption)

    @property
    def matrix(self) -> np.ndarray:
        """(I, C) bool."""
        return np.equal.outer(self.group_of_image, self.group_of_caption)

    @property
    def fold_of_query(self) -> dict[str, np.ndarray]:
        """The fold of each query by direction."""
        return {"i2t": self.fold_of_image, "t2i": self.fold_of_caption}

    def queries(self, direction: str) -> int:
        """Number of queries of `i2t`, `t2i`, or of these within folds."""
        is_of_images = direction.startswith("i2t")
        return len(self.group_of_image if is_of_images else self.group_of_caption)

    def pairs(self, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of the matched pairs among these images (r,) and captions (c,)."""
        groups = self.group_of_image[rows]
        order = groups.argsort(kind="stable")
        of_columns = self.group_of_caption[columns]
        first, last = (groups.searchsorted(of_columns, side, order) for side in ("left", "right"))
        counts = last - first
        matched = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(matched)) - np.repeat(counts.cumsum() - counts, counts)
        return order[first[matched] + nth], matched

    def in_fold(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Whether these images and captions are of one fold, (r, c) bool."""
        return np.equal.outer(self.fold_of_image[rows], self.fold_of_caption[columns])


@dataclass(frozen=True, eq=False)
class Layer:
    """What counts as right for some queries of a direction, and what people judged to be wrong."""

    queries: np.ndarray  # (Q,) ascending, among those of the test split
    right: np.ndarray  # (M, 2) int64: place in `queries`, item; by query
    wrong: np.ndarray  # (N, 2) likewise; the other pairs are unjudged

    def judged(self, items_SK: np.ndarray) -> np.ndarray:
        """Of the first items of each query of the split: 1 where right, -1 where judged wrong, 0
        where unjudged, (Q, K) int8."""
        items_QK = items_SK[self.queries]
        size = 1 + max(int(of.max(initial=0)) for of in (items_QK, self.right, self.wrong))
        keys_QK = np.arange(len(items_QK))[:, None] * size + items_QK
        keys = (pairs[:, 0] * size + pairs[:, 1] for pairs in (self.right, self.wrong))
        is_right_QK, is_wrong_QK = (np.isin(keys_QK, of) for of in keys)
        return is_right_QK.astype(np.int8) - is_wrong_QK

    def first_right(self, items_SK: np.ndarray) -> Ranks:
        """Of the best right item of each query among its first K; K where none of them is right."""
        is_right_QK = self.judged(items_SK) == 1
        best_Q = np.where(is_right_QK.any(1), is_right_QK.argmax(1), is_right_QK.shape[1])
        return Ranks.of_best(best_Q)


def layers_of(data: Prepared, least: float | None = None) -> dict[str, dict[str, Layer]]:
    """The layers of the test split beside `own`, by name and direction. Pairs with images or
    captions that are not of the split are left out, and queries that nothing is right for. With
    `least`, a pair is right if its score is no less."""
    split = data.split("test")
    images = pd.Index(data.images["image_id"].iloc[split.image_rows])
    captions = pd.Index(data.captions["caption_id"].iloc[split.caption_rows])
    layers: dict[str, dict[str, Layer]] = {}
    for (name, way), table in data.judged.groupby(["layer", "way"], sort=False):
        sides = images.get_indexer(table["image_id"]), captions.get_indexer(table["caption_id"])
        query_P, item_P = sides if way == "i2t" else sides[::-1]
        is_here_P = (query_P >= 0) & (item_P >= 0)
        is_right_P = table["right"] if least is None else table["score"] >= least
        is_right_P = is_right_P.to_numpy(bool) & is_here_P
        queries = np.unique(query_P[is_right_P])
        is_asked_P = is_here_P & np.isin(query_P, queries)
        pairs = np.c_[np.searchsorted(queries, query_P), item_P, is_right_P][is_asked_P]
        pairs = np.unique(pairs, axis=0)
        right, wrong = (pairs[pairs[:, 2] == of, :2] for of in (1, 0))
        layers.setdefault(name, {})[way] = Layer(queries, right, wrong)
    return layers


def queries_of(data: Prepared) -> dict[str, pd.DataFrame]:
    """The test queries by the name of ranks, in their order: layer, direction, query (its id), and
    cluster, the image of the query, or the person or other group that the image belongs to."""
    split, ids = data.split("test"), test_queries(data)
    group_I = data.images["group"].iloc[split.image_rows].astype(str).to_numpy()
    images = pd.Index(data.images["image_id"].iloc[split.image_rows])
    image_of = {"i2t": np.arange(len(images)), "t2i": split.image_of_caption}
    image_of |= {f"{way}_fold": of_way for way, of_way in image_of.items()}
    image_of["s2s"] = split.image_of_caption[has_sibling(split.image_of_caption)]
    image_of["p2r"] = images.get_indexer(data.regions["image_id"].iloc[split.region_rows])
    tables = {
        way: pd.DataFrame(
            {"layer": "own", "direction": way, "query": ids[way], "cluster": group_I[image_of[way]]}
        )
        for way in ids
    }
    for layer, directions in layers_of(data).items():
        for way, of in directions.items():
            tables[of_layer(way, layer)] = tables[way].iloc[of.queries].assign(layer=layer)
    return tables


@dataclass(frozen=True, eq=False)
class Tile:
    """Scores (r, c) of some images with some captions, by the name of what they count for: i2t, and
    t2i, i2t_fold and t2i_fold where a fusion weights these otherwise."""

    rows: np.ndarray  # (r,) int64, images
    columns: np.ndarray  # (c,) int64, captions
    scores: dict[str, np.ndarray]

    def of(self, name: str) -> np.ndarray:
        """The scores of a name; without its own, of the direction, and of i2t without those."""
        way = name.removesuffix("_fold")
        return self.scores.get(name, self.scores.get(way, self.scores["i2t"]))


class Matrices:
    """Scores that are there as a whole, (I, C) each, cut into tiles of `size` images and captions
    at most."""

    def __init__(self, size: tuple[int, int] = (256, 1024), **scores_IC: np.ndarray) -> None:
        self.size, self.scores = size, scores_IC

    def __iter__(self) -> Iterator[Tile]:
        images, captions = next(iter(self.scores.values())).shape
        for rows in spans(images, self.size[0]):
            for columns in spans(captions, self.size[1]):
                of_tile = {name: matrix[rows, columns] for name, matrix in self.scores.items()}
                yield Tile(np.r_[rows], np.r_[columns], of_tile)


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


def has_sibling(owner_C: np.ndarray) -> np.ndarray:
    """Whether each caption shares its image with another caption, (C,) bool."""
    return np.bincount(owner_C)[owner_C] > 1


# Ranks --------------------------------------------------------------------------------------------


class RankCounts:
    """Ranks of all relevant items of some queries, from blocks of scores.

    `query_M` and `score_M` are the queries and scores of all matched pairs. Raises ValueError for a
    query without a relevant item.
    """

    def __init__(self, query_M: np.ndarray, score_M: np.ndarray, queries: int) -> None:
        self.relevant_Q = np.bincount(query_M, minlength=queries)
        if not self.relevant_Q.all():
            raise ValueError("every query needs at least one relevant item")
        order = np.lexsort((-score_M, query_M))
        nth_M = np.arange(len(order)) - (self.relevant_Q.cumsum() - self.relevant_Q)[query_M[order]]
        self.score_QR = np.full((queries, self.relevant_Q.max()), np.inf, score_M.dtype)
        self.score_QR[query_M[order], nth_M] = score_M[order]
        self.reached_QR = np.zeros(self.score_QR.shape, np.int64)  # items that score as much
        # The rank of the best relevant item if ties counted for the query.
        self.optimistic = np.zeros(queries, np.int64)

    def add(
        self, queries: np.ndarray, scores_QG: np.ndarray, gallery_QG: np.ndarray | None = None
    ) -> None:
        """Scores of some queries with some items, one row a query. `gallery_QG` (bool) are the
        items that a query is asked about; those of the others do not matter, and may be NaN."""
        for n in range(self.relevant_Q[queries].max(initial=0)):
            some, of_some, gallery = queries, scores_QG, gallery_QG
            if not (has_nth := self.relevant_Q[queries] > n).all():
                some, of_some = queries[has_nth], scores_QG[has_nth]
                gallery = None if gallery_QG is None else gallery_QG[has_nth]
            is_reached = of_some >= self.score_QR[some, n, None]
            self.reached_QR[some, n] += _trues(is_reached, gallery)
        is_above = scores_QG > self.score_QR[queries, 0, None]
        self.optimistic[queries] += _trues(is_above, gallery_QG)

    @property
    def ranks(self) -> Ranks:
        """After all blocks."""
        is_there_QR = np.arange(self.score_QR.shape[1]) < self.relevant_Q[:, None]
        ranks_QR = np.empty_like(self.reached_QR)
        for n in range(ranks_QR.shape[1]):
            is_own_QR = (self.score_QR >= self.score_QR[:, n, None]) & is_there_QR
            ranks_QR[:, n] = self.reached_QR[:, n] - is_own_QR.sum(1) + n
        return Ranks(ranks_QR[is_there_QR], self.relevant_Q)


class LayerRanks:
    """Ranks of the right items of a layer's queries, from tiles that pass twice: `see` all of them,
    then `add` all."""

    def __init__(self, way: str, layer: Layer) -> None:
        self.way, self.layer = way, layer
        self.score_M = np.full(len(layer.right), np.nan)
        self.counts: RankCounts | None = None

    def see(self, tile: Tile) -> None:
        """The first pass finds the scores of the right pairs."""
        queries, items, scores_QG = of_direction(self.way, tile, tile.of(self.way))
        query_M, item_M = self.layer.queries[self.layer.right[:, 0]], self.layer.right[:, 1]
        row_M, column_M = (
            pd.Index(queries).get_indexer(query_M),
            pd.Index(items).get_indexer(item_M),
        )
        is_here_M = (row_M >= 0) & (column_M >= 0)
        self.score_M[is_here_M] = scores_QG[row_M[is_here_M], column_M[is_here_M]]

    def add(self, tile: Tile, dtype: np.dtype) -> None:
        """The second one counts, in the precision of `own`."""
        if self.counts is None:
            query_M, count = self.layer.right[:, 0], len(self.layer.queries)
            self.counts = RankCounts(query_M, self.score_M.astype(dtype), count)
        queries, _, scores_QG = of_direction(self.way, tile, tile.of(self.way))
        is_asked_Q = np.isin(queries, self.layer.queries)
        places = np.searchsorted(self.layer.queries, queries[is_asked_Q])
        self.counts.add(places, scores_QG[is_asked_Q].astype(dtype, copy=False))


def _trues(mask_QG: np.ndarray, gallery_QG: np.ndarray | None) -> np.ndarray:
    """How many are true in each row. Masks of transposed scores are counted by their columns."""
    if gallery_QG is not None:
        mask_QG = mask_QG & gallery_QG
    if mask_QG.flags.c_contiguous:
        return np.bitwise_count(np.packbits(mask_QG, axis=1)).sum(1, dtype=np.int64)
    mask_GQ = np.ascontiguousarray(mask_QG.T).view(np.uint8)
    starts = range(0, len(mask_GQ), AT_ONCE)
    parts = (mask_GQ[start : start + AT_ONCE].sum(0, dtype=np.uint8) for start in starts)
    return sum(part.astype(np.int64) for part in parts)


def ranks_of(
    scores_QG: np.ndarray, relevant_QG: np.ndarray, gallery_QG: np.ndarray | None = None
) -> Ranks:
    """Ranks of all relevant items of a matrix of scores, with a gallery of its own for each query
    where one is given.

    Raises RefusedError for scores that are not finite, and ValueError for a query without a
    relevant item.
    """
    if gallery_QG is not None:
        relevant_QG = relevant_QG & gallery_QG
    check_finite(scores_QG if gallery_QG is None else scores_QG[gallery_QG])
    query_M, item_M = np.nonzero(relevant_QG)
    counts = RankCounts(query_M, scores_QG[query_M, item_M], len(scores_QG))
    counts.add(np.arange(len(scores_QG)), scores_QG, gallery_QG)
    return counts.ranks


def sentence_ranks(scores_QC: np.ndarray, query_Q: np.ndarray, owner_C: np.ndarray) -> Ranks:
    """Sentence-to-sentence (two-branch paper, Section 5.5): ranks of the captions `query_Q`.

    `owner_C` is the image of each caption. Relevant are the other captions of the query's image;
    the query itself is not in the gallery. A caption without a sibling is no query. Raises
    RefusedError for scores that are not finite.
    """
    check_finite(scores_QC)
    is_query_Q = has_sibling(owner_C)[query_Q]
    scores_QC, query_Q = scores_QC[is_query_Q], query_Q[is_query_Q]
    is_other_QC = query_Q[:, None] != np.arange(len(owner_C))
    if not len(query_Q):
        return Ranks(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return ranks_of(scores_QC, np.equal.outer(owner_C[query_Q], owner_C), is_other_QC)


def localisation_ranks(scores_NP: np.ndarray, ious_NP: np.ndarray) -> Ranks:
    """Ranks of the right proposals of every phrase (two-branch paper, Section 4).

    `ious_NP` is NaN where an image has fewer than P proposals. A phrase without a right proposal
    is never found: it has one rank, P, or the largest K of the declared R@K where P is less. Raises
    RefusedError for scores that are not finite.
    """
    is_there_NP, right_NP = ~np.isnan(ious_NP), ious_NP >= CORRECT_IOU
    check_finite(scores_NP[is_there_NP])
    counts_N = right_NP.sum(1)
    values_N = np.full(np.maximum(counts_N, 1).sum(), max(scores_NP.shape[1], LARGEST_K))
    ranks = Ranks(values_N, np.maximum(counts_N, 1))
    if counts_N.any():
        some = counts_N > 0
        found = ranks_of(scores_NP[some], right_NP[some], is_there_NP[some])
        values_N[some[ranks.queries]] = found.values
    return ranks


class BestItems:
    """The best K items of every query of a direction, best first. Among equal scores the items that
    are not relevant come first, so that the order agrees with the ranks."""

    def __init__(self, group_of_query: np.ndarray, group_of_item: np.ndarray, count: int) -> None:
        self.group_of_query, self.group_of_item = group_of_query, group_of_item
        self.scores = np.full((len(group_of_query), count), -np.inf)
        self.kept = np.full((len(group_of_query), count), NO_ITEM)

    @property
    def items(self) -> np.ndarray:
        """(Q, K) int32; K is at most the size of the gallery."""
        return self.kept[:, : len(self.group_of_item)].astype(np.int32)

    def add(self, queries: np.ndarray, items: np.ndarray, scores_QG: np.ndarray) -> None:
        """Scores of some queries with some items, one row a query."""
        count = self.scores.shape[1]
        least_Q = self.scores[queries, -1].astype(scores_QG.dtype)
        if np.isneginf(least_Q).any() and len(items) > count:
            least_Q = np.maximum(least_Q, np.partition(scores_QG, -count, axis=1)[:, -count])
        is_kept = scores_QG >= least_Q[:, None]
        if is_kept.flags.c_contiguous:
            row, column = np.divmod(np.flatnonzero(is_kept), len(items))
        else:  # of a transposed tile: numpy finds the trues of a row one after the other
            column, row = np.divmod(np.flatnonzero(is_kept.T), len(queries))
        touched, new_row = np.unique(row, return_inverse=True)
        old_row, old_column = np.nonzero(self.kept[queries[touched]] != NO_ITEM)
        at_old = queries[touched[old_row]], old_column
        # The kept items and the new ones of the touched queries, sorted; the first K are kept.
        place = np.concatenate([old_row, new_row])
        score = np.concatenate([self.scores[at_old], scores_QG[row, column]])
        item = np.concatenate([self.kept[at_old], items[column]])
        keys = -score, place.astype(np.uint16)  # faster
        order = np.lexsort(keys)
        is_tied = (np.diff(score[order]) == 0) & (np.diff(place[order]) == 0)
        if is_tied.any():
            is_own = self.group_of_query[queries[touched[place]]] == self.group_of_item[item]
            order = np.lexsort((item + NO_ITEM * is_own, *keys))
        place, score, item = place[order], score[order], item[order]
        nth = np.arange(len(place)) - np.searchsorted(place, place)
        first = nth < count
        at = queries[touched[place[first]]], nth[first]
        self.scores[at], self.kept[at] = score[first], item[first]


def of_direction(direction: str, tile: Tile, scores: np.ndarray) -> tuple[np.ndarray, ...]:
    """Queries, items and scores (one row a query) of a tile, for i2t or t2i."""
    if direction.startswith("i2t"):
        return tile.rows, tile.columns, scores
    return tile.columns, tile.rows, scores.T


def check_finite(scores: np.ndarray) -> None:
    """Raises RefusedError for NaN, which compares false with everything and would rank first, and
    for infinity."""
    bad = int((~np.isfinite(scores)).sum())
    if bad:
        raise RefusedError(f"{bad} of {scores.size} scores are NaN or infinite")

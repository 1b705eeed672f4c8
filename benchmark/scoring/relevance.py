"""Which items are relevant to which queries. Imports no torch.

Relevance is data. `own` is equality of groups: a group is an image with its captions,
or a person with all images and captions. A layer beside it is a list of pairs that
people judged.

I = images, C = captions, r = some images, c = some captions, Q = queries, G = gallery,
M = matched pairs, P = judged pairs.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy  # whose parts are loaded where they are used

from benchmark.data.prepared_tables import Prepared, Split, images_of_queries
from benchmark.data.rank_keys import OWN, OWN_KEYS, RankKey
from benchmark.data.results import Ranks, test_queries

if TYPE_CHECKING:
    import pandas as pd


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
        """A caption is of its image's group. Each of `folds` consecutive parts of the
        images, with their captions, is a fold (MSCOCO 1K). Raises ValueError for parts
        that are not equal."""
        groups = group_of_image, group_of_image[image_of_caption]
        if folds == 1:
            return cls(*groups)
        images = len(group_of_image)
        if images % folds:
            raise ValueError(
                f"{images} images cannot be divided into {folds} equal folds"
            )
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

    def in_fold(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Whether these images and captions are of one fold, (r, c) bool."""
        return np.equal.outer(self.fold_of_image[rows], self.fold_of_caption[columns])

    def own(self, key: RankKey) -> "LayerPairs":
        """What is right by `own`, in a direction or within its folds."""
        images = len(self.group_of_image)
        groups = np.r_[self.group_of_image, self.group_of_caption]
        ones = np.ones(len(groups), np.int8)
        belongs = scipy.sparse.csr_array((ones, (np.arange(len(groups)), groups)))
        right = (belongs[:images] @ belongs[images:].T).tocoo()
        if key.is_of_folds:
            fold_of_row = self.fold_of_image[right.row]
            right.data *= fold_of_row == self.fold_of_caption[right.col]
        if key.direction == "t2i":
            right = right.T
        return LayerPairs(right.tocsr())


def relevance_of_test(data: Prepared, split: Split) -> Relevance:
    """What belongs together in the test split, by `own`, and the folds of its card."""
    folds = data.card["folds"]
    return Relevance.of(split.group_of_image, split.image_of_caption, folds)


@dataclass(frozen=True, eq=False)
class LayerPairs:
    """A layer in one direction: what counts as right, and what people judged to be
    wrong."""

    # (Q, G) int8 of all queries and items of the split: 1 where right, -1 where judged
    # wrong; of a query without a right item, nothing
    said: "scipy.sparse.csr_array"

    @cached_property
    def counts(self) -> np.ndarray:
        """(Q,) how many items are right."""
        return (self.said > 0).sum(1)

    @cached_property
    def queries(self) -> np.ndarray:
        """Those with a right item, ascending."""
        return np.flatnonzero(self.counts)

    @property
    def right(self) -> np.ndarray:
        """(M, 2) query and item, by query, then by item."""
        return np.transpose((self.said > 0).nonzero())

    @cached_property
    def said_of_queries(self) -> np.ndarray:
        """(Q, G) of `queries` and all items: many rankings look at it."""
        return self.said[self.queries].toarray()

    def judged(self, items_SK: np.ndarray) -> np.ndarray:
        """What was said of the first items of each query of the split, (Q, K), for
        `queries`."""
        items_QK = items_SK[self.queries]
        return np.take_along_axis(self.said_of_queries, items_QK, axis=1)

    def first_right(self, items_SK: np.ndarray) -> Ranks:
        """Of the best right item of each query among its first K; K where none of them
        is right."""
        is_right_QK = self.judged(items_SK) == 1
        best_Q = np.where(
            is_right_QK.any(1), is_right_QK.argmax(1), is_right_QK.shape[1]
        )
        return Ranks.of_best(best_Q)


def layers_of(
    data: Prepared, split: Split, least: float | None = None
) -> dict[str, dict[str, LayerPairs]]:
    """The layers of the test split beside `own`, by name and direction. Pairs with
    images or captions that are not of the split are left out, and queries that nothing
    is right for. With `least`, a pair is right if its score is no less."""
    import pandas as pd

    images = pd.Index(data.images["image_id"].iloc[split.image_rows])
    captions = pd.Index(data.captions["caption_id"].iloc[split.caption_rows])
    layers: dict[str, dict[str, LayerPairs]] = {}
    for (name, way), table in data.judged.groupby(["layer", "way"], sort=False):
        image_P = images.get_indexer(table["image_id"])
        caption_P = captions.get_indexer(table["caption_id"])
        is_right = table["right"] if least is None else table["score"] >= least
        judged_P = np.where(is_right, 1, -1)
        is_here_P = (image_P >= 0) & (caption_P >= 0)
        query_P = image_P if way == "i2t" else caption_P
        is_here_P &= np.isin(query_P, query_P[is_here_P & (judged_P > 0)])
        places = image_P[is_here_P], caption_P[is_here_P]
        verdicts = judged_P[is_here_P].astype(np.int8)
        pairs = scipy.sparse.csr_array((verdicts, places), (len(images), len(captions)))
        if way == "t2i":
            pairs = pairs.T.tocsr()
        layers.setdefault(name, {})[way] = LayerPairs(pairs)
    return layers


def queries_of(data: Prepared) -> "dict[RankKey, pd.DataFrame]":
    """The test queries of ranks, in their order: layer, direction, query (its id), and
    cluster, the image of the query, or the person or other group that the image belongs
    to."""
    import pandas as pd

    split = data.split("test")
    groups = data.images["group"].iloc[split.image_rows]
    group_I = groups.astype(str).to_numpy()
    ids_of, image_of = test_queries(data), images_of_queries(data)
    tables = {}
    for key in OWN_KEYS:
        columns = {
            "layer": OWN,
            "direction": key.column,
            "query": ids_of[key.direction],
            "cluster": group_I[image_of[key.direction]],
        }
        tables[key] = pd.DataFrame(columns)
    for layer, directions in layers_of(data, split).items():
        for way, pairs in directions.items():
            queries = tables[RankKey(way)].iloc[pairs.queries]
            tables[RankKey(way, layer)] = queries.assign(layer=layer)
    return tables

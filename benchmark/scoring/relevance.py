"""Which items are relevant, and scores that pass a tile at a time. Knows no torch.

Relevance is data: a group is an image with its captions, or a person with all images and captions.
No more than a tile of scores need exist at once: whatever looks at scores adds up what it sees, and
no result depends on the size of tiles or on their order. Integers add up to the bit, means to
rounding.

I = images, C = captions, r = rows of a tile (images), c = its columns (captions).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


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

"""The scores of a split, a tile at a time: images with captions. Knows no torch.

No more than a tile of scores need exist at once. Whatever looks at scores adds up what it sees, so
that no result depends on the size of tiles or on their order: integers add up to the bit, means to
rounding. Tiles are passed twice: the first pass finds the scores of matched pairs and the range of
all, the second one counts. Beside `i2t` there are scores of `t2i`, `i2t_fold` and `t2i_fold` where
a fusion weights them otherwise.

r = rows of a tile (images), c = its columns (captions), M = matched pairs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmark.protocol.ranks import RefusedError, fold_of

SIDES = "left", "right"
LARGE, COARSE = 1e12, 1e-3  # of scores in single precision, which has 7 digits


@dataclass(frozen=True)
class Tile:
    """Scores (r, c) of some images with some captions, by the name of what they count for."""

    rows: np.ndarray  # (r,) int64, images
    columns: np.ndarray  # (c,) int64, captions
    scores: dict[str, np.ndarray]

    def of(self, name: str) -> np.ndarray:
        """The scores of `i2t`, `t2i`, `i2t_fold` or `t2i_fold`; without its own, of the direction,
        and of `i2t` without those."""
        way = name.removesuffix("_fold")
        return self.scores.get(name, self.scores.get(way, self.scores["i2t"]))


@dataclass(frozen=True)
class Pairing:
    """Which images and captions belong together, and in which folds they lie."""

    group_of_image: np.ndarray  # (I,)
    group_of_caption: np.ndarray  # (C,)
    fold_of_image: np.ndarray | None = None
    fold_of_caption: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        group_of_image: np.ndarray,
        group_of_caption: np.ndarray,
        image_of_caption: np.ndarray,
        folds: int = 1,
    ) -> "Pairing":
        """Raises ValueError where the images cannot be divided evenly into folds."""
        fold = fold_of(image_of_caption, folds) if folds > 1 else ()
        return cls(group_of_image, group_of_caption, *fold)

    @property
    def size(self) -> int:
        return len(self.group_of_image) * len(self.group_of_caption)

    @property
    def pairs(self) -> int:
        """Number of matched pairs."""
        groups = np.sort(self.group_of_image)
        first, last = (groups.searchsorted(self.group_of_caption, side) for side in SIDES)
        return int((last - first).sum())

    def queries(self, name: str) -> int:
        way = name.removesuffix("_fold")
        return len(self.group_of_image if way == "i2t" else self.group_of_caption)

    def matched(self, tile: Tile) -> tuple[np.ndarray, np.ndarray]:
        """Row and column in the tile of its matched pairs."""
        groups = self.group_of_image[tile.rows]
        order = groups.argsort(kind="stable")
        of_columns = self.group_of_caption[tile.columns]
        first, last = (groups.searchsorted(of_columns, side, order) for side in SIDES)
        counts = last - first
        columns = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(columns)) - np.repeat(counts.cumsum() - counts, counts)
        return order[first[columns] + nth], columns

    def in_fold(self, tile: Tile) -> np.ndarray:
        """(r, c) bool."""
        return np.equal.outer(self.fold_of_image[tile.rows], self.fold_of_caption[tile.columns])


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


@dataclass(frozen=True)
class Overview:
    """What the first pass finds."""

    images: np.ndarray  # (M,) of the matched pairs, image by image
    captions: np.ndarray  # (M,)
    matched: dict[str, np.ndarray]  # (M,) scores by name
    ranges: dict[str, tuple[float, float]]  # smallest and largest score by name
    mean_unmatched: float  # of i2t

    def best(self, name: str, pairing: Pairing) -> tuple[np.ndarray, np.ndarray]:
        """Score (Q,) of each query's best relevant item, and how many relevant items have it; of
        its fold where the name ends so."""
        scores = self.matched[name].astype(self.dtype(name))
        queries = self.images if name.startswith("i2t") else self.captions
        if name.endswith("_fold"):
            own = pairing.fold_of_image[self.images] == pairing.fold_of_caption[self.captions]
            queries, scores = queries[own], scores[own]
        best_Q = np.full(pairing.queries(name), -np.inf, scores.dtype)
        np.maximum.at(best_Q, queries, scores)
        if np.isneginf(best_Q).any():
            raise ValueError("every query needs at least one relevant item")
        return best_Q, np.bincount(queries[scores == best_Q[queries]], minlength=len(best_Q))

    def dtype(self, name: str) -> np.dtype:
        """Double precision where single is too coarse for bins between scores, or too small for
        their range."""
        low, high = self.ranges[name]
        largest = max(abs(low), abs(high))
        is_usual = largest < LARGE and (high - low) > COARSE * largest
        return self.matched[name].dtype if is_usual else np.dtype(np.float64)


def overview(tiles: Iterable[Tile], pairing: Pairing, names: Iterable[str], *lookers) -> Overview:
    """Pass over the scores of `names` and of i2t. Each looker is called with the scores of i2t
    (r, c).

    Raises RefusedError for scores that are not finite.
    """
    names, total = list(dict.fromkeys(["i2t", *names])), 0.0
    seen = _Columns(pairing.pairs)
    ranges, bad = dict.fromkeys(names, (np.inf, -np.inf)), dict.fromkeys(names, 0)
    for tile in tiles:
        pairs = pairing.matched(tile)
        scores = tile.of("i2t")
        seen_here: dict[int, tuple[float, float, int]] = {}
        for name in names:
            own = tile.of(name)
            if id(own) not in seen_here:
                seen_here[id(own)] = _extremes(own)
            low, high, missing = seen_here[id(own)]
            ranges[name] = min(ranges[name][0], low), max(ranges[name][1], high)
            bad[name] += missing
        seen.add(
            tile.rows[pairs[0]], tile.columns[pairs[1]], *(tile.of(name)[pairs] for name in names)
        )
        total += float(scores.sum(dtype=np.float64))
        if not any(bad.values()):
            for look in lookers:
                look(scores)
    for count in bad.values():
        if count:
            raise RefusedError(f"{count} of {pairing.size} scores are NaN or infinite")
    return _sorted_overview(seen.filled(), names, ranges, total, pairing.size)


class _Columns:
    """Columns of `length` that tiles fill part by part. Parts that waited for the last tile would
    lie between the tiles, whose memory could then not be used again."""

    def __init__(self, length: int) -> None:
        self.length, self.count, self.columns = length, 0, []

    def add(self, *parts: np.ndarray) -> None:
        self.columns = self.columns or [np.empty(self.length, part.dtype) for part in parts]
        rows = slice(self.count, self.count + len(parts[0]))
        for column, part in zip(self.columns, parts, strict=True):
            column[rows] = part
        self.count = rows.stop

    def filled(self) -> list[np.ndarray]:
        return [column[: self.count] for column in self.columns]


def _sorted_overview(columns, names, ranges, total: float, size: int) -> Overview:
    images, captions, *scores = columns
    order = np.lexsort((captions, images))
    matched = {name: values[order] for name, values in zip(names, scores, strict=True)}
    unmatched = total - float(matched["i2t"].sum(dtype=np.float64))
    return Overview(
        images[order], captions[order], matched, ranges, unmatched / max(size - len(images), 1)
    )


def spans(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _extremes(scores: np.ndarray) -> tuple[float, float, int]:
    """The smallest and the largest score, and how many scores are not finite."""
    low, high = float(scores.min()), float(scores.max())
    if np.isfinite(low) and np.isfinite(high):
        return low, high, 0
    return np.inf, -np.inf, int((~np.isfinite(scores)).sum())

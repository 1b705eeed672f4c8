"""Scores of images with captions, tile by tile: of one model, of several models as one
score, or of embeddings. Imports no torch.

Equal inputs have equal scores, to the last bit. Two images, or two captions, that a
method cannot tell apart must tie with every query, since ties count against the method.
The last bits of a matrix product, though, depend on the position of a row. So all equal
items are given the scores of the first of them.

I = images, C = captions, r = rows of a tile (images), c = its columns (captions), N =
rows.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import product
from math import prod
from time import perf_counter
from typing import Protocol

import numpy as np

from benchmark.core.command_line import ProgressBar
from benchmark.core.errors import UserError
from benchmark.data.rank_keys import I2T, RankKey
from benchmark.scoring.ranking import Tile, spans

Fuse = Callable[..., dict[RankKey, np.ndarray]]  # scores (r, c), rows, columns -> fused

STREAM_TILE = 512, 1024  # images and captions
# of the machine: MB of scores in memory, beside the encodings
MEMORY = "REMATCH_MEMORY"
DEFAULT_MEMORY = "512"


class Member(Protocol):
    """What computes scores of a split, whose items it has in an order of its own."""

    image_order: np.ndarray  # (I,) the image of each of its rows
    caption_order: np.ndarray  # (C,)
    # (I,) for each row the first one that is the same image
    first_image: np.ndarray
    first_caption: np.ndarray  # (C,)
    parts: Sequence[str]  # the scores that count, by name
    precision: np.dtype  # of these
    range: tuple[float, float] | None  # of finite scores, where that is known
    seconds: dict[str, float]  # per item of each kind

    def scores(self, rows: slice, columns: slice) -> list[np.ndarray]:
        """(r, c) of each part, of some of its rows."""


class ScoreStream:
    """Tiles of the scores of one or more models, which `fuse` makes into one score.

    Each iteration is a pass over all tiles. During the first one, `observers` are
    called with the number of each score and its tile before the fusion, and the time
    that a model needs for a pair is added to its `seconds`. If the stream `keeps`
    scores and all of them fit into the memory allowed, later passes reuse them;
    otherwise they compute them again. The grid of tiles is always the same, so that the
    bits of a score do not depend on the memory. Equal items have equal scores.
    """

    def __init__(
        self, members: Sequence[Member], fuse: Fuse, keeps: bool = True
    ) -> None:
        self.members, self.fuse = members, fuse
        self.observers: list[Callable[[int, Tile], None]] = []
        self.equals: list[EqualScores] = []
        for member in members:
            for _ in member.parts:
                firsts = member.first_image, member.first_caption
                self.equals.append(EqualScores(*firsts, STREAM_TILE))
        self.count = len(self.equals)  # of scores
        # images and captions
        self.shape = len(members[0].image_order), len(members[0].caption_order)
        self.pairs = prod(self.shape)
        size = sum(each.precision.itemsize * len(each.parts) for each in members)
        allowed = allowed_bytes()
        self.keeps = keeps and size * self.pairs <= allowed
        self.kept: list[list[np.ndarray]] = []
        self.is_first = True

    def __iter__(self) -> Iterator[Tile]:
        for number, (rows, columns) in enumerate(shown(grid(self.shape))):
            if number < len(self.kept):
                parts = self.kept[number]
            else:
                parts = self._scored(rows, columns, is_timed=self.is_first)
            if self.keeps and number == len(self.kept):
                self.kept.append(parts)
            tile = self._fused(rows, columns, parts)
            if self.is_first:
                self._observe(tile, parts)
            yield tile
        self.is_first = False

    def holding(self, images: np.ndarray, captions: np.ndarray) -> Iterator[Tile]:
        """The tiles that hold any of these pairs, (P,) each, and those from which equal
        items in later tiles take their scores. This is not a pass."""
        first = self.members[0]
        down, across = map(spans, self.shape, STREAM_TILE)
        is_needed = np.zeros((len(down), len(across)), bool)
        row_of_image = first.image_order.argsort()  # the inverse permutation
        row_of_caption = first.caption_order.argsort()
        down_P = row_of_image[images] // STREAM_TILE[0]
        across_P = row_of_caption[captions] // STREAM_TILE[1]
        is_needed[down_P, across_P] = True
        for equals in self.equals:
            is_needed[equals.images.tiles_with_later] = True
            is_needed[:, equals.captions.tiles_with_later] = True
        cells = zip(grid(self.shape), is_needed.flat, strict=True)
        for rows, columns in shown([cell for cell, needed in cells if needed]):
            yield self._fused(rows, columns, self._scored(rows, columns))

    @property
    def range(self) -> tuple[float, float] | None:
        """The range of all scores, where it is known before they are computed."""
        return self.members[0].range if self.count == 1 else None

    def _observe(self, fused: Tile, parts: list[np.ndarray]) -> None:
        """Call every observer with each score of a tile."""
        for number, scores in enumerate(parts):
            tile = Tile(fused.rows, fused.columns, {I2T: scores})
            for observe in self.observers:
                observe(number, tile)

    def _scored(
        self, rows: slice, columns: slice, is_timed: bool = False
    ) -> list[np.ndarray]:
        """All scores (r, c) of a tile."""
        parts = []
        for member in self.members:
            started = perf_counter()
            parts += member.scores(rows, columns)
            if is_timed:
                spent = (perf_counter() - started) / self.pairs
                member.seconds["per_pair"] = member.seconds.get("per_pair", 0.0) + spent
        of_parts = zip(self.equals, parts, strict=True)
        return [equals.made_equal(scores, rows, columns) for equals, scores in of_parts]

    def _fused(self, rows: slice, columns: slice, parts: list[np.ndarray]) -> Tile:
        images = self.members[0].image_order[rows]
        captions = self.members[0].caption_order[columns]
        fused = self.fuse(parts, rows=images, columns=captions)
        return Tile(images, captions, fused)


def allowed_bytes() -> float:
    """How many bytes of scores may be kept. Raises UserError, and so fails no method,
    if the environment has something else than a number of MB."""
    allowed = os.environ.get(MEMORY, DEFAULT_MEMORY)
    if not re.fullmatch(r"\d+(\.\d+)?", allowed.strip()):
        place = f"{MEMORY} of the environment"
        raise UserError(place, "a number of MB", repr(allowed), "correct it")
    return 1e6 * float(allowed)


def grid(shape: tuple[int, int]) -> list[tuple[slice, slice]]:
    """The tiles of so many images and captions, from left to right, then from top to
    bottom."""
    return list(product(*map(spans, shape, STREAM_TILE)))


def shown(tiles: list[tuple[slice, slice]]) -> Iterator[tuple[slice, slice]]:
    """These tiles, with a bar of progress."""
    return iter(ProgressBar(tiles, desc="score", unit="tile", leave=False))


# Equal items --------------------------------------------------------------------------


def first_equal(rows: Iterable[np.ndarray]) -> np.ndarray:
    """(N,) int64, for each row the first one that has the same numbers."""
    first_of: dict[bytes, int] = {}
    first = []
    for number, row in enumerate(rows):
        without_sign_of_zero = np.ascontiguousarray(row) + 0
        digest = blake2b(without_sign_of_zero, digest_size=16).digest()
        first.append(first_of.setdefault(digest, number))
    return np.array(first, np.int64)


class EqualScores:
    """Gives equal items the scores of the first of them.

    The tiles of a grid pass from left to right, then from top to bottom; `tile` is
    their size, (images, captions). The scores of an item with equals in later tiles are
    kept: those of an image with all captions, those of a caption with the images of the
    present row of tiles.
    """

    def __init__(
        self, first_image: np.ndarray, first_caption: np.ndarray, tile: tuple[int, int]
    ) -> None:
        self.images = _Equals(first_image, tile[0])
        self.captions = _Equals(first_caption, tile[1])
        # (r, captions that have later equals), of one row of tiles after the other
        self.kept_columns = np.empty((0, 0))
        # (images that have later equals, C)
        self.kept_rows = np.empty((0, 0))

    def made_equal(self, scores: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
        """Scores (r, c) of some images and captions, those of equal ones made equal."""
        if self.captions.are_all_different and self.images.are_all_different:
            return scores
        scores = scores.copy()
        shape = len(scores), self.captions.count
        if self.kept_columns.shape != shape:
            self.kept_columns = np.empty(shape, scores.dtype)
        shape = self.images.count, len(self.captions.first)
        if self.kept_rows.shape != shape:
            self.kept_rows = np.empty(shape, scores.dtype)
        places, kept = self.captions.to_keep(columns)
        self.kept_columns[:, kept] = scores[:, places]
        places, kept = self.captions.to_replace(columns)
        scores[:, places] = self.kept_columns[:, kept]
        places, firsts = self.captions.to_copy(columns)
        scores[:, places] = scores[:, firsts]
        places, kept = self.images.to_keep(rows)
        self.kept_rows[kept, columns] = scores[places]
        places, kept = self.images.to_replace(rows)
        scores[places] = self.kept_rows[kept, columns]
        places, firsts = self.images.to_copy(rows)
        scores[places] = scores[firsts]
        return scores


class _Equals:
    """Which items equal an earlier one, of the same tile or of one before, and where
    the scores of those of tiles before are kept."""

    def __init__(self, first: np.ndarray, tile: int) -> None:
        self.first, place = first, np.arange(len(first))
        self.are_all_different = bool((first == place).all())
        self.is_of_earlier = first // tile < place // tile
        self.is_of_same = (first < place) & ~self.is_of_earlier
        kept = np.unique(first[self.is_of_earlier])
        self.count = len(kept)
        self.has_later = np.zeros(len(first), bool)
        self.has_later[kept] = True
        self.place = np.full(len(first), -1)
        self.place[kept] = np.arange(self.count)
        self.tiles_with_later = np.unique(kept // tile)

    def to_keep(self, items: slice) -> tuple[np.ndarray, np.ndarray]:
        """Of some items those that later ones repeat: where they are, and where they
        are kept."""
        places = np.flatnonzero(self.has_later[items])
        return places, self.place[places + items.start]

    def to_replace(self, items: slice) -> tuple[np.ndarray, np.ndarray]:
        """Of some items those that repeat one of an earlier tile: where they are, and
        where that one is kept."""
        places = np.flatnonzero(self.is_of_earlier[items])
        return places, self.place[self.first[places + items.start]]

    def to_copy(self, items: slice) -> tuple[np.ndarray, np.ndarray]:
        """Of some items those that repeat one of them: where both are."""
        places = np.flatnonzero(self.is_of_same[items])
        return places, self.first[places + items.start] - items.start

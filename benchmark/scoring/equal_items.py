"""Items that a method cannot tell apart have equal scores, to the last bit. Knows no
torch.

Two images, or two captions, that are equal as a method is given them have the same
score with every query, so they tie, and ties count against the method. A product of
matrices does not know that: its last bits depend on where a row stands. So each of them
has the scores of the first one.

I = images, C = captions, r = rows of a tile (images), c = its columns (captions), N =
rows.
"""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np


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
    """Gives equal items the scores of the first of them, in tiles of a grid that pass
    from left to right, then from top to bottom. `tile` is the grid's (images,
    captions). Of items that have equals in later tiles it keeps the scores: of images
    with all captions, of captions with the images of a row of tiles."""

    def __init__(
        self, first_image: np.ndarray, first_caption: np.ndarray, tile: tuple[int, int]
    ) -> None:
        self.images = _Equals(first_image, tile[0])
        self.captions = _Equals(first_caption, tile[1])
        # (r, captions that have later equals), of one row of tiles after the other
        self.kept_columns = np.empty((0, 0))
        # (images that have later equals, C)
        self.kept_rows = np.empty((0, 0))

    def level(self, scores: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
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

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
    """Gives equal items the scores of the first of them, in tiles that pass from left
    to right, then from top to bottom. It keeps the scores of those that have equals, of
    images with all captions and of captions with the images of a row of tiles."""

    def __init__(self, first_image: np.ndarray, first_caption: np.ndarray) -> None:
        self.images, self.captions = _Equals(first_image), _Equals(first_caption)
        # (r, captions that have equals)
        self.kept_columns = np.empty((0, 0), np.float32)
        self.kept_rows = np.empty((0, 0), np.float32)  # (images that have equals, C)

    def level(self, scores: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
        """Scores (r, c) of some images and captions, those of equal ones made equal."""
        if self.captions.are_all_different and self.images.are_all_different:
            return scores
        scores = scores.copy()
        if columns.start == 0:
            shape = len(scores), self.captions.count
            self.kept_columns = np.empty(shape, scores.dtype)
        if rows.start == 0 and columns.start == 0:
            shape = self.images.count, len(self.captions.first)
            self.kept_rows = np.empty(shape, scores.dtype)
        places, kept = self.captions.to_keep(columns)
        self.kept_columns[:, kept] = scores[:, places]
        places, kept = self.captions.to_replace(columns)
        scores[:, places] = self.kept_columns[:, kept]
        places, kept = self.images.to_keep(rows)
        self.kept_rows[kept, columns] = scores[places]
        places, kept = self.images.to_replace(rows)
        scores[places] = self.kept_rows[kept, columns]
        return scores


class _Equals:
    """Which items equal an earlier one, and where the scores of the earlier ones are
    kept."""

    def __init__(self, first: np.ndarray) -> None:
        self.first = first
        self.is_repeat = first != np.arange(len(first))
        self.are_all_different = not self.is_repeat.any()
        kept = np.unique(first[self.is_repeat])
        self.count = len(kept)
        self.has_repeats = np.zeros(len(first), bool)
        self.has_repeats[kept] = True
        self.place = np.full(len(first), -1)
        self.place[kept] = np.arange(self.count)

    def to_keep(self, items: slice) -> tuple[np.ndarray, np.ndarray]:
        """Of some items those that have repeats: where they are, and where they are
        kept."""
        places = np.flatnonzero(self.has_repeats[items])
        return places, self.place[places + items.start]

    def to_replace(self, items: slice) -> tuple[np.ndarray, np.ndarray]:
        """Of some items the repeats: where they are, and where those are kept that they
        repeat."""
        places = np.flatnonzero(self.is_repeat[items])
        return places, self.place[self.first[places + items.start]]

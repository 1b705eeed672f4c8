"""Which captions meet in a batch. Batches are arrays of caption rows of a split."""

from collections.abc import Iterator

import numpy as np


def batches(
    image_of_caption: np.ndarray, batch_size: int, captions_per_image: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """One epoch: every caption is drawn once, in random order, `batch_size` at a time.

    With captions_per_image > 1 each drawn caption is followed by other captions of its image, so
    that there are captions_per_image rows per draw (two-branch paper, neighbourhood sampling). The
    only caption of an image is repeated. The last batch may be smaller; one of a single drawn
    caption is dropped, as it has no negative.
    """
    order = rng.permutation(len(image_of_caption))
    siblings = _Siblings(image_of_caption) if captions_per_image > 1 else None
    for start in range(0, len(order), batch_size):
        drawn = order[start : start + batch_size]
        if len(drawn) > 1:
            yield siblings.joined(drawn, captions_per_image - 1, rng) if siblings else drawn


def image_batches(
    image_of_caption: np.ndarray, batch_size: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """One epoch: every image is drawn once, in random order, with one of its captions.

    The last batch may be smaller; one of a single image is dropped, as it has no negative.
    """
    order = np.argsort(image_of_caption, kind="stable")
    count = np.bincount(image_of_caption)
    first, images = np.cumsum(count) - count, rng.permutation(np.flatnonzero(count))
    rows = order[first[images] + rng.integers(0, count[images])]
    for start in range(0, len(rows), batch_size):
        drawn = rows[start : start + batch_size]
        if len(drawn) > 1:
            yield drawn


class _Siblings:
    """The other captions of each caption's image."""

    def __init__(self, image_of_caption: np.ndarray) -> None:
        self.image = image_of_caption
        self.order = np.argsort(image_of_caption, kind="stable")
        self.count = np.bincount(image_of_caption)
        self.first = np.cumsum(self.count) - self.count
        self.position = np.empty_like(self.order)  # of a caption among those of its image
        self.position[self.order] = np.arange(len(self.order)) - self.first[self.image[self.order]]

    def joined(self, drawn: np.ndarray, others: int, rng: np.random.Generator) -> np.ndarray:
        """Each drawn caption, followed by `others` other captions of its image."""
        image = self.image[drawn]
        rows = [drawn]
        # A random start and consecutive steps around the ring of siblings: while there are enough,
        # this never gives the caption itself, nor a sibling twice.
        ring = np.maximum(self.count[image] - 1, 1)
        start = rng.integers(0, ring)
        for step in range(others):
            away = 1 + (start + step) % ring
            position = (self.position[drawn] + away) % self.count[image]
            rows.append(self.order[self.first[image] + position])
        return np.stack(rows, axis=1).ravel()

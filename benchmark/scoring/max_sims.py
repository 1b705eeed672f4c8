"""Scores of late interaction, MaxSim, as scores of a stream. Knows no torch.

An image and a caption have a vector for each of their tokens. Their score is the sum,
over the tokens of the caption, of the largest dot product with a token of the image:
Khattab and Zaharia (2020), ColBERT, Eq. 3. ColPali scores alike.

N = items, T = tokens of all items, t = those of one, F = numbers of a vector, r = rows
of a tile (images), c = its columns (captions).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmark.scoring import fusion
from benchmark.scoring.cosines import equal_ones_together, for_product
from benchmark.scoring.score_stream import ScoreStream

TOKENS_AT_ONCE = 2048  # of captions: their products with an image stay in cache


@dataclass(frozen=True, eq=False)
class TokenMatrices:
    """The vectors of the tokens of some items, one item after the other."""

    tokens: np.ndarray  # (T, F)
    lengths: np.ndarray  # (N,) how many tokens each item has, 1 or more

    @cached_property
    def starts(self) -> np.ndarray:
        """(N,) where the tokens of each item begin."""
        return self.lengths.cumsum() - self.lengths

    def of(self, item: int) -> np.ndarray:
        """(t, F) of an item."""
        start = self.starts[item]
        return self.tokens[start : start + self.lengths[item]]

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[np.ndarray]:
        return map(self.of, range(len(self)))

    def chosen(self, items: np.ndarray) -> "TokenMatrices":
        """Some items, in this order."""
        if np.array_equal(items, np.arange(len(self))):
            return self  # without a copy
        tokens = np.concatenate([self.of(item) for item in items])
        return TokenMatrices(tokens, self.lengths[items])

    @cached_property
    def means(self) -> np.ndarray:
        """(N, F) float32, the mean of the tokens of each item."""
        sums = np.add.reduceat(self.tokens, self.starts, dtype=np.float32)
        return sums / self.lengths[:, None].astype(np.float32)


def max_sim_stream(images: TokenMatrices, captions: TokenMatrices) -> ScoreStream:
    """MaxSim of images and captions, whose vectors are as long."""
    return ScoreStream([MaxSims(images, captions)], fusion.mean)


class MaxSims:
    """MaxSim of images and captions, in single precision. Equal ones stand side by
    side."""

    parts, precision, range = ("",), np.dtype(np.float32), None

    def __init__(self, images: TokenMatrices, captions: TokenMatrices) -> None:
        self.images, self.captions = images, captions
        self.image_order, self.first_image = equal_ones_together(images)
        self.caption_order, self.first_caption = equal_ones_together(captions)
        self.seconds: dict[str, float] = {}

    def scores(self, rows: slice, columns: slice) -> list[np.ndarray]:
        """(r, c) of some images and captions in their orders."""
        images, captions = self.image_order[rows], self.caption_order[columns]
        scores = np.empty((len(images), len(captions)), np.float32)
        last_token = self.captions.lengths[captions].cumsum() - 1
        new_part = np.flatnonzero(np.diff(last_token // TOKENS_AT_ONCE)) + 1
        for some in np.split(np.arange(len(captions)), new_part):
            scores[:, some] = self._of_captions(images, captions[some])
        return [scores]

    def _of_captions(self, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
        """(r, c) of few captions, whose tokens are multiplied at once."""
        scores = np.empty((len(images), len(captions)), np.float32)
        of_captions = self.captions.chosen(captions)
        count = len(of_captions.tokens)
        y = for_product(of_captions.tokens, np.float32)
        for row, image in enumerate(images):
            x = for_product(self.images.of(image), np.float32)
            products = (x @ y.T)[: self.images.lengths[image], :count]
            nearest = products.max(0)
            # in any order of the tokens the same, to single precision
            starts = of_captions.starts
            scores[row] = np.add.reduceat(nearest, starts, dtype=np.float64)
        return scores

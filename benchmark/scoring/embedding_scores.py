"""Cosines of embeddings, and MaxSim of token matrices, as scores of a stream. Knows no
torch.

MaxSim is the score of late interaction. An image and a caption have a vector for each
of their tokens. Their score is the sum, over the tokens of the caption, of the largest
dot product with a token of the image: Khattab and Zaharia (2020), ColBERT, Eq. 3.
ColPali scores alike.

I = images, C = captions, N = items, r = rows of a tile (images), c = its columns
(captions), F = numbers of a vector, T = tokens of all items, t = those of one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmark.core.errors import UserError
from benchmark.scoring import fusion
from benchmark.scoring.ranking import spans
from benchmark.scoring.score_stream import ScoreStream, first_equal

DIGITS = 40  # of a cosine; the last of 52 differ by the order of the sum
ROWS_AT_ONCE = 4096  # of embeddings in double precision
# Rows of a product are a multiple of it: the last ones of others have kernels of their
# own, which may add in another order.
WHOLE_KERNELS = 64
TOKENS_AT_ONCE = 2048  # of captions: their products with an image stay in cache


def cosine_stream(
    images: np.ndarray, captions: np.ndarray, keeps: bool = False
) -> ScoreStream:
    """The cosines of unit vectors (I, F) and (C, F); whether they are kept for further
    passes, where they fit into the memory."""
    return ScoreStream([Cosines(images, captions)], fusion.mean, keeps)


class Cosines:
    """Cosines of unit vectors (I, F) and (C, F), each pair by itself: summed in double
    precision and rounded, so that equal cosines are equal wherever their rows stand.
    Equal vectors stand side by side."""

    parts, range = ("",), (-1.0, 1.0)

    def __init__(self, images: np.ndarray, captions: np.ndarray) -> None:
        self.images, self.captions = images, captions
        self.image_order, self.first_image = equal_ones_together(images)
        self.caption_order, self.first_caption = equal_ones_together(captions)
        self.precision, self.seconds = images.dtype, {}

    def scores(self, rows: slice, columns: slice) -> list[np.ndarray]:
        """(r, c) of some images and captions in their orders."""
        images, captions = self.image_order[rows], self.caption_order[columns]
        x = for_product(self.images[images], np.float64)
        y = for_product(self.captions[captions], np.float64)
        products = (x @ y.T)[: len(images), : len(captions)]
        return [_rounded(products, self.precision)]


def _rounded(cosines: np.ndarray, precision: np.dtype) -> np.ndarray:
    """Cosines in double precision, rounded to that of their vectors; of vectors in
    double precision to DIGITS binary places."""
    if precision != np.float64:
        return cosines.astype(precision)
    np.rint(np.ldexp(cosines, DIGITS, out=cosines), out=cosines)
    return np.ldexp(cosines, -DIGITS, out=cosines)


def for_product(vectors: np.ndarray, precision: type[np.floating]) -> np.ndarray:
    """Rows as a product takes them: of this precision, and with zeros as further rows
    where kernels ask for them."""
    missing = -len(vectors) % WHOLE_KERNELS
    if not missing:
        return vectors.astype(precision)
    rows = np.zeros((len(vectors) + missing, vectors.shape[1]), precision)
    rows[: len(vectors)] = vectors
    return rows


def equal_ones_together(items: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """An order of items in which equal ones follow each other, (N,), and for each place
    of it the first that has the same item."""
    first = first_equal(items)
    order = first.argsort(kind="stable")
    return order, np.searchsorted(first[order], first[order])


def units(vectors: np.ndarray, where: object, ids: Sequence[str]) -> np.ndarray:
    """Vectors of length 1. Of codes of +1 and -1 to a part in a million, but so that
    sums of their products are exact: equal Hamming distances tie.

    Raises UserError for a vector that is zero: `where` it stands, and the `ids` of all.
    """
    parts = spans(len(vectors), ROWS_AT_ONCE)
    if all((np.abs(vectors[rows]) == 1).all() for rows in parts):
        digits = (np.finfo(np.float64).nmant - vectors.shape[1].bit_length()) // 2
        mantissa, power = np.frexp(1 / np.sqrt(vectors.shape[1]))
        rounded = np.round(np.ldexp(mantissa, digits))
        return vectors * np.ldexp(rounded, power - digits)
    divided, lengths = np.empty_like(vectors), np.empty(len(vectors))
    for rows in parts:
        # of 2: no digit is lost
        power = np.frexp(np.abs(vectors[rows]).max(axis=1, keepdims=True))[1]
        # squares neither overflow nor vanish
        scaled = np.ldexp(vectors[rows].astype(np.float64), -power)
        lengths[rows] = np.linalg.norm(scaled, axis=1)
        is_zero = lengths[rows] == 0
        divided[rows] = scaled / np.where(is_zero, 1, lengths[rows])[:, None]
    if not lengths.all():
        first, count = int(lengths.argmin()), int((lengths == 0).sum())
        zeros = f"zeros alone for {ids[first]!r} ({count} such vectors)"
        raise UserError(where, "vectors that have a direction", zeros, "correct them")
    return divided


# MaxSim -------------------------------------------------------------------------------


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

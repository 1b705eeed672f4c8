"""Cosines of embeddings, as scores of a stream. Knows no torch.

I = images, C = captions, r = rows of a tile (images), c = its columns (captions), F =
numbers of an embedding.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from benchmark.core.errors import UserError
from benchmark.scoring import fusion
from benchmark.scoring.equal_items import first_equal
from benchmark.scoring.ranking import spans
from benchmark.scoring.score_stream import ScoreStream, grid, shown

ROWS_AT_ONCE = 4096  # of embeddings in double precision
# Rows of a product are a multiple of it: the last ones of others have kernels of their
# own, which may add in another order.
WHOLE_KERNELS = 64


def cosine_stream(images: np.ndarray, captions: np.ndarray) -> ScoreStream:
    """The cosines of unit vectors (I, F) and (C, F)."""
    return ScoreStream([Cosines(images, captions)], fusion.mean)


class Cosines:
    """Cosines of unit vectors (I, F) and (C, F), each pair by itself: summed in double
    precision and rounded to that of the vectors, so that equal cosines are equal
    wherever their rows stand. Equal vectors stand side by side."""

    parts = ("",)

    def __init__(self, images: np.ndarray, captions: np.ndarray) -> None:
        self.images, self.captions = images, captions
        self.image_order, self.first_image = equal_ones_together(images)
        self.caption_order, self.first_caption = equal_ones_together(captions)
        self.precision, self.seconds = images.dtype, {}

    def scores(self, rows: slice, columns: slice) -> list[np.ndarray]:
        """(r, c) of some images and captions in their orders."""
        products = self._products(rows, columns, np.float64)
        return [products.astype(self.precision)]

    def extremes(self) -> tuple[float, float]:
        """The lowest and the highest cosine, for half of the time of all: products in
        single precision tell the tiles that may hold them."""
        tiles = grid((len(self.images), len(self.captions)))
        low_T, high_T = np.empty((2, len(tiles)))
        for number, (rows, columns) in enumerate(shown(tiles)):
            products = self._products(rows, columns, np.float32)
            low_T[number], high_T[number] = products.min(), products.max()
        # a bound for sums of products of unit vectors, twice: of both that are compared
        size = self.images.shape[1]
        apart = 2 * (size + 4) * np.finfo(np.float32).eps
        may_hold_T = (low_T <= low_T.min() + apart) | (high_T >= high_T.max() - apart)
        low, high = np.inf, -np.inf
        is_first_I = self.first_image == np.arange(len(self.images))
        is_first_C = self.first_caption == np.arange(len(self.captions))
        for number in np.flatnonzero(may_hold_T):
            rows, columns = tiles[number]
            (scores,) = self.scores(rows, columns)
            scores = scores[is_first_I[rows]][:, is_first_C[columns]]
            low = min(low, float(scores.min(initial=np.inf)))
            high = max(high, float(scores.max(initial=-np.inf)))
        return low, high

    def _products(
        self, rows: slice, columns: slice, precision: type[np.floating]
    ) -> np.ndarray:
        """(r, c), summed in this precision."""
        images, captions = self.image_order[rows], self.caption_order[columns]
        x = for_product(self.images[images], precision)
        y = for_product(self.captions[captions], precision)
        return (x @ y.T)[: len(images), : len(captions)]


def for_product(vectors: np.ndarray, precision: type[np.floating]) -> np.ndarray:
    """Rows as a product takes them: of this precision, and with zeros as further rows
    where kernels ask for them."""
    missing = -len(vectors) % WHOLE_KERNELS
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
        zeros = f"zeros alone for {ids[first]!r}, item {first} of test ({count} such "
        zeros += "vectors)"
        raise UserError(where, "vectors that have a direction", zeros, "correct them")
    return divided

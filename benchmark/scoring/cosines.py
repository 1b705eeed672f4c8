"""Cosines of embeddings, as scores of a stream. Knows no torch.

I = images, C = captions, r = rows of a tile (images), c = its columns (captions), F =
numbers of an embedding.
"""

from collections.abc import Iterable, Sequence

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

"""Late fusion: several scores of the same pairs become one. Knows no torch.

Average and adaptive fusion are those of CycleMatch (paper 003, Section 6.3.4); SCAN's ensembles are
the average. Two-branch networks mix the distance of whole images with that of regions (paper 002,
Section 5.6). I = images, C = captions, N = phrases, Q = queries, S = scores to be fused.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse import csr_array

from benchmark.protocol.score_tiles import Pairing, Tile

ALPHAS = tuple(step / 10 for step in range(11))  # tried on validation; the paper took 0.3
SMALLEST = (
    1e-12  # area of a score that is nowhere positive: it gets all the weight, as in the limit
)


def average(scores: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The mean of scores (I, C), Eq. 6.8: i2t (I, C) and t2i (C, I)."""
    mean_IC = np.mean(scores, axis=0)
    return {"i2t": mean_IC, "t2i": mean_IC.T}


def adaptive(scores: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The sum of scores (I, C), weighted for each query, Eqs. 6.9 to 6.11: i2t (I, C), t2i (C, I).

    A score gets more weight the more steeply it falls over the query's items. Image queries and
    caption queries have different weights, so the two directions differ.
    """
    return {
        "i2t": _adapted(scores),
        "t2i": _adapted([score_IC.T for score_IC in scores]),
    }


def within_folds(
    scores: Sequence[np.ndarray],
    fold_of_image_I: np.ndarray,
    fold_of_caption_C: np.ndarray,
    how: str,
) -> dict[str, np.ndarray]:
    """Scores (I, C) fused as if each fold were all there is: i2t (I, C), t2i (C, I).

    Pairs of two folds have no score, -inf. The adaptive weight of a query is its fold's: those of
    Eq. 6.10 depend on the gallery, and 1,000 images are another one than 5,000.
    """
    images, captions = len(fold_of_image_I), len(fold_of_caption_C)
    fused = {
        "i2t": np.full((images, captions), -np.inf, scores[0].dtype),
        "t2i": np.full((captions, images), -np.inf, scores[0].dtype),
    }
    for fold in np.unique(fold_of_image_I):
        rows, columns = np.ix_(fold_of_image_I == fold, fold_of_caption_C == fold)
        of_fold = HOW[how]([score_IC[rows, columns] for score_IC in scores])
        fused["i2t"][rows, columns] = of_fold["i2t"]
        fused["t2i"][columns.T, rows.T] = of_fold["t2i"]
    return fused


def weighted(whole_IC: np.ndarray, regions_IC: np.ndarray, alpha: float) -> dict[str, np.ndarray]:
    """The negative of mixed distances (I, C), Eq. 8 of paper 002: i2t (I, C), t2i (C, I).

    `alpha` in [0, 1] is the weight of `regions_IC`.
    """
    score_IC = -((1 - alpha) * whole_IC + alpha * regions_IC)
    return {"i2t": score_IC, "t2i": score_IC.T}


def distance(cosine: np.ndarray) -> np.ndarray:
    """Euclidean distance of unit vectors with this cosine, in [0, 2]."""
    return np.sqrt(np.maximum(2 - 2 * cosine, 0))


def mean_of_phrases(
    distance_IN: np.ndarray, caption_of_phrase_N: np.ndarray, whole_IC: np.ndarray
) -> np.ndarray:
    """d_rp of Eq. 8, (I, C): mean over a caption's phrases of the distance to the nearest region.

    `distance_IN` is the distance of each phrase to the nearest region of each image. A caption
    without phrases, and an image without regions (NaN), get the distance of the whole image
    (assumed; the paper does not say).
    """
    captions = whole_IC.shape[1]
    mean_NC = csr_array(
        (
            np.ones(len(caption_of_phrase_N)),
            (np.arange(len(caption_of_phrase_N)), caption_of_phrase_N),
        ),
        shape=(len(caption_of_phrase_N), captions),
    )
    phrases_C = np.bincount(caption_of_phrase_N, minlength=captions)
    mean_IC = (distance_IN @ mean_NC) / np.maximum(phrases_C, 1)
    return np.where((phrases_C > 0) & np.isfinite(mean_IC), mean_IC, whole_IC)


def weights(scores: Sequence[np.ndarray]) -> np.ndarray:
    """Weight of each score for each query, w(q) of Eq. 6.10, (S, Q); sums to 1 over S.

    Each score has one row per query, (Q, items).
    """
    area_SQ = np.stack([np.maximum(score_QN, 0).sum(1, dtype=np.float64) for score_QN in scores])
    return weights_of(area_SQ)


def weights_of(area_SQ: np.ndarray) -> np.ndarray:
    """The same from the positive area of each score over the items of each query."""
    inverse_SQ = 1 / np.maximum(area_SQ, SMALLEST)
    return inverse_SQ / inverse_SQ.sum(0)


def _adapted(scores: Sequence[np.ndarray]) -> np.ndarray:
    fused_QN = np.zeros_like(scores[0])
    for score_QN, weight_Q in zip(scores, weights(scores), strict=True):
        fused_QN += weight_Q[:, None].astype(score_QN.dtype) * score_QN
    return fused_QN


class Areas:
    """The positive areas (S, Q) of S scores, from tiles of them: of image queries and of caption
    queries, among all items and within their folds."""

    def __init__(self, scores: int, pairing: Pairing) -> None:
        self.pairing = pairing
        names = ["i2t", "t2i"]
        if pairing.fold_of_image is not None:
            names += ["i2t_fold", "t2i_fold"]
        self.areas = {name: np.zeros((scores, pairing.queries(name))) for name in names}

    def add(self, number: int, tile: Tile) -> None:
        """A tile of score `number`."""
        positive = np.maximum(tile.of("i2t"), 0).astype(np.float64)
        queries = {"i2t": tile.rows, "t2i": tile.columns}
        for name, area_SQ in self.areas.items():
            way = name.removesuffix("_fold")
            counted = positive if name == way else positive * self.pairing.in_fold(tile)
            area_SQ[number, queries[way]] += counted.sum(1 if way == "i2t" else 0)

    def weights(self) -> dict[str, np.ndarray]:
        """w(q) of Eq. 6.10 (S, Q) by name; that of a fold is among its items alone: 1,000 images
        are another gallery than 5,000."""
        return {name: weights_of(area_SQ) for name, area_SQ in self.areas.items()}


def mean(
    scores: Sequence[np.ndarray], rows: np.ndarray, columns: np.ndarray
) -> dict[str, np.ndarray]:
    """The mean of scores (r, c) of a tile, Eq. 6.8."""
    return {"i2t": scores[0] if len(scores) == 1 else np.mean(scores, axis=0)}


def fused(
    scores: Sequence[np.ndarray],
    weights: dict[str, np.ndarray],
    rows: np.ndarray,
    columns: np.ndarray,
) -> dict[str, np.ndarray]:
    """The scores (r, c) of a tile, weighted for each query, by name."""
    by_name = {}
    for name, weight_SQ in weights.items():
        is_of_images = name.startswith("i2t")
        sum_rc = np.zeros_like(scores[0])
        for score_rc, weight_Q in zip(scores, weight_SQ, strict=True):
            weight = weight_Q[rows if is_of_images else columns].astype(score_rc.dtype)
            sum_rc += (weight[:, None] if is_of_images else weight[None, :]) * score_rc
        by_name[name] = sum_rc
    return by_name


HOW: dict[str, Callable[[Sequence[np.ndarray]], dict[str, np.ndarray]]] = {
    "average": average,
    "adaptive": adaptive,
}

"""Late fusion: several scores of the same pairs become one. Imports no torch.

Average and adaptive fusion are those of CycleMatch (paper 003, Section 6.3.4); SCAN's
ensembles are the average. Two-branch networks mix the distance of whole images with
that of regions (paper 002, Section 5.6). I = images, C = captions, N = phrases, Q =
queries, S = scores to be fused.
"""

from collections.abc import Sequence

import numpy as np
import scipy  # whose parts are loaded where they are used

from benchmark.data.rank_keys import I2T, T2I, RankKey
from benchmark.scoring.ranking import RefusedError, Tile
from benchmark.scoring.relevance import Relevance

# tried on validation; the paper took 0.3
ALPHAS = tuple(step / 10 for step in range(11))
MIDDLE = (0.4, 0.6)  # where paper 003 says that most adaptive weights lie, figure 6.7
ROUNDING = 0.01  # of a cosine, in bfloat16, too
# area of a score that is nowhere positive: all the weight, as in the limit
SMALLEST = 1e-12


def weighted(whole_IC: np.ndarray, regions_IC: np.ndarray, alpha: float) -> np.ndarray:
    """The negative of mixed distances (I, C), Eq. 8 of paper 002; `alpha` in [0, 1] is
    the weight of `regions_IC`."""
    return -((1 - alpha) * whole_IC + alpha * regions_IC)


def distance(cosine: np.ndarray) -> np.ndarray:
    """Euclidean distance of unit vectors with this cosine, in [0, 2]; NaN where it is
    NaN. Raises RefusedError for scores that are no cosines."""
    if (np.abs(cosine) > 1 + ROUNDING).any():
        low, high = np.nanmin(cosine), np.nanmax(cosine)
        raise RefusedError(
            f"distances need cosines, found scores from {low:.3g} to {high:.3g}"
        )
    return np.sqrt(np.maximum(2 - 2 * cosine, 0))


def mean_of_phrases(
    distance_IN: np.ndarray, caption_of_phrase_N: np.ndarray, whole_IC: np.ndarray
) -> np.ndarray:
    """d_rp of Eq. 8, (I, C): mean over a caption's phrases of the distance to the
    nearest region.

    `distance_IN` is the distance of each phrase to the nearest region of each image. A
    caption without phrases, and an image without regions (NaN), get the distance of the
    whole image (assumed; the paper does not say).
    """
    captions, phrases = whole_IC.shape[1], len(caption_of_phrase_N)
    places = np.arange(phrases), caption_of_phrase_N
    mean_NC = scipy.sparse.csr_array(
        (np.ones(phrases), places), shape=(phrases, captions)
    )
    phrases_C = np.bincount(caption_of_phrase_N, minlength=captions)
    mean_IC = (distance_IN @ mean_NC) / np.maximum(phrases_C, 1)
    return np.where((phrases_C > 0) & np.isfinite(mean_IC), mean_IC, whole_IC)


class Areas:
    """The positive areas (S, Q) of S scores, from tiles of them: of image queries and
    of caption queries, among all items and within their folds."""

    def __init__(self, scores: int, relevance: Relevance) -> None:
        self.relevance = relevance
        sizes = {
            I2T: len(relevance.group_of_image),
            T2I: len(relevance.group_of_caption),
        }
        self.areas = {key: np.zeros((scores, size)) for key, size in sizes.items()}
        if relevance.fold_of_image is not None:
            for key, size in sizes.items():
                within = RankKey(key.direction, is_of_folds=True)
                self.areas[within] = np.zeros((scores, size))

    def add(self, number: int, tile: Tile) -> None:
        """A tile of score `number`."""
        positive = np.maximum(tile.of(I2T), 0).astype(np.float64)
        for key, area_SQ in self.areas.items():
            counted = positive
            if key.is_of_folds:
                counted = positive * self.relevance.in_fold(tile.rows, tile.columns)
            if key.direction == "i2t":
                area_SQ[number, tile.rows] += counted.sum(1)
            else:
                area_SQ[number, tile.columns] += counted.sum(0)

    def weights(self) -> dict[RankKey, np.ndarray]:
        """w(q) of Eq. 6.10 (S, Q), which sums to 1 over S; that of a fold is among its
        items alone: 1,000 images are another gallery than 5,000."""
        weights = {}
        for key, area_SQ in self.areas.items():
            inverse_SQ = 1 / np.maximum(area_SQ, SMALLEST)
            weights[key] = inverse_SQ / inverse_SQ.sum(0)
        return weights


def mean(
    scores: Sequence[np.ndarray], rows: np.ndarray, columns: np.ndarray
) -> dict[RankKey, np.ndarray]:
    """The mean of scores (r, c) of a tile, Eq. 6.8."""
    return {I2T: scores[0] if len(scores) == 1 else np.mean(scores, axis=0)}


def fused(
    scores: Sequence[np.ndarray],
    weights: dict[RankKey, np.ndarray],
    rows: np.ndarray,
    columns: np.ndarray,
) -> dict[RankKey, np.ndarray]:
    """The scores (r, c) of a tile, weighted for each query, Eq. 6.11: for i2t, for t2i
    and for those within folds. A score gets more weight the more steeply it falls over
    the query's items."""
    sums = {}
    for key, weight_SQ in weights.items():
        sum_rc = np.zeros_like(scores[0])
        for score_rc, weight_Q in zip(scores, weight_SQ, strict=True):
            if key.direction == "i2t":  # the queries are the rows
                weight = weight_Q[rows][:, None]
            else:
                weight = weight_Q[columns]
            sum_rc += weight.astype(score_rc.dtype) * score_rc
        sums[key] = sum_rc
    return sums

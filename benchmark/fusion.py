"""Late fusion: several scores of the same pairs as one. Knows no torch.

CycleMatch (paper 003, Section 6.3.4); SCAN's ensembles are the average.
"""

from collections.abc import Callable, Sequence

import numpy as np

SMALLEST = 1e-12  # area of a score that is nowhere positive: it takes all the weight, as its limit


def average(scores: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Eq. 6.8: the mean of scores (I, C), for either direction: i2t (I, C), t2i (C, I)."""
    mean_IC = np.mean(scores, axis=0)
    return {"i2t": mean_IC, "t2i": mean_IC.T}


def adaptive(scores: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Eqs. 6.9 to 6.11: each query weights its scores by how steeply they fall.

    The weights of image queries and of caption queries differ, so the two directions do too.
    """
    return {
        "i2t": _adapted(scores),
        "t2i": _adapted([score_IC.T for score_IC in scores]),
    }


def weights(scores: Sequence[np.ndarray]) -> np.ndarray:
    """w(q) of Eq. 6.10, normalised: (number of scores, Q) for (Q, N) scores."""
    area_SQ = np.stack([np.maximum(score_QN, 0).sum(1, dtype=np.float64) for score_QN in scores])
    inverse_SQ = 1 / np.maximum(area_SQ, SMALLEST)
    return inverse_SQ / inverse_SQ.sum(0)


def _adapted(scores: Sequence[np.ndarray]) -> np.ndarray:
    fused_QN = np.zeros_like(scores[0])
    for score_QN, weight_Q in zip(scores, weights(scores), strict=True):
        fused_QN += weight_Q[:, None].astype(score_QN.dtype) * score_QN
    return fused_QN


HOW: dict[str, Callable[[Sequence[np.ndarray]], dict[str, np.ndarray]]] = {
    "average": average,
    "adaptive": adaptive,
}

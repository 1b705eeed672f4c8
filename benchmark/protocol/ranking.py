"""Ranks and recalls from a score matrix and nothing else. Q = queries, G = gallery."""

from collections.abc import Iterable

import numpy as np

CUTOFFS = (1, 5, 10)


def positive_ranks(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> np.ndarray:
    """Zero-based rank (Q,) of each query's best relevant item; ties count against it.

    A constant matrix therefore scores nothing, and NaN, which compares false with everything
    and would rank first, is refused. Raises ValueError for shapes that differ, for scores that
    are not finite, and for a query without a relevant item.
    """
    best_Q1 = _best_relevant(scores_QG, relevant_QG)
    return ((scores_QG >= best_Q1) & ~relevant_QG).sum(axis=1)


def ranks_within(
    scores_QG: np.ndarray, relevant_QG: np.ndarray, gallery_QG: np.ndarray
) -> np.ndarray:
    """As `positive_ranks`, but every query has a gallery of its own: the items that `gallery_QG`
    (bool) tells. Scores of others do not matter, and may be NaN."""
    relevant_QG = relevant_QG & gallery_QG
    best_Q1 = _best_relevant(np.where(gallery_QG, scores_QG, 0.0), relevant_QG)
    return ((scores_QG >= best_Q1) & gallery_QG & ~relevant_QG).sum(axis=1)


def optimistic_ranks(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> np.ndarray:
    """As `positive_ranks`, but ties count for the query: the gap shows how much ties matter."""
    best_Q1 = _best_relevant(scores_QG, relevant_QG)
    return ((scores_QG > best_Q1) & ~relevant_QG).sum(axis=1)


def recall_at(k: int, ranks_Q: np.ndarray) -> float:
    """Share of queries with a relevant item in the top k, in percent.

    The literature's R@K: trec_eval's success, not information retrieval's recall.
    """
    return 100 * float((ranks_Q < k).mean())


def median_rank(ranks_Q: np.ndarray) -> int:
    """Floor of the median zero-based rank, plus 1."""
    return int(np.floor(np.median(ranks_Q))) + 1


def mean_rank(ranks_Q: np.ndarray) -> float:
    """Mean rank, counted from 1."""
    return float(ranks_Q.mean()) + 1


def summary(prefix: str, ranks_Q: np.ndarray) -> dict[str, float]:
    """R@1, R@5, R@10, MedR and MeanR under the record's keys, for example `i2t_r1`."""
    recalls = {f"{prefix}_r{k}": recall_at(k, ranks_Q) for k in CUTOFFS}
    ranks = {f"{prefix}_medr": median_rank(ranks_Q), f"{prefix}_meanr": mean_rank(ranks_Q)}
    return recalls | ranks


def rsum(metrics: dict[str, float], ways: Iterable[str]) -> float:
    """Sum of the three R@K of every way: in [0, 600] of i2t and t2i."""
    return sum(metrics[f"{way}_r{k}"] for way in ways for k in CUTOFFS)


def _best_relevant(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> np.ndarray:
    if relevant_QG.dtype != bool:
        raise ValueError(f"relevance must be boolean, got {relevant_QG.dtype}")
    if scores_QG.shape != relevant_QG.shape:
        raise ValueError(
            f"scores and relevance must share a shape, got {scores_QG.shape} and "
            f"{relevant_QG.shape}"
        )
    if not np.isfinite(scores_QG).all():
        raise ValueError("scores contain NaN or infinity")
    if not relevant_QG.any(axis=1).all():
        raise ValueError("every query needs at least one relevant item")
    return np.where(relevant_QG, scores_QG, -np.inf).max(axis=1, keepdims=True)

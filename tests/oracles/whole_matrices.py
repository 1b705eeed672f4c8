"""Ranks, ties, S and resamples of whole matrices, which evaluations count tile by tile.

Array names end in their axes: Q = queries, G = gallery or groups, I = images, C =
captions, R = resamples.
"""

import numpy as np

from benchmark.data.results import Ranks
from benchmark.scoring import distribution_overlap, metrics
from benchmark.scoring.distribution_overlap import (
    BINS,
    Bootstrap,
    ScoreSummary,
    edges_of,
    shares,
)
from benchmark.scoring.ranking import ranks_of
from benchmark.scoring.relevance import Relevance


def by_query(direction: str, matrix_IC: np.ndarray) -> np.ndarray:
    """A matrix (I, C) with one row per query of the direction: (I, C) of i2t, (C, I) of
    t2i."""
    return matrix_IC if direction == "i2t" else matrix_IC.T


def best_ranks(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> np.ndarray:
    """(Q,); ties count against the query."""
    best_Q1 = np.where(relevant_QG, scores_QG, -np.inf).max(axis=1, keepdims=True)
    return ((scores_QG >= best_Q1) & ~relevant_QG).sum(axis=1)


def optimistic_ranks(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> np.ndarray:
    """(Q,); ties count for the query."""
    best_Q1 = np.where(relevant_QG, scores_QG, -np.inf).max(axis=1, keepdims=True)
    return ((scores_QG > best_Q1) & ~relevant_QG).sum(axis=1)


def ranks_by_way(
    scores: dict[str, np.ndarray], relevant_IC: np.ndarray
) -> dict[str, Ranks]:
    return {
        way: ranks_of(scores_QG, by_query(way, relevant_IC))
        for way, scores_QG in scores.items()
    }


def fold_ranks(
    scores: dict[str, np.ndarray], relevant_IC: np.ndarray, relevance: Relevance
) -> dict[str, Ranks]:
    in_fold_IC = np.equal.outer(relevance.fold_of_image, relevance.fold_of_caption)
    return {
        way: ranks_of(scores_QG, by_query(way, relevant_IC), by_query(way, in_fold_IC))
        for way, scores_QG in scores.items()
    }


def tie_gap(scores: dict[str, np.ndarray], relevant_IC: np.ndarray) -> dict[str, float]:
    optimistic = {
        way: optimistic_ranks(scores_QG, by_query(way, relevant_IC))
        for way, scores_QG in scores.items()
    }
    return metrics.tie_metrics(ranks_by_way(scores, relevant_IC), optimistic)


def support(matched: np.ndarray, unmatched: np.ndarray) -> tuple[float, float]:
    both = matched, unmatched
    low, high = min(float(np.min(x)) for x in both), max(float(np.max(x)) for x in both)
    return distribution_overlap.widened(low, high)


def overlap(
    matched: np.ndarray,
    unmatched: np.ndarray,
    bins: int = BINS,
    range: tuple[float, float] | None = distribution_overlap.COSINE_RANGE,
) -> float:
    """S of two samples of scores; `range` None is their common support."""
    low, high = support(matched, unmatched) if range is None else range
    p, q = (shares(sample, bins, low, high) for sample in (matched, unmatched))
    return float(np.minimum(p, q).sum())


def one_minus_ks(matched: np.ndarray, unmatched: np.ndarray) -> float:
    """1 - the Kolmogorov-Smirnov distance, in [0, 1]: a bound that needs no bins (S <=
    1 - KS)."""
    matched, unmatched = np.sort(matched, axis=None), np.sort(unmatched, axis=None)
    points = np.concatenate([matched, unmatched])
    below_p = np.searchsorted(matched, points, side="right") / matched.size
    below_q = np.searchsorted(unmatched, points, side="right") / unmatched.size
    return float(1 - np.abs(below_p - below_q).max())


def score_metrics(
    matched: np.ndarray, unmatched: np.ndarray
) -> dict[str, float | list]:
    """S and the other metrics of two samples of scores, with the range and bins of
    S."""
    span = distribution_overlap.range_of_bins(*support(matched, unmatched))
    summary = ScoreSummary(
        range=span,
        overlaps={
            bins: overlap(matched, unmatched, bins, span)
            for bins in distribution_overlap.BIN_COUNTS
        },
        one_minus_ks=one_minus_ks(matched, unmatched),
        mean_matched=float(np.mean(matched, dtype=np.float64)),
        mean_unmatched=float(np.mean(unmatched, dtype=np.float64)),
    )
    return metrics.score_metrics(summary)


def replicates(
    scores_IC: np.ndarray,
    group_of_image_I: np.ndarray,
    group_of_caption_C: np.ndarray,
    drawn_RG: np.ndarray,
    range: tuple[float, float],
    bins: int = BINS,
) -> np.ndarray:
    """S of R resamples of the groups, (R,), over the bins of `overlap`: see
    `Bootstrap`."""
    pairs = np.nonzero(np.equal.outer(group_of_image_I, group_of_caption_C))
    edges, groups = (
        edges_of(scores_IC.dtype, range, bins),
        (group_of_image_I, group_of_caption_C),
    )
    bootstrap = Bootstrap(*groups, drawn_RG, edges, pairs[0], scores_IC[pairs])
    bootstrap.add(*(np.arange(length) for length in scores_IC.shape), scores_IC, pairs)
    return bootstrap.replicates

"""Ranks, ties and resamples of whole matrices, which evaluations count tile by tile.

Array names end in their axes: Q = queries, G = gallery or groups, I = images, C = captions,
R = resamples.
"""

import numpy as np

from benchmark import protocol
from benchmark.protocol.distribution_overlap import BINS, Bootstrap, edges_of


def optimistic_ranks(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> np.ndarray:
    """As `positive_ranks`, but ties count for the query: the gap shows how much ties matter."""
    best_Q1 = np.where(relevant_QG, scores_QG, -np.inf).max(axis=1, keepdims=True)
    return ((scores_QG > best_Q1) & ~relevant_QG).sum(axis=1)


def fold_ranks(
    scores: dict[str, np.ndarray],
    relevant_IC: np.ndarray,
    image_of_caption_C: np.ndarray,
    folds: int,
) -> dict[str, np.ndarray]:
    """Ranks of every query within its own fold (MSCOCO 1K).

    A fold is one of `folds` consecutive parts of the images, with their captions. Raises
    ValueError where the images cannot be divided evenly.
    """
    in_fold_IC = np.equal.outer(*protocol.fold_of(image_of_caption_C, folds))
    return {
        direction: protocol.ranks_within(
            scores_QG,
            protocol.by_query(direction, relevant_IC),
            protocol.by_query(direction, in_fold_IC),
        )
        for direction, scores_QG in scores.items()
    }


def tie_gap(
    scores: dict[str, np.ndarray], relevant_IC: np.ndarray, ranks: dict[str, np.ndarray]
) -> dict[str, float]:
    """How much a metric would gain if ties counted for the method instead of against it."""
    optimistic = {
        direction: optimistic_ranks(scores_QG, protocol.by_query(direction, relevant_IC))
        for direction, scores_QG in scores.items()
    }
    return protocol.tie_metrics(ranks, optimistic)


def replicates(
    scores_IC: np.ndarray,
    group_of_image_I: np.ndarray,
    group_of_caption_C: np.ndarray,
    drawn_RG: np.ndarray,
    range: tuple[float, float],
    bins: int = BINS,
) -> np.ndarray:
    """S of R resamples of the groups, (R,), over the bins of `overlap`: see `Bootstrap`."""
    pairs = np.nonzero(np.equal.outer(group_of_image_I, group_of_caption_C))
    edges, groups = edges_of(scores_IC.dtype, range, bins), (group_of_image_I, group_of_caption_C)
    bootstrap = Bootstrap(*groups, drawn_RG, edges, pairs[0], scores_IC[pairs])
    bootstrap.add(*(np.arange(length) for length in scores_IC.shape), scores_IC, pairs)
    return bootstrap.replicates

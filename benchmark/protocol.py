"""What every method is granted and how it is judged. Nothing here touches a model."""

import numpy as np

from benchmark import overlap, ranking

VERSION = 1  # of the rules; records of different versions never share a table


class RefusedError(ValueError):
    """Scores that cannot be ranked: the cell fails, with this reason."""


def relevance(image_of_caption_C: np.ndarray, num_images: int) -> np.ndarray:
    """Which caption describes which image, (I, C) bool: explicit, never a stride of five."""
    return np.arange(num_images)[:, None] == image_of_caption_C[None, :]


def both_ways(scores: dict[str, np.ndarray], relevant_IC: np.ndarray) -> dict[str, np.ndarray]:
    """Pessimistic ranks of every image query (`i2t`) and every caption query (`t2i`).

    `scores` has a row a query and a column an item: i2t (I, C), t2i (C, I). Raises RefusedError
    for scores that are not finite.
    """
    for matrix in scores.values():
        _check_finite(matrix)
    return {
        "i2t": ranking.positive_ranks(scores["i2t"], relevant_IC),
        "t2i": ranking.positive_ranks(scores["t2i"], relevant_IC.T),
    }


def retrieval_metrics(ranks: dict[str, np.ndarray]) -> dict[str, float]:
    """The record's retrieval keys: recalls in percent, MedR, MeanR, rsum."""
    metrics = ranking.summary("i2t", ranks["i2t"]) | ranking.summary("t2i", ranks["t2i"])
    return metrics | {"rsum": ranking.rsum(metrics)}


def sentence_ranks(scores_QC: np.ndarray, queries: slice, owner_C: np.ndarray) -> np.ndarray:
    """Sentence-to-sentence (two-branch paper, Section 5.5): ranks of the captions `queries`.

    Relevant are the other captions of the query's image; the query itself is not in the gallery.
    A caption without a sibling is no query. Raises RefusedError for scores that are not finite.
    """
    _check_finite(scores_QC)
    rows = np.arange(len(owner_C))[queries]
    is_self_QC = rows[:, None] == np.arange(len(owner_C))[None, :]
    relevant_QC = (owner_C[rows][:, None] == owner_C[None, :]) & ~is_self_QC
    asked = has_sibling(owner_C)[queries]
    scores_QC = np.where(is_self_QC, np.finfo(scores_QC.dtype).min, scores_QC)
    return ranking.positive_ranks(scores_QC[asked], relevant_QC[asked])


def has_sibling(owner_C: np.ndarray) -> np.ndarray:
    """Which captions share their image with another caption, (C,) bool."""
    return np.bincount(owner_C)[owner_C] > 1


def _check_finite(scores: np.ndarray) -> None:
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).sum())
        raise RefusedError(f"{bad} of {scores.size} scores are NaN or infinite")


def tie_gap(scores: dict, relevant_IC: np.ndarray, ranks: dict) -> dict[str, float]:
    """R@1 gained, in points, if ties counted for the method instead of against it."""
    optimistic = {
        "i2t": ranking.optimistic_ranks(scores["i2t"], relevant_IC),
        "t2i": ranking.optimistic_ranks(scores["t2i"], relevant_IC.T),
    }
    return {
        f"{way}_r1_tie_gap": ranking.recall_at(1, optimistic[way]) - ranking.recall_at(1, pessim)
        for way, pessim in ranks.items()
    }


def overlap_metrics(matched: np.ndarray, unmatched: np.ndarray) -> dict[str, float | list]:
    """S with its range, its bins, its values at half and double the bins, and 1 - KS."""
    low, high = overlap.support(matched, unmatched)
    is_cosine = low >= -1.00001 and high <= 1.00001
    span = overlap.COSINE_RANGE if is_cosine else (low, high)
    coarse, fine = overlap.BINS // 2, overlap.BINS * 2
    return {
        "overlap_s": overlap.overlap(matched, unmatched, range=span),
        "overlap_range": list(span),
        "overlap_bins": overlap.BINS,
        "overlap_s_half_bins": overlap.overlap(matched, unmatched, bins=coarse, range=span),
        "overlap_s_double_bins": overlap.overlap(matched, unmatched, bins=fine, range=span),
        "one_minus_ks": overlap.one_minus_ks(matched, unmatched),
        "mean_matched": float(np.mean(matched, dtype=np.float64)),
        "mean_unmatched": float(np.mean(unmatched, dtype=np.float64)),
    }


def overlap_interval(estimate: float, replicates_R: np.ndarray) -> dict[str, float]:
    """The 95% interval of S, had other images been drawn."""
    low, high = overlap.interval(estimate, replicates_R)
    return {"overlap_s_low": low, "overlap_s_high": high}

"""What every method is granted and how it is judged. Nothing here touches a model."""

import numpy as np

from benchmark.protocol import overlap, ranking

VERSION = 1  # of the rules; records of different versions never share a table
CORRECT_OVERLAP = 0.5  # of a right proposal with the true box (two-branch paper, Section 4)


class RefusedError(ValueError):
    """Scores that cannot be ranked: the cell fails, with this reason."""


def relevance(group_of_image_I: np.ndarray, group_of_caption_C: np.ndarray) -> np.ndarray:
    """Which caption is of the group of which image, (I, C) bool: explicit, never a stride of five.

    A group is an image with its captions, or a person with all images and captions.
    """
    return group_of_image_I[:, None] == group_of_caption_C[None, :]


def retrieval_ranks(
    scores: dict[str, np.ndarray], relevant_IC: np.ndarray
) -> dict[str, np.ndarray]:
    """Pessimistic ranks of every image query (`i2t`) and every caption query (`t2i`), of the ways
    that there are scores of.

    `scores` has a row a query and a column an item: i2t (I, C), t2i (C, I). Raises RefusedError
    for scores that are not finite.
    """
    for matrix in scores.values():
        _check_finite(matrix)
    return {way: ranking.positive_ranks(scores[way], of_way(way, relevant_IC)) for way in scores}


def of_way(way: str, matrix_IC: np.ndarray) -> np.ndarray:
    """A matrix (I, C) with a row a query of the way."""
    return matrix_IC if way == "i2t" else matrix_IC.T


def retrieval_metrics(ranks: dict[str, np.ndarray]) -> dict[str, float]:
    """The record's retrieval keys: recalls in percent, MedR, MeanR, rsum."""
    metrics = {}
    for way, found in ranks.items():
        metrics |= ranking.summary(way, found)
    return metrics | {"rsum": ranking.rsum(metrics, ranks)}


def fold_ranks(
    scores: dict[str, np.ndarray],
    relevant_IC: np.ndarray,
    image_of_caption_C: np.ndarray,
    folds: int,
) -> dict[str, np.ndarray]:
    """Ranks of every query within its own of `folds` consecutive parts of the images, with their
    captions (MSCOCO 1K). Raises ValueError where the images cannot be parted evenly."""
    in_fold_IC = np.equal.outer(*_folds(image_of_caption_C, folds))
    return {
        way: ranking.ranks_within(scores[way], of_way(way, relevant_IC), of_way(way, in_fold_IC))
        for way in scores
    }


def fold_metrics(
    ranks: dict[str, np.ndarray], image_of_caption_C: np.ndarray, folds: int
) -> dict[str, float | dict]:
    """Means over the folds under fold_i2t_r1 and so on, and under fold_values those of each."""
    of_image, of_caption = _folds(image_of_caption_C, folds)
    of_query = {"i2t": of_image, "t2i": of_caption}
    each = [
        retrieval_metrics({way: found[of_query[way] == fold] for way, found in ranks.items()})
        for fold in range(folds)
    ]
    values = {name: [metrics[name] for metrics in each] for name in each[0]}
    means = {f"fold_{name}": float(np.mean(found)) for name, found in values.items()}
    return means | {"fold_values": values}


def _folds(image_of_caption_C: np.ndarray, folds: int) -> tuple[np.ndarray, np.ndarray]:
    """The fold of every image (I,) and of every caption (C,)."""
    images = int(image_of_caption_C.max()) + 1
    if images % folds:
        raise ValueError(f"{images} images cannot be parted into {folds} equal folds")
    of_image = np.arange(images) // (images // folds)
    return of_image, of_image[image_of_caption_C]


def localisation_ranks(scores_NP: np.ndarray, overlaps_NP: np.ndarray) -> np.ndarray:
    """Pessimistic ranks (N,) of the best right proposal of every phrase (two-branch paper,
    Section 4). Overlaps are NaN where an image has fewer than P proposals.

    A phrase without a right proposal has rank P, or 10 where P is less: it is never found. Raises
    RefusedError for scores that are not finite.
    """
    is_there_NP = ~np.isnan(overlaps_NP)
    _check_finite(scores_NP[is_there_NP])
    right_NP = overlaps_NP >= CORRECT_OVERLAP
    found_N = right_NP.any(1)
    ranks_N = np.full(len(scores_NP), max(scores_NP.shape[1], *ranking.CUTOFFS))
    asked = (matrix[found_N] for matrix in (scores_NP, right_NP, is_there_NP))
    ranks_N[found_N] = ranking.ranks_within(*asked)
    return ranks_N


def localisation_metrics(ranks_N: np.ndarray, overlaps_NP: np.ndarray) -> dict[str, float]:
    """Recalls in percent with their sum, how many phrases have a right proposal at all, and R@1 of
    a random order."""
    metrics = ranking.summary("p2r", ranks_N)
    right_NP = overlaps_NP >= CORRECT_OVERLAP
    proposals_N = (~np.isnan(overlaps_NP)).sum(1)
    return metrics | {
        "rsum": ranking.rsum(metrics, ["p2r"]),
        "p2r_bound": 100 * float(right_NP.any(1).mean()),
        "p2r_chance_r1": 100 * float((right_NP.sum(1) / np.maximum(proposals_N, 1)).mean()),
    }


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


def sentence_metrics(ranks: np.ndarray) -> dict[str, float]:
    """The record's keys of sentence-to-sentence retrieval."""
    return ranking.summary("s2s", ranks)


def has_sibling(owner_C: np.ndarray) -> np.ndarray:
    """Which captions share their image with another caption, (C,) bool."""
    return np.bincount(owner_C)[owner_C] > 1


def _check_finite(scores: np.ndarray) -> None:
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).sum())
        raise RefusedError(f"{bad} of {scores.size} scores are NaN or infinite")


def tie_gap(
    scores: dict[str, np.ndarray], relevant_IC: np.ndarray, ranks: dict[str, np.ndarray]
) -> dict[str, float]:
    """R@1 gained, in points, if ties counted for the method instead of against it."""
    optimistic = {
        way: ranking.optimistic_ranks(scores[way], of_way(way, relevant_IC)) for way in scores
    }
    return {
        f"{way}_r1_tie_gap": ranking.recall_at(1, found) - ranking.recall_at(1, ranks[way])
        for way, found in optimistic.items()
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

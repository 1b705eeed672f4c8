"""From scores to ranks: what is relevant, and how many items stand before it. Knows no torch.

Ranks are zero-based. Q = queries, G = gallery, I = images, C = captions, N = phrases,
P = proposals of an image. A direction is i2t, t2i, s2s or p2r: queries "2" items.

Here ranks of whole matrices are counted. Ranks of image-text retrieval come from scores that pass
tile by tile and are counted, with the same rule for ties, in rank_counts.py; those of validation,
on the device, in benchmark/train/selection.py. Tests hold all three together.
"""

import numpy as np

from benchmark.protocol.metrics import LARGEST_K

CORRECT_IOU = 0.5  # of a right proposal with the true box (two-branch paper, Section 4)


class RefusedError(ValueError):
    """Scores that cannot be ranked: the cell fails, with this reason."""


def positive_ranks(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> np.ndarray:
    """Rank of each query's best relevant item, (Q,) int64; ties count against the query.

    A constant matrix therefore scores nothing, and NaN, which compares false with everything
    and would rank first, is refused. Raises ValueError for shapes that differ, for scores that
    are not finite, and for a query without a relevant item.
    """
    best_Q1 = _best_relevant(scores_QG, relevant_QG)
    return ((scores_QG >= best_Q1) & ~relevant_QG).sum(axis=1)


def ranks_within(
    scores_QG: np.ndarray, relevant_QG: np.ndarray, gallery_QG: np.ndarray
) -> np.ndarray:
    """As `positive_ranks`, with a gallery of its own for each query: the items where
    `gallery_QG` (bool) is true. Scores of other items do not matter, and may be NaN."""
    relevant_QG = relevant_QG & gallery_QG
    best_Q1 = _best_relevant(np.where(gallery_QG, scores_QG, 0.0), relevant_QG)
    return ((scores_QG >= best_Q1) & gallery_QG & ~relevant_QG).sum(axis=1)


def relevance(group_of_image_I: np.ndarray, group_of_caption_C: np.ndarray) -> np.ndarray:
    """Whether each image and caption are of the same group, (I, C) bool.

    A group is an image with its captions, or a person with all images and captions. Relevance is
    explicit, never a stride of five.
    """
    return group_of_image_I[:, None] == group_of_caption_C[None, :]


def by_query(direction: str, matrix_IC: np.ndarray) -> np.ndarray:
    """A matrix (I, C) with one row per query of the direction: (I, C) of i2t, (C, I) of t2i."""
    return matrix_IC if direction == "i2t" else matrix_IC.T


def retrieval_ranks(
    scores: dict[str, np.ndarray], relevant_IC: np.ndarray
) -> dict[str, np.ndarray]:
    """Ranks of every image query (`i2t`) and caption query (`t2i`), where there are scores.

    `scores` has one row per query and one column per item: i2t (I, C), t2i (C, I). Raises
    RefusedError for scores that are not finite.
    """
    for scores_QG in scores.values():
        _check_finite(scores_QG)
    return {
        direction: positive_ranks(scores_QG, by_query(direction, relevant_IC))
        for direction, scores_QG in scores.items()
    }


def fold_of(image_of_caption_C: np.ndarray, folds: int) -> tuple[np.ndarray, np.ndarray]:
    """The fold of every image (I,) and of every caption (C,).

    A fold is one of `folds` consecutive parts of the images, with their captions (MSCOCO 1K).
    Raises ValueError where the images cannot be divided evenly.
    """
    images = int(image_of_caption_C.max()) + 1
    if images % folds:
        raise ValueError(f"{images} images cannot be divided into {folds} equal folds")
    fold_of_image = np.arange(images) // (images // folds)
    return fold_of_image, fold_of_image[image_of_caption_C]


def localisation_ranks(scores_NP: np.ndarray, ious_NP: np.ndarray) -> np.ndarray:
    """Ranks (N,) of the best right proposal of every phrase (two-branch paper, Section 4).

    `ious_NP` is NaN where an image has fewer than P proposals. A phrase without a right proposal
    is never found: its rank is P, or the largest K of the declared R@K where P is less. Raises
    RefusedError for scores that are not finite.
    """
    is_there_NP = ~np.isnan(ious_NP)
    _check_finite(scores_NP[is_there_NP])
    right_NP = ious_NP >= CORRECT_IOU
    is_reachable_N = right_NP.any(1)
    ranks_N = np.full(len(scores_NP), max(scores_NP.shape[1], LARGEST_K))
    ranks_N[is_reachable_N] = ranks_within(
        scores_NP[is_reachable_N], right_NP[is_reachable_N], is_there_NP[is_reachable_N]
    )
    return ranks_N


def sentence_ranks(
    scores_QC: np.ndarray, queries: slice | np.ndarray, owner_C: np.ndarray
) -> np.ndarray:
    """Sentence-to-sentence (two-branch paper, Section 5.5): ranks of the captions `queries`.

    `owner_C` is the image of each caption. Relevant are the other captions of the query's image;
    the query itself is not in the gallery. A caption without a sibling is no query. Raises
    RefusedError for scores that are not finite.
    """
    _check_finite(scores_QC)
    rows = np.arange(len(owner_C))[queries]
    is_self_QC = rows[:, None] == np.arange(len(owner_C))[None, :]
    relevant_QC = (owner_C[rows][:, None] == owner_C[None, :]) & ~is_self_QC
    is_query_Q = has_sibling(owner_C)[queries]
    scores_QC = np.where(is_self_QC, np.finfo(scores_QC.dtype).min, scores_QC)
    return positive_ranks(scores_QC[is_query_Q], relevant_QC[is_query_Q])


def has_sibling(owner_C: np.ndarray) -> np.ndarray:
    """Whether each caption shares its image with another caption, (C,) bool."""
    return np.bincount(owner_C)[owner_C] > 1


def _check_finite(scores: np.ndarray) -> None:
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).sum())
        raise RefusedError(f"{bad} of {scores.size} scores are NaN or infinite")


def _best_relevant(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> np.ndarray:
    """Score of each query's best relevant item, (Q, 1)."""
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

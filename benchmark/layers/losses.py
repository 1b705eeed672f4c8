"""Distances, triplet losses and random draws that several methods share.

Two-branch networks (paper 002, Section 5.1) and CycleMatch (paper 003, Eq. 6.2) both
keep the K most violating negatives of each row; similarities enter as negative
distances.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmark.layers.precision import in_float32, wide


def distance(x_AD: Tensor, y_BD: Tensor, epsilon: float = 0.0) -> Tensor:
    """Euclidean distance (..., A, B) of unit vectors (..., A, D) and (..., B, D), in
    float32 or better: the margin is 0.05, and a bfloat16 cosine near 1 moves in steps
    of 0.004."""
    with torch.autocast(x_AD.device.type, enabled=False):
        cosine_AB = wide(x_AD) @ wide(y_BD.mT)
    squared_AB = (2 - 2 * cosine_AB + epsilon).clamp_min(1e-12)
    return squared_AB.rsqrt().reciprocal()  # not sqrt: see benchmark/core/numerics.py


def hardest_triplets(
    positive_R: Tensor,
    candidates_RN: Tensor,
    negative_RN: Tensor,
    margin: float,
    k: int,
) -> Tensor:
    """Mean over R rows x k slots of [margin + d(positive) - d(candidate)]+, the k
    highest per row.

    Distances in; `negative_RN` (bool) tells which candidates count. Empty slots count
    as zero.
    """
    hinge_RN = F.relu(margin + positive_R[:, None] - candidates_RN) * negative_RN
    kept = hinge_RN.topk(min(k, hinge_RN.shape[1]), dim=1).values
    return kept.sum() / (len(positive_R) * k)


@in_float32
def hinges(
    scores_BB: Tensor,
    negative_BB: Tensor,
    margin: float,
) -> tuple[Tensor, Tensor]:
    """VSE++: [margin + s(wrong pair) - s(right pair)]+, 0 for what is no negative.

    scores_BB[i, c] is the score of image i and caption c. Wrong captions (B, B) for the
    image of each row, and wrong images (B, B) for the caption of each column.
    """
    matched_B = scores_BB.diagonal()
    wrong_captions_BB = F.relu(margin + scores_BB - matched_B[:, None]) * negative_BB
    wrong_images_BB = F.relu(margin + scores_BB - matched_B[None, :]) * negative_BB
    return wrong_captions_BB, wrong_images_BB


def text_neighbourhood(
    d_BB: Tensor,
    ids: Tensor,
    margin: float,
    k: int,
    pairs: int | None = None,
) -> Tensor:
    """Paper 002, fourth term of Eq. 6, from Eq. 5: every pair of texts of one id, and
    their triplets with the texts of others. d_BB[b, c] is d(text b, text c); `pairs` is
    how many pairs there are, where that is known without asking a GPU."""
    pairs = pairs_within(ids) if pairs is None else pairs
    if not pairs:
        return d_BB.sum() * 0.0
    same_BB = ~differ(ids)
    same_BB.fill_diagonal_(False)
    rows, neighbours = same_BB.nonzero_static(size=pairs).unbind(1)
    return hardest_triplets(
        d_BB[rows, neighbours], d_BB[rows], differ(ids)[rows], margin, k
    )


def pairs_within(ids: Tensor) -> int:
    """How many pairs (b, c), b not c, have one id. Of ids on the host: a GPU would have
    to wait."""
    counts = ids.unique(return_counts=True)[1]
    return int((counts * (counts - 1)).sum())


def logistic(p: Tensor, z: int) -> Tensor:
    """Paper 002, one summand of Eq. 7: log(1 + exp(-z p)), label z = 1 or -1; in
    float32 or better, as hundreds of them are added up."""
    return F.softplus(-z * wide(p))


def differ(ids: Tensor) -> Tensor:
    """(B, B) bool: whether two rows belong to different groups."""
    return ids[:, None] != ids[None, :]


def first_of_its_group(ids: Tensor) -> Tensor:
    """(B,) bool: whether a row is the first one of its group."""
    same_BB = ~differ(ids)
    return torch.triu(same_BB).float().argmax(0) == torch.arange(
        len(ids), device=ids.device
    )


def draw(allowed_RN: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`count` different columns per row, uniformly among the allowed ones: (R, count)
    columns, and (R, count) bool, False where a row has fewer allowed ones. N is at
    least `count`."""
    lots_RN = torch.rand(allowed_RN.shape, device=allowed_RN.device)
    best = lots_RN.masked_fill(~allowed_RN, -1.0).topk(count, dim=1)
    return best.indices, best.values >= 0

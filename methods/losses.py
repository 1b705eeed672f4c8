"""What two papers share: ranking against the hardest negatives of a batch.

Two-branch networks (paper 002, Section 5.1) and CycleMatch (paper 003, Eq. 6.2) both keep the K
most violating negatives of each row; distances here, similarities there, which is a sign.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def hardest_triplets(
    positive_R: Tensor, candidates_RN: Tensor, negative_RN: Tensor, margin: float, k: int
) -> Tensor:
    """Mean over R rows x k slots of [margin + d(positive) - d(candidate)]+, the k highest a row.

    Distances in; `negative_RN` (bool) tells which candidates count. Empty slots count as zero.
    """
    hinge_RN = F.relu(margin + positive_R[:, None] - candidates_RN) * negative_RN
    kept = hinge_RN.topk(min(k, hinge_RN.shape[1]), dim=1).values
    return kept.sum() / (len(positive_R) * k)


def differ(ids: Tensor) -> Tensor:
    """(B, B) bool: the rows that do not show the same image."""
    return ids[:, None] != ids[None, :]


def first_of_its_image(ids: Tensor) -> Tensor:
    """(B,) bool: the rows whose image no earlier row shows."""
    same_BB = ~differ(ids)
    return torch.triu(same_BB).float().argmax(0) == torch.arange(len(ids), device=ids.device)

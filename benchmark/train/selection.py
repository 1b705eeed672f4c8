"""Which epoch of a training is kept, and the validation figure that decides it.

Ranks are counted here with tensors, where the scores lie, as protocol/ranks.py counts them:
training must not wait for the host, and a change to the evaluation must not make trainings stale.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

CUTOFFS = (1, 5, 10)


class NotFiniteError(ArithmeticError):
    """Validation scores that cannot be ranked."""


def selected(rsums: Sequence[float]) -> int:
    """The epoch whose weights are kept, counted from 1: highest validation rsum, earliest on
    ties. Never sees test."""
    return max(range(len(rsums)), key=lambda epoch: (rsums[epoch], -epoch)) + 1


def retrieval_recalls(
    scores_IC: Tensor, relevant_IC: Tensor, ways: Sequence[str]
) -> dict[str, float]:
    """R@1, R@5, R@10 of each way (i2t, t2i) in percent, and their sum; ties count against the
    method."""
    _check_finite(scores_IC)
    of_way = {"i2t": (scores_IC, relevant_IC), "t2i": (scores_IC.T, relevant_IC.T)}
    ranks = {way: _ranks(*of_way[way]) for way in ways}
    return _recalls(ranks)


def localisation_recalls(
    scores_NP: Tensor, overlaps_NP: Tensor, correct: float
) -> dict[str, float]:
    """R@1, R@5, R@10 of N phrases among the P proposals of their images, and their sum.

    Right is an overlap of `correct` or more; absent proposals have NaN. A phrase without a right
    proposal is never found.
    """
    is_there_NP = ~overlaps_NP.isnan()
    _check_finite(scores_NP[is_there_NP])
    right_NP = overlaps_NP >= correct
    ranks_N = _ranks(scores_NP.masked_fill(~is_there_NP, -torch.inf), right_NP)
    lost_N = ~right_NP.any(1)
    return _recalls({"p2r": ranks_N.masked_fill(lost_N, max(scores_NP.shape[1], *CUTOFFS))})


def _check_finite(scores: Tensor) -> None:
    if not torch.isfinite(scores).all():
        raise NotFiniteError("validation scores contain NaN or infinity")


def _ranks(scores_QG: Tensor, relevant_QG: Tensor) -> Tensor:
    """Items that are not relevant and score at least what the query's best relevant one does."""
    best_Q1 = scores_QG.masked_fill(~relevant_QG, -torch.inf).amax(1, keepdim=True)
    return ((scores_QG >= best_Q1) & ~relevant_QG).sum(1)


def _recalls(ranks: dict[str, Tensor]) -> dict[str, float]:
    recalls = {
        f"{way}_r{k}": 100 * float((found < k).double().mean())
        for way, found in ranks.items()
        for k in CUTOFFS
    }
    return recalls | {"rsum": sum(recalls.values())}

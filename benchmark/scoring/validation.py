"""Recalls of validation, which decide which epoch of a training is kept.

Ranks are counted here with tensors, on the device of the scores, as scoring/ranking.py
does: training must not wait for the host, and a change to the evaluation must not make
trainings stale.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from benchmark.scoring import model_scores
from benchmark.scoring.inputs import PhraseInputs, SplitInputs
from benchmark.scoring.ties import stands_before

CUTOFFS = (1, 5, 10)
CORRECT_IOU = 0.5  # of a right proposal with the true box (two-branch paper, Section 4)


class NotFiniteError(ArithmeticError):
    """Validation scores that cannot be ranked."""


def recalls(
    model: nn.Module, inputs: SplitInputs | PhraseInputs, ways: Sequence[str]
) -> dict[str, float]:
    """What the validation of a model finds, and its sum, rsum: of retrieval in the
    directions `ways`. Raises NotFiniteError."""
    if isinstance(inputs, PhraseInputs):
        scores_NP = model_scores.score_proposals(model, inputs)
        return localisation_recalls(scores_NP, inputs.ious)
    scores_IC = model_scores.score(model, inputs)
    return retrieval_recalls(scores_IC, inputs.relevant, ways)


def retrieval_recalls(
    scores_IC: Tensor, relevant_IC: Tensor, ways: Sequence[str]
) -> dict[str, float]:
    """R@1, R@5, R@10 of each way (i2t, t2i) in percent, and their sum, rsum; ties count
    against the method. Raises NotFiniteError."""
    _check_finite(scores_IC)
    of_way = {"i2t": (scores_IC, relevant_IC), "t2i": (scores_IC.T, relevant_IC.T)}
    return _recalls({way: _ranks(*of_way[way]) for way in ways})


def localisation_recalls(scores_NP: Tensor, ious_NP: Tensor) -> dict[str, float]:
    """R@1, R@5, R@10 in percent of N phrases among the P proposals of their images, and
    their sum. A proposal is right if its IoU with the true box is `CORRECT_IOU` or
    more; a missing one has NaN. A phrase without a right proposal counts as a miss at
    every cutoff."""
    is_there_NP = ~ious_NP.isnan()
    _check_finite(scores_NP[is_there_NP])
    right_NP = ious_NP >= CORRECT_IOU
    scores_NP = scores_NP.masked_fill(~is_there_NP, -torch.inf)
    ranks_N = _ranks(scores_NP, right_NP)
    lost_N = ~right_NP.any(1)
    miss = max(scores_NP.shape[1], *CUTOFFS)  # a rank beyond every cutoff
    return _recalls({"p2r": ranks_N.masked_fill(lost_N, miss)})


def _check_finite(scores: Tensor) -> None:
    if not torch.isfinite(scores).all():
        raise NotFiniteError("validation scores contain NaN or infinity")


def _ranks(scores_QG: Tensor, relevant_QG: Tensor) -> Tensor:
    """(Q,) how many items that are not relevant stand before the best relevant one."""
    of_relevant_QG = scores_QG.masked_fill(~relevant_QG, -torch.inf)
    best_Q1 = of_relevant_QG.amax(1, keepdim=True)
    is_before_QG = stands_before(scores_QG, best_Q1) & ~relevant_QG
    return is_before_QG.sum(1)


def _recalls(ranks: dict[str, Tensor]) -> dict[str, float]:
    recalls = {}
    for way, ranks_Q in ranks.items():
        for k in CUTOFFS:
            share = float((ranks_Q < k).double().mean())
            recalls[f"{way}_r{k}"] = 100 * share
    return recalls | {"rsum": sum(recalls.values())}

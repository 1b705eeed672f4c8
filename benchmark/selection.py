"""Which epoch of a training is kept, and the validation figure that decides it.

Ranks are counted here with tensors, where the scores lie, by the rules of ranking.py: training
must not wait for the host, and a change to the evaluation must not make trainings stale.
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


def validation_recalls(scores_IC: Tensor, image_of_caption_C: Tensor) -> dict[str, float]:
    """R@1, R@5, R@10 of both directions in percent, and rsum; ties count against the method."""
    if not torch.isfinite(scores_IC).all():
        raise NotFiniteError("validation scores contain NaN or infinity")
    ranks = {
        "i2t": _image_ranks(scores_IC, image_of_caption_C),
        "t2i": _caption_ranks(scores_IC, image_of_caption_C),
    }
    recalls = {
        f"{way}_r{k}": 100 * float((found < k).double().mean())
        for way, found in ranks.items()
        for k in CUTOFFS
    }
    return recalls | {"rsum": sum(recalls.values())}


def _matched(scores_IC: Tensor, image_of_caption_C: Tensor) -> Tensor:
    return scores_IC.gather(0, image_of_caption_C[None, :])[0]


def _caption_ranks(scores_IC: Tensor, image_of_caption_C: Tensor) -> Tensor:
    """Images that score at least what the caption's own does, itself not counted."""
    return (scores_IC >= _matched(scores_IC, image_of_caption_C)).sum(0) - 1


def _image_ranks(scores_IC: Tensor, image_of_caption_C: Tensor) -> Tensor:
    """Captions of other images that score at least what the image's best caption does."""
    matched_C = _matched(scores_IC, image_of_caption_C)
    best_I = torch.full_like(scores_IC[:, 0], -torch.inf)
    best_I = best_I.scatter_reduce(0, image_of_caption_C, matched_C, "amax")
    own_C = (matched_C >= best_I[image_of_caption_C]).long()
    own_I = torch.zeros_like(best_I, dtype=torch.int64).scatter_add(0, image_of_caption_C, own_C)
    return (scores_IC >= best_I[:, None]).sum(1) - own_I

"""The rule for ties, in one place, and what another one would give. Imports no torch:
arrays, tensors and columns of a table are compared alike.

Code that counts ranks calls `stands_before`, and code that orders items `comes_last`.
To let ties count for the method everywhere, reverse both, and let `by_other_rule` say
what `stands_before` says today.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Scores = TypeVar("Scores")  # an array, a tensor or a column of a table
Mask = TypeVar("Mask")


def stands_before(scores: Scores, relevant: Scores) -> Mask:
    """Whether items with these scores stand before a relevant item with that score.

    Ties count against the method: among equal scores the relevant item comes last. The
    item itself is among those that reach its score, and is not counted by the caller.
    """
    return scores >= relevant


def by_other_rule(scores: Scores, relevant: Scores) -> Mask:
    """The same if ties counted for the method: only greater scores stand before it."""
    return scores > relevant


def comes_last(is_relevant: Mask) -> Mask:
    """Which of items with equal scores come last."""
    return is_relevant


@dataclass(frozen=True, eq=False)
class TiedItems:
    """How many items have the score of a query's best relevant item, (Q,) each."""

    before: np.ndarray  # items of a greater score
    relevant: np.ndarray  # of that score, 1 or more
    others: np.ndarray  # of that score, and not relevant

    def recalls_at(self, k: int) -> tuple[float, float, float]:
        """R@K in percent if ties are misses, as hits, and its mean over all orders of
        the tied items, each as probable as another."""
        misses_Q = self.before + self.others < k
        hits_Q = self.before < k
        return tuple(
            100 * float(of_Q.mean()) for of_Q in (misses_Q, hits_Q, self._found(k))
        )

    def _found(self, k: int) -> np.ndarray:
        """The probability that a relevant item is among the first k, (Q,): 1 - C(others,
        n) / C(others + relevant, n), where n of the k places are left for tied
        items."""
        missed_Q = np.ones(len(self.before))
        for place in range(k):  # among the tied items
            others_Q = np.maximum(self.others - place, 0)
            items_Q = others_Q + self.relevant
            is_among_k = self.before + place < k
            missed_Q *= np.where(is_among_k, others_Q / items_Q, 1.0)
        return 1 - missed_Q

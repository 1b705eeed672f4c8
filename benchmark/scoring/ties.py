"""The rule for ties, in one place. Knows no torch: arrays, tensors and columns of a
table are compared alike."""

from typing import TypeVar

Scores = TypeVar("Scores")  # an array, a tensor or a column of a table
Mask = TypeVar("Mask")


def stands_before(scores: Scores, relevant: Scores) -> Mask:
    """Whether items with these scores stand before a relevant item with that score.

    Ties count against the method: among equal scores the relevant item comes last. The
    item itself is among those that reach its score, and is not counted by the caller.
    """
    return scores >= relevant

"""Splits by the sha256 of names: the same name has the same place in every folder."""

import hashlib
from collections.abc import Mapping

import pandas as pd

from benchmark.core.errors import UserError

# of the range of the hash
SHARES = {"train": (0.0, 0.8), "val": (0.8, 0.9), "test": (0.9, 1.0)}


def split_by_hash(groups: list[str]) -> tuple[list[str], list[str]]:
    """The split of each image, given the name of its group, and notes.

    `groups` must have at least three different names. The split of a group does not
    depend on the other groups; only if a split would be empty, the group of the largest
    split whose hash is nearest to its middle moves there.
    """
    split_of = {group: _split_at(_position(group)) for group in groups}
    notes = [
        "The annotations name no split: 80/10/10 percent by the sha256 of the path "
        "(of the group, where one is named)."
    ]
    empty = SHARES.keys() - set(split_of.values())
    for split in sorted(empty, key=list(SHARES).index):
        members = list(split_of.values())
        largest = max(SHARES, key=members.count)
        candidates = [group for group, other in split_of.items() if other == largest]
        middle = sum(SHARES[split]) / 2
        distances = {group: abs(_position(group) - middle) for group in candidates}
        split_of[min(candidates, key=distances.__getitem__)] = split
    if empty:
        notes.append(
            f"{len(empty)} moved to a neighbouring split, which would have been empty."
        )
    return [split_of[group] for group in groups], notes


def _split_at(position: float) -> str:
    """The split with this part of the hash's range."""
    for split, (_, end) in SHARES.items():
        if position < end:
            return split
    raise AssertionError(position)


def with_taken(
    known: pd.Series, groups: pd.Series, numbers: Mapping[str, int]
) -> pd.Series:
    """The splits after groups of train were taken for other splits. Images that are
    not of train stay where they are, also those of a group that was taken.

    known    the split of each image
    groups   the group of each image
    numbers  split -> how many groups it takes; the first one has the highest hashes

    Raises UserError where none is left to train on.
    """
    in_train = set(groups[known == "train"])
    order = sorted(in_train, key=_position, reverse=True)
    if len(order) <= sum(numbers.values()):
        where = f"folder: option {' and '.join(reversed(numbers))}"
        least = " + ".join(map(str, reversed(numbers.values())))
        raise UserError(
            where,
            expected=f"more than {least} images or groups in train",
            found=len(order),
            do="lower the option",
        )
    split_of = {}
    start = 0
    for split, count in numbers.items():
        taken = order[start : start + count]
        split_of |= dict.fromkeys(taken, split)
        start += count
    moved = groups.map(split_of)
    return known.where((known != "train") | moved.isna(), moved)


def _position(name: str) -> float:
    """The hash of a name as a number in [0, 1)."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return int(digest[:12], 16) / 16**12

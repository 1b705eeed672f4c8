"""Splits by hash: their sizes, and that none of them is empty."""

from collections import Counter

import pandas as pd
import pytest
from refusals import refused

from benchmark.readers import hash_splits


def by_hash(count: int, prefix: str = "") -> dict[str, str]:
    files = [f"{prefix}{number}.png" for number in range(count)]
    return dict(zip(files, hash_splits.split_by_hash(files)[0], strict=True))


def test_split_by_hash_is_80_10_10():
    counts = Counter(by_hash(5000).values())
    assert [counts[split] for split in ("train", "val", "test")] == pytest.approx(
        [4000, 500, 500], abs=80
    )


@pytest.mark.parametrize("count", range(3, 30))
def test_split_by_hash_leaves_no_split_empty(count):
    for prefix in "abcde":
        assert set(by_hash(count, prefix).values()) == {"train", "val", "test"}


def test_groups_are_taken_from_train_by_the_highest_hashes():
    groups = pd.Series(["a", "a", "b", "c", "d", "e"])
    known = pd.Series(["train"] * 5 + ["test"])
    one = hash_splits.with_taken(known, groups, {"val": 1})
    two = hash_splits.with_taken(known, groups, {"test": 1, "val": 1})
    assert groups[one == "val"].nunique() == 1
    # the first split has the highest hash, whatever it is called
    assert set(groups[two == "test"]) == {"e", *groups[one == "val"]}
    assert two.isin(["train", "val", "test"]).all()
    # what is no training image stays, whatever becomes of its group
    others = pd.Series(["train", "test", "train", "unused", "train"])
    shared = pd.Series(["a", "a", "b", "b", "c"])
    all_but_one = hash_splits.with_taken(others, shared, {"val": 2})
    assert all_but_one[[1, 3]].tolist() == ["test", "unused"]
    assert sorted(all_but_one[[0, 2, 4]]) == ["train", "val", "val"]
    with refused("val and test", "more than 2 + 2", "4"):
        hash_splits.with_taken(known, groups, {"test": 2, "val": 2})

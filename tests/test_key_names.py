"""What keys of annotation files say, by their names."""

import pytest
from refusals import refused

from benchmark.core.errors import UserError
from benchmark.readers import key_names


@pytest.mark.parametrize(
    ("key", "role"),
    [
        ("image", "image"),
        (" File_Name ", "image"),
        ("Partition", "split"),
        ("COCO id", "image_id"),
        ("img-id", "image_id"),
        ("id", "id"),
        ("text", ""),
        ("splits", ""),
    ],
)
def test_the_role_of_a_key(key, role):
    assert key_names.role_of(key) == role


def test_captions_in_numbered_columns_come_in_the_order_of_numbers():
    keys = ["caption_10", "image", "caption_9", "Caption"]
    assert key_names.caption_keys(keys, "x") == ["Caption", "caption_9", "caption_10"]
    assert key_names.caption_keys(["raw 2", "raw 01"], "x") == ["raw 01", "raw 2"]
    huge = ["caption_" + "9" * 5000, "caption_1"]  # more digits than int() reads
    assert key_names.caption_keys(huge, "x") == huge[::-1]


def test_one_name_of_captions_is_chosen_or_none():
    assert key_names.caption_keys(["raw", "caption", "text"], "x") == ["caption"]
    with refused("x: caption", found="both (raw and text)"):
        key_names.caption_keys(["raw", "text"], "x")
    with refused("x: caption", found="neither, but image"):
        key_names.caption_keys(["image"], "x")


@pytest.mark.parametrize("keys", [["caption", "Caption"], ["caption_1", "caption 1"]])
def test_keys_that_may_have_the_same_captions_are_refused(keys):
    with refused("x: caption", "every key once", keys[1]):
        key_names.caption_keys(keys, "x")


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("data/validation-00000-of-00001.parquet", "validation"),
        ("train/test.csv", "test"),
        ("contest/latest.csv", None),
        ("Dev", "dev"),
    ],
)
def test_the_last_word_of_a_path_names_the_split(path, split):
    assert key_names.split_of_path(path) == split


def test_splits_are_the_same_in_other_words():
    assert key_names.is_same("split", " Validation", "val")
    assert not key_names.is_same("group", "validation", "val")
    assert key_names.our_split("restval") == "train"


def test_nothing_is_named_where_nothing_is():
    with pytest.raises(UserError) as refusal:
        key_names.caption_keys([], "x")
    assert refusal.value.found == "neither"

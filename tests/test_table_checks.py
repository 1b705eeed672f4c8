"""Checks of tables, boxes and pictures: each fault is one line that names the item."""

import dataclasses
import math

import pandas as pd
import pytest
from PIL import Image
from refusals import refused

from benchmark.contracts.datasets import Card, Tables
from benchmark.prepare.leakage import measure
from benchmark.prepare.table_checks import check_boxes, check_tables

CARD = Card(title="T", source="S", licence="L", split="own", may_publish=True)


def tables(**rows: list[dict]) -> Tables:
    """A caption per split; image "train" has two phrases."""
    splits = ["train", "val", "test"]
    cat = {"image_id": "train", "caption_id": "t", "phrase": "a cat", "chain": "cat"}
    box = {"x0": 1.0, "y0": 2.0, "x1": 5.0, "y1": 6.0}
    records = {
        "images": [
            {"image_id": name, "file": name, "split": name, "group": name}
            for name in splits
        ],
        "captions": [
            {"caption_id": "t", "image_id": "train", "text": "A cat."},
            {"caption_id": "v", "image_id": "val", "text": "A dog."},
            {"caption_id": "s", "image_id": "test", "text": "A cow."},
        ],
        "regions": [cat | box, cat | box | {"phrase": "the animal"}],
    } | rows
    return Tables(**{name: pd.DataFrame(content) for name, content in records.items()})


def changed(table: str, row: int, **values: object) -> Tables:
    content = getattr(tables(), table).to_dict("records")
    content[row] |= values
    return tables(**{table: content})


def sized(width: int, height: int) -> pd.DataFrame:
    return tables().images.assign(width=width, height=height)


def test_sound_tables_pass():
    check_tables(tables(), CARD)
    check_boxes(tables().regions, sized(5, 6))


def test_an_unused_image_may_be_of_the_group_of_a_used_one():
    images = tables().images.to_dict("records")
    images.append({**images[0], "image_id": "other", "split": "unused"})
    check_tables(tables(images=images), CARD)


ONCE, UNKNOWN_IMAGE = "occurs once", "table of images"
FAULTS = [  # changed tables, and where, expected, found
    (changed("images", 1, image_id="train"), "image_id 'train'", ONCE, "a second row"),
    (changed("captions", 2, caption_id="t"), "caption_id 't'", ONCE, "a second row"),
    (
        changed("captions", 1, image_id="cow"),
        "caption_id 'v': image_id",
        UNKNOWN_IMAGE,
        "'cow'",
    ),
    (
        changed("captions", 0, text=" \n\t"),
        "caption_id 't': text",
        "a caption",
        "' ",
    ),
    (
        changed("images", 1, group="train"),
        "group 'train'",
        "one split",
        "train and val",
    ),
    (
        changed("regions", 0, image_id="cow"),
        "phrase 'a cat': image_id",
        UNKNOWN_IMAGE,
        "'cow'",
    ),
    (
        changed("regions", 0, caption_id="9"),
        "phrase 'a cat': caption_id",
        "a caption of",
        "'9'",
    ),
    (
        changed("regions", 0, phrase=" "),
        "caption_id 't': phrase",
        "not blank",
        "' '",
    ),
    (
        changed("regions", 1, chain=""),
        "caption_id 't': chain",
        "not blank",
        "''",
    ),
    (
        changed("regions", 1, image_id="val"),
        *(
            "phrase 'the animal': image_id",
            "the phrase's caption",
            "'val' (1 such",
        ),
    ),
    (
        changed("regions", 1, image_id="val", caption_id="v"),
        *(
            "phrase 'the animal': chain 'cat'",
            "one image",
            "another one (1 such in all)",
        ),
    ),
    (
        changed("regions", 1, x1=4.0),
        *(
            "phrase 'the animal': chain 'cat'",
            "one box",
            "another one (1 such in all)",
        ),
    ),
]


@pytest.mark.parametrize(("broken", "where", "expected", "found"), FAULTS)
def test_each_fault_of_tables_is_named(broken, where, expected, found):
    with refused(where, expected, found):
        check_tables(broken, CARD)


@pytest.mark.parametrize(
    ("counts", "where", "expected", "found"),
    [
        ({"expected_images": {"val": 2}}, "split val", "2 images", "1"),
        ({"expected_captions": {"test": 5}}, "split test", "5 captions", "1"),
        ({"expected_images": {"unused": 9}}, "split unused", "9 images", "0"),
    ],
)
def test_counts_are_those_of_the_card(counts, where, expected, found):
    check_tables(tables(), dataclasses.replace(CARD, expected_captions={"train": 1}))
    with refused(where, expected, found):
        check_tables(tables(), dataclasses.replace(CARD, **counts))


@pytest.mark.parametrize(
    "box",
    [
        {"x1": 1.0},
        {"x0": 5.5},
        {"y1": 2.0},
        {"y0": 7.0},
        {"x0": math.nan},
        {"y1": math.nan},
    ],
)
def test_a_box_without_area_is_named(box):
    regions = changed("regions", 1, **box).regions
    with refused(
        "image_id 'train': phrase 'the animal': box", "x0 < x1 and y0 < y1", "["
    ):
        check_boxes(regions, sized(50, 60))


@pytest.mark.parametrize("box", [{"x0": -3.0}, {"y0": -2.0}, {"x1": 9.0}, {"y1": 8.0}])
def test_a_box_outside_its_picture_is_named(box):
    regions = changed("regions", 0, **box).regions
    where = "image_id 'train': phrase 'a cat': box"
    with refused(where, "5 x 6", "] (1 such in all)"):
        check_boxes(regions, sized(5, 6))


def test_a_box_may_stick_out_by_the_pixel_that_annotations_disagree_on():
    check_boxes(changed("regions", 0, x0=-1.0, x1=6.0, y1=7.0).regions, sized(5, 6))


def test_of_an_image_without_a_picture_a_box_needs_an_area_alone():
    check_boxes(changed("regions", 0, x1=900.0).regions, sized(0, 0))
    with refused(expected="x0 < x1"):
        check_boxes(changed("regions", 0, x1=1.0).regions, sized(0, 0))


@pytest.mark.parametrize("value", [None, math.nan, 5])
def test_a_caption_that_is_no_text_is_named(value):
    with refused(": text", "a text", "(1 such in all)"):
        check_tables(changed("captions", 0, text=value), CARD)


def test_a_missing_group_is_named():
    with refused(": group", "a text", "(1 such in all)"):
        check_tables(changed("images", 0, group=None), CARD)


def test_a_picture_that_is_not_rgb_is_refused():
    with refused("a", "RGB", "mode L (1 such in all)"):
        measure(["a"], lambda file: Image.new("L", (2, 2)), "mine")


def test_the_difference_hash_is_that_of_its_definition():
    """Blocks of 10 x 10 equal pixels, so that shrinking does not mix them."""
    noise = Image.effect_noise((9, 8), 90)
    grey = [[noise.getpixel((x, y)) for x in range(9)] for y in range(8)]
    picture = noise.resize((90, 80), Image.Resampling.NEAREST).convert("RGB")
    facts = measure(["a"], lambda file: picture, "mine")[0]
    expected = [grey[y][x + 1] > grey[y][x] for y in range(8) for x in range(8)]
    assert sum(map(int, expected)) == int(facts.bits).bit_count()
    bits = [bool(byte & (128 >> k)) for byte in facts.bits.tobytes() for k in range(8)]
    assert bits == expected
    assert (facts.width, facts.height, facts.thumbnail.shape) == (90, 80, (16, 16, 3))

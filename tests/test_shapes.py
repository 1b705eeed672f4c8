"""The drawn dataset: the same every time, near-duplicates where promised, honest
boxes."""

from collections import Counter
from itertools import combinations, groupby, islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.contracts.datasets import shapes
from benchmark.contracts.datasets.shapes import Options

RAW = Path("unused")
SIZES = {"train": 60, "val": 20, "test": 40}


@pytest.fixture(scope="module")
def tables():
    return shapes.read(RAW, Options(**SIZES))


def differing_attributes(a, b):
    """ "count" and "place" concern whole things."""
    backdrop = [
        kind
        for kind in ("background", "texture")
        if getattr(a, kind) != getattr(b, kind)
    ]
    only_a = [thing for thing in a.things if thing not in b.things]
    only_b = [thing for thing in b.things if thing not in a.things]
    if not only_a or not only_b:
        return [*backdrop, *(["count"] if only_a or only_b else [])]
    if len(only_a) != 1 or len(only_b) != 1:
        return [*backdrop, "several things"]
    changed = [
        kind
        for kind in ("shape", "colour", "size", "pattern")
        if getattr(only_a[0], kind) != getattr(only_b[0], kind)
    ]
    positions = [(thing.row, thing.column) for thing in (only_a[0], only_b[0])]
    return [*backdrop, *changed, *(["place"] if positions[0] != positions[1] else [])]


def scene(*things, background="sky", texture="smooth"):
    return shapes.Scene(background=background, texture=texture, things=things)


def thing(shape="circle", colour="red", size="large", pattern="plain", column=1, row=1):
    return shapes.Thing(
        shape=shape, colour=colour, size=size, pattern=pattern, column=column, row=row
    )


# The same every time ------------------------------------------------------------------


def test_the_size_of_train_leaves_the_other_splits_alone(tables):
    larger = shapes.read(RAW, Options(**SIZES | {"train": 90}))
    for old, new in (
        (tables.images, larger.images),
        (tables.captions, larger.captions),
    ):
        pd.testing.assert_frame_equal(
            outside_train(tables, old), outside_train(larger, new)
        )


def outside_train(tables, table):
    """The rows of `table` that are about images of the other splits."""
    images = tables.images
    kept = images.loc[images["split"] != "train", "image_id"]
    return table[table["image_id"].isin(kept)]


# Near-duplicates ----------------------------------------------------------------------


def test_no_scene_occurs_twice_and_a_family_differs_in_one_attribute_and_stays_in_one_split():
    pairs, entries = Counter(), shapes.plan(Options(train=300, val=100, test=200))
    assert len({entry.scene for entry in entries}) == 600
    for _, members in groupby(entries, key=lambda entry: entry.family):
        family = list(members)
        assert 1 <= len(family) <= 4
        assert len({entry.split for entry in family}) == 1
        attributes = [
            differing_attributes(a.scene, b.scene) for a, b in combinations(family, 2)
        ]
        assert all(len(differing) == 1 for differing in attributes), attributes
        assert len({differing[0] for differing in attributes}) <= 1, attributes
        pairs.update(differing[0] for differing in attributes)
        pixels = {shapes.draw(entry.scene).tobytes() for entry in family}
        assert len(pixels) == len(family)
    expected = {
        "shape",
        "colour",
        "size",
        "pattern",
        "background",
        "texture",
        "place",
        "count",
    }
    assert set(pairs) == expected


# Pictures and boxes -------------------------------------------------------------------


def test_phrases_stand_in_their_captions(tables):
    regions = tables.regions.merge(
        tables.captions, on=["caption_id", "image_id"], how="left"
    )
    assert len(regions) == len(tables.regions) >= len(tables.captions)
    assert all(p in t for p, t in zip(regions["phrase"], regions["text"], strict=True))
    assert regions["phrase"].str.strip().ne("").all()


@pytest.mark.parametrize("shape", shapes.SHAPES)
@pytest.mark.parametrize("pattern", ["plain", "outlined"])
def test_a_box_is_tight(shape, pattern):
    for column, row, size in ((0, 2, "large"), (1, 1, "small")):
        lone = thing(shape=shape, pattern=pattern, size=size, column=column, row=row)
        drawn, bare = (np.asarray(shapes.draw(s)) for s in (scene(lone), scene()))
        y, x = np.nonzero((drawn != bare).any(axis=2))
        assert shapes.box(lone) == (x.min(), y.min(), x.max() + 1, y.max() + 1)


# What the captions say ----------------------------------------------------------------


@pytest.mark.parametrize("writer", range(5))
def test_writers_tell_no_lies_about_a_lone_thing(writer):
    rng = np.random.default_rng(0)
    told = scene(
        thing("star", "blue", "small", "striped"), background="sand", texture="lined"
    )
    wrong = {
        "red",
        "green",
        "heart",
        "moon",
        "big",
        "huge",
        "dotted",
        "two",
        "left",
        "top",
        "navy",
    }
    texts = [
        shapes._caption(told, shapes.WRITERS[writer], rng)[0].lower()
        for _ in range(200)
    ]
    words = [set(text.replace(".", "").replace(",", "").split()) for text in texts]
    assert not any(said & wrong for said in words)
    assert 20 < sum("blue" in said for said in words) < 200  # a part of the scene only


# Labels -------------------------------------------------------------------------------


def test_labelled_scenes_are_not_in_the_benchmark():
    stream = set(islice(shapes.labelled_scenes(0), 600))
    assert len(stream) > 580
    for seed in (0, 1):
        assert not stream & {entry.scene for entry in shapes.plan(Options(seed=seed))}
    assert all(not shapes._for_benchmark(s) for s in stream)  # whatever seeds and sizes

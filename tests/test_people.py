"""The drawn persons: the same every time, distinct by what is seen, described
truthfully."""

import re
from collections import Counter
from dataclasses import replace
from itertools import combinations, groupby
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.contracts.datasets import people
from benchmark.contracts.datasets.people import (
    NONE,
    VALUES,
    Options,
    draw,
    draw_person,
    draw_view,
    visible,
)
from benchmark.readers.drawn import others

RAW = Path("unused")
SIZES = {"train": 30, "val": 10, "test": 20}


@pytest.fixture(scope="module")
def tables():
    return people.read(RAW, Options(**SIZES))


def view(**changes):
    """A view that shows everything, without noise and in plain light."""
    plain = draw_view(np.random.default_rng(0), whole=True)
    return replace(plain, **{"light": (1.0, 1.0, 1.0), "noise": 0.0} | changes)


def person(**changes):
    # every colour is another one
    values = {
        "build": "average",
        "skin": "light",
        "hair": "ginger",
        "hair_length": "long",
        "hat": "beanie",
        "hat_colour": "yellow",
        "glasses": "glasses",
        "top_colour": "purple",
        "pattern": "checked",
        "sleeves": "long",
        "lower": "shorts",
        "lower_colour": "green",
        "shoes": "white",
        "bag": "handbag",
        "bag_colour": "blue",
    }
    return people.Person(**values | changes)


# The same every time ------------------------------------------------------------------


def test_other_sizes_of_train_and_val_leave_the_test_split_alone(tables):
    options = Options(**SIZES | {"train": 35, "val": 4})
    other, open_other = people.read(RAW, options), people.pictures(RAW, options)
    open_picture = people.pictures(RAW, Options(**SIZES))
    test = tables.images[tables.images["split"] == "test"]
    pd.testing.assert_frame_equal(test, other.images[other.images["split"] == "test"])
    old, new = (
        t.captions[t.captions["image_id"].isin(test["image_id"])]
        for t in (tables, other)
    )
    pd.testing.assert_frame_equal(old, new)
    for file in test["file"]:
        assert open_picture(file).tobytes() == open_other(file).tobytes()


def test_every_image_has_two_different_captions_that_say_something(tables):
    captions = tables.captions
    assert captions["caption_id"].is_unique
    assert (captions["text"].str.strip() == captions["text"]).all()
    assert captions["text"].str.contains("[a-z]").all()
    by_image = captions.groupby("image_id")["text"]
    assert set(by_image.groups) == set(tables.images["image_id"])
    assert set(by_image.size()) == set(by_image.nunique()) == {2}


# Persons ------------------------------------------------------------------------------


def differing(a, b):
    kinds = [kind for kind in VALUES if getattr(a, kind) != getattr(b, kind)]
    # the colour of a hat or bag comes with it
    return [k for k in kinds if k.removesuffix("_colour") not in set(kinds) - {k}]


def test_nobody_occurs_twice_and_a_family_differs_in_one_attribute_and_stays_in_one_split():
    seen, entries = Counter(), people.plan(Options(train=200, val=50, test=100))
    persons = {e.group: e.person for e in entries}
    assert len(persons) == len(set(persons.values())) == 350
    for _, members in groupby(entries, key=lambda e: e.family):
        members = list(members)
        family = {e.group: e.person for e in members}.values()
        assert 1 <= len(family) <= 4 and len({e.split for e in members}) == 1
        attributes = [differing(a, b) for a, b in combinations(family, 2)]
        assert all(len(kinds) == 1 for kinds in attributes), attributes
        assert len({kinds[0] for kinds in attributes}) <= 1, attributes
        seen.update(kinds[0] for kinds in attributes)
    assert len(seen) >= 12


# Pictures -----------------------------------------------------------------------------


def clearly_different_pixels(a, b):
    return int((np.abs(np.asarray(a, int) - np.asarray(b, int)).max(axis=2) > 24).sum())


@pytest.mark.parametrize("kind", VALUES)
def test_a_change_shows_where_it_is_visible_and_nowhere_else(kind):
    rng = np.random.default_rng(1)
    hidden = 0
    for _ in range(15):
        someone, how = draw_person(rng), replace(draw_view(rng, whole=False), noise=0.0)
        if getattr(someone, kind) == NONE and kind.endswith("_colour"):
            continue
        value = others(VALUES[kind], getattr(someone, kind), rng)[0]
        other = people._changed(someone, kind, value, rng)
        difference = clearly_different_pixels(draw(someone, how), draw(other, how))
        if kind in visible(someone, how):
            assert difference > 12, (someone, other, how)
        else:
            hidden += 1
            assert difference == 0
    assert (hidden > 0) == (kind in ("glasses", "shoes"))


# What the captions say ----------------------------------------------------------------


def test_what_cannot_be_seen_is_not_told():
    rng = np.random.default_rng(0)
    how = view(facing="back", cut=True)
    texts = [
        people._caption(person(), how, w, rng)
        for w in people.WRITERS
        for _ in range(100)
    ]
    words = set(re.findall(r"[a-z]+", " ".join(texts).lower()))
    assert not words & {
        "glasses",
        "spectacles",
        "shoes",
        "sneakers",
        "trainers",
        "white",
    }
    assert {"hair", "beanie", "shorts", "handbag"} <= words

"""The drawn dataset: the same every time, near-duplicates where promised, honest boxes."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, groupby, islice
from pathlib import Path

import forks
import numpy as np
import pandas as pd
import pytest
from refusals import refused

from datasets import shapes
from datasets.shapes import Options
from datasets.shared import scene_drawing as drawing

RAW = Path("unused")
SIZES = {"train": 60, "val": 20, "test": 40}
FINGERPRINT = """
import hashlib
from pathlib import Path
from datasets import shapes
sizes = shapes.Options(train=60, val=20, test=40)
tables = shapes.read(Path("unused"), sizes)
open_picture = shapes.pictures(Path("unused"), sizes)
digest = hashlib.sha256()
for table in (tables.images, tables.captions, tables.regions):
    digest.update(table.to_csv().encode())
for file in tables.images["file"]:
    digest.update(open_picture(file).tobytes())
for picture, label in shapes.labelled(20, 0):
    digest.update(picture.tobytes() + label.tobytes())
print(digest.hexdigest())
"""


@pytest.fixture(scope="module")
def tables():
    return shapes.read(RAW, Options(**SIZES))


@pytest.fixture(scope="module")
def open_picture():
    return shapes.pictures(RAW, Options(**SIZES))


@pytest.fixture(scope="module")
def entries():
    return shapes.plan(Options(**SIZES))


def differing_attributes(a, b):
    """The attributes in which two scenes differ; "count" and "place" concern whole things."""
    backdrop = [kind for kind in ("background", "texture") if getattr(a, kind) != getattr(b, kind)]
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
    return drawing.Scene(background=background, texture=texture, things=things)


def thing(shape="circle", colour="red", size="large", pattern="plain", column=1, row=1):
    return drawing.Thing(
        shape=shape, colour=colour, size=size, pattern=pattern, column=column, row=row
    )


# The same every time -----------------------------------------------------------------------


@pytest.mark.slow
def test_another_process_makes_the_same_dataset():
    first, second = forks.with_two_hash_seeds(FINGERPRINT)
    assert first == second
    assert len(first.strip()) == 64


def test_a_second_call_makes_the_same_tables(tables):
    shapes.plan.cache_clear()
    again = shapes.read(RAW, Options(**SIZES))
    for name in ("images", "captions", "regions"):
        pd.testing.assert_frame_equal(getattr(tables, name), getattr(again, name))


def test_the_seed_matters(tables):
    other = shapes.read(RAW, Options(**SIZES, seed=1))
    assert (tables.captions["text"] != other.captions["text"]).mean() > 0.9
    assert not {e.scene for e in shapes.plan(Options(**SIZES, seed=1))} & {
        e.scene for e in shapes.plan(Options(**SIZES))
    }


def test_the_size_of_train_leaves_the_other_splits_alone(tables):
    larger = shapes.read(RAW, Options(**SIZES | {"train": 90}))
    for old, new in ((tables.images, larger.images), (tables.captions, larger.captions)):
        pd.testing.assert_frame_equal(outside_train(tables, old), outside_train(larger, new))


def outside_train(tables, table):
    """The rows of `table` that are about images of the other splits."""
    images = tables.images
    kept = images.loc[images["split"] != "train", "image_id"]
    return table[table["image_id"].isin(kept)]


# The contract of Tables --------------------------------------------------------------------


def test_splits_have_the_sizes_that_were_asked_for(tables):
    assert tables.images["split"].value_counts().to_dict() == SIZES


def test_default_sizes():
    splits = Counter(entry.split for entry in shapes.plan(Options()))
    assert splits == {"train": 1500, "val": 250, "test": 500}
    assert Options() == Options(train=1500, val=250, test=500, seed=0)


def test_images_are_named_once_and_are_their_own_group(tables):
    images = tables.images
    assert images["image_id"].is_unique
    assert images["image_id"].str.fullmatch(r"shapes-\d{6}").all()
    assert (images["file"] == images["image_id"]).all()
    assert (images["group"] == images["image_id"]).all()


def test_every_image_has_five_captions_that_say_something(tables):
    captions = tables.captions
    assert captions["caption_id"].is_unique
    assert (captions["text"].str.strip() == captions["text"]).all()
    assert captions["text"].str.contains("[a-z]").all()
    counts = captions["image_id"].value_counts()
    assert set(counts.index) == set(tables.images["image_id"])
    assert set(counts) == {5}


def test_captions_are_ascii_and_free_of_joining_faults(tables):
    text = tables.captions["text"]
    assert text.map(str.isascii).all()
    assert not text.str.contains(r"  | ,| :| \.|\.\.|,\.|\b[Aa] [aeiou]|\ban [^aeiou]").any()


def test_vocabulary_has_the_size_of_a_small_language():
    text = shapes.read(RAW, Options(train=500)).captions["text"].str.lower()
    assert 120 <= len(set(text.str.findall(r"[a-z0-9]+").explode())) <= 250


def test_inventory_is_empty(tmp_path):
    assert shapes.inventory(tmp_path, Options(**SIZES, seed=3)) == []


@pytest.mark.parametrize(
    "option",
    [{"train": -3}, {"val": 0}, {"test": 2.5}, {"train": True}, {"val": "9"}, {"seed": -1}],
)
def test_bad_options_are_refused(option):
    ((name, value),) = option.items()
    with refused(f"shapes: option {name}", "a whole number of at least", repr(value)):
        Options(**{"train": 1, "val": 1, "test": 1} | option)


# Near-duplicates ---------------------------------------------------------------------------


def test_no_scene_occurs_twice():
    entries = shapes.plan(Options(train=300, val=100, test=200))
    assert len({entry.scene for entry in entries}) == 600


def test_shifting_a_thing_makes_no_other_scene():
    shifted = drawing.Thing(**{**vars(thing()), "shift": (2, -1)})
    assert scene(shifted) == scene(thing())
    assert drawing.draw(scene(shifted)) != drawing.draw(scene(thing()))


def test_a_family_differs_in_one_attribute_and_stays_in_one_split():
    pairs = Counter()
    for _, members in groupby(
        shapes.plan(Options(train=300, val=100, test=200)), key=lambda entry: entry.family
    ):
        family = list(members)
        assert 1 <= len(family) <= 4
        assert len({entry.split for entry in family}) == 1
        attributes = [differing_attributes(a.scene, b.scene) for a, b in combinations(family, 2)]
        assert all(len(differing) == 1 for differing in attributes), attributes
        assert len({differing[0] for differing in attributes}) <= 1, attributes
        pairs.update(differing[0] for differing in attributes)
        pixels = {drawing.draw(entry.scene).tobytes() for entry in family}
        assert len(pixels) == len(family)
    expected = {"shape", "colour", "size", "pattern", "background", "texture", "place", "count"}
    assert set(pairs) == expected


def test_about_half_of_the_scenes_have_relatives():
    sizes = Counter(entry.family for entry in shapes.plan(Options()))
    share = sum(size for size in sizes.values() if size > 1) / 2250
    assert 0.42 < share < 0.58


def test_colours_vary_among_their_likes_first():
    rng = np.random.default_rng(0)
    assert set(drawing._others("colour", "black", rng)[:2]) == {"grey", "white"}


# Pictures and boxes ------------------------------------------------------------------------


def test_pictures_are_96_by_96_rgb(tables, open_picture):
    picture = open_picture(tables.images["file"].iloc[0])
    assert (picture.size, picture.mode) == ((96, 96), "RGB")


def test_an_unknown_picture_is_refused(open_picture):
    with refused("shapes", "shapes-000000 to shapes-000119", "'shapes-000120'"):
        open_picture("shapes-000120")


def test_phrases_stand_in_their_captions(tables):
    regions = tables.regions.merge(tables.captions, on=["caption_id", "image_id"], how="left")
    assert len(regions) == len(tables.regions) >= len(tables.captions)
    assert all(p in t for p, t in zip(regions["phrase"], regions["text"], strict=True))
    assert regions["phrase"].str.strip().ne("").all()


def test_boxes_show_something_other_than_background(tables, open_picture, entries):
    scenes = {entry.image_id: entry.scene for entry in entries}
    for row in tables.regions.itertuples():
        assert 0 <= row.x0 < row.x1 <= 96 and 0 <= row.y0 < row.y1 <= 96
        whole = scenes[row.image_id]
        bare = scene(background=whole.background, texture=whole.texture)
        box = (row.x0, row.y0, row.x1, row.y1)
        changed = pixels(open_picture(row.image_id), box) != pixels(drawing.draw(bare), box)
        assert changed.any(axis=2).mean() > 0.05


def pixels(picture, box):
    return np.asarray(picture.crop(box))


@pytest.mark.parametrize("shape", drawing.SHAPES)
@pytest.mark.parametrize("pattern", ["plain", "outlined"])
def test_a_box_is_tight(shape, pattern):
    for column, row, size in ((0, 2, "large"), (1, 1, "small")):
        lone = thing(shape=shape, pattern=pattern, size=size, column=column, row=row)
        drawn, bare = (np.asarray(drawing.draw(s)) for s in (scene(lone), scene()))
        y, x = np.nonzero((drawn != bare).any(axis=2))
        assert drawing.box(lone) == (x.min(), y.min(), x.max() + 1, y.max() + 1)


def test_a_phrase_for_two_things_has_their_common_box():
    left, right = thing(column=0), thing(column=2)
    a, b = drawing.box(left), drawing.box(right)
    assert shapes._union((right, left)) == (a[0], a[1], b[2], b[3])


def things_of(entries, chain):
    """The things whose places a chain gives: "shapes-000003/0+2" is the first and the third."""
    image_id, places = chain.split("/")
    (whole,) = [entry.scene for entry in entries if entry.image_id == image_id]
    return [whole.things[int(place)] for place in places.split("+")]


def test_a_chain_names_the_things_of_its_box(tables, entries):
    for row in tables.regions.drop_duplicates("chain").itertuples():
        assert row.chain.startswith(f"{row.image_id}/")
        x0, y0, x1, y1 = zip(*map(drawing.box, things_of(entries, row.chain)), strict=True)
        assert (row.x0, row.y0, row.x1, row.y1) == (min(x0), min(y0), max(x1), max(y1))


def test_a_chain_has_as_many_things_as_its_phrases_count(tables, entries):
    numbers = {"one": 1, "1": 1, "two": 2, "2": 2, "three": 3, "3": 3, "four": 4, "4": 4}
    counts = tables.regions["phrase"].str.lower().str.split().str[0].map(numbers)
    counted = tables.regions.assign(count=counts).dropna(subset="count")
    assert set(counted["count"]) == {1, 2, 3, 4}
    for row in counted.itertuples():
        assert len(set(things_of(entries, row.chain))) == row.count


def test_phrases_of_one_chain_have_one_box_in_one_image(tables):
    chains = tables.regions.groupby("chain")
    assert (chains[["image_id", "x0", "y0", "x1", "y1"]].nunique() == 1).all(axis=None)
    assert (chains["caption_id"].nunique() > 1).mean() > 0.3  # several writers name one thing


def test_different_chains_of_an_image_have_different_things(tables, entries):
    chains = tables.regions.drop_duplicates("chain")
    for _, rows in chains.groupby("image_id"):
        assert len({frozenset(things_of(entries, chain)) for chain in rows["chain"]}) == len(rows)
        single = rows[~rows["chain"].str.contains("+", regex=False)]
        assert not single.duplicated(["x0", "y0", "x1", "y1"]).any()
    assert chains["chain"].str.contains("+", regex=False).any()


def test_things_hardly_overlap(entries):
    assert not any(drawing.crowded(entry.scene) for entry in entries)
    assert drawing.crowded(scene(thing(column=0), thing(column=1)))


@pytest.mark.parametrize("kind", drawing.VALUES)
def test_every_value_of_an_attribute_looks_its_own_way(kind):
    values = drawing.VALUES[kind]
    if kind in ("background", "texture"):
        drawn = [drawing.draw(scene(**{kind: value})) for value in values]
    else:
        drawn = [drawing.draw(scene(thing(**{kind: value}))) for value in values]
    for a, b in combinations(drawn, 2):
        gap = np.abs(np.asarray(a, int) - np.asarray(b, int)).max(axis=2)
        assert (gap > 24).sum() > 50


# What the captions say ---------------------------------------------------------------------


@pytest.mark.parametrize("writer", range(5))
def test_writers_vary_their_beginnings(tables, writer):
    texts = tables.captions["text"][writer::5].str.lower()
    two_words = texts.str.split().map(lambda words: tuple(words[:2]))
    assert two_words.value_counts(normalize=True).max() < 0.35


@pytest.mark.parametrize("writer", range(5))
def test_writers_tell_no_lies_about_a_lone_thing(writer):
    rng = np.random.default_rng(0)
    told = scene(thing("star", "blue", "small", "striped"), background="sand", texture="lined")
    wrong = {"red", "green", "heart", "moon", "big", "huge", "dotted", "two", "left", "top", "navy"}
    texts = [shapes._caption(told, shapes.WRITERS[writer], rng)[0].lower() for _ in range(200)]
    words = [set(text.replace(".", "").replace(",", "").split()) for text in texts]
    assert not any(said & wrong for said in words)
    assert 20 < sum("blue" in said for said in words) < 200  # a part of the scene only


def test_sides_are_those_of_the_beholder():
    rng = np.random.default_rng(0)
    a, b = thing(column=0, row=1), thing(column=2, row=1)
    assert all("left" in shapes._relation(a, b, rng) for _ in range(20))
    assert all("right" in shapes._relation(b, a, rng) for _ in range(20))
    high, low = thing(row=0), thing(row=2)
    assert {shapes._relation(high, low, rng) for _ in range(50)} == {"above", "over", "higher than"}
    assert {shapes._relation(low, high, rng) for _ in range(50)} == {"below", "under"}


def test_counts_are_right():
    rng = np.random.default_rng(0)
    stars = [thing("star", column=c, size="small") for c in range(3)]
    piece = shapes._counted(shapes._alike(scene(*stars, thing(row=0)), "shape")[0], "shape", rng)
    assert piece.text in ("three stars", "3 stars")
    assert piece.things == tuple(stars)


# Labels ------------------------------------------------------------------------------------


def test_labels_are_the_things_and_its_scenes():
    star = thing("star", "blue")
    whole = scene(star, thing("moon", "red"))
    labels = dict(zip(shapes.KINDS, shapes.labels(whole, star), strict=True))
    assert {kind: shapes.VALUES[kind][i] for kind, i in labels.items()} == {
        "shape": "star",
        "colour": "blue",
        "size": star.size,
        "pattern": star.pattern,
        "background": whole.background,
        "texture": whole.texture,
    }


def test_close_ups_show_the_whole_thing():
    rng = np.random.default_rng(0)
    for whole in islice(shapes.labelled_scenes(3), 100):
        for shown in whole.things:
            picture = shapes.close_up(whole, shown, rng)
            assert picture.size == (shapes.CLOSE_UP, shapes.CLOSE_UP)
            # Without the thing, the same part of the scene looks different.
            rest = replace(whole, things=tuple(t for t in whole.things if t is not shown))
            x0, y0, x1, y1 = drawing.box(shown)
            changed = np.any(
                np.asarray(drawing.draw(whole)) != np.asarray(drawing.draw(rest)), axis=2
            )
            assert changed.sum() == changed[y0:y1, x0:x1].sum() > 0
            assert max(x1 - x0, y1 - y0) + shapes.JITTER <= shapes.CLOSE_UP


def test_labelled_gives_as_many_as_asked_and_the_same_again():
    first, second = (list(shapes.labelled(50, 7)) for _ in range(2))
    assert len(first) == 50
    for (a, x), (b, y) in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes() and (x == y).all() and x.dtype == np.int64


def test_labelled_scenes_are_not_in_the_benchmark():
    stream = set(islice(shapes.labelled_scenes(0), 3000))
    assert len(stream) > 2900
    for seed in (0, 1):
        assert not stream & {entry.scene for entry in shapes.plan(Options(seed=seed))}
    assert all(not shapes._for_benchmark(s) for s in stream)  # whatever seeds and sizes


@pytest.mark.parametrize("count, seed, name", [(0, 0, "count"), (2.0, 0, "count"), (3, -1, "seed")])
def test_labelled_refuses_bad_numbers_at_once(count, seed, name):
    with refused(f"shapes: option {name}", "a whole number"):
        shapes.labelled(count, seed)

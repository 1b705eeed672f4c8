"""The drawn persons: the same every time, told apart by what is seen, described truthfully."""

import re
import time
from collections import Counter
from dataclasses import asdict, replace
from itertools import combinations, groupby
from pathlib import Path

import forks
import numpy as np
import pandas as pd
import pytest
from refusals import refused

from datasets import people
from datasets.people import Options
from datasets.shared import people_drawing
from datasets.shared.people_drawing import NONE, VALUES, draw, draw_person, draw_view, visible

RAW = Path("unused")
SIZES = {"train": 30, "val": 10, "test": 20}
FINGERPRINT = """
import hashlib
from pathlib import Path
from datasets import people
sizes = people.Options(train=30, val=10, test=20)
tables = people.read(Path("unused"), sizes)
open_picture = people.pictures(Path("unused"), sizes)
digest = hashlib.sha256()
for table in (tables.images, tables.captions):
    digest.update(table.to_csv().encode())
for file in tables.images["file"]:
    digest.update(open_picture(file).tobytes())
print(digest.hexdigest())
"""


@pytest.fixture(scope="module")
def tables():
    return people.read(RAW, Options(**SIZES))


@pytest.fixture(scope="module")
def entries():
    return people.plan(Options(**SIZES))


@pytest.fixture(scope="module")
def open_picture():
    return people.pictures(RAW, Options(**SIZES))


def view(**changes):
    """A view that shows everything, without noise and in plain light."""
    plain = draw_view(np.random.default_rng(0), whole=True)
    return replace(plain, **{"light": (1.0, 1.0, 1.0), "noise": 0.0} | changes)


def person(**changes):
    """Somebody of whom every colour is another one."""
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
    return people_drawing.Person(**values | changes)


# The same every time -----------------------------------------------------------------------


@pytest.mark.slow
def test_another_process_makes_the_same_dataset():
    first, second = forks.with_two_hash_seeds(FINGERPRINT)
    assert first == second
    assert len(first.strip()) == 64


def test_a_second_call_makes_the_same_tables(tables):
    people.plan.cache_clear()
    again = people.read(RAW, Options(**SIZES))
    pd.testing.assert_frame_equal(tables.images, again.images)
    pd.testing.assert_frame_equal(tables.captions, again.captions)


def test_the_seed_matters(entries):
    other = {entry.person for entry in people.plan(Options(**SIZES, seed=1))}
    assert not other & {entry.person for entry in entries}


def test_other_sizes_of_train_and_val_leave_the_test_split_alone(tables, open_picture):
    options = Options(**SIZES | {"train": 35, "val": 4})
    other, open_other = people.read(RAW, options), people.pictures(RAW, options)
    test = tables.images[tables.images["split"] == "test"]
    pd.testing.assert_frame_equal(test, other.images[other.images["split"] == "test"])
    old, new = (t.captions[t.captions["image_id"].isin(test["image_id"])] for t in (tables, other))
    pd.testing.assert_frame_equal(old, new)
    for file in test["file"]:
        assert open_picture(file).tobytes() == open_other(file).tobytes()


# The contract of Tables --------------------------------------------------------------------


def test_splits_have_as_many_persons_as_asked_for(tables):
    assert tables.images.groupby("split")["group"].nunique().to_dict() == SIZES


def test_default_sizes():
    persons = {entry.group: entry.split for entry in people.plan(Options())}
    assert Counter(persons.values()) == {"train": 260, "val": 40, "test": 80}
    assert Options() == Options(train=260, val=40, test=80, seed=0)


def test_images_and_persons_are_named_once_and_in_order(tables):
    images = tables.images
    assert images["image_id"].tolist() == [f"people-{i:06d}" for i in range(len(images))]
    assert (images["file"] == images["image_id"]).all()
    assert images["group"].drop_duplicates().tolist() == [f"person-{i:04d}" for i in range(60)]


def test_a_person_has_two_to_four_images_in_one_split(tables):
    by_person = tables.images.groupby("group")
    assert set(by_person.size()) == {2, 3, 4}
    assert (by_person["split"].nunique() == 1).all()


def test_every_image_has_two_different_captions_that_say_something(tables):
    captions = tables.captions
    assert captions["caption_id"].is_unique
    assert (captions["text"].str.strip() == captions["text"]).all()
    assert captions["text"].str.contains("[a-z]").all()
    by_image = captions.groupby("image_id")["text"]
    assert set(by_image.groups) == set(tables.images["image_id"])
    assert set(by_image.size()) == set(by_image.nunique()) == {2}


def test_captions_are_free_of_joining_faults(tables):
    text = tables.captions["text"]
    assert text.map(str.isascii).all()
    faults = r"  | ,| \.|\.\.|,\.|,,|, and\b|^and\b|\band and\b|\b[Aa] [aeiou]|\ban [^aeiou]"
    assert not text.str.contains(faults + r"|none|\b(?:with|in|wearing|and|has|of)\.?$").any()


def test_captions_are_as_long_as_those_of_people_and_their_words_few():
    text = people.read(RAW).captions["text"].str.lower()
    words = text.str.findall(r"[a-z-]+")
    assert 10 < words.str.len().mean() < 20
    assert 90 <= len(set(words.explode())) <= 200
    assert text.duplicated().mean() < 0.02


def test_captions_of_one_person_vary(tables):
    captions = tables.captions.merge(tables.images, on="image_id")
    assert (captions.groupby("group")["text"].nunique() >= 4).mean() > 0.95


def test_no_boxes_and_no_files(tables, tmp_path):
    assert tables.regions.empty
    assert people.inventory(tmp_path, Options(**SIZES)) == []


def test_only_persons_are_searched_by_captions():
    card = people.card()
    assert card.ways == ("t2i",) and card.may_publish and card.split == "drawn"


@pytest.mark.parametrize(
    "option", [{"train": -3}, {"val": 0}, {"test": 2.5}, {"train": True}, {"seed": -1}]
)
def test_bad_options_are_refused(option):
    ((name, value),) = option.items()
    with refused(f"people: option {name}", "a whole number of at least", repr(value)):
        Options(**{"train": 1, "val": 1, "test": 1} | option)


# Persons -----------------------------------------------------------------------------------


def differing(a, b):
    """The attributes in which two persons differ; the colour of a hat or bag comes with it."""
    kinds = [kind for kind in VALUES if getattr(a, kind) != getattr(b, kind)]
    return [k for k in kinds if k.removesuffix("_colour") not in set(kinds) - {k}]


def test_no_person_occurs_twice():
    persons = {e.group: e.person for e in people.plan(Options(train=200, val=50, test=100))}
    assert len(persons) == len(set(persons.values())) == 350


def test_a_family_differs_in_one_attribute_and_stays_in_one_split():
    seen = Counter()
    for _, members in groupby(
        people.plan(Options(train=200, val=50, test=100)), key=lambda e: e.family
    ):
        members = list(members)
        family = {e.group: e.person for e in members}.values()
        assert 1 <= len(family) <= 4 and len({e.split for e in members}) == 1
        attributes = [differing(a, b) for a, b in combinations(family, 2)]
        assert all(len(kinds) == 1 for kinds in attributes), attributes
        assert len({kinds[0] for kinds in attributes}) <= 1, attributes
        seen.update(kinds[0] for kinds in attributes)
    assert len(seen) >= 12


def test_about_half_of_the_persons_have_relatives():
    persons = {e.group: e.family for e in people.plan(Options(train=600, val=100, test=200))}
    sizes = Counter(persons.values())
    assert 0.4 < sum(size for size in sizes.values() if size > 1) / 900 < 0.65


def test_what_is_not_there_has_no_colour():
    rng = np.random.default_rng(0)
    somebody = [draw_person(rng) for _ in range(200)]
    relations = [other for someone in somebody for other in people_drawing.relatives(someone, rng)]
    for someone in (*somebody, *relations):
        assert (someone.hat == NONE) == (someone.hat_colour == NONE)
        assert (someone.bag == NONE) == (someone.bag_colour == NONE)
        for kind, value in asdict(someone).items():
            assert value in VALUES[kind] or (value == NONE and kind.endswith("_colour"))


# Pictures ----------------------------------------------------------------------------------


def gap(a, b):
    """Pixels in which two pictures differ clearly."""
    return int((np.abs(np.asarray(a, int) - np.asarray(b, int)).max(axis=2) > 24).sum())


@pytest.mark.parametrize("kind", VALUES)
def test_a_change_shows_where_it_is_visible_and_nowhere_else(kind):
    rng = np.random.default_rng(1)
    hidden = 0
    for _ in range(30):
        someone, how = draw_person(rng), replace(draw_view(rng, whole=False), noise=0.0)
        if getattr(someone, kind) == NONE and kind.endswith("_colour"):
            continue
        value = people_drawing._others(kind, getattr(someone, kind), rng)[0]
        other = people_drawing._changed(someone, kind, value, rng)
        difference = gap(draw(someone, how), draw(other, how))
        if kind in visible(someone, how):
            assert difference > 12, (someone, other, how)
        else:
            hidden += 1
            assert difference == 0
    assert (hidden > 0) == (kind in ("glasses", "shoes"))


def test_the_first_picture_of_a_person_shows_everything(entries):
    for _, members in groupby(entries, key=lambda entry: entry.group):
        first, *others = members
        assert visible(first.person, first.view) == frozenset(VALUES)
        assert others


def test_persons_look_different_in_the_same_view(entries):
    persons = list(dict.fromkeys(entry.person for entry in entries))
    drawn = [draw(someone, view()) for someone in persons]
    assert min(gap(a, b) for a, b in combinations(drawn, 2)) > 8


def test_pictures_of_one_person_differ(entries, open_picture):
    for _, members in groupby(entries, key=lambda entry: entry.group):
        for a, b in combinations([open_picture(entry.image_id) for entry in members], 2):
            assert gap(a, b) > 500


@pytest.mark.parametrize(
    "change",
    [
        {"facing": "back"},
        {"mirrored": True},
        {"height": 78.0},
        {"left": 40.0},
        {"stride": 0.9},
        {"swing": 0.9},
        {"place": "hall"},
        {"light": (0.8, 0.8, 0.9)},
        {"noise": 30.0},
    ],
)
def test_every_part_of_a_view_shows(change):
    plain = view(mirrored=False, place="park", stride=-0.9, swing=-0.9, left=50.0)
    assert gap(draw(person(), plain), draw(person(), replace(plain, **change))) > 100


def test_a_person_fills_most_of_the_height(entries):
    for entry in entries[:40]:
        how = replace(entry.view, noise=0.0, light=(1.0, 1.0, 1.0))
        drawn = np.asarray(draw(entry.person, how), int)
        bare = people_drawing._backdrop(how.place, round(how.horizon * 3)).reduce(3)
        rows = np.abs(drawn - np.asarray(bare, int)).max(axis=2).max(axis=1) > 24
        assert rows.sum() > 0.75 * 96


def test_pictures_are_96_by_96_rgb(open_picture):
    picture = open_picture("people-000000")
    assert (picture.size, picture.mode) == ((96, 96), "RGB")


def test_an_unknown_picture_is_refused(open_picture):
    with refused("people", "people-000000 to people-", "'people-999999'"):
        open_picture("people-999999")


def test_drawing_takes_a_few_milliseconds(entries, open_picture):
    open_picture(entries[0].image_id)
    start = time.process_time()
    for entry in entries[:50]:
        open_picture(entry.image_id)
    assert (time.process_time() - start) / 50 < 0.01  # 0.002 s where nothing else runs


# What the captions say ---------------------------------------------------------------------

# Nouns of the parts, each with what is said before it; written down here once more, by hand.
NOUNS = {
    "top": r"t-shirt|tee|tank top|top|vest|shirt|sweater|pullover",
    "lower": r"trousers|short pants|pants|shorts|skirt",
    "shoes": r"shoes|sneakers|trainers",
    "hat": r"baseball cap|cap|beanie|woolly hat|hat",
    "bag": r"backpack|rucksack|handbag|purse|bag",
    "hair": r"hair",
    "glasses": r"dark glasses|glasses|spectacles|sunglasses|shades",
    "someone": r"person|pedestrian|figure|walker",
}
COLOURS = {
    "red": {"red", "crimson"},
    "yellow": {"yellow", "golden"},
    "purple": {"purple", "violet"},
    "grey": {"grey", "gray", "dark grey"},
    "brown": {"brown", "dark brown"},
}
PATTERNS = {
    "plain": {"plain"},
    "striped": {"striped", "stripy"},
    "checked": {"checked", "plaid", "checkered"},
    "dotted": {"dotted", "spotted", "polka-dot"},
}
HAIR = {
    "black": {"black", "dark"},
    "brown": {"brown"},
    "blond": {"blond", "blonde", "light"},
    "ginger": {"ginger", "red", "orange"},
    "grey": {"grey", "gray", "silver"},
}
SLEEVES = {
    "long": {"sweater", "pullover", "shirt", "top", "long-sleeved"},
    "short": {"t-shirt", "tee", "shirt", "top", "short-sleeved"},
    "sleeveless": {"tank top", "vest", "shirt", "top", "sleeveless"},
}
SKIN = {"light": {"light-skinned", "fair-skinned"}, "tan": {"tanned"}, "dark": {"dark-skinned"}}
BUILD = {
    "slim": {"slim", "thin", "slender"},
    "average": {"average-sized"},
    "heavy": {"heavy", "stocky", "broad"},
}
LOWER = {"trousers": {"trousers", "pants"}, "shorts": {"shorts", "short pants"}, "skirt": {"skirt"}}
BAGS = {"backpack": {"backpack", "rucksack"}, "handbag": {"handbag", "purse", "bag"}, NONE: set()}
HATS = {"cap": {"cap", "baseball cap", "hat"}, "beanie": {"beanie", "woolly hat", "hat"}}
SIGHT = {
    "glasses": {"glasses", "spectacles"},
    "sunglasses": {"sunglasses", "dark glasses", "shades"},
}


def named(colour):
    return COLOURS.get(colour, {colour})


def truths(someone, how):
    """Part -> the words that may be said of it, whole words or pairs of them."""
    from_behind = how.facing == "back"
    return {
        "top": named(someone.top_colour) | PATTERNS[someone.pattern] | SLEEVES[someone.sleeves],
        "lower": named(someone.lower_colour) | LOWER[someone.lower],
        "shoes": set() if how.cut else named(someone.shoes) | {"shoes", "sneakers", "trainers"},
        "hat": named(someone.hat_colour) | HATS[someone.hat] if someone.hat != NONE else set(),
        "bag": named(someone.bag_colour) | BAGS[someone.bag] if someone.bag != NONE else set(),
        "hair": HAIR[someone.hair] | {someone.hair_length, "hair"},
        "glasses": set() if from_behind else SIGHT.get(someone.glasses, set()),
        "someone": BUILD[someone.build] | SKIN[someone.skin] | set(NOUNS["someone"].split("|")),
    }


KNOWN = set().union(*(truths(person(**{k: v}), view())[part] for k in VALUES for v in VALUES[k]
                      for part in NOUNS)) - {NONE}  # fmt: skip
TERM = "|".join(sorted(map(re.escape, KNOWN), key=len, reverse=True))


def mentions(text):
    """(part, words said of it) for each noun of a caption, read by this file's own grammar."""
    for wrong, right in {wrong: right for right, wrong in people.MISSPELLINGS.items()}.items():
        text = re.sub(rf"\b{wrong}\b", right, text.lower())
    mentioned = []
    nouns = [(part, rf"(?<![\w-])(?:{noun})(?![\w-])") for part, noun in NOUNS.items()]
    for phrase in re.split(
        r"[,.]|\b(?:a|an|and|with|in|are|has|who|wears|wearing|carrying|carry|the)\b", text
    ):
        for part, noun in nouns:
            if re.search(rf"{noun}$", phrase.strip()):
                mentioned.append((part, re.findall(rf"(?<![\w-])(?:{TERM})(?![\w-])", phrase)))
    return mentioned


def lies(someone, how, text):
    allowed = truths(someone, how)
    return [(part, word) for part, words in mentions(text) for word in words
            if word not in allowed[part]]  # fmt: skip


def test_captions_say_nothing_that_is_not_so():
    options = Options(train=200, val=1, test=1, seed=3)
    entries = people.plan(options)
    texts = people.read(RAW, options).captions["text"].tolist()
    count = Counter()
    for number, text in enumerate(texts):
        entry = entries[number // 2]
        assert not lies(entry.person, entry.view, text), (text, entry)
        count.update(part for part, _ in mentions(text))
    assert all(count[part] > 0.08 * len(texts) for part in NOUNS), count


def test_that_test_would_find_lies():
    told = "A stocky person in a striped red sweater, blue shorts and white shoes with a green cap."
    truth = person(build="heavy", pattern="striped", top_colour="red", lower_colour="blue",
                   hat="cap", hat_colour="green")  # fmt: skip
    assert not lies(truth, view(), told)
    assert lies(truth, view(cut=True), told) == [("shoes", "white"), ("shoes", "shoes")]
    for change, lie in (
        ({"top_colour": "blue"}, ("top", "red")),
        ({"pattern": "plain"}, ("top", "striped")),
        ({"sleeves": "short"}, ("top", "sweater")),
        ({"lower": "skirt"}, ("lower", "shorts")),
        ({"hat": "beanie"}, ("hat", "cap")),
        ({"build": "slim"}, ("someone", "stocky")),
    ):
        assert lies(replace(truth, **change), view(), told) == [lie]


@pytest.mark.parametrize("writer", people.WRITERS, ids=lambda writer: writer.compose.__name__)
def test_a_writer_leaves_things_out_and_chooses_words(writer):
    rng = np.random.default_rng(0)
    texts = [people._caption(person(), view(), writer, rng).lower() for _ in range(200)]
    assert 40 < sum("purple" in text or "violet" in text for text in texts) < 200
    assert sum("sweater" in text for text in texts) and sum("pullover" in text for text in texts)
    assert len(set(texts)) > 100


def test_what_cannot_be_seen_is_not_told():
    rng = np.random.default_rng(0)
    how = view(facing="back", cut=True)
    texts = [people._caption(person(), how, w, rng) for w in people.WRITERS for _ in range(100)]
    words = set(re.findall(r"[a-z]+", " ".join(texts).lower()))
    assert not words & {"glasses", "spectacles", "shoes", "sneakers", "trainers", "white"}
    assert {"hair", "beanie", "shorts", "handbag"} <= words

"""Families of drawn items: as many as were asked for, all different, from a seed."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from refusals import refused

from benchmark.readers import drawn

OPTIONS = SimpleNamespace(train=30, val=5, test=12, seed=3)


def families(options: SimpleNamespace = OPTIONS) -> list[tuple[str, list[int]]]:
    def draw(rng: np.random.Generator) -> int:
        return 10 * int(rng.integers(100))

    def relatives(item: int, rng: np.random.Generator) -> list[int]:
        return [item + n for n in range(1, 4)]

    return list(drawn.families(options, draw, relatives, lambda item: item != 20))


def test_every_split_is_full_and_no_item_comes_twice():
    items = {"train": [], "val": [], "test": []}
    for split, family in families():
        assert len({item // 10 for item in family}) == 1
        items[split] += family
    assert [len(items[split]) for split in items] == [30, 5, 12]
    every = sum(items.values(), [])
    assert len(set(every)) == 47 and 20 not in every


def test_test_items_do_not_hang_on_other_sizes():
    fewer = SimpleNamespace(train=1, val=1, test=12, seed=3)
    of_test = [family for split, family in families() if split == "test"]
    assert of_test == [family for split, family in families(fewer) if split == "test"]


def test_a_relative_that_is_cut_off_may_be_drawn_for_another_split():
    for seed in range(20):  # some of them begin a family
        options = SimpleNamespace(test=1, val=1, train=0, seed=seed)
        items = iter([0, 1])
        found = drawn.families(
            options, lambda rng, items=items: next(items), lambda item, rng: [1 - item]
        )
        assert list(found) == [("test", [0]), ("val", [1])]


def test_earlier_words_are_more_common():
    rng = np.random.default_rng(0)
    words = [drawn.one_of("abc", rng) for _ in range(4000)]
    shares = [words.count(word) / 4000 for word in "abc"]
    # the last has what is left: 1 - 0.55 - 0.45 * 0.55
    assert shares == pytest.approx([0.55, 0.2475, 0.2025], abs=0.03)


def test_colours_that_are_alike_come_first():
    rng = np.random.default_rng(0)
    others = drawn.others(list(drawn.COLOURS), "blue", rng)
    assert others[0] == "purple" and "blue" not in others
    assert len(others) == len(drawn.COLOURS) - 1


def test_an_image_is_drawn_again_by_its_name():
    scenes = {"a.png": ((2, 3),), "b.png": ((4, 5),)}
    opened = drawn.opener("pets", lambda size: Image.new("RGB", size), scenes)
    assert opened("b.png").size == (4, 5)
    with refused("pets", "a.png to b.png", "'c.png'"):
        opened("c.png")


@pytest.mark.parametrize("noun", ["an apple", "a pear"])
def test_articles_fit_their_nouns(noun):
    assert drawn.with_article(noun.split()[1]) == noun

"""What drawn datasets share: colours and words, random choices, and families that
differ little.

Nothing is downloaded, everything follows from a seed; so the order of draws is part of
a dataset.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from benchmark.contracts.datasets import OpenPicture, UserError

Rng = np.random.Generator
T = TypeVar("T")
Rgb = tuple[int, int, int]

COLOURS: dict[str, Rgb] = {
    "red": (214, 32, 38),
    "orange": (242, 128, 24),
    "pink": (250, 122, 182),
    "brown": (128, 76, 36),
    "yellow": (250, 218, 40),
    "green": (38, 150, 60),
    "blue": (36, 86, 214),
    "purple": (126, 46, 164),
    "black": (16, 16, 18),
    "grey": (108, 108, 112),
    "white": (252, 252, 252),
}
# Colours that are easily confused: a relative in another colour has one of these if it
# can.
ALIKE = (
    ("black", "grey", "white"),
    ("red", "orange", "pink", "brown"),
    ("blue", "purple"),
    ("yellow", "green"),
)
MISSPELLINGS = dict(
    pair.split(":")
    for pair in "backpack:bagpack background:backround beanie:beany carrying:carring "
    "circle:cirlce corner:coner diamond:dimond glasses:glases hexagon:hexagone person:persn "
    "purple:purpel sneakers:sneekers square:sqaure striped:stripped sweater:sweter there:ther "
    "triangle:traingle trousers:trowsers wearing:wering white:withe yellow:yelow".split()
)

# Test is drawn first, so that it does not depend on the sizes of the other splits.
# These are second words of the seed sequences, one per stream of random numbers; a
# dataset's own begin at 4.
STREAMS = {"test": 1, "val": 2, "train": 3}
# probability that an item has relatives; makes about half of all items
FAMILY_START = 0.3


def pick(options: Sequence[T], rng: Rng) -> T:
    """One of the options, all equally likely."""
    return options[rng.integers(len(options))]


def others(values: Sequence[str], value: str, rng: Rng) -> list[str]:
    """The other values of an attribute in random order; colours like `value` come
    first."""
    alike = next((group for group in ALIKE if value in group), ())
    shuffled = [values[i] for i in rng.permutation(len(values))]
    rest = [other for other in shuffled if other != value]
    return sorted(rest, key=lambda other: other not in alike)


def families(
    options: Any,
    draw: Callable[[Rng], T],
    relatives: Callable[[T, Rng], list[T]],
    is_usable: Callable[[T], bool] = lambda item: True,
) -> Iterator[tuple[str, list[T]]]:
    """The split and the items of each family: an item and, in some cases, up to three
    more that all differ in one and the same attribute. No two items are equal.

    options    train, val and test, the number of items in each, and seed
    draw       a new item
    relatives  those of an item
    """
    seen: set[T] = set()

    def usable(item: T) -> bool:
        return item not in seen and is_usable(item)

    for split, stream in STREAMS.items():
        rng = np.random.default_rng([options.seed, stream])
        missing = getattr(options, split)
        while missing:
            item = draw(rng)
            while not usable(item):
                item = draw(rng)
            family = [item]
            if rng.random() < FAMILY_START:
                others = filter(usable, relatives(item, rng))
                family += islice(others, int(rng.integers(1, 4)))
            family = family[:missing]
            seen.update(family)
            missing -= len(family)
            yield split, family


def opener(
    name: str, draw: Callable[..., Image.Image], scenes: Mapping[str, tuple]
) -> OpenPicture:
    """A function that draws the picture of a file again. `scenes` has what `draw` takes
    for each file of the dataset."""

    def open_picture(file: str) -> Image.Image:
        if file not in scenes:
            first, *_, last = scenes
            where = f"{name}: file of an image"
            expected = f"{first} to {last}"
            advice = "use a file of Tables.images read with the same options"
            raise UserError(where, expected, repr(file), advice)
        return draw(*scenes[file])

    return open_picture


def one_of(words: Sequence[str], rng: Rng) -> str:
    """One of the words for a value; each is about half as common as the previous
    one."""
    return words[min(rng.geometric(0.55), len(words)) - 1]


def with_article(noun: str) -> str:
    """ "a" or "an" and the noun."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"

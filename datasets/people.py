"""People: drawn persons, seen by several cameras and described. Nothing to download.

It stands for data in which a sentence is used to search for a person: a person has two to four
pictures that differ in pose, side, size, surroundings, light and noise, and each picture has
captions by two of five writers, who describe a part of what it shows. About half of the persons
come in families of two to four that differ in one attribute only. The first picture of a person
shows every attribute; a picture from behind, or one that ends above the shoes, does not.

Coordinates of a person are in units of its height: x to the right of the middle line, y down from
the crown (0) to the soles (1). Everything is drawn `OVERSAMPLING` times too large and averaged
down, which smooths the edges.
"""

import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from benchmark.contracts.datasets import Card, OpenPicture, Tables
from benchmark.readers import option_checks
from benchmark.readers.drawn import (
    COLOURS,
    MISSPELLINGS,
    Rgb,
    Rng,
    families,
    one_of,
    opener,
    others,
    pick,
    with_article,
)

Area = Callable[[np.ndarray, np.ndarray], np.ndarray]  # pixel coordinates x, y -> bool
Point = tuple[float, float]

EXTENT = 96  # width and height of a picture, in pixels
OVERSAMPLING = 3
EDGE = 2  # thickness of the darker line around a part, in oversampled pixels
# Photographs of persons are narrow, and encoders squash them to a square, which widens the person.
STRETCH = 1.3

NONE = "none"
VALUES: dict[str, tuple[str, ...]] = {
    "build": ("slim", "average", "heavy"),
    "skin": ("light", "tan", "dark"),
    "hair": ("black", "brown", "blond", "ginger", "grey"),
    "hair_length": ("short", "long"),
    "hat": (NONE, "cap", "beanie"),
    "hat_colour": ("black", "red", "blue", "green", "yellow", "white"),
    "glasses": (NONE, "glasses", "sunglasses"),
    "top_colour": tuple(COLOURS),
    "pattern": ("plain", "striped", "checked", "dotted"),
    "sleeves": ("long", "short", "sleeveless"),
    "lower": ("trousers", "shorts", "skirt"),
    "lower_colour": ("black", "grey", "white", "blue", "brown", "green", "red"),
    "shoes": ("black", "white", "brown", "red", "blue"),
    "bag": (NONE, "backpack", "handbag"),
    "bag_colour": ("black", "brown", "red", "blue", "green", "yellow", "pink"),
}
# What many persons do without: the value, and how often it is taken without a draw.
COMMON = {"hat": (NONE, 0.4), "glasses": (NONE, 0.4), "bag": (NONE, 0.2), "pattern": ("plain", 0.3)}
WORN = {"hat": "hat_colour", "bag": "bag_colour"}  # who has no hat has no colour of it either

SKINS: dict[str, Rgb] = {"light": (244, 208, 180), "tan": (204, 152, 108), "dark": (96, 60, 46)}
HAIRS: dict[str, Rgb] = {
    "black": (26, 22, 24),
    "brown": (110, 68, 36),
    "blond": (232, 198, 108),
    "ginger": (196, 84, 30),
    "grey": (172, 172, 176),
}
WIDTHS = {"slim": 0.82, "average": 1.0, "heavy": 1.24}
# Where a top shows its second colour, in oversampled pixels.
PATTERNS: dict[str, Area] = {
    "plain": lambda x, y: x < 0,  # nowhere
    "striped": lambda x, y: y % 17 < 8,
    "checked": lambda x, y: (x % 19 < 6) | (y % 19 < 6),
    "dotted": lambda x, y: np.hypot((x + y // 16 % 2 * 8) % 16 - 8, y % 16 - 8) < 5,
}
# Wall and ground behind the person; every camera looks at one of these surroundings.
PLACES: dict[str, tuple[Rgb, Rgb]] = {
    "street": ((186, 190, 198), (136, 136, 140)),
    "park": ((176, 206, 224), (142, 178, 116)),
    "bricks": ((190, 144, 122), (164, 156, 148)),
    "hall": ((222, 214, 196), (186, 172, 150)),
    "night": ((96, 102, 128), (84, 86, 96)),
}


# Who is shown: one value of each of `VALUES`; the colour of an absent thing is "none".
Person = namedtuple("Person", VALUES)


@dataclass(frozen=True, kw_only=True)
class View:
    """How one camera sees a person. Lengths are pixels of the finished picture."""

    facing: str  # "front" or "back"
    mirrored: bool
    cut: bool  # the picture ends above the shoes
    height: float  # of the person
    left: float  # where the middle line of the person is
    top: float  # where the crown is
    stride: float  # in [-1, 1]: how far the legs are apart, and which foot is lifted
    swing: float  # in [-1, 1]: how far the arms are from the body
    place: str
    horizon: float  # where the ground begins
    light: tuple[float, float, float]  # what red, green and blue are multiplied by
    noise: float  # deviation of the camera's noise
    noise_seed: int


def visible(person: Person, view: View) -> frozenset[str]:
    """The attributes that can be seen: no glasses from behind, no shoes if the picture is cut."""
    hidden = {"glasses"} if view.facing == "back" else set()
    if view.cut:
        hidden.add("shoes")
    return frozenset(VALUES) - hidden


# Making them up ----------------------------------------------------------------------------


def draw_person(rng: Rng) -> Person:
    values = {}
    for kind in VALUES:
        value, often = COMMON.get(kind, ("", 0.0))
        values[kind] = value if rng.random() < often else pick(VALUES[kind], rng)
    bare = {colour: NONE for worn, colour in WORN.items() if values[worn] == NONE}
    return Person(**values | bare)


def relatives(person: Person, rng: Rng) -> list[Person]:
    """Persons that differ from `person` and from each other in the same one attribute."""
    kind = pick([kind for kind in VALUES if getattr(person, kind) != NONE or kind in WORN], rng)
    values = others(VALUES[kind], getattr(person, kind), rng)
    return [_changed(person, kind, value, rng) for value in values]


def _changed(person: Person, kind: str, value: str, rng: Rng) -> Person:
    """The person with another value; the colour of a hat or bag appears or vanishes with it."""
    changes = {kind: value}
    if kind in WORN:
        colour = getattr(person, WORN[kind])
        anew = pick(VALUES[WORN[kind]], rng) if colour == NONE else colour
        changes[WORN[kind]] = NONE if value == NONE else anew
    return person._replace(**changes)


def draw_view(rng: Rng, whole: bool) -> View:
    """A random view; a `whole` one is from the front with the shoes in the picture."""
    cut = not whole and rng.random() < 0.2
    height = rng.uniform(102, 108) if cut else rng.uniform(80, 89)
    top = rng.uniform(3, 5) if cut else rng.uniform(3, 94 - height)
    light = rng.uniform(0.72, 1.1) * rng.uniform(0.95, 1.05, 3)
    return View(
        facing="front" if whole or rng.random() < 0.5 else "back",
        mirrored=bool(rng.random() < 0.5),
        cut=cut,
        height=height,
        left=rng.uniform(43, 53),
        top=top,
        stride=rng.uniform(-1, 1),
        swing=rng.uniform(-1, 1),
        place=pick(tuple(PLACES), rng),
        horizon=rng.uniform(52, 76),
        light=tuple(float(gain) for gain in light),
        noise=rng.uniform(2, 7),
        noise_seed=int(rng.integers(2**32)),
    )


# Drawing them ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Easel:
    """Draws in the units of a person on an oversampled canvas."""

    draw: ImageDraw.ImageDraw
    x: float  # of the middle line
    y: float  # of the crown
    width: float  # of a unit to the right; negative when mirrored
    height: float  # of a unit down

    def at(self, point: Point) -> Point:
        return self.x + point[0] * self.width, self.y + point[1] * self.height

    def polygon(self, points: list[Point], colour: Rgb) -> None:
        corners = [self.at(point) for point in points]
        self.draw.polygon(corners, fill=colour, outline=_darker(colour), width=EDGE)

    def oval(self, centre: Point, radii: Point, colour: Rgb, start: int = 0, end: int = 360):
        """An ellipse, or its segment between two angles: degrees clockwise from the right."""
        box = self._box(centre, radii)
        self.draw.chord(box, start, end, fill=colour, outline=_darker(colour), width=EDGE)

    def ring(self, centre: Point, radii: Point, colour: Rgb) -> None:
        self.draw.ellipse(self._box(centre, radii), outline=colour, width=EDGE + 1)

    def limb(self, points: list[Point], thick: float, colour: Rgb) -> None:
        """A line with round ends and a darker edge; `thick` is in units of the person's height."""
        corners, width = [self.at(point) for point in points], round(thick * self.height)
        for shade, extra in ((_darker(colour), EDGE), (colour, -EDGE)):
            self.draw.line(corners, fill=shade, width=width + extra, joint="curve")
            for corner in (corners[0], corners[-1]):
                self.draw.circle(corner, (width + extra) / 2 - 0.5, fill=shade)

    def _box(self, centre: Point, radii: Point) -> tuple[float, float, float, float]:
        (x, y), across = self.at(centre), abs(radii[0] * self.width)
        return (x - across, y - radii[1] * self.height, x + across, y + radii[1] * self.height)


@dataclass(frozen=True)
class Body:
    """Where the joints of a person are in one view; the first of each pair carries a bag."""

    wide: float  # of the trunk, as a factor
    hips: tuple[Point, Point]
    knees: tuple[Point, Point]
    feet: tuple[Point, Point]
    shoulders: tuple[Point, Point]
    elbows: tuple[Point, Point]
    hands: tuple[Point, Point]


def draw(person: Person, view: View) -> Image.Image:
    """The person as an RGB picture of `EXTENT` x `EXTENT` pixels, as one camera sees it."""
    canvas = _backdrop(view.place, round(view.horizon * OVERSAMPLING)).copy()
    size = view.height * OVERSAMPLING
    width = size * STRETCH * (-1 if view.mirrored else 1)
    easel = Easel(
        ImageDraw.Draw(canvas), view.left * OVERSAMPLING, view.top * OVERSAMPLING, width, size
    )
    body = _body(person, view)
    behind = view.facing == "back"
    if not behind:
        _paint_behind(easel, person, body)
    _paint_legs(easel, person, body)
    _paint_top(canvas, easel, person, body)
    for x, y in body.hands:
        easel.oval((x, y + 0.02), (0.026, 0.03), SKINS[person.skin])
    _paint_backpack(easel, person, body, behind)
    _paint_handbag(easel, person, body)
    _paint_head(easel, person, behind)
    return _photographed(canvas.reduce(OVERSAMPLING), view)


def _body(person: Person, view: View) -> Body:
    wide = WIDTHS[person.build]
    apart = 0.05 + 0.03 * abs(view.stride)
    lifted = 0.03 * view.stride  # one foot is behind, and so higher in the picture
    hip, out = 0.055 * wide, 0.125 * wide + 0.02 + 0.015 * view.swing
    return Body(
        wide=wide,
        hips=((hip, 0.55), (-hip, 0.55)),
        knees=((hip + 0.01, 0.74), (-hip - 0.01, 0.74)),
        feet=((apart, 0.95 - max(lifted, 0)), (-apart, 0.95 + min(lifted, 0))),
        shoulders=((0.105 * wide, 0.285), (-0.105 * wide, 0.285)),
        elbows=((out, 0.41), (-out, 0.41)),
        hands=((out + 0.025 * view.swing, 0.54), (-out + 0.025 * view.swing, 0.54)),
    )


def _paint_behind(easel: Easel, person: Person, body: Body) -> None:
    """What is behind the shoulders of a person seen from the front."""
    if person.bag == "backpack":
        side = 0.155 * body.wide
        bulge = [(-side, 0.3), (-side + 0.03, 0.255), (side - 0.03, 0.255), (side, 0.3)]
        easel.polygon([*bulge, (side, 0.5), (-side, 0.5)], COLOURS[person.bag_colour])
    if person.hair_length == "long":
        easel.polygon(_curtain(0.105), HAIRS[person.hair])


def _curtain(half: float) -> list[Point]:
    """Long hair from the crown to the shoulders."""
    return [(-0.06, 0.05), (0.06, 0.05), (half, 0.16), (half, 0.33), (-half, 0.33), (-half, 0.16)]


def _paint_legs(easel: Easel, person: Person, body: Body) -> None:
    thick = 0.075 + 0.03 * (body.wide - 1)
    skin, cloth = SKINS[person.skin], COLOURS[person.lower_colour]
    for hip, knee, foot in zip(body.hips, body.knees, body.feet, strict=True):
        if person.lower == "trousers":
            easel.limb([hip, knee, foot], thick + 0.02, cloth)
        else:
            easel.limb([hip, knee, foot], thick - 0.01, skin)
        if person.lower == "shorts":
            easel.limb([hip, (knee[0], 0.70)], thick + 0.035, cloth)
        easel.oval((foot[0] * 1.15, foot[1] + 0.025), (0.045, 0.03), COLOURS[person.shoes])
    if person.lower == "skirt":
        waist, hem = 0.095 * body.wide, 0.145 * body.wide
        easel.polygon([(-waist, 0.52), (waist, 0.52), (hem, 0.76), (-hem, 0.76)], cloth)


def _paint_top(canvas: Image.Image, easel: Easel, person: Person, body: Body) -> None:
    """Arms and top; the pattern covers what is painted on the stencil."""
    arms = list(zip(body.shoulders, body.elbows, body.hands, strict=True))
    joints = {"long": 3, "short": 2, "sleeveless": 0}[person.sleeves]
    shoulder, waist = 0.125 * body.wide, 0.105 * body.wide
    trunk = [(-waist, 0.575), (-shoulder, 0.27), (-0.05, 0.235)]
    trunk += [(-x, y) for x, y in reversed(trunk)]
    for arm in arms:
        easel.limb(arm, 0.05, SKINS[person.skin])
    mask = Image.new("L", canvas.size)
    stencil = replace(easel, draw=ImageDraw.Draw(mask))
    for target, colour in ((easel, COLOURS[person.top_colour]), (stencil, (255,))):
        for arm in arms if joints else []:
            target.limb(arm[:joints], 0.068, colour)
        target.polygon(trunk, colour)
    canvas.paste(_fill(person.top_colour, person.pattern), mask=mask)


def _paint_backpack(easel: Easel, person: Person, body: Body, behind: bool) -> None:
    """The whole backpack from behind; only its straps from the front."""
    if person.bag != "backpack":
        return
    colour, side = COLOURS[person.bag_colour], 0.088 * body.wide
    if not behind:
        for x in (-side, side):
            easel.limb([(x * 0.8, 0.25), (x, 0.45)], 0.035, colour)
        return
    low, high = 0.49, 0.275
    easel.polygon(
        [(-side, low), (-side, high + 0.03), (-side + 0.03, high), (side - 0.03, high)]
        + [(side, high + 0.03), (side, low)],
        colour,
    )
    pocket = side * 0.7
    easel.polygon([(-pocket, 0.4), (pocket, 0.4), (pocket, 0.47), (-pocket, 0.47)], colour)


def _paint_handbag(easel: Easel, person: Person, body: Body) -> None:
    if person.bag != "handbag":
        return
    colour = COLOURS[person.bag_colour]
    x, y = body.hands[0]
    easel.ring((x, y + 0.06), (0.035, 0.06), _darker(colour))
    easel.polygon(
        [(x - 0.055, y + 0.09), (x + 0.055, y + 0.09), (x + 0.07, y + 0.2), (x - 0.07, y + 0.2)],
        colour,
    )


def _paint_head(easel: Easel, person: Person, behind: bool) -> None:
    skin, hair = SKINS[person.skin], HAIRS[person.hair]
    easel.polygon([(-0.03, 0.19), (0.03, 0.19), (0.035, 0.25), (-0.035, 0.25)], skin)
    easel.oval((0, 0.13), (0.082, 0.095), skin)
    if behind:
        easel.oval((0, 0.105), (0.088, 0.105), hair)
        if person.hair_length == "long":
            easel.polygon(_curtain(0.095), hair)
    else:
        _paint_face(easel, person)
        easel.oval((0, 0.105), (0.088, 0.105), hair, 190, 350)
        end = 0.3 if person.hair_length == "long" else 0.12
        for x in (-0.083, 0.083):
            easel.limb([(x, 0.105), (x * 1.1, end)], 0.035, hair)
    _paint_hat(easel, person, behind)


def _paint_face(easel: Easel, person: Person) -> None:
    dark = _darker(SKINS[person.skin])
    easel.oval((0, 0.19), (0.024, 0.008), dark)
    for x in (-0.034, 0.034):
        easel.oval((x, 0.133), (0.009, 0.012), (20, 20, 24))
    if person.glasses == NONE:
        return
    for x in (-0.038, 0.038):
        if person.glasses == "sunglasses":
            easel.oval((x, 0.135), (0.032, 0.03), (16, 16, 20))
        else:
            easel.ring((x, 0.135), (0.032, 0.032), (16, 16, 20))
    easel.limb([(-0.012, 0.13), (0.012, 0.13)], 0.012, (16, 16, 20))


def _paint_hat(easel: Easel, person: Person, behind: bool) -> None:
    if person.hat == NONE:
        return
    colour = COLOURS[person.hat_colour]
    easel.oval((0, 0.085), (0.096, 0.1), colour, 180, 360)
    if person.hat == "beanie":
        easel.limb([(-0.085, 0.085), (0.085, 0.085)], 0.045, colour)
        easel.oval((0, -0.01), (0.03, 0.03), colour)
    elif not behind:
        easel.oval((0.03, 0.09), (0.115, 0.022), colour)


# Surroundings and camera -------------------------------------------------------------------


@cache
def _backdrop(place: str, horizon: int) -> Image.Image:
    """A wall above the horizon and a ground below it, with a few marks of the surroundings."""
    side = EXTENT * OVERSAMPLING
    wall, ground = PLACES[place]
    picture = Image.new("RGB", (side, side), wall)
    pen = ImageDraw.Draw(picture)
    {"park": _trees, "bricks": _courses, "hall": _doors}.get(place, _houses)(pen, horizon, wall)
    pen.rectangle((0, horizon, side, side), fill=ground, outline=_darker(ground))
    for step in range(0, 3 * side, side // 3):  # lines that run towards the horizon
        pen.line((side // 2, horizon - 30, step - side, side), fill=_darker(ground, 0.88), width=2)
    pen.rectangle((0, horizon - 30, side, horizon), fill=_darker(wall, 0.85))
    return picture


def _trees(pen: ImageDraw.ImageDraw, horizon: int, wall: Rgb) -> None:
    for x in range(-20, EXTENT * OVERSAMPLING, 76):
        pen.rectangle((x + 34, horizon - 90, x + 44, horizon), fill=(112, 92, 70))
        pen.ellipse((x, horizon - 160, x + 78, horizon - 60), fill=(122, 160, 108))


def _courses(pen: ImageDraw.ImageDraw, horizon: int, wall: Rgb) -> None:
    for row, y in enumerate(range(0, horizon, 14)):
        pen.line((0, y, EXTENT * OVERSAMPLING, y), fill=_darker(wall, 0.88), width=2)
        for x in range(row % 2 * 16, EXTENT * OVERSAMPLING, 32):
            pen.line((x, y, x, y + 14), fill=_darker(wall, 0.88), width=2)


def _doors(pen: ImageDraw.ImageDraw, horizon: int, wall: Rgb) -> None:
    for x in (14, 214):
        pen.rectangle((x, 40, x + 60, horizon), fill=_darker(wall, 0.9), outline=_darker(wall, 0.7))


def _houses(pen: ImageDraw.ImageDraw, horizon: int, wall: Rgb) -> None:
    for number, x in enumerate(range(0, EXTENT * OVERSAMPLING, 58)):
        roof = 24 + number * 37 % 60
        pen.rectangle((x, roof, x + 58, horizon), fill=_darker(wall, 0.84 + number % 2 * 0.08))
        for y in range(roof + 12, horizon - 40, 34):
            pen.rectangle((x + 12, y, x + 24, y + 14), fill=_darker(wall, 1.12))
            pen.rectangle((x + 34, y, x + 46, y + 14), fill=_darker(wall, 1.12))


def _photographed(picture: Image.Image, view: View) -> Image.Image:
    """The picture in the light of the view, with the noise of the camera."""
    rng = np.random.default_rng(view.noise_seed)
    pixels = np.asarray(picture, np.float32) * np.array(view.light, np.float32)
    pixels += view.noise * rng.standard_normal(pixels.shape, np.float32)
    return Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))


@cache
def _fill(colour: str, pattern: str) -> Image.Image:
    """A patterned cloth as large as the canvas."""
    main = np.array(COLOURS[colour])
    accent = main * 0.5 + 22 if main.sum() > 420 else main * 0.3 + 178
    y, x = np.indices((EXTENT * OVERSAMPLING,) * 2)
    pixels = np.where(PATTERNS[pattern](x, y)[..., None], accent, main)
    return Image.fromarray(pixels.round().astype(np.uint8))


def _darker(colour: Rgb, share: float = 0.55) -> Rgb:
    """The colour times `share`, which may be above 1."""
    return tuple(min(255, round(channel * share)) for channel in colour)


# The dataset -----------------------------------------------------------------------------

CARD = Card(
    title="People",
    source="drawn and captioned by datasets/people.py of this repository",
    licence="generated by this code; no third-party material",
    split="drawn",
    may_publish=True,
    ways=("t2i",),
)

# Second words of the seed sequences, after those of the splits.
STREAMS = {"views": 4, "captions": 5}


class Entry(NamedTuple):
    """One picture. `family` is the group of the first of the person's relatives."""

    image_id: str
    split: str
    group: str
    family: str
    person: Person
    view: View


@dataclass(frozen=True, kw_only=True)
class Options:
    """How many persons each split has, and the seed from which all are drawn."""

    train: int = 260
    val: int = 40
    test: int = 80
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("train", 1), ("val", 1), ("test", 1), ("seed", 0)):
            option_checks.check_number("people", name, getattr(self, name), least)


def card(options: Options = Options()) -> Card:
    """The same for all options."""
    return CARD


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """No files: the persons are made up."""
    return []


def read(raw: Path, options: Options = Options()) -> Tables:
    """The pictures of all persons, and two captions of each picture."""
    entries = plan(options)
    captions = []
    for number, entry in enumerate(entries):
        rng = np.random.default_rng([options.seed, STREAMS["captions"], number])
        for k, w in enumerate(rng.permutation(len(WRITERS))[:2]):
            text = _caption(entry.person, entry.view, WRITERS[w], rng)
            captions.append((f"{entry.image_id}#{k}", entry.image_id, text))
    images = [(e.image_id, e.image_id, e.split, e.group) for e in entries]
    return Tables(
        images=pd.DataFrame(images, columns=["image_id", "file", "split", "group"]),
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
    )


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that draws the picture of a file name again."""
    return opener("people", draw, {e.image_id: (e.person, e.view) for e in plan(options)})


@lru_cache(maxsize=4)
def plan(options: Options) -> tuple[Entry, ...]:
    """All pictures in the order in which they are numbered: two to four views of each person, the
    first of which shows every attribute. No person occurs twice."""
    entries: list[Entry] = []
    groups: list[str] = []
    for split, family in families(options, draw_person, relatives):
        first = f"person-{len(groups):04d}"
        for person in family:
            rng = np.random.default_rng([options.seed, STREAMS["views"], len(groups)])
            groups.append(f"person-{len(groups):04d}")
            for k in range(int(rng.integers(2, 5))):
                image_id, view = f"people-{len(entries):06d}", draw_view(rng, whole=k == 0)
                entries.append(Entry(image_id, split, groups[-1], first, person, view))
    return tuple(entries)


# Captions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Writer:
    """The habits of one imaginary person; numbers are probabilities in [0, 1]."""

    compose: Callable[["Speech"], str]
    colour: float  # mentions the colour of a thing
    pattern: float
    detail: float  # mentions build, skin, hair, hat, glasses, shoes or bag
    sloppy: float  # leaves an article out, or misspells a hard word
    tidy: float  # begins with a capital letter, and ends with a full stop


# From the most to the least common word for a value, unless its only word is its name.
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "build": {
        "slim": ("slim", "thin", "slender"),
        "average": ("average-sized",),
        "heavy": ("stocky", "heavy", "broad"),
    },
    "skin": {
        "light": ("light-skinned", "fair-skinned"),
        "tan": ("tanned",),
        "dark": ("dark-skinned",),
    },
    "hair": {
        "black": ("black", "dark"),
        "blond": ("blond", "blonde", "light"),
        "ginger": ("ginger", "red", "orange"),
        "grey": ("grey", "gray", "silver"),
    },
    "colour": {
        "red": ("red", "crimson"),
        "yellow": ("yellow", "golden"),
        "purple": ("purple", "violet"),
        "grey": ("grey", "gray", "dark grey"),
        "brown": ("brown", "dark brown"),
    },
    "pattern": {
        "plain": ("plain",),
        "striped": ("striped", "stripy"),
        "checked": ("checked", "plaid", "checkered"),
        "dotted": ("dotted", "spotted", "polka-dot"),
    },
    "sleeves": {
        "long": ("sweater", "long-sleeved shirt", "pullover", "shirt", "top"),
        "short": ("t-shirt", "short-sleeved shirt", "tee", "shirt", "top"),
        "sleeveless": ("tank top", "sleeveless shirt", "vest", "top"),
    },
    "lower": {"trousers": ("trousers", "pants"), "shorts": ("shorts", "short pants")},
    "shoes": {"": ("shoes", "sneakers", "trainers")},  # all are of the same make
    "bag": {"backpack": ("backpack", "rucksack"), "handbag": ("handbag", "purse", "bag")},
    "hat": {"cap": ("cap", "baseball cap", "hat"), "beanie": ("beanie", "woolly hat", "hat")},
    "glasses": {
        "glasses": ("glasses", "spectacles"),
        "sunglasses": ("sunglasses", "dark glasses", "shades"),
    },
}
UNREMARKABLE = ("average", "light", "plain")  # mentioned much less often
SOMEONE = ("person", "person", "pedestrian", "figure", "walker")


@dataclass(frozen=True)
class Speech:
    """What one writer says about one picture. Each part is a noun phrase, or "" if the part is
    absent, not visible, or left out."""

    person: Person
    seen: frozenset[str]
    writer: Writer
    rng: Rng

    def someone(self) -> str:
        """For example "slim person"."""
        looks = [self._mentioned("build", 0.5), self._mentioned("skin", 0.3)]
        return _joined(*looks, pick(SOMEONE, self.rng))

    def top(self) -> str:
        looks = [self._mentioned("pattern", self.writer.pattern), self._coloured("top_colour")]
        if self._chance(0.3):
            looks.reverse()
        return with_article(_joined(*looks, self._word("sleeves", self.person.sleeves)))

    def lower(self) -> str:
        noun = _joined(self._coloured("lower_colour"), self._word("lower", self.person.lower))
        return noun if noun.endswith("s") else with_article(noun)

    def shoes(self) -> str:
        colour = self._coloured("shoes")
        mentioned = self._sees("shoes") and colour
        return _joined(colour, self._word("shoes", "")) if mentioned else ""

    def hair(self) -> str:
        if not self._sees("hair"):
            return ""
        length = self.person.hair_length if self._chance(0.7) else ""
        return _joined(length, self._word("hair", self.person.hair), "hair")

    def glasses(self) -> str:
        if not self._sees("glasses"):
            return ""
        return self._word("glasses", self.person.glasses)

    def accessory(self, kind: str) -> str:
        """The hat or the bag."""
        if not self._sees(kind):
            return ""
        noun = self._word(kind, getattr(self.person, kind))
        return with_article(_joined(self._coloured(f"{kind}_colour"), noun))

    def _sees(self, kind: str) -> bool:
        visible = kind in self.seen and getattr(self.person, kind) != NONE
        return visible and self._chance(self.writer.detail)

    def _mentioned(self, kind: str, often: float) -> str:
        value = getattr(self.person, kind)
        rare = 0.2 if value in UNREMARKABLE else 1.0
        return self._word(kind, value) if self._chance(often * rare) else ""

    def _coloured(self, kind: str) -> str:
        mentioned = self._chance(self.writer.colour)
        return self._word("colour", getattr(self.person, kind)) if mentioned else ""

    def _word(self, kind: str, value: str) -> str:
        return one_of(WORDS[kind].get(value, (value,)), self.rng)

    def _chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)


def _caption(person: Person, view: View, writer: Writer, rng: Rng) -> str:
    text = writer.compose(Speech(person, visible(person, view), writer, rng))
    text = re.sub(r"[\w-]+", partial(_typed, sloppy=writer.sloppy, rng=rng), text)
    text = " ".join(text.split())
    if rng.random() >= writer.tidy:
        return text
    sentences = [sentence[0].upper() + sentence[1:] for sentence in text.split(". ")]
    return ". ".join(sentences) + "."


def _typed(word: re.Match, sloppy: float, rng: Rng) -> str:
    """The word as typed: mostly unchanged, sometimes left out or misspelt."""
    if rng.random() >= sloppy:
        return word[0]
    return "" if word[0] in ("a", "an") else MISSPELLINGS.get(word[0], word[0])


def _joined(*words: str) -> str:
    return " ".join(word for word in words if word)


def _listed(*parts: str) -> str:
    """Parts with commas between them and "and" before the last; the empty ones are skipped."""
    *before, last = [part for part in parts if part] or [""]
    return f"{', '.join(before)} and {last}" if before else last


def _led(lead: str, part: str) -> str:
    """The part after its lead, or "" if there is no part."""
    return f"{lead} {part}" if part else ""


def _terse(says: Speech) -> str:
    """Lists two or three things and nothing else."""
    parts = [
        part for part in (says.top(), says.lower(), says.shoes(), says.accessory("bag")) if part
    ]
    kept = sorted(says.rng.permutation(len(parts))[:3])
    return ", ".join(re.sub(r"^an? ", "", parts[k]) for k in kept)


def _plain(says: Speech) -> str:
    """One sentence from the top to the shoes."""
    start = f"{with_article(says.someone())} {pick(('wearing', 'dressed in', 'in'), says.rng)}"
    worn = _listed(says.top(), says.lower(), says.shoes())
    return _joined(start, worn, _led(pick(("carrying", "with"), says.rng), says.accessory("bag")))


def _facial(says: Speech) -> str:
    """Begins with the head."""
    start = pick(("someone", "a walker", "somebody", f"{with_article(says.someone())}"), says.rng)
    head = _led("with", _listed(says.hair(), says.glasses(), says.accessory("hat")))
    worn = _listed(says.top(), says.lower())
    return _joined(start, head, pick(("who wears", "dressed in", "wearing"), says.rng), worn)


def _thorough(says: Speech) -> str:
    """Goes from head to toe in full sentences."""
    head = _listed(says.hair(), says.glasses())
    carried = _led(pick(("they carry", "they are carrying"), says.rng), says.accessory("bag"))
    sentences = [
        _led(f"the {says.someone()} has", head),
        _led("they wear", _listed(says.accessory("hat"), says.top(), says.lower())),
        _led(pick(("on the feet are", "the feet are in"), says.rng), says.shoes()),
        carried,
    ]
    return ". ".join(sentence for sentence in sentences if sentence)


def _searching(says: Speech) -> str:
    """Asks for somebody, and begins with the bag and what is worn on the head."""
    start = pick(("looking for", "we look for", "find", "please find"), says.rng)
    striking = _led("with", _listed(says.accessory("bag"), says.accessory("hat"), says.glasses()))
    worn = _listed(says.top(), says.lower(), says.shoes())
    return _joined(
        start, with_article(says.someone()), striking, pick(("in", "wearing"), says.rng), worn
    )


WRITERS = (
    Writer(_terse, colour=0.85, pattern=0.4, detail=0.7, sloppy=0.03, tidy=0.1),
    Writer(_plain, colour=0.9, pattern=0.6, detail=0.6, sloppy=0.04, tidy=0.8),
    Writer(_facial, colour=0.8, pattern=0.5, detail=0.8, sloppy=0.03, tidy=0.5),
    Writer(_thorough, colour=0.95, pattern=0.8, detail=0.85, sloppy=0.01, tidy=1.0),
    Writer(_searching, colour=0.75, pattern=0.4, detail=0.6, sloppy=0.06, tidy=0.4),
)

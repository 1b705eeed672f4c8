"""Shapes: drawn scenes with five captions each. Nothing to download, everything from a seed.

About half of the scenes come in families of two to four that differ in one attribute only, so
that a method has to see small differences. Five writers with habits of their own each describe a
part of the scene; most captions fit several scenes, so that no method can reach perfect scores.

Lengths are pixels of the finished image. Everything is drawn `OVERSAMPLING` times too large and
averaged down, which smooths the edges. Masks, fills and backgrounds are drawn once per process; a
scene is then a few pastes.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import combinations, islice, repeat
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
from PIL import Image, ImageChops, ImageDraw

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

# What scenes consist of ------------------------------------------------------------------

Area = Callable[[np.ndarray, np.ndarray], np.ndarray]  # pixel coordinates x, y -> share in [0, 1]

EXTENT = 96  # width and height of a picture
OVERSAMPLING = 3
CENTRES = (19, 48, 77)  # of the three columns, and of the three rows
DIAMETERS = {"small": 17, "medium": 25, "large": 34}
EDGE = 0.8  # thickness of the darker line around things that are not outlined
OUTLINE = 0.11  # thickness of an outlined thing, as a share of its diameter

BACKGROUNDS: dict[str, Rgb] = {
    "sky": (172, 212, 238),
    "mint": (178, 224, 190),
    "sand": (228, 208, 162),
    "lilac": (206, 190, 230),
    "rose": (242, 198, 194),
    "navy": (46, 60, 110),
}


def _blend(colour: Rgb, other: Rgb, share: float) -> Rgb:
    """`colour` with `share` in [0, 1] of it replaced by `other`."""
    return tuple(round((1 - share) * a + share * b) for a, b in zip(colour, other, strict=True))


def _dots(x: np.ndarray, y: np.ndarray, pitch: int, radius: float) -> np.ndarray:
    """Discs on a lattice whose every second row is shifted by half a pitch."""
    x = x + (y // pitch % 2) * (pitch // 2)
    return np.hypot(x % pitch - pitch / 2, y % pitch - pitch / 2) < radius


# Where a thing shows its second colour, and a background its second shade. The coordinates
# are oversampled: 18 here is 6 pixels of the picture.
PATTERNS: dict[str, Area] = {
    "plain": lambda x, y: x < 0,  # nowhere
    "striped": lambda x, y: (x + y) % 21 < 9,
    "dotted": lambda x, y: _dots(x, y, 17, 5.5),
    "checked": lambda x, y: (x // 14 + y // 14) % 2 == 0,
    "outlined": lambda x, y: x < 0,  # nowhere
}
TEXTURES: dict[str, Area] = {
    "smooth": lambda x, y: x < 0,  # nowhere
    "fading": lambda x, y: y / y.max(),
    "lined": lambda x, y: y % 27 < 4,
    "speckled": lambda x, y: _dots(x, y, 36, 4.0),
    "squared": lambda x, y: (x % 36 < 3) | (y % 36 < 3),
}


def _ring(corners: int, inner: float = 1.0) -> np.ndarray:
    """Points around the origin, the first at the top; every second one at radius `inner`."""
    angles = np.arange(corners) * 2 * np.pi / corners
    radii = np.where(np.arange(corners) % 2, inner, 1.0)
    return np.stack([radii * np.sin(angles), -radii * np.cos(angles)], axis=1)


def _heart() -> np.ndarray:
    t = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    x = np.sin(t) ** 3
    y = -(13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) / 16
    return np.stack([x, y - 0.1], axis=1)


def _moon() -> np.ndarray:
    t = np.linspace(-0.72 * np.pi, 0.72 * np.pi, 40)
    outer = np.stack([0.25 - np.cos(t), np.sin(t)], axis=1)
    tip_x, tip_y = outer[-1]
    s = np.linspace(np.pi / 2, -np.pi / 2, 40)
    return np.concatenate([outer, np.stack([tip_x - 0.95 * np.cos(s), tip_y * np.sin(s)], 1)])


# Corner points; x to the right and y down, both in [-1, 1] or nearly so.
SHAPES: dict[str, np.ndarray] = {
    "circle": _ring(60) * 0.94,
    "square": np.array([(-0.84, -0.84), (0.84, -0.84), (0.84, 0.84), (-0.84, 0.84)]),
    "triangle": np.array([(0, -0.95), (1, 0.8), (-1, 0.8)]),
    "diamond": np.array([(0, -1), (0.68, 0), (0, 1), (-0.68, 0)]),
    "star": _ring(10, inner=0.46) * 1.08,
    "heart": _heart(),
    "cross": np.array(
        [(-0.34, -1), (0.34, -1), (0.34, -0.34), (1, -0.34), (1, 0.34), (0.34, 0.34)]
        + [(0.34, 1), (-0.34, 1), (-0.34, 0.34), (-1, 0.34), (-1, -0.34), (-0.34, -0.34)]
    ),
    "moon": _moon(),
    "arrow": np.array(
        [(-1, -0.33), (0.1, -0.33), (0.1, -0.88), (1, 0), (0.1, 0.88), (0.1, 0.33), (-1, 0.33)]
    ),
    "hexagon": _ring(6),
}

VALUES: dict[str, tuple[str, ...]] = {
    "shape": tuple(SHAPES),
    "colour": tuple(COLOURS),
    "size": tuple(DIAMETERS),
    "pattern": tuple(PATTERNS),
    "background": tuple(BACKGROUNDS),
    "texture": tuple(TEXTURES),
}
LARGEST_SHIFT = 3  # of a thing from the centre of its grid cell, in each direction
REPEATED = 0.3  # probability that a thing has the shape, or the colour, of the one before
PLAIN = 0.3  # probability that a thing is plain without a draw among the patterns


@dataclass(frozen=True, kw_only=True)
class Thing:
    """One drawn object. `shift`, its offset from the centre of its grid cell, is no attribute."""

    shape: str
    colour: str
    size: str
    pattern: str
    column: int  # 0 left, 1 middle, 2 right
    row: int  # 0 top, 1 middle, 2 bottom
    shift: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)

    @property
    def centre(self) -> tuple[int, int]:
        return CENTRES[self.column] + self.shift[0], CENTRES[self.row] + self.shift[1]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A background and its things in reading order. Equal scenes have equal attributes."""

    background: str
    texture: str
    things: tuple[Thing, ...]


def crowded(scene: Scene) -> bool:
    """Whether two things cover each other by more than a tenth of their diameters."""

    def distance(a: Thing, b: Thing) -> float:
        """Of two centres, as on a chessboard; at 1, the bounding squares just touch."""
        gaps = [abs(p - q) for p, q in zip(a.centre, b.centre, strict=True)]
        return max(gaps) * 2 / (DIAMETERS[a.size] + DIAMETERS[b.size])

    return any(distance(a, b) < 0.9 for a, b in combinations(scene.things, 2))


# Making scenes up --------------------------------------------------------------------------


def draw_scene(rng: Rng) -> Scene:
    """A scene of one to four things that is not crowded."""
    while True:
        things: list[Thing] = []
        for position in rng.permutation(9)[: rng.integers(1, 5)]:
            things.append(_draw_thing(rng, int(position), things))
        scene = Scene(
            background=pick(VALUES["background"], rng),
            texture=pick(VALUES["texture"], rng),
            things=_in_reading_order(things),
        )
        if not crowded(scene):
            return scene


def _draw_thing(rng: Rng, position: int, before: list[Thing]) -> Thing:
    values = {kind: pick(VALUES[kind], rng) for kind in ("shape", "colour", "size", "pattern")}
    for kind in ("shape", "colour"):
        if before and rng.random() < REPEATED:
            values[kind] = getattr(before[-1], kind)
    if rng.random() < PLAIN:
        values["pattern"] = "plain"
    x, y = rng.integers(-LARGEST_SHIFT, LARGEST_SHIFT + 1, size=2)
    return Thing(**values, column=position % 3, row=position // 3, shift=(int(x), int(y)))


def relatives(scene: Scene, rng: Rng) -> list[Scene]:
    """Scenes that differ from `scene` and from each other in the same one attribute."""
    kind = pick((*VALUES, "place", "count"), rng)
    if kind in ("background", "texture"):
        values = others(VALUES[kind], getattr(scene, kind), rng)
        return [replace(scene, **{kind: value}) for value in values]
    if kind == "count":
        order = rng.permutation(len(scene.things))
        several = [[scene.things[i] for i in order[:k]] for k in range(len(order) - 1, 0, -1)]
    else:
        thing = pick(scene.things, rng)
        rest = [other for other in scene.things if other != thing]
        if kind == "place":
            taken = [(other.row, other.column) for other in scene.things]
            places = [divmod(int(position), 3) for position in rng.permutation(9)]
            changes = [{"row": r, "column": c} for r, c in places if (r, c) not in taken]
        else:
            changes = [{kind: v} for v in others(VALUES[kind], getattr(thing, kind), rng)]
        several = [[*rest, replace(thing, **change)] for change in changes]
    return [replace(scene, things=_in_reading_order(things)) for things in several]


def _in_reading_order(things: list[Thing]) -> tuple[Thing, ...]:
    return tuple(sorted(things, key=lambda thing: (thing.row, thing.column)))


# Drawing them ------------------------------------------------------------------------------


def draw(scene: Scene) -> Image.Image:
    """The scene as an RGB picture of `EXTENT` x `EXTENT` pixels."""
    canvas = _backdrop(scene.background, scene.texture).copy()
    for thing in scene.things:
        diameter, colour = DIAMETERS[thing.size], COLOURS[thing.colour]
        if thing.pattern == "outlined":
            edge, colour_of_edge = OUTLINE * diameter, colour
        else:
            body, edge = _mask(thing.shape, thing.size), EDGE
            canvas.paste(_fill(thing.colour, thing.pattern, body.size), _corner(thing), body)
            colour_of_edge = _blend(colour, (0, 0, 0), 0.45)
        canvas.paste(colour_of_edge, _corner(thing), _band(thing.shape, thing.size, edge))
    return canvas.reduce(OVERSAMPLING)


def box(thing: Thing) -> tuple[int, int, int, int]:
    """x0, y0, x1, y1 of the pixels a thing covers; half-open and inside the picture."""
    left, top = _corner(thing)
    x0, y0, x1, y1 = _mask(thing.shape, thing.size).getbbox()
    near = [max(0, side // OVERSAMPLING) for side in (left + x0, top + y0)]
    # Negated twice, which rounds up.
    far = [min(EXTENT, -(-side // OVERSAMPLING)) for side in (left + x1, top + y1)]
    return (*near, *far)


def _corner(thing: Thing) -> tuple[int, int]:
    """The upper left corner of a thing's mask on the oversampled canvas."""
    margin = _margin(thing.size)
    x, y = thing.centre
    return x * OVERSAMPLING - margin, y * OVERSAMPLING - margin


def _margin(size: str) -> int:
    """Oversampled pixels from the centre of a mask to its sides; 1.12 leaves room for the star."""
    return math.ceil(DIAMETERS[size] * OVERSAMPLING / 2 * 1.12)


def _points(shape: str, size: str) -> list[tuple[float, float]]:
    """The corners of a shape in the coordinates of its mask."""
    corners = SHAPES[shape] * DIAMETERS[size] * OVERSAMPLING / 2
    return [(float(x), float(y)) for x, y in corners + _margin(size)]


@cache
def _mask(shape: str, size: str) -> Image.Image:
    """The inside of a shape: 255 inside and 0 outside."""
    width = 2 * _margin(size) + 1
    mask = Image.new("L", (width, width))
    ImageDraw.Draw(mask).polygon(_points(shape, size), fill=255)
    return mask


@cache
def _band(shape: str, size: str, thickness: float) -> Image.Image:
    """The part of a shape within `thickness` of its border."""
    inside = _mask(shape, size)
    line = Image.new("L", inside.size)
    points = _points(shape, size)
    # A line is centred on the border, and half of it falls outside.
    width = round(2 * thickness * OVERSAMPLING)
    ImageDraw.Draw(line).line([*points, *points[:2]], fill=255, width=width, joint="curve")
    return ImageChops.multiply(line, inside)


@cache
def _fill(colour: str, pattern: str, size: tuple[int, int]) -> Image.Image:
    main = COLOURS[colour]
    light = sum(main) > 420
    accent = _blend(main, (40, 40, 60), 0.5) if light else _blend(main, (255, 255, 255), 0.75)
    return _two_tone(main, accent, PATTERNS[pattern], size)


@cache
def _backdrop(background: str, texture: str) -> Image.Image:
    main = BACKGROUNDS[background]
    dark = sum(main) < 420
    shade = _blend(main, (255, 255, 255) if dark else (70, 70, 90), 0.35)
    return _two_tone(main, shade, TEXTURES[texture], (EXTENT * OVERSAMPLING,) * 2)


def _two_tone(main: Rgb, second: Rgb, area: Area, size: tuple[int, int]) -> Image.Image:
    x, y = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    share = area(x, y)[..., None].astype(np.float64)
    pixels = (1 - share) * np.array(main) + share * np.array(second)
    return Image.fromarray(np.round(pixels).astype(np.uint8))


# The dataset -----------------------------------------------------------------------------

CARD = Card(
    title="Shapes",
    source="drawn and captioned by datasets/shapes.py of this repository",
    licence="generated by this code; no third-party material",
    split="drawn",
    may_publish=True,
)

# Second words of the seed sequences, after those of the splits.
STREAMS = {"captions": 4, "labelled": 5, "jitter": 6}


class Entry(NamedTuple):
    """One scene of the benchmark. `family` is the image_id of the first of its relatives."""

    image_id: str
    split: str
    family: str
    scene: Scene


@dataclass(frozen=True, kw_only=True)
class Options:
    """How many scenes each split has, and the seed from which all are drawn."""

    train: int = 1500
    val: int = 250
    test: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("train", 1), ("val", 1), ("test", 1), ("seed", 0)):
            option_checks.check_number("shapes", name, getattr(self, name), least)


def card(options: Options = Options()) -> Card:
    """The same for all options."""
    return CARD


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """No files: the scenes are made up."""
    return []


def read(raw: Path, options: Options = Options()) -> Tables:
    """Scenes, five captions each, and the boxes of the things that the captions name."""
    entries = plan(options)
    captions, regions = [], []
    for number, entry in enumerate(entries):
        rng = np.random.default_rng([options.seed, STREAMS["captions"], number])
        for w, writer in enumerate(WRITERS):
            caption_id = f"{entry.image_id}#{w}"
            text, phrases = _caption(entry.scene, writer, rng)
            captions.append((caption_id, entry.image_id, text))
            for phrase in phrases:
                x0, y0, x1, y1 = zip(*map(box, phrase.things), strict=True)
                corners = (min(x0), min(y0), max(x1), max(y1))
                named = sorted(entry.scene.things.index(thing) for thing in phrase.things)
                chain = f"{entry.image_id}/{'+'.join(map(str, named))}"  # their places in the scene
                regions.append((entry.image_id, caption_id, phrase.text, *corners, chain))
    images = [(e.image_id, e.image_id, e.split, e.image_id) for e in entries]
    return Tables(
        images=pd.DataFrame(images, columns=["image_id", "file", "split", "group"]),
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
        regions=pd.DataFrame(
            regions, columns=["image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
        ),
    )


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that draws the scene of a file name again."""
    return opener("shapes", draw, {entry.image_id: (entry.scene,) for entry in plan(options)})


# Scenes ------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def plan(options: Options) -> tuple[Entry, ...]:
    """Every scene of the benchmark; no two have equal attributes, and families stay together."""
    entries: list[Entry] = []
    for split, family in families(options, draw_scene, relatives, _for_benchmark):
        ids = [f"shapes-{len(entries) + k:06d}" for k in range(len(family))]
        entries += [Entry(i, split, ids[0], scene) for i, scene in zip(ids, family, strict=True)]
    return tuple(entries)


def _for_benchmark(scene: Scene) -> bool:
    """Whether a scene is not crowded, as a relative may be, and in the half for the benchmark, for
    any seed; `labelled` has the others."""
    return not crowded(scene) and crc32(repr(scene).encode()) % 2 == 0


# Labels ------------------------------------------------------------------------------------


CLOSE_UP = 48  # width and height of a labelled picture, in pixels
JITTER = 6  # pixels by which a thing may be off the centre, in each direction


def labelled(count: int, seed: int) -> Iterator[tuple[Image.Image, np.ndarray]]:
    """`count` close-ups of one thing each, with its labels: pictures to pretrain a network on.

    The labels are (6,) int64, one for each kind of `VALUES`: the index of the value there.
    Scenes of the benchmark are never shown, for any seeds and sizes (see `_for_benchmark`);
    near-duplicates of them may be. Raises UserError for a count below 1 or a seed below 0.
    """
    option_checks.check_number("shapes", "count", count, least=1)
    option_checks.check_number("shapes", "seed", seed, least=0)
    rng = np.random.default_rng([seed, STREAMS["jitter"]])
    shown = ((scene, thing) for scene in labelled_scenes(seed) for thing in scene.things)
    return ((close_up(*pair, rng), labels(*pair)) for pair in islice(shown, count))


def labelled_scenes(seed: int) -> Iterator[Scene]:
    """An endless stream of the scenes that `labelled` shows; repetitions are possible, but rare."""
    rng = np.random.default_rng([seed, STREAMS["labelled"]])
    endless = (draw_scene(rng) for _ in repeat(None))
    return (scene for scene in endless if not _for_benchmark(scene))


def close_up(scene: Scene, thing: Thing, rng: Rng) -> Image.Image:
    """The part of a scene around one of its things, shifted inwards at the borders."""
    x0, y0, x1, y1 = box(thing)
    middles = np.array([(x0 + x1) // 2, (y0 + y1) // 2])
    corner = middles - CLOSE_UP // 2 + rng.integers(-JITTER, JITTER + 1, 2)
    left, top = (int(side) for side in corner.clip(0, EXTENT - CLOSE_UP))
    return draw(scene).crop((left, top, left + CLOSE_UP, top + CLOSE_UP))


def labels(scene: Scene, thing: Thing) -> np.ndarray:
    """The labels of a close-up: (6,) int64 in the order of `VALUES`."""
    shown = vars(scene) | vars(thing)
    return np.array([values.index(shown[kind]) for kind, values in VALUES.items()])


# Captions ----------------------------------------------------------------------------------


class Piece(NamedTuple):
    """A part of a caption, and the things that it names, if any."""

    text: str
    things: tuple[Thing, ...] = ()


@dataclass(frozen=True)
class Writer:
    """The habits of one imaginary person; numbers are probabilities in [0, 1]."""

    compose: Callable[[Scene, "Writer", Rng], list[Piece]]
    size: float  # mentions the size of a thing
    colour: float
    pattern: float
    vague: float  # says "thing" for a shape
    sloppy: float  # leaves the article of a piece out, or misspells its hard words
    tidy: float  # begins with a capital letter, and ends with a full stop


# From the most to the least common word for a value, unless its only word is its name.
WORDS = {
    "circle": ("circle", "disc", "ball"),
    "square": ("square", "box"),
    "diamond": ("diamond", "rhombus"),
    "cross": ("cross", "plus sign"),
    "moon": ("moon", "crescent"),
    "arrow": ("arrow", "pointer"),
    "red": ("red", "crimson"),
    "yellow": ("yellow", "golden"),
    "purple": ("purple", "violet"),
    "grey": ("grey", "gray", "dark grey"),
    "small": ("small", "little", "tiny"),
    "medium": ("medium", "medium-sized"),
    "large": ("big", "large", "huge"),
    "plain": ("plain", "solid"),
    "striped": ("striped", "with stripes", "stripy"),
    "dotted": ("dotted", "spotted", "with dots"),
    "checked": ("checked", "checkered", "with checks"),
    "outlined": ("outlined", "hollow", "empty"),
    "sky": ("light blue", "pale blue", "sky blue"),
    "mint": ("light green", "pale green", "mint"),
    "sand": ("beige", "sandy", "tan"),
    "lilac": ("light purple", "lilac", "lavender"),
    "rose": ("light pink", "pale pink", "salmon"),
    "navy": ("dark blue", "navy"),
    "smooth": ("plain", "smooth"),
    "fading": ("fading", "with a gradient", "shaded"),
    "lined": ("lined", "with thin lines", "ruled"),
    "speckled": ("speckled", "with tiny dots"),
    "squared": ("squared", "with a grid"),
}
UNREMARKABLE = ("medium", "plain", "smooth")  # mentioned much less often
NUMBERS = (("one", "1"), ("two", "2"), ("three", "3"), ("four", "4"))


def _caption(scene: Scene, writer: Writer, rng: Rng) -> tuple[str, list[Piece]]:
    """A caption, and the pieces of it that name things."""
    pieces = [_typed(piece, writer, rng) for piece in writer.compose(scene, writer, rng)]
    if rng.random() < writer.tidy:
        first = pieces[0].text
        pieces[0] = pieces[0]._replace(text=first[0].upper() + first[1:])
    text = " ".join(piece.text for piece in pieces).replace(" ,", ",").replace(" :", ":")
    stop = "." if rng.random() < writer.tidy else ""
    return text + stop, [piece for piece in pieces if piece.things]


def _typed(piece: Piece, writer: Writer, rng: Rng) -> Piece:
    """The piece as typed: mostly unchanged, sometimes without its article or misspelt."""
    if rng.random() >= writer.sloppy:
        return piece
    first, *rest = piece.text.split()
    if rest and first in ("a", "an") and rng.random() < 0.5:
        return piece._replace(text=" ".join(rest))
    wrong = [MISSPELLINGS.get(word, word) for word in (first, *rest)]
    return piece._replace(text=" ".join(wrong))


def _word(value: str, rng: Rng) -> str:
    """A word for the value of an attribute."""
    return one_of(WORDS.get(value, (value,)), rng)


def _mentioned(value: str, probability: float, rng: Rng) -> list[str]:
    """One word for the value, or none if the writer leaves it out."""
    often = probability * (0.2 if value in UNREMARKABLE else 1)
    return [_word(value, rng)] if rng.random() < often else []


def _joined(adjectives: list[str], noun: str) -> str:
    """Noun phrase without an article, for example "big star with stripes"."""
    after = [word for word in adjectives if word.startswith("with ")]
    return " ".join([*(word for word in adjectives if word not in after), noun, *after])


def _noun(thing: Thing, writer: Writer, rng: Rng) -> str:
    vague = rng.random() < writer.vague
    colour = _mentioned(thing.colour, 1.0 if vague else writer.colour, rng)
    looks = [*_mentioned(thing.pattern, writer.pattern, rng), *colour]
    if rng.random() < 0.3:
        looks.reverse()
    noun = pick(("thing", "shape", "figure"), rng) if vague else _word(thing.shape, rng)
    return _joined([*_mentioned(thing.size, writer.size, rng), *looks], noun)


def _named(thing: Thing, writer: Writer, rng: Rng) -> Piece:
    """A thing with its article, for example "a big red star"."""
    return Piece(with_article(_noun(thing, writer, rng)), (thing,))


def _some(scene: Scene, most: int, rng: Rng) -> list[Thing]:
    """One to `most` things of the scene, in random order."""
    order = rng.permutation(len(scene.things))[: rng.integers(1, most + 1)]
    return [scene.things[i] for i in order]


def _listed(pieces: list[Piece], link: str = "and") -> list[Piece]:
    """Pieces with commas between them and `link` before the last; no text occurs twice."""
    pieces_of = {piece.text: piece for piece in reversed(pieces)}
    *before, last = reversed(pieces_of.values())
    commas = [part for piece in before for part in (piece, Piece(","))]
    return [*commas[:-1], *([Piece(link)] if before else []), last]


def _terse(scene: Scene, writer: Writer, rng: Rng) -> list[Piece]:
    """Names one or two things and nothing else, without articles."""
    nouns = [Piece(_noun(thing, writer, rng), (thing,)) for thing in _some(scene, 2, rng)]
    return _listed(nouns, link=pick((",", ",", "and"), rng))


def _chatty(scene: Scene, writer: Writer, rng: Rng) -> list[Piece]:
    """Wraps the things in small talk."""
    openings = ("there is", "I can see", "here we have", "looks like", "someone drew", "I see")
    opening = pick((*openings, "this is a picture of", "you can see"), rng)
    named = [_named(thing, writer, rng) for thing in _some(scene, 2, rng)]
    link = pick(("and", "and also", "together with", "plus"), rng)
    closing = pick(("", "", "", ", I think", ", I guess", ", how nice"), rng)
    return [Piece(opening), *_listed(named, link), *([Piece(closing)] if closing else [])]


def _counting(scene: Scene, writer: Writer, rng: Rng) -> list[Piece]:
    """Counts all things, or those that share a shape, colour or pattern."""
    if len(scene.things) == 1:
        number = pick(("just one", "one", "only one", "a single"), rng)
        return [Piece(f"{number} {_noun(scene.things[0], writer, rng)}", scene.things)]
    kind = pick(("shape", "shape", "colour", "pattern"), rng)
    groups = [_counted(group, kind, rng) for group in _alike(scene, kind)]
    total = Piece(_number(len(scene.things), pick(("shape", "thing"), rng), rng), scene.things)
    style = rng.random()
    if len(groups) == 1 or style < 0.4:
        return _listed(groups)
    return [total, Piece(":"), *_listed(groups)] if style < 0.6 else [total, Piece(","), groups[0]]


def _alike(scene: Scene, kind: str) -> list[tuple[Thing, ...]]:
    """The things of a scene grouped by an attribute, the largest group first."""
    values = sorted({getattr(thing, kind) for thing in scene.things})
    groups = [tuple(t for t in scene.things if getattr(t, kind) == value) for value in values]
    return sorted(groups, key=len, reverse=True)


def _counted(group: tuple[Thing, ...], kind: str, rng: Rng) -> Piece:
    """A group with the number of its things, for example "two red things"."""
    word = _word(getattr(group[0], kind), rng)
    noun = word if kind == "shape" else _joined([word], pick(("shape", "thing"), rng))
    return Piece(_number(len(group), noun, rng), group)


def _number(count: int, noun: str, rng: Rng) -> str:
    number = NUMBERS[count - 1][int(rng.random() < 0.25)]
    if count == 1:
        return f"{number} {noun}"
    head, space, rest = noun.partition(" with ")
    return f"{number} {head}{'es' if head.endswith(('s', 'x')) else 's'}{space}{rest}"


def _layout(scene: Scene, writer: Writer, rng: Rng) -> list[Piece]:
    """Says where a thing is, in the picture or relative to another."""
    chosen = _some(scene, 2, rng)
    named = [_named(thing, writer, rng) for thing in chosen]
    if len(chosen) == 2 and rng.random() < 0.6:
        return [named[0], Piece(_relation(*chosen, rng)), named[1]]
    located = [[piece, Piece(_position(t, rng))] for piece, t in zip(named, chosen, strict=True)]
    return located[0] if len(located) == 1 else [*located[0], Piece(","), *located[1]]


def _relation(thing: Thing, other: Thing, rng: Rng) -> str:
    across, down = thing.column - other.column, thing.row - other.row
    if abs(across) > abs(down) or (abs(across) == abs(down) and rng.random() < 0.5):
        side = "left" if across < 0 else "right"
        return pick((f"to the {side} of", f"{side} of", f"on the {side} of"), rng)
    return pick(("above", "over", "higher than") if down < 0 else ("below", "under"), rng)


def _position(thing: Thing, rng: Rng) -> str:
    side, height = ("left", "", "right")[thing.column], ("top", "", "bottom")[thing.row]
    if side and height:
        corner = (f"in the {height} {side} corner", f"at the {height} {side}", "in a corner")
        return pick((*corner, f"at the {height}", f"on the {side}"), rng)
    if height:
        return pick((f"at the {height}", f"near the {height}"), rng)
    if side:
        return pick((f"on the {side}", f"on the {side} side"), rng)
    return pick(("in the middle", "in the centre", "in the center"), rng)


def _backed(scene: Scene, writer: Writer, rng: Rng) -> list[Piece]:
    """Notes the background, and a thing or two on it."""
    texture = _mentioned(scene.texture, 0.25, rng)
    ground = pick(("background", "background", "sheet", "page"), rng)
    backdrop = _joined([*texture, *_mentioned(scene.background, 0.7, rng)], ground)
    named = _listed([_named(thing, writer, rng) for thing in _some(scene, 2, rng)])
    style = rng.random()
    if style < 0.45:
        return [*named, Piece(f"on {with_article(backdrop)}")]
    if style < 0.75:
        return [Piece(with_article(backdrop)), Piece("behind"), *named]
    return [Piece(backdrop), Piece("and" if " with " in backdrop else "with"), *named]


WRITERS = (
    Writer(_terse, size=0.2, colour=0.7, pattern=0.2, vague=0.1, sloppy=0.03, tidy=0.1),
    Writer(_chatty, size=0.3, colour=0.5, pattern=0.2, vague=0.2, sloppy=0.06, tidy=0.6),
    Writer(_counting, size=0.0, colour=0.3, pattern=0.2, vague=0.0, sloppy=0.02, tidy=0.3),
    Writer(_layout, size=0.15, colour=0.4, pattern=0.15, vague=0.15, sloppy=0.02, tidy=0.9),
    Writer(_backed, size=0.1, colour=0.5, pattern=0.15, vague=0.1, sloppy=0.04, tidy=0.5),
)

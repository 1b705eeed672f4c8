"""Scenes of the dataset `shapes`: their attributes, how they are made up, and their pixels.

Lengths are pixels of the finished picture. Everything is drawn `OVERSAMPLING` times too large
and averaged down, which smooths the edges. Masks, fills and backgrounds are drawn once per
process; a scene is then a few pastes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import TypeVar

import numpy as np
from PIL import Image, ImageChops, ImageDraw

Rng = np.random.Generator
T = TypeVar("T")
Rgb = tuple[int, int, int]
Area = Callable[[np.ndarray, np.ndarray], np.ndarray]  # pixel coordinates x, y -> share in [0, 1]

EXTENT = 96  # width and height of a picture
OVERSAMPLING = 3
CENTRES = (19, 48, 77)  # of the three columns, and of the three rows
DIAMETERS = {"small": 17, "medium": 25, "large": 34}
EDGE = 0.8  # thickness of the darker line around things that are not outlined
OUTLINE = 0.11  # thickness of an outlined thing, as a share of its diameter

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
    "plain": lambda x, y: np.zeros_like(x, bool),
    "striped": lambda x, y: (x + y) % 21 < 9,
    "dotted": lambda x, y: _dots(x, y, 17, 5.5),
    "checked": lambda x, y: (x // 14 + y // 14) % 2 == 0,
    "outlined": lambda x, y: np.zeros_like(x, bool),
}
TEXTURES: dict[str, Area] = {
    "smooth": lambda x, y: np.zeros_like(x, bool),
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
# Colours that are easily confused: a relative of another colour has one of these if it can.
ALIKE = (
    ("black", "grey", "white"),
    ("red", "orange", "pink", "brown"),
    ("blue", "purple"),
    ("yellow", "green"),
)


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
    return any(_distance(a, b) < 0.9 for a, b in combinations(scene.things, 2))


def _distance(a: Thing, b: Thing) -> float:
    """Chessboard distance of two centres; at 1, their bounding squares just touch."""
    gaps = [abs(p - q) for p, q in zip(a.centre, b.centre, strict=True)]
    return max(gaps) * 2 / (DIAMETERS[a.size] + DIAMETERS[b.size])


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


def _draw_thing(rng: Rng, position: int, others: list[Thing]) -> Thing:
    values = {kind: pick(VALUES[kind], rng) for kind in ("shape", "colour", "size", "pattern")}
    for kind in ("shape", "colour"):
        if others and rng.random() < REPEATED:
            values[kind] = getattr(others[-1], kind)
    if rng.random() < PLAIN:
        values["pattern"] = "plain"
    x, y = rng.integers(-LARGEST_SHIFT, LARGEST_SHIFT + 1, size=2)
    return Thing(**values, column=position % 3, row=position // 3, shift=(int(x), int(y)))


def relatives(scene: Scene, rng: Rng) -> list[Scene]:
    """Scenes that differ from `scene` and from each other in the same one attribute."""
    kind = pick((*VALUES, "place", "count"), rng)
    if kind == "count":
        order = rng.permutation(len(scene.things))
        kept = [order[:k] for k in range(len(order) - 1, 0, -1)]
        return [_with_things(scene, [scene.things[i] for i in some]) for some in kept]
    if kind in ("background", "texture"):
        return [replace(scene, **{kind: v}) for v in _others(kind, getattr(scene, kind), rng)]
    thing = pick(scene.things, rng)
    rest = [other for other in scene.things if other != thing]
    moves = _moves(thing, rest, rng) if kind == "place" else _changes(thing, kind, rng)
    return [_with_things(scene, [*rest, changed]) for changed in moves]


def _with_things(scene: Scene, things: list[Thing]) -> Scene:
    return replace(scene, things=_in_reading_order(things))


def _in_reading_order(things: list[Thing]) -> tuple[Thing, ...]:
    return tuple(sorted(things, key=lambda thing: (thing.row, thing.column)))


def _moves(thing: Thing, rest: list[Thing], rng: Rng) -> list[Thing]:
    taken = [(other.row, other.column) for other in (thing, *rest)]
    positions = [divmod(int(position), 3) for position in rng.permutation(9)]
    return [replace(thing, row=r, column=c) for r, c in positions if (r, c) not in taken]


def _changes(thing: Thing, kind: str, rng: Rng) -> list[Thing]:
    return [replace(thing, **{kind: value}) for value in _others(kind, getattr(thing, kind), rng)]


def _others(kind: str, value: str, rng: Rng) -> list[str]:
    """The other values of an attribute in random order; colours like `value` come first."""
    alike = next((group for group in ALIKE if value in group), ()) if kind == "colour" else ()
    others = [VALUES[kind][i] for i in rng.permutation(len(VALUES[kind]))]
    return sorted((v for v in others if v != value), key=lambda v: v not in alike)


def pick(options: Sequence[T], rng: Rng) -> T:
    """One of the options, all equally likely."""
    return options[rng.integers(len(options))]


# Drawing them ------------------------------------------------------------------------------


def draw(scene: Scene) -> Image.Image:
    """The scene as an RGB picture of `EXTENT` x `EXTENT` pixels."""
    canvas = _backdrop(scene.background, scene.texture).copy()
    for thing in scene.things:
        paint = _paint_border if thing.pattern == "outlined" else _paint_body
        paint(canvas, thing)
    return canvas.reduce(OVERSAMPLING)


def _paint_border(canvas: Image.Image, thing: Thing) -> None:
    band = _band(thing.shape, thing.size, OUTLINE * DIAMETERS[thing.size])
    canvas.paste(COLOURS[thing.colour], _corner(thing), band)


def _paint_body(canvas: Image.Image, thing: Thing) -> None:
    body = _mask(thing.shape, thing.size)
    canvas.paste(_fill(thing.colour, thing.pattern, body.size), _corner(thing), body)
    edge = _blend(COLOURS[thing.colour], (0, 0, 0), 0.45)
    canvas.paste(edge, _corner(thing), _band(thing.shape, thing.size, EDGE))


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

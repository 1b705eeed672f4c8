"""What all figures share: colours, styles, panels, text, and how a figure becomes a file.

No pyplot, so no global state and no window; the colours are Okabe and Ito's, told apart by
colour-blind readers; every figure has an opaque white ground, for dark pages too. Text is never
mathematics: a caption may hold `$`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import ceil
from pathlib import Path
from textwrap import wrap

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmark.core.files import atomic

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "d")
DASHES = ("-", "--", "-.", ":")
GREY = "#767676"  # of what is context: zero lines, the papers' curves
WIDTH = 10.0  # inches
DPI = 110
DIGITS = 5  # of a place, as a share of the figure
WIDE = 5.0  # ratio of the largest to the smallest value that asks for a logarithmic axis
VERY_WIDE = 100.0  # ratio from which such an axis has room for powers of ten only
LEGEND_COLUMNS = 3
LEGEND_ROW = 0.165  # inches
FONT = "DejaVu Sans"  # matplotlib's default, and comes with it: the same everywhere
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
UNKNOWN = "?"  # for a character that the font has no glyph for
LOOK = {
    "font.size": 9,
    "text.parse_math": False,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.dpi": DPI,
    "svg.fonttype": "none",  # text as text: a third of the size, and it can be searched
    "svg.hashsalt": "rematch",  # else the ids in an SVG are random
}
METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a preset looks in every figure."""

    colour: str
    marker: str
    dash: str


def styles(methods: Sequence[str]) -> list[Style]:
    """A style for each preset, of which `methods` names the method: the marker tells the method,
    the colour the preset. A method with more presets than colours has several markers."""
    counts = Counter(methods)  # in the order of first appearance
    markers = [ceil(count / len(COLOURS)) for count in counts.values()]
    first = dict(zip(counts, accumulate(markers, initial=0), strict=False))
    return [
        _style(first[method], methods[:index].count(method)) for index, method in enumerate(methods)
    ]


def save(figure: Figure, path: Path) -> None:
    """Write a .png or .svg that holds nothing of the place and time it was made at."""
    kind = path.suffix.removeprefix(".")
    with atomic(path) as part, drawing():
        _settle(figure)
        figure.savefig(part, format=kind, dpi=DPI, metadata=METADATA[kind])


def _settle(figure: Figure) -> None:
    """Keep the places that the layout has found, rounded: the last digits of its solver hang on
    memory addresses, and so would the bytes of the file."""
    if figure.get_layout_engine() is None:
        return
    figure.set_dpi(DPI)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position(original=True).bounds, DIGITS))


def _style(first: int, place: int) -> Style:
    """Of the preset at `place` of its method, whose first marker is `first`."""
    turn, colour = divmod(place, len(COLOURS))  # colours used up: the next marker and dash
    return Style(
        colour=COLOURS[colour],
        marker=MARKERS[(first + turn) % len(MARKERS)],
        dash=DASHES[turn % len(DASHES)],
    )


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib's own defaults with ours over them, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(LOOK)
        yield


def panels(count: int, columns: int, head: float, row: float) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels in rows of `columns` or fewer; heights in inches, `head` for
    what is above and below all of them."""
    columns = min(columns, count)
    rows = ceil(count / columns)
    figure = Figure(figsize=(WIDTH, head + row * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.07)  # inches
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid[count:]:
        axes.set_axis_off()
    return figure, grid[:count]


def shown(text: str, width: int, lines: int = 3) -> str:
    """Any text as a figure can hold it: in up to `lines` lines of `width` characters, with no line
    breaks but ours and no glyph that the font lacks."""
    clean = "".join(c if ord(c) in _glyphs() else UNKNOWN for c in " ".join(text.split()))
    rows = wrap(clean, width)
    if len(rows) > lines:
        rows = [*rows[: lines - 1], rows[lines - 1][: width - 1] + ELLIPSIS]
    return "\n".join(rows)


def legend_above(figure: Figure, handles: Sequence[Artist], titles: Sequence[str]) -> None:
    """A legend over all panels, in rows for which the figure grows."""
    _legend(figure, handles, titles, "outside upper center")


def legend_below(figure: Figure, handles: Sequence[Artist], titles: Sequence[str]) -> None:
    """A legend under all panels, in rows for which the figure grows; no place for it under a
    label of the whole figure."""
    _legend(figure, handles, titles, "outside lower center")


def _legend(figure: Figure, handles: Sequence[Artist], titles: Sequence[str], where: str) -> None:
    """The titles are handed over explicitly: matplotlib drops labels that begin with `_`."""
    labels = [shown(title, 48) for title in titles]
    columns = min(LEGEND_COLUMNS, len(labels))
    lines = ceil(sum(label.count("\n") + 1 for label in labels) / columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.15 + LEGEND_ROW * lines)
    figure.legend(handles, labels, loc=where, ncols=columns)


def log_if_wide(axis: Axis, values: Sequence[float]) -> bool:
    """Make `axis` logarithmic if the values ask for it; else it would have hardly a tick."""
    low, high = min(values), max(values)
    is_wide = low > 0 and high / low > WIDE
    if is_wide:
        log_scale(axis, values)
    return is_wide


def log_scale(axis: Axis, values: Sequence[float]) -> None:
    """Make `axis` logarithmic, with plain numbers at 1, 2, 5, 10 and so on; at powers of ten only
    where the values, all above 0, span many."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    is_long = max(values, default=1) > VERY_WIDE * min(values, default=1)
    axis.set_major_locator(LogLocator(subs=(1,) if is_long else (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_formatter(NullFormatter())


def _plain(value: float, _position: int) -> str:
    return f"{value:g}"


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())

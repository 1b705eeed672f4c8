"""What all figures share: colours, styles, panels, text, and how a figure is saved.

No pyplot, so no global state and no window. The colours are those of Okabe and Ito, which
colour-blind readers can distinguish. The background is opaque white, on dark pages too. Text is
never read as mathematics: a caption may contain `$`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import ceil
from pathlib import Path
from statistics import stdev
from textwrap import wrap

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from PIL import Image

from benchmark.analysis.boards import Board
from benchmark.core.files import atomic

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "d", "*", "8", "H")
DASHES = ("-", "--", "-.", ":")
GREY = "#767676"  # of context: zero lines, the papers' curves
WIDTH = 10.0  # inches
DPI = 190  # a picture of WIDTH fills a page of GitHub at twice its resolution
DRAWN_DPI = 110  # of the parts of an SVG that are pictures
COMPRESSION = 3  # of 9 levels; more takes twice as long for files that are 4% smaller
DIGITS = 5  # of a position, as a share of the figure
WIDE = 5.0  # ratio of the largest to the smallest value above which an axis is logarithmic
VERY_WIDE = 100.0  # ratio above which such an axis has room for powers of ten only
LEGEND_COLUMNS = 3
LEGEND_ROW = 0.165  # inches
FONT = "DejaVu Sans"  # comes with matplotlib: the same on every machine
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
UNKNOWN = "?"  # for a character that the font has no glyph for
RC_PARAMS = {
    "font.size": 9,
    "text.parse_math": False,
    "axes.titlesize": 9,
    "axes.titley": 1.0,  # where it is put otherwise, after much measuring: no axis is on top
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.dpi": DPI,
    "svg.fonttype": "none",  # text, not outlines: a third of the size, and searchable
    "svg.hashsalt": "rematch",  # without it the ids in an SVG are random
}
SVG_METADATA = {"Date": None, "Creator": None}


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a preset looks in every figure."""

    colour: str
    marker: str
    dash: str


def styles(methods: Sequence[str]) -> list[Style]:
    """One style per preset, whose methods are given: the marker shows the method, the colour the
    preset. A method with more presets than colours gets several markers."""
    counts = Counter(methods)  # in the order of first appearance
    markers = [ceil(count / len(COLOURS)) for count in counts.values()]
    first = dict(zip(counts, accumulate(markers, initial=0), strict=False))
    return [
        _style(first[method], methods[:index].count(method)) for index, method in enumerate(methods)
    ]


def preset_styles(board: Board) -> dict[str, Style]:
    """The style of each preset in every figure of the board."""
    of_standings = styles([standing.method for standing in board.standings])
    return {s.preset: style for s, style in zip(board.standings, of_standings, strict=True)}


def error_bar(values: Sequence[float]) -> float:
    """Sample standard deviation over the seeds; 0 for fewer than two."""
    return stdev(values) if len(values) > 1 else 0.0


def save(figure: Figure, path: Path) -> None:
    """Write a .png or .svg without a date, a version or anything else of this machine."""
    with atomic(path) as part, drawing():
        canvas = FigureCanvasAgg(figure)  # before the layout: texts are measured once for both
        _settle(figure)
        {".png": _write_png, ".svg": _write_svg}[path.suffix](canvas, part)


def _write_png(canvas: FigureCanvasAgg, path: Path) -> None:
    """Without the channel of opacity: nothing shines through."""
    canvas.figure.set_dpi(DPI)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    Image.fromarray(pixels).save(path, "png", dpi=(DPI, DPI), compress_level=COMPRESSION)


def _write_svg(canvas: FigureCanvasAgg, path: Path) -> None:
    canvas.print_figure(path, format="svg", dpi=DRAWN_DPI, metadata=SVG_METADATA)


def _settle(figure: Figure) -> None:
    """Compute the layout once and round its positions: the last digits of the solver depend on
    memory addresses, and so would the bytes of the file."""
    engine = figure.get_layout_engine()
    if engine is None:  # settled before
        return
    figure.set_dpi(DPI)
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if not axis.get_label_text():
            axis.set_label_coords(0, 0)  # else all ticks are measured to find a place for nothing
    engine.execute(figure)
    figure.set_layout_engine(None)  # not "none", with which each saving draws twice
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position(original=True).bounds, DIGITS))


def _style(first: int, number: int) -> Style:
    """Style of preset `number` of a method whose first marker is `first`."""
    turn, colour = divmod(number, len(COLOURS))  # colours used up: the next marker and dash
    return Style(
        colour=COLOURS[colour],
        marker=MARKERS[(first + turn) % len(MARKERS)],
        dash=DASHES[turn % len(DASHES)],
    )


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with matplotlib's defaults and RC_PARAMS over them, without the user's matplotlibrc."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC_PARAMS)
        yield


def panels(count: int, columns: int, head: float, row: float) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels in rows of up to `columns`.

    `row` is the height of a row and `head` the height above and below all rows, in inches.
    """
    columns = min(columns, count)
    rows = ceil(count / columns)
    figure = Figure(figsize=(WIDTH, head + row * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.07)  # inches
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid[count:]:
        axes.set_axis_off()
    return figure, grid[:count]


def shown(text: str, width: int, lines: int = 3) -> str:
    """Any text wrapped to up to `lines` lines of `width` characters, the rest cut off.

    Line breaks of the text become spaces, characters without a glyph in the font UNKNOWN.
    """
    clean = "".join(c if ord(c) in _glyphs() else UNKNOWN for c in " ".join(text.split()))
    rows = wrap(clean, width)
    if len(rows) > lines:
        rows = [*rows[: lines - 1], rows[lines - 1][: width - 1] + ELLIPSIS]
    return "\n".join(rows)


def legend_above(figure: Figure, handles: Sequence[Artist], titles: Sequence[str]) -> None:
    """Add a legend above all panels; the figure grows by its height."""
    _legend(figure, handles, titles, "outside upper center")


def legend_below(figure: Figure, handles: Sequence[Artist], titles: Sequence[str]) -> None:
    """Add a legend below all panels; the figure grows by its height. It would overlap a label of
    the whole figure."""
    _legend(figure, handles, titles, "outside lower center")


def _legend(figure: Figure, handles: Sequence[Artist], titles: Sequence[str], where: str) -> None:
    """Titles are passed explicitly because matplotlib drops labels that begin with `_`."""
    labels = [shown(title, 48) for title in titles]
    columns = min(LEGEND_COLUMNS, len(labels))
    lines = ceil(sum(label.count("\n") + 1 for label in labels) / columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.15 + LEGEND_ROW * lines)
    figure.legend(handles, labels, loc=where, ncols=columns)


def log_if_wide(axis: Axis, values: Sequence[float]) -> bool:
    """Make `axis` logarithmic if the values span more than WIDE; returns whether it is."""
    low, high = min(values), max(values)
    is_wide = low > 0 and high / low > WIDE
    if is_wide:
        log_scale(axis, values)
    return is_wide


def log_scale(axis: Axis, values: Sequence[float]) -> None:
    """Make `axis` logarithmic, with plain numbers at 1, 2, 5, 10 and so on.

    Values are above 0; if they span more than VERY_WIDE, only powers of ten have a number.
    """
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

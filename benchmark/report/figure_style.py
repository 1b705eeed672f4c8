"""What all figures share: colours, panels, text, and how a figure is saved.

No pyplot, so no global state and no window. The colours are those of Okabe and Ito,
which colour-blind readers can distinguish. The background is opaque white, on dark
pages too. Text is never read as mathematics: a caption may contain `$`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle
from math import ceil
from pathlib import Path
from textwrap import wrap
from xml.etree import ElementTree

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmark.core.files import atomic, write_text

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#8C6D31",
)
BLUE, ORANGE, GREEN = COLOURS[:3]
GREY = "#767676"  # of context, such as zero lines
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "d", "*", "8", "H")
DASHES = ("-", "--", "-.", ":")
FONT = "DejaVu Sans"  # comes with matplotlib: the same on every machine
GLYPHS = frozenset(get_font(findfont(FONT)).get_charmap())
WIDTH = 10.0  # inches
DPI = 190  # of a PNG: it fills a page of GitHub at twice its resolution
MOST_BYTES = 300 * 1024  # of an SVG; a larger figure is a PNG
DIGITS = 5  # of a position, as a share of the figure
PLACES, LONG = {"d", "x", "y", "transform"}, re.compile(r"-?\d+\.\d{3,}")  # in an SVG
LEGEND_COLUMNS, LEGEND_ROW = 3, 0.165  # inches
for prefix, name in {"": "2000/svg", "xlink": "1999/xlink"}.items():
    ElementTree.register_namespace(prefix, f"http://www.w3.org/{name}")
RC_PARAMS = {
    "font.size": 9,
    "font.family": FONT,
    "text.parse_math": False,
    "axes.titlesize": 9,
    "axes.titley": 1.0,  # else every layout looks for ticks below the title
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "svg.fonttype": "none",  # text, not outlines: a third of the size, and searchable
    "svg.hashsalt": "rematch",  # without it the ids in an SVG are random
}


def styles(methods: Sequence[str]) -> list[tuple[str, str, str]]:
    """Colour, marker and dash of each preset in every figure of a board, by their
    methods: the marker shows the method, colour and dash the preset."""
    markers = dict(zip(dict.fromkeys(methods), cycle(MARKERS), strict=False))
    counts: Counter[str] = Counter()
    looks = []
    for method in methods:
        turn, place = divmod(counts[method], len(COLOURS))
        dash = DASHES[turn % len(DASHES)]
        looks.append((COLOURS[place], markers[method], dash))
        counts[method] += 1
    return looks


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with matplotlib's defaults and RC_PARAMS over them, without the user's
    matplotlibrc."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC_PARAMS)
        yield


def save(figure: Figure, stem: Path) -> Path:
    """Write stem.svg, or stem.png if the SVG would be larger than MOST_BYTES; returns
    the file.

    The same figure gives the same bytes: neither date nor version is in the file, and
    positions are rounded, since the last digits of the layout's solver depend on memory
    addresses.
    """
    with drawing():
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                if not axis.label.get_text():
                    axis.set_label_coords(0, 0)  # else its place is looked for
        layout = figure.get_layout_engine()
        if layout is not None:
            layout.execute(figure)
            figure.set_layout_engine(None)
        for axes in figure.axes:
            axes.set_position(np.round(axes.get_position(original=True).bounds, DIGITS))
        drawn = BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
        text = compact(drawn.getvalue())
        path = stem.with_name(f"{stem.name}.svg")
        if len(text) <= MOST_BYTES:
            write_text(path, text.decode())
            return path
        path = stem.with_name(f"{stem.name}.png")
        with atomic(path) as part:
            figure.savefig(part, format="png", metadata={"Software": None})
        return path


def compact(svg: bytes) -> bytes:
    """The same drawing in about two thirds of the bytes: positions to a hundredth of a
    point, a style that all parts of a group share once, no indentation."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for name in PLACES & element.attrib.keys():
            text = LONG.sub(_to_a_hundredth, element.attrib[name])
            if name == "d":
                text = " ".join(text.split()).replace(" L ", " ")
            element.set(name, text)
        shared = {child.get("style") for child in element}
        if len(element) > 1 == len(shared) and "style" not in element.attrib:
            (style,) = shared
            # which a group would apply to all at once
            if style and "opacity" not in style:
                element.set("style", style)
                for child in element:
                    del child.attrib["style"]
        if not (element.text or "").strip():
            element.text = None
        element.tail = "\n"
    return ElementTree.tostring(root, encoding="utf-8")


def _to_a_hundredth(number: re.Match) -> str:
    return f"{round(float(number[0]), 2):g}"


def panels(
    count: int, columns: int, head: float, row: float
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels in rows of up to `columns`.

    `row` is the height of a row and `head` the height above and below all rows, in
    inches.
    """
    columns = min(columns, count)
    rows = ceil(count / columns)
    figure = Figure(figsize=(WIDTH, head + row * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.07, h_pad=0.07)  # inches
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid[count:]:
        axes.set_axis_off()
    return figure, grid[:count]


def shown(text: str, width: int, lines: int = 3) -> str:
    """Any text wrapped to up to `lines` lines of `width` characters, the rest cut off.

    Line breaks of the text become spaces, characters without a glyph in the font
    question marks.
    """
    plain = " ".join(text.split())
    clean = "".join(sign if ord(sign) in GLYPHS else "?" for sign in plain)
    rows = wrap(clean, width)
    if len(rows) > lines:
        last = rows[lines - 1][: width - 1]
        rows = [*rows[: lines - 1], last + "\N{HORIZONTAL ELLIPSIS}"]
    return "\n".join(rows)


def legend_below(
    figure: Figure, handles: Sequence[Artist], titles: Sequence[str]
) -> None:
    """Add a legend below all panels; the figure grows by its height."""
    labels = [shown(title, 48) for title in titles]
    columns = min(LEGEND_COLUMNS, len(labels))
    rows = sum(label.count("\n") + 1 for label in labels)
    lines = ceil(rows / columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.15 + LEGEND_ROW * lines)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def log_scale(axis: Axis, values: Sequence[float]) -> None:
    """Make an axis logarithmic, with plain numbers: at 1, 2, 5, 10 and so on, or at
    powers of ten alone where the values are far apart."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    is_long = max(values) > 100 * min(values)
    axis.set_major_locator(LogLocator(subs=(1,) if is_long else (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def matrix_panels(
    matrices: Mapping[str, np.ndarray], labels: Sequence[str], colours: str, low: float
) -> Figure:
    """Matrices (N, N) by title, on one scale from `low` to 1; `labels` are of the
    columns, of the rows and of the scale."""
    with drawing():
        figure, grid = panels(len(matrices), columns=2, head=0.3, row=4.6)
        for axes, (title, values) in zip(grid, matrices.items(), strict=True):
            look = {"vmin": low, "vmax": 1, "interpolation": "none"}
            drawn = axes.imshow(values.astype(np.float64), colours, **look)
            axes.grid(visible=False)
            axes.set(title=shown(title, 46), xlabel=labels[0], ylabel=labels[1])
        figure.colorbar(drawn, ax=grid, label=labels[2], shrink=0.8)
    return figure

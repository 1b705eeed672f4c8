"""The figures of a report. One function a figure: data in, a matplotlib Figure out.

No pyplot, so no global state and no window; the colours are Okabe and Ito's, told apart by
colour-blind readers; every figure has an opaque white ground, for dark pages too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from pathlib import Path
from textwrap import fill

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from benchmark.files import atomic

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
MATCHED, UNMATCHED = COLOURS[1], COLOURS[0]
WIDTH = 10.0  # inches
DPI = 110
BINS = 80  # of a panel
TAIL = 0.001  # share of the scores that may lie beyond either end of a panel
LOOK = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a preset looks in every figure."""

    colour: str
    marker: str
    dash: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Score distributions of one preset: evenly spaced order statistics of either kind."""

    title: str
    overlap: float  # S
    bound: float  # 1 - KS
    matched: np.ndarray
    unmatched: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One training, epoch by epoch."""

    title: str
    method: str
    style: Style
    is_first_seed: bool
    epochs: np.ndarray
    loss: np.ndarray
    rsum: np.ndarray  # on validation
    selected: int  # epoch


@dataclass(frozen=True, kw_only=True)
class Point:
    """One preset: what a pair costs, and how good the result is."""

    title: str
    style: Style
    microseconds: float
    rsum: float  # mean over seeds
    deviation: float  # over seeds; 0 for one seed


def styles(methods: Sequence[str]) -> list[Style]:
    """A style for each preset, of which `methods` names the method: the marker tells the method,
    the colour the preset."""
    order = list(dict.fromkeys(methods))
    found = []
    for index, method in enumerate(methods):
        place, number = methods[:index].count(method), order.index(method)
        turn = number + place // len(COLOURS)  # colours used up: the next marker
        found.append(
            Style(
                colour=COLOURS[place % len(COLOURS)],
                marker=MARKERS[turn % len(MARKERS)],
                dash=DASHES[(place // len(COLOURS)) % len(DASHES)],
            )
        )
    return found


def similarities(panels: Sequence[Panel]) -> Figure:
    """Densities of matched and unmatched scores, one panel a preset."""
    columns = min(3, len(panels))
    rows = ceil(len(panels) / columns)
    with _look():
        figure = Figure(figsize=(WIDTH, 0.7 + 2.1 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            _densities(axes, panel)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        figure.supxlabel(
            "similarity of an image and a caption; every panel has its own scale", fontsize=9
        )
        figure.supylabel("density", fontsize=9)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure


def training(curves: Sequence[Curve]) -> Figure:
    """Loss and validation rsum by epoch, one row a method; a dot marks the selected epoch."""
    groups = [list(group) for _, group in groupby(sorted(curves, key=_method_of), key=_method_of)]
    with _look():
        figure = Figure(figsize=(WIDTH, 0.3 + 2.7 * len(groups)), layout="constrained")
        grid = figure.subplots(len(groups), 2, squeeze=False)
        for (left, right), group in zip(grid, groups, strict=True):
            _losses(left, group)
            _validations(right, group)
        for axes in grid[-1]:
            axes.set_xlabel("epoch")
    return figure


def cost(points: Sequence[Point]) -> Figure:
    """rsum against the time to score a pair; up and to the left is better."""
    with _look():
        figure = Figure(figsize=(WIDTH, 4.2), layout="constrained")
        axes = figure.subplots()
        for point in points:
            _point(axes, point)
        axes.set_xscale("log")
        _plain_ticks(axes.xaxis)
        axes.set_xlabel("microseconds to score a pair (log scale)")
        axes.set_ylabel("rsum on test")
        axes.margins(y=0.12)
        times = [point.microseconds for point in points]
        axes.set_xlim(min(times) / 3, max(times) * 3)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a PNG that holds nothing of the place and time it was made at."""
    with atomic(path) as part, _look():
        figure.savefig(part, format="png", dpi=DPI, metadata={"Software": None})


@contextmanager
def _look() -> Iterator[None]:
    """matplotlib's own defaults with ours over them, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(LOOK)
        yield


def _densities(axes: Axes, panel: Panel) -> None:
    """Bins of the panel's own: scores of some methods fill a hundredth of their range."""
    edges = np.linspace(*_ends(panel), BINS + 1)
    for values, colour, label in (
        (panel.unmatched, UNMATCHED, "unmatched pairs"),
        (panel.matched, MATCHED, "matched pairs"),
    ):
        density, _ = np.histogram(values, edges, density=True)
        axes.stairs(density, edges, fill=True, color=colour, alpha=0.35, label=label)
        axes.stairs(density, edges, color=colour, linewidth=0.9)
    axes.set_title(f"{fill(panel.title, 44)}\nS = {panel.overlap:.3f}, 1 - KS = {panel.bound:.3f}")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)


def _ends(panel: Panel) -> tuple[float, float]:
    """What holds all but the tails of both kinds; never empty, even for scores all alike."""
    ends = [np.quantile(x, (TAIL, 1 - TAIL)) for x in (panel.matched, panel.unmatched)]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _method_of(curve: Curve) -> str:
    return curve.method


def _losses(axes: Axes, group: Sequence[Curve]) -> None:
    for curve in group:
        _line(axes, curve, curve.loss)
    low, high = (f(f(curve.loss) for curve in group) for f in (min, max))
    is_wide = low > 0 and high / low > 5  # else a logarithmic axis has hardly a tick
    if is_wide:
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis)
    scale = " (log scale)" if is_wide else ""
    axes.set_title(f"{group[0].method}: training loss{scale}", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _validations(axes: Axes, group: Sequence[Curve]) -> None:
    for curve in group:
        _line(axes, curve, curve.rsum)
        at = curve.epochs == curve.selected
        axes.plot(
            curve.epochs[at],
            curve.rsum[at],
            color=curve.style.colour,
            marker="o",
            markersize=7 if curve.is_first_seed else 4,
            linestyle="none",
        )
    axes.set_title(f"{group[0].method}: validation rsum", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def _line(axes: Axes, curve: Curve, values: np.ndarray) -> None:
    axes.plot(
        curve.epochs,
        values,
        color=curve.style.colour,
        linestyle=curve.style.dash,
        linewidth=1.6 if curve.is_first_seed else 0.7,
        alpha=1.0 if curve.is_first_seed else 0.6,
        marker="." if len(values) == 1 else None,
        label=curve.title if curve.is_first_seed else None,
    )


def _point(axes: Axes, point: Point) -> None:
    axes.errorbar(
        point.microseconds,
        point.rsum,
        yerr=point.deviation or None,
        color=point.style.colour,
        marker=point.style.marker,
        markersize=8,
        markeredgecolor="white",
        capsize=3,
        elinewidth=1,
        linestyle="none",
        label=point.title,
    )


def _plain_ticks(axis: Axis) -> None:
    """Plain numbers at 1, 2, 5, 10 and so on along a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_formatter(NullFormatter())


def _plain(value: float, _position: int) -> str:
    return f"{value:g}"

"""The one figure of numbers with their intervals: a line per thing that is
measured.

Rankings, overlaps, the claims of a season and the ledger of all claims are drawn by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmark.boards import comparisons
from benchmark.boards.boards import Board, Row
from benchmark.core.confidence import PERCENT
from benchmark.report.figure_style import WIDTH, drawing, legend_below, shown

THESE_TRAININGS = f"{PERCENT} over test images, of these trainings only"
LABEL, TITLE = 58, 75  # characters of a line
# inches: a line of text, between lines, of a panel
TEXT_LINE, GAP, AROUND = 0.15, 0.09, 0.65
BAND = "#e3ecf5"
# times the median reach of a mark: what lies beyond is an arrow at the end of the axis
FAR = 8


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a mark looks, and what that means."""

    title: str  # in the legend
    colour: str
    marker: str = "o"
    face: str = ""  # colour inside the mark; empty: the same
    size: float = 6.5

    def points(self, marker: str) -> dict:
        """As arguments of matplotlib."""
        edge = {"markeredgecolor": "white", "markerfacecolor": self.colour}
        if self.face or self.marker in "|_":
            edge = {"markerfacecolor": self.face or self.colour, "markeredgewidth": 1.3}
        look = {"color": self.colour, "marker": marker, "markersize": self.size}
        return look | edge | {"linestyle": "none"}


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A number, perhaps with its interval."""

    value: float
    look: Look
    ends: tuple[float, float] | None = None
    # the interval says nothing of others: it is dotted
    is_of_these_trainings: bool = False
    shift: float = 0.0  # inches below the middle of its line


@dataclass(frozen=True, kw_only=True)
class Line:
    """A label with marks. Lines of the same panel share an axis."""

    label: str
    marks: Sequence[Mark]
    panel: str  # its title
    band: tuple[float, float] | None = None  # shaded
    text: str = ""  # right of the axis

    @property
    def height(self) -> float:
        """Inches."""
        label = shown(self.label, LABEL)
        rows = 1 + max(label.count("\n"), self.text.count("\n"))
        shifts = [mark.shift for mark in self.marks]
        of_text = TEXT_LINE * rows
        of_marks = TEXT_LINE + max(shifts) - min(shifts)
        return GAP + max(of_text, of_marks)


def row_mark(board: Board, row: Row, metric: str, look: Look) -> Mark:
    """The mean of a metric over the trainings of a row, with its interval: for other
    images alone where nothing is known of other trainings."""
    is_one = comparisons.seed_part(board, row, metric) is None
    ends_of = comparisons.interval_over_images if is_one else comparisons.interval
    ends = ends_of(board, row, metric)
    return Mark(
        value=row.mean(metric), look=look, ends=ends, is_of_these_trainings=is_one
    )


@drawing()
def intervals(
    lines: Sequence[Line],
    *,
    band: str = "",
    limits: tuple[float, float] | None = None,
    ticks: Mapping[float, str] | None = None,
    verticals: Sequence[float] = (),
    legend: Sequence[Look] = (),
) -> Figure:
    """Draw lines from top to bottom, those of one panel together.

    `band` says what the shaded ranges mean. `limits` are the ends of all axes, by
    default so that all numbers are shown but those that are far from zero; marks beyond
    are arrows. `ticks` are texts at places of the axes, `verticals` places of vertical
    lines, and `legend` the looks that are explained, by default those of all marks.
    """
    panels: dict[str, list[Line]] = {}
    for line in lines:
        panels.setdefault(line.panel, []).append(line)
    if not lines:
        panels["nothing was measured"] = []
    heights = [_panel_height(of_panel) for of_panel in panels.values()]
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, of_panel) in zip(grid, panels.items(), strict=True):
        axes.set_xlim(limits or _limits(of_panel))
        for vertical in verticals:
            axes.axvline(vertical, color="black", linewidth=1)
        _draw_panel(axes, of_panel)
        axes.set_title(shown(title, TITLE), loc="left", fontweight="bold")
        if ticks:
            axes.set_xticks(list(ticks), list(ticks.values()))
    handles = _handles(lines, band, legend)
    if handles:
        legend_below(figure, list(handles.values()), list(handles))
    return figure


def _panel_height(lines: Sequence[Line]) -> float:
    """Inches."""
    return AROUND + sum(line.height for line in lines)


def _handles(
    lines: Sequence[Line], band: str, legend: Sequence[Look]
) -> dict[str, Artist]:
    """What the legend explains, by its text."""
    marks: list[Mark] = []
    for line in lines:
        marks += line.marks
    handles: dict[str, Artist] = {}
    for look in legend or [mark.look for mark in marks]:
        handles[look.title] = Line2D([], [], **look.points(look.marker))
    if any(mark.is_of_these_trainings and mark.ends for mark in marks):
        handles[THESE_TRAININGS] = Line2D([], [], color="black", linestyle=":")
    if any(line.band for line in lines):
        handles[band] = Patch(color=BAND)
    return handles


def _draw_panel(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw the lines of a panel, whose vertical axis is in inches. Intervals and marks
    of one look are drawn at once, which keeps the file small."""
    heights = np.array([line.height for line in lines])
    middles = np.cumsum(heights) - heights / 2
    low, high = axes.get_xlim()
    spans: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    points: dict[tuple[Look, str], list[tuple[float, float]]] = {}
    for line, middle, height in zip(lines, middles, heights, strict=True):
        if line.band:
            start, end = np.clip(line.band, low, high)
            axes.barh(middle, end - start, height, start, color=BAND, zorder=0)
        for mark in line.marks:
            y = middle + mark.shift
            if mark.ends:
                dash = ":" if mark.is_of_these_trainings else "-"
                key = (mark.look.colour, dash)
                spans.setdefault(key, []).append((y, *mark.ends))
            marker = mark.look.marker
            if mark.value > high:
                marker = ">"
            elif mark.value < low:
                marker = "<"
            x = float(np.clip(mark.value, low, high))
            points.setdefault((mark.look, marker), []).append((x, y))
    for (colour, dash), of_look in spans.items():
        span = {"color": colour, "linestyle": dash, "linewidth": 1.8}
        heights_of_look, starts, ends = zip(*of_look, strict=True)
        axes.hlines(heights_of_look, starts, ends, **span)
    for (look, marker), of_look in points.items():
        at_top = {"clip_on": False, "zorder": 3}
        values, heights_of_look = zip(*of_look, strict=True)
        axes.plot(values, heights_of_look, **at_top, **look.points(marker))
    axes.set_yticks(middles, [shown(line.label, LABEL) for line in lines])
    axes.set_ylim(max(heights.sum(), GAP), 0)
    axes.set_xlim(low, high)
    axes.grid(axis="y", visible=False)
    texts = [line.text for line in lines]
    if any(texts):
        right = axes.secondary_yaxis("right")
        right.set_yticks(middles, texts, fontsize=8)
        right.tick_params(length=0, pad=8)  # behind arrows
        right.spines["right"].set_visible(False)


def _limits(lines: Sequence[Line]) -> tuple[float, float]:
    """Ends of an axis that shows all numbers but those that are far from zero."""
    ends = []
    for line in lines:
        for mark in line.marks:
            low, high = mark.ends or (mark.value, mark.value)
            ends.append((mark.value, low, high))
    if not ends:
        return -1.0, 1.0
    most = FAR * np.median(np.abs(ends).max(1))
    inner = np.clip(ends, -most, most)
    room = 0.05 * np.ptp(inner) or 1.0
    low = inner.min() - room
    high = inner.max() + room
    return float(low), float(high)

"""Figures of claims: every comparison with its interval and its verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.report.figure_style import COLOURS, GREY, WIDTH, drawing, legend_below, shown

Verdict = Literal["holds", "does not hold", "undecided"]
LOOKS: dict[Verdict, tuple[str, str]] = {  # verdict -> colour, marker
    "holds": (COLOURS[2], "o"),
    "does not hold": (COLOURS[1], "X"),
    "undecided": (GREY, "s"),
}
LABEL = 62  # characters of a line
LINE = 0.16  # inches; of a line of a label
GAP = 0.14  # inches; between two rows
AROUND = 0.75  # inches; the axis of a unit, with its name


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One comparison of a claim. Positive: the first preset is better, which most claims say."""

    label: str
    unit: str  # what the difference is measured in; every unit has an axis of its own
    difference: float
    low: float  # ends of the 95% interval
    high: float
    verdict: Verdict
    printed: float | None = None  # the paper's difference
    bounds: tuple[float, ...] = ()  # what else than zero the claim judges the difference by


def forest(comparisons: Sequence[Comparison]) -> Figure:
    """One row a comparison, in the given order, the rows of a unit together."""
    units = list(dict.fromkeys(comparison.unit for comparison in comparisons))
    groups = [[c for c in comparisons if c.unit == unit] for unit in units]
    heights = [AROUND + sum(map(_height, group)) for group in groups]
    with drawing():
        figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        grid = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, unit, group in zip(grid, units, groups, strict=True):
            _rows(axes, group)
            unit = shown(unit, 36, lines=1)
            axes.set_xlabel(f"difference of {unit}; right of 0: the first preset is better")
        handles, titles = _key(comparisons)
        legend_below(figure, handles, titles)
    return figure


def _height(comparison: Comparison) -> float:
    """Inches of a row."""
    return GAP + LINE * (shown(comparison.label, LABEL).count("\n") + 1)


def _rows(axes: Axes, group: Sequence[Comparison]) -> None:
    """Rows from top to bottom, the vertical axis in inches."""
    heights = np.array([_height(comparison) for comparison in group])
    places = np.cumsum(heights) - heights / 2
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlim(_limits(group))
    for place, comparison in zip(places, group, strict=True):
        _row(axes, place, comparison)
    axes.set_yticks(places, [shown(comparison.label, LABEL) for comparison in group])
    axes.set_ylim(heights.sum(), 0)
    axes.grid(axis="y", visible=False)


def _limits(group: Sequence[Comparison]) -> tuple[float, float]:
    """What was measured, and not what papers print, which may be so far away that the intervals
    of all rows would shrink to dots."""
    ends = [0.0, *(end for c in group for end in (c.low, c.high, c.difference, *c.bounds))]
    room = 0.15 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def _row(axes: Axes, place: float, comparison: Comparison) -> None:
    colour, marker = LOOKS[comparison.verdict]
    axes.hlines(place, comparison.low, comparison.high, color=colour, linewidth=1.8)
    axes.plot(comparison.bounds, [place] * len(comparison.bounds), **_bound())
    if comparison.printed is not None:
        _printed(axes, place, comparison.printed)
    axes.plot(
        comparison.difference,
        place,
        color=colour,
        marker=marker,
        markersize=8,
        markeredgecolor="white",
        linestyle="none",
        zorder=4,
    )


def _printed(axes: Axes, place: float, printed: float) -> None:
    """A diamond, or at the end of the axis an arrow to where it would be."""
    low, high = axes.get_xlim()
    if low <= printed <= high:
        axes.plot(printed, place, clip_on=False, **_diamond())
        return
    is_beyond = printed > high
    end, arrow, side, inside = (high, ">", "right", -8) if is_beyond else (low, "<", "left", 8)
    axes.plot(end, place, clip_on=False, **(_diamond() | {"marker": arrow}))
    axes.annotate(
        f"{printed:+g}",
        (end, place),
        (inside, 0),
        textcoords="offset points",
        horizontalalignment=side,
        verticalalignment="center",
        fontsize=8,
    )


def _key(comparisons: Sequence[Comparison]) -> tuple[list[Artist], list[str]]:
    """A legend of what is there."""
    found = {comparison.verdict for comparison in comparisons}
    titles = [verdict for verdict in LOOKS if verdict in found]
    handles = []
    for verdict in titles:
        colour, marker = LOOKS[verdict]
        look = {"color": colour, "marker": marker, "markersize": 8, "markeredgecolor": "white"}
        handles.append(Line2D([], [], linewidth=1.8, **look))
    if any(comparison.printed is not None for comparison in comparisons):
        handles.append(Line2D([], [], **_diamond()))
        titles.append("printed in the paper")
    if any(comparison.bounds for comparison in comparisons):
        handles.append(Line2D([], [], **_bound()))
        titles.append("margin of the claim")
    return handles, titles


def _diamond() -> dict:
    look = {"marker": "D", "markersize": 6.5, "markerfacecolor": "none", "color": "black"}
    return look | {"linestyle": "none", "zorder": 5}


def _bound() -> dict:
    return {"marker": "|", "markersize": 11, "color": GREY, "linestyle": "none", "zorder": 2}

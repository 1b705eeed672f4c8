"""Every comparison of the claims with its interval and its verdict, as a forest plot."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.analysis.claims import Verdict
from benchmark.analysis.comparisons import Comparison
from benchmark.analysis.verdict_rules import Conclusion, Rule
from benchmark.papers.claimed_quantities import quantity
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, GREY, WIDTH, drawing, legend_below, shown
from benchmark.report.pages.claim_tables import OF_THESE_TRAININGS, compared, counted, has_dagger

SECTION = "claims"
MARKS = {  # conclusion -> colour, marker
    Conclusion.HOLDS: (COLOURS[2], "o"),
    Conclusion.REVERSED: (COLOURS[1], "X"),
    Conclusion.NO_DIFFERENCE: (COLOURS[0], "d"),
    Conclusion.BETTER: (COLOURS[1], ">"),
    Conclusion.WORSE: (COLOURS[1], "<"),
    Conclusion.UNDECIDED: (GREY, "s"),
}
LABEL = 62  # characters of a line
LINE = 0.16  # inches; of a line of a label
GAP = 0.14  # inches; between two rows
DOTTED = ":"
AROUND = 0.75  # inches; the axis of a unit, with its name
FAR = 5  # times the median reach of a row: what lies beyond is an arrow at the end of the axis


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One comparison of a claim. If the difference is positive, the first preset is better."""

    label: str
    unit: str  # of the difference; every unit has its own axis
    difference: float
    low: float  # ends of the 95% interval
    high: float
    conclusion: Conclusion
    printed: float | None = None  # the paper's difference
    bounds: tuple[float, ...] = ()  # margins of the claim, other than zero
    is_of_these_trainings: bool = False  # the interval says nothing of others


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    rows = [row for verdict in inputs.verdicts for row in forest_rows(verdict)]
    if rows:
        yield Picture(
            name="claims",
            figure=forest(rows),
            alt=f"{inputs.board.card['title']}: a line per comparison of the claims, {len(rows)} "
            f"in all, with the difference, its 95% interval and the printed one; "
            f"{counted(inputs.verdicts)}",
        )


def forest_rows(verdict: Verdict) -> list[ForestRow]:
    """One row per comparison that has an interval."""
    return [
        ForestRow(
            label=_label(verdict, tested.comparison),
            unit=quantity(verdict.claim.metric).heading,
            difference=tested.comparison.difference,
            low=tested.comparison.interval[0],
            high=tested.comparison.interval[1],
            conclusion=tested.conclusion,
            printed=tested.printed,
            bounds=_bounds(tested.rule),
            is_of_these_trainings=has_dagger(tested.comparison),
        )
        for tested in verdict.tested
        if tested.comparison.interval
    ]


def _label(verdict: Verdict, comparison: Comparison) -> str:
    """The claim; of a claim on several pairs, which one."""
    statement = verdict.claim.statement
    return f"{compared(verdict, comparison)}: {statement}" if len(verdict.tested) > 1 else statement


def _bounds(rule: Rule) -> tuple[float, ...]:
    """The margins at which the verdict changes."""
    if not rule.margin:
        return ()
    return (rule.margin,) if rule.kind == "not_better" else (-rule.margin, rule.margin)


def forest(rows: Sequence[ForestRow]) -> Figure:
    """One line per row, in the given order, the rows of a unit together."""
    units = list(dict.fromkeys(row.unit for row in rows))
    groups = [[row for row in rows if row.unit == unit] for unit in units]
    heights = [AROUND + sum(map(_height, group)) for group in groups]
    with drawing():
        figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        grid = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, unit, group in zip(grid, units, groups, strict=True):
            _draw_group(axes, group)
            unit = shown(unit, 36, lines=1)
            axes.set_xlabel(f"difference of {unit}; right of 0: the first preset is better")
        handles, titles = _legend(rows)
        legend_below(figure, handles, titles)
    return figure


def _height(row: ForestRow) -> float:
    """Inches of a row."""
    return GAP + LINE * (shown(row.label, LABEL).count("\n") + 1)


def _draw_group(axes: Axes, group: Sequence[ForestRow]) -> None:
    """Draw rows from top to bottom, with the vertical axis in inches."""
    heights = np.array([_height(row) for row in group])
    positions = np.cumsum(heights) - heights / 2
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlim(_limits(group))
    for position, row in zip(positions, group, strict=True):
        _draw_row(axes, position, row)
    axes.set_yticks(positions, [shown(row.label, LABEL) for row in group])
    axes.set_ylim(heights.sum(), 0)
    axes.grid(axis="y", visible=False)


def _limits(group: Sequence[ForestRow]) -> tuple[float, float]:
    """Range of the measured numbers, but of a few that are so far away that all other intervals
    would shrink to dots; printed ones may be, too."""
    reaches = [max(map(abs, _ends(row))) for row in group]
    most = FAR * float(np.median(reaches))
    ends = [0.0, *np.clip([end for row in group for end in _ends(row)], -most, most)]
    room = 0.15 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def _ends(row: ForestRow) -> tuple[float, ...]:
    return row.low, row.high, row.difference, *row.bounds


def _draw_row(axes: Axes, position: float, row: ForestRow) -> None:
    colour, marker = MARKS[row.conclusion]
    style = DOTTED if row.is_of_these_trainings else "-"
    axes.hlines(position, row.low, row.high, color=colour, linewidth=1.8, linestyle=style)
    axes.plot(row.bounds, [position] * len(row.bounds), **_bound())
    if row.printed is not None:
        _draw_number(axes, position, row.printed, _diamond())
    look = {"color": colour, "marker": marker, "markersize": 8, "markeredgecolor": "white"}
    _draw_number(axes, position, row.difference, look | {"linestyle": "none", "zorder": 4})


def _draw_number(axes: Axes, position: float, number: float, look: dict) -> None:
    """Draw its mark, or an arrow with the number at the end of the axis if it lies beyond it."""
    low, high = axes.get_xlim()
    if low <= number <= high:
        axes.plot(number, position, clip_on=False, **look)
        return
    is_beyond = number > high
    end, arrow, side, inside = (high, ">", "right", -8) if is_beyond else (low, "<", "left", 8)
    axes.plot(end, position, clip_on=False, **(look | {"marker": arrow}))
    axes.annotate(
        f"{float(f'{number:.3g}'):+g}",
        (end, position),
        (inside, 0),
        textcoords="offset points",
        horizontalalignment=side,
        verticalalignment="center",
        fontsize=8,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},  # an interval may lie below
    )


def _legend(rows: Sequence[ForestRow]) -> tuple[list[Artist], list[str]]:
    """Handles and titles of the marks that occur."""
    drawn = {row.conclusion for row in rows}
    titles = [conclusion for conclusion in MARKS if conclusion in drawn]
    handles = []
    for conclusion in titles:
        colour, marker = MARKS[conclusion]
        look = {"color": colour, "marker": marker, "markersize": 8, "markeredgecolor": "white"}
        handles.append(Line2D([], [], linewidth=1.8, **look))
    if any(row.is_of_these_trainings for row in rows):
        handles.append(Line2D([], [], color="black", linewidth=1.8, linestyle=DOTTED))
        titles.append(OF_THESE_TRAININGS)
    if any(row.printed is not None for row in rows):
        handles.append(Line2D([], [], **_diamond()))
        titles.append("printed in the paper")
    if any(row.bounds for row in rows):
        handles.append(Line2D([], [], **_bound()))
        titles.append("margin of the claim")
    return handles, titles


def _diamond() -> dict:
    look = {"marker": "D", "markersize": 6.5, "markerfacecolor": "none", "color": "black"}
    return look | {"linestyle": "none", "zorder": 5}


def _bound() -> dict:
    return {"marker": "|", "markersize": 11, "color": GREY, "linestyle": "none", "zorder": 2}

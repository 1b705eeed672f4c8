"""The one figure of numbers with their intervals: a line per thing that is measured.

Rankings, overlaps, the claims of a season and the ledger of all claims are drawn by it.
Here it draws every row of a leaderboard, and every comparison of the claims with its
verdict, as a forest plot.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import RANKED_BY, Board, Row
from benchmark.boards.claims import ClaimTest
from benchmark.papers.printed_tables import quantity
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    WIDTH,
    drawing,
    legend_below,
    shown,
)
from benchmark.scoring import METRICS
from benchmark.stats import PERCENT
from benchmark.stats.claim_kinds import Conclusion
from benchmark.stats.verdicts import Verdict

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
    """The mean of a metric over the trainings of a row, with its interval."""
    ends, is_of_these = comparisons.known_interval(board, row, metric)
    return Mark(
        value=row.mean(metric), look=look, ends=ends, is_of_these_trainings=is_of_these
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


# Boards and claims --------------------------------------------------------------------


CONVERGED = Look(title="converged, or not trained in epochs", colour=BLUE)
CUT_SHORT = Look(title="not converged", colour=GREY, face="white")
WHOLE = (float("-inf"), float("inf"))  # of an axis
NOT_BETTER = Look(title="not better by the margin", colour=ORANGE, marker="p")
LOOKS = {
    Conclusion.HOLDS: Look(title="holds", colour=GREEN),
    Conclusion.REVERSED: Look(title="reversed", colour=ORANGE, marker="X"),
    Conclusion.NO_DIFFERENCE: Look(title="no difference", colour=BLUE, marker="d"),
    Conclusion.BETTER: Look(title="does not hold: better", colour=ORANGE, marker="^"),
    Conclusion.WORSE: Look(title="does not hold: worse", colour=ORANGE, marker="v"),
    Conclusion.NOT_BETTER: NOT_BETTER,
    Conclusion.UNDECIDED: Look(title="undecided", colour=GREY, marker="s"),
}
MARGIN = Look(title="margin of the claim", colour=GREY, marker="|", size=11)
PRINTED = Look(title="printed in the paper", colour="black", marker="D", face="none")


def leaderboard(inputs: FigureInputs) -> Iterator[ReportFigure]:
    if len(inputs.board.ranked) > 1:
        lines = leaderboard_lines(inputs.board)
        ends = f"from {lines[0].label} to {lines[-1].label}"
        yield ReportFigure(
            name="ranking",
            figure=intervals(lines, band="not significantly different from the best"),
            alt=f"{inputs.board.title}: all {len(lines)} rows with a result, each with "
            f"its {PERCENT} interval, {ends}",
        )


def leaderboard_lines(board: Board) -> list[Line]:
    """One per row with a result, best first. A band is behind those not significantly
    different from the best, where any two could be."""
    metric = RANKED_BY[board.ranked[0].task]
    alike = set()  # ranks
    if comparisons.is_compared(board):
        alike = {1, *comparisons.rivals(board)[0]}
    lines = []
    for rank, row in enumerate(board.ranked, 1):
        letters = flags.letters(flags.row_flags(board, row))
        is_cut_short = flags.has_flag(board, row, flags.not_converged)
        look = CUT_SHORT if is_cut_short else CONVERGED
        line = Line(
            label=row.title,
            marks=[row_mark(board, row, metric, look)],
            panel=f"{METRICS[metric].heading} on test. Right: seeds; flags",
            text=f"{len(row.played)}; {letters or '-'}",
            band=WHOLE if rank in alike else None,
        )
        lines.append(line)
    return lines


def claims(inputs: FigureInputs) -> Iterator[ReportFigure]:
    lines = claim_lines(inputs.claim_tests)
    if lines:
        yield ReportFigure(
            name="claims",
            figure=intervals(lines, verticals=[0]),
            alt=f"{inputs.board.title}: {len(lines)} comparisons of the claims, each "
            f"with the difference, its {PERCENT} interval and the printed one",
        )


def claim_lines(claim_tests: Sequence[ClaimTest]) -> list[Line]:
    """One per comparison with an interval; every quantity has its own axis."""
    lines = []
    for claim_test in claim_tests:
        for verdict in claim_test.verdicts:
            if not claim_test.is_counted or not verdict.interval:
                continue
            label = claim_test.claim.statement
            if len(claim_test.verdicts) > 1:
                label = f"{verdict.comparison.names}: {label}"
            heading = quantity(verdict.comparison.metric).heading
            panel = f"difference of {heading}; right of 0: the first preset is better"
            lines.append(Line(label=label, marks=_verdict_marks(verdict), panel=panel))
    return lines


def _verdict_marks(verdict: Verdict) -> list[Mark]:
    """The ends of the margin, the measured difference and the printed one."""
    marks = []
    if verdict.margin and not verdict.rule.kind.is_one_sided:
        marks.append(Mark(value=-verdict.margin, look=MARGIN))
    if verdict.margin:
        marks.append(Mark(value=verdict.margin, look=MARGIN))
    measured = Mark(
        value=verdict.difference,
        look=LOOKS[verdict.conclusion],
        ends=verdict.interval,
        is_of_these_trainings=verdict.comparison.is_of_these_trainings,
    )
    marks.append(measured)
    if verdict.printed is not None:
        marks.append(Mark(value=verdict.printed, look=PRINTED))
    return marks


FIGURES = {"first": leaderboard, "claims": claims}

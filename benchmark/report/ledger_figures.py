"""The figures over all seasons: how many claims of each paper hold, and how much of
each printed effect came back.

In the ledger every difference is drawn as a share of the printed one, so that claims on
all metrics share an axis: 0 is no difference, 1 as printed, below 0 the opposite. Where
a claim prints no difference, or denies one, the unit is its margin; a claim that denies
one has a band in which it is true.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmark.boards.claim_ledger import (
    Again,
    ClaimEntry,
    Group,
    LedgerRow,
    judged_again,
)
from benchmark.papers.printed_tables import papers
from benchmark.report import figure_style as style
from benchmark.report.figure_listing import ReportFigure
from benchmark.report.interval_figure import Line, Look, Mark, intervals
from benchmark.stats.claim_kinds import KINDS, Conclusion

GROUPS = {  # group -> its colour
    Group.REPLICATED: style.COLOURS[2],
    Group.SMALLER: style.COLOURS[5],
    Group.MIXED: style.COLOURS[4],
    Group.NULL: style.COLOURS[0],
    Group.REVERSED: style.COLOURS[1],
    Group.UNLIKE: style.COLOURS[7],
    Group.UNDECIDED: style.GREY,
    Group.DRAWINGS: "#dddddd",
    Group.UNTESTED: "#eeeeee",
}
NARROW = 2  # claims of a part that has room for its number
LIMITS = (-1.6, 2.6)  # ends of the axis, in units of the printed difference
TICKS = {-1: "opposite", 0: "no effect", 1: "as printed", 2: "twice as printed"}
BAND = "where a claim of no difference is true"
OFFSET = 0.085  # inches; between the findings of a claim
SIDE = 0.5  # where a difference stands that has no scale
PRINTED = Look(title="printed in the paper", colour="black", marker="|")
NO_SCALE = Look(title="no scale: which side", colour=style.GREY, face="white")
OPPOSITE = Look(title="the opposite; not as claimed", colour=style.ORANGE, marker="_")
LOOKS = {  # of a finding, which may disagree with others of its claim
    Conclusion.HOLDS: Look(title="holds in this test", colour=style.GREEN, marker="_"),
    Conclusion.NO_DIFFERENCE: Look(
        title="no difference", colour=style.BLUE, marker="_"
    ),
    Conclusion.REVERSED: OPPOSITE,
    Conclusion.BETTER: OPPOSITE,
    Conclusion.WORSE: OPPOSITE,
    Conclusion.UNDECIDED: Look(
        title="undecided in this test", colour=style.GREY, marker="_"
    ),
}


def figures_of(rows: Sequence[LedgerRow]) -> Iterator[ReportFigure]:
    """The figures of the first page; without a tested claim there is no ledger."""
    told = []
    for name, paper in papers().items():
        said = _counted([row for row in rows if row.paper == name])
        told.append(f"{paper.paper.cited}: {said}")
    alt = f"One bar per paper, its claims by group of the ledger. {'; '.join(told)}."
    yield ReportFigure(name="papers", figure=papers_figure(rows), alt=alt)
    if any(row.findings for row in rows):
        yield ReportFigure(
            name="ledger",
            figure=ledger_figure(rows),
            alt=f"The ledger of claims, {_counted(rows)}: each tested claim is a line with a 95% "
            "interval per test, from the opposite of what is printed over no effect to twice as "
            "printed.",
        )
    if again := judged_again(rows):
        yield ReportFigure(
            name="features",
            figure=features_figure(again),
            alt=f"{len(again)} claims on weaker and on stronger features of the same photographs, "
            "each with its 95% intervals, by what becomes of the verdict.",
        )


def _counted(rows: Sequence[LedgerRow]) -> str:
    counts = Counter(row.group for row in rows)
    return ", ".join(f"{counts[group]} {group}" for group in Group if counts[group])


def papers_figure(rows: Sequence[LedgerRow]) -> Figure:
    """One bar per paper, with a part for each group of the ledger."""
    names = [name for name in papers() if any(row.paper == name for row in rows)]
    with style.drawing():
        figure = Figure(
            figsize=(style.WIDTH, 0.9 + 0.52 * len(names)), layout="constrained"
        )
        axes = figure.subplots()
        for height, name in enumerate(names):
            of_paper = [
                r for r in rows if r.paper == name and r.group != Group.UNCOUNTED
            ]
            counts, left = Counter(row.group for row in of_paper), 0
            for group, colour in GROUPS.items():
                count = counts[group]
                bar = axes.barh(
                    height, count, 0.62, left, color=colour, edgecolor="white"
                )
                if count >= NARROW:
                    is_light = group in (Group.DRAWINGS, Group.UNTESTED)
                    ink = "black" if is_light else "white"
                    axes.bar_label(bar, label_type="center", fontsize=8, color=ink)
                left += count
        axes.set_yticks(range(len(names)), [papers()[n].paper.cited for n in names])
        axes.invert_yaxis()
        axes.set_xlabel("claims")
        axes.set_title(
            "Which claims hold on photographs?", fontsize=14, fontweight="bold"
        )
        axes.grid(visible=False)
        present = {row.group for row in rows}
        handles = {
            g: Patch(color=colour) for g, colour in GROUPS.items() if g in present
        }
        style.legend_below(figure, list(handles.values()), list(handles))
    return figure


def ledger_figure(rows: Sequence[LedgerRow]) -> Figure:
    """A line per tested claim, by group, with a mark per test."""
    places = sorted({finding.place for row in rows for finding in row.findings})
    markers = dict(zip(places, style.MARKERS, strict=False))
    counts = Counter(row.group for row in rows)
    tested = [row for row in rows if row.findings and row.group != Group.UNCOUNTED]
    lines = [ledger_line(row, markers, counts[row.group]) for row in tested]
    legend = [
        Look(title=place, colour=style.GREY, marker=mark)
        for place, mark in markers.items()
    ]
    legend += [PRINTED, NO_SCALE, *LOOKS.values()]
    return intervals(
        lines, band=BAND, limits=LIMITS, ticks=TICKS, verticals=[0, 1], legend=legend
    )


def features_figure(again: Sequence[Again]) -> Figure:
    """A line per claim that was tested on two sets of features, the weaker above the
    stronger."""
    places = sorted({finding.place for of in again for finding in (of.weak, of.strong)})
    markers = dict(zip(places, style.MARKERS, strict=False))
    lines = []
    for of in again:
        row = replace(of.row, findings=[of.weak, of.strong])
        line = ledger_line(row, markers, len(again))
        lines.append(replace(line, panel=of.outcome.capitalize(), beside=""))
    legend = [
        Look(title=place, colour=style.GREY, marker=mark)
        for place, mark in markers.items()
    ]
    legend += [PRINTED, NO_SCALE, *LOOKS.values()]
    return intervals(
        lines, band=BAND, limits=LIMITS, ticks=TICKS, verticals=[0, 1], legend=legend
    )


def ledger_line(row: LedgerRow, markers: dict[str, str], count: int) -> Line:
    """A claim with all its findings; `count` claims are in its group."""
    kind = KINDS[row.claim.parts[0].kind]
    marks = []
    for number, finding in enumerate(row.findings):
        shift = OFFSET * (number - (len(row.findings) - 1) / 2)
        found = finding_marks(finding, kind.denies, markers[finding.place])
        marks += [replace(mark, shift=shift) for mark in found]
    beside = (
        re.sub(" (with|or) ", r"\n\1 ", row.needs)
        if row.group == Group.UNDECIDED
        else ""
    )
    low = LIMITS[0] if kind.is_one_sided else -1
    return Line(
        label=row.claim.statement,
        marks=marks,
        panel=f"{row.group.capitalize()} ({count})",
        band=(low, 1) if kind.denies else None,
        beside=beside,
    )


def finding_marks(finding: ClaimEntry, is_denied: bool, marker: str) -> list[Mark]:
    """The printed difference, and what was measured; where there is neither a printed
    difference nor a margin, a hollow mark on the side of the difference."""
    compared = finding.compared
    look = replace(LOOKS[finding.conclusion], marker=marker)
    if not (compared.printed or compared.margin):
        side = SIDE * float(np.sign(compared.difference))
        return [Mark(value=side, look=replace(look, face="white"))]
    printed = 0 if is_denied else abs(compared.printed or 0)
    scale = printed or compared.margin or abs(compared.difference) or 1.0
    ends = (
        (compared.low / scale, compared.high / scale)
        if compared.low is not None
        else None
    )
    is_one = compared.is_of_these_trainings
    value = compared.difference / scale
    marks = [Mark(value=value, look=look, ends=ends, is_of_these_trainings=is_one)]
    if compared.printed is not None:
        marks.append(Mark(value=compared.printed / scale, look=PRINTED))
    return marks

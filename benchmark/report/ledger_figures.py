"""The figures over all seasons: how many claims of each paper hold, and how much of
each printed effect came back.

In the ledger every difference is drawn as a share of the printed one, so that claims on
all metrics share an axis: 0 is no difference, 1 as printed, below 0 the opposite. Where
a claim prints no difference, or denies one, the unit is its margin; a claim that denies
one has a band in which it is true.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmark.boards.claim_ledger import LedgerRow
from benchmark.boards.grades import FAILING, Grade
from benchmark.papers.printed_tables import papers
from benchmark.report import figure_style as style
from benchmark.report.figure_listing import ReportFigure
from benchmark.report.figures.intervals import Line, Look, Mark, intervals
from benchmark.stats import PERCENT
from benchmark.stats.claim_kinds import KINDS, ClaimKind, Conclusion
from benchmark.stats.verdicts import Verdict

GRADES = {  # grade -> its colour
    Grade.CONFIRMED: style.COLOURS[2],
    Grade.SEEN_ONCE: style.COLOURS[5],
    Grade.DEPENDS: style.COLOURS[4],
    Grade.NO_EFFECT: style.COLOURS[0],
    Grade.FAILS: style.COLOURS[1],
    Grade.UNDECIDED: style.GREY,
    Grade.OUT_OF_REACH: "#bbbbbb",
    Grade.DRAWINGS: "#dddddd",
    Grade.UNTESTED: "#eeeeee",
}
NARROW = 2  # claims of a part that has room for its number
LIMITS = (-1.6, 2.6)  # ends of the axis, in units of the printed difference
TICKS = {-1: "opposite", 0: "no effect", 1: "as printed", 2: "twice as printed"}
BAND = "where a claim of no difference is true"
OFFSET = 0.085  # inches; between the findings of a claim
SIDE = 0.5  # where a difference stands that has no scale
PRINTED = Look(title="printed in the paper", colour="black", marker="|")
NO_SCALE = Look(title="no scale: which side", colour=style.GREY, face="white")
OPPOSITE = Look(title="fails in this test", colour=style.ORANGE, marker="_")
POOLED = Look(title="all set-ups together", colour=style.GREY, marker="D", size=7.5)
LOOKS = {  # of a finding, which may disagree with others of its claim
    Conclusion.HOLDS: Look(title="holds in this test", colour=style.GREEN, marker="_"),
    Conclusion.NO_DIFFERENCE: Look(
        title="no difference", colour=style.BLUE, marker="_"
    ),
    **dict.fromkeys(FAILING[Grade.FAILS], OPPOSITE),
    Conclusion.UNDECIDED: Look(
        title="undecided in this test", colour=style.GREY, marker="_"
    ),
}


def figures_of(rows: Sequence[LedgerRow]) -> Iterator[ReportFigure]:
    """The figures of the first page; without a tested claim there is no ledger."""
    counts = []
    for name, paper in papers().items():
        of_paper = _counted([row for row in rows if row.paper == name])
        counts.append(f"{paper.paper.cited}: {of_paper}")
    alt = f"One bar per paper, its claims by grade. {'; '.join(counts)}."
    yield ReportFigure(name="papers", figure=papers_figure(rows), alt=alt)
    if any(row.findings for row in rows):
        yield ReportFigure(
            name="ledger",
            figure=ledger_figure(rows),
            alt=f"The ledger of claims, {_counted(rows)}: each tested claim is a line with a "
            f"{PERCENT} interval per test, from the opposite of what is printed over no "
            "effect to twice as printed.",
        )


def _counted(rows: Sequence[LedgerRow]) -> str:
    counts = Counter(row.grade for row in rows)
    return ", ".join(f"{counts[grade]} {grade}" for grade in Grade if counts[grade])


def papers_figure(rows: Sequence[LedgerRow]) -> Figure:
    """One bar per paper, with a part for each grade."""
    counts: dict[str, Counter] = {}  # paper -> grade -> claims
    for name in papers():
        of_paper = [row.grade for row in rows if row.paper == name]
        if of_paper:
            counts[name] = Counter(of_paper)
    size = (style.WIDTH, 0.9 + 0.52 * len(counts))
    with style.drawing():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        for height, of_paper in enumerate(counts.values()):
            drawn = 0  # claims to the left
            for grade, colour in GRADES.items():
                count = of_paper[grade]
                look = {"color": colour, "edgecolor": "white"}
                bar = axes.barh(height, count, 0.62, drawn, **look)
                if count >= NARROW:
                    is_light = grade in (Grade.DRAWINGS, Grade.UNTESTED)
                    ink = "black" if is_light else "white"
                    axes.bar_label(bar, label_type="center", fontsize=8, color=ink)
                drawn += count
        cited = [papers()[name].paper.cited for name in counts]
        axes.set_yticks(range(len(cited)), cited)
        axes.invert_yaxis()
        axes.set_xlabel("claims")
        title = "Which claims hold on photographs?"
        axes.set_title(title, fontsize=14, fontweight="bold")
        axes.grid(visible=False)
        handles = {}
        for grade, colour in GRADES.items():
            if any(of_paper[grade] for of_paper in counts.values()):
                handles[grade] = Patch(color=colour)
        style.legend_below(figure, list(handles.values()), list(handles))
    return figure


def ledger_figure(rows: Sequence[LedgerRow]) -> Figure:
    """A line per tested claim, by grade, with a mark per test. More places than there
    are markers share some."""
    counts = Counter(row.grade for row in rows)
    places: set[str] = set()
    for row in rows:
        places |= {finding.place for finding in row.findings}
    markers = dict(zip(sorted(places), cycle(style.MARKERS), strict=False))
    lines = []
    for row in rows:
        if row.findings and row.grade != Grade.UNCOUNTED:
            line = ledger_line(row, markers)
            panel = f"{row.grade.capitalize()} ({counts[row.grade]})"
            lines.append(replace(line, panel=panel))
    legend = []
    for place, marker in markers.items():
        legend.append(Look(title=place, colour=style.GREY, marker=marker))
    legend += [POOLED, PRINTED, NO_SCALE, *LOOKS.values()]
    axis = {"limits": LIMITS, "ticks": TICKS, "verticals": [0, 1]}
    return intervals(lines, band=BAND, legend=legend, **axis)


def ledger_line(row: LedgerRow, markers: Mapping[str, str]) -> Line:
    """A claim with all its findings, in no panel yet; those of several set-ups below
    what they say together. They stand at the difference of the part that decides, in
    the colour of what they say of the whole claim."""
    index = row.decisive.part if row.graded else 0
    kind, groups = KINDS[row.claim.parts[index].kind], []
    if row.graded and len(row.graded.decisive.set_ups) > 1:
        groups.append(pooled_marks(row.decisive))
    for finding in row.findings:
        verdict = row.deciding(finding) or finding.decisive
        look = replace(LOOKS[finding.conclusion], marker=markers[finding.place])
        groups.append(finding_marks(verdict, look, kind))
    marks = []
    for number, group in enumerate(groups):
        shift = OFFSET * (number - (len(groups) - 1) / 2)
        marks += [replace(mark, shift=shift) for mark in group]
    low = LIMITS[0] if kind.is_one_sided else -1
    band = (low, 1) if kind.denies else None
    return Line(label=row.claim.statement, marks=marks, panel="", band=band)


def pooled_marks(verdict: Verdict) -> list[Mark]:
    """What the set-ups say together; none without a scale."""
    scale = _scale(verdict, verdict.rule.kind)
    if not scale or verdict.interval is None:
        return []
    look = replace(POOLED, colour=LOOKS[verdict.conclusion].colour)
    return [
        Mark(value=verdict.difference / scale, look=look, ends=_ends(verdict, scale))
    ]


def finding_marks(verdict: Verdict, look: Look, kind: ClaimKind) -> list[Mark]:
    """The printed difference, and what was measured; where there is neither a printed
    difference nor a margin, a hollow mark on the side of the difference. `kind` is that
    of the part that decides over all set-ups."""
    if not (verdict.printed or verdict.margin):
        side = SIDE * float(np.sign(verdict.difference))
        return [Mark(value=side, look=replace(look, face="white"))]
    scale = _scale(verdict, kind) or abs(verdict.difference) or 1.0
    measured = Mark(
        value=verdict.difference / scale,
        look=look,
        ends=_ends(verdict, scale),
        is_of_these_trainings=verdict.comparison.is_of_these_trainings,
    )
    marks = [measured]
    if verdict.printed is not None:
        marks.append(Mark(value=verdict.printed / scale, look=PRINTED))
    return marks


def _scale(verdict: Verdict, kind: ClaimKind) -> float:
    """The printed difference or, where none is or the claim denies one, the margin."""
    printed = 0 if kind.denies else abs(verdict.printed or 0)
    return printed or verdict.margin


def _ends(verdict: Verdict, scale: float) -> tuple[float, float] | None:
    """Of the interval; None without one."""
    if verdict.interval is None:
        return None
    low, high = verdict.interval
    return low / scale, high / scale

"""The ledger of claims as one picture: how much of each printed effect came back.

Every difference is drawn as a share of the printed one, so that claims on all metrics share an
axis: 0 is no difference, 1 as printed, below 0 the opposite. Where a claim prints no difference, or
denies one, the unit is its margin; a claim that denies one has a band in which it is true. Knows no
torch.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.analysis.claim_ledger import (
    KEY,
    Finding,
    Group,
    LedgerRow,
    same_comparisons,
    untested_reasons,
)
from benchmark.analysis.season_claims import Compared
from benchmark.analysis.verdict_rules import Conclusion
from benchmark.report.figure_style import COLOURS, GREY, MARKERS, WIDTH, drawing, shown

LOW, HIGH = -1.6, 2.6  # ends of the axis, in units of the printed difference
LABEL = 74  # characters of a line
LINE, GAP, HEAD = 0.145, 0.10, 0.34  # inches: a line of a label, between rows, above a group
BAND = "#dfe7f1"  # where a claim that denies a difference is true
AROUND = 2.1  # inches; title, axis and legend
OFFSET = 0.085  # inches; between the findings of a claim
SIDE = 0.5  # where a difference stands that has no scale
ELSEWHERE = "\N{DOUBLE DAGGER}"
COLOUR_OF = {
    Group.REPLICATED: COLOURS[2],
    Group.SMALLER: COLOURS[5],
    Group.MIXED: COLOURS[4],
    Group.NULL: COLOURS[0],
    Group.REVERSED: COLOURS[1],
    Group.UNLIKE: COLOURS[7],
    Group.UNDECIDED: GREY,
}


def ledger_figure(rows: Sequence[LedgerRow]) -> Figure:
    """A line per tested claim, by group; untested ones are counted below."""
    tested = [row for row in rows if row.findings]
    with drawing():
        heights = _heights(tested)
        total = sum(heights) + AROUND
        figure = Figure(figsize=(WIDTH, total))
        inner = sum(heights) or LINE
        axes = figure.add_axes((0.47, 1.36 / total, 0.415, inner / total))
        _draw(axes, tested, heights)
        _title(figure, rows, total)
        _legend(figure, tested, total)
        figure.text(0.99, 0.08 / total, _notes(rows), ha="right", fontsize=8, color=GREY)
    return figure


def alt_text(rows: Sequence[LedgerRow]) -> str:
    """What the figure shows, for readers who cannot see it."""
    tested = [row for row in rows if row.findings]
    findings = [finding for row in tested for finding in row.findings]
    where = ", ".join(_markers(rows))
    verdicts = Counter(finding.judged.conclusion for finding in findings)
    said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    return (
        f"The ledger of claims, {_counted(rows)}: each of {len(tested)} tested claims is a line "
        f"with a 95% interval per test, from the opposite of what is printed over no effect to "
        f"twice as printed. Of {len(findings)} tests ({where}): {said}."
    )


def _counted(rows: Sequence[LedgerRow]) -> str:
    counts = [sum(row.group == group for row in rows) for group in Group]
    return ", ".join(f"{n} {group}" for n, group in zip(counts, Group, strict=True) if n)


def _notes(rows: Sequence[LedgerRow]) -> str:
    """What rows with a letter are, and why the untested claims are."""
    reasons = [f"{len(of)} {reason}" for reason, of in untested_reasons(rows).items()]
    untested = sum(row.group == Group.UNTESTED for row in rows)
    marks = ["Rows with the same letter are one comparison."] * bool(same_comparisons(rows))
    if any(row.is_elsewhere for row in rows):
        marks.append(f"{ELSEWHERE}: the sentence is about other data.")
    lines = [" ".join(marks)] * bool(marks)
    if untested:
        lines.append(f"{untested} more claims are untested: {', '.join(reasons)}.")
    return "\n".join(lines)


OF_FINDING = {  # a finding has its own colour: those of a claim may disagree
    Conclusion.HOLDS: COLOURS[2],
    Conclusion.NO_DIFFERENCE: COLOURS[0],
    Conclusion.REVERSED: COLOURS[1],
    Conclusion.BETTER: COLOURS[1],
    Conclusion.WORSE: COLOURS[1],
    Conclusion.UNDECIDED: GREY,
}


OF_COLOUR = {  # of a line
    COLOURS[2]: "holds in this test",
    COLOURS[0]: "no difference beyond the margin",
    COLOURS[1]: "the opposite; not as claimed",
    GREY: "undecided in this test",
}


def unit_of(row: LedgerRow, compared: Compared) -> float:
    """The difference that is drawn as 1: the printed one; the margin where a claim denies a
    difference or prints none."""
    if compared.printed and not _is_denied(row):
        return abs(compared.printed)
    return compared.margin or abs(compared.difference) or 1.0


def has_scale(compared: Compared) -> bool:
    """Whether there is a printed difference or a margin to measure by; else the side counts."""
    return bool(compared.printed or compared.margin)


def _is_denied(row: LedgerRow) -> bool:
    return row.claim.kind != "ordered"


def _heights(rows: Sequence[LedgerRow]) -> list[float]:
    """Inches of each row, with the head of its group above the first one."""
    heights = []
    for _, group in groupby(rows, key=lambda row: row.group):
        for number, row in enumerate(group):
            lines = _label(row).count("\n") + 1
            findings = OFFSET * max(0, len(row.findings) - 2)
            heights.append(GAP + max(LINE * lines, LINE + findings) + HEAD * (number == 0))
    return heights


def _draw(axes: Axes, rows: Sequence[LedgerRow], heights: Sequence[float]) -> None:
    """Rows from top to bottom, with the vertical axis in inches."""
    ends = np.cumsum(heights)
    axes.set_xlim(LOW, HIGH)
    axes.set_ylim(float(ends[-1]) if len(ends) else 1.0, 0)
    axes.axvspan(LOW, 0, color="#f6f1ee", zorder=0, linewidth=0)
    axes.axvline(0, color="black", linewidth=1)
    axes.axvline(1, color="black", linewidth=1, linestyle=":")
    before = None
    markers, letters = _markers(rows), same_comparisons(rows)
    for row, height, end in zip(rows, heights, ends, strict=True):
        head = HEAD if row.group != before else 0.0
        if head:
            _draw_head(axes, row.group, [r.group for r in rows].count(row.group), end - height)
        middle = end - (height - head) / 2
        _draw_row(axes, row, middle, markers)
        beside = _beside(row, letters.get((row.paper, row.claim.id), ""))
        look = {"transform": axes.get_yaxis_transform(), "verticalalignment": "center"}
        axes.text(1.015, middle, beside, fontsize=7.5, color=GREY, **look)
        before = row.group
    axes.set_yticks([])
    axes.set_xticks([-1, 0, 1, 2], ["opposite", "no effect", "as printed", "twice as printed"])
    axes.tick_params(axis="x", labeltop=True, top=True)
    axes.spines[["left", "bottom"]].set_visible(False)


def _draw_head(axes: Axes, group: Group, count: int, top: float) -> None:
    colour, text = COLOUR_OF[group], f"{group.capitalize()}: {KEY[group].text}"
    axes.text(
        -1.08,
        top + HEAD - 0.06,
        f"{text}  ({count})",
        transform=axes.get_yaxis_transform(),
        fontsize=9.5,
        fontweight="bold",
        color=colour,
        verticalalignment="bottom",
    )


def _draw_row(axes: Axes, row: LedgerRow, middle: float, markers: dict[str, str]) -> None:
    if _is_denied(row):
        low = LOW if row.claim.kind == "not_better" else -1
        size = OFFSET * len(row.findings) / 2 + 0.05
        axes.fill_betweenx(
            [middle - size, middle + size], low, 1, color=BAND, linewidth=0, zorder=1
        )
    look = {"transform": axes.get_yaxis_transform(), "verticalalignment": "center"}
    axes.text(-1.08, middle, _label(row), fontsize=8, linespacing=1.05, **look)
    first = middle - OFFSET * (len(row.findings) - 1) / 2
    for number, finding in enumerate(row.findings):
        unit = unit_of(row, finding.compared)
        _draw_finding(axes, finding, first + OFFSET * number, unit, markers[finding.place])


def _beside(row: LedgerRow, letter: str) -> str:
    """What an undecided claim needs; of another one, in how many tests it is what its group says,
    where not in all, and that its paper prints no difference; then its letter."""
    is_printed = any(finding.compared.printed is not None for finding in row.findings)
    parts = [row.needs.replace(" with ", "\nwith ")] if row.group == Group.UNDECIDED else []
    if row.group != Group.UNDECIDED:
        count = len(row.findings)
        parts += [f"in {row.agreeing} of {count} tests"] * (row.agreeing < count)
        parts += ["none printed"] * (not is_printed)
    return "\n".join([*filter(None, parts), *[f"= {letter}"] * bool(letter)])


def _draw_finding(axes: Axes, finding: Finding, height: float, unit: float, marker: str) -> None:
    compared, colour = finding.compared, OF_FINDING[finding.judged.conclusion]
    if compared.low is not None and has_scale(compared):
        low, high = (np.clip(end / unit, LOW, HIGH) for end in (compared.low, compared.high))
        line = ":" if compared.is_of_these_trainings else "-"
        axes.hlines(height, low, high, color=colour, linewidth=1.7, linestyle=line)
    if compared.printed is not None:
        place = np.clip(compared.printed / unit, LOW, HIGH)
        axes.plot(place, height, "|", color="black", markersize=7, markeredgewidth=1.3, zorder=3)
    value = compared.difference / unit
    if not LOW <= value <= HIGH:
        marker = ">" if value > HIGH else "<"
    place = np.clip(value, LOW + 0.03, HIGH - 0.03)
    look = {"markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 4}
    if not has_scale(compared):
        place = SIDE * np.sign(value)
        look |= {"markerfacecolor": "white", "markeredgecolor": colour, "markeredgewidth": 1.2}
    axes.plot(place, height, marker, color=colour, clip_on=False, **look)


def _title(figure: Figure, rows: Sequence[LedgerRow], total: float) -> None:
    look = {"ha": "left", "va": "top"}
    figure.text(0.005, 1 - 0.06 / total, "How much of each printed effect came back?",
                fontsize=14, fontweight="bold", **look)  # fmt: skip
    figure.text(0.005, 1 - 0.32 / total, f"{len(rows)} claims of the papers: {_counted(rows)}.",
                fontsize=9, color="#444444", **look)  # fmt: skip
    figure.text(
        0.89,
        1 - 0.36 / total,
        "what would decide,\nor in how many tests",
        fontsize=7.5,
        color=GREY,
        va="top",
    )


def _legend(figure: Figure, rows: Sequence[LedgerRow], total: float) -> None:
    look = {"color": "#444444", "linewidth": 1.7, "markeredgecolor": "white"}
    handles = [
        Line2D([], [], marker=marker, label=shown(where, 40), **look)
        for where, marker in _markers(rows).items()
    ]
    mark = {"color": "black", "marker": "|", "linestyle": "none", "markersize": 8}
    handles.append(Line2D([], [], label="printed in the paper", **mark))
    hollow = look | {"markerfacecolor": "white", "markeredgecolor": "#444444", "linewidth": 0}
    handles.append(Line2D([], [], label="no scale: which side", marker="o", **hollow))
    band = {"color": BAND, "linewidth": 7}
    handles.append(Line2D([], [], label="where a claim of no difference is true", **band))
    for colour, label in OF_COLOUR.items():
        handles.append(Line2D([], [], color=colour, linewidth=3, label=label))
    labels = [handle.get_label() for handle in handles]
    figure.legend(handles, labels, loc="lower left", ncols=4, fontsize=8,
                  bbox_to_anchor=(0.0, 0.34 / total))  # fmt: skip


def _markers(rows: Sequence[LedgerRow]) -> dict[str, str]:
    """Where something was found -> the mark of its findings."""
    places = dict.fromkeys(finding.place for row in rows for finding in row.findings)
    return {where: MARKERS[number % len(MARKERS)] for number, where in enumerate(sorted(places))}


def _label(row: LedgerRow) -> str:
    mark = f" {ELSEWHERE}" if row.is_elsewhere else ""
    return shown(f"{row.claim.statement}{mark}", LABEL, lines=2)

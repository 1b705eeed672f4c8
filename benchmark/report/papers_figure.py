"""How many claims of each paper hold, as one small picture. Knows no torch."""

from collections import Counter
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmark.analysis.claim_ledger import Group, LedgerRow
from benchmark.papers.printed_tables import papers
from benchmark.report.figure_style import WIDTH, drawing, shown
from benchmark.report.ledger_figure import COLOUR_OF

BAR, AROUND = 0.52, 2.0  # inches: a paper's bar with the space below it; title and legend
LIGHT = "#e4e4e4"  # of untested claims
HATCH = "////"  # of claims that drawings alone decide
MEANING = {  # of the groups whose name does not say it
    Group.REPLICATED: "holds",
    Group.SMALLER: "holds, by less than printed",
    Group.MIXED: "depends on the test",
    Group.NULL: "no difference",
    Group.REVERSED: "the opposite",
    Group.UNLIKE: "a difference where none is claimed",
}
NARROW = 2  # claims of a part that has room for its number


def papers_figure(rows: Sequence[LedgerRow]) -> Figure:
    """One bar per paper, with a part for each group of the ledger."""
    names = [name for name in papers() if any(row.paper == name for row in rows)]
    with drawing():
        total = BAR * len(names) + AROUND
        figure = Figure(figsize=(WIDTH, total))
        axes = figure.add_axes((0.36, 1.3 / total, 0.62, BAR * len(names) / total))
        for height, name in enumerate(names):
            _draw_bar(axes, height, [row for row in rows if row.paper == name])
        axes.set_yticks(range(len(names)), [shown(papers()[n].paper.title, 46) for n in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel("claims")
        axes.grid(visible=False)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        figure.text(0.005, 1 - 0.08 / total, "Which claims of the papers hold?",
                    fontsize=14, fontweight="bold", va="top")  # fmt: skip
        figure.text(0.005, 1 - 0.36 / total, _counted(rows), fontsize=9, color="#444444", va="top")
        _legend(figure, rows, total)
    return figure


def alt_text(rows: Sequence[LedgerRow]) -> str:
    """What the figure shows, for readers who cannot see it."""
    of_papers = [
        f"{paper.paper.title}: {_listed([row for row in rows if row.paper == name])}"
        for name, paper in papers().items()
    ]
    return f"One bar per paper, its claims by group of the ledger. {'; '.join(of_papers)}."


def _draw_bar(axes: Axes, height: int, rows: Sequence[LedgerRow]) -> None:
    counts = Counter((row.group, row.rests_on_drawings) for row in rows)
    left = 0
    for group in Group:
        for of_drawings in (False, True):
            count = counts[group, of_drawings]
            look = {"color": _colour(group), "edgecolor": "white", "linewidth": 0.8}
            axes.barh(height, count, 0.62, left, hatch=HATCH if of_drawings else None, **look)
            if count >= NARROW:
                dark = group == Group.UNTESTED
                box = {"facecolor": _colour(group), "edgecolor": "none", "pad": 1.0}
                axes.text(left + count / 2, height, str(count), ha="center", va="center",
                          fontsize=8, color="#444444" if dark else "white", bbox=box)  # fmt: skip
            left += count


def _colour(group: Group) -> str:
    return COLOUR_OF.get(group, LIGHT)


def _counted(rows: Sequence[LedgerRow]) -> str:
    tested = sum(row.group != Group.UNTESTED for row in rows)
    return f"{len(rows)} claims, {tested} of them tested: {_listed(rows)}."


def _listed(rows: Sequence[LedgerRow]) -> str:
    counts = Counter(row.group for row in rows)
    return ", ".join(f"{counts[group]} {group}" for group in Group if counts[group])


def _label(group: Group) -> str:
    return f"{group}: {MEANING[group]}" if group in MEANING else str(group)


def _legend(figure: Figure, rows: Sequence[LedgerRow], total: float) -> None:
    groups = [group for group in Group if any(row.group == group for row in rows)]
    handles = [Patch(facecolor=_colour(group), label=_label(group)) for group in groups]
    if any(row.rests_on_drawings for row in rows):
        look = {"facecolor": "#999999", "edgecolor": "white", "hatch": HATCH}
        handles.append(Patch(label="on drawings only", **look))
    figure.legend(handles=handles, loc="lower left", ncols=3, fontsize=8.5,
                  bbox_to_anchor=(0.0, 0.02 / total))  # fmt: skip

"""How many claims of each paper hold, as one small figure."""

from collections import Counter
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmark.boards.claim_ledger import Group, LedgerRow
from benchmark.papers.printed_tables import papers
from benchmark.report.figure_style import COLOURS, GREY, WIDTH, drawing, legend_below, shown

LOOKS = {  # group -> what it means, its colour
    Group.REPLICATED: ("holds", COLOURS[2]),
    Group.SMALLER: ("holds, by less than printed", COLOURS[5]),
    Group.MIXED: ("depends on the test", COLOURS[4]),
    Group.NULL: ("no difference", COLOURS[0]),
    Group.REVERSED: ("the opposite", COLOURS[1]),
    Group.UNLIKE: ("a difference where none is claimed", COLOURS[7]),
    Group.UNDECIDED: ("undecided", GREY),
    Group.UNTESTED: ("untested", "#cccccc"),
}
HATCH = "////"  # of claims that drawings alone decide
NARROW = 2  # claims of a part that has room for its number


def papers_figure(rows: Sequence[LedgerRow]) -> Figure:
    """One bar per paper, with a part for each group of the ledger."""
    names = [name for name in papers() if any(row.paper == name for row in rows)]
    with drawing():
        figure = Figure(figsize=(WIDTH, 0.9 + 0.52 * len(names)), layout="constrained")
        axes = figure.subplots()
        for height, name in enumerate(names):
            counts = Counter((r.group, r.rests_on_drawings) for r in rows if r.paper == name)
            left = 0
            for group, is_drawn in ((group, is_drawn) for group in Group for is_drawn in (0, 1)):
                count, colour = counts[group, bool(is_drawn)], LOOKS[group][1]
                look = {"color": colour, "edgecolor": "white", "hatch": HATCH * is_drawn}
                bar = axes.barh(height, count, 0.62, left, **look)
                if count >= NARROW:
                    box = {"facecolor": colour, "edgecolor": "none", "pad": 1.0}
                    ink = "black" if group == Group.UNTESTED else "white"
                    axes.bar_label(bar, label_type="center", fontsize=8, color=ink, bbox=box)
                left += count
        axes.set_yticks(range(len(names)), [shown(papers()[n].paper.title, 46) for n in names])
        axes.invert_yaxis()
        axes.set_xlabel("claims")
        axes.set_title("Which claims of the papers hold?", fontsize=14, fontweight="bold")
        axes.grid(visible=False)
        handles = {title: Patch(color=colour) for title, colour in LOOKS.values()}
        handles["decided on drawings only"] = Patch(fc="#999999", ec="white", hatch=HATCH)
        legend_below(figure, list(handles.values()), list(handles))
    return figure


def alt_text(rows: Sequence[LedgerRow]) -> str:
    """What the figure shows, for readers who cannot see it."""
    told = []
    for name, paper in papers().items():
        counts = Counter(row.group for row in rows if row.paper == name)
        of_paper = ", ".join(f"{counts[group]} {group}" for group in Group if counts[group])
        told.append(f"{paper.paper.title}: {of_paper}")
    return f"One bar per paper, its claims by group of the ledger. {'; '.join(told)}."

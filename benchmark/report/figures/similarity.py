"""Densities of matched and unmatched scores of every row, with S, their overlap."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from benchmark.data.results import Histograms
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import (
    BLUE,
    GREY,
    ORANGE,
    drawing,
    legend_below,
    panels,
    shown,
)
from benchmark.report.figures.intervals import Line, Look, Mark, intervals, row_mark
from benchmark.stats import PERCENT

KINDS = {
    "Q: unmatched pairs": BLUE,
    "P: matched pairs": ORANGE,
    "S: area under both": "#333333",
}
BINS = 60  # of a panel
TAIL = 0.001  # share of the scores that may lie beyond either end of a panel
MOST = 15  # rows, the best; S of all others is in the other figure
OVERLAP = Look(title="S", colour=BLUE)
OTHERS = {
    "overlap_s_half_bins": Look(
        title="S at half the bins", colour=GREY, marker="<", size=5.5
    ),
    "overlap_s_double_bins": Look(
        title="S at double the bins", colour=GREY, marker=">", size=5.5
    ),
    "one_minus_ks": Look(title="1 - KS", colour=ORANGE, marker="|", size=10),
}


def similarity(inputs: FigureInputs) -> Iterator[ReportFigure]:
    rows = [row for row in inputs.board.ranked if row.has_scores]
    if not rows:
        return
    titles = []
    histograms = []
    ranges = []
    for row in rows[:MOST]:
        titles.append(f"{shown(row.title, 44)}\nS = {row.mean('overlap_s'):.3f}")
        histogram = row.played[0].scores.histograms
        histograms.append(histogram)
        ranges.append(limits([histogram]))
    yield ReportFigure(
        name="similarities",
        figure=densities(titles, histograms, ranges),
        alt=f"{inputs.board.title}: densities of matched and unmatched scores, one panel per row",
        caption="Every panel has its own scale. Drawn are the scores of the first seed; S is the "
        f"mean over all seeds. Lower rows that are left out: {len(rows) - len(titles)}.",
    )
    lines = []
    for row in rows:
        marks = []
        for name, look in OTHERS.items():
            marks.append(Mark(value=row.mean(name), look=look))
        marks.append(row_mark(inputs.board, row, "overlap_s", OVERLAP))
        lines.append(Line(label=row.title, marks=marks, panel="S; lower is better"))
    yield ReportFigure(
        name="overlaps",
        figure=intervals(lines),
        alt=f"{inputs.board.title}: S of {len(rows)} rows with its {PERCENT} interval, at half and "
        "double the bins, and 1 - KS",
    )


def limits(histograms: Sequence[Histograms]) -> tuple[float, float]:
    """The range of all scores but the tails."""
    ends = []
    for each in histograms:
        for counts in (each.matched, each.unmatched):
            shares = np.cumsum(counts) / counts.sum()
            first, last = np.searchsorted(shares, (TAIL, 1 - TAIL))
            ends += [each.edges[first], each.edges[last + 1]]
    return float(min(ends)), float(max(ends))


def density(edges: np.ndarray, counts: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Density in the bins between `at`, of counts in the finer bins between `edges`."""
    shares = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
    return np.diff(np.interp(at, edges, shares)) / np.diff(at)


def densities(
    titles: Sequence[str],
    histograms: Sequence[Histograms],
    ranges: Sequence[tuple[float, float]],
) -> Figure:
    """Densities of both kinds of pairs, one panel per row, with the area that S
    measures."""
    with drawing():
        figure, grid = panels(len(titles), columns=3, head=0.5, row=2.4)
        drawn = zip(grid, titles, histograms, ranges, strict=True)
        for axes, title, each, ends in drawn:
            edges = np.linspace(*ends, BINS + 1)
            unmatched = density(each.edges, each.unmatched, edges)
            matched = density(each.edges, each.matched, edges)
            areas = (unmatched, matched, np.minimum(unmatched, matched))
            for values, colour in zip(areas, KINDS.values(), strict=True):
                axes.stairs(values, edges, fill=True, alpha=0.4, color=colour)
            axes.set(title=title, yticks=[])
            axes.xaxis.set_major_locator(MaxNLocator(5))
        figure.supylabel("density of the scores", fontsize=9)
        patches = [Patch(color=colour, alpha=0.5) for colour in KINDS.values()]
        legend_below(figure, patches, list(KINDS))
    return figure


FIGURES = {"similarity": similarity}

"""S of every preset with its interval, at other numbers of bins, and with its bound."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.markers import CARETDOWN, CARETUP

from benchmark.analysis.boards import Standing
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, GREY, WIDTH, drawing, legend_below, shown

SECTION = "similarity"
ROW = 0.27  # inches; height of a preset
SMALL = {"markersize": 4, "linestyle": "none"}


@dataclass(frozen=True, kw_only=True)
class OverlapRow:
    """S of one preset with everything that says how far to trust it."""

    title: str
    overlap: float
    low: float  # ends of the bootstrap interval
    high: float
    half_bins: float  # S at half the bins
    double_bins: float
    bound: float  # 1 - KS


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    rows = [row for standing in inputs.board.ranked for row in _rows(standing)]
    if rows:
        yield Picture(
            name="overlaps",
            figure=overlap_intervals(rows),
            alt=f"{inputs.board.card['title']}: S of every preset with its 95% interval, at other "
            "bins, and 1 - KS",
        )


def _rows(standing: Standing) -> list[OverlapRow]:
    """The first seed with an interval, if there is one."""
    measured = [outcome.record.metrics for outcome in standing.played]
    return [
        OverlapRow(
            title=standing.row.title,
            overlap=metrics["overlap_s"],
            low=metrics["overlap_s_low"],
            high=metrics["overlap_s_high"],
            half_bins=metrics["overlap_s_half_bins"],
            double_bins=metrics["overlap_s_double_bins"],
            bound=metrics["one_minus_ks"],
        )
        for metrics in measured
        if "overlap_s_low" in metrics
    ][:1]


def overlap_intervals(rows: Sequence[OverlapRow]) -> Figure:
    """One line per preset, in the given order from top to bottom."""
    with drawing():
        figure = Figure(figsize=(WIDTH, 0.6 + ROW * len(rows)), layout="constrained")
        axes = figure.subplots()
        heights = np.arange(len(rows))
        overlaps = [row.overlap for row in rows]
        spans = ([row.low for row in rows], [row.high for row in rows])
        halves, doubles = [row.half_bins for row in rows], [row.double_bins for row in rows]
        bounds = [row.bound for row in rows]
        handles = [
            *axes.plot(overlaps, heights, "o", color=COLOURS[0], markersize=5, zorder=3),
            axes.hlines(heights, *spans, color=COLOURS[0], linewidth=1.6),
            *axes.plot(halves, heights - 0.28, color=GREY, marker=CARETDOWN, **SMALL),
            *axes.plot(doubles, heights + 0.28, color=GREY, marker=CARETUP, **SMALL),
            *axes.plot(bounds, heights, "|", color=COLOURS[1], markersize=11, markeredgewidth=1.8),
        ]
        axes.set_yticks(heights, [shown(row.title, 60, lines=1) for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.set_xlabel("S, the overlap of matched and unmatched scores; lower is better")
        axes.grid(axis="y", linewidth=0.4)
        titles = ["S", "95% interval of S", "S at half the bins", "S at double the bins", "1 - KS"]
        legend_below(figure, handles, titles)
    return figure

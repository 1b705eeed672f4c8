"""S of every preset with its interval, at other numbers of bins, and with its bound.

S is the mean over the seeds. Where nothing is known of other trainings, the interval is that of
the test set only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import CARETDOWN, CARETUP

from benchmark.analysis import comparisons
from benchmark.analysis.boards import Board, Standing
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, GREY, WIDTH, drawing, legend_below, shown
from benchmark.report.pages.result_tables import THESE_TRAININGS

SECTION = "similarity"
ROW = 0.27  # inches; height of a preset
LINE_OF = {  # whether the interval is of the test set only -> its line, its name
    False: ("-", "95% interval of S"),
    True: (":", f"95% of S {THESE_TRAININGS}"),
}
SMALL = {"markersize": 4, "linestyle": "none"}


@dataclass(frozen=True, kw_only=True)
class OverlapRow:
    """S of one preset with everything that says how far to trust it."""

    title: str
    overlap: float
    ends: tuple[float, float] | None  # of the bootstrap interval; None: there is none
    half_bins: float  # S at half the bins
    double_bins: float
    bound: float  # 1 - KS
    is_of_these_trainings: bool = False  # the interval says nothing of other trainings


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    rows = [row for standing in inputs.board.ranked for row in _rows(inputs.board, standing)]
    if rows:
        yield Picture(
            name="overlaps",
            figure=overlap_intervals(rows),
            alt=_alt(inputs.board.card["title"], rows),
            caption="S is the mean over the seeds, as in the table.",
        )


def _alt(title: str, rows: Sequence[OverlapRow]) -> str:
    low, high = (end(rows, key=lambda row: row.overlap) for end in (min, max))
    return (
        f"{title}: S of {len(rows)} preset{'s' * (len(rows) != 1)} with its 95% interval, at half "
        f"and double the bins, and 1 - KS; from {low.overlap:.3f} ({low.title}) to "
        f"{high.overlap:.3f} ({high.title})"
    )


def _rows(board: Board, standing: Standing) -> list[OverlapRow]:
    """One row; none for records that are older than S at other bins."""
    if not standing.values("overlap_s_half_bins"):
        return []
    is_one = comparisons.seed_part(board, standing, "overlap_s") is None
    ends_of = comparisons.interval_over_images if is_one else comparisons.interval
    return [
        OverlapRow(
            title=standing.row.title,
            overlap=standing.mean("overlap_s"),
            ends=ends_of(board, standing, "overlap_s"),
            half_bins=standing.mean("overlap_s_half_bins"),
            double_bins=standing.mean("overlap_s_double_bins"),
            bound=standing.mean("one_minus_ks"),
            is_of_these_trainings=is_one,
        )
    ]


def overlap_intervals(rows: Sequence[OverlapRow]) -> Figure:
    """One line per preset, in the given order from top to bottom."""
    with drawing():
        figure = Figure(figsize=(WIDTH, 0.6 + ROW * len(rows)), layout="constrained")
        axes = figure.subplots()
        heights = np.arange(len(rows))
        overlaps, bounds = [row.overlap for row in rows], [row.bound for row in rows]
        halves, doubles = [row.half_bins for row in rows], [row.double_bins for row in rows]
        spans = _draw_spans(axes, rows)
        handles = [
            *axes.plot(overlaps, heights, "o", color=COLOURS[0], markersize=5, zorder=3),
            *spans.values(),
            *axes.plot(halves, heights - 0.28, color=GREY, marker=CARETDOWN, **SMALL),
            *axes.plot(doubles, heights + 0.28, color=GREY, marker=CARETUP, **SMALL),
            *axes.plot(bounds, heights, "|", color=COLOURS[1], markersize=11, markeredgewidth=1.8),
        ]
        axes.set_yticks(heights, [shown(row.title, 60, lines=1) for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.set_xlabel("S, the overlap of matched and unmatched scores; lower is better")
        axes.grid(axis="y", linewidth=0.4)
        titles = ["S", *spans, "S at half the bins", "S at double the bins", "1 - KS"]
        legend_below(figure, handles, titles)
    return figure


def _draw_spans(axes: Axes, rows: Sequence[OverlapRow]) -> dict[str, Artist]:
    """Draw the intervals; a handle of each kind that occurs, by its name in the legend."""
    handles = {}
    for is_of_these_trainings, (line, name) in LINE_OF.items():
        spans = [
            (height, *row.ends)
            for height, row in enumerate(rows)
            if row.ends and row.is_of_these_trainings == is_of_these_trainings
        ]
        if spans:
            look = {"color": COLOURS[0], "linewidth": 1.6, "linestyle": line}
            handles[name] = axes.hlines(*zip(*spans, strict=True), **look)
    return handles

"""The leaderboard at a glance: the main metric of every preset with its interval, by rank group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmark.analysis import comparisons, validity
from benchmark.analysis.boards import RANKED_BY, Board, Standing
from benchmark.analysis.validity import DOES_NOT_APPLY, HAS
from benchmark.protocol import METRICS
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, FONT, GREY, WIDTH, drawing, shown
from benchmark.report.number_texts import NONE
from benchmark.report.pages import result_tables
from benchmark.report.pages.result_tables import THESE_TRAININGS

UNKNOWN = "convergence not known"
LOOKS = {  # mark -> what it says, the colour of the line, the face of the point
    HAS: ("converged", COLOURS[0], COLOURS[0]),
    "C": ("not converged", GREY, "white"),
    DOES_NOT_APPLY: (UNKNOWN, COLOURS[0], "white"),
}
SECTION = "first"
ROW = 0.235  # inches; height of a preset
LEFT, TOP, BOTTOM = 3.75, 0.3, 0.85  # inches around the axes
GROUP, SEEDS, LACKS = 0.12, 0.42, 0.71  # inches: where the first column begins, width of the others
LETTER, SPACE = 0.075, 0.1  # inches; of the first column, at least as wide as its heading
LABEL = 58  # characters
BAND = "#e3ecf5"  # behind the rows that share a rank group with the best
POINTED = ":"


@dataclass(frozen=True, kw_only=True)
class RankRow:
    """A preset: its mean, its interval, its place."""

    title: str
    mean: float
    ends: tuple[float, float] | None  # of the 95% interval
    is_of_these_trainings: bool  # the interval says nothing of other trainings
    group: str
    seeds: int
    marks: str


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    board = inputs.board
    if len(board.ranked) < 2:
        return
    metric = RANKED_BY[board.ranked[0].task]
    rows = rank_rows(board, metric)
    best, heading = rows[0], METRICS[metric].heading
    yield Picture(
        name="ranking",
        figure=rank_intervals(rows, heading),
        alt=f"{board.card['title']}: {heading} of all {len(rows)} presets with a result, each with "
        f"its 95% interval, best first, from {best.title} with {best.mean:.1f} to {rows[-1].title} "
        f"with {rows[-1].mean:.1f}",
    )


def rank_rows(board: Board, metric: str) -> list[RankRow]:
    """One row per preset with a result, best first."""
    letters = result_tables.groups(board)
    return [
        _row(board, standing, metric, group)
        for standing, group in zip(board.ranked, letters, strict=True)
    ]


def _row(board: Board, standing: Standing, metric: str, group: str) -> RankRow:
    is_one = comparisons.seed_part(board, standing, metric) is None
    ends_of = comparisons.interval_over_images if is_one else comparisons.interval
    return RankRow(
        title=standing.row.title,
        mean=standing.mean(metric),
        ends=ends_of(board, standing, metric),
        is_of_these_trainings=is_one,
        group=group,
        seeds=len(standing.played),
        marks=validity.marks(board, standing),
    )


def rank_intervals(rows: Sequence[RankRow], heading: str) -> Figure:
    """One line per preset in the given order, the best first; a band is behind the rows that
    cannot be told apart from it."""
    height = TOP + ROW * len(rows) + BOTTOM
    columns, right = _columns(rows)
    width = WIDTH - LEFT - right
    with drawing():
        figure = Figure(figsize=(WIDTH, height))
        inner = (LEFT / WIDTH, BOTTOM / height, width / WIDTH, ROW * len(rows) / height)
        axes = figure.add_axes(inner)
        for place in _with_the_best(rows):
            axes.axhspan(place - 0.5, place + 0.5, color=BAND, zorder=0, linewidth=0)
        for place, row in enumerate(rows):
            _draw_row(axes, place, row)
        axes.set_yticks(np.arange(len(rows)), [shown(row.title, LABEL, lines=1) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(f"{heading} on test, with its 95% interval")
        _draw_margin(axes, rows, [place / width for place in columns])
        handles, titles = _legend(rows)
        figure.legend(handles, titles, loc="lower center", ncols=len(titles))
    return figure


def _look(row: RankRow) -> tuple[str, str, str]:
    """What stands for a row in LOOKS: whether it has converged."""
    return LOOKS.get(row.marks[:1], LOOKS[HAS])


def _legend(rows: Sequence[RankRow]) -> tuple[list[Artist], list[str]]:
    looks = [look for look in LOOKS.values() if look[0] != UNKNOWN or look in map(_look, rows)]
    handles = [
        Line2D([], [], color=colour, marker="o", markerfacecolor=face, linestyle="-")
        for _, colour, face in looks
    ]
    titles = [title for title, *_ in looks]
    if any(row.is_of_these_trainings for row in rows):
        handles.append(Line2D([], [], color=GREY, linestyle=POINTED))
        titles.append(THESE_TRAININGS)
    if _with_the_best(rows):
        handles.append(Patch(color=BAND))
        titles.append("not told apart from the best")
    return handles, titles


def _draw_row(axes: Axes, height: int, row: RankRow) -> None:
    _, colour, face = _look(row)
    if row.ends:
        line = POINTED if row.is_of_these_trainings else "-"
        axes.hlines(height, *row.ends, color=colour, linewidth=2, linestyle=line)
    axes.plot(row.mean, height, "o", color=colour, markerfacecolor=face, markersize=6, zorder=3)


def _with_the_best(rows: Sequence[RankRow]) -> list[int]:
    """The places of the rows that share a rank group with the first, itself among them; none where
    no rows were compared."""
    best = set(rows[0].group) - {NONE}
    return [place for place, row in enumerate(rows) if best & set(row.group)]


def _columns(rows: Sequence[RankRow]) -> tuple[list[float], float]:
    """Where group, seeds and marks begin, and where they end, in inches right of the axes."""
    seeds = GROUP + LETTER * max(5, *(len(row.group) for row in rows)) + SPACE
    return [GROUP, seeds, seeds + SEEDS], seeds + SEEDS + LACKS


def _draw_margin(axes: Axes, rows: Sequence[RankRow], columns: Sequence[float]) -> None:
    """Group, seeds and marks of every row, right of the axes; `columns` in widths of the axes."""
    look = {"transform": axes.get_yaxis_transform(), "fontsize": 8, "verticalalignment": "center"}
    for place, name in zip(columns, ("group", "seeds", "lacks"), strict=True):
        axes.text(1 + place, -0.9, name, color=GREY, **look)
    for height, row in enumerate(rows):
        texts = (row.group, str(row.seeds), row.marks)
        for place, text in zip(columns, texts, strict=True):
            family = f"{FONT} Mono" if text == row.marks else FONT
            axes.text(1 + place, height, text, family=family, **look)

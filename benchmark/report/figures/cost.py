"""Quality against cost: rsum by the time of training and of a query."""

from collections.abc import Iterator, Sequence
from statistics import stdev

import numpy as np
from matplotlib.figure import Figure

from benchmark.boards.boards import Board, Row
from benchmark.boards.row_settings import TimeSetting, time_settings
from benchmark.report import figure_style as style
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.pages.result_tables import query_seconds, training_seconds

SHORTEST = 1e-9  # seconds; a logarithmic axis cannot show a measured zero


def cost(inputs: FigureInputs) -> Iterator[ReportFigure]:
    board = inputs.board
    settings: dict[tuple[TimeSetting, ...], list[Row]] = {}
    for row in board.ranked:
        if not row.is_external:
            settings.setdefault(tuple(time_settings(row)), []).append(row)
    timed = max(settings.values(), key=len, default=[])
    if not timed:
        return
    query = "a caption"
    items = "image"
    if "i2t" in board.ways:
        query = "an image"
        items = "caption"
    left_out = sum(map(len, settings.values())) - len(timed)
    yield ReportFigure(
        name="cost",
        figure=quality_and_cost(board, timed),
        alt=f"{board.title}: rsum of {len(timed)} rows against the time to train and of a query",
        caption=f"A query is {query} that is encoded and scored with every {items} of the test "
        "split. The line joins the rows that no other one beats in both; bars are the standard "
        "deviation over seeds. A training that takes 0.0 s is not shown. Rows that are left out, "
        f"as timed otherwise: {left_out}.",
    )


def quality_and_cost(board: Board, rows: Sequence[Row]) -> Figure:
    """rsum against the time to train and the time of a query, of rows that were timed
    alike; the line joins the rows that no other one beats in both, the Pareto front."""
    looks = style.styles([row.method for row in board.rows])
    style_of = dict(zip(board.rows, looks, strict=True))
    trainings, queries = {}, {}  # row -> seconds, milliseconds
    for row in rows:
        queries[row] = 1000 * max(query_seconds(row), SHORTEST)
        seconds = training_seconds(board, row)
        if seconds:
            trainings[row] = seconds
    with style.drawing():
        panels = style.panels(2, columns=2, head=0, row=4.2)
        figure, (training_axes, query_axes) = panels
        query_axes.sharey(training_axes)
        for axes, times in ((training_axes, trainings), (query_axes, queries)):
            points = [(time, row.mean("rsum")) for row, time in times.items()]
            line = np.reshape(front(points), (-1, 2))
            look = {"color": style.GREY, "linewidth": 5, "alpha": 0.25, "zorder": 1}
            axes.plot(*line.T, **look)
            handles = []
            for row, point in zip(times, points, strict=True):
                colour, marker, dash = style_of[row]
                values = row.values("rsum")
                face = colour if dash == style.DASHES[0] else "white"
                look = {"color": colour, "fmt": marker, "markerfacecolor": face}
                deviation = stdev(values) if len(values) > 1 else None
                bar = axes.errorbar(*point, deviation, capsize=3, **look)
                handles += bar.lines[:1]
            if times:
                style.log_scale(axes.xaxis, list(times.values()))
            axes.margins(0.1)
        training_axes.set(xlabel="seconds to train", ylabel="rsum on test")
        query_axes.set(xlabel="milliseconds of a query")
        style.legend_below(figure, handles, [row.title for row in rows])
    return figure


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of points (time, quality) those that no other one equals or beats in both, fast
    to slow."""
    best: list[tuple[float, float]] = []
    for time, quality in sorted(points, key=lambda point: (point[0], -point[1])):
        if not best or quality > best[-1][1]:
            best.append((time, quality))
    return best


FIGURES = {"cost": cost}

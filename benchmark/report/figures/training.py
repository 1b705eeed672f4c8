"""Training loss and validation rsum by epoch, and quality against cost: rsum by the
time of training and of a query."""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from statistics import stdev

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark.boards.boards import Board, Row
from benchmark.boards.row_settings import TimeSetting, time_settings
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import (
    DASHES,
    GREY,
    WIDTH,
    drawing,
    legend_below,
    log_scale,
    panels,
    shown,
    styles,
)
from benchmark.report.pages.result_tables import query_seconds, training_seconds

HEIGHT = 2.7  # inches; of a method
TITLE = 38  # characters of a line of a legend
POINTS = 40  # of a curve, at most: longer ones skip epochs, which keeps the file small
# ratio of the largest to the smallest loss above which its axis is logarithmic
WIDE = 5.0
SHORTEST = 1e-9  # seconds; a logarithmic axis cannot show a measured zero


def training(inputs: FigureInputs) -> Iterator[ReportFigure]:
    if any(history_of(row) is not None for row in inputs.board.rows):
        yield ReportFigure(
            name="training",
            figure=training_curves(inputs.board),
            alt=f"{inputs.board.title}: training loss and validation rsum by epoch",
            caption="Of the first seed. A dot marks the selected epoch: highest validation rsum, "
            "the earliest on ties; the last epoch for phrases.",
        )


def history_of(row: Row) -> pd.DataFrame | None:
    """The epochs of the first seed with a result; None where nothing was trained for
    it."""
    return row.played[0].record.epochs if row.played else None


def training_curves(board: Board) -> Figure:
    """Loss and validation rsum by epoch, two panels per method."""
    looks = styles([row.method for row in board.rows])
    style_of = dict(zip(board.rows, looks, strict=True))
    by_method: dict[str, list[Row]] = {}
    for row in board.rows:
        if history_of(row) is not None:
            by_method.setdefault(row.method, []).append(row)
    groups = [by_method[method] for method in sorted(by_method)]
    with drawing():
        figure = Figure(figsize=(WIDTH, HEIGHT * len(groups)), layout="constrained")
        grid = figure.subplots(len(groups), 2, squeeze=False)
        for (loss_axes, rsum_axes), rows in zip(grid, groups, strict=True):
            handles = []
            for row in rows:
                history = history_of(row)
                colour, _, dash = style_of[row]
                epoch = row.played[0].record.selected_epoch
                selected = history[history["epoch"] == epoch]
                thin = history[:: 1 + len(history) // POINTS]
                marker = "." if len(history) == 1 else ""
                look = {"color": colour, "linestyle": dash, "marker": marker}
                loss_axes.plot(thin["epoch"], thin["loss"], **look)
                handles += rsum_axes.plot(thin["epoch"], thin["val_rsum"], **look)
                point = (selected["epoch"], selected["val_rsum"])
                rsum_axes.plot(*point, "o", color=colour, markersize=7)
            losses = pd.concat([history_of(row)["loss"] for row in rows])
            if 0 < WIDE * losses.min() < losses.max():
                log_scale(loss_axes.yaxis, losses)
            name = PurePosixPath(rows[0].method).stem  # own ones are files
            method = shown(name, 40)
            loss_axes.set_title(f"{method}: training loss", loc="left")
            rsum_axes.set_title(f"{method}: validation rsum", loc="left")
            titles = [shown(row.title, TITLE) for row in rows]
            place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
            rsum_axes.legend(handles, titles, **place)
            for axes in (loss_axes, rsum_axes):
                axes.xaxis.set_major_locator(MaxNLocator(integer=True))
                axes.set_xlabel("epoch")
    return figure


# Cost ---------------------------------------------------------------------------------


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
    looks = styles([row.method for row in board.rows])
    style_of = dict(zip(board.rows, looks, strict=True))
    trainings, queries = {}, {}  # row -> seconds, milliseconds
    for row in rows:
        queries[row] = 1000 * max(query_seconds(row), SHORTEST)
        seconds = training_seconds(board, row)
        if seconds:
            trainings[row] = seconds
    with drawing():
        figure, (training_axes, query_axes) = panels(2, columns=2, head=0, row=4.2)
        query_axes.sharey(training_axes)
        for axes, times in ((training_axes, trainings), (query_axes, queries)):
            points = [(time, row.mean("rsum")) for row, time in times.items()]
            line = np.reshape(front(points), (-1, 2))
            look = {"color": GREY, "linewidth": 5, "alpha": 0.25, "zorder": 1}
            axes.plot(*line.T, **look)
            handles = []
            for row, point in zip(times, points, strict=True):
                colour, marker, dash = style_of[row]
                values = row.values("rsum")
                face = colour if dash == DASHES[0] else "white"
                look = {"color": colour, "fmt": marker, "markerfacecolor": face}
                deviation = stdev(values) if len(values) > 1 else None
                bar = axes.errorbar(*point, deviation, capsize=3, **look)
                handles += bar.lines[:1]
            if times:
                log_scale(axes.xaxis, list(times.values()))
            axes.margins(0.1)
        training_axes.set(xlabel="seconds to train", ylabel="rsum on test")
        query_axes.set(xlabel="milliseconds of a query")
        legend_below(figure, handles, [row.title for row in rows])
    return figure


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of points (time, quality) those that no other one equals or beats in both, fast
    to slow."""
    best: list[tuple[float, float]] = []
    for time, quality in sorted(points, key=lambda point: (point[0], -point[1])):
        if not best or quality > best[-1][1]:
            best.append((time, quality))
    return best


FIGURES = {"training": training, "cost": cost}

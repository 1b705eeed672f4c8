"""Training loss and validation rsum by epoch."""

from collections.abc import Iterator
from pathlib import PurePosixPath

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark.boards.boards import Board, Row
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import WIDTH, drawing, log_scale, shown, styles

HEIGHT = 2.7  # inches; of a method
TITLE = 38  # characters of a line of a legend
POINTS = 40  # of a curve, at most: longer ones skip epochs, which keeps the file small
# ratio of the largest to the smallest loss above which its axis is logarithmic
WIDE = 5.0


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
    return row.played[0].history if row.played else None


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


FIGURES = {"training": training}

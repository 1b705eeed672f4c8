"""Training loss and validation rsum by epoch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark.analysis.boards import Board
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import (
    LEGEND_ROW,
    WIDTH,
    Style,
    drawing,
    log_if_wide,
    preset_styles,
    shown,
)

SECTION = "training"
ROW = 2.7  # inches; of a method with few presets
CAPTION = (
    "A dot marks the selected epoch: highest validation rsum, the earliest on ties; the last epoch "
    "for phrases. Thin lines are further seeds. A fusion has no training of its own."
)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One training, epoch by epoch."""

    title: str
    method: str
    style: Style
    is_first_seed: bool
    epochs: np.ndarray
    loss: np.ndarray
    rsum: np.ndarray  # on validation
    selected: int  # epoch


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    curves = _curves(inputs.board)
    if curves:
        yield Picture(
            name="training",
            figure=training_curves(curves),
            alt=_alt(inputs.board.card["title"], curves),
            caption=CAPTION,
        )


def _alt(title: str, curves: Sequence[Curve]) -> str:
    best = max(curves, key=lambda curve: curve.rsum.max())
    epochs = max(len(curve.epochs) for curve in curves)
    return (
        f"{title}: training loss and validation rsum by epoch of {len(curves)} trainings, up to "
        f"{epochs} epochs; the highest validation rsum is {best.rsum.max():.1f}, of {best.title}"
    )


def _curves(board: Board) -> list[Curve]:
    styles = preset_styles(board)
    return [
        Curve(
            title=standing.row.title,
            method=standing.method,
            style=styles[standing.preset],
            is_first_seed=outcome is standing.played[0],
            epochs=outcome.history["epoch"].to_numpy(),
            loss=outcome.history["loss"].to_numpy(),
            rsum=outcome.history["val_rsum"].to_numpy(),
            selected=outcome.record.selected_epoch,
        )
        for standing in board.standings
        for outcome in standing.played
        if outcome.history is not None
    ]


def training_curves(curves: Sequence[Curve]) -> Figure:
    """Loss and validation rsum by epoch, one row per method; a dot marks the selected epoch."""
    groups = [list(group) for _, group in groupby(sorted(curves, key=_method_of), key=_method_of)]
    heights = [max(ROW, 0.5 + _legend_height(group)) for group in groups]
    with drawing():
        figure = Figure(figsize=(WIDTH, 0.3 + sum(heights)), layout="constrained")
        grid = figure.subplots(len(groups), 2, squeeze=False, height_ratios=heights)
        for (left, right), group in zip(grid, groups, strict=True):
            _losses(left, group)
            _validations(right, group)
        for axes in grid[-1]:
            axes.set_xlabel("epoch")
    return figure


def _method_of(curve: Curve) -> str:
    return curve.method


def _title(curve: Curve) -> str:
    return shown(curve.title, 34)


def _legend_height(group: Sequence[Curve]) -> float:
    """Inches."""
    lines = sum(_title(curve).count("\n") + 1 for curve in group if curve.is_first_seed)
    return LEGEND_ROW * lines


def _losses(axes: Axes, group: Sequence[Curve]) -> None:
    for curve in group:
        _line(axes, curve, curve.loss)
    is_wide = log_if_wide(axes.yaxis, np.concatenate([curve.loss for curve in group]))
    scale = " (log scale)" if is_wide else ""
    axes.set_title(f"{shown(group[0].method, 40)}: training loss{scale}", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _validations(axes: Axes, group: Sequence[Curve]) -> None:
    handles, titles = [], []
    for curve in group:
        line = _line(axes, curve, curve.rsum)
        if curve.is_first_seed:
            handles.append(line)
            titles.append(_title(curve))
        at = curve.epochs == curve.selected
        axes.plot(
            curve.epochs[at],
            curve.rsum[at],
            color=curve.style.colour,
            marker="o",
            markersize=7 if curve.is_first_seed else 4,
            linestyle="none",
        )
    axes.set_title(f"{shown(group[0].method, 40)}: validation rsum", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(handles, titles, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _line(axes: Axes, curve: Curve, values: np.ndarray) -> Artist:
    (line,) = axes.plot(
        curve.epochs,
        values,
        color=curve.style.colour,
        linestyle=curve.style.dash,
        linewidth=1.6 if curve.is_first_seed else 0.7,
        alpha=1.0 if curve.is_first_seed else 0.6,
        marker="." if len(values) == 1 else None,
    )
    return line

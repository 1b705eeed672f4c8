"""Training loss and validation rsum by epoch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

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


def _name(curve: Curve) -> str:
    """The method; of one of a season, without its folder."""
    return PurePosixPath(curve.method).stem if curve.method.endswith(".py") else curve.method


def _title(curve: Curve) -> str:
    return shown(curve.title, 34)


def _legend_height(group: Sequence[Curve]) -> float:
    """Inches."""
    lines = sum(_title(curve).count("\n") + 1 for curve in group if curve.is_first_seed)
    return LEGEND_ROW * lines


def _losses(axes: Axes, group: Sequence[Curve]) -> None:
    for curves in _alike(group):
        _line(axes, curves, [curve.loss for curve in curves])
    is_wide = log_if_wide(axes.yaxis, np.concatenate([curve.loss for curve in group]))
    scale = " (log scale)" if is_wide else ""
    axes.set_title(f"{shown(_name(group[0]), 40)}: training loss{scale}", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _validations(axes: Axes, group: Sequence[Curve]) -> None:
    handles, titles = [], []
    for curves in _alike(group):
        line = _line(axes, curves, [curve.rsum for curve in curves])
        if curves[0].is_first_seed:
            handles.append(line)
            titles.append(_title(curves[0]))
        selected = [curve.epochs == curve.selected for curve in curves]
        axes.plot(
            np.concatenate([c.epochs[at] for c, at in zip(curves, selected, strict=True)]),
            np.concatenate([c.rsum[at] for c, at in zip(curves, selected, strict=True)]),
            color=curves[0].style.colour,
            marker="o",
            markersize=7 if curves[0].is_first_seed else 4,
            linestyle="none",
        )
    axes.set_title(f"{shown(_name(group[0]), 40)}: validation rsum", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(handles, titles, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _alike(group: Sequence[Curve]) -> list[list[Curve]]:
    """The first seed of each preset, and its further ones, which are drawn together."""
    of_preset = groupby(group, key=lambda curve: (curve.title, curve.style, curve.is_first_seed))
    return [list(curves) for _, curves in of_preset]


def _line(axes: Axes, curves: Sequence[Curve], values: Sequence[np.ndarray]) -> Artist:
    """All curves as one line, with a gap after each: matplotlib takes as long for each line."""
    is_first_seed, style = curves[0].is_first_seed, curves[0].style
    (line,) = axes.plot(
        _with_gaps([curve.epochs for curve in curves]),
        _with_gaps(values),
        color=style.colour,
        linestyle=style.dash,
        linewidth=1.6 if is_first_seed else 0.7,
        alpha=1.0 if is_first_seed else 0.6,
        marker="." if min(map(len, values)) == 1 else None,
    )
    return line


def _with_gaps(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.append(part, np.nan) for part in parts])[:-1]

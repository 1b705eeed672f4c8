"""Figures of matrices: correlations of images, scores of all pairs of a few."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from benchmark.report.figure_style import drawing, panels, shown


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A square matrix (N, N) under a title."""

    title: str
    values: np.ndarray


def correlations(matrices: Sequence[Matrix]) -> Figure:
    """Pearson correlations of images side by side, for example before and after training.

    All on one scale from -1 to 1, so that pale means uncorrelated in every panel of every figure
    (instance-loss paper, Fig. 4b).
    """
    with drawing():
        figure, grid = panels(len(matrices), columns=2, head=0.3, row=4.6)
        for axes, matrix in zip(grid, matrices, strict=True):
            mean = mean_off_diagonal(matrix.values)
            title = f"{shown(matrix.title, 46)}\nmean |r| off the diagonal: {mean:.3f}"
            drawn = _matrix(axes, matrix.values, "RdBu_r", -1)
            axes.set(title=title, xlabel="image", ylabel="image")
        figure.colorbar(drawn, ax=grid, label="Pearson correlation", shrink=0.8)
    return figure


def similarity(matrices: Sequence[Matrix]) -> Figure:
    """Scores of N images and one caption each, rescaled to [0, 1] panel by panel; matched pairs
    are the diagonal (CycleMatch, Fig. 6.6)."""
    with drawing():
        figure, grid = panels(len(matrices), columns=2, head=0.3, row=4.6)
        for axes, matrix in zip(grid, matrices, strict=True):
            drawn = _matrix(axes, rescaled(matrix.values), "cividis", 0)
            axes.set(title=shown(matrix.title, 46), xlabel="caption", ylabel="image")
        label = "score, rescaled: 0 the lowest of the panel, 1 the highest"
        figure.colorbar(drawn, ax=grid, label=label, shrink=0.8)
    return figure


def mean_off_diagonal(values: np.ndarray) -> float:
    """Mean absolute value off the diagonal of (N, N); 0 for a single item."""
    others = ~np.eye(len(values), dtype=bool)
    return float(np.abs(values[others].astype(np.float64)).mean()) if others.any() else 0.0


def rescaled(values: np.ndarray) -> np.ndarray:
    """The values moved and stretched to [0, 1]; zeros where all are alike."""
    values = values.astype(np.float64)
    spread = np.ptp(values)
    return (values - values.min()) / (spread if spread > 0 else 1.0)


def _matrix(axes: Axes, values: np.ndarray, colours: str, low: float) -> AxesImage:
    """One square an entry, on a scale from `low` to 1."""
    axes.grid(visible=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    return axes.imshow(
        values.astype(np.float64), cmap=colours, vmin=low, vmax=1, interpolation="nearest"
    )

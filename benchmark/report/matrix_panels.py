"""Square matrices as coloured panels, as several figures draw them."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A square matrix (N, N) under a title."""

    title: str
    values: np.ndarray


def draw_matrix(axes: Axes, values: np.ndarray, colours: str, low: float) -> AxesImage:
    """One square per entry, on a scale from `low` to 1."""
    axes.grid(visible=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    return axes.imshow(
        values.astype(np.float64), cmap=colours, vmin=low, vmax=1, interpolation="nearest"
    )

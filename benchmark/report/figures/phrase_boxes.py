"""Figures of phrase localisation: which part of a picture a phrase names, and what was found."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from PIL import Image

from benchmark.data.boxes import iou
from benchmark.report.figure_style import COLOURS, drawing, legend_below, panels, shown

SIDE = 300  # pixels of the longer side of a drawn picture
COLUMNS, ROW = 3, 2.9  # panels of a row, and their height in inches
TRUE = {"edgecolor": COLOURS[2], "linestyle": "-", "linewidth": 2.6}
FOUND = (
    {"edgecolor": COLOURS[1], "linestyle": "--", "linewidth": 1.8},
    {"edgecolor": COLOURS[5], "linestyle": ":", "linewidth": 2.0},
)


@dataclass(frozen=True, kw_only=True)
class Located:
    """A phrase, its picture, its true box and the box that each preset chose.

    Boxes are x0, y0, x1, y1 in pixels of the picture, half-open.
    """

    phrase: str
    picture: Image.Image
    truth: np.ndarray  # (4,)
    found: np.ndarray  # (S, 4)


def localisation(phrases: Sequence[Located], presets: Sequence[str]) -> Figure:
    """A panel a phrase: the true box, and the best-scored one of each of up to two presets with
    its overlap with the true one.

    Pictures make large SVGs; this figure is meant as a PNG.
    """
    with drawing():
        figure, grid = panels(len(phrases), columns=COLUMNS, head=0.1, row=ROW)
        for axes, located in zip(grid, phrases, strict=True):
            _panel(axes, located)
        looks = [TRUE, *FOUND[: len(presets)]]
        handles = [Line2D([], [], **_as_line(look)) for look in looks]
        legend_below(figure, handles, ["true box", *presets])
    return figure


def _panel(axes: Axes, located: Located) -> None:
    small = located.picture.convert("RGB")
    small.thumbnail((SIDE, SIDE))
    axes.imshow(np.asarray(small))
    axes.set_axis_off()
    scale = np.tile(np.divide(small.size, located.picture.size), 2)
    overlaps = iou(located.found.astype(np.float64), located.truth.astype(np.float64))
    for box, look in zip((located.truth, *located.found), (TRUE, *FOUND), strict=False):
        x0, y0, x1, y1 = box * scale - 0.5  # pixels are centred on whole numbers
        axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, **look))
    told = ", ".join(f"{overlap:.2f}" for overlap in overlaps)
    axes.set_title(f"{shown(located.phrase, 40, lines=2)}\nIoU {told}")


def _as_line(look: dict) -> dict:
    return {"color" if name == "edgecolor" else name: value for name, value in look.items()}

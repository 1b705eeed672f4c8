"""Phrases with their true boxes, and the boxes that the best preset and a baseline choose."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from PIL import Image

from benchmark.analysis.boards import Board, Standing
from benchmark.data.boxes import CORNERS, iou
from benchmark.protocol import CORRECT_IOU
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, drawing, legend_below, panels, shown
from benchmark.report.pages.gallery import evenly

SECTION = "phrases"
PHRASES = 6  # of a figure
BASELINE = "cca"  # the method beside the best preset, if it was played
SIDE = 300  # pixels of the longer side of a drawn picture
COLUMNS, ROW = 3, 2.9  # panels of a row, and their height in inches
TRUE = {"edgecolor": COLOURS[2], "linestyle": "-", "linewidth": 2.6}
CHOSEN = (
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
    chosen: np.ndarray  # (S, 4)


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    """Evenly spaced phrases of the test split, then evenly spaced ones that the best preset
    misses."""
    standings, data = compared(inputs.board), inputs.data
    rows = data.split("test").region_rows
    truths = data.regions[CORNERS].iloc[rows].to_numpy(np.float64)
    boxes = np.stack([standing.samples["p2r_boxes"] for standing in standings], axis=1)
    missed = np.flatnonzero(iou(boxes[:, 0].astype(np.float64), truths) < CORRECT_IOU)
    titles = [standing.row.title for standing in standings]
    kinds = {
        "phrases": ("phrases", np.arange(len(rows))),
        "phrases-missed": (f"phrases that {titles[0]} misses", missed),
    }
    for name, (words, numbers) in kinds.items():
        picked = evenly(numbers, PHRASES)
        phrases = [_located(inputs, rows[i], truths[i], boxes[i]) for i in picked]
        if phrases:
            yield Picture(
                name=name,
                figure=phrase_boxes(phrases, titles),
                alt=f"{' and '.join(titles)}: {words}, evenly spaced, with the true box and the "
                "best-scored one: " + "; ".join(located.phrase for located in phrases),
                is_scalable=False,
            )


def compared(board: Board) -> list[Standing]:
    """The best preset, and the best of the method BASELINE or, without one, the worst preset.

    The best one alone if there is no other.
    """
    best, *others = board.ranked
    baselines = [standing for standing in others if standing.method == BASELINE]
    return [best, *(baselines[:1] or others[-1:])]


def _located(inputs: FigureInputs, row: int, truth: np.ndarray, chosen: np.ndarray) -> Located:
    data = inputs.data
    region = data.regions.iloc[int(row)]
    file = data.images.loc[data.images["image_id"] == region["image_id"], "file"].iloc[0]
    with inputs.open_picture(file) as opened:
        picture = opened.convert("RGB")
    return Located(phrase=region["phrase"], picture=picture, truth=truth, chosen=chosen)


def phrase_boxes(phrases: Sequence[Located], presets: Sequence[str]) -> Figure:
    """One panel per phrase: the true box, and the best-scored box of each of up to two presets
    with its intersection over union with the true one."""
    with drawing():
        figure, grid = panels(len(phrases), columns=COLUMNS, head=0.1, row=ROW)
        for axes, located in zip(grid, phrases, strict=True):
            _panel(axes, located)
        kinds = [TRUE, *CHOSEN[: len(presets)]]
        handles = [Line2D([], [], **_as_line(look)) for look in kinds]
        legend_below(figure, handles, ["true box", *presets])
    return figure


def _panel(axes: Axes, located: Located) -> None:
    small = located.picture.convert("RGB")
    small.thumbnail((SIDE, SIDE))
    axes.imshow(np.asarray(small))
    axes.set_axis_off()
    scale = np.tile(np.divide(small.size, located.picture.size), 2)
    ious = iou(located.chosen.astype(np.float64), located.truth.astype(np.float64))
    for box, look in zip((located.truth, *located.chosen), (TRUE, *CHOSEN), strict=False):
        x0, y0, x1, y1 = box * scale - 0.5  # pixels are centred on whole numbers
        axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, **look))
    numbers = ", ".join(f"{value:.2f}" for value in ious)
    axes.set_title(f"{shown(located.phrase, 40, lines=2)}\nIoU {numbers}")


def _as_line(look: dict) -> dict:
    return {"color" if name == "edgecolor" else name: value for name, value in look.items()}

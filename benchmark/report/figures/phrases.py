"""Phrases with their true boxes, and the boxes that the best row and a baseline choose."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from PIL import Image

from benchmark.boards.boards import Board, Row
from benchmark.data.boxes import CORNERS, iou
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import BLUE, GREEN, ORANGE, drawing, legend_below, panels, shown
from benchmark.report.pages.examples import evenly
from benchmark.scoring import CORRECT_IOU

PHRASES = 6  # of a figure
BASELINE = "cca"  # the method beside the best row, if it was run
SIDE = 300  # pixels of the longer side of a drawn image
LOOKS = (  # of the true box, and of those that rows choose
    {"color": GREEN, "linestyle": "-", "linewidth": 2.6},
    {"color": ORANGE, "linestyle": "--", "linewidth": 1.8},
    {"color": BLUE, "linestyle": ":", "linewidth": 2.0},
)


def phrases(inputs: FigureInputs) -> Iterator[ReportFigure]:
    """Evenly spaced phrases of the test split, then evenly spaced ones that the best row misses."""
    rows, data = compared(inputs.board), inputs.data
    if not rows:
        return
    regions = data.regions.iloc[data.split("test").region_rows]
    truths = regions[CORNERS].to_numpy(np.float64)
    boxes = np.stack([truths, *(row.samples["p2r_boxes"] for row in rows)], axis=1)
    missed = np.flatnonzero(iou(boxes[:, 1], truths) < CORRECT_IOU)
    files = data.images.set_index("image_id")["file"]
    titles = [row.title for row in rows]
    for name, numbers in (("phrases", np.arange(len(regions))), ("phrases-missed", missed)):
        located = []
        for number in evenly(numbers, PHRASES):
            with inputs.open_image(files[regions["image_id"].iloc[number]]) as opened:
                image = opened.convert("RGB")
            located.append((regions["phrase"].iloc[number], image, boxes[number]))
        if located:
            which = f"phrases that {titles[0]} misses" if name == "phrases-missed" else "phrases"
            yield ReportFigure(
                name=name,
                figure=phrase_boxes(located, titles),
                alt=f"{' and '.join(titles)}: {which}, evenly spaced, with the true box and the "
                f"best-scored one: {'; '.join(phrase for phrase, *_ in located)}",
            )


def compared(board: Board) -> list[Row]:
    """Of the rows with boxes the best one, and the best of the method BASELINE or, without one, the
    last one."""
    rows = [row for row in board.ranked if "p2r_boxes" in row.samples]
    baselines = [row for row in rows[1:] if row.method == BASELINE]
    return rows[:1] + (baselines[:1] or rows[1:][-1:])


def phrase_boxes(
    phrases: Sequence[tuple[str, Image.Image, np.ndarray]], titles: Sequence[str]
) -> Figure:
    """One panel per phrase with its image and boxes (1 + S, 4) in pixels, half-open: the true one,
    and that of each of S rows with its intersection over union with the true one."""
    with drawing():
        figure, grid = panels(len(phrases), columns=3, head=0.1, row=2.9)
        for axes, (phrase, image, boxes) in zip(grid, phrases, strict=True):
            small = image.copy()
            small.thumbnail((SIDE, SIDE))
            axes.imshow(np.asarray(small), interpolation="none")
            axes.set_axis_off()
            scale = np.tile(np.divide(small.size, image.size), 2)
            corners = boxes * scale - 0.5  # whole numbers are centres of pixels
            for (x0, y0, x1, y1), look in zip(corners, LOOKS, strict=False):
                axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, **look))
            numbers = ", ".join(f"{iou(box, boxes[0]):.2f}" for box in boxes[1:])
            axes.set_title(f"{shown(phrase, 40, lines=2)}\nIoU {numbers}")
        handles = [Line2D([], [], **look) for look in LOOKS[: 1 + len(titles)]]
        legend_below(figure, handles, ["true box", *titles])
    return figure


FIGURES = {"phrases": phrases}

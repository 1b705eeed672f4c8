"""Phrases to look at: what the best preset and a baseline take for the thing that a phrase names.
Knows no torch.

These figures show phrases and pictures, so they follow the gallery: where a dataset may not be
published, they stay on the machine that has it.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmark.analysis.boards import Board, Standing
from benchmark.data.boxes import CORNERS, iou
from benchmark.data.prepared_tables import Prepared
from benchmark.protocol.rules import CORRECT_OVERLAP
from benchmark.report.figures.phrase_boxes import Located, localisation
from benchmark.report.pages.gallery import evenly
from benchmark.report.pages.illustrations import Picture
from datasets import OpenPicture

EACH = 6  # phrases of a figure
BASELINE = "cca"  # method that the best preset is set beside, where it was played


def phrases(board: Board, data: Prepared, open_picture: OpenPicture) -> Iterator[Picture]:
    """Evenly spaced phrases of the test split, then evenly spaced ones of those that the best
    preset misses; the board is of localisation."""
    presets = compared(board)
    rows = data.split("test").region_rows
    truths = data.regions[CORNERS].iloc[rows].to_numpy(np.float64)
    boxes = np.stack([standing.samples["p2r_boxes"] for standing in presets], axis=1)
    missed = np.flatnonzero(iou(boxes[:, 0].astype(np.float64), truths) < CORRECT_OVERLAP)
    names = " and ".join(standing.row.title for standing in presets)
    asked = {
        "phrases": ("phrases", np.arange(len(rows))),
        "phrases-missed": (f"phrases that {presets[0].row.title} misses", missed),
    }
    for name, (words, able) in asked.items():
        chosen = evenly(able, EACH)
        shapes = [_located(data, rows[i], truths[i], boxes[i], open_picture) for i in chosen]
        if shapes:
            yield Picture(
                name=name,
                figure=localisation(shapes, [standing.row.title for standing in presets]),
                alt=f"{names}: {words}, evenly spaced, with the true box and the best-scored one: "
                + "; ".join(shape.phrase for shape in shapes),
                is_scalable=False,
            )


def compared(board: Board) -> Sequence[Standing]:
    """The best preset, and the best of the baseline's method, else the worst of all; only the best
    where there is no other."""
    best, *others = board.ranked
    baselines = [standing for standing in others if standing.method == BASELINE]
    return [best, *(baselines[:1] or others[-1:])]


def _located(
    data: Prepared, row: int, truth: np.ndarray, found: np.ndarray, open_picture: OpenPicture
) -> Located:
    region = data.regions.iloc[int(row)]
    file = data.images.loc[data.images["image_id"] == region["image_id"], "file"].iloc[0]
    with open_picture(file) as opened:
        picture = opened.convert("RGB")
    return Located(phrase=region["phrase"], picture=picture, truth=truth, found=found)

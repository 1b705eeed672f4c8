"""Figures of embedding spaces: where images and captions lie in the plane of a t-SNE."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from benchmark.report.figure_style import COLOURS, drawing, legend_below, panels, shown


@dataclass(frozen=True, kw_only=True)
class Space:
    """Places (2N, 2) of N images and then of a caption of each."""

    title: str
    places: np.ndarray


def spaces(shapes: Sequence[Space]) -> Figure:
    """Images and captions as two kinds of marks, every pair joined: the shorter the lines, the
    better the space brings pairs together (CycleMatch, Fig. 6.4)."""
    with drawing():
        figure, grid = panels(len(shapes), columns=3, head=0.2, row=3.3)
        for axes, space in zip(grid, shapes, strict=True):
            images, captions = np.split(space.places.astype(np.float64), 2)
            pairs = np.stack([images, captions], axis=1)
            joined = axes.add_collection(
                LineCollection(pairs, colors="#999999", linewidths=0.6, zorder=1)
            )
            image_marks = axes.scatter(*images.T, s=22, c=COLOURS[0], edgecolors="white", lw=0.4)
            caption_marks = axes.scatter(
                *captions.T, s=26, c=COLOURS[1], marker="^", edgecolors="white", lw=0.4
            )
            axes.set_title(shown(space.title, 44))
            axes.set_aspect("equal", adjustable="datalim")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(visible=True, color="#cccccc")
        handles = [image_marks, caption_marks, joined]
        legend_below(figure, handles, ["image", "caption", "pair"])
    return figure

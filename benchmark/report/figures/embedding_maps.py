"""Where images and captions lie in embedding spaces, as t-SNE maps (CycleMatch, Fig. 6.4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from benchmark.analysis.boards import Board
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, drawing, legend_below, panels, shown

SECTION = "papers/cyclematch"
PRESETS = ("dualmatch", "cyclematch")


@dataclass(frozen=True, kw_only=True)
class Space:
    """A map of N images and one caption of each."""

    title: str
    points: np.ndarray  # (2N, 2): the images, then the captions


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    spaces = [space for preset in PRESETS for space in _spaces(inputs.board, preset)]
    if spaces:
        yield Picture(
            name="spaces",
            figure=embedding_maps(spaces),
            alt=f"{inputs.board.card['title']}: t-SNE maps of images and their captions, pairs "
            f"joined, in {', '.join(space.title for space in spaces)}",
            caption=_caption(inputs.board, spaces),
        )


def _caption(board: Board, spaces: Sequence[Space]) -> str:
    """What Fig. 6.4 shows, and whether it recurs."""
    said = [f"{space.title} {nearness(space):.2f}" for space in spaces]
    seeds = {standing.samples_seed for standing in map(board.standing, PRESETS) if standing}
    named = ", ".join(sorted(str(seed) for seed in seeds if seed is not None))
    return (
        "After Fig. 6.4, where matched pairs lie close together. Distance of a pair here, as a "
        f"share of that of unmatched ones: {'; '.join(said)}. It recurs where this is far below 1. "
        f"Seed {named}."
    )


def nearness(space: Space) -> float:
    """Median distance of matched pairs, divided by that of unmatched ones; 1 for a single pair."""
    images, captions = np.split(space.points.astype(np.float64), 2)
    distances = np.linalg.norm(images[:, None] - captions[None], axis=-1)
    is_matched = np.eye(len(images), dtype=bool)
    if len(images) < 2:
        return 1.0
    return float(np.median(distances[is_matched]) / np.median(distances[~is_matched]))


def _spaces(board: Board, preset: str) -> list[Space]:
    standing = board.standing(preset)
    if standing is None:
        return []
    return [
        Space(title=f"{standing.row.title}: {name.removeprefix('tsne_')} space", points=xy)
        for name, xy in standing.samples.items()
        if name.startswith("tsne_")
    ]


def embedding_maps(spaces: Sequence[Space]) -> Figure:
    """Images and captions as two kinds of marks, every pair joined: the shorter the lines, the
    better the space brings pairs together."""
    with drawing():
        figure, grid = panels(len(spaces), columns=3, head=0.2, row=3.3)
        for axes, space in zip(grid, spaces, strict=True):
            images, captions = np.split(space.points.astype(np.float64), 2)
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

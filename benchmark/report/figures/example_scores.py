"""Scores of all pairs of a few images and captions, after Fig. 6.6 of the CycleMatch paper."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import drawing, panels, shown
from benchmark.report.matrix_panels import Matrix, draw_matrix

SECTION = "papers/cyclematch"
PRESETS = ("dualmatch", "cyclematch_adaptive")


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    standings = [s for s in map(inputs.board.standing, PRESETS) if s and s.samples]
    if standings:
        titles = ", ".join(standing.row.title for standing in standings)
        matrices = [Matrix(title=s.row.title, values=s.samples["similarity"]) for s in standings]
        yield Picture(
            name="similarity",
            figure=example_scores(matrices),
            alt=f"{inputs.board.card['title']}: scores of {len(matrices[0].values)} images and "
            f"a caption of each by {titles}; matched pairs are the diagonal",
            caption=_caption(matrices, standings[0].samples_seed),
        )


def _caption(matrices: Sequence[Matrix], seed: int | None) -> str:
    """What Fig. 6.6 shows, and whether it recurs."""
    said = []
    for matrix in matrices:
        scores = rescaled(matrix.values)
        is_matched = np.eye(*scores.shape, dtype=bool)
        pair = scores[is_matched].mean(), scores[~is_matched].mean()
        recurs = "it recurs" if pair[0] > pair[1] else "it does not recur"
        said.append(f"{matrix.title} {pair[0]:.2f} against {pair[1]:.2f}, {recurs}")
    return (
        "After Fig. 6.6, where matched pairs have greater scores than unmatched ones. Here, on "
        f"average, with the scores of each panel from 0 to 1: {'; '.join(said)}. Seed {seed}."
    )


def example_scores(matrices: Sequence[Matrix]) -> Figure:
    """Scores of N images and one caption of each, rescaled to [0, 1] panel by panel; matched pairs
    are the diagonal."""
    with drawing():
        figure, grid = panels(len(matrices), columns=2, head=0.3, row=4.6)
        for axes, matrix in zip(grid, matrices, strict=True):
            drawn = draw_matrix(axes, rescaled(matrix.values), "cividis", 0)
            axes.set(title=shown(matrix.title, 46), xlabel="caption", ylabel="image")
        label = "score, rescaled: 0 the lowest of the panel, 1 the highest"
        figure.colorbar(drawn, ax=grid, label=label, shrink=0.8)
    return figure


def rescaled(values: np.ndarray) -> np.ndarray:
    """The values mapped to [0, 1], smallest to largest; zeros if all are equal."""
    values = values.astype(np.float64)
    spread = np.ptp(values)
    return (values - values.min()) / (spread if spread > 0 else 1.0)

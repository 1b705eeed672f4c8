"""Correlations of images before and after training, after Fig. 4b of the instance-loss paper."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

from benchmark.analysis.boards import Standing
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import drawing, panels, shown
from benchmark.report.matrix_panels import Matrix, draw_matrix

SECTION = "papers/instance_loss"
PRESETS = ("dual_path_rank_1", "dual_path_instance_1", "dual_path_full_2")
PRINTED = "dual_path_instance_1"  # the preset of Fig. 4b


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    for standing in filter(None, map(inputs.board.standing, PRESETS)):
        samples = standing.samples
        if "correlation_before" in samples and "correlation_after" in samples:
            yield _picture(inputs.board.card["title"], standing)


def _picture(title: str, standing: Standing) -> Picture:
    before, after = (standing.samples[f"correlation_{when}"] for when in ("before", "after"))
    kind = "input features, standardised" if _is_standardised(standing) else "input features"
    matrices = [
        Matrix(title=f"before training: {kind}", values=before),
        Matrix(title="after training: embeddings", values=after),
    ]
    means = [mean_off_diagonal(matrix.values) for matrix in matrices]
    return Picture(
        name=f"correlations-{standing.preset}",
        figure=image_correlations(matrices),
        alt=f"{title}, {standing.row.title}: Pearson correlation of {len(before)} images; mean "
        f"absolute value {means[0]:.3f} before training, {means[1]:.3f} after",
        caption=_caption(standing, *means),
    )


def _caption(standing: Standing, before: float, after: float) -> str:
    """What Fig. 4b shows, and whether it recurs."""
    sentence = "After Fig. 4b, where the features of two images are less correlated after training."
    recurs = "it recurs" if after < before else "they are more correlated"
    if after >= before and _is_standardised(standing):
        recurs += ", but standardised features are hardly correlated to begin with"
    of = "" if standing.preset == PRINTED else " The figure is of the row with instance loss."
    return (
        f"{sentence}{of} Here the mean goes from {before:.3f} to {after:.3f}: {recurs}. "
        f"Seed {standing.samples_seed}."
    )


def _is_standardised(standing: Standing) -> bool:
    return bool(standing.played[0].record.image_features.get("settings", {}).get("standardise"))


def image_correlations(matrices: Sequence[Matrix]) -> Figure:
    """Pearson correlations of images side by side.

    All on one scale from -1 to 1, so that pale means uncorrelated in every panel of every figure.
    """
    with drawing():
        figure, grid = panels(len(matrices), columns=2, head=0.3, row=4.6)
        for axes, matrix in zip(grid, matrices, strict=True):
            mean = mean_off_diagonal(matrix.values)
            title = f"{shown(matrix.title, 46)}\nmean |r| off the diagonal: {mean:.3f}"
            drawn = draw_matrix(axes, matrix.values, "RdBu_r", -1)
            axes.set(title=title, xlabel="image", ylabel="image")
        figure.colorbar(drawn, ax=grid, label="Pearson correlation", shrink=0.8)
    return figure


def mean_off_diagonal(values: np.ndarray) -> float:
    """Mean absolute value off the diagonal of (N, N); 0 for a single item."""
    others = ~np.eye(len(values), dtype=bool)
    return float(np.abs(values[others].astype(np.float64)).mean()) if others.any() else 0.0

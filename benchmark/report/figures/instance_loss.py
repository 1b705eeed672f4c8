"""What the instance-loss paper shows: densities of scores by loss (Fig. 5), and correlations of
images before and after training (Fig. 4b)."""

from collections.abc import Iterator

import numpy as np

from benchmark.papers.printed_tables import papers
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import matrix_panels, shown
from benchmark.report.figures.similarity import densities, histograms_of, limits

LOSSES = ("dual_path_rank_1", "dual_path_instance_1", "dual_path_full_2")
INSTANCE = "dual_path_instance_1"  # the preset of Fig. 4b


def instance_loss(inputs: FigureInputs) -> Iterator[ReportFigure]:
    rows = [row for row in map(inputs.board.row, LOSSES) if row and row.played and row.has_scores]
    if rows:
        order = next(x for x in papers()["instance_loss"].claims if x.id == "overlap_order")
        printed = dict(zip(order.presets, order.printed, strict=True))
        titles = [
            f"{shown(row.title, 44)}\nS {row.mean('overlap_s'):.4f} (paper "
            f"{printed[row.preset]:.4f})\nmean of P {row.mean('mean_matched'):.3f}, "
            f"of Q {row.mean('mean_unmatched'):z.3f}"
            for row in rows
        ]
        histograms = [histograms_of(row) for row in rows]
        yield ReportFigure(
            name="losses",
            figure=densities(titles, histograms, [limits(histograms)] * len(rows)),
            alt=f"{inputs.board.title}: densities of scores by loss",
            caption="After Fig. 5, where S falls from ranking loss to instance loss to both. Drawn "
            "are the scores of the first seed; numbers are means over all.",
        )
    row = inputs.board.row(INSTANCE)
    if row and {"correlation_before", "correlation_after"} <= row.samples.keys():
        before, after = (row.samples[f"correlation_{when}"] for when in ("before", "after"))
        matrices = {"before training: input features": before, "after: embeddings": after}
        first, last = off_diagonal(before), off_diagonal(after)
        yield ReportFigure(
            name="correlations",
            figure=matrix_panels(matrices, ("image", "image", "Pearson correlation"), "RdBu_r", -1),
            alt=f"{inputs.board.title}, {row.title}: Pearson correlation of images",
            caption="After Fig. 4b, where the features of two images are less correlated after "
            f"training. Here the mean |r| off the diagonal goes from {first:.3f} to {last:.3f}: "
            f"{'it recurs' if last < first else 'it does not recur'}. Standardised features are "
            f"hardly correlated to begin with. Seed {row.samples_seed}.",
        )


def off_diagonal(values: np.ndarray) -> float:
    """Mean absolute value off the diagonal of (N, N); 0 for a single item."""
    others = ~np.eye(len(values), dtype=bool)
    return float(np.abs(values[others].astype(np.float64)).mean()) if others.any() else 0.0


FIGURES = {"papers/instance_loss": instance_loss}

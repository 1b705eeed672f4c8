"""Score densities by loss, after Fig. 5 of the instance-loss paper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.analysis.boards import Standing
from benchmark.papers.printed_tables import papers
from benchmark.report.density_panels import (
    MATCHED,
    UNMATCHED,
    Scores,
    bin_edges,
    draw_densities,
    scores_of,
)
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import drawing, legend_above, panels, shown

SECTION = "papers/instance_loss"
PRESETS = ("dual_path_rank_1", "dual_path_instance_1", "dual_path_full_2")
SAME = "stands in the same order; its claim says whether by more than a margin"
SEPARATED = "dual_path_instance_1"  # the preset of Fig. 5b, the only one with printed means
LINE = {"linestyle": "--", "linewidth": 1.2}
DIAMOND = {"marker": "D", "markersize": 7, "markerfacecolor": "white", "linestyle": "none"}


@dataclass(frozen=True, kw_only=True)
class Printed:
    """What the paper prints of a pair of distributions; None where it prints nothing."""

    overlap: float | None = None  # S
    mean_matched: float | None = None  # mean of D_p
    mean_unmatched: float | None = None  # mean of D_n


@dataclass(frozen=True, kw_only=True)
class LossPanel:
    """Cosines of one choice of losses, with S and the means of all pairs of the split."""

    title: str
    overlap: float
    mean_matched: float
    mean_unmatched: float
    scores: Scores
    printed: Printed = Printed()


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    standings = [s for s in map(inputs.board.standing, PRESETS) if s and s.played]
    if standings:
        shown_panels = [_panel(standing) for standing in standings]
        overlaps = ", ".join(f"{panel.title} {panel.overlap:.4f}" for panel in shown_panels)
        yield Picture(
            name="losses",
            figure=density_by_loss(shown_panels),
            alt=f"{inputs.board.card['title']}: score densities by loss; S: {overlaps}",
            caption=_caption(shown_panels, standings[0].played[0].record.seed),
        )


def _caption(shown_panels: Sequence[LossPanel], seed: int) -> str:
    """What Fig. 5 shows, and whether it recurs."""
    printed = [panel.printed.overlap for panel in shown_panels]
    overlaps = [panel.overlap for panel in shown_panels]
    sentence = "After Fig. 5, where S falls from ranking loss to instance loss to both."
    if len(overlaps) > 1:
        is_alike = np.array_equal(np.argsort(printed), np.argsort(overlaps))
        sentence += f" Here S {SAME if is_alike else 'has another order'}."
    return f"{sentence} Drawn are the scores of seed {seed}; the numbers are means over all seeds."


def _panel(standing: Standing) -> LossPanel:
    """The scores of the first seed; S and the means as in the tables."""
    return LossPanel(
        title=standing.row.title,
        overlap=standing.mean("overlap_s"),
        mean_matched=standing.mean("mean_matched"),
        mean_unmatched=standing.mean("mean_unmatched"),
        scores=scores_of(standing),
        printed=_printed_of(standing.preset),
    )


def _printed_of(preset: str) -> Printed:
    claims = {claim.id: claim for claim in papers()["instance_loss"].claims}
    order, means = claims["overlap_order"], claims["instance_loss_separates"].printed
    overlap = dict(zip(order.presets, order.printed, strict=True))[preset]
    if preset != SEPARATED:
        return Printed(overlap=overlap)
    return Printed(overlap=overlap, mean_matched=means[0], mean_unmatched=means[1])


def density_by_loss(shown_panels: Sequence[LossPanel]) -> Figure:
    """P and Q side by side on shared scales, the area that S measures, and the paper's numbers."""
    with drawing():
        figure, grid = panels(len(shown_panels), columns=3, head=0.4, row=2.9)
        edges = bin_edges([panel.scores for panel in shown_panels])
        for axes, panel in zip(grid, shown_panels, strict=True):
            handles = draw_densities(axes, panel.scores, edges)
            handles += [_shared_area(axes, panel.scores, edges)]
            _means(axes, panel)
            axes.set_title(_numbers(panel))
        top = max(axes.get_ylim()[1] for axes in grid)
        for axes in grid:
            axes.set_ylim(0, top)
        figure.supxlabel("cosine of an image and a caption", fontsize=9)
        figure.supylabel("density", fontsize=9)
        titles = ["Q: unmatched pairs", "P: matched pairs", "S: area under both", "mean here"]
        handles += [Line2D([], [], color="black", **LINE), Line2D([], [], color="black", **DIAMOND)]
        legend_above(figure, handles, [*titles, "mean in the paper, where printed"])
    return figure


def _shared_area(axes: Axes, scores: Scores, edges: np.ndarray) -> Artist:
    both = (scores.matched, scores.unmatched)
    shared = np.minimum(*(np.histogram(values, edges, density=True)[0] for values in both))
    return axes.stairs(shared, edges, fill=True, color="#333333", alpha=0.75, rasterized=True)


def _means(axes: Axes, panel: LossPanel) -> None:
    """Measured means as dashed lines, the paper's as hollow diamonds on the axis."""
    measured = (panel.mean_matched, panel.mean_unmatched)
    printed = (panel.printed.mean_matched, panel.printed.mean_unmatched)
    for mean, of_paper, colour in zip(measured, printed, (MATCHED, UNMATCHED), strict=True):
        axes.axvline(mean, color=colour, **LINE)
        if of_paper is not None:
            axes.plot(of_paper, 0, color=colour, clip_on=False, zorder=4, **DIAMOND)


def _numbers(panel: LossPanel) -> str:
    rows = (
        ("S", panel.overlap, panel.printed.overlap),
        ("mean of P", panel.mean_matched, panel.printed.mean_matched),
        ("mean of Q", panel.mean_unmatched, panel.printed.mean_unmatched),
    )
    lines = [f"{name} {value:.4f}{_in_paper(printed)}" for name, value, printed in rows]
    return "\n".join([shown(panel.title, 44), *lines])


def _in_paper(value: float | None) -> str:
    return "" if value is None else f" (paper {value:.4f})"

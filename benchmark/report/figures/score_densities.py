"""Densities of matched and unmatched scores, one panel per preset."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from benchmark.analysis.boards import Standing
from benchmark.report.density_panels import Scores, bin_edges, draw_densities, scores_of
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import drawing, legend_above, panels, shown

SECTION = "similarity"
PRESETS = 24  # that are drawn: the best; S of all others is in the table


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Score distributions of one preset."""

    title: str
    overlap: float  # S
    bound: float  # 1 - KS
    scores: Scores


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    standings = [standing for standing in inputs.board.ranked if standing.has_scores]
    shown_panels = [_panel(standing) for standing in standings[:PRESETS]]
    if not shown_panels:
        return
    overlaps = ", ".join(f"{panel.title} {panel.overlap:.3f}" for panel in shown_panels)
    yield Picture(
        name="similarities",
        figure=score_densities(shown_panels),
        alt=f"{inputs.board.card['title']}: score densities of matched and unmatched pairs; "
        f"S: {overlaps}",
        caption=_caption(standings[:PRESETS], len(standings) - len(shown_panels)),
    )


def _caption(drawn: Sequence[Standing], left_out: int) -> str:
    seeds = ", ".join(sorted({str(standing.played[0].record.seed) for standing in drawn}))
    are = "preset with a lower rsum is" if left_out == 1 else "presets with a lower rsum are"
    more = f" {left_out} {are} left out." if left_out else ""
    return f"Drawn are the scores of seed {seeds}; S and 1 - KS are means over all seeds.{more}"


def _panel(standing: Standing) -> Panel:
    """The scores of the first seed; S and its bound as in the tables."""
    return Panel(
        title=standing.row.title,
        overlap=standing.mean("overlap_s"),
        bound=standing.mean("one_minus_ks"),
        scores=scores_of(standing),
    )


def score_densities(shown_panels: Sequence[Panel]) -> Figure:
    """Every panel has its own bins: scores of some methods fill a hundredth of their range."""
    with drawing():
        figure, grid = panels(len(shown_panels), columns=3, head=0.5, row=2.1)
        for axes, panel in zip(grid, shown_panels, strict=True):
            title = f"{shown(panel.title, 44)}\nS = {panel.overlap:.3f}, 1 - KS = {panel.bound:.3f}"
            axes.set_title(title)
            handles = draw_densities(axes, panel.scores, bin_edges([panel.scores]))
        figure.supxlabel(
            "similarity of an image and a caption; every panel has its own scale", fontsize=9
        )
        figure.supylabel("density", fontsize=9)
        legend_above(figure, handles, ["unmatched pairs", "matched pairs"])
    return figure

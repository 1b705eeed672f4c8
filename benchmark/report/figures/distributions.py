"""Figures of score distributions: matched against unmatched pairs, and S, their overlap."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWN, CARETUP
from matplotlib.ticker import MaxNLocator

from benchmark.report.figure_style import (
    COLOURS,
    GREY,
    WIDTH,
    drawing,
    legend_above,
    legend_below,
    panels,
    shown,
)

MATCHED, UNMATCHED = COLOURS[1], COLOURS[0]
BINS = 80  # of a panel
TAIL = 0.001  # share of the scores that may lie beyond either end of a panel
LINE = {"linestyle": "--", "linewidth": 1.2}
DIAMOND = {"marker": "D", "markersize": 7, "markerfacecolor": "white", "linestyle": "none"}
SMALL = {"markersize": 4, "linestyle": "none"}
ROW = 0.27  # inches; of a preset in the dot plot


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Score distributions of one preset: evenly spaced order statistics of either kind."""

    title: str
    overlap: float  # S
    bound: float  # 1 - KS
    matched: np.ndarray
    unmatched: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Printed:
    """What a paper prints of a pair of distributions; None where it prints nothing."""

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
    matched: np.ndarray  # evenly spaced order statistics
    unmatched: np.ndarray
    printed: Printed = Printed()


@dataclass(frozen=True, kw_only=True)
class OverlapRow:
    """S of one preset with everything that says how far to trust it."""

    title: str
    overlap: float
    low: float  # ends of the bootstrap interval
    high: float
    half_bins: float  # S at half the bins
    double_bins: float
    bound: float  # 1 - KS


def similarities(shapes: Sequence[Panel]) -> Figure:
    """Densities of matched and unmatched scores, one panel a preset."""
    with drawing():
        figure, grid = panels(len(shapes), columns=3, head=0.5, row=2.1)
        for axes, panel in zip(grid, shapes, strict=True):
            title = f"{shown(panel.title, 44)}\nS = {panel.overlap:.3f}, 1 - KS = {panel.bound:.3f}"
            axes.set_title(title)
            handles = _densities(axes, panel.matched, panel.unmatched, _ends([panel]))
        figure.supxlabel(
            "similarity of an image and a caption; every panel has its own scale", fontsize=9
        )
        figure.supylabel("density", fontsize=9)
        legend_above(figure, handles, ["unmatched pairs", "matched pairs"])
    return figure


def loss_panels(shapes: Sequence[LossPanel]) -> Figure:
    """P and Q side by side on shared scales, the area that S measures, and the paper's numbers.

    After the figure of ranking loss, instance loss and both (instance-loss paper, Fig. 5).
    """
    with drawing():
        figure, grid = panels(len(shapes), columns=3, head=0.4, row=2.9)
        ends = _ends(shapes)
        for axes, panel in zip(grid, shapes, strict=True):
            handles = _densities(axes, panel.matched, panel.unmatched, ends)
            handles += [_shared_area(axes, panel, ends)]
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


def overlap_intervals(rows: Sequence[OverlapRow]) -> Figure:
    """S of every preset with its interval, other bins and the bound without bins; best on top."""
    with drawing():
        figure = Figure(figsize=(WIDTH, 0.6 + ROW * len(rows)), layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(rows))
        overlaps = [row.overlap for row in rows]
        spans = ([row.low for row in rows], [row.high for row in rows])
        halves, doubles = [row.half_bins for row in rows], [row.double_bins for row in rows]
        bounds = [row.bound for row in rows]
        handles = [
            *axes.plot(overlaps, places, "o", color=COLOURS[0], markersize=5, zorder=3),
            axes.hlines(places, *spans, color=COLOURS[0], linewidth=1.6),
            *axes.plot(halves, places - 0.28, color=GREY, marker=CARETDOWN, **SMALL),
            *axes.plot(doubles, places + 0.28, color=GREY, marker=CARETUP, **SMALL),
            *axes.plot(bounds, places, "|", color=COLOURS[1], markersize=11, markeredgewidth=1.8),
        ]
        axes.set_yticks(places, [shown(row.title, 60, lines=1) for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.set_xlabel("S, the overlap of matched and unmatched scores; lower is better")
        axes.grid(axis="y", linewidth=0.4)
        titles = ["S", "95% interval of S", "S at half the bins", "S at double the bins", "1 - KS"]
        legend_below(figure, handles, titles)
    return figure


def _densities(
    axes: Axes, matched: np.ndarray, unmatched: np.ndarray, ends: tuple[float, float]
) -> list[Artist]:
    """Bins of the panel's own: scores of some methods fill a hundredth of their range."""
    edges = np.linspace(*ends, BINS + 1)
    handles = []
    for values, colour in ((unmatched, UNMATCHED), (matched, MATCHED)):
        density, _ = np.histogram(values, edges, density=True)
        look = {"color": colour, "rasterized": True}  # in an SVG; hundreds of corners a panel
        handles.append(axes.stairs(density, edges, fill=True, alpha=0.35, **look))
        axes.stairs(density, edges, linewidth=0.9, **look)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    return handles


def _shared_area(axes: Axes, panel: LossPanel, ends: tuple[float, float]) -> Artist:
    edges = np.linspace(*ends, BINS + 1)
    densities = [np.histogram(x, edges, density=True)[0] for x in (panel.matched, panel.unmatched)]
    shared = np.minimum(*densities)
    return axes.stairs(shared, edges, fill=True, color="#333333", alpha=0.75, rasterized=True)


def _means(axes: Axes, panel: LossPanel) -> None:
    """Ours as dashed lines, the paper's as hollow diamonds on the axis."""
    ours = (panel.mean_matched, panel.mean_unmatched)
    theirs = (panel.printed.mean_matched, panel.printed.mean_unmatched)
    for mean, printed, colour in zip(ours, theirs, (MATCHED, UNMATCHED), strict=True):
        axes.axvline(mean, color=colour, **LINE)
        if printed is not None:
            axes.plot(printed, 0, color=colour, clip_on=False, zorder=4, **DIAMOND)


def _numbers(panel: LossPanel) -> str:
    rows = (
        ("S", panel.overlap, panel.printed.overlap),
        ("mean of P", panel.mean_matched, panel.printed.mean_matched),
        ("mean of Q", panel.mean_unmatched, panel.printed.mean_unmatched),
    )
    lines = [f"{name} {ours:.4f}{_printed(theirs)}" for name, ours, theirs in rows]
    return "\n".join([shown(panel.title, 44), *lines])


def _printed(value: float | None) -> str:
    return "" if value is None else f" (paper {value:.4f})"


def _ends(shapes: Sequence[Panel | LossPanel]) -> tuple[float, float]:
    """What holds all but the tails of every sample; never empty, even for scores all alike."""
    samples = [sample for panel in shapes for sample in (panel.matched, panel.unmatched)]
    ends = [np.quantile(sample, (TAIL, 1 - TAIL)) for sample in samples]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return (low, high) if high > low else (low - 0.5, low + 0.5)

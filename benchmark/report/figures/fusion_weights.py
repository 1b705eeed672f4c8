"""Adaptive fusion (CycleMatch, Section 6.3.4): how it finds its weights, and the weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.analysis.boards import Standing
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, GREY, drawing, panels, shown

SECTION = "papers/cyclematch"
PRESETS = ("cyclematch_adaptive", "cyclematch_hglmm_adaptive")
MIDDLE = (0.4, 0.6)  # where the paper says that most weights lie
QUERY = {"i2t": "image query", "t2i": "caption query"}


@dataclass(frozen=True, kw_only=True)
class QueryCurves:
    """A query's scores of the gallery, best first, by each member of the fusion."""

    title: str
    members: Sequence[str]
    curves: np.ndarray  # (S, L), descending, at L evenly spaced order statistics
    weights: np.ndarray  # (S,)


@dataclass(frozen=True, kw_only=True)
class QueryWeights:
    """The weight of each member for every query of one direction."""

    title: str
    members: Sequence[str]
    weights: np.ndarray  # (S, Q)


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    for standing in filter(None, map(inputs.board.standing, PRESETS)):
        ways = [way for way in QUERY if f"weights_{way}" in standing.samples]
        if ways:
            yield from _pictures(inputs.board.card["title"], standing, ways)


def _pictures(title: str, standing: Standing, ways: Sequence[str]) -> Iterator[Picture]:
    whose = f"{title}, {standing.row.title}"
    yield Picture(
        name=f"curves-{standing.preset}",
        figure=score_curves([curves for way in ways for curves in _curves(standing, way)]),
        alt=f"{whose}: scores of a few queries over the gallery, sorted, one curve per "
        "score, each with its adaptive weight",
        caption="After Fig. 6.5, where the score with the smallest area under its curve has the "
        f"largest weight. Seed {standing.samples_seed}.",
    )
    yield Picture(
        name=f"weights-{standing.preset}",
        figure=fusion_weights([_weights(standing, way) for way in ways]),
        alt=f"{whose}: histograms of the adaptive weights of every query, "
        f"{_share(standing, ways):.0%} of them between {MIDDLE[0]} and {MIDDLE[1]}",
        caption=_caption(standing, ways),
    )


def _caption(standing: Standing, ways: Sequence[str]) -> str:
    """What Fig. 6.7 shows, and whether it recurs."""
    share = _share(standing, ways)
    recurs = "it recurs" if share > 0.5 else "it does not recur"
    return (
        f"After Fig. 6.7, where most weights lie between {MIDDLE[0]} and {MIDDLE[1]}. Here "
        f"{100 * share:.0f}% do: {recurs}. Mean and standard deviation over the queries: "
        f"{_spreads(standing, ways)}. By Eq. 6.10 a weight says how small the positive area of a "
        f"score is, not how well the score ranks. Seed {standing.samples_seed}."
    )


def _spreads(standing: Standing, ways: Sequence[str]) -> str:
    """The weights of each member, of the queries of both directions."""
    weights_SQ = np.concatenate([standing.samples[f"weights_{way}"] for way in ways], axis=1)
    return ", ".join(
        f"{member} {weights.mean():.2f} ± {weights.std():.2f}"
        for member, weights in zip(_members(standing), weights_SQ.astype(np.float64), strict=True)
    )


def _share(standing: Standing, ways: Sequence[str]) -> float:
    """Of the weights, those in the middle."""
    weights = np.concatenate([standing.samples[f"weights_{way}"].ravel() for way in ways])
    return float(np.mean((weights >= MIDDLE[0]) & (weights <= MIDDLE[1])))


def _curves(standing: Standing, way: str) -> list[QueryCurves]:
    samples = standing.samples
    return [
        QueryCurves(
            title=f"{QUERY[way]} {query}",
            members=_members(standing),
            curves=samples[f"curves_{way}"][:, number],
            weights=samples[f"weights_{way}"][:, query],
        )
        for number, query in enumerate(samples[f"curve_queries_{way}"])
    ]


def _weights(standing: Standing, way: str) -> QueryWeights:
    return QueryWeights(
        title=f"by {QUERY[way]}",
        members=_members(standing),
        weights=standing.samples[f"weights_{way}"],
    )


def _members(standing: Standing) -> list[str]:
    return [part.partition(":")[2] or part for part in standing.row.fuse.of]


def score_curves(queries: Sequence[QueryCurves]) -> Figure:
    """Sorted score curves, one panel per query: the smaller a member's area above zero, the larger
    its weight (CycleMatch, Fig. 6.5)."""
    with drawing():
        figure, grid = panels(len(queries), columns=3, head=0.3, row=2.5)
        for axes, query in zip(grid, queries, strict=True):
            share = np.linspace(0, 100, query.curves.shape[1])
            handles = []
            for number, curve in enumerate(query.curves.astype(np.float64)):
                colour = COLOURS[number % len(COLOURS)]
                handles += axes.plot(share, curve, color=colour, linewidth=1.4)
            axes.axhline(0, color=GREY, linewidth=0.8, zorder=1)
            labels = [
                f"{shown(name, 24, lines=1)}: weight {weight:.3f}"
                for name, weight in zip(query.members, query.weights, strict=True)
            ]
            axes.legend(handles, labels, loc="upper right")
            axes.set_title(shown(query.title, 44))
            axes.margins(x=0.01)
        _share_scale(grid, np.concatenate([query.curves.ravel() for query in queries]))
        figure.supxlabel("share of the gallery, best first (%)", fontsize=9)
        figure.supylabel("score", fontsize=9)
    return figure


def fusion_weights(clouds: Sequence[QueryWeights]) -> Figure:
    """The weights of every query, one dot per member, on a shared scale (CycleMatch, Fig. 6.7)."""
    with drawing():
        figure, grid = panels(len(clouds), columns=2, head=0.2, row=2.6)
        for axes, cloud in zip(grid, clouds, strict=True):
            members, queries = cloud.weights.shape
            handles = [
                axes.scatter(
                    np.arange(queries),
                    weights.astype(np.float64),
                    s=max(2.5, min(20.0, 4000 / queries)),
                    c=COLOURS[number % len(COLOURS)],
                    alpha=0.5,
                    linewidths=0,
                    rasterized=True,  # thousands of dots
                )
                for number, weights in enumerate(cloud.weights)
            ]
            labels = [
                f"{shown(name, 32, lines=1)}: mean {weights.mean():.3f}, sd {weights.std():.3f}"
                for name, weights in zip(
                    cloud.members, cloud.weights.astype(np.float64), strict=True
                )
            ]
            axes.axhline(1 / members, color="black", linewidth=0.8, linestyle="--")
            axes.legend(
                handles,
                labels,
                title=shown(cloud.title, 60),
                title_fontsize=9,
                scatterpoints=3,
                loc="lower center",
                bbox_to_anchor=(0.5, 1.0),
            )
            axes.set_xlabel("query, in the order of the split")
        _share_scale(grid, np.concatenate([cloud.weights.ravel() for cloud in clouds]))
        grid[0].set_ylabel("weight (dashed: equal weights)")
    return figure


def _share_scale(grid: Sequence[Axes], values: np.ndarray) -> None:
    low, high = float(values.min()), float(values.max())
    pad = 0.05 * (high - low) or 0.05
    for axes in grid:
        axes.set_ylim(low - pad, high + pad)

"""Densities of matched and unmatched scores, as several figures draw them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from benchmark.analysis.boards import Standing
from benchmark.report.figure_style import COLOURS

MATCHED, UNMATCHED = COLOURS[1], COLOURS[0]
BINS = 80  # of a panel
TAIL = 0.001  # share of the scores that may lie beyond either end of a panel


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of matched and of unmatched pairs: evenly spaced order statistics of both."""

    matched: np.ndarray
    unmatched: np.ndarray


def scores_of(standing: Standing) -> Scores:
    """Those of the first seed of a preset."""
    stored = standing.played[0].arrays("scores/similarities.npz")
    return Scores(matched=stored["matched_sample"], unmatched=stored["unmatched_sample"])


def bin_edges(shown: Sequence[Scores]) -> np.ndarray:
    """Edges of BINS equal bins that hold all scores but the tails, (BINS + 1,).

    The range is never empty, even if all scores are equal.
    """
    samples = [sample for scores in shown for sample in (scores.matched, scores.unmatched)]
    ends = [np.quantile(sample, (TAIL, 1 - TAIL)) for sample in samples]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if high <= low:
        half = max(0.5, 1e-6 * abs(low))
        low, high = low - half, low + half
    return np.linspace(low, high, BINS + 1)


def draw_densities(axes: Axes, scores: Scores, edges: np.ndarray) -> list[Artist]:
    """Draw both densities; returns legend handles: unmatched pairs, matched pairs."""
    handles = []
    for values, colour in ((scores.unmatched, UNMATCHED), (scores.matched, MATCHED)):
        density, _ = np.histogram(values, edges, density=True)
        look = {"color": colour, "rasterized": True}  # as vectors, hundreds of corners per panel
        handles.append(axes.stairs(density, edges, fill=True, alpha=0.35, **look))
        axes.stairs(density, edges, linewidth=0.9, **look)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    return handles

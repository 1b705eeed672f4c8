"""Figures of regions: what more of them bring, and what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.report.figure_style import (
    COLOURS,
    DASHES,
    GREY,
    MARKERS,
    drawing,
    legend_below,
    log_if_wide,
    panels,
)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One method at several numbers of regions; deviations over seeds, 0 for one seed."""

    title: str
    is_printed: bool = False  # by a paper, not measured here
    regions: np.ndarray  # (K,)
    i2t_r1: np.ndarray  # (K,) percent
    t2i_r1: np.ndarray
    i2t_deviation: np.ndarray
    t2i_deviation: np.ndarray
    microseconds: np.ndarray  # (K,) to score a pair


def regions(sweeps: Sequence[Sweep]) -> Figure:
    """R@1 both ways, and the time to score a pair, by the number of regions (SCAN, Table 5)."""
    with drawing():
        figure, (left, middle, right) = panels(3, columns=3, head=0, row=3.0)
        drawn = list(zip(sweeps, _looks(sweeps), strict=True))
        handles = [_line(left, s, s.i2t_r1, s.i2t_deviation, look) for s, look in drawn]
        for sweep, look in drawn:
            _line(middle, sweep, sweep.t2i_r1, sweep.t2i_deviation, look)
            _line(right, sweep, sweep.microseconds, np.zeros(len(sweep.regions)), look)
        left.set(title="i2t", ylabel="R@1 (%)")
        middle.set(title="t2i", ylabel="R@1 (%)")
        right.set(title="time", ylabel="microseconds to score a pair")
        times = np.concatenate([sweep.microseconds for sweep in sweeps])
        if not log_if_wide(right.yaxis, times):
            right.set_ylim(bottom=0)
        counts = sorted({int(count) for sweep in sweeps for count in sweep.regions})
        for axes in (left, middle, right):
            axes.set_xticks(counts)
            axes.set_xlabel("regions of an image")
        legend_below(figure, handles, [sweep.title for sweep in sweeps])
    return figure


def _looks(sweeps: Sequence[Sweep]) -> list[dict[str, str]]:
    """Ours solid in colour, the papers' dotted in grey; the marker tells them apart."""
    found = []
    for number, sweep in enumerate(sweeps):
        colour = GREY if sweep.is_printed else COLOURS[number % len(COLOURS)]
        dash = DASHES[-1] if sweep.is_printed else DASHES[0]
        marker = MARKERS[number % len(MARKERS)]
        found.append({"color": colour, "linestyle": dash, "marker": marker})
    return found


def _line(
    axes: Axes, sweep: Sweep, values: np.ndarray, deviations: np.ndarray, look: dict[str, str]
) -> Artist:
    bars = deviations if np.any(deviations) else None
    return axes.errorbar(
        sweep.regions, values, yerr=bars, capsize=3, elinewidth=1, markersize=5, **look
    )

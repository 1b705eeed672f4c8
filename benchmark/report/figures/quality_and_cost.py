"""Figures of what quality costs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.report.figure_style import GREY, Style, drawing, legend_below, log_scale, panels

ROOM = 1.6  # factor between the outermost points and the ends of a time axis


@dataclass(frozen=True, kw_only=True)
class Price:
    """One preset: how good it is, and what it takes to get there and to use it."""

    title: str
    style: Style
    rsum: float  # mean over seeds
    deviation: float  # over seeds; 0 for one seed
    training_seconds: float | None  # None: nothing was trained
    query_milliseconds: float  # to encode a query and score it against the gallery


def quality(prices: Sequence[Price]) -> Figure:
    """rsum against the time to train and the time of a query; the line joins the presets that no
    other one beats in both, the Pareto front."""
    with drawing():
        figure, (left, right) = panels(2, columns=2, head=0, row=4.2)
        right.sharey(left)
        trained = [price for price in prices if price.training_seconds is not None]
        _prices(left, [price.training_seconds for price in trained], trained)
        handles = _prices(right, [price.query_milliseconds for price in prices], prices)
        _time_axis(left, "seconds to train", [price.training_seconds for price in trained])
        _time_axis(right, "milliseconds of a query", [price.query_milliseconds for price in prices])
        left.set_ylabel("rsum on test")
        legend_below(figure, handles, [price.title for price in prices])
    return figure


def front(times: Sequence[float], rsums: Sequence[float]) -> list[int]:
    """Places of the points that no other one equals or beats in both, from fast to slow."""
    found: list[int] = []
    for place in sorted(range(len(times)), key=lambda i: (times[i], -rsums[i])):
        if not found or rsums[place] > rsums[found[-1]]:
            found.append(place)
    return found


def _prices(axes: Axes, times: Sequence[float], prices: Sequence[Price]) -> list[Artist]:
    places = front(times, [price.rsum for price in prices])
    best = [(times[place], prices[place].rsum) for place in places]
    axes.plot(*np.reshape(best, (-1, 2)).T, color=GREY, linewidth=5, alpha=0.25, zorder=1)
    return [_point(axes, time, price) for time, price in zip(times, prices, strict=True)]


def _point(axes: Axes, time: float, point: Price) -> Artist:
    bar = axes.errorbar(
        time,
        point.rsum,
        yerr=point.deviation or None,
        color=point.style.colour,
        marker=point.style.marker,
        markersize=8,
        markeredgecolor="white",
        markeredgewidth=0.6,
        capsize=3,
        elinewidth=1,
        linestyle="none",
    )
    return bar.lines[0]


def _time_axis(axes: Axes, label: str, times: Sequence[float]) -> None:
    log_scale(axes.xaxis, times)
    axes.set_xlabel(f"{label} (log scale)")
    axes.margins(y=0.12)
    if times:
        axes.set_xlim(min(times) / ROOM, max(times) * ROOM)

"""Quality against cost: rsum by the time of training and of a query."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.analysis.boards import Board, Standing
from benchmark.report.costs import by_setting, query_seconds, training_seconds
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import (
    GREY,
    Style,
    drawing,
    error_bar,
    legend_below,
    log_scale,
    panels,
    preset_styles,
)
from benchmark.report.number_texts import three_digits

SECTION = "cost"
SHORTEST = 1e-6  # milliseconds; a logarithmic axis cannot show a measured zero
ROOM = 1.6  # factor between the outermost points and the ends of a time axis


@dataclass(frozen=True, kw_only=True)
class Price:
    """One preset: its quality, and the times of its training and of a query."""

    title: str
    style: Style
    rsum: float  # mean over seeds
    deviation: float  # over seeds; 0 for one seed
    training_seconds: float | None  # None: less than the time that is kept
    query_milliseconds: float  # to encode a query and score it against the gallery


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    board = inputs.board
    settings = by_setting(board)
    timed = max(settings.values(), key=len, default=[])
    left_out = sum(map(len, settings.values())) - len(timed)
    prices = _prices_of(board, timed)
    if not prices:
        return
    query, items = ("picture", "caption") if "i2t" in board.ways else ("caption", "picture")
    yield Picture(
        name="cost",
        figure=quality_and_cost(prices),
        alt=_alt(board.card["title"], prices),
        caption=f"A query is a {query} that is encoded and scored with every {items} of the test "
        "split. The line joins the presets that no other one beats in both; bars are the standard "
        "deviation over seeds." + not_shown(prices, left_out),
    )


def not_shown(prices: Sequence[Price], timed_otherwise: int) -> str:
    """What the panels do not show, in sentences; empty where they show all."""
    untimed = [price.title for price in prices if price.training_seconds is None]
    said = ""
    if untimed:
        said = f" Not in the left panel, as training takes 0.0 s there: {', '.join(untimed)}."
    if timed_otherwise:
        are = "preset that was" if timed_otherwise == 1 else "presets that were"
        said += f" Left out: {timed_otherwise} {are} timed otherwise."
    return said


def _alt(title: str, prices: Sequence[Price]) -> str:
    best = max(prices, key=lambda price: price.rsum)
    queries = sorted(price.query_milliseconds for price in prices)
    fastest, slowest = three_digits(queries[0]), three_digits(queries[-1])
    return (
        f"{title}: rsum of {len(prices)} preset{'s' * (len(prices) != 1)} against the time to "
        f"train and the time of a query, which is {fastest} to {slowest} ms; "
        f"the best, {best.title}, needs {three_digits(best.query_milliseconds)} ms"
    )


def _prices_of(board: Board, standings: Sequence[Standing]) -> list[Price]:
    """Of presets that were timed alike."""
    styles = preset_styles(board)
    return [
        Price(
            title=standing.row.title,
            style=styles[standing.preset],
            rsum=standing.mean("rsum"),
            deviation=error_bar(standing.values("rsum")),
            training_seconds=training_seconds(board, standing) or None,
            query_milliseconds=max(1e3 * query_seconds(standing), SHORTEST),
        )
        for standing in standings
    ]


def quality_and_cost(prices: Sequence[Price]) -> Figure:
    """rsum against the time to train and the time of a query; the line joins the presets that no
    other one beats in both, the Pareto front."""
    with drawing():
        figure, (left, right) = panels(2, columns=2, head=0, row=4.2)
        right.sharey(left)
        trained = [price for price in prices if price.training_seconds is not None]
        _draw(left, [price.training_seconds for price in trained], trained)
        handles = _draw(right, [price.query_milliseconds for price in prices], prices)
        _time_axis(left, "seconds to train", [price.training_seconds for price in trained])
        _time_axis(right, "milliseconds of a query", [price.query_milliseconds for price in prices])
        left.set_ylabel("rsum on test")
        legend_below(figure, handles, [price.title for price in prices])
    return figure


def front(times: Sequence[float], rsums: Sequence[float]) -> list[int]:
    """Indices of the points that no other one equals or beats in both, from fast to slow."""
    indices: list[int] = []
    for index in sorted(range(len(times)), key=lambda i: (times[i], -rsums[i])):
        if not indices or rsums[index] > rsums[indices[-1]]:
            indices.append(index)
    return indices


def _draw(axes: Axes, times: Sequence[float], prices: Sequence[Price]) -> list[Artist]:
    indices = front(times, [price.rsum for price in prices])
    best = [(times[index], prices[index].rsum) for index in indices]
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

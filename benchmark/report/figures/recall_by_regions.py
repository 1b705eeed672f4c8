"""Recall and time by the number of regions of an image, after Table 5 of the SCAN paper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.analysis import comparisons
from benchmark.analysis.boards import Board
from benchmark.papers.printed_tables import papers
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import (
    COLOURS,
    DASHES,
    GREY,
    MARKERS,
    drawing,
    error_bar,
    legend_below,
    log_if_wide,
    panels,
)

SECTION = "papers/scan"
REGIONS = {f"scan_{k}_regions": k for k in (12, 24, 48, 60)} | {"scan_i2t_avg": 36}  # by preset


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


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    measured = _measured(inputs.board)
    if measured:
        yield Picture(
            name="regions",
            figure=recall_by_regions([_printed(), *measured]),
            alt=f"{inputs.board.card['title']}: R@1 and time of a pair by the number of regions, "
            f"printed and here; i2t R@1 here from {measured[0].i2t_r1.min():.1f} to "
            f"{measured[0].i2t_r1.max():.1f}",
            caption=_caption(_printed(), measured[0]),
        )


def _caption(printed: Sweep, measured: Sweep) -> str:
    """What table 5 shows of the numbers of regions that were played, and whether it recurs."""
    shared = np.isin(printed.regions, measured.regions)
    in_table = printed.regions[shared][printed.i2t_r1[shared].argmax()]
    here = measured.regions[measured.i2t_r1.argmax()]
    counts = ", ".join(map(str, measured.regions))
    recurs = "it recurs" if in_table == here else "it does not recur"
    return (
        f"After table 5, where i2t R@1 is best with {in_table} of {counts} regions. Here it is "
        f"best with {here}: {recurs}. Means over all seeds."
    )


def _measured(board: Board) -> list[Sweep]:
    """The sweep measured here, if it has two numbers of regions or more, and both directions."""
    by_count = {k: board.standing(preset) for preset, k in REGIONS.items()}
    played = [(k, by_count[k]) for k in sorted(by_count) if by_count[k] and by_count[k].played]
    if len(played) < 2 or len(board.ways) < 2:
        return []
    counts, standings = zip(*played, strict=True)
    sweep = Sweep(
        title=f"here, {board.card['title']}",
        regions=np.array(counts),
        i2t_r1=np.array([s.mean("i2t_r1") for s in standings]),
        t2i_r1=np.array([s.mean("t2i_r1") for s in standings]),
        i2t_deviation=np.array([error_bar(s.values("i2t_r1")) for s in standings]),
        t2i_deviation=np.array([error_bar(s.values("t2i_r1")) for s in standings]),
        microseconds=np.array([fmean(comparisons.values(s, "per_pair")) for s in standings]),
    )
    return [sweep]


def _printed() -> Sweep:
    table = papers()["scan"].tables["5"]
    rows = {row.preset: row for row in table.rows}
    presets = sorted(REGIONS, key=REGIONS.get)
    numbers = [table.numbers(rows[preset], "flickr30k/test") for preset in presets]
    no_deviation = np.zeros(len(presets))
    return Sweep(
        title="printed, Flickr30K on an M40",
        is_printed=True,
        regions=np.array([REGIONS[preset] for preset in presets]),
        i2t_r1=np.array([row["i2t_r1"] for row in numbers]),
        t2i_r1=np.array([row["t2i_r1"] for row in numbers]),
        i2t_deviation=no_deviation,
        t2i_deviation=no_deviation,
        microseconds=np.array([row["per_pair"] for row in numbers]),
    )


def recall_by_regions(sweeps: Sequence[Sweep]) -> Figure:
    """R@1 in both directions, and the time to score a pair, by the number of regions."""
    with drawing():
        figure, (left, middle, right) = panels(3, columns=3, head=0, row=3.0)
        drawn = list(zip(sweeps, _line_styles(sweeps), strict=True))
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


def _line_styles(sweeps: Sequence[Sweep]) -> list[dict[str, str]]:
    """Measured sweeps are solid and coloured, printed ones dotted and grey; markers differ."""
    line_styles = []
    for number, sweep in enumerate(sweeps):
        colour = GREY if sweep.is_printed else COLOURS[number % len(COLOURS)]
        dash = DASHES[-1] if sweep.is_printed else DASHES[0]
        marker = MARKERS[number % len(MARKERS)]
        line_styles.append({"color": colour, "linestyle": dash, "marker": marker})
    return line_styles


def _line(
    axes: Axes, sweep: Sweep, values: np.ndarray, deviations: np.ndarray, look: dict[str, str]
) -> Artist:
    bars = deviations if np.any(deviations) else None
    return axes.errorbar(
        sweep.regions, values, yerr=bars, capsize=3, elinewidth=1, markersize=5, **look
    )

"""Why not the printed number? From the rsum of a paper's main row to ours, in steps.

A step compares with another row of the paper that lacks one thing: as much of the gap as it does
not have is laid to that thing. What no row explains is drawn as unexplained, beside all that is
known to differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.analysis import comparability, comparisons
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.departures import Departure, departures
from benchmark.papers.printed_tables import Main, Paper, papers
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, GREY, WIDTH, drawing, shown

SECTION = "why"
METRIC = "rsum"
ROW = 0.42  # inches; height of a bar
LEFT, RIGHT, TOP, BOTTOM = 3.2, 0.9, 0.25, 0.55  # inches around the axes
LINE = 0.165  # inches; of the text below
BROAD = 150  # characters of a line of it


AS_IN_PAPER = {  # what differs -> how a cell would have it as in the paper
    Departure.FEATURES: "with the image features of the paper",
    Departure.REGIONS: "with the regions of the paper",
    Departure.WORDS: "with the word vectors of the paper",
    Departure.ENCODER: "with the text encoder of the paper",
    Departure.TEXT: "with a trained text encoder",
    Departure.BUDGET: "with the options of the paper",
    Departure.RISING: "trained until it has converged",
}


class Step(NamedTuple):
    """A bar: from where to where, and what it is."""

    what: str
    start: float
    end: float
    colour: str
    is_known: bool = True


@dataclass(frozen=True, kw_only=True)
class Gap:
    """From the printed to the measured rsum of a paper's main row."""

    title: str
    place: str
    printed: float
    here: float
    interval: tuple[float, float] | None
    steps: list[tuple[str, float]]  # what, and how much of the gap it explains
    differs: list[str]  # all that is known to differ
    unplayed: list[str]  # steps that the paper has rows for, and that were not played
    causes: list[str]  # what differs, in the words of a cell that has it as in the paper

    @property
    def unexplained(self) -> float:
        return self.printed - self.here - sum(value for _, value in self.steps)


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    paper = papers()[inputs.paper]
    gap = paper.main and gap_of(inputs.board, paper, paper.main)
    if gap:
        yield Picture(
            name="gap",
            figure=waterfall(gap),
            alt=alt_text(gap),
            caption=caption(gap),
        )


def gap_of(board: Board, paper: Paper, main: Main) -> Gap | None:
    """None where the main row has no result here, or rsum is of a single direction."""
    standing = board.standing(main.preset)
    if standing is None or not standing.played or len(board.ways) < 2:
        return None
    gap = _gap(board, paper, main, main.preset)
    steps = [
        (step.what, gap - other)
        for step in main.steps
        for other in [_gap(board, paper, main, step.preset)]
        if other is not None
    ]
    unplayed = [
        f"{step.preset}, for {step.what}"
        for step in main.steps
        if _gap(board, paper, main, step.preset) is None
    ]
    return Gap(
        title=f"{standing.row.title} on {board.card['title']}",
        place=main.place.partition("/")[0],
        printed=_printed(paper, main, main.preset),
        here=standing.mean(METRIC),
        interval=comparisons.interval(board, standing, METRIC)
        or comparisons.interval_over_images(board, standing, METRIC),
        steps=steps,
        differs=_differs(board, standing, main.place),
        unplayed=unplayed,
        causes=_causes(board, standing, main.place),
    )


def _gap(board: Board, paper: Paper, main: Main, preset: str) -> float | None:
    """Printed minus measured; None where one of them is missing."""
    standing, printed = board.standing(preset), _printed(paper, main, preset)
    if printed is None or standing is None or not standing.played:
        return None
    return printed - standing.mean(METRIC)


def _printed(paper: Paper, main: Main, preset: str) -> float | None:
    """The printed rsum of a preset at the place of the main row, in the first table that has it."""
    for table in paper.tables.values():
        for row in table.rows:
            if row.preset == preset and main.place in row.numbers and METRIC in table.columns:
                return table.numbers(row, main.place)[METRIC]
    return None


def _differs(board: Board, standing: Standing, place: str) -> list[str]:
    said = [
        f"options {text}" if kind == Departure.BUDGET else text
        for kind, text in departures(board, standing).items()
    ]
    if comparability.is_dataset(board, place):
        return said
    counts = board.card["counts"].get("train", {})
    size = f" with {counts['images']:,} training images" if counts else ""
    return [f"data: {board.card['title']}{size}", *said]


def _causes(board: Board, standing: Standing, place: str) -> list[str]:
    """What a cell would have to have as in the paper, one for each thing that differs."""
    found = departures(board, standing)
    on = [] if comparability.is_dataset(board, place) else [f"trained on {place.partition('/')[0]}"]
    return on + [what for kind, what in AS_IN_PAPER.items() if kind in found]


def caption(gap: Gap) -> str:
    """Which cells would explain what no step does; empty where everything is explained."""
    cells = [f"the preset {step}" for step in gap.unplayed]
    cells += [f"the same preset {cause}" for cause in gap.causes]
    if not cells:
        return ""
    return (
        f"{gap.unexplained:.1f} of {gap.printed - gap.here:.1f} points are unexplained, since the "
        f"cells that would explain them were not played: {'; '.join(cells)}."
    )


def alt_text(gap: Gap) -> str:
    """Every bar with its number, and the interval."""
    steps = [f"{value:+.1f} for {what}" for what, value in gap.steps]
    ends = f" (95% interval {gap.interval[0]:.1f} to {gap.interval[1]:.1f})" if gap.interval else ""
    return (
        f"Bars from the printed to our rsum of {gap.title}: {gap.printed:.1f} printed on "
        f"{gap.place}, {gap.here:.1f} here{ends}; of the gap of {gap.printed - gap.here:.1f}, "
        f"{', '.join([*steps, f'{gap.unexplained:.1f} unexplained'])}"
    )


def bars(gap: Gap) -> list[Step]:
    """From the printed number down, or up, to ours."""
    steps = [Step(f"printed, {gap.place}", 0, gap.printed, GREY)]
    level = gap.printed
    for what, value in gap.steps:
        steps.append(Step(what, level, level - value, COLOURS[1] if value > 0 else COLOURS[2]))
        level -= value
    steps.append(Step("unexplained", level, gap.here, "#bbbbbb", is_known=False))
    return [*steps, Step("here", 0, gap.here, COLOURS[0])]


def waterfall(gap: Gap) -> Figure:
    """The printed number, the steps, what is unexplained, and ours; below, all that differs."""
    steps = bars(gap)
    lines = wrap("Known to differ: " + "; ".join(gap.differs) + ".", BROAD) if gap.differs else []
    height = TOP + ROW * len(steps) + BOTTOM + LINE * len(lines)
    with drawing():
        figure = Figure(figsize=(WIDTH, height))
        bottom, inner = (BOTTOM + LINE * len(lines)) / height, ROW * len(steps) / height
        axes = figure.add_axes((LEFT / WIDTH, bottom, (WIDTH - LEFT - RIGHT) / WIDTH, inner))
        *_, last = steps
        for place, step in enumerate(steps):
            _draw(axes, place, step, gap.interval[1] if gap.interval and step is last else 0)
        if gap.interval:
            axes.hlines(len(steps) - 1, *gap.interval, color="black", linewidth=1.6)
        axes.set_yticks(range(len(steps)), [shown(step.what, 40) for step in steps])
        axes.set_ylim(len(steps) - 0.5, -0.5)
        axes.set_xlabel(f"rsum of {shown(gap.title, 90, lines=1)}")
        axes.grid(axis="y", visible=False)
        text = "\n".join(shown(line, BROAD + 10, lines=1) for line in lines)
        figure.text(0.01, 0.06 / height, text, fontsize=8, color="#444444", va="bottom")
    return figure


def _draw(axes: Axes, place: int, step: Step, right: float) -> None:
    """A bar with its number, which stands beyond `right`."""
    low, width = min(step.start, step.end), abs(step.end - step.start)
    look = {} if step.is_known else {"hatch": "///", "edgecolor": "white"}
    axes.barh(place, width, left=low, height=0.62, color=step.colour, **look)
    is_level = step.start == 0
    text = f"{step.end:.1f}" if is_level else f"{step.end - step.start:+.1f}"
    look = {"textcoords": "offset points", "va": "center", "fontsize": 8}
    axes.annotate(text, (max(low + width, right), place), (5, 0), **look)

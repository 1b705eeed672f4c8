"""Why not the printed number? From the rsum of a paper's main row to ours, in steps.

A step compares with another row of the paper that lacks one thing: how much more that thing gains
in the paper than here. What is in none of these steps is drawn as elsewhere, and the caption says
all that is known to differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
FEWEST = 1000  # training images that let a printed number of another dataset be a measure
ROW = 0.42  # inches; height of a bar
LEFT, RIGHT, TOP, BOTTOM = 3.2, 0.9, 0.25, 0.55  # inches around the axes


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

    @property
    def elsewhere(self) -> float:
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
    """None where the main row has no result here, rsum is of a single direction, or the printed
    number is of another dataset and too little was trained on here to be measured by it."""
    standing = board.standing(main.preset)
    if standing is None or not standing.played or len(board.ways) < 2:
        return None
    is_little = board.card["counts"].get("train", {}).get("images", FEWEST) < FEWEST
    if is_little and not comparability.is_dataset(board, main.place):
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


def caption(gap: Gap) -> str:
    """What is known to differ, and which steps of the paper were not played; empty where nothing
    is."""
    missing = gap.printed - gap.here
    steps = f"{missing - gap.elsewhere:.1f} in the steps that were played"
    sentences = [f"Printed less ours is {missing:.1f}: {steps}, {gap.elsewhere:.1f} elsewhere."]
    if gap.differs:
        what = "; ".join(gap.differs)
        sentences.append(f"Known to differ, by how much no cell here measures: {what}.")
    if gap.unplayed:
        sentences.append(f"Steps that were not played: {'; '.join(gap.unplayed)}.")
    return " ".join(sentences) if len(sentences) > 1 else ""


def alt_text(gap: Gap) -> str:
    """Every bar with its number, and the interval."""
    steps = [f"{value:+.1f} for {what}" for what, value in gap.steps]
    ends = f" (95% interval {gap.interval[0]:.1f} to {gap.interval[1]:.1f})" if gap.interval else ""
    return (
        f"Bars from the printed to our rsum of {gap.title}: {gap.printed:.1f} printed on "
        f"{gap.place}, {gap.here:.1f} here{ends}; of the gap of {gap.printed - gap.here:.1f}, "
        f"{', '.join([*steps, f'{gap.elsewhere:.1f} elsewhere'])}"
    )


def bars(gap: Gap) -> list[Step]:
    """From the printed number down, or up, to ours."""
    steps = [Step(f"printed, {gap.place}", 0, gap.printed, GREY)]
    level = gap.printed
    for what, value in gap.steps:
        steps.append(Step(what, level, level - value, COLOURS[1] if value > 0 else COLOURS[2]))
        level -= value
    steps.append(Step("elsewhere", level, gap.here, "#bbbbbb", is_known=False))
    return [*steps, Step("here", 0, gap.here, COLOURS[0])]


def waterfall(gap: Gap) -> Figure:
    """The printed number, the steps, what is lost elsewhere, and ours."""
    steps = bars(gap)
    height = TOP + ROW * len(steps) + BOTTOM
    with drawing():
        figure = Figure(figsize=(WIDTH, height))
        bottom, inner = BOTTOM / height, ROW * len(steps) / height
        axes = figure.add_axes((LEFT / WIDTH, bottom, (WIDTH - LEFT - RIGHT) / WIDTH, inner))
        *_, last = steps
        for place, step in enumerate(steps):
            _draw(axes, place, step, gap.interval[1] if gap.interval and step is last else 0)
        if gap.interval:
            axes.hlines(len(steps) - 1, *gap.interval, color="black", linewidth=1.6)
        axes.set_yticks(range(len(steps)), [shown(step.what, 40, lines=3) for step in steps])
        axes.set_ylim(len(steps) - 0.5, -0.5)
        axes.set_xlabel(f"rsum of {shown(gap.title, 90, lines=1)}")
        axes.grid(axis="y", visible=False)
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

"""One result beside a number that a paper prints: is it compatible, below or above?

The printed number stands for every value that rounds to it. Nothing is known of its own
images and trainings, so it has no interval; the result has one, for other images and
other trainings. Its place is

    below, above   the interval lies wholly beyond what is rounded to the number
    compatible     the interval contains some of that, and lies within the margin of
                   the number
    undecided      anything else
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

from benchmark.boards import comparisons as of_boards
from benchmark.boards.boards import RANKED_BY
from benchmark.commands.judged_results import (
    NO_SCALE,
    R1,
    THESE_TRAININGS,
    BoardAndRow,
    Measure,
    Question,
    directions_of,
    interval_of_level,
    margin_for,
    measured_together,
    no_metric,
    queries_of,
    reach_of,
    too_few,
    unit_of,
)
from benchmark.commands.result_files import Kind, Result
from benchmark.core.errors import UserError
from benchmark.papers.printed_numbers import Rounded
from benchmark.scoring.metrics import METRICS
from benchmark.stats import comparisons
from benchmark.stats.comparisons import Comparison
from benchmark.stats.verdicts import NOTHING_VARIES

UNKNOWN = (
    "the printed number has no interval here: its images and its number of trainings "
    "are not known"
)


class Place(StrEnum):
    """Where a result lies beside a printed number."""

    COMPATIBLE = "compatible"
    BELOW = "below"
    ABOVE = "above"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Placement:
    """A place with the interval that it follows from."""

    conclusion: Place
    interval: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class PrintedComparison:
    """One result beside a printed number."""

    comparison: Comparison  # of the result with zero
    printed: Rounded
    interval: tuple[float, float]  # for other images and other trainings
    margin: float
    queries: int
    unit: str  # what is drawn anew: images, queries, clusters
    obstacle: str = ""  # why nothing can be concluded
    notes: list[str] = field(default_factory=list)

    @property
    def level(self) -> float:
        """The mean of its trainings."""
        return fmean(self.comparison.firsts)

    @property
    def on_test_set(self) -> Placement | None:
        """For other trainings alone; None: nothing is known of them."""
        estimate = self.comparison.on_test_set
        if estimate is None:
            return None
        low, high = estimate.interval  # of the difference, whose sign may be turned
        half = (high - low) / 2
        interval = self.level - half, self.level + half
        # With few trainings this can be the wider one; for other images too, the
        # interval cannot be too narrow for other trainings alone.
        if 2 * half > self.interval[1] - self.interval[0]:
            interval = self.interval
        return Placement(place_of(interval, self.printed, self.margin), interval)

    @property
    def conclusion(self) -> Place:
        if self.obstacle:
            return Place.UNDECIDED
        return place_of(self.interval, self.printed, self.margin)

    @property
    def reason(self) -> str:
        """A short sentence without its full stop."""
        if self.obstacle:
            return self.obstacle
        margin = f"{self.margin:.3g}"
        return {
            Place.BELOW: "the interval lies below the printed number",
            Place.ABOVE: "the interval lies above the printed number",
            Place.COMPATIBLE: f"the interval contains it, and lies within {margin} of it",
            Place.UNDECIDED: f"the interval contains it, and reaches beyond {margin}",
        }[self.conclusion]


def place_of(interval: tuple[float, float], printed: Rounded, margin: float) -> Place:
    """Where an interval lies beside a printed number."""
    low, high = interval
    if high < printed.value - printed.half:
        return Place.BELOW
    if low > printed.value + printed.half:
        return Place.ABOVE
    if low >= printed.value - margin and high <= printed.value + margin:
        return Place.COMPATIBLE
    return Place.UNDECIDED


def printed_number(text: str) -> Rounded:
    """Raises UserError for what is no number."""
    number = Rounded.of(" ".join(text.split()))
    if number is None:
        raise UserError("--printed", "a number such as 77.82", text, "correct it")
    return number


def against_of_season(
    preset: BoardAndRow, number: Rounded, question: Question
) -> PrintedComparison:
    """A preset of a season, with its interval as in the report. Raises UserError
    for a metric without an interval."""
    board, row = preset
    if question.metric is None and len(board.ways) > 1 and row.task == "retrieval":
        raise _unnamed_metric(list(board.ways))
    metric = question.metric or RANKED_BY[row.task]
    if metric not in METRICS:
        raise no_metric(metric, list(board.ways))
    comparison = of_boards.compare(board, row, None, metric)
    interval, _ = of_boards.known_interval(board, row, metric)
    if comparison is None or interval is None:
        expected = f"{metric} as a mean over queries"
        raise UserError(row.preset, expected, "none", "choose another --metric")
    level = fmean(comparison.firsts)
    check_scale(row.preset, number, level, METRICS[metric].unit == "%")
    obstacle = ""
    if board.is_small(row.task):
        few = board.test_queries(row.task)
        obstacle = f"nothing can be concluded from {few} test queries"
    is_half, better = len(board.ways) == 1, max(level, number.value)
    return PrintedComparison(
        comparison=comparison,
        printed=number,
        interval=interval,
        margin=margin_for(question, metric, better, is_half),
        queries=board.queries_in(directions_of(metric, board.ways)),
        unit="images",
        obstacle=obstacle,
        notes=_notes(comparison),
    )


def _unnamed_metric(ways: Sequence[str]) -> UserError:
    """For ranks of several directions, of which a printed number may be any metric."""
    return UserError(
        "--printed",
        expected=f"a number of rsum, {', '.join(f'{way}_{R1}' for way in ways)}, ...",
        found="no --metric",
        do="name it, as in: --metric i2t_r1",
    )


def _notes(comparison: Comparison) -> list[str]:
    """What a reader must know."""
    return [THESE_TRAININGS, UNKNOWN] if comparison.is_of_these_trainings else [UNKNOWN]


def against_of_file(
    result: Result, others: Sequence[Result], number: Rounded, question: Question
) -> PrintedComparison:
    """A result from anywhere. Its own seeds, and those of `others` on the same queries,
    show how far trainings lie apart. Raises UserError for a metric that it does not
    have, and for a number of another scale."""
    ways = list(result.table.index.unique("direction"))
    if question.metric is None and result.kind == Kind.RANKS and len(ways) > 1:
        raise _unnamed_metric(ways)
    measured = measured_together([result], others, question.metric)
    measure, sample = measured.measure, measured.samples[result.name]
    comparison = comparisons.compare(
        [result.name], [sample], measured.spread, metric=measure.shown
    )
    is_percent = bool(measure.metric) and METRICS[measure.metric].unit == "%"
    check_scale(result.name, number, sample.mean, is_percent)
    _check_range(result, number, measure)
    notes = [*measured.notes]
    if not measure.metric and question.margin is None:
        notes.append(NO_SCALE)
    few, better = too_few(result), max(sample.mean, number.value)
    # ranks and hits have an interval even where nothing varies (interval_of_level)
    if comparison.estimate is None and measure.kind == Kind.VALUES:
        few = few or NOTHING_VARIES
    return PrintedComparison(
        comparison=comparison,
        printed=number,
        interval=interval_of_level(result, measured),
        margin=margin_for(question, measure.metric, better, measure.is_of_one_way),
        queries=queries_of(result, measure),
        unit=unit_of(result),
        obstacle=few.sentence if few else "",
        notes=notes + _notes(comparison),
    )


def check_scale(name: str, number: Rounded, level: float, is_percent: bool) -> None:
    """Raise UserError for a fraction beside per cent."""
    share = number.in_percent
    if not is_percent or share is None:
        return
    if abs(share.value - level) < abs(number.value - level):
        expected = f"per cent, as {name} has"
        raise UserError("--printed", expected, number, f"did you mean {share}?")


def _check_range(result: Result, number: Rounded, measure: Measure) -> None:
    """Raise UserError for a number that no mean of such values can be."""
    if measure.kind == Kind.RANKS:
        low, high = 0.0, reach_of([result], measure)
    elif measure.kind == Kind.HITS:
        low, high = 0.0, 100.0
    else:
        values = result.table.to_numpy()
        low, high = float(values.min()), float(values.max())
    if low - number.half <= number.value <= high + number.half:
        return
    expected = f"a mean of values between {low:g} and {high:g}, as {result.name} has"
    advice = "correct it, or give both in one unit: --scale 100"
    raise UserError("--printed", expected, number, advice)

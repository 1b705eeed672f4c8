"""One result beside a number that a paper prints: is it compatible, below or above?

The printed number stands for all that is rounded to it. Nothing is known of its own
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

import numpy as np
from scipy import special

from benchmark.boards import comparisons as of_boards
from benchmark.boards.boards import RANKED_BY
from benchmark.commands.judged_results import (
    BoardAndRow,
    Measure,
    Question,
    cluster_sizes,
    common_depth,
    effective_clusters,
    fewest_queries,
    is_comparable,
    is_trained,
    margin_for,
    measure_of,
    reach_of,
    sampled,
    too_few,
    value_at,
)
from benchmark.commands.result_files import Kind, Result
from benchmark.core.confidence import LEVEL
from benchmark.core.errors import UserError, suggested
from benchmark.papers.rounded import Rounded
from benchmark.scoring.metrics import METRICS
from benchmark.stats import comparisons, significance
from benchmark.stats.comparisons import Comparison, Sample
from benchmark.stats.significance import SeedPart
from benchmark.stats.verdicts import NOTHING_VARIES

UNKNOWN = (
    "not known of the printed number: which images and how many trainings it is of, so "
    "it has no interval here"
)


class Place(StrEnum):
    """Where a result lies beside a printed number."""

    COMPATIBLE = "compatible"
    BELOW = "below"
    ABOVE = "above"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Placed:
    """A place with the interval that it follows from."""

    conclusion: Place
    interval: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Against:
    """One result beside a printed number."""

    name: str
    metric: str
    printed: Rounded
    level: float  # the mean of its trainings
    interval: tuple[float, float]  # for other images and other trainings
    on_test_set: Placed | None  # for other trainings alone; None: not known
    margin: float
    queries: int
    unit: str  # what is drawn anew: images, queries, clusters
    units: int
    seeds: int
    is_of_these_trainings: bool  # nothing is known of other ones
    obstacle: str = ""  # why nothing can be concluded
    notes: list[str] = field(default_factory=list)

    @property
    def conclusion(self) -> Place:
        if self.obstacle:
            return Place.UNDECIDED
        return placed(self.interval, self.printed, self.margin)

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


def placed(interval: tuple[float, float], printed: Rounded, margin: float) -> Place:
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
) -> Against:
    """A preset of a season, with its interval as the report has it. Raises UserError
    for a metric without an interval."""
    board, row = preset
    metric = question.metric or RANKED_BY[row.task]
    if metric not in METRICS:
        found = suggested(metric, METRICS)
        raise UserError("--metric", "a metric", found, "correct it")
    comparison = of_boards.compare(board, row, None, metric)
    interval = of_boards.interval(board, row, metric)
    interval = interval or of_boards.interval_over_images(board, row, metric)
    if comparison is None or interval is None:
        expected = f"{metric} as a mean over queries"
        raise UserError(row.preset, expected, "none", "choose another --metric")
    queries = board.test_queries(row.task)
    obstacle = ""
    if board.is_small(row.task):
        obstacle = f"nothing can be concluded from {queries} test queries"
    level = of_boards.sample_of(board, row, metric).mean
    check_scale(row.preset, number, level, METRICS[metric].unit == "%")
    return _against(
        comparison,
        number,
        name=row.preset,
        metric=metric,
        level=level,
        interval=interval,
        margin=_margin(question, metric, level, number, len(board.ways) == 1),
        queries=queries,
        unit="images",
        obstacle=obstacle,
    )


def against_of_file(
    result: Result, others: Sequence[Result], number: Rounded, question: Question
) -> Against:
    """A result from anywhere. The seeds of `others` on the same queries tell with its
    own how far trainings lie apart. Raises UserError for a metric that it does not
    have, and for a number of another scale."""
    measure = measure_of(result, result, question.metric)
    cut = common_depth([result])
    sample = sampled(result, measure, cut)
    samples = {result.name: sample}
    for other in others:
        if is_comparable(result, other):
            samples[other.name] = sampled(other, measure, cut)
    trained = [name for name in samples if is_trained(name)]
    spread = comparisons.spread(samples, trained)
    comparison = comparisons.compare([result.name], [sample], spread)
    part = spread.part(result.name, len(sample.values))
    is_percent = bool(measure.metric) and METRICS[measure.metric].unit == "%"
    check_scale(result.name, number, sample.mean, is_percent)
    _check_range(result, number, measure)
    notes = list(result.notes)
    if cut is not None and any(value_at(cut, term) for term in measure.terms):
        notes.append(f"{measure.shown} of ranks below {cut}; others count 0")
    if not measure.metric and question.margin is None:
        unknown = "margin 0, as the scale of the values is not known"
        notes.append(f"{unknown}: --margin gives another")
    few, sizes = too_few(result), cluster_sizes(result)
    if comparison.estimate is None and measure.kind == Kind.VALUES:
        few = few or NOTHING_VARIES
    is_half, level = measure.is_of_one_way, sample.mean
    return _against(
        comparison,
        number,
        name=result.name,
        metric=measure.shown,
        level=level,
        interval=interval_of_level(result, measure, sample, part),
        margin=_margin(question, measure.metric, level, number, is_half),
        queries=fewest_queries(result),
        unit="queries" if len(sizes) == sizes.sum() else "clusters",
        obstacle=few.sentence if few else "",
        notes=notes,
    )


def _against(
    comparison: Comparison,
    number: Rounded,
    *,
    level: float,
    interval: tuple[float, float],
    margin: float,
    notes: Sequence[str] = (),
    **facts: object,
) -> Against:
    """With what a comparison with zero says of trainings."""
    here = None
    if estimate := comparison.on_test_set:
        low, high = estimate.interval
        half = (high - low) / 2
        ends = level - half, level + half
        # few trainings tell a spread badly, but images never make the mean surer
        ends = min(ends, interval, key=lambda e: e[1] - e[0])
        here = Placed(placed(ends, number, margin), ends)
    notes = list(notes)
    if comparison.is_of_these_trainings:
        valid = "the verdict is for these very ones, and for other queries alone"
        notes.append(f"nothing is known of other trainings: {valid}")
    notes.append(UNKNOWN)
    return Against(
        printed=number,
        level=level,
        interval=interval,
        margin=margin,
        on_test_set=here,
        units=comparison.doubt.image_count,
        seeds=len(comparison.firsts),
        is_of_these_trainings=comparison.is_of_these_trainings,
        notes=notes,
        **facts,
    )


def _margin(
    question: Question, metric: str, level: float, number: Rounded, is_half: bool
) -> float:
    return margin_for(question, metric, max(level, number.value), is_half)


def interval_of_level(
    result: Result, measure: Measure, sample: Sample, part: SeedPart | None
) -> tuple[float, float]:
    """For other queries and, where `part` tells of them, for other trainings: of means
    within known bounds Wilson's, of other values Student's. Clusters of unequal size
    tell their variance as well as fewer equal ones do, so t has the degrees of freedom
    of those."""
    variance = float(np.square(sample.mean_noise).sum())
    freedom = max(effective_clusters(result) - 1, 1.0)
    t = float(special.stdtrit(freedom, (1 + LEVEL) / 2))
    level, ends = sample.mean, (-np.inf, np.inf)
    if measure.kind == Kind.VALUES:
        half = t * float(np.sqrt(variance))
        low, high = level - half, level + half
    else:
        ends = 0.0, reach_of((result, result), measure)
        low, high = significance.score_interval(level, variance, ends[1], sample.units)
        wider = t / significance.Z
        low, high = level - wider * (level - low), level + wider * (high - level)
    if part is not None:
        low, high = significance.with_seeds(level, (low, high), part)
    return max(low, ends[0]), min(high, ends[1])


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
        low, high = 0.0, reach_of((result, result), measure)
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

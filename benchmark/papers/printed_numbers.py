"""A number as a paper prints it, to so many decimals; and numbers of a table of recalls
that no ranks of so many queries can give.

What is checked needs no knowledge of the method: the number of queries, and how many
decimals are printed. A printed number may be rounded or cut off, and a mean over several
folds is one of as many times the queries, so that a right number is never called
impossible. One rule is no proof: that later places are found more often than earlier
ones is only improbable.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import floor, sqrt
from typing import Self

WAYS = ("i2t", "t2i", "s2s", "p2r")
CUTS = (1, 5, 10)
DEVIATIONS = 4  # beyond which counts of places are not of chance
WHOLE = 100.0
NUMBER = re.compile(r"(\d{0,6})(?:[.,](\d{1,6}))?(\s*%)?")
SLACK = 1e-6  # of sums of printed numbers


@dataclass(frozen=True)
class Misprint:
    """A sum or mean that the code of a paper prints under another's name."""

    metric: str
    times: int
    printed: str  # the metric whose value it is
    code: str


MISPRINTS = (  # the means over five folds, by place in a list: SCAN's issue 23
    Misprint("rsum", 6, "i2t_mean", "SCAN"),
    Misprint("i2t_mean", 1, "t2i_mean", "SCAN"),
    Misprint("t2i_mean", 1, "rsum", "SCAN"),
    Misprint("rsum", 6, "rsum", "VSE++"),  # mended in its pull request 43
)


# Numbers as they are printed ----------------------------------------------------------


@dataclass(frozen=True)
class Rounded:
    """A number as it is written."""

    value: float
    decimals: int
    is_percent: bool = False  # a sign says so

    @classmethod
    def of(cls, text: str) -> Self | None:
        """None for a text that is no number."""
        match = NUMBER.fullmatch(text)
        if not match or not (match[1] or match[2]):
            return None
        decimals = match[2] or ""
        value = float(f"{match[1]}.{decimals}0")
        return cls(value, len(decimals), is_percent=bool(match[3]))

    def __str__(self) -> str:
        return f"{self.value:.{self.decimals}f}"

    @property
    def half(self) -> float:
        """Of the last digit: what is closer than that is rounded to the number."""
        return 0.5 * 10.0**-self.decimals

    @property
    def in_percent(self) -> Self | None:
        """The same as a percentage, if it may be a fraction; of a single decimal, too
        many numbers would be it."""
        if self.is_percent or self.value >= 1 or self.decimals < 2:
            return None
        return Rounded(100 * self.value, self.decimals - 2)

    def is_that_of(self, number: float) -> bool:
        """Whether a printed number is this one, or is rounded to it."""
        return abs(number - self.value) <= self.half + SLACK


class Rule(StrEnum):
    """What a number contradicts."""

    RANGE = "range"  # a recall lies in [0, 100], a median rank is 1 or more
    COUNT = "count"  # no number of the queries is that share of them
    ORDER = "order"  # R@1 <= R@5 <= R@10
    MEDIAN = "median"  # MedR and the recalls on both sides of a half
    MRR = "mrr"  # MRR between what the recalls allow
    SUM = "sum"  # rsum, or the mean recall, of recalls that are there
    SHAPE = "shape"  # improbable: ranks 6 to 10 more frequent than ranks 2 to 5


@dataclass(frozen=True)
class Finding:
    """A contradiction in a row."""

    rule: Rule
    row: str  # its label, with the place
    numbers: tuple[tuple[str, str], ...]  # metrics with what is printed
    because: str  # a sentence without its full stop

    @property
    def is_impossible(self) -> bool:
        return self.rule != Rule.SHAPE

    @property
    def sentence(self) -> str:
        """For a reader."""
        fault = "impossible" if self.is_impossible else "improbable"
        numbers = ", ".join(f"{metric} {number}" for metric, number in self.numbers)
        return f"{self.row}: {numbers}: {fault}: {self.because}"


@dataclass(frozen=True, kw_only=True)
class Audited:
    """A row: per cent, median ranks and sums by metric, such as i2t_r1, rsum, mean."""

    label: str
    numbers: Mapping[str, Rounded]
    queries: Mapping[str, int]  # of each direction; none: not known
    folds: int = 1  # whose means the numbers are, or may be


def findings(rows: Iterable[Audited]) -> list[Finding]:
    """What is impossible or improbable, row by row."""
    listed = []
    for row in rows:
        for way in WAYS:
            listed += _direction_findings(row, way)
        listed += _sum_findings(row)
    return listed


def _direction_findings(row: Audited, way: str) -> Iterator[Finding]:
    recalls = {}
    numbers = row.numbers
    for cut in CUTS:
        name = f"{way}_r{cut}"
        if name not in numbers:
            continue
        if numbers[name].value > WHOLE:
            yield _finding(Rule.RANGE, row, [name], "no recall is above 100")
            continue
        recalls[cut] = numbers[name]
        yield from _count_findings(row, way, name)
    for smaller, larger in pairwise(recalls):
        if _is_above(recalls[smaller], recalls[larger]):
            names = [f"{way}_r{smaller}", f"{way}_r{larger}"]
            because = f"R@{larger} counts every hit of R@{smaller}"
            yield _finding(Rule.ORDER, row, names, because)
    yield from _median_findings(row, way, recalls)
    if len(recalls) == len(CUTS):
        yield from _reciprocal_findings(row, way, recalls)
        yield from _shape_findings(row, way, recalls)


def _is_above(first: Rounded, second: Rounded) -> bool:
    """Whether a number is above another, whatever was rounded or cut off: at other
    decimals 58.65 and 58.6 may be equal."""
    apart = first.value - second.value
    if first.decimals == second.decimals:
        return apart > 0
    return apart > second.half + max(first.half, second.half) + SLACK


def _count_findings(row: Audited, way: str, name: str) -> Iterator[Finding]:
    """A recall of N queries is a multiple of 100 / N."""
    queries = row.queries.get(way)
    number = row.numbers[name]
    if not queries:
        return
    step = WHOLE / (queries * row.folds)
    below = floor(number.value / step + SLACK) * step
    unit = 10.0**-number.decimals
    if min(number.value - below, below + step - number.value) < unit - SLACK:
        return
    because = f"of {queries:,} queries it is a multiple of {WHOLE / queries:g}"
    if row.folds > 1:
        because = f"of {row.folds} times {queries:,} queries it is one of {step:g}"
    yield _finding(Rule.COUNT, row, [name], because)


def _median_findings(
    row: Audited, way: str, recalls: Mapping[int, Rounded]
) -> Iterator[Finding]:
    name = f"{way}_medr"
    if name not in row.numbers:
        return
    median = row.numbers[name]
    folds = row.folds
    if median.value + median.half < 1:
        yield _finding(Rule.RANGE, row, [name], "the best rank is 1")
        return
    step = 0.5 / folds  # a median of an even number may lie between two ranks
    nearest = round(median.value / step) * step
    if abs(median.value - nearest) >= 10.0**-median.decimals - SLACK:
        yield _finding(Rule.RANGE, row, [name], "a median rank is whole, or a half")
    for cut, recall in recalls.items():
        names = [f"{way}_r{cut}", name]
        unit = 10.0**-recall.decimals
        # one fold at least has its median beyond the cut, the others from 1
        least = (cut + 1 + folds - 1) / folds
        if recall.value + unit < WHOLE / 2 and median.value + median.half < least:
            because = f"less than half of the queries have a rank of {cut} or better"
            yield _finding(Rule.MEDIAN, row, names, because)
        is_most = recall.value - unit > WHOLE / 2
        if folds == 1 and is_most and median.value - median.half > cut:
            because = f"more than half of the queries have a rank of {cut} or better"
            yield _finding(Rule.MEDIAN, row, names, because)


def _reciprocal_findings(
    row: Audited, way: str, recalls: Mapping[int, Rounded]
) -> Iterator[Finding]:
    """The mean of 1 / rank lies between all at the last and all at the first rank that
    the recalls allow."""
    name = f"{way}_mrr"
    if name not in row.numbers:
        return
    first, fifth, tenth = (recalls[cut].value for cut in CUTS)
    to_fifth = fifth - first
    to_tenth = tenth - fifth
    beyond = WHOLE - tenth
    least = first + to_fifth / 5 + to_tenth / 10
    most = first + to_fifth / 2 + to_tenth / 6 + beyond / 11
    number = row.numbers[name]
    fewest = min(recalls[cut].decimals for cut in CUTS)
    unit = 10.0**-number.decimals + 10.0**-fewest
    if least - unit <= number.value <= most + unit:
        return
    names = [f"{way}_r{cut}" for cut in CUTS]
    because = f"the recalls allow {least:.2f} to {most:.2f}"
    yield _finding(Rule.MRR, row, [name, *names], because)


def _shape_findings(
    row: Audited, way: str, recalls: Mapping[int, Rounded]
) -> Iterator[Finding]:
    """A method that finds anything has more queries at rank 1 than at each of ranks 2
    to 5, and more there than at each of ranks 6 to 10."""
    queries = row.queries.get(way)
    if not queries:
        return
    shares = [recalls[cut].value / WHOLE for cut in CUTS]
    first = (shares[0], 1)  # share of the queries, and at how many ranks
    middle = (shares[1] - shares[0], 4)
    last = (shares[2] - shares[1], 5)
    names = [f"{way}_r{cut}" for cut in CUTS]
    fewest = min(number.decimals for number in recalls.values())
    slack = 2 * 10.0**-fewest / WHOLE
    for (share, ranks), (later, more) in pairwise([first, middle, last]):
        gap = later / more - share / ranks
        variance = share / ranks**2 + later / more**2
        error = sqrt(variance / queries)
        if share >= 0 and gap - slack > DEVIATIONS * error > 0:
            ends = "6 to 10 than at each of ranks 2 to 5"
            if ranks == 1:
                ends = "2 to 5 than at rank 1"
            because = f"more queries at each of ranks {ends}"
            yield _finding(Rule.SHAPE, row, names, because)


@dataclass(frozen=True)
class _Sum:
    """What recalls add up to, and how far that is off if they are rounded; if they are
    cut off, it is too small by up to twice as much."""

    value: float
    half: float

    @classmethod
    def of(cls, recalls: Sequence[Rounded], share: int) -> Self:
        value = sum(recall.value for recall in recalls) / share
        return cls(value, sum(recall.half for recall in recalls) / share)

    def is_printed_as(self, number: Rounded, times: int = 1) -> bool:
        apart = number.value - times * self.value
        half = times * self.half
        is_rounded = abs(apart) <= number.half + half + SLACK
        is_cut_off = -2 * number.half - SLACK <= apart <= 2 * half + SLACK
        return is_rounded or is_cut_off


def _sum_findings(row: Audited) -> Iterator[Finding]:
    """A sum or a mean of all recalls of the row, or of those of a direction."""
    sums = _sums(row)
    for name, added in sums.items():
        number = row.numbers.get(name)
        if number is None or added.is_printed_as(number):
            continue
        because = f"the recalls give {added.value:.{number.decimals + 1}f}"
        for misprint in MISPRINTS:
            other = sums.get(misprint.printed)
            if misprint.metric != name or other is None:
                continue
            if other.is_printed_as(number, misprint.times):
                because += f"; {_words_of(misprint)}"
        yield _finding(Rule.SUM, row, [name], because)


def _sums(row: Audited) -> dict[str, _Sum]:
    """By metric, of the directions that have all their recalls."""
    sums, recalls, is_whole = {}, [], True
    for way in WAYS:
        names = [f"{way}_r{cut}" for cut in CUTS]
        of_way = [row.numbers[name] for name in names if name in row.numbers]
        recalls += of_way
        if len(of_way) == len(CUTS):
            sums[f"{way}_mean"] = _Sum.of(of_way, len(CUTS))
        elif of_way:
            is_whole = False
    if is_whole and len(recalls) in (len(CUTS), 2 * len(CUTS)):
        sums |= {"rsum": _Sum.of(recalls, 1), "mean": _Sum.of(recalls, len(recalls))}
    return sums


def _words_of(misprint: Misprint) -> str:
    value = f"the {misprint.printed}"
    if misprint.times > 1:
        value = f"{misprint.times} times {value}"
    return f"it is {value}, which {misprint.code}'s code prints there for five folds"


def _finding(rule: Rule, row: Audited, metrics: list[str], because: str) -> Finding:
    numbers = tuple((metric, str(row.numbers[metric])) for metric in metrics)
    return Finding(rule, row.label, numbers, because)

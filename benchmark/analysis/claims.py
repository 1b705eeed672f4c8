"""Which claims of the papers hold on a dataset.

A claim is about presets, a metric and a margin (papers.printed_tables.Claim). Where the dataset
has folds, what a paper says of 1,000 images of MSCOCO is about them. Each pair of consecutive
presets is compared over their common seeds (analysis.comparisons). The difference d is positive
where the first preset is better; with its 95% interval:

    kind         a pair holds if                           and does not hold if
    ordered      the interval lies above zero *            the interval lies below zero *
    alike        it lies within minus and plus the margin  it lies wholly outside *
    not_better   it does not reach above the margin        it lies above the margin *

A star marks a verdict that asserts a difference: p must be at most 0.05 after Holm's adjustment,
too. Every verdict needs three common seeds. What neither holds nor does not hold is undecided, and
leans to what d alone would decide. Statements on S are undecided where its bins are too coarse.
With fewer than 100 test queries in a direction all are undecided, and lean to nothing.

p is that of the permutation test, for metrics that are means over queries; for others the interval
decides alone. Holm's adjustment is over all comparisons of the board's claims that have a p and
three common seeds, each counted once. An ordered claim holds if all its pairs do, and does not if
one does not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from benchmark.analysis import significance
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.comparability import metric_at
from benchmark.analysis.comparisons import Comparison, compare_all, is_coarse, values
from benchmark.papers.printed_tables import Claim, Paper, effects, papers
from benchmark.protocol import METRICS

SEEDS = 3  # that a verdict needs
Pair = tuple[str, str, str]  # first preset, second preset, metric


class Conclusion(StrEnum):
    """What is concluded on a claim, or on one pair of its presets."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


class Cause(StrEnum):
    """What decided a conclusion, or stands in its way."""

    INTERVAL = "interval"  # where the interval lies
    FEW_SEEDS = "few seeds"
    CHANCE = "chance"  # p is too large for what the interval says
    COARSE_BINS = "coarse bins"  # of S
    FEW_QUERIES = "few test queries"  # boards.MIN_TEST_QUERIES
    UNPLAYABLE = "unplayable"  # no preset plays what the claim is about
    NOT_PLAYED = "not played"  # a preset is not of the season
    NO_RESULT = "no result"  # a preset failed, or cannot be played on this data
    NOT_MEASURED = "not measured"  # a preset's records lack the metric
    NO_COMMON_SEED = "no common seed"


class Ground(NamedTuple):
    """Why a conclusion was reached."""

    cause: Cause
    reason: str  # a short sentence without its full stop, for readers; plain text


@dataclass(frozen=True, kw_only=True)
class Tested:
    """One pair of consecutive presets of a claim."""

    comparison: Comparison
    adjusted_p: float | None  # None: there is no p
    printed: float | None  # the paper's difference; positive: the first is better
    conclusion: Conclusion
    cause: Cause
    reason: str  # as Ground has it


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a board says about a claim."""

    paper: str  # name of its file
    claim: Claim  # with the metric that it was tested with here
    margin: float  # points of that metric
    conclusion: Conclusion
    cause: Cause
    reason: str  # as Ground has it
    leans: Conclusion | None  # what an undecided one leans to; None: to nothing
    printed: list[float | None]  # the paper's value of each preset of the claim
    tested: list[Tested]  # consecutive presets; empty where it was not run


def verdicts(board: Board) -> list[Verdict]:
    """One verdict for every claim of every paper, in their order; then of the season's own."""
    questions = [
        _question(board, name, paper, claim)
        for name, paper in (papers() | board.own_claims).items()
        for claim in paper.claims
    ]
    standings = {standing.preset: standing for standing in board.standings}
    pairs = {pair for question in questions for pair in _pairs(question.claim)}
    compared = _compared(board, standings, sorted(pairs))
    adjusted = _adjusted(compared)
    drawn = [_verdict(question, standings, compared, adjusted) for question in questions]
    return [_if_decidable(board, verdict) if verdict.tested else verdict for verdict in drawn]


def counts(verdicts: Iterable[Verdict]) -> dict[Conclusion, int]:
    """How many verdicts reach each conclusion; all four are keys."""
    conclusions = [verdict.conclusion for verdict in verdicts]
    return {conclusion: conclusions.count(conclusion) for conclusion in Conclusion}


@dataclass(frozen=True, kw_only=True)
class _Question:
    """A claim as it is put to a board."""

    paper: str
    claim: Claim
    margin: float
    printed: list[float | None]


def _question(board: Board, name: str, paper: Paper, claim: Claim) -> _Question:
    """The claim, with the metric of the folds where it is about them.

    rsum of one direction has half the range of both directions' rsum: its margin is halved, and it
    is not compared with a printed one.
    """
    is_half = claim.metric == "rsum" and len(board.ways) == 1
    metric = metric_at(board, claim.place, claim.metric)
    return _Question(
        paper=name,
        claim=claim.model_copy(update={"metric": metric}),
        margin=claim.margin / 2 if is_half else claim.margin,
        printed=[None] * len(claim.presets) if is_half else _printed(paper, claim),
    )


def _pairs(claim: Claim) -> list[Pair]:
    return [(first, second, claim.metric) for first, second in pairwise(claim.presets)]


def _compared(
    board: Board, standings: dict[str, Standing], pairs: list[Pair]
) -> dict[Pair, Comparison]:
    """Every pair that can be compared: both are played, with a common seed."""
    played = [pair for pair in pairs if pair[0] in standings and pair[1] in standings]
    comparisons = compare_all(
        board, [(standings[first], standings[second], metric) for first, second, metric in played]
    )
    return {
        pair: comparison for pair, comparison in zip(played, comparisons, strict=True) if comparison
    }


def _adjusted(compared: dict[Pair, Comparison]) -> dict[Pair, float]:
    """Holm's p of the pairs with a p and enough seeds for a verdict."""
    p_of = {
        pair: comparison.p
        for pair, comparison in compared.items()
        if comparison.p is not None and comparison.seeds >= SEEDS
    }
    adjusted = significance.holm(np.array(list(p_of.values())))
    return dict(zip(p_of, adjusted.tolist(), strict=True))


def _verdict(
    question: _Question,
    standings: dict[str, Standing],
    compared: dict[Pair, Comparison],
    adjusted: dict[Pair, float],
) -> Verdict:
    lack = _lack(question.claim, standings, compared)
    tested = [] if lack else _tested(question, compared, adjusted)
    conclusion, ground = (Conclusion.NOT_RUN, lack) if lack else _concluded(tested)
    return Verdict(
        paper=question.paper,
        claim=question.claim,
        margin=question.margin,
        conclusion=conclusion,
        cause=ground.cause,
        reason=ground.reason,
        leans=_leaning(question, tested) if conclusion == Conclusion.UNDECIDED else None,
        printed=question.printed,
        tested=tested,
    )


def _if_decidable(board: Board, verdict: Verdict) -> Verdict:
    """The verdict; undecided where the test set or the bins of S let nothing be concluded."""
    ground = _few_queries(board, verdict.claim) or _coarse_bins(board, verdict.claim)
    if ground is None:
        return verdict
    undecided = {"conclusion": Conclusion.UNDECIDED, **ground._asdict()}
    tested = [replace(pair, **undecided) for pair in verdict.tested]
    return replace(verdict, **undecided, leans=None, tested=tested)


def _few_queries(board: Board, claim: Claim) -> Ground | None:
    task = board.standing(claim.presets[0]).task
    if not board.is_small(task):
        return None
    queries = board.test_queries(task)
    return Ground(Cause.FEW_QUERIES, f"nothing can be concluded from {queries} test queries")


def _coarse_bins(board: Board, claim: Claim) -> Ground | None:
    """None where the bins are fine, or the claim is not about S."""
    is_on_s = claim.metric == "overlap_s"
    coarse = [name for name in claim.presets if is_on_s and is_coarse(board.standing(name))]
    if not coarse:
        return None
    return Ground(Cause.COARSE_BINS, f"the bins of S are too coarse for {' and '.join(coarse)}")


def _printed(paper: Paper, claim: Claim) -> list[float | None]:
    """The paper's value of each preset. An unplayed claim may have values, but has no presets."""
    printed = effects(paper, claim) if claim.presets else None
    return [*printed] if printed else [None] * len(claim.presets)


def _lack(
    claim: Claim, standings: dict[str, Standing], compared: dict[Pair, Comparison]
) -> Ground | None:
    """Why a claim was not run; None where it was."""
    if claim.unplayed:
        return Ground(Cause.UNPLAYABLE, claim.unplayed.removesuffix("."))
    for preset in claim.presets:
        lack = _lack_of(preset, standings.get(preset), claim.metric)
        if lack:
            return lack
    for first, second, metric in _pairs(claim):
        if (first, second, metric) not in compared:
            return Ground(
                Cause.NO_COMMON_SEED,
                f"no seed has {METRICS[metric].heading} to compare for both {first} and {second}",
            )
    return None


def _lack_of(preset: str, standing: Standing | None, metric: str) -> Ground | None:
    """Why a preset cannot be compared; None where it can."""
    if standing is None:
        return Ground(Cause.NOT_PLAYED, f"{preset} was not played")
    if not standing.played:
        lost = standing.outcomes[0].record
        return Ground(Cause.NO_RESULT, f"{preset}: {lost.status.replace('_', ' ')}: {lost.reason}")
    if not values(standing, metric):
        return Ground(Cause.NOT_MEASURED, f"{METRICS[metric].heading} of {preset} was not measured")
    return None


def _tested(
    question: _Question, compared: dict[Pair, Comparison], adjusted: dict[Pair, float]
) -> list[Tested]:
    tested = []
    for pair, numbers in zip(_pairs(question.claim), pairwise(question.printed), strict=True):
        conclusion, ground = _pair_concluded(question, compared[pair], adjusted.get(pair))
        tested.append(
            Tested(
                comparison=compared[pair],
                adjusted_p=adjusted.get(pair),
                printed=_printed_difference(question.claim.metric, *numbers),
                conclusion=conclusion,
                cause=ground.cause,
                reason=ground.reason,
            )
        )
    return tested


def _printed_difference(metric: str, first: float | None, second: float | None) -> float | None:
    if first is None or second is None:
        return None
    return second - first if METRICS[metric].less_is_better else first - second


def _pair_concluded(
    question: _Question, comparison: Comparison, adjusted_p: float | None
) -> tuple[Conclusion, Ground]:
    """What one pair says, and why."""
    seeds = comparison.seeds
    if seeds < SEEDS:
        reason = f"{seeds} {'seed' if seeds == 1 else 'seeds'}, {SEEDS} are needed"
        return Conclusion.UNDECIDED, Ground(Cause.FEW_SEEDS, reason)
    conclusion, reason = RULES[question.claim.kind](*comparison.interval, question.margin)
    may_be_chance = adjusted_p is not None and adjusted_p > significance.ALPHA
    if (question.claim.kind, conclusion) in ASSERTING and may_be_chance:
        reason = f"p is {adjusted_p:.3g} after Holm's adjustment"
        return Conclusion.UNDECIDED, Ground(Cause.CHANCE, reason)
    return conclusion, Ground(Cause.INTERVAL, reason)


def _ordered(low: float, high: float, margin: float) -> tuple[Conclusion, str]:
    if low > 0:
        return Conclusion.HOLDS, "the interval lies above zero"
    if high < 0:
        return Conclusion.FAILS, "the interval lies below zero"
    return Conclusion.UNDECIDED, "the interval covers zero"


def _alike(low: float, high: float, margin: float) -> tuple[Conclusion, str]:
    if -margin <= low and high <= margin:
        return Conclusion.HOLDS, f"the interval lies within {margin:g} of zero"
    if low > margin or high < -margin:
        return Conclusion.FAILS, f"the interval lies farther than {margin:g} from zero"
    return Conclusion.UNDECIDED, f"the interval reaches within {margin:g} of zero and beyond"


def _not_better(low: float, high: float, margin: float) -> tuple[Conclusion, str]:
    if high <= margin:
        return Conclusion.HOLDS, f"the interval does not reach above the margin of {margin:g}"
    if low > margin:
        return Conclusion.FAILS, f"the interval lies above the margin of {margin:g}"
    return Conclusion.UNDECIDED, f"the interval covers the margin of {margin:g}"


RULES = {"ordered": _ordered, "alike": _alike, "not_better": _not_better}
ASSERTING = {  # a difference, which chance must not explain
    ("ordered", Conclusion.HOLDS),
    ("ordered", Conclusion.FAILS),
    ("alike", Conclusion.FAILS),
    ("not_better", Conclusion.FAILS),
}


def _concluded(tested: list[Tested]) -> tuple[Conclusion, Ground]:
    """The conclusion of all pairs, and the ground of the pair that decides it."""
    conclusion = _worst([pair.conclusion for pair in tested])
    decisive = next(pair for pair in tested if pair.conclusion == conclusion)
    if len(tested) == 1:
        return conclusion, Ground(decisive.cause, decisive.reason)
    names = f"{decisive.comparison.first} over {decisive.comparison.second}"
    subject = "each pair" if conclusion == Conclusion.HOLDS else names
    return conclusion, Ground(decisive.cause, f"{subject}: {decisive.reason}")


def _worst(conclusions: list[Conclusion]) -> Conclusion:
    order = (Conclusion.FAILS, Conclusion.UNDECIDED, Conclusion.HOLDS)
    return next(conclusion for conclusion in order if conclusion in conclusions)


def _leaning(question: _Question, tested: list[Tested]) -> Conclusion | None:
    """What the differences say, taken as if they were certain; None where one is on the margin."""
    rule = RULES[question.claim.kind]
    points = [pair.comparison.difference for pair in tested]
    conclusion = _worst([rule(point, point, question.margin)[0] for point in points])
    return None if conclusion == Conclusion.UNDECIDED else conclusion

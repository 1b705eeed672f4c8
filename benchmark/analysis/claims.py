"""Which claims of the papers hold on a dataset.

A claim is about presets, a metric and a margin (benchmark.papers.printed_tables.Claim); where the dataset has
folds, what a paper says of 1,000 images of MSCOCO is about them. Each pair of consecutive presets
is compared over their common seeds (benchmark.analysis.comparisons). Of the difference d, positive
where the first preset is better, with its 95% interval:

    kind         a pair holds if                           and does not hold if
    ordered      the interval lies above zero *            the interval lies below zero *
    alike        it lies within minus and plus the margin  it lies wholly outside *
    not_better   it does not reach above the margin        it lies above the margin *

Where a star asserts a difference, p must be at most 0.05 after Holm's adjustment, too. Either needs
three common seeds; what is neither is undecided, and leans as d alone would have it. So is what is
said of S where its bins are too coarse.
p is of the permutation test, for metrics that are means over queries; for others the interval
decides alone. Holm's adjustment is over all comparisons of the board's claims that have a p and
three common seeds, each counted once. An ordered claim holds if all its pairs do, and does not if
one does not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from benchmark.analysis import significance
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.comparability import metric_at
from benchmark.analysis.comparisons import Comparison, compare_all, is_coarse, values
from benchmark.papers.printed_tables import Claim, Paper, effects, papers
from benchmark.protocol import METRICS

SEEDS = 3  # that a verdict needs
HOLDS, FAILS, UNDECIDED, NOT_RUN = VERDICTS = "holds", "does not hold", "undecided", "not run"
Side = Literal["holds", "does not hold", "undecided"]
Pair = tuple[str, str, str]  # first preset, second preset, metric


@dataclass(frozen=True, kw_only=True)
class Tested:
    """A pair of a claim."""

    comparison: Comparison
    adjusted_p: float | None  # None: there is no p
    printed: float | None  # the paper's difference; positive: the first is better
    side: Side
    reason: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a board says about a claim."""

    paper: str  # name of its file
    claim: Claim  # with the metric that it was tested with here
    margin: float  # points of that metric
    verdict: Literal["holds", "does not hold", "undecided", "not run"]
    reason: str  # a short sentence without its full stop; plain text
    leans: str  # of an undecided one: holds, does not hold; else empty
    printed: list[float | None]  # the paper's value of each preset of the claim
    tested: list[Tested]  # consecutive presets; empty where it was not run


def verdicts(board: Board) -> list[Verdict]:
    """One for every claim of every paper, in their order."""
    asked = [
        _asked(board, name, paper, c) for name, paper in papers().items() for c in paper.claims
    ]
    standings = {standing.preset: standing for standing in board.standings}
    pairs = {pair for one in asked for pair in _pairs(one.claim)}
    compared = _compared(board, standings, sorted(pairs))
    adjusted = _adjusted(compared)
    found = [_verdict(one, standings, compared, adjusted) for one in asked]
    return [_of_fine_bins(one, standings) if one.tested else one for one in found]


def counts(found: Iterable[Verdict]) -> dict[str, int]:
    """How many there are of each verdict, all four named."""
    given = [one.verdict for one in found]
    return {verdict: given.count(verdict) for verdict in VERDICTS}


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A claim as a board is asked about it."""

    paper: str
    claim: Claim
    margin: float
    printed: list[float | None]


def _asked(board: Board, name: str, paper: Paper, claim: Claim) -> _Asked:
    """With the metric of the folds where the claim is about them. rsum of one direction is half as
    wide as that of both, and not to be set beside a printed one."""
    is_half = claim.metric == "rsum" and len(board.ways) == 1
    metric = metric_at(board, claim.place, claim.metric)
    return _Asked(
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
    """Every pair that can be compared: both played, with a common seed."""
    able = [pair for pair in pairs if pair[0] in standings and pair[1] in standings]
    found = compare_all(board, [(standings[a], standings[b], metric) for a, b, metric in able])
    return {pair: one for pair, one in zip(able, found, strict=True) if one}


def _adjusted(compared: dict[Pair, Comparison]) -> dict[Pair, float]:
    """Holm's p of those that have a p and seeds enough for a verdict."""
    p_of = {
        pair: found.p
        for pair, found in compared.items()
        if found.p is not None and found.seeds >= SEEDS
    }
    adjusted = significance.holm(np.array(list(p_of.values())))
    return dict(zip(p_of, adjusted.tolist(), strict=True))


def _verdict(
    asked: _Asked,
    standings: dict[str, Standing],
    compared: dict[Pair, Comparison],
    adjusted: dict[Pair, float],
) -> Verdict:
    lack = _lack(asked.claim, standings, compared)
    tested = [] if lack else _tested(asked, compared, adjusted)
    verdict, reason = (NOT_RUN, lack) if lack else _concluded(tested)
    return Verdict(
        paper=asked.paper,
        claim=asked.claim,
        margin=asked.margin,
        verdict=verdict,
        reason=reason,
        leans=_leaning(asked, tested) if verdict == UNDECIDED else "",
        printed=asked.printed,
        tested=tested,
    )


def _of_fine_bins(verdict: Verdict, standings: dict[str, Standing]) -> Verdict:
    """The verdict; undecided where it is about S of presets with bins that are too coarse."""
    if verdict.claim.metric != "overlap_s":
        return verdict
    coarse = [preset for preset in verdict.claim.presets if is_coarse(standings[preset])]
    if not coarse:
        return verdict
    reason = f"the bins of S are too coarse for {' and '.join(coarse)}"
    tested = [replace(one, side=UNDECIDED, reason=reason) for one in verdict.tested]
    return replace(verdict, verdict=UNDECIDED, reason=reason, leans="", tested=tested)


def _printed(paper: Paper, claim: Claim) -> list[float | None]:
    """The paper's value of each preset. An unplayed claim may have values, but has no presets."""
    found = effects(paper, claim) if claim.presets else None
    return [*found] if found else [None] * len(claim.presets)


def _lack(claim: Claim, standings: dict[str, Standing], compared: dict[Pair, Comparison]) -> str:
    """Why a claim was not run; empty where it was."""
    if claim.unplayed:
        return claim.unplayed.removesuffix(".")
    for preset in claim.presets:
        lack = _lack_of(preset, standings.get(preset), claim.metric)
        if lack:
            return lack
    for first, second, metric in _pairs(claim):
        if (first, second, metric) not in compared:
            return f"no seed has {METRICS[metric].heading} to compare for both {first} and {second}"
    return ""


def _lack_of(preset: str, standing: Standing | None, metric: str) -> str:
    if standing is None:
        return f"{preset} was not played"
    if not standing.played:
        lost = standing.outcomes[0].record
        return f"{preset}: {lost.status.replace('_', ' ')}: {lost.reason}"
    if not values(standing, metric):
        return f"{METRICS[metric].heading} of {preset} was not measured"
    return ""


def _tested(
    asked: _Asked, compared: dict[Pair, Comparison], adjusted: dict[Pair, float]
) -> list[Tested]:
    found = []
    for pair, numbers in zip(_pairs(asked.claim), pairwise(asked.printed), strict=True):
        side, reason = _judged(asked, compared[pair], adjusted.get(pair))
        found.append(
            Tested(
                comparison=compared[pair],
                adjusted_p=adjusted.get(pair),
                printed=_printed_difference(asked.claim.metric, *numbers),
                side=side,
                reason=reason,
            )
        )
    return found


def _printed_difference(metric: str, first: float | None, second: float | None) -> float | None:
    if first is None or second is None:
        return None
    return second - first if METRICS[metric].less_is_better else first - second


def _judged(asked: _Asked, found: Comparison, adjusted_p: float | None) -> tuple[Side, str]:
    """Where one pair stands, and why."""
    if found.seeds < SEEDS:
        return UNDECIDED, f"{found.seeds} {_seeds(found.seeds)}, {SEEDS} are needed"
    side, reason = RULES[asked.claim.kind](*found.interval, asked.margin)
    may_be_chance = adjusted_p is not None and adjusted_p > significance.ALPHA
    if (asked.claim.kind, side) in ASSERTING and may_be_chance:
        return UNDECIDED, f"p is {adjusted_p:.3g} after Holm's adjustment"
    return side, reason


def _seeds(count: int) -> str:
    return "seed" if count == 1 else "seeds"


def _ordered(low: float, high: float, margin: float) -> tuple[Side, str]:
    if low > 0:
        return HOLDS, "the interval lies above zero"
    if high < 0:
        return FAILS, "the interval lies below zero"
    return UNDECIDED, "the interval covers zero"


def _alike(low: float, high: float, margin: float) -> tuple[Side, str]:
    if -margin <= low and high <= margin:
        return HOLDS, f"the interval lies within {margin:g} of zero"
    if low > margin or high < -margin:
        return FAILS, f"the interval lies farther than {margin:g} from zero"
    return UNDECIDED, f"the interval reaches within {margin:g} of zero and beyond"


def _not_better(low: float, high: float, margin: float) -> tuple[Side, str]:
    if high <= margin:
        return HOLDS, f"the interval does not reach above the margin of {margin:g}"
    if low > margin:
        return FAILS, f"the interval lies above the margin of {margin:g}"
    return UNDECIDED, f"the interval covers the margin of {margin:g}"


ASSERTING = {("ordered", HOLDS), ("ordered", FAILS), ("alike", FAILS), ("not_better", FAILS)}
RULES = {"ordered": _ordered, "alike": _alike, "not_better": _not_better}


def _concluded(tested: list[Tested]) -> tuple[str, str]:
    """The verdict of all pairs, and the reason of the one that decides it."""
    verdict = _worst([one.side for one in tested])
    decisive = next(one for one in tested if one.side == verdict)
    if len(tested) == 1:
        return verdict, decisive.reason
    pair = f"{decisive.comparison.first} over {decisive.comparison.second}"
    return verdict, f"{'each pair' if verdict == HOLDS else pair}: {decisive.reason}"


def _worst(sides: list[Side]) -> Side:
    return next(side for side in (FAILS, UNDECIDED, HOLDS) if side in sides)


def _leaning(asked: _Asked, tested: list[Tested]) -> str:
    """What the differences say, taken as if they were certain; empty where one is on the margin."""
    rule = RULES[asked.claim.kind]
    points = [one.comparison.difference for one in tested]
    side = _worst([rule(point, point, asked.margin)[0] for point in points])
    return "" if side == UNDECIDED else side

"""What an interval says about a claim, and what would decide an undecided one.

stats.claim_kinds has the conclusions. Each states a range of differences that contains
the whole interval, so two conclusions on one difference cannot contradict each other.

All parts of a claim, one for each pair of rows, have to hold, so the p of the claim is
the largest of theirs. If a part is reversed, it denies the claim, and p is the smallest
of the reversed parts times the number of parts. Holm's adjustment is over the claims
that are judged together, once for other images and other trainings, and once for other
trainings on this test set; a claim that is made twice counts once. Each part is
adjusted as if it were the only part of its claim.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, isinf, log, sqrt
from operator import attrgetter
from typing import NamedTuple

from scipy import special

from benchmark.stats.claim_kinds import FAILED, ClaimKind, Conclusion, Line, Side
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import (
    ALPHA,
    MOST_FREEDOM,
    Doubt,
    Estimate,
    holm_products,
    on_other_images,
)

POWER = 0.8  # of finding a difference as large as the measured one
# largest numbers of further trainings of a preset, and of folds, that are considered
MOST_SEEDS = 20
MOST_FOLDS = 20
QUANTILES = [(step + 0.5) / 100 for step in range(100)]  # of an estimated variance


class Flag(NamedTuple):
    """Something that a reader must know of a row or of a verdict."""

    letter: str  # says of which kind it is
    sentence: str  # plain text without its full stop
    favours: Side | None = None  # of a bias: which side; what goes against it stands
    remedy: str = ""  # what helps where it stands in the way of a verdict
    is_out_of_reach: bool = False  # whether no test here can have that


NOTHING_VARIES = Flag(
    "O",
    "nothing varies, so nothing tells the error",
    remedy="further seeds",
)
# of the pairs of a claim, all of which have to hold
WORST_FIRST = (*FAILED, Conclusion.UNDECIDED, Conclusion.HOLDS)


class Size(StrEnum):
    """How the interval lies to a printed difference."""

    AS_PRINTED = "as printed"  # within the interval
    SMALLER = "smaller than printed"
    LARGER = "larger than printed"
    OPPOSITE = "opposite to printed"


class Limit(NamedTuple):
    """What would decide an undecided comparison, if the difference stays what it is."""

    # further trainings of each side on this test set; None: no number of them
    seeds: int | None
    # further folds: as many other test images, and a training of each side for them;
    # None: no number of them
    folds: int | None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a claim says about one comparison."""

    kind: ClaimKind
    margin: float

    @property
    def bound(self) -> float:
        """Beyond it lies what the claim asserts, or what denies it."""
        return 0.0 if self.kind.from_zero else self.margin

    def p(self, estimate: Estimate) -> float:
        """Of what the claim asserts or, of one that denies a difference, of what denies
        it."""
        if self.kind.is_one_sided:
            return estimate.p_above(self.margin)
        return estimate.p(beyond=self.bound)

    def is_within(self, interval: tuple[float, float]) -> bool:
        """Whether no difference in the interval is beyond the margin."""
        return self.kind.table[0].contains(interval, self.margin)

    def conclusion(
        self, estimate: Estimate, adjusted_p: float
    ) -> tuple[Conclusion, str]:
        """With the reason: a short sentence without its full stop."""
        for line in self.kind.table:
            if line.needs_p:
                is_on_its_side = isinf(line.high) == (estimate.value > 0)
                applies = is_on_its_side and adjusted_p <= ALPHA
            else:
                applies = line.contains(estimate.interval, self.margin)
            if applies:
                return line.conclusion, f"the interval {self._lies(line)}"
        if self.p(estimate) <= ALPHA:
            reason = f"p is {adjusted_p:.2g} after Holm's adjustment"
            return Conclusion.UNDECIDED, reason
        margin = f"{self.margin:.3g}"
        if self.kind.is_one_sided:
            covered = f"covers the margin of {margin}"
        elif not self.kind.from_zero:
            covered = f"reaches within {margin} of zero and beyond"
        else:
            beyond = f" and reaches beyond {margin}" if self.margin else ""
            covered = f"covers zero{beyond}"
        return Conclusion.UNDECIDED, f"the interval {covered}"

    def _lies(self, line: Line) -> str:
        """What an interval does that is in the range of a line."""
        margin = f"{self.margin:.3g}"
        words = {
            (-1, 1): f"lies within {margin} of zero",
            (-inf, 1): f"does not reach above the margin of {margin}",
            (0, inf): "lies above zero",
            (-inf, 0): "lies below zero",
            (1, inf): f"lies above {margin}",
            (-inf, -1): f"lies below -{margin}",
        }
        return words[line.low, line.high]

    def holding(self, reach: float, half_width: float) -> tuple[float, float]:
        """The measured differences with which the claim holds: `reach` is how far from
        the bound one is told from it, `half_width` that of the interval."""
        room = self.margin - half_width
        if not self.kind.denies:
            return max(self.bound + reach, room), inf
        return (-inf if self.kind.is_one_sided else -room), room

    def limit(self, difference: float, doubt: Doubt, adjustment: float = 1.0) -> Limit:
        """What would decide the claim with a power of POWER; Holm multiplied its p with
        `adjustment`."""
        size = difference if self.kind.is_one_sided else abs(difference)
        # A claim that asserts any difference is denied by an interval below the margin.
        denied = difference if self.kind.from_zero else size
        # distances from the bounds that would decide, each with its level
        rooms = [(size - self.bound, ALPHA / adjustment), (self.margin - denied, ALPHA)]
        of_seeds = range(1, MOST_SEEDS + 1) if doubt.seeds else ()
        of_folds = range(1, MOST_FOLDS + 1) if doubt.images else ()
        seeds = (more for more in of_seeds if _is_found(doubt, rooms, seeds=more))
        folds = (more for more in of_folds if _is_found(doubt, rooms, folds=more))
        return Limit(next(seeds, None), next(folds, None))


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """On one part of a claim: what is put to `judge`, and what that concludes."""

    comparison: Comparison
    rule: Rule
    part: int = 0  # which part of its claim it is on, from 0
    printed: float | None = None  # a paper's difference; positive: the first is better
    blocked: Flag | None = None  # why nothing can be concluded, whatever the numbers
    # what a point is worth, here and in the paper; None: sizes cannot be compared
    slopes: tuple[float, float] | None = (1.0, 1.0)
    # for other images and other trainings
    conclusion: Conclusion = Conclusion.UNDECIDED
    # for other trainings on this test set
    on_test_set: Conclusion = Conclusion.UNDECIDED
    reason: str = ""  # a short sentence without its full stop
    p: float | None = None  # of the difference that the claim asserts, or denies
    adjusted_p: float | None = None  # by Holm
    size: Size | None = None
    # what would decide it; None: it is decided, or that is not known
    limit: Limit | None = None
    # what favours a side, or may: what goes against all of them stands
    biases: tuple[Flag, ...] = ()

    @property
    def difference(self) -> float:
        return self.comparison.difference

    @property
    def interval(self) -> tuple[float, float] | None:
        """At LEVEL, for other images and other trainings."""
        return self.comparison.interval

    @property
    def margin(self) -> float:
        return self.rule.margin

    @property
    def favoured(self) -> Side | None:
        """By all biases."""
        return Side.of_all(bias.favours for bias in self.biases)

    @property
    def remedy(self) -> str:
        """What helps against what blocks it, or against a bias; "" without one."""
        if self.blocked:
            return self.blocked.remedy
        return self.biases[0].remedy if self.biases else ""

    @property
    def is_out_of_reach(self) -> bool:
        """Whether no test here can decide it."""
        return self.blocked is not None and self.blocked.is_out_of_reach


def judge(claims: Sequence[Sequence[Verdict]]) -> list[list[Verdict]]:
    """What the parts of each claim conclude, with the adjustment over all claims."""
    in_general = _adjusted(claims, "estimate")
    on_test_set = _adjusted(claims, "on_test_set")
    judged = []
    for of_claim in zip(claims, in_general, on_test_set, strict=True):
        judged.append(list(map(_concluded, *of_claim)))
    return judged


class Adjusted(NamedTuple):
    """p of a verdict in the family of its claims."""

    p: float
    by_holm: float
    factor: float  # what Holm multiplied p with, unbounded


def _concluded(
    verdict: Verdict, general: Adjusted | None, fixed: Adjusted | None
) -> Verdict:
    """The conclusions: `general` has the p for other images and other trainings,
    `fixed` that for other trainings on this test set."""
    comparison, rule = verdict.comparison, verdict.rule
    conclusion, blocked, limit = Conclusion.UNDECIDED, None, None
    if general is None:
        blocked = verdict.blocked or NOTHING_VARIES
    else:
        estimate = comparison.estimate
        measured, reason = rule.conclusion(estimate, general.by_holm)
        conclusion = rule.kind.despite(measured, verdict.favoured)
        if conclusion == Conclusion.UNDECIDED and verdict.biases:
            blocked = verdict.biases[0]
        elif conclusion == Conclusion.UNDECIDED and isinstance(estimate, Estimate):
            limit = rule.limit(comparison.difference, comparison.doubt, general.factor)
    # What holds for other images also holds on this test set. The interval for the test
    # set is never wider, but with few degrees of freedom its p after Holm's adjustment
    # can be larger.
    on_test_set = Conclusion.UNDECIDED
    if fixed:
        measured, _ = rule.conclusion(comparison.on_test_set, fixed.by_holm)
        on_test_set = rule.kind.despite(measured, verdict.favoured)
    if on_test_set == Conclusion.UNDECIDED:
        on_test_set = conclusion
    sizes = comparison.interval, verdict.printed, verdict.slopes
    return replace(
        verdict,
        conclusion=conclusion,
        on_test_set=on_test_set,
        blocked=blocked,
        reason=blocked.sentence if blocked else reason,
        p=general and general.p,
        adjusted_p=general and general.by_holm,
        size=size_of(*sizes) if general else None,
        limit=limit,
    )


class Evidence(NamedTuple):
    """What an estimate says on a part of a claim."""

    rule: Rule
    estimate: Estimate

    @property
    def p(self) -> float:
        return self.rule.p(self.estimate)

    @property
    def goes_against(self) -> bool:
        """Whether p is that of what denies the claim."""
        return self.rule.kind.denies or self.estimate.value < 0


def _adjusted(
    claims: Sequence[Sequence[Verdict]], scope: str
) -> list[list[Adjusted | None]]:
    """By an estimate of the comparisons, over the claims that have a part which can be
    judged; None of parts that cannot."""
    known = []
    for claim in claims:
        parts = []
        for verdict in claim:
            estimate = getattr(verdict.comparison, scope)
            is_known = estimate and not verdict.blocked
            parts.append(Evidence(verdict.rule, estimate) if is_known else None)
        known.append(parts)
    keys = [tuple(filter(None, parts)) for parts in known]
    p_of = {claim: claim_p(claim) for claim in keys if claim}
    adjusted = []
    for parts, claim in zip(known, keys, strict=True):
        adjusted.append([part and _by_holm(part, claim, p_of) for part in parts])
    return adjusted


def _by_holm(part: Evidence, claim: tuple[Evidence, ...], p_of: Mapping) -> Adjusted:
    """p of a part, adjusted among all claims, whose p is `p_of`, in place of its
    claim's. A smaller p has more claims behind it, and so a larger factor."""
    p = part.p
    p_in_family = p_of | {claim: p * len(claim) if part.goes_against else p}
    products = holm_products(list(p_in_family.values()))
    product = float(products[list(p_in_family).index(claim)])
    return Adjusted(p, min(1.0, product), product / p if p else len(p_of))


def claim_p(parts: Sequence[Evidence]) -> float:
    """That all parts hold or, if one goes against the claim, that it denies it."""
    behind = [part.p for part in parts if part.goes_against]
    if len(parts) == 1 or not behind:
        return max(part.p for part in parts)
    return min(1.0, len(parts) * min(behind))


def decisive(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict that decides its claim, of those with the worst conclusion: the one
    with the largest p if all hold, with the smallest difference if they show none, and
    else with the smallest p. Of undecided ones, the one with a difference below zero
    that could be decided soonest, else a blocked one, else the first."""
    worst = min((each.conclusion for each in verdicts), key=WORST_FIRST.index)
    verdicts = [verdict for verdict in verdicts if verdict.conclusion == worst]
    if worst == Conclusion.UNDECIDED:
        behind = [each for each in verdicts if each.limit and each.difference < 0]
        blocked = [verdict for verdict in verdicts if verdict.blocked]
        return min(behind, key=_needed, default=(blocked or verdicts)[0])
    if worst in (Conclusion.NO_DIFFERENCE, Conclusion.NOT_BETTER):
        return min(verdicts, key=attrgetter("difference"))
    if worst == Conclusion.HOLDS:
        return max(verdicts, key=attrgetter("p"))
    return min(verdicts, key=attrgetter("p"))


def _needed(verdict: Verdict) -> tuple[float, float]:
    """Seeds and folds that would decide it."""
    return verdict.limit.seeds or inf, verdict.limit.folds or inf


def size_of(
    interval: tuple[float, float] | None,
    printed: float | None,
    slopes: tuple[float, float] | None = (1.0, 1.0),
) -> Size | None:
    """None where one is not known, or no difference is printed. `slopes` are what a
    point is worth here and in the paper."""
    if interval is None or not printed or slopes is None:
        return None
    low, high = interval if printed > 0 else (-interval[1], -interval[0])
    wanted = abs(printed) * slopes[1] / slopes[0]
    if low > wanted:
        return Size.LARGER
    if high >= wanted:
        return Size.AS_PRINTED
    return Size.OPPOSITE if high < 0 else Size.SMALLER


def log_odds_per_point(first: float, second: float, most: float) -> float:
    """How many log odds a point is worth between two recalls, of which `most` is the
    largest: 2 of 10 are more than 2 of 50. One that is 0 or perfect counts as half a
    point from it."""
    ends = [min(max(end, 0.5), most - 0.5) for end in (first, second)]
    if ends[0] == ends[1]:
        return most / (ends[0] * (most - ends[0]))
    odds = [log(end / (most - end)) for end in ends]
    return (odds[0] - odds[1]) / (ends[0] - ends[1])


def _is_found(
    doubt: Doubt,
    rooms: Sequence[tuple[float, float]],
    seeds: int = 0,
    folds: int = 0,
) -> bool:
    """Whether a difference would be told from one of its bounds, so far away and at
    such a level, with further trainings, or with further folds."""
    now = sum(part.weight() for part in doubt.seeds)
    images = doubt.images
    if seeds:
        then = sum(part.weight(seeds) for part in doubt.seeds)
        images += doubt.interaction * (then / now - 1)
    # folds count alike: the ones at hand, and those with one training of each side
    share = 1 / (folds + 1) ** 2
    if folds:
        of_one = sum(len(part.counts) for part in doubt.seeds)
        luck = doubt.interaction * (of_one / now if now else 1.0)
        images = share * (images + folds * (images - doubt.interaction + luck))
    variance, doubts = images, 0.0
    for part in doubt.seeds:
        weight = share * (part.weight(seeds) + folds * len(part.counts))
        further = seeds + folds if part.is_own else 0
        variance += weight * part.main
        doubts += (weight * part.main) ** 2 / (part.freedom + further)
    freedom = min(variance**2 / doubts, MOST_FREEDOM) if doubts else MOST_FREEDOM
    for room, level in rooms:
        reach = special.stdtrit(freedom, 1 - level / 2) + special.ndtri(POWER)
        if room > 0 and reach**2 * variance <= room**2:
            return True
    return False


def power(rule: Rule, difference: float, doubt: Doubt, claims: int = 1) -> float:
    """The probability, in [0, 1], that a claim holds for other images and other
    trainings, where its true difference and the true variances are known, and where p
    is multiplied with a number of `claims`. The variance between trainings will be
    estimated as its true value times chi^2 over the degrees of freedom, of which
    QUANTILES stand for all. Raises ValueError where nothing varies."""
    deviation = sqrt(doubt.images + doubt.main)
    probabilities = []
    for share in QUANTILES:
        seeds = []
        for part in doubt.seeds:
            freedom = min(part.freedom, MOST_FREEDOM)
            chi2 = float(special.chdtri(freedom, 1 - share))
            seeds.append(part._replace(variance=part.variance * chi2 / freedom))
        estimate = on_other_images(difference, doubt._replace(seeds=tuple(seeds)))
        if estimate is None:
            raise ValueError("nothing varies")
        half_width = estimate.interval[1] - estimate.value
        critical = special.stdtrit(estimate.freedom, 1 - ALPHA / claims / 2)
        low, high = rule.holding(critical * estimate.error, half_width)
        ends = special.ndtr([(end - difference) / deviation for end in (low, high)])
        probabilities.append(max(0.0, float(ends[1] - ends[0])))
    return sum(probabilities) / len(probabilities)

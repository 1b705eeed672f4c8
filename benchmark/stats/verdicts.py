"""What an interval says about a claim, and what would decide an undecided one.

What each kind of claim asserts stands in stats.claim_kinds. Where a conclusion asserts
a difference, its p must be at most ALPHA after Holm's adjustment, too. Every conclusion
states a range of d that contains the whole interval, so two conclusions on one
difference always have a range in common: they cannot contradict each other.

All pairs of a claim have to hold, so the largest p counts; one that is reversed denies
it, so then the smallest counts, times the number of pairs. Holm's adjustment is over
the claims that are judged together, for either scope alone; a comparison that is
claimed twice counts once. Each pair of a claim on several is adjusted as if it were
that claim alone.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from math import ceil, inf, sqrt
from typing import NamedTuple

from scipy import special

from benchmark.stats.claim_kinds import ClaimKind, Conclusion
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import (
    ALPHA,
    Doubt,
    Estimate,
    holm_products,
    on_other_images,
)

# of the variance over images, down to a thousandth
SHARES = [0.98**step for step in range(343)]
MOST_FREEDOM = 1e6  # as good as normal
POWER = 0.8  # of finding a difference as large as the measured one
MOST_SEEDS = 100  # more further trainings of a preset are called no number of seeds
SEEDS_BESIDE = (0, 2, 5, 10)  # further trainings that may go with more images
QUANTILES = [(step + 0.5) / 100 for step in range(100)]  # of an estimated variance


class Flag(NamedTuple):
    """Something that a reader must know of a row or of a verdict."""

    letter: str  # says of which kind it is
    sentence: str  # plain text without its full stop
    blocks: bool = False  # whether nothing is concluded because of it


NOTHING_VARIES = Flag("O", "nothing varies, so nothing tells the error", blocks=True)


WORST_FIRST = (  # of the pairs of a claim, all of which have to hold
    Conclusion.REVERSED,
    Conclusion.BETTER,
    Conclusion.WORSE,
    Conclusion.NO_DIFFERENCE,
    Conclusion.UNDECIDED,
    Conclusion.HOLDS,
)


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
    images: int | None  # test images; None: no number of them
    seeds_beside: int = 0  # further trainings that these images need


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a claim says about one pair."""

    kind: ClaimKind
    margin: float

    @property
    def bound(self) -> float:
        """Beyond it lies what the claim asserts, or what denies it."""
        return self.kind.bound(self.margin)

    def p(self, estimate: Estimate) -> float:
        """Of the difference that the claim asserts or, of one that denies a difference,
        of that which denies it."""
        if self.kind.is_one_sided:
            return estimate.p_above(self.margin)
        return estimate.p(beyond=self.bound)

    def asserted(self, difference: float) -> Conclusion:
        """The conclusion if the interval lies beyond the bound on this side of it."""
        return self.kind.above if difference > 0 else self.kind.below

    def is_within(self, interval: tuple[float, float]) -> bool:
        """Whether no difference in the interval is beyond the margin."""
        low, high = interval
        return high <= self.margin and (self.kind.is_one_sided or low >= -self.margin)

    def conclusion(
        self, estimate: Estimate, adjusted_p: float
    ) -> tuple[Conclusion, str]:
        """With the reason: a short sentence without its full stop."""
        margin = f"{self.margin:.3g}"
        if self.is_within(estimate.interval):
            if self.kind.is_one_sided:
                reason = f"the interval does not reach above the margin of {margin}"
            else:
                reason = f"the interval lies within {margin} of zero"
            return self.kind.within, reason
        if self.p(estimate) > ALPHA:
            return Conclusion.UNDECIDED, f"the interval {self._covers()}"
        if adjusted_p > ALPHA:
            reason = f"p is {adjusted_p:.2g} after Holm's adjustment"
            return Conclusion.UNDECIDED, reason
        bound = "zero" if self.kind.from_zero else margin
        if estimate.value > 0:
            where = f"above {bound}"
        else:
            where = f"below {bound if self.kind.from_zero else f'-{margin}'}"
        return self.asserted(estimate.value), f"the interval lies {where}"

    def _covers(self) -> str:
        """What an interval covers that decides nothing."""
        margin = f"{self.margin:.3g}"
        if self.kind.is_one_sided:
            return f"covers the margin of {margin}"
        if not self.kind.from_zero:
            return f"reaches within {margin} of zero and beyond"
        if self.margin:
            return f"covers zero and reaches beyond {margin}"
        return "covers zero"

    def holding(self, reach: float, half_width: float) -> tuple[float, float]:
        """The range of measured differences with which the claim holds: `reach` is how
        far from the bound a difference is told from it, `half_width` that of the
        interval."""
        room = self.margin - half_width
        if not self.kind.denies:
            return max(self.bound + reach, room), inf
        return (-inf if self.kind.is_one_sided else -room), room

    def limit(self, difference: float, doubt: Doubt, adjustment: float = 1.0) -> Limit:
        """What would decide the claim with a power of POWER, if the difference stays.

        `adjustment` is what Holm multiplied the p with.
        """
        d = difference if self.kind.is_one_sided else abs(difference)
        # Distances from the bounds that would decide, each with its level of
        # significance.
        rooms = [(d - self.bound, ALPHA / adjustment), (self.margin - d, ALPHA)]
        found = [partial(_is_found, doubt, *room) for room in rooms if room[0] > 0]
        tried = range(1, MOST_SEEDS + 1) if doubt.seeds else ()
        seeds = next(
            (more for more in tried if any(is_found(more) for is_found in found)), None
        )
        for more in SEEDS_BESIDE if doubt.images else ():
            steps = [
                bisect_left(SHARES, True, lo=1, key=partial(is_found, more))
                for is_found in found
                if is_found(more, SHARES[-1])
            ]
            if steps:
                return Limit(seeds, ceil(doubt.image_count / SHARES[min(steps)]), more)
        return Limit(seeds, None)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One pair of a claim, as it is put to `judge`, and what that concludes from it."""

    comparison: Comparison
    rule: Rule
    printed: float | None = None  # a paper's difference; positive: the first is better
    blocked: Flag | None = None  # why nothing can be concluded, whatever the numbers
    has_scale: bool = True  # whether sizes here can be compared with printed ones
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
    # the same comparison in other set-ups, each for itself
    controls: "tuple[Pair, ...]" = ()
    # what would be concluded if a control were against it, too
    withheld: Conclusion | None = None

    @property
    def difference(self) -> float:
        return self.comparison.difference

    @property
    def interval(self) -> tuple[float, float] | None:
        """95%, for other images and other trainings."""
        return self.comparison.interval

    @property
    def margin(self) -> float:
        return self.rule.margin


def judge(claims: Sequence[Sequence[Pair]]) -> list[list[Pair]]:
    """The pairs of each claim with what they say, with the adjustment over all these
    claims."""
    scopes = (_adjusted(claims, scope) for scope in ("estimate", "on_test_set"))
    return [
        [_concluded(*facts) for facts in zip(*of_claim, strict=True)]
        for of_claim in zip(claims, *scopes, strict=True)
    ]


def withheld(pair: Pair, why: Flag) -> Pair:
    """A pair of which nothing is concluded after all."""
    undecided = {
        "conclusion": Conclusion.UNDECIDED,
        "on_test_set": Conclusion.UNDECIDED,
    }
    return replace(
        pair, **undecided, reason=why.sentence, blocked=why, withheld=pair.conclusion
    )


# p, Holm's, and what Holm multiplied it with, unbounded
Adjusted = tuple[float, float, float]


def _concluded(pair: Pair, elsewhere: Adjusted | None, here: Adjusted | None) -> Pair:
    """With the adjusted p for other images, and of other trainings on this test set."""
    comparison, rule = pair.comparison, pair.rule
    if elsewhere is None:
        flag = pair.blocked or NOTHING_VARIES
        pair = replace(pair, reason=flag.sentence, blocked=flag)
    else:
        p, adjusted_p, factor = elsewhere
        conclusion, reason = rule.conclusion(comparison.estimate, adjusted_p)
        facts = {
            "conclusion": conclusion,
            "reason": reason,
            "p": p,
            "adjusted_p": adjusted_p,
        }
        if pair.has_scale:
            facts["size"] = size(comparison.interval, pair.printed)
        has_variance = isinstance(comparison.estimate, Estimate)
        if conclusion == Conclusion.UNDECIDED and has_variance:
            facts["limit"] = rule.limit(comparison.difference, comparison.doubt, factor)
        pair = replace(pair, **facts)
    # What holds for other images holds on this test set, too. Its own interval is never
    # the wider one, but with few degrees of freedom its p after Holm's adjustment can
    # be the larger.
    on_test_set = here and rule.conclusion(comparison.on_test_set, here[1])[0]
    is_surer = on_test_set not in (None, Conclusion.UNDECIDED)
    return replace(pair, on_test_set=on_test_set if is_surer else pair.conclusion)


def _adjusted(
    claims: Sequence[Sequence[Pair]], scope: str
) -> list[list[Adjusted | None]]:
    """By an estimate of the comparisons; over the claims that have a pair which can be
    judged. None of a pair that cannot.

    A pair stands in the place of its claim among all claims of the adjustment: one that
    is surer than its claim has more claims behind it.
    """
    known = [
        [(a.rule, None if a.blocked else getattr(a.comparison, scope)) for a in pairs]
        for pairs in claims
    ]
    keys = [tuple(pair for pair in pairs if pair[1]) for pairs in known]
    p_of = {key: claim_p(*zip(*key, strict=True)) for key in keys if key}

    def adjusted(rule: Rule, estimate: Estimate | None, key: tuple) -> Adjusted | None:
        if estimate is None:
            return None
        p = rule.p(estimate)
        others = p_of | {key: p * len(key) if estimate.value < 0 else p}
        product = float(holm_products(list(others.values()))[list(others).index(key)])
        return p, min(1.0, product), product / p if p else len(p_of)

    return [
        [adjusted(*pair, key) for pair in of]
        for of, key in zip(known, keys, strict=True)
    ]


def claim_p(rules: Sequence[Rule], estimates: Sequence[Estimate]) -> float:
    """p of a claim on several pairs: that all hold, or, if one is behind, that one is
    reversed."""
    p_values = [
        rule.p(estimate) for rule, estimate in zip(rules, estimates, strict=True)
    ]
    behind = [
        p for p, estimate in zip(p_values, estimates, strict=True) if estimate.value < 0
    ]
    if len(rules) == 1 or not behind:
        return max(p_values)
    return min(1.0, len(rules) * min(behind))


def decisive(pairs: Sequence[Pair]) -> Pair:
    """The pair whose conclusion is that of its claim. Of the pairs with the worst
    conclusion: where all hold the least sure one, where one is denied the surest. Of
    undecided ones that which speaks against the paper, then that with the opposite
    difference, then a blocked one."""
    worst = min((pair.conclusion for pair in pairs), key=WORST_FIRST.index)
    pairs = [pair for pair in pairs if pair.conclusion == worst]
    if worst == Conclusion.UNDECIDED:
        behind = [pair for pair in pairs if pair.limit and pair.difference < 0]
        behind.sort(
            key=lambda pair: (pair.limit.seeds or inf, pair.limit.images or inf)
        )
        withheld, blocked = (
            [p for p in pairs if p.withheld],
            [p for p in pairs if p.blocked],
        )
        return next(iter(withheld or behind or blocked or pairs))
    if worst == Conclusion.NO_DIFFERENCE:
        return pairs[0]
    return (max if worst == Conclusion.HOLDS else min)(pairs, key=lambda pair: pair.p)


def two_digits(number: int) -> int:
    """A number of seeds or images, rounded up to two significant digits."""
    step = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step


def size(interval: tuple[float, float] | None, printed: float | None) -> Size | None:
    """None where one of them is not known, or the paper prints no difference."""
    if interval is None or not printed:
        return None
    low, high = interval if printed > 0 else (-interval[1], -interval[0])
    if low <= abs(printed) <= high:
        return Size.AS_PRINTED
    if low > abs(printed):
        return Size.LARGER
    return Size.OPPOSITE if high < 0 else Size.SMALLER


def _is_found(
    doubt: Doubt, room: float, level: float, more: int, share: float = 1.0
) -> bool:
    """Whether a difference so far from a bound would be found, with further trainings,
    and with `share` of the images' variance."""
    now, then = (sum(part.weight(n) for part in doubt.seeds) for n in (0, more))
    left = doubt.interaction * (then / now if now else 1.0)
    of_images = share * (doubt.images - doubt.interaction + left)
    parts = [
        (p.weight(more) * p.main, p.freedom + more * p.is_own) for p in doubt.seeds
    ]
    variance = of_images + sum(main for main, _ in parts)
    doubts = sum(main**2 / freedom for main, freedom in parts)
    freedom = min(variance**2 / doubts, MOST_FREEDOM) if doubts else MOST_FREEDOM
    reach = special.stdtrit(freedom, 1 - level / 2) + special.ndtri(POWER)
    return bool(reach**2 * variance <= room**2)


def power(rule: Rule, difference: float, doubt: Doubt, claims: int = 1) -> float:
    """The probability, in [0, 1], that a claim holds for other images and other
    trainings, where its true difference and the true variances are known.

    The difference of the means is normal. The variance between trainings will be
    estimated: as its true value times chi^2 over the degrees of freedom, of which
    QUANTILES stand for all; that over images is known from many. `claims` are judged
    together: where the claim asserts a difference, its p must stay below ALPHA after it
    is multiplied with their number. Raises ValueError where nothing varies.
    """
    deviation, holding = sqrt(doubt.images + doubt.main), []
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
        holding.append(max(0.0, float(ends[1] - ends[0])))
    return sum(holding) / len(holding)

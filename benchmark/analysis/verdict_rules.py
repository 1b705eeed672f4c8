"""What an interval says about a claim, and what would decide an undecided one.

The difference d is positive where the first preset is better; the margin m is what the claim
counts as no difference (papers.printed_tables.Claim). With the 95% interval of d:

    kind         conclusion                        if the interval
    ordered      no difference beyond the margin   lies within -m and m
                 holds, reversed                   else lies above zero, below zero *
    alike        holds                             lies within -m and m
                 does not hold: better, worse      lies above m, below -m *
    not_better   holds                             does not reach above m
                 does not hold: better             lies above m *

A star marks what asserts a difference: its p must be at most 0.05 after Holm's adjustment, too. All
else is undecided. Every conclusion states a range of d that contains the whole interval, so two
conclusions on one difference always have a range in common: they cannot contradict each other.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, inf
from typing import NamedTuple

from scipy import special

from benchmark.analysis.significance import ALPHA, Doubt, Estimate

IMAGE_STEP, IMAGE_STEPS = 0.98, 342  # of the variance over images, down to a thousandth
MOST_FREEDOM = 1e6  # as good as normal
POWER = 0.8  # of finding a difference as large as the measured one
MOST_SEEDS = 100  # more further trainings of a preset are called no number of seeds
SEEDS_BESIDE = (0, 2, 5, 10)  # further trainings that may go with more images


class Conclusion(StrEnum):
    """What is concluded on a claim, or on one pair of its presets."""

    HOLDS = "holds"
    REVERSED = "reversed"
    NO_DIFFERENCE = "no difference beyond the margin"
    BETTER = "does not hold: better"  # than the claim says: it claims no difference
    WORSE = "does not hold: worse"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


WORST_FIRST = (  # of the pairs of a claim, all of which have to hold
    Conclusion.REVERSED,
    Conclusion.BETTER,
    Conclusion.WORSE,
    Conclusion.NO_DIFFERENCE,
    Conclusion.UNDECIDED,
    Conclusion.HOLDS,
)


class Size(StrEnum):
    """How the interval lies to the difference that the paper prints."""

    AS_PRINTED = "as printed"  # within the interval
    SMALLER = "smaller than printed"
    LARGER = "larger than printed"
    OPPOSITE = "opposite to printed"


class Range(NamedTuple):
    """The differences that a conclusion allows; its ends are outside."""

    low: float
    high: float


class Limit(NamedTuple):
    """What would decide an undecided comparison, if the difference stays what it is."""

    seeds: int | None  # further trainings of each preset on this test set; None: no number of them
    images: int | None  # test images; None: no number of them
    seeds_beside: int = 0  # further trainings that these images need


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a claim says about one pair of presets."""

    kind: str  # ordered, alike, not_better
    margin: float

    def p(self, estimate: Estimate) -> float:
        """Of the difference that a conclusion with a star would assert."""
        if self.kind == "ordered":
            return estimate.p()
        if self.kind == "alike":
            return estimate.p(beyond=self.margin)
        return estimate.p_above(self.margin)

    def asserted(self, difference: float) -> Conclusion:
        """The conclusion with a star that this side of the claim would have."""
        if self.kind == "ordered":
            return Conclusion.HOLDS if difference > 0 else Conclusion.REVERSED
        return Conclusion.BETTER if difference > 0 else Conclusion.WORSE

    def conclusion(self, estimate: Estimate, adjusted_p: float) -> tuple[Conclusion, str]:
        """With the reason: a short sentence without its full stop."""
        low, high = estimate.interval
        margin = self.margin
        if self.kind == "not_better" and high <= margin:
            return Conclusion.HOLDS, f"the interval does not reach above the margin of {margin:.3g}"
        if self.kind != "not_better" and -margin <= low and high <= margin:
            conclusion = Conclusion.NO_DIFFERENCE if self.kind == "ordered" else Conclusion.HOLDS
            return conclusion, f"the interval lies within {margin:.3g} of zero"
        if self.p(estimate) > ALPHA:
            return Conclusion.UNDECIDED, self._open()
        if adjusted_p > ALPHA:
            return Conclusion.UNDECIDED, f"p is {adjusted_p:.2g} after Holm's adjustment"
        side = "above" if estimate.value > 0 else "below"
        bound = "zero" if self.kind == "ordered" else f"{margin:.3g}"
        bound = f"-{bound}" if side == "below" and self.kind == "alike" else bound
        return self.asserted(estimate.value), f"the interval lies {side} {bound}"

    def _open(self) -> str:
        if self.kind == "ordered":
            beyond = f" and reaches beyond {self.margin:.3g}" if self.margin else ""
            return f"the interval covers zero{beyond}"
        if self.kind == "alike":
            return f"the interval reaches within {self.margin:.3g} of zero and beyond"
        return f"the interval covers the margin of {self.margin:.3g}"

    def allowed(self, conclusion: Conclusion) -> Range:
        """The differences that a conclusion on this claim is compatible with."""
        m = self.margin
        if conclusion == Conclusion.HOLDS:
            ranges = {
                "ordered": Range(0, inf), "alike": Range(-m, m), "not_better": Range(-inf, m)
            }  # fmt: skip
            return ranges[self.kind]
        return {
            Conclusion.REVERSED: Range(-inf, 0),
            Conclusion.NO_DIFFERENCE: Range(-m, m),
            Conclusion.BETTER: Range(m, inf),
            Conclusion.WORSE: Range(-inf, -m),
        }.get(conclusion, Range(-inf, inf))

    def _room(self, difference: float, adjustment: float) -> list[tuple[float, float]]:
        """Distances from the bounds that would decide, each with its level of significance."""
        d, m, level = abs(difference), self.margin, ALPHA / adjustment
        if self.kind == "ordered":
            rooms = [(d, level), (m - d, ALPHA)]
        elif self.kind == "alike":
            rooms = [(d - m, level), (m - d, ALPHA)]
        else:
            rooms = [(difference - m, level), (m - difference, ALPHA)]
        return [(room, at) for room, at in rooms if room > 0]

    def limit(self, difference: float, doubt: Doubt, adjustment: float) -> Limit:
        """What would decide the claim with a power of POWER, if the difference stays.

        `adjustment` is what Holm multiplied the p with.
        """
        rooms = self._room(difference, adjustment)
        seeds = [_seeds_needed(doubt, room, level) for room, level in rooms] if doubt.seeds else []
        few = min((n for n in seeds if n is not None), default=None)
        for more in SEEDS_BESIDE:
            images = [_images_needed(doubt, room, level, more) for room, level in rooms]
            if any(images):
                return Limit(few, min(n for n in images if n), more)
        return Limit(few, None)


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


def _seeds_needed(doubt: Doubt, room: float, level: float) -> int | None:
    """Further trainings of each preset; the images stay."""
    for more in range(1, MOST_SEEDS + 1):
        if _is_enough(doubt, room, level, more):
            return more
    return None


def _images_needed(doubt: Doubt, room: float, level: float, more: int) -> int | None:
    """Test images in all, with so many further trainings; more than a thousandfold is none."""
    few, many = 0, IMAGE_STEPS  # steps that are not enough, and that are
    if not doubt.images or not _is_enough(doubt, room, level, more, IMAGE_STEP**many):
        return None
    while many - few > 1:
        middle = (few + many) // 2
        if _is_enough(doubt, room, level, more, IMAGE_STEP**middle):
            many = middle
        else:
            few = middle
    return ceil(doubt.image_count / IMAGE_STEP**many)


def _is_enough(doubt: Doubt, room: float, level: float, more: int, share: float = 1.0) -> bool:
    """Whether a difference so far from a bound would be found, with further trainings, and with
    `share` of the images' variance."""
    now, then = (sum(part.weight(n) for part in doubt.seeds) for n in (0, more))
    left = doubt.interaction * (then / now if now else 1.0)
    of_images = share * (doubt.images - doubt.interaction + left)
    parts = [(p.weight(more) * p.main, p.freedom + more * p.is_own) for p in doubt.seeds]
    variance = of_images + sum(main for main, _ in parts)
    doubts = sum(main**2 / freedom for main, freedom in parts)
    freedom = min(variance**2 / doubts, MOST_FREEDOM) if doubts else MOST_FREEDOM
    reach = special.stdtrit(freedom, 1 - level / 2) + special.ndtri(POWER)
    return bool(reach**2 * variance <= room**2)

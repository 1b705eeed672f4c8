"""The kinds of claims. An entry of KINDS is all that there is to say of a kind.

Its difference is positive where the first thing is better; its margin is what a claim
counts as no difference. docs/statistics.md has the table of what is concluded, as
in_words has it of a kind. What asserts a difference needs a small p as well, at most
ALPHA after Holm's adjustment (stats.verdicts); all else is undecided.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Conclusion(StrEnum):
    """What is concluded on a claim, or on one pair of it."""

    HOLDS = "holds"
    REVERSED = "reversed"
    NO_DIFFERENCE = "no difference beyond the margin"
    BETTER = "does not hold: better"  # than the claim says: it claims no difference
    WORSE = "does not hold: worse"
    NOT_BETTER = "not better by the margin"  # no difference, or the opposite
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


FAILED = (  # what a claim does not survive
    Conclusion.REVERSED,
    Conclusion.BETTER,
    Conclusion.WORSE,
    Conclusion.NO_DIFFERENCE,
    Conclusion.NOT_BETTER,
)


class Side(StrEnum):
    """Which side of a comparison something favours."""

    FIRST = "first"
    SECOND = "second"
    UNKNOWN = "unknown"  # nobody knows which


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a paper prints of a difference, and what the levels are here."""

    difference: float  # printed, positive: the first is better; 0: none is printed
    points: float  # of the metric that nobody would call a difference
    share: float  # of the better printed value that the difference is
    level: float | None  # the better score here; None: it is no recall
    most: float  # a margin is no larger


class Concluded(NamedTuple):
    """A line of the table of conclusions."""

    name: str
    interval: str  # what it does
    needs_p: bool = False  # whether p must be small after Holm's adjustment, too


@dataclass(frozen=True, kw_only=True)
class ClaimKind:
    """What a claim of this kind asserts of a difference."""

    name: str  # in the files of claims
    verb: str  # between the titles of two rows
    sign: str  # in `rematch judge --claim`; "": such claims need printed values
    denies: bool  # whether it claims that there is no difference beyond the margin
    is_one_sided: bool  # whether only a difference in favour of the first counts
    needs_printed: bool  # whether its margin is a share of what a paper prints
    from_zero: bool  # whether it asserts any difference; False: one beyond the margin
    above: Conclusion  # where the interval lies above the bound
    below: Conclusion  # where it lies below
    margin: Callable[[Effect], float]

    @property
    def within(self) -> Conclusion:
        """The conclusion where no difference reaches beyond the margin."""
        if self.denies:
            return Conclusion.HOLDS
        is_one_sided = self.is_one_sided
        return Conclusion.NOT_BETTER if is_one_sided else Conclusion.NO_DIFFERENCE

    def in_words(self) -> list[Concluded]:
        """What is concluded, in the order in which it is looked for."""
        ends = [self.above] if self.is_one_sided else [self.above, self.below]
        asserted = "; ".join(ends)
        if self.is_one_sided:
            within, beyond = "does not reach above the margin", "lies above the margin"
        else:
            within, beyond = "lies within the margin", "lies above the margin; below it"
        if self.from_zero:
            beyond = "else lies above zero; below zero"
        listed = [Concluded(self.within, within), Concluded(asserted, beyond, True)]
        if self.from_zero:
            denied = "else does not reach above the margin"
            listed.append(Concluded(Conclusion.NOT_BETTER, denied))
        return listed

    def despite(self, conclusion: Conclusion, favoured: Side) -> Conclusion:
        """What is left of a conclusion where something favours a side: what goes
        against that side. A difference that is too large may still be shown to be
        small, one that is too small to be large."""
        if favoured == Side.SECOND:
            return conclusion if conclusion == self.above else Conclusion.UNDECIDED
        if favoured == Side.UNKNOWN:
            return Conclusion.UNDECIDED
        if self.is_one_sided:
            return conclusion if conclusion == self.within else Conclusion.UNDECIDED
        if conclusion == self.within and not self.denies:
            return Conclusion.NOT_BETTER  # by the margin; whether worse is open
        if conclusion in (self.below, Conclusion.NOT_BETTER):
            return conclusion
        return Conclusion.UNDECIDED

    def is_true_of(self, difference: float, margin: float) -> bool:
        """Whether a claim of this kind holds of a true difference."""
        size = difference
        if self.denies and not self.is_one_sided:
            size = abs(difference)
        return size < margin if self.denies else size > margin


def _half_of_printed(effect: Effect) -> float:
    """A difference that is claimed is one of at least half of what the paper prints,
    but of no more than a point per recall: effects that the paper found large are not
    "none" when they are half as large."""
    half = abs(effect.difference) / 2 or effect.points
    return min(half, effect.points or half, effect.most)


def _half_of_printed_share(effect: Effect) -> float:
    """What is far behind lacks at least half of the printed share of the better
    score."""
    return effect.share / 2 * effect.level


def _twice_the_printed(effect: Effect) -> float:
    """A difference that is denied is one of more than a point per recall or, where the
    paper prints more and calls it none, of more than twice that."""
    return min(max(effect.points, 2 * abs(effect.difference)), effect.most)


def _twice_the_printed_gain(effect: Effect) -> float:
    """The same, where only a gain of the first is denied."""
    return min(max(effect.points, 2 * effect.difference), effect.most)


ORDERED = ClaimKind(
    name="ordered",
    verb="beats",
    sign=">",
    denies=False,
    is_one_sided=False,
    needs_printed=False,
    from_zero=True,
    above=Conclusion.HOLDS,
    below=Conclusion.REVERSED,
    margin=_half_of_printed,
)
FAR = ClaimKind(
    name="far",
    verb="is far above",
    sign="",
    denies=False,
    is_one_sided=True,
    needs_printed=True,
    from_zero=False,
    above=Conclusion.HOLDS,
    below=Conclusion.HOLDS,
    margin=_half_of_printed_share,
)
ALIKE = ClaimKind(
    name="alike",
    verb="is like",
    sign="=",
    denies=True,
    is_one_sided=False,
    needs_printed=False,
    from_zero=False,
    above=Conclusion.BETTER,
    below=Conclusion.WORSE,
    margin=_twice_the_printed,
)
NOT_BETTER = ClaimKind(
    name="not_better",
    verb="does not beat",
    sign="not better than",
    denies=True,
    is_one_sided=True,
    needs_printed=False,
    from_zero=False,
    above=Conclusion.BETTER,
    below=Conclusion.WORSE,
    margin=_twice_the_printed_gain,
)
KINDS = {kind.name: kind for kind in (ORDERED, FAR, ALIKE, NOT_BETTER)}
# the kinds that a user of `rematch judge` can claim, by their sign
SIGNS = {kind.sign: kind for kind in KINDS.values() if kind.sign}

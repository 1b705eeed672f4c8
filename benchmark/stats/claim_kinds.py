"""The kinds of claims. An entry of KINDS is all that there is to say of a kind;
docs/statistics.md has them in words (Verdicts on claims).

A difference is positive where the first thing is better; a margin is what a claim
counts as no difference.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf, isinf
from typing import NamedTuple

MOST_OF_LEVEL = 0.1  # of the better score: the largest margin


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


FAILED = (  # what a claim does not survive, worst first
    Conclusion.REVERSED,
    Conclusion.BETTER,
    Conclusion.WORSE,
    Conclusion.NOT_BETTER,
    Conclusion.NO_DIFFERENCE,
)


class Side(StrEnum):
    """Which side of a comparison something favours."""

    FIRST = "first"
    SECOND = "second"
    UNKNOWN = "unknown"  # nobody knows which

    @classmethod
    def of_all(cls, sides: Iterable["Side"]) -> "Side | None":
        """The one that all favour; UNKNOWN if they differ; None of none."""
        different = set(sides)
        return cls.UNKNOWN if len(different) > 1 else next(iter(different), None)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a paper prints of a difference, and what the levels are here."""

    difference: float  # printed, positive: the first is better; 0: none is printed
    points: float  # of the metric that nobody would call a difference
    share: float  # of the better printed value that the difference is
    level: float | None  # the better score here; None: it is no recall

    @property
    def most(self) -> float:
        """The largest margin: to a recall of 1 a point is nearly all."""
        return inf if self.level is None else MOST_OF_LEVEL * self.level


class Line(NamedTuple):
    """A conclusion, and the differences that it allows, in margins: the whole interval
    has to lie in this range."""

    conclusion: Conclusion
    low: float
    high: float

    @property
    def needs_p(self) -> bool:
        """Whether it asserts a difference: then p must be small, too, after Holm."""
        return self.low >= 0 or self.high <= 0

    def contains(self, interval: tuple[float, float], margin: float) -> bool:
        ends = [end if isinf(end) else end * margin for end in (self.low, self.high)]
        return ends[0] <= interval[0] and interval[1] <= ends[1]


@dataclass(frozen=True, kw_only=True)
class ClaimKind:
    """What a claim of this kind asserts of a difference."""

    name: str  # in the files of claims
    verb: str  # between the titles of two rows
    sign: str = ""  # in `rematch judge --claim`; "": such claims need printed values
    needs_printed: bool = False  # whether its margin is a share of what a paper prints
    # what is concluded, in the order in which it is looked for: first what says that no
    # difference reaches beyond the margin
    table: tuple[Line, ...]
    margin: Callable[[Effect], float]

    @property
    def within(self) -> Conclusion:
        """The conclusion where no difference reaches beyond the margin."""
        return self.table[0].conclusion

    @property
    def asserted(self) -> list[Conclusion]:
        """The conclusions that assert a difference."""
        return [line.conclusion for line in self.table if line.needs_p]

    @property
    def denies(self) -> bool:
        """Whether it claims that there is no difference beyond the margin."""
        return self.within == Conclusion.HOLDS

    @property
    def is_one_sided(self) -> bool:
        """Whether only a difference in favour of the first counts."""
        return isinf(self.table[0].low)

    @property
    def from_zero(self) -> bool:
        """Whether it asserts any difference, or else one beyond the margin."""
        return any(line.low == 0 for line in self.table)

    def despite(self, conclusion: Conclusion, favoured: Side | None) -> Conclusion:
        """What is left of a conclusion where something favours a side: a difference
        that is too large may still be shown to be small, one that is too small to be
        large."""
        if favoured is None:
            return conclusion
        for line in self.table:
            if line.conclusion != conclusion or favoured == Side.UNKNOWN:
                continue
            if isinf(line.low if favoured == Side.FIRST else line.high):
                return conclusion
            if favoured == Side.FIRST and conclusion == Conclusion.NO_DIFFERENCE:
                return Conclusion.NOT_BETTER  # by the margin; whether worse is open
        return Conclusion.UNDECIDED

    def is_true_of(self, difference: float, margin: float) -> bool:
        """Whether a claim of this kind holds of a true difference."""
        size = difference if self.is_one_sided or not self.denies else abs(difference)
        return size < margin if self.denies else size > margin


def _half_of_printed(effect: Effect) -> float:
    """A difference that is claimed is one of at least half of what the paper prints,
    but of no more than a point per recall."""
    half = abs(effect.difference) / 2 or effect.points
    return min(half, effect.points or half, effect.most)


def _twice(printed: float, effect: Effect) -> float:
    """A difference that is denied is one of more than a point per recall or, where the
    paper prints more and calls it none, of more than twice that."""
    return min(max(effect.points, 2 * printed), effect.most)


ORDERED = ClaimKind(
    name="ordered",
    verb="beats",
    sign=">",
    table=(
        Line(Conclusion.NO_DIFFERENCE, -1, 1),
        Line(Conclusion.HOLDS, 0, inf),
        Line(Conclusion.REVERSED, -inf, 0),
        Line(Conclusion.NOT_BETTER, -inf, 1),
    ),
    margin=_half_of_printed,
)
FAR = ClaimKind(
    name="far",
    verb="is far above",
    needs_printed=True,
    table=(Line(Conclusion.NOT_BETTER, -inf, 1), Line(Conclusion.HOLDS, 1, inf)),
    # what is far behind lacks at least half of the printed share of the better score
    margin=lambda effect: effect.share / 2 * effect.level,
)
ALIKE = ClaimKind(
    name="alike",
    verb="is like",
    sign="=",
    table=(
        Line(Conclusion.HOLDS, -1, 1),
        Line(Conclusion.BETTER, 1, inf),
        Line(Conclusion.WORSE, -inf, -1),
    ),
    margin=lambda effect: _twice(abs(effect.difference), effect),
)
NOT_BETTER = ClaimKind(
    name="not_better",
    verb="does not beat",
    sign="not better than",
    table=(Line(Conclusion.HOLDS, -inf, 1), Line(Conclusion.BETTER, 1, inf)),
    margin=lambda effect: _twice(effect.difference, effect),  # only a gain is denied
)
KINDS = {kind.name: kind for kind in (ORDERED, FAR, ALIKE, NOT_BETTER)}
# the kinds that a user of `rematch judge` can claim, by their sign
SIGNS = {kind.sign: kind for kind in KINDS.values() if kind.sign}

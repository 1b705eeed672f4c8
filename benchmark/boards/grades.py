"""The grade of a claim: what its tests in several set-ups amount to.

A set-up is a season on a dataset of photographs; a season with the test images and
features of another is not a further set-up. docs/statistics.md (Grades) has the rule:
what all set-ups say together is judged like what one season says, with Holm's
adjustment over the claims of the paper, and each set-up is judged for itself without
it. If set-ups differ by more than chance and do not all say the same, the grade depends
on the set-up, unless a part on which they agree denies the claim.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain
from statistics import fmean

import numpy as np

from benchmark.boards.claims_file import ClaimEntry
from benchmark.papers.printed_tables import Claim, is_time
from benchmark.stats import ALPHA, pooling
from benchmark.stats import verdicts as rules
from benchmark.stats.claim_kinds import FAILED, Conclusion
from benchmark.stats.significance import holm_products
from benchmark.stats.verdicts import Size, Verdict


class Grade(StrEnum):
    CONFIRMED = "confirmed"
    SEEN_ONCE = "seen once"
    DEPENDS = "depends on the set-up"
    FAILS = "fails"
    NO_EFFECT = "no effect"  # beyond the margin
    UNDECIDED = "undecided"
    OUT_OF_REACH = "out of reach"
    DRAWINGS = "tested on drawings alone"  # which decide nothing
    UNTESTED = "untested"
    UNCOUNTED = "not counted"  # is shown; its entry says why


MARKS = {  # of grades, and of what one finding concludes, in the matrix
    Grade.CONFIRMED: "●",
    Grade.SEEN_ONCE: "◐",
    Grade.DEPENDS: "±",
    Grade.FAILS: "✕",
    Grade.NO_EFFECT: "○",
    Grade.UNDECIDED: "?",
    Grade.OUT_OF_REACH: "–",
    **dict.fromkeys(FAILED, "✕"),
    Conclusion.HOLDS: "●",
    Conclusion.NO_DIFFERENCE: "○",
    Conclusion.UNDECIDED: "?",
}
HOLDING = (Grade.CONFIRMED, Grade.SEEN_ONCE)
FAILING = {  # confirmed or seen once, too, with the conclusions that they come from
    Grade.FAILS: [each for each in FAILED if each != Conclusion.NO_DIFFERENCE],
    Grade.NO_EFFECT: [Conclusion.NO_DIFFERENCE],
}
SHOWING = 2  # set-ups that confirm


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """A claim on a dataset, as the report of a season has it."""

    claim: Claim
    entry: ClaimEntry
    verdicts: tuple[Verdict, ...]  # of the season, on the parts that were run
    place: str  # the dataset with its season
    is_drawn: bool  # by the code, no photographs
    level: float  # how strong the features are

    @property
    def is_in_part(self) -> bool:
        """Whether parts of the claim were not run."""
        return len(self.verdicts) < len(self.claim.parts)

    @cached_property
    def alone(self) -> dict[int, Verdict]:
        """By part that was run, what it says for itself, without an adjustment for
        other claims; drawings say what their season says."""
        (judged,) = [self.verdicts] if self.is_drawn else rules.judge([self.verdicts])
        return {verdict.part: verdict for verdict in judged}

    @property
    def decisive(self) -> Verdict:
        """The verdict that is that of the whole claim."""
        if self.is_drawn:
            return self.verdicts[self.entry.decisive]
        return rules.decisive(list(self.alone.values()))

    @property
    def conclusion(self) -> Conclusion:
        return self.entry.conclusion if self.is_drawn else self.decisive.conclusion

    @property
    def reason(self) -> str:
        """Of its conclusion and, where the season concludes something else, of that."""
        if self.conclusion == self.entry.conclusion:
            return self.entry.reason
        reason = self.decisive.reason
        if len(self.verdicts) > 1:
            reason = f"{self.decisive.comparison.names}: {reason}"
        of_season = f"{self.entry.conclusion} among all claims of the season"
        return f"{reason}; {of_season}, where {self.entry.reason}"


@dataclass(frozen=True, kw_only=True)
class PooledPart:
    """A part of a claim over its set-ups."""

    verdict: Verdict
    # those that are pooled; empty: none could judge it
    set_ups: tuple[Finding, ...] = ()
    heterogeneity: float = 1.0  # p

    @property
    def alone(self) -> list[Conclusion]:
        """What each set-up says for itself."""
        part = self.verdict.part
        return [finding.alone[part].conclusion for finding in self.set_ups]

    @property
    def holding(self) -> int:
        return self.alone.count(Conclusion.HOLDS)

    @property
    def failing(self) -> int:
        return sum(conclusion in FAILED for conclusion in self.alone)

    @property
    def is_unanimous(self) -> bool:
        """Whether all hold, all fail, or none says either."""
        return max(self.holding, self.failing) in (0, len(self.set_ups))


@dataclass(frozen=True, kw_only=True)
class Graded:
    """A claim over its set-ups."""

    grade: Grade
    parts: tuple[PooledPart, ...]
    # the one whose set-ups differ most if the grade depends on the set-up, else the one
    # whose verdict is that of the claim
    decisive: PooledPart
    agreeing: int = 0  # set-ups that say alone what the pooled verdict says
    contradicting: int = 0

    @property
    def is_smaller(self) -> bool:
        """Whether it holds by less than the paper prints."""
        verdict = self.decisive.verdict
        is_smaller = verdict.size == Size.SMALLER and not verdict.rule.kind.denies
        return self.grade in HOLDING and is_smaller

    @property
    def is_confirmed(self) -> bool:
        """Whether two set-ups or more say alone what it says."""
        return self.agreeing >= SHOWING


def graded(claims: Sequence[Sequence[Finding]]) -> list[Graded]:
    """The grades of one paper's counted claims, each with a finding on photographs; p
    is adjusted over all of them."""
    pooled = [_pooled(findings) for findings in claims]
    judged = rules.judge([[part.verdict for part in parts] for parts in pooled])
    p_values = [_p_of_dependence(parts) for parts in pooled]
    adjusted = np.minimum(1.0, holm_products(p_values))
    grades = []
    for parts, verdicts, p in zip(pooled, judged, adjusted, strict=True):
        pairs = zip(parts, verdicts, strict=True)
        of_claim = tuple(replace(part, verdict=verdict) for part, verdict in pairs)
        grades.append(_grade_of(of_claim, float(p)))
    return grades


def _pooled(findings: Sequence[Finding]) -> list[PooledPart]:
    """The parts that any of the findings has, over their set-ups, not yet judged."""
    parts = []
    for index, declared in enumerate(findings[0].claim.parts):
        run = {}
        for finding in findings:
            for verdict in finding.verdicts:
                if verdict.part == index:
                    run[finding] = verdict
        usable = {each: run[each] for each in run if not run[each].blocked}
        if is_time(declared.metric):  # machines differ, so times are not pooled
            usable = dict(list(usable.items())[:1])
        if usable:
            parts.append(_over_set_ups(usable))
        elif run:
            first = next(iter(run.values()))
            is_out_of_reach = all(each.is_out_of_reach for each in run.values())
            blocked = first.blocked._replace(is_out_of_reach=is_out_of_reach)
            parts.append(PooledPart(verdict=replace(first, blocked=blocked)))
    return parts


def _over_set_ups(usable: dict[Finding, Verdict]) -> PooledPart:
    """A part over the findings that can judge it. Of several on the same images and
    features, the one with the most trainings counts; the first on ties."""
    set_ups: dict[object, Finding] = {}
    for finding, verdict in usable.items():
        inputs = verdict.comparison.inputs or finding  # not known: taken as distinct
        known = usable[set_ups.setdefault(inputs, finding)]
        if verdict.comparison.doubt.trainings > known.comparison.doubt.trainings:
            set_ups[inputs] = finding
    verdicts = [usable[finding] for finding in set_ups.values()]
    compared = [verdict.comparison for verdict in verdicts]
    first = verdicts[0]
    slopes = first.slopes
    if slopes:
        here = fmean(verdict.slopes[0] for verdict in verdicts if verdict.slopes)
        slopes = here, slopes[1]  # that of the paper is the same in every set-up
    verdict = replace(
        first,
        comparison=pooling.pool(compared),
        rule=replace(first.rule, margin=fmean(each.margin for each in verdicts)),
        slopes=slopes,
        biases=tuple(chain.from_iterable(verdict.biases for verdict in verdicts)),
    )
    return PooledPart(
        verdict=verdict,
        set_ups=tuple(set_ups.values()),
        heterogeneity=pooling.heterogeneity(compared),
    )


def _p_of_dependence(parts: Sequence[PooledPart]) -> float:
    """p that chance alone makes the set-ups differ of a part on which they disagree:
    the least of the parts, with Bonferroni's correction."""
    mixed = [part.heterogeneity for part in parts if not part.is_unanimous]
    return min(1.0, len(parts) * min(mixed, default=1.0))


def _grade_of(parts: tuple[PooledPart, ...], p: float) -> Graded:
    """From the judged parts; `p` is that of dependence on the set-up, adjusted by Holm.
    A part that does not depend on it, and denies the claim, decides whatever the others
    do."""
    deciding: Sequence[PooledPart] = parts
    if p <= ALPHA:
        mixed = [part for part in parts if not part.is_unanimous]
        deciding = []
        for part in parts:
            is_settled = part.is_unanimous or part.heterogeneity > ALPHA
            if is_settled and part.verdict.conclusion in FAILED:
                deciding.append(part)
        if not deciding:
            apart = min(mixed, key=lambda part: part.heterogeneity)
            return Graded(grade=Grade.DEPENDS, parts=parts, decisive=apart)
    verdict = rules.decisive([part.verdict for part in deciding])
    decisive = next(part for part in deciding if part.verdict is verdict)
    agreeing = contradicting = 0
    if verdict.conclusion == Conclusion.UNDECIDED:
        is_out_of_reach = any(part.verdict.is_out_of_reach for part in parts)
        grade = Grade.OUT_OF_REACH if is_out_of_reach else Grade.UNDECIDED
    elif verdict.conclusion == Conclusion.HOLDS:
        agreeing = min(part.holding for part in parts)
        contradicting = max(part.failing for part in parts)
        grade = Grade.CONFIRMED if agreeing >= SHOWING else Grade.SEEN_ONCE
    else:
        agreeing, contradicting = decisive.failing, decisive.holding
        is_none = verdict.conclusion == Conclusion.NO_DIFFERENCE
        grade = Grade.NO_EFFECT if is_none else Grade.FAILS
    return Graded(
        grade=Grade.UNDECIDED if contradicting else grade,
        parts=parts,
        decisive=decisive,
        agreeing=agreeing,
        contradicting=contradicting,
    )

"""The grade of a claim: what its tests in several set-ups amount to.

A set-up is a season on a dataset of photographs; a season that repeats the test images
and features of another is none of its own. Each part of a claim is pooled over the
set-ups that could judge it (stats.pooling), and the pooled differences are judged like
those of one season, with Holm's adjustment over the claims of the paper: that is the
headline. Each set-up has a verdict of its own, without the adjustment: it repeats a test
and chooses none. The rule is the same for what holds and for what fails:

    depends on the set-up   the set-ups differ by more than chance, and in what they say
    undecided               the pooled verdict is, or a set-up contradicts it
    confirmed               two set-ups or more say alone what the pooled verdict says,
                            of each part where it holds, of the denied one where not
    seen once               fewer do
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
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
    """With its mark in the matrix."""

    CONFIRMED = "confirmed", "●"
    SEEN_ONCE = "seen once", "◐"
    DEPENDS = "depends on the set-up", "±"
    FAILS = "fails", "✕"
    NO_EFFECT = "no effect", "○"  # beyond the margin
    UNDECIDED = "undecided", "?"
    OUT_OF_REACH = "out of reach", "–"
    DRAWINGS = "tested on drawings alone", ""  # which decide nothing
    UNTESTED = "untested", ""
    UNCOUNTED = "not counted", ""  # is shown; its entry says why

    def __new__(cls, brief: str, mark: str) -> "Grade":
        grade = str.__new__(cls, brief)
        grade._value_, grade.mark = brief, mark
        return grade


MARKS = {  # of a test
    Conclusion.HOLDS: "●",
    Conclusion.NO_DIFFERENCE: "○",
    Conclusion.UNDECIDED: "?",
} | {conclusion: "✕" for conclusion in FAILED if conclusion != Conclusion.NO_DIFFERENCE}
HOLDING = (Grade.CONFIRMED, Grade.SEEN_ONCE)
FAILING = (Grade.FAILS, Grade.NO_EFFECT)  # confirmed or seen once, too


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """A claim on a dataset, as the report of a season has it."""

    claim: Claim
    entry: ClaimEntry
    verdicts: tuple[Verdict, ...]  # on the parts that were run
    place: str  # the dataset with its season
    is_drawn: bool  # by the code, no photographs
    level: float  # of the best row in retrieval

    @property
    def is_in_part(self) -> bool:
        """Whether parts of the claim were not run."""
        return len(self.verdicts) < len(self.claim.parts)

    @property
    def decisive(self) -> Verdict:
        """The verdict that is that of the claim."""
        return self.verdicts[self.entry.decisive]

    def on(self, part: int) -> Verdict | None:
        """The verdict on a part of the claim; None where it was not run."""
        return next((each for each in self.verdicts if each.part == part), None)

    def inputs(self, part: int) -> tuple[str, str]:
        """Digests of the test images and of the features of a part that was run; ""
        where one is not known."""
        (entry,) = [each for each in self.entry.parts if each.part == part]
        return self.on(part).comparison.images, entry.features

    @cached_property
    def alone(self) -> dict[int, Verdict]:
        """What it says of each part for itself, by part, without an adjustment for other
        claims."""
        (judged,) = rules.judge([self.verdicts])
        return {verdict.part: verdict for verdict in judged}

    @property
    def conclusion(self) -> Conclusion:
        """What it says of the whole claim: on photographs for itself, on drawings as its
        season has it."""
        if self.is_drawn:
            return self.entry.conclusion
        return rules.decisive(list(self.alone.values())).conclusion

    @property
    def reason(self) -> str:
        """Why it says what it does for itself, and what it says among the claims of its
        season where that is something else; on drawings as its season has it."""
        itself = rules.decisive(list(self.alone.values()))
        if self.is_drawn or itself.conclusion == self.entry.conclusion:
            return self.entry.reason
        reason = itself.reason
        if len(self.verdicts) > 1:
            reason = f"{itself.comparison.names}: {reason}"
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

    def saying(self, answer: bool) -> int:
        """How many set-ups say alone that it holds, or that it does not."""
        return list(map(_answer, self.alone)).count(answer)

    def alone_in(self, finding: Finding) -> Conclusion:
        """What a finding says of it for itself, which may repeat a set-up; undecided
        where it cannot judge it."""
        part = self.verdict.part
        if finding.on(part).blocked:
            return Conclusion.UNDECIDED
        return finding.alone[part].conclusion


@dataclass(frozen=True, kw_only=True)
class Graded:
    """A claim over its set-ups."""

    grade: Grade
    parts: tuple[PooledPart, ...]
    agreeing: int = 0  # set-ups that say alone what the pooled verdict says
    contradicting: int = 0

    @property
    def decisive(self) -> PooledPart:
        """The part whose verdict is that of the claim; of one that depends on the set-up
        that whose set-ups differ most."""
        is_unlike = self.grade == Grade.DEPENDS
        return most_unlike(self.parts) if is_unlike else decisive_of(self.parts)

    @property
    def is_smaller(self) -> bool:
        """Whether it holds by less than the paper prints."""
        verdict = self.decisive.verdict
        is_smaller = verdict.size == Size.SMALLER and not verdict.rule.kind.denies
        return self.grade in HOLDING and is_smaller

    @property
    def is_confirmed(self) -> bool:
        """Whether two set-ups or more say alone what it says."""
        return self.agreeing >= 2


def graded(claims: Sequence[Sequence[Finding]]) -> list[Graded]:
    """The counted claims of one paper, each with one finding on photographs or more."""
    pooled = [_pooled(findings) for findings in claims]
    judged = rules.judge([[part.verdict for part in parts] for parts in pooled])
    chances = [_heterogeneity(parts) for parts in pooled]
    adjusted = np.minimum(1.0, holm_products(chances)) if chances else []
    listed = []
    for parts, verdicts, p in zip(pooled, judged, adjusted, strict=True):
        whole = [
            replace(part, verdict=verdict)
            for part, verdict in zip(parts, verdicts, strict=True)
        ]
        listed.append(_graded(tuple(whole), float(p)))
    return listed


def _pooled(findings: Sequence[Finding]) -> list[PooledPart]:
    """The parts that a finding has, before they are judged."""
    parts = []
    for index, declared in enumerate(findings[0].claim.parts):
        run = [finding for finding in findings if finding.on(index)]
        usable = [finding for finding in run if not finding.on(index).blocked]
        if is_time(declared.metric):  # machines differ
            usable = usable[:1]
        if usable:
            parts.append(_over_set_ups(index, _unlike(index, usable)))
        elif run:
            parts.append(_blocked([finding.on(index) for finding in run]))
    return parts


def _unlike(index: int, findings: Sequence[Finding]) -> list[Finding]:
    """Those on other images or other features; of several on the same ones the one with
    the most trainings, the first on ties."""
    best: dict[tuple[str, ...], Finding] = {}
    for number, finding in enumerate(findings):
        inputs: tuple[str, ...] = finding.inputs(index)
        if not all(inputs):  # like no other
            inputs = (*inputs, str(number))
        known = best.setdefault(inputs, finding)
        if _trainings(finding, index) > _trainings(known, index):
            best[inputs] = finding
    return list(best.values())


def _trainings(finding: Finding, part: int) -> int:
    seeds = finding.on(part).comparison.doubt.seeds
    return sum(count for known in seeds for count in known.counts)


def _over_set_ups(index: int, findings: Sequence[Finding]) -> PooledPart:
    """A part of a claim over the set-ups that can judge it."""
    verdicts = [finding.on(index) for finding in findings]
    compared = [verdict.comparison for verdict in verdicts]
    first, biases = verdicts[0], []
    for verdict in verdicts:
        biases += verdict.biases
    slopes = first.slopes
    if slopes:
        slopes = fmean(each.slopes[0] for each in verdicts if each.slopes), slopes[1]
    verdict = replace(
        first,
        comparison=pooling.pool(compared),
        rule=replace(first.rule, margin=fmean(each.margin for each in verdicts)),
        slopes=slopes,
        biases=tuple(biases),
    )
    heterogeneity = pooling.heterogeneity(compared)
    return PooledPart(
        verdict=verdict, set_ups=tuple(findings), heterogeneity=heterogeneity
    )


def _blocked(verdicts: Sequence[Verdict]) -> PooledPart:
    """A part of a claim that no set-up can judge."""
    first = verdicts[0]
    is_out_of_reach = all(verdict.is_out_of_reach for verdict in verdicts)
    blocked = first.blocked._replace(is_out_of_reach=is_out_of_reach)
    return PooledPart(verdict=replace(first, blocked=blocked))


def _heterogeneity(parts: Sequence[PooledPart]) -> float:
    """p of a claim: that of its parts whose set-ups differ most, by Bonferroni."""
    return min(1.0, len(parts) * most_unlike(parts).heterogeneity)


def _graded(parts: tuple[PooledPart, ...], p: float) -> Graded:
    """`p` is that of their heterogeneity, after the adjustment."""
    answers = set(map(_answer, most_unlike(parts).alone))
    if p <= ALPHA and len(answers) > 1:
        return Graded(grade=Grade.DEPENDS, parts=parts)
    decisive = decisive_of(parts)
    conclusion = decisive.verdict.conclusion
    if conclusion == Conclusion.UNDECIDED:
        is_out_of_reach = any(part.verdict.is_out_of_reach for part in parts)
        grade = Grade.OUT_OF_REACH if is_out_of_reach else Grade.UNDECIDED
        return Graded(grade=grade, parts=parts)
    if conclusion == Conclusion.HOLDS:
        agreeing = min(part.saying(True) for part in parts)
        contradicting = max(part.saying(False) for part in parts)
        grade = Grade.CONFIRMED if agreeing >= 2 else Grade.SEEN_ONCE
    else:
        agreeing, contradicting = decisive.saying(False), decisive.saying(True)
        is_none = conclusion == Conclusion.NO_DIFFERENCE
        grade = Grade.NO_EFFECT if is_none else Grade.FAILS
    if contradicting:
        grade = Grade.UNDECIDED
    return Graded(
        grade=grade, parts=parts, agreeing=agreeing, contradicting=contradicting
    )


def decisive_of(parts: Sequence[PooledPart]) -> PooledPart:
    """The part whose pooled verdict is that of the claim."""
    verdict = rules.decisive([part.verdict for part in parts])
    return next(part for part in parts if part.verdict is verdict)


def most_unlike(parts: Sequence[PooledPart]) -> PooledPart:
    """The part whose set-ups differ most, the first on ties."""
    return min(parts, key=lambda part: part.heterogeneity)


def _answer(conclusion: Conclusion) -> bool | None:
    """Whether a conclusion is for the claim; None: neither for nor against it."""
    if conclusion == Conclusion.HOLDS:
        return True
    return False if conclusion in FAILED else None

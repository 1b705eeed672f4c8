"""The grade of a claim: what its tests in several set-ups amount to.

A set-up is a season on a dataset of photographs; a season with the test images and
features of another is not a further set-up. Each part of a claim is pooled over the
set-ups that can judge it (stats.pooling), and the pooled differences are judged like
those of one season, with Holm's adjustment over the claims of the paper: that is the
headline. Each set-up also has a verdict of its own, without the adjustment, since it
repeats a test and chooses none. The first line that applies decides, whether the claim
holds or fails:

    depends on the set-up   the set-ups of a part differ by more than chance and do not
                            all say the same, and no other part denies the claim
    undecided               the pooled verdict is undecided, or a set-up contradicts it
    confirmed               at least two set-ups, each alone, agree with the pooled
                            verdict: on every part if it holds, else on the decisive one
    seen once               fewer than two do
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


MARKS = {  # of one finding, in the matrix
    Conclusion.HOLDS: "●",
    Conclusion.REVERSED: "✕",
    Conclusion.BETTER: "✕",
    Conclusion.WORSE: "✕",
    Conclusion.NOT_BETTER: "✕",
    Conclusion.NO_DIFFERENCE: "○",
    Conclusion.UNDECIDED: "?",
}
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
    level: float  # how strong the features are

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
        """The verdict on each part that was run, by part, without an adjustment for
        other claims."""
        (judged,) = rules.judge([self.verdicts])
        return {verdict.part: verdict for verdict in judged}

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion on the whole claim: its own on photographs, that of the season
        on drawings."""
        if self.is_drawn:
            return self.entry.conclusion
        return rules.decisive(list(self.alone.values())).conclusion

    @property
    def reason(self) -> str:
        """The reason of its conclusion and, where the season concludes something else,
        that of the season; the season's alone on drawings."""
        own = rules.decisive(list(self.alone.values()))
        if self.is_drawn or own.conclusion == self.entry.conclusion:
            return self.entry.reason
        reason = own.reason
        if len(self.verdicts) > 1:
            reason = f"{own.comparison.names}: {reason}"
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
    def is_unanimous(self) -> bool:
        """Whether its set-ups, each alone, all say the same."""
        return len({_answer(conclusion) for conclusion in self.alone}) < 2

    def number_saying(self, *, holds: bool) -> int:
        """How many set-ups say, each alone, that the claim holds, or that it fails."""
        answers = [_answer(conclusion) for conclusion in self.alone]
        return answers.count(holds)

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
        return self.agreeing >= 2


def graded(claims: Sequence[Sequence[Finding]]) -> list[Graded]:
    """The grades of one paper's counted claims, each with at least one finding on
    photographs; p is adjusted over all of them."""
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
        run = [finding for finding in findings if finding.on(index)]
        usable = [finding for finding in run if not finding.on(index).blocked]
        if is_time(declared.metric):
            usable = usable[:1]  # machines differ, so times are not pooled
        if usable:
            parts.append(_over_set_ups(index, _on_distinct_inputs(index, usable)))
        elif run:
            verdicts = [finding.on(index) for finding in run]
            is_out_of_reach = all(verdict.is_out_of_reach for verdict in verdicts)
            blocked = verdicts[0].blocked._replace(is_out_of_reach=is_out_of_reach)
            parts.append(PooledPart(verdict=replace(verdicts[0], blocked=blocked)))
    return parts


def _on_distinct_inputs(index: int, findings: Sequence[Finding]) -> list[Finding]:
    """One finding for each pair of test images and features: of several, the one with
    the most trainings; the first on ties."""
    best: dict[tuple[str, ...], Finding] = {}
    for number, finding in enumerate(findings):
        inputs: tuple[str, ...] = finding.inputs(index)
        if not all(inputs):  # not known, so taken as distinct
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
    p = pooling.heterogeneity(compared)
    return PooledPart(verdict=verdict, set_ups=tuple(findings), heterogeneity=p)


def _p_of_dependence(parts: Sequence[PooledPart]) -> float:
    """p that chance alone makes the set-ups of a part differ that do not all say the
    same: the least of the parts, with Bonferroni's correction."""
    mixed = [part.heterogeneity for part in parts if not part.is_unanimous]
    return min(1.0, len(parts) * min(mixed, default=1.0))


def _grade_of(parts: tuple[PooledPart, ...], p: float) -> Graded:
    """The grade of a claim from its judged parts; `p` is that of its dependence on the
    set-up, adjusted by Holm. A part that does not depend on it, and denies the claim,
    decides whatever the others do."""
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
    decisive = decisive_of(deciding)
    conclusion = decisive.verdict.conclusion
    if conclusion == Conclusion.UNDECIDED:
        is_out_of_reach = any(part.verdict.is_out_of_reach for part in parts)
        grade = Grade.OUT_OF_REACH if is_out_of_reach else Grade.UNDECIDED
        return Graded(grade=grade, parts=parts, decisive=decisive)
    if conclusion == Conclusion.HOLDS:
        agreeing = min(part.number_saying(holds=True) for part in parts)
        contradicting = max(part.number_saying(holds=False) for part in parts)
        grade = Grade.CONFIRMED if agreeing >= 2 else Grade.SEEN_ONCE
    else:
        agreeing = decisive.number_saying(holds=False)
        contradicting = decisive.number_saying(holds=True)
        is_none = conclusion == Conclusion.NO_DIFFERENCE
        grade = Grade.NO_EFFECT if is_none else Grade.FAILS
    if contradicting:
        grade = Grade.UNDECIDED
    return Graded(
        grade=grade,
        parts=parts,
        decisive=decisive,
        agreeing=agreeing,
        contradicting=contradicting,
    )


def decisive_of(parts: Sequence[PooledPart]) -> PooledPart:
    """The part whose pooled verdict is that of the claim."""
    verdict = rules.decisive([part.verdict for part in parts])
    return next(part for part in parts if part.verdict is verdict)


def _answer(conclusion: Conclusion) -> bool | None:
    """Whether a conclusion is for the claim; None: neither for nor against it."""
    if conclusion == Conclusion.HOLDS:
        return True
    return False if conclusion in FAILED else None

"""The grade of a claim: what its tests in several set-ups amount to.

A set-up is a season on a dataset of photographs. Each part of a claim is pooled over the
set-ups that could judge it (stats.pooling), and the pooled differences are judged like
those of one season, with Holm's adjustment over the claims of the paper: that is the
headline. Each set-up has a verdict of its own, without the adjustment: it repeats a test
and chooses none. The rule is the same for what holds and for what fails:

    depends on the set-up   the set-ups differ by more than chance, and in what they say
    undecided               the pooled verdict is, or a set-up contradicts it
    confirmed               two set-ups or more say alone what the pooled verdict says
    seen once               fewer do
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

import numpy as np

from benchmark.boards.claims_file import ClaimEntry, VerdictEntry
from benchmark.papers.printed_tables import Claim, is_time
from benchmark.stats import pooling, significance
from benchmark.stats import verdicts as rules
from benchmark.stats.claim_kinds import FAILED, KINDS, ClaimKind, Conclusion, Side
from benchmark.stats.comparisons import Comparison
from benchmark.stats.pooling import SetUp
from benchmark.stats.significance import ALPHA, holm_products
from benchmark.stats.verdicts import Flag, Rule, Size, Verdict


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
FAILING = (Grade.FAILS, Grade.NO_EFFECT)


@dataclass(frozen=True, kw_only=True)
class ClaimOnSetUp:
    """A claim on a dataset of photographs, as a season found it."""

    finding: ClaimEntry
    images: str  # which ones; equal texts: the same ones
    # (G,) by part of the claim: what each image does to its difference
    noise: Mapping[int, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class PooledPart:
    """A part of a claim over its set-ups."""

    verdict: Verdict
    decimals: int  # of its metric
    set_ups: tuple[
        ClaimOnSetUp, ...
    ]  # those that are pooled; empty: none could judge it
    heterogeneity: float  # p
    is_out_of_reach: bool  # whether no test here can judge it


@dataclass(frozen=True, kw_only=True)
class Graded:
    """A claim over its set-ups."""

    grade: Grade
    parts: tuple[PooledPart, ...]
    agreeing: int = 0  # set-ups that say alone what the pooled verdict says
    contradicting: int = 0
    heterogeneity: float = 1.0  # p, adjusted over the claims of the paper

    @property
    def decisive(self) -> PooledPart:
        """The part whose verdict is that of the claim."""
        verdict = rules.decisive([part.verdict for part in self.parts])
        return next(part for part in self.parts if part.verdict is verdict)

    @property
    def is_smaller(self) -> bool:
        """Whether it holds by less than the paper prints."""
        is_smaller = self.decisive.verdict.size == Size.SMALLER
        return self.grade in HOLDING and is_smaller

    @property
    def is_confirmed(self) -> bool:
        """Whether two set-ups or more say alone what it says."""
        return self.agreeing >= 2


def graded(claims: Sequence[tuple[Claim, Sequence[ClaimOnSetUp]]]) -> list[Graded]:
    """The counted claims of one paper, each with one test on photographs or more."""
    pooled = [_pooled(claim, tests) for claim, tests in claims]
    asked = [[part.verdict for part in parts] for parts in pooled]
    judged = rules.judge(asked)
    chances = [_heterogeneity(parts) for parts in pooled]
    adjusted = np.minimum(1.0, holm_products(chances)) if chances else []
    listed = []
    for (claim, tests), parts, verdicts, p in zip(
        claims, pooled, judged, adjusted, strict=True
    ):
        whole = [
            replace(part, verdict=verdict)
            for part, verdict in zip(parts, verdicts, strict=True)
        ]
        listed.append(_graded(claim, tests, tuple(whole), float(p)))
    return listed


def _pooled(claim: Claim, tests: Sequence[ClaimOnSetUp]) -> list[PooledPart]:
    """The parts that a test has, before they are judged."""
    parts = []
    for index, declared in enumerate(claim.parts):
        entries = [(test, part_of(test.finding, index)) for test in tests]
        known = [(test, entry) for test, entry in entries if entry]
        if not known:
            continue
        usable = [(test, entry) for test, entry in known if _can_judge(entry)]
        if is_time(declared.metric):  # of machines that differ
            usable = usable[:1]
        kind = KINDS[declared.kind]
        if usable:
            parts.append(_judged_by(kind, usable))
        else:
            parts.append(_judged_by_none(kind, known))
    return parts


def part_of(finding: ClaimEntry, index: int) -> VerdictEntry | None:
    """A part of a claim by its place in the claim; None where it was not run."""
    return next((part for part in finding.parts if part.part == index), None)


def _can_judge(entry: VerdictEntry) -> bool:
    is_known = entry.doubt is not None and entry.low is not None
    is_unclear = entry.is_blocked or entry.favours == Side.UNKNOWN
    return is_known and not is_unclear


def _judged_by(
    kind: ClaimKind, usable: Sequence[tuple[ClaimOnSetUp, VerdictEntry]]
) -> PooledPart:
    """A part over the set-ups that can judge it."""
    entries = [entry for _, entry in usable]
    set_ups = [_set_up(test, entry) for test, entry in usable]
    pooled, first = pooling.pool(set_ups), entries[0]
    comparison = replace(
        _comparison(first),
        difference=pooled.difference,
        doubt=pooled.doubt,
        is_of_these_trainings=any(entry.is_of_these_trainings for entry in entries),
    )
    here = fmean(entry.slopes[0] for entry in entries)
    verdict = Verdict(
        comparison=comparison,
        rule=Rule(kind=kind, margin=fmean(entry.margin for entry in entries)),
        printed=first.printed,
        has_scale=first.size is not None,
        slopes=(here, first.slopes[1]),
        biases=tuple(
            Flag("", e.remedy, favours=e.favours) for e in entries if e.favours
        ),
    )
    return PooledPart(
        verdict=verdict,
        decimals=first.decimals,
        set_ups=tuple(test for test, _ in usable),
        heterogeneity=pooling.heterogeneity(set_ups),
        is_out_of_reach=False,
    )


def _judged_by_none(
    kind: ClaimKind, known: Sequence[tuple[ClaimOnSetUp, VerdictEntry]]
) -> PooledPart:
    """A part that no set-up can judge."""
    test, first = known[0]
    verdict = Verdict(
        comparison=_comparison(first),
        rule=Rule(kind=kind, margin=first.margin),
        printed=first.printed,
        blocked=Flag("", first.remedy or test.finding.reason, blocks=True),
    )
    return PooledPart(
        verdict=verdict,
        decimals=first.decimals,
        set_ups=(),
        heterogeneity=1.0,
        is_out_of_reach=all(entry.is_out_of_reach for _, entry in known),
    )


def _comparison(entry: VerdictEntry) -> Comparison:
    return Comparison(
        first=entry.first,
        second=entry.second,
        metric=entry.metric,
        titles=(entry.first, entry.second),
        difference=entry.difference,
        doubt=entry.doubt or pooling.NO_DOUBT,
        is_of_these_trainings=entry.is_of_these_trainings,
    )


def _set_up(test: ClaimOnSetUp, entry: VerdictEntry) -> SetUp:
    return SetUp(
        difference=entry.difference,
        doubt=entry.doubt,
        noise=test.noise.get(entry.part),
        images=test.images,
    )


def _heterogeneity(parts: Sequence[PooledPart]) -> float:
    """p of a claim: that of its parts whose set-ups differ most, by Bonferroni."""
    return min(1.0, len(parts) * min(part.heterogeneity for part in parts))


def _graded(
    claim: Claim, tests: Sequence[ClaimOnSetUp], parts: tuple[PooledPart, ...], p: float
) -> Graded:
    verdicts = [part.verdict for part in parts]
    conclusion = rules.decisive(verdicts).conclusion
    alone = [conclusion_alone(claim, test.finding) for test in tests]
    said = [_saying(each) for each in alone]
    agreeing = said.count(_saying(conclusion))
    contradicting = len(said) - agreeing - said.count(None)
    facts = {"parts": parts, "heterogeneity": p}
    if p <= ALPHA and len(set(said)) > 1:
        return Graded(grade=Grade.DEPENDS, **facts)
    if conclusion == Conclusion.UNDECIDED:
        lacks = [part for part in parts if not part.set_ups]
        is_out = any(part.is_out_of_reach for part in lacks)
        grade = Grade.OUT_OF_REACH if is_out else Grade.UNDECIDED
        return Graded(grade=grade, **facts)
    facts |= {"agreeing": agreeing, "contradicting": contradicting}
    if contradicting:
        return Graded(grade=Grade.UNDECIDED, **facts)
    if conclusion == Conclusion.HOLDS:
        grade = Grade.CONFIRMED if agreeing >= 2 else Grade.SEEN_ONCE
    elif conclusion == Conclusion.NO_DIFFERENCE:
        grade = Grade.NO_EFFECT
    else:
        grade = Grade.FAILS
    return Graded(grade=grade, **facts)


def conclusion_alone(claim: Claim, finding: ClaimEntry) -> Conclusion:
    """What a set-up says of a claim for itself, without an adjustment for others."""
    conclusions = []
    for entry in finding.parts:
        if not _can_judge(entry):
            conclusions.append(Conclusion.UNDECIDED)
            continue
        kind = KINDS[claim.parts[entry.part].kind]
        rule = Rule(kind=kind, margin=entry.margin)
        estimate = significance.on_other_images(entry.difference, entry.doubt)
        conclusion, _ = rule.conclusion(estimate, rule.p(estimate))
        if entry.favours:
            conclusion = kind.despite(conclusion, entry.favours)
        conclusions.append(conclusion)
    return min(conclusions, key=rules.WORST_FIRST.index)


def _saying(conclusion: Conclusion) -> bool | None:
    """Whether a conclusion is for the claim; None: neither for nor against it."""
    if conclusion == Conclusion.HOLDS:
        return True
    return False if conclusion in FAILED else None

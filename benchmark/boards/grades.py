"""The grade of a claim: what its tests in several set-ups amount to.

A set-up is a season on a dataset of photographs. Each part of a claim is pooled over the
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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

import numpy as np

from benchmark.boards.claims_file import ClaimEntry, VerdictEntry
from benchmark.papers.printed_tables import Claim, is_time
from benchmark.stats import pooling
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
FAILING = (Grade.FAILS, Grade.NO_EFFECT)  # confirmed or seen once, too


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

    index: int  # among the parts of the claim
    verdict: Verdict
    decimals: int  # of its metric
    # those that are pooled; empty: none could judge it
    set_ups: tuple[ClaimOnSetUp, ...] = ()
    alone: tuple[Conclusion, ...] = ()  # what each of these says for itself
    heterogeneity: float = 1.0  # p
    is_out_of_reach: bool = False  # whether no test here can judge it

    def saying(self, answer: bool) -> int:
        """How many set-ups say alone that it holds, or that it does not."""
        return list(map(_answer, self.alone)).count(answer)

    def alone_in(self, finding: ClaimEntry) -> Conclusion:
        """What a set-up says of it; undecided where it cannot judge it."""
        for set_up, conclusion in zip(self.set_ups, self.alone, strict=True):
            if set_up.finding is finding:
                return conclusion
        return Conclusion.UNDECIDED


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


def graded(claims: Sequence[tuple[Claim, Sequence[ClaimOnSetUp]]]) -> list[Graded]:
    """The counted claims of one paper, each with one test on photographs or more."""
    pooled = [_pooled(claim, tests) for claim, tests in claims]
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


def _pooled(claim: Claim, tests: Sequence[ClaimOnSetUp]) -> list[PooledPart]:
    """The parts that a test has, before they are judged."""
    alone = [verdicts_alone(claim, test.finding) for test in tests]
    parts = []
    for index, declared in enumerate(claim.parts):
        known, usable, conclusions = [], [], []
        for test, verdicts in zip(tests, alone, strict=True):
            entry = part_of(test.finding, index)
            if entry is None:
                continue
            known.append((test, entry))
            is_first = not usable or not is_time(declared.metric)  # machines differ
            if _can_judge(entry) and is_first:
                usable.append((test, entry))
                conclusions.append(verdicts[index].conclusion)
        if usable:
            part = _judged_by(index, KINDS[declared.kind], usable)
            parts.append(replace(part, alone=tuple(conclusions)))
        elif known:
            parts.append(_judged_by_none(index, KINDS[declared.kind], known))
    return parts


def verdicts_alone(claim: Claim, finding: ClaimEntry) -> dict[int, Verdict]:
    """What a set-up says of each part of a claim for itself, by its place in the claim,
    without an adjustment for other claims."""
    verdicts = []
    for entry in finding.parts:
        verdict = Verdict(
            comparison=_comparison(entry),
            rule=Rule(kind=KINDS[claim.parts[entry.part].kind], margin=entry.margin),
            biases=_biases([entry]),
        )
        if not _can_judge(entry):
            verdict = replace(verdict, blocked=Flag("", finding.reason, blocks=True))
        verdicts.append(verdict)
    (judged,) = rules.judge([verdicts])
    return {
        entry.part: verdict
        for entry, verdict in zip(finding.parts, judged, strict=True)
    }


def _biases(entries: Sequence[VerdictEntry]) -> tuple[Flag, ...]:
    """What favours a side in some set-up."""
    return tuple(
        Flag("", entry.remedy, favours=entry.favours)
        for entry in entries
        if entry.favours
    )


def part_of(finding: ClaimEntry, index: int) -> VerdictEntry | None:
    """A part of a claim by its place in the claim; None where it was not run."""
    return next((part for part in finding.parts if part.part == index), None)


def _can_judge(entry: VerdictEntry) -> bool:
    is_known = entry.doubt is not None and entry.low is not None
    is_unclear = entry.is_blocked or entry.favours == Side.UNKNOWN
    return is_known and not is_unclear


def _judged_by(
    index: int, kind: ClaimKind, usable: Sequence[tuple[ClaimOnSetUp, VerdictEntry]]
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
    slope = fmean(entry.slopes[0] for entry in entries)
    verdict = Verdict(
        comparison=comparison,
        rule=Rule(kind=kind, margin=fmean(entry.margin for entry in entries)),
        printed=first.printed,
        has_scale=first.size is not None,
        slopes=(slope, first.slopes[1]),
        biases=_biases(entries),
    )
    return PooledPart(
        index=index,
        verdict=verdict,
        decimals=first.decimals,
        set_ups=tuple(test for test, _ in usable),
        heterogeneity=pooling.heterogeneity(set_ups),
    )


def _judged_by_none(
    index: int, kind: ClaimKind, known: Sequence[tuple[ClaimOnSetUp, VerdictEntry]]
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
        index=index,
        verdict=verdict,
        decimals=first.decimals,
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
    return min(1.0, len(parts) * most_unlike(parts).heterogeneity)


def _graded(parts: tuple[PooledPart, ...], p: float) -> Graded:
    """`p` is that of their heterogeneity, after the adjustment."""
    facts = {"parts": parts, "heterogeneity": p}
    answers = set(map(_answer, most_unlike(parts).alone))
    if p <= ALPHA and len(answers) > 1:
        return Graded(grade=Grade.DEPENDS, **facts)
    decisive = decisive_of(parts)
    conclusion = decisive.verdict.conclusion
    if conclusion == Conclusion.UNDECIDED:
        is_out_of_reach = any(part.is_out_of_reach for part in parts)
        grade = Grade.OUT_OF_REACH if is_out_of_reach else Grade.UNDECIDED
        return Graded(grade=grade, **facts)
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
    return Graded(grade=grade, agreeing=agreeing, contradicting=contradicting, **facts)


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

"""The ledger of claims: every claim of the papers with what all seasons say on it.

A season's verdict on a dataset is a finding. The group of a claim follows from all its findings, as
KEY has it: a finding that is undecided does not change the group, so a group need not be what every
finding says. Knows no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_lowercase
from typing import NamedTuple

from benchmark.analysis.season_claims import Compared, Judged, Measured, SeasonClaims
from benchmark.analysis.significance import ALPHA
from benchmark.analysis.verdict_rules import Conclusion, Size, two_digits
from benchmark.papers.printed_tables import Claim, papers

FAILED = (
    Conclusion.REVERSED,
    Conclusion.BETTER,
    Conclusion.WORSE,
    Conclusion.NO_DIFFERENCE,
)
UNPLAYABLE = "about what nothing here can measure"
UNTRAINED = "about trained networks whose weights no season had"
PLAYABLE = "playable, and run by no season yet"


class Group(StrEnum):
    """What all seasons together say on a claim, in the order in which a reader asks."""

    REPLICATED = "replicated"
    SMALLER = "smaller"
    MIXED = "mixed"
    NULL = "null"
    REVERSED = "reversed"
    UNLIKE = "unlike"
    UNDECIDED = "undecided"
    UNTESTED = "untested"


class Meaning(NamedTuple):
    """What a group says, and the verdicts of seasons that speak for it."""

    text: str
    verdicts: tuple[Conclusion, ...]
    brief: str  # the answer to a claim
    also: str = ""  # what a verdict needs beside


KEY = {
    Group.REPLICATED: Meaning(
        "holds in one test or more, fails in none",
        (Conclusion.HOLDS,),
        "holds",
        "and not always with an interval below the printed difference",
    ),
    Group.SMALLER: Meaning(
        "claims a difference that holds wherever it is decided, by less than printed",
        (Conclusion.HOLDS,),
        "holds, by less than printed,",
        "each with an interval below the printed difference",
    ),
    Group.MIXED: Meaning(
        "holds in one test, fails in another",
        (Conclusion.HOLDS,),
        "holds",
        "beside a test in which it fails",
    ),
    Group.NULL: Meaning(
        "holds in no test; in one or more, no difference beyond the margin",
        (Conclusion.NO_DIFFERENCE,),
        "no difference",
    ),
    Group.REVERSED: Meaning(
        "holds in no test; in one or more, the opposite was measured",
        (Conclusion.REVERSED,),
        "the opposite",
    ),
    Group.UNLIKE: Meaning(
        "claims no difference; holds in no test; in one or more, there is one",
        (Conclusion.BETTER, Conclusion.WORSE),
        "a difference",
    ),
    Group.UNDECIDED: Meaning(
        "tested, and nothing is concluded", (Conclusion.UNDECIDED,), "undecided"
    ),
    Group.UNTESTED: Meaning("no season has run it", (Conclusion.NOT_RUN,), "untested"),
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a season says on a claim, on one dataset."""

    season: str
    dataset: str  # title
    is_drawn: bool  # by the code: no photographs
    judged: Judged

    @property
    def compared(self) -> Compared:
        return self.judged.compared

    @property
    def place(self) -> str:
        """The dataset with its season."""
        return f"{self.dataset} ({self.season})"

    def hangs_on_one_of(self, tests: int) -> bool:
        """Whether p decides it, and would not if it were adjusted over so many tests as well."""
        return self.compared.p is not None and self.compared.p * tests > ALPHA

    @property
    def needs(self) -> str:
        """As of `LedgerRow`, of this test."""
        return _needed([self.compared])


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """A claim with all that was found on it."""

    paper: str
    claim: Claim
    findings: list[Finding]  # where it was run
    lacks: dict[str, list[str]]  # why it was not -> the seasons where it was not

    @property
    def rests_on_drawings(self) -> bool:
        """Whether the claim is decided, and by tests on drawings alone."""
        deciding = [f for f in self.findings if f.judged.conclusion != Conclusion.UNDECIDED]
        return bool(deciding) and all(finding.is_drawn for finding in deciding)

    @property
    def group(self) -> Group:
        return _group(self.claim, self.findings)

    @property
    def stricter_group(self) -> Group:
        """The group if p were adjusted over the tests of the claim, too (Bonferroni)."""
        sure = [f for f in self.findings if not f.hangs_on_one_of(len(self.findings))]
        return _group(self.claim, sure) if sure or not self.findings else Group.UNDECIDED

    @property
    def is_elsewhere(self) -> bool:
        """Whether the sentence names data on which nothing was measured: the same comparison
        here."""
        return bool(self.findings) and all(f.judged.is_elsewhere for f in self.findings)

    @property
    def agreeing(self) -> int:
        """How many findings are what the group says."""
        verdicts = KEY[self.group].verdicts
        return sum(finding.judged.conclusion in verdicts for finding in self.findings)

    @property
    def extent(self) -> str:
        """In how many of its tests it is what its group says, in words."""
        count = len(self.findings)
        return f"{KEY[self.group].brief} in {self.agreeing} of {count} test{'s' * (count != 1)}"

    @property
    def needs(self) -> str:
        """What would decide an undecided claim with the least effort, in short: further seeds, or
        else test images; empty where nothing would."""
        return _needed([finding.compared for finding in self.findings])

    @property
    def lacking(self) -> str:
        """Why it was not run: one reason, or that of each season."""
        if len(self.lacks) == 1:
            return next(iter(self.lacks))
        by_season = [f"{reason} in {', '.join(where)}" for reason, where in self.lacks.items()]
        return "; ".join(by_season)


def _group(claim: Claim, findings: Sequence[Finding]) -> Group:
    conclusions = {finding.judged.conclusion for finding in findings}
    if not conclusions:
        return Group.UNTESTED
    if Conclusion.HOLDS in conclusions:
        if conclusions & {*FAILED}:
            return Group.MIXED
        holding = [f for f in findings if f.judged.conclusion == Conclusion.HOLDS]
        sizes = {finding.compared.size for finding in holding}
        is_smaller = claim.kind == "ordered" and sizes == {Size.SMALLER}
        return Group.SMALLER if is_smaller else Group.REPLICATED
    if Conclusion.REVERSED in conclusions:
        return Group.REVERSED
    if conclusions & {Conclusion.BETTER, Conclusion.WORSE}:
        return Group.UNLIKE
    is_null = Conclusion.NO_DIFFERENCE in conclusions
    return Group.NULL if is_null else Group.UNDECIDED


def _needed(compared: Sequence[Compared]) -> str:
    seeds = min((c.seeds for c in compared if c.seeds), default=0)
    if seeds:
        return f"{seeds} more seed{'s' * (seeds > 1)}"
    images, beside = min(((c.images, c.seeds_beside) for c in compared if c.images), default=(0, 0))
    with_seeds = f" with {beside} more seeds" if beside else ""
    return f"{two_digits(images):,} images{with_seeds}" if images else ""


def ledger(seasons: Sequence[SeasonClaims]) -> list[LedgerRow]:
    """A row for every claim of every paper, by group, then in the order of the papers."""
    measured = [(season, dataset) for season in seasons for dataset in season.datasets]
    rows = [
        _row(name, claim, measured) for name, paper in papers().items() for claim in paper.claims
    ]
    order = list(Group)
    return sorted(rows, key=lambda row: order.index(row.group))


def untested_reasons(rows: Sequence[LedgerRow]) -> dict[str, list[LedgerRow]]:
    """The untested claims by what keeps them untested; no reason that none has."""
    named: dict[str, list[LedgerRow]] = {UNPLAYABLE: [], UNTRAINED: [], PLAYABLE: []}
    for row in rows:
        if row.group == Group.UNTESTED:
            named[untested_for(row.claim)].append(row)
    return {reason: of_reason for reason, of_reason in named.items() if of_reason}


def untested_for(claim: Claim) -> str:
    """What keeps a claim untested."""
    if claim.unplayed:
        return UNPLAYABLE
    return UNTRAINED if claim.weights else PLAYABLE


def same_comparisons(rows: Sequence[LedgerRow]) -> dict[tuple[str, str], str]:
    """Letters, a to z, then aa, for each (paper, id of a claim) that rests on the same comparisons
    as another one: the same presets and the same metric wherever both were tested."""
    by_comparison: dict[tuple, list[LedgerRow]] = {}
    for row in rows:
        if row.findings:
            by_comparison.setdefault(_comparisons(row), []).append(row)
    shared = [of_one for of_one in by_comparison.values() if len(of_one) > 1]
    letters = (first + last for first in ("", *ascii_lowercase) for last in ascii_lowercase)
    return {
        (row.paper, row.claim.id): letter
        for letter, of_one in zip(letters, shared, strict=False)
        for row in of_one
    }


def _comparisons(row: LedgerRow) -> tuple:
    """What was compared where, whichever way round the claim has it."""
    return tuple(
        (f.season, f.dataset, f.compared.metric, *sorted((f.compared.first, f.compared.second)))
        for f in row.findings
    )


def _row(paper: str, claim: Claim, measured: Sequence[tuple[SeasonClaims, Measured]]) -> LedgerRow:
    findings: list[Finding] = []
    lacks: dict[str, list[str]] = {}
    for season, dataset in measured:
        for judged in dataset.claims:
            if (judged.paper, judged.id) != (paper, claim.id):
                continue
            if judged.compared is None:
                where = lacks.setdefault(judged.reason, [])
                where += [season.season] * (season.season not in where)
            else:
                findings.append(
                    Finding(
                        season=season.season,
                        dataset=dataset.title,
                        is_drawn=dataset.is_drawn,
                        judged=judged,
                    )
                )
    return LedgerRow(paper=paper, claim=claim, findings=findings, lacks=lacks)

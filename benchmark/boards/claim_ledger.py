"""The ledger of claims: every claim of the papers with what all seasons say on it.

A season's verdict on a dataset is a finding. The group of a claim follows from all its findings, as
KEY has it: a finding that is undecided does not change the group, so a group need not be what every
finding says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from string import ascii_lowercase
from typing import NamedTuple

from benchmark.boards.season_claims import Compared, Judged, SeasonClaims
from benchmark.papers.printed_tables import Claim, papers
from benchmark.stats.verdicts import Conclusion, Size, two_digits

HOLDS, NULL, REVERSED = Conclusion.HOLDS, Conclusion.NO_DIFFERENCE, Conclusion.REVERSED
UNLIKE = (Conclusion.BETTER, Conclusion.WORSE)
FAILED = (REVERSED, *UNLIKE, NULL)
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

    brief: str  # the answer to a claim
    verdicts: tuple[Conclusion, ...]
    text: str


KEY = {
    Group.REPLICATED: Meaning("holds", (HOLDS,), "holds in one test or more, fails in none"),
    Group.SMALLER: Meaning(
        "holds, by less than printed,",
        (HOLDS,),
        "claims a difference that holds wherever it is decided, by less than printed",
    ),
    Group.MIXED: Meaning("holds", (HOLDS,), "holds in one test, fails in another"),
    Group.NULL: Meaning(
        "no difference",
        (NULL,),
        "holds in no test; in one or more, no difference beyond the margin",
    ),
    Group.REVERSED: Meaning(
        "the opposite", (REVERSED,), "holds in no test; in one or more, the opposite was measured"
    ),
    Group.UNLIKE: Meaning(
        "a difference",
        UNLIKE,
        "claims no difference; holds in no test; in one or more, there is one",
    ),
    Group.UNDECIDED: Meaning(
        "undecided", (Conclusion.UNDECIDED,), "tested, and nothing is concluded"
    ),
    Group.UNTESTED: Meaning("untested", (Conclusion.NOT_RUN,), "no season has run it"),
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

    @cached_property
    def group(self) -> Group:
        found = {finding.judged.conclusion for finding in self.findings}
        if not found:
            return Group.UNTESTED
        if HOLDS in found and found.isdisjoint(FAILED):
            sizes = {f.compared.size for f in self.findings if f.judged.conclusion == HOLDS}
            is_smaller = self.claim.kind == "ordered" and sizes == {Size.SMALLER}
            return Group.SMALLER if is_smaller else Group.REPLICATED
        if HOLDS in found:
            return Group.MIXED
        failed = (Group.REVERSED, Group.UNLIKE, Group.NULL)
        return next((of for of in failed if found & {*KEY[of].verdicts}), Group.UNDECIDED)

    @property
    def rests_on_drawings(self) -> bool:
        """Whether the claim is decided, and by tests on drawings alone."""
        deciding = [f for f in self.findings if f.judged.conclusion != Conclusion.UNDECIDED]
        return bool(deciding) and all(finding.is_drawn for finding in deciding)

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
        return "; ".join(f"{reason} in {', '.join(of)}" for reason, of in self.lacks.items())


def _needed(compared: Sequence[Compared]) -> str:
    seeds = min((c.seeds for c in compared if c.seeds), default=0)
    if seeds:
        return f"{seeds} more seed{'s' * (seeds > 1)}"
    images, beside = min(((c.images, c.seeds_beside) for c in compared if c.images), default=(0, 0))
    with_seeds = f" with {beside} more seeds" if beside else ""
    return f"{two_digits(images):,} images{with_seeds}" if images else ""


def ledger(seasons: Sequence[SeasonClaims]) -> list[LedgerRow]:
    """A row for every claim of every paper, by group, then in the order of the papers."""
    rows = {
        (name, claim.id): LedgerRow(paper=name, claim=claim, findings=[], lacks={})
        for name, paper in papers().items()
        for claim in paper.claims
    }
    for season in seasons:
        for data in season.datasets:
            facts = {"season": season.season, "dataset": data.title, "is_drawn": data.is_drawn}
            for judged in data.claims:
                row = rows.get((judged.paper, judged.id))
                if row is None:  # a season's own claim
                    continue
                if judged.compared is not None:
                    row.findings.append(Finding(judged=judged, **facts))
                elif season.season not in row.lacks.setdefault(judged.reason, []):
                    row.lacks[judged.reason].append(season.season)
    order = list(Group)
    return sorted(rows.values(), key=lambda row: order.index(row.group))


def untested_reasons(rows: Sequence[LedgerRow]) -> dict[str, list[LedgerRow]]:
    """The untested claims by what keeps them untested; no reason that none has."""
    untested = [row for row in rows if row.group == Group.UNTESTED]
    named = {
        reason: [row for row in untested if untested_for(row.claim) == reason]
        for reason in (UNPLAYABLE, UNTRAINED, PLAYABLE)
    }
    return {reason: of_reason for reason, of_reason in named.items() if of_reason}


def untested_for(claim: Claim) -> str:
    """What keeps a claim untested."""
    return UNPLAYABLE if claim.unplayed else UNTRAINED if claim.weights else PLAYABLE


def same_comparisons(rows: Sequence[LedgerRow]) -> dict[tuple[str, str], str]:
    """Letters, a to z, then aa, for each (paper, id of a claim) that rests on the same comparisons
    as another one: the same presets and the same metric wherever both were tested, whichever way
    round the claim has them."""
    by_comparison: dict[tuple, list[LedgerRow]] = {}
    for row in rows:
        compared = [
            (f.season, f.dataset, f.compared.metric, *sorted((f.compared.first, f.compared.second)))
            for f in row.findings
        ]
        if compared:
            by_comparison.setdefault(tuple(compared), []).append(row)
    shared = [of_one for of_one in by_comparison.values() if len(of_one) > 1]
    letters = (first + last for first in ("", *ascii_lowercase) for last in ascii_lowercase)
    return {
        (row.paper, row.claim.id): letter
        for letter, of_one in zip(letters, shared, strict=False)
        for row in of_one
    }

"""What seasons say on the claims, as data, and the ledger: every claim with what all
seasons say.

A report writes reports/<season>/claims.json; the ledger reads these files and no
records, so that no season depends on another. A season's verdict on a dataset is a
finding. The group of a claim follows from its findings on photographs: one that is
undecided does not change the group, so a group need not be what every finding says.
Drawings are a test of the machinery.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from benchmark.boards import flags
from benchmark.core.errors import Strict, checked, corrected_by
from benchmark.core.files import read_object
from benchmark.core.names import Name
from benchmark.papers.printed_tables import Claim, papers
from benchmark.stats.claim_kinds import ORDERED, Conclusion
from benchmark.stats.verdicts import MOST_SEEDS, SHARES, Size, two_digits

FILE = "claims.json"
DRAWN = "drawn"  # split of a dataset that the code draws
HOLDS = Conclusion.HOLDS
FAILED = (
    Conclusion.REVERSED,
    Conclusion.BETTER,
    Conclusion.WORSE,
    Conclusion.NO_DIFFERENCE,
)
UNPLAYABLE = "about what this project cannot measure"
ELSEWHERE = "about data that no season has"
UNTRAINED = "about trained networks whose weights no season had"
PLAYABLE = "that could be run, and was not yet"
BEYOND = f"over {MOST_SEEDS} seeds or {round(1 / SHARES[-1], -2):,.0f} times the images"
OUTCOMES = ("reversed", "undecided now", "decided now", "kept", "still undecided")

# A season's claims.json ---------------------------------------------------------------


class VerdictEntry(Strict):
    """The comparison of a part of a claim on a dataset."""

    first: str
    second: str  # "": a difference of two metrics of the first
    conclusion: Conclusion
    metric: str  # heading
    decimals: int
    difference: float  # positive: the first is better
    low: float | None  # ends of the interval; None: there is none
    high: float | None
    p: float | None  # after Holm's adjustment, of a conclusion that rests on it
    is_of_these_trainings: bool  # the interval says nothing of other trainings
    printed: float | None
    margin: float
    size: Size | None
    seeds: int | None = None  # further trainings that would decide it
    images: int | None = None  # test images that would decide it
    seeds_beside: int = 0  # further trainings that these images need
    remedy: str = ""  # what would decide it where no number of seeds or images would
    controls: "list[VerdictEntry]" = []  # the same comparison in other set-ups
    # of an undecided one against its paper without a control
    withheld: Conclusion | None = None


class ClaimEntry(Strict):
    """The verdict on a claim, on a dataset of a season."""

    paper: str
    id: str
    conclusion: Conclusion
    reason: str
    is_elsewhere: bool  # the sentence names another dataset: shown, not counted
    cautions: list[str]  # flags.said of what speaks against trusting it
    parts: list[VerdictEntry]  # those that were run
    # the part whose conclusion is that of the claim; None: none was run
    decisive: int | None
    on_test_set: Conclusion | None = None  # for other trainings; None in older reports
    # of relevance, beside `own`: the conclusions on their queries and directions alone,
    # by `own` and by the layer, and whether it changes the verdict
    layers: dict[str, tuple[Conclusion, Conclusion, bool]] = {}
    place: str = Field("", exclude=True)  # in the ledger: the dataset with its season
    # in the ledger: by the code, no photographs
    is_drawn: bool = Field(False, exclude=True)
    title: str = Field("", exclude=True)  # in the ledger: the dataset
    # in the ledger: of the best row in retrieval
    level: float = Field(0.0, exclude=True)

    @property
    def compared(self) -> VerdictEntry:
        """The part that decides, of a claim that was run."""
        return self.parts[self.decisive]

    def part_like(self, other: VerdictEntry) -> VerdictEntry | None:
        """The part that compares the same; None where it was not run."""
        same = (other.first, other.second, other.metric)
        return next(
            (p for p in self.parts if (p.first, p.second, p.metric) == same), None
        )

    @property
    def is_withheld(self) -> bool:
        """Whether a part is against the paper, and undecided for want of a control."""
        return any(part.withheld for part in self.parts)

    @property
    def needs(self) -> str:
        """What would decide an undecided test: seeds, or else images, or else what its
        parts lack. The part that needs most decides; one that alone may deny it comes
        first."""
        parts = [part for part in self.parts if part.conclusion == Conclusion.UNDECIDED]
        denying = [
            p for p in parts if p.withheld or p.difference < 0 and (p.seeds or p.images)
        ]
        parts = [self.compared] if denying else parts
        if parts and all(part.seeds for part in parts):
            seeds = max(part.seeds for part in parts)
            return f"{seeds} more seeds" if seeds > 1 else "1 more seed"
        if parts and all(part.images for part in parts):
            images, seeds = max((part.images, part.seeds_beside) for part in parts)
            needed = f"{two_digits(images):,} images"
            return f"{needed} with {seeds} more seeds" if seeds else needed
        remedies = dict.fromkeys(part.remedy for part in parts if part.remedy)
        if remedies:
            return ", ".join(remedies)
        return BEYOND if parts else ""


class RowEntry(Strict):
    """Where a row stands."""

    title: str
    mean: float  # of the metric that ranks
    rivals: list[int]  # ranks, from 1, of the rows that are not significantly different
    low: float | None = None  # ends of the interval; None: there is none
    high: float | None = None
    is_of_these_trainings: bool = False  # the interval says nothing of other trainings
    flags: dict[str, str] = {}  # name -> sentence

    @property
    def knows(self) -> list[str]:
        """Its flags that say that it knows more than others, such as the other test
        queries."""
        return [name for name in flags.FLATTERING if name in self.flags]


class Leader(Strict, extra="ignore"):  # which older reports have more of
    """The best row of a task, and those below it."""

    task: str
    metric: str
    is_compared: bool  # whether any two rows could differ significantly
    places: list[RowEntry]  # of all rows with a result, the best first

    @property
    def best(self) -> RowEntry:
        return self.places[0]

    @property
    def fair(self) -> RowEntry | None:
        """The best row that knows no more than others."""
        return next((place for place in self.places if not place.knows), None)

    def like(self, place: RowEntry) -> list[RowEntry]:
        """The other rows that are not significantly different from one."""
        return [self.places[rank - 1] for rank in place.rivals]


class Made(Strict):
    """How the results on a dataset were made, as its records say."""

    seeds: list[int]
    trainings: int
    # of the shortest and of the longest training; empty: there is none
    epochs: list[int]
    images: int  # of the training split
    hours: float  # of all trainings, one after the other
    # in which times were measured; tables of costs count them from 1
    settings: list[str]
    commits: list[str]  # of the code


class Measured(Strict, extra="ignore"):
    """A dataset of a season."""

    dataset: Name
    title: str
    split: str  # its name; two may have as many test images
    images: int  # of the test split
    made: Made
    leaders: list[Leader]
    claims: list[ClaimEntry]


class SeasonClaims(Strict):
    """A season's claims.json."""

    season: Name
    title: str
    datasets: list[Measured]


def read_seasons(folder: Path, season: str = "*") -> list[SeasonClaims]:
    """Every <season>/claims.json of a folder, by name, or of one season. Raises
    UserError for one that is none."""
    seasons = []
    for path in sorted(folder.glob(f"{season}/{FILE}")):
        with corrected_by(f"rematch report --season {path.parent.name}"):
            seasons.append(checked(SeasonClaims, read_object(path), str(path)))
    return seasons


# The ledger ---------------------------------------------------------------------------


class Group(StrEnum):
    """What the tests on photographs together say on a claim, with its mark in the
    matrix: it holds if it holds in one test or more and fails in none."""

    REPLICATED = "holds", "●"
    SMALLER = "holds, by less than printed", "◐"  # the interval, in a test that holds
    MIXED = "depends on the test", "±"  # holds in one, fails in another
    NULL = "no difference", "○"  # beyond the margin
    REVERSED = "the opposite", "✕"
    UNLIKE = "a difference where none is claimed", "≠"
    UNDECIDED = "undecided", "?"
    DRAWINGS = "tested on drawings alone", ""  # which decide nothing
    UNTESTED = "untested", ""
    UNCOUNTED = "not counted", ""  # is shown; its entry says why

    def __new__(cls, brief: str, mark: str) -> "Group":
        group = str.__new__(cls, brief)
        group._value_, group.mark = brief, mark
        return group


HOLDING = (Group.REPLICATED, Group.SMALLER)
FAILING = (Group.NULL, Group.REVERSED, Group.UNLIKE)


@dataclass(frozen=True, kw_only=True, eq=False)
class LedgerRow:
    """A claim with all that was found on it."""

    paper: str
    claim: Claim
    findings: list[ClaimEntry] = field(default_factory=list)  # where it was tested
    # the same comparison on data that the sentence is not about: shown, not counted
    alike: list[ClaimEntry] = field(default_factory=list)
    # why it was not -> in which seasons
    lacks: dict[str, list[str]] = field(default_factory=dict)

    def add(self, finding: ClaimEntry, season: SeasonClaims, data: Measured) -> None:
        """Add what a dataset of a season says."""
        if not finding.parts:
            lacking = self.lacks.setdefault(finding.reason, [])
            if season.season not in lacking:
                lacking.append(season.season)
            return
        levels = [
            leader.best.mean for leader in data.leaders if leader.task == "retrieval"
        ]
        where = {
            "place": f"{data.title} ({season.season})",
            "is_drawn": data.split == DRAWN,
            "title": data.title,
            "level": max(levels, default=0.0),
        }
        findings = self.alike if finding.is_elsewhere else self.findings
        findings.append(finding.model_copy(update=where))

    @cached_property
    def photographs(self) -> list[ClaimEntry]:
        """What tests on photographs found, those on the strongest features first."""
        return [finding for finding in self.findings if not finding.is_drawn]

    @cached_property
    def group(self) -> Group:
        if self.claim.uncounted:
            return Group.UNCOUNTED
        if self.photographs:
            return self.grouped(self.photographs)
        return Group.DRAWINGS if self.findings else Group.UNTESTED

    def grouped(self, findings: Sequence[ClaimEntry]) -> Group:
        """What some of its findings say."""
        found = {finding.conclusion for finding in findings}
        if HOLDS in found and found.isdisjoint(FAILED):
            held = [f for f in findings if f.conclusion == HOLDS]
            is_smaller = Size.SMALLER in {f.compared.size for f in held}
            is_ordered = self.claim.parts[0].kind == ORDERED.name
            return Group.SMALLER if is_smaller and is_ordered else Group.REPLICATED
        if HOLDS in found:
            return Group.MIXED
        if Conclusion.REVERSED in found:
            return Group.REVERSED
        if found & {Conclusion.BETTER, Conclusion.WORSE}:
            return Group.UNLIKE
        return Group.NULL if Conclusion.NO_DIFFERENCE in found else Group.UNDECIDED

    @property
    def is_withheld(self) -> bool:
        """Whether a test was against the paper, and undecided for want of a control."""
        return any(finding.is_withheld for finding in self.photographs)

    @property
    def needs(self) -> str:
        """What would decide an undecided claim: of the first test, whose mark comes
        first."""
        return self.findings[0].needs if self.findings else ""

    def is_in_part(self, finding: ClaimEntry) -> bool:
        """Whether parts of the claim were not run in a test."""
        return len(finding.parts) < len(self.claim.parts)

    @property
    def holds_in_part(self) -> bool:
        """Whether it holds, and in no test with all its parts."""
        held = [finding for finding in self.photographs if finding.conclusion == HOLDS]
        return self.group in HOLDING and all(map(self.is_in_part, held))

    @property
    def lacking(self) -> str:
        """Why it was not run: one reason, or that of each season."""
        if len(self.lacks) == 1:
            return next(iter(self.lacks))
        return "; ".join(
            f"{reason} in {', '.join(of)}" for reason, of in self.lacks.items()
        )


def ledger(seasons: Sequence[SeasonClaims]) -> list[LedgerRow]:
    """A row for every claim of every paper, by group, then in the order of the papers;
    a season's own claims are left out. Tests on photographs come first, then those on
    the strongest features: their strength is the level of the best row on them."""
    rows = {}
    for name, paper in papers().items():
        for claim in paper.claims:
            rows[name, claim.id] = LedgerRow(paper=name, claim=claim)
    for season in seasons:
        for data in season.datasets:
            for finding in data.claims:
                row = rows.get((finding.paper, finding.id))
                if row:
                    row.add(finding, season, data)
    for row in rows.values():
        row.findings.sort(key=lambda finding: (finding.is_drawn, -finding.level))
    order = list(Group)
    return sorted(rows.values(), key=lambda row: order.index(row.group))


class Again(NamedTuple):
    """A claim that was tested twice on the same photographs."""

    row: LedgerRow
    weak: ClaimEntry  # on the features whose best row is lower
    strong: ClaimEntry

    @property
    def outcome(self) -> str:
        """What becomes of the verdict."""
        weak, strong = (of.conclusion for of in (self.weak, self.strong))
        if Conclusion.UNDECIDED in (weak, strong):
            alike = "still undecided" if weak == strong else "undecided now"
            return "decided now" if weak == Conclusion.UNDECIDED != strong else alike
        return "kept" if weak == strong else "reversed"


def judged_again(rows: Sequence[LedgerRow]) -> list[Again]:
    """The claims with tests on several features of the same photographs: of these tests
    the one on the strongest features, and that on the next weaker ones."""
    found = []
    for row in (row for row in rows if row.group != Group.UNCOUNTED):
        for title in dict.fromkeys(finding.title for finding in row.photographs):
            tests = [finding for finding in row.photographs if finding.title == title]
            if len(tests) > 1:
                found.append(Again(row, tests[1], tests[0]))
    return sorted(found, key=lambda again: OUTCOMES.index(again.outcome))


def untested_for(claim: Claim) -> str:
    """What keeps a claim untested."""
    if claim.unplayed:
        return UNPLAYABLE
    return ELSEWHERE if claim.only_there else UNTRAINED if claim.weights else PLAYABLE

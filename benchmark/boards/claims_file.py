"""A season's claims.json: what it says on the claims, as data.

A report writes reports/<season>/claims.json, and beside it what each test image does to
each difference (EVIDENCE); the ledger reads these files and no records, so that no
season depends on another.
"""

from pathlib import Path

import pandas as pd
from pydantic import Field

from benchmark.boards import flags
from benchmark.core.errors import Strict, checked, corrected_by
from benchmark.core.files import read_object
from benchmark.core.names import Name
from benchmark.stats.claim_kinds import Conclusion, Side
from benchmark.stats.significance import Doubt
from benchmark.stats.verdicts import MOST_FOLDS, MOST_SEEDS, Size

FILE = "claims.json"
# a row per test image of a dataset of photographs, a column per part of a claim
EVIDENCE = "papers/evidence.parquet"
DRAWN = "drawn"  # split of a dataset that the code draws
BEYOND = f"more than {MOST_SEEDS} seeds or {MOST_FOLDS} folds"


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
    folds: int | None = None  # further folds that would decide it
    remedy: str = ""  # what would decide it where no number of seeds or folds would
    # what it is pooled by, over set-ups
    part: int = 0  # which part of its claim it is, from 0
    doubt: Doubt | None = None  # why the difference is uncertain
    slopes: tuple[float, float] = (1.0, 1.0)  # as of a Verdict
    favours: Side | None = None  # the side that all biases favour
    is_blocked: bool = False  # whether nothing can be concluded, whatever the numbers
    is_out_of_reach: bool = False  # and no test here can change that


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

    @property
    def needs(self) -> str:
        """What would decide an undecided test: seeds, or else folds, or else what its
        parts lack. The part that needs most decides; one that alone may deny it comes
        first."""
        parts = [part for part in self.parts if part.conclusion == Conclusion.UNDECIDED]
        denying = [
            part for part in parts if part.difference < 0 and (part.seeds or part.folds)
        ]
        parts = [self.compared] if denying else parts
        if parts and all(part.seeds for part in parts):
            seeds = max(part.seeds for part in parts)
            return f"{seeds} more seeds" if seeds > 1 else "1 more seed"
        if parts and all(part.folds for part in parts):
            folds = max(part.folds for part in parts)
            return f"{folds} more folds" if folds > 1 else "1 more fold"
        remedies = dict.fromkeys(part.remedy for part in parts if part.remedy)
        if remedies:
            return ", ".join(remedies)
        return BEYOND if parts else ""


class RowEntry(Strict):
    """Where a row stands."""

    title: str
    mean: float  # of the metric that ranks
    rivals: list[int]  # ranks, from 1, of the rows that are not significantly different
    # the best and the worst rank that it could have; None: reports before it was told
    ranks: tuple[int, int] | None = None
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
    test_images: str = ""  # digest of which ones these are
    made: Made
    leaders: list[Leader]
    claims: list[ClaimEntry]


class SeasonClaims(Strict):
    """A season's claims.json."""

    season: Name
    title: str
    datasets: list[Measured]


def column(paper: str, claim: str, part: int) -> str:
    """Of EVIDENCE: a part of a claim, from 0."""
    return f"{paper}/{claim}/{part}"


def read_evidence(folder: Path, season: str) -> pd.DataFrame:
    """Of a season's report, by dataset; empty where it has none."""
    path = folder / season / EVIDENCE
    if not path.is_file():
        return pd.DataFrame({"dataset": []})
    return pd.read_parquet(path)


def read_seasons(folder: Path, season: str = "*") -> list[SeasonClaims]:
    """Every <season>/claims.json of a folder, by name, or of one season. Raises
    UserError for one that is none."""
    seasons = []
    for path in sorted(folder.glob(f"{season}/{FILE}")):
        with corrected_by(f"rematch report --season {path.parent.name}"):
            seasons.append(checked(SeasonClaims, read_object(path), str(path)))
    return seasons

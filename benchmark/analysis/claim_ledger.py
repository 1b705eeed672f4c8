"""The ledger of claims: every claim of the papers with what all seasons say on it.

A season's verdict on a dataset is a finding. The group of a claim follows from all its findings:

    replicated  it holds on one dataset or more, and fails on none
    smaller     the same, but the interval of every dataset lies below the printed difference
    mixed       it holds on one dataset and fails on another
    null        nowhere does it hold, and somewhere the difference is within the margin
    reversed    nowhere does it hold, and somewhere the opposite is true
    undecided   it was tested, and nothing is concluded anywhere
    untested    no season plays what it compares

Knows no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmark.analysis.season_claims import Compared, Judged, Measured, SeasonClaims
from benchmark.analysis.verdict_rules import Conclusion, Size
from benchmark.papers.printed_tables import Claim, papers

FAILED = (
    Conclusion.REVERSED,
    Conclusion.BETTER,
    Conclusion.WORSE,
    Conclusion.NO_DIFFERENCE,
)


class Group(StrEnum):
    """What all seasons together say on a claim, in the order in which a reader asks."""

    REPLICATED = "replicated"
    SMALLER = "smaller"
    MIXED = "mixed"
    NULL = "null"
    REVERSED = "reversed"
    UNDECIDED = "undecided"
    UNTESTED = "untested"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a season says on a claim, on one dataset."""

    season: str
    dataset: str  # title
    judged: Judged

    @property
    def compared(self) -> Compared:
        return self.judged.compared


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """A claim with all that was found on it."""

    paper: str
    claim: Claim
    findings: list[Finding]  # where it was run
    lacks: list[str]  # why it was not, where it was not

    @property
    def group(self) -> Group:
        conclusions = {finding.judged.conclusion for finding in self.findings}
        if not conclusions:
            return Group.UNTESTED
        if Conclusion.HOLDS in conclusions:
            if conclusions & {*FAILED}:
                return Group.MIXED
            sizes = {f.compared.size for f in self.findings}
            return Group.SMALLER if sizes == {Size.SMALLER} else Group.REPLICATED
        if conclusions & {Conclusion.REVERSED, Conclusion.BETTER, Conclusion.WORSE}:
            return Group.REVERSED
        is_null = Conclusion.NO_DIFFERENCE in conclusions
        return Group.NULL if is_null else Group.UNDECIDED

    @property
    def needs(self) -> str:
        """What would decide an undecided claim with the least effort, in short: further seeds, or
        else test images; empty where nothing would."""
        compared = [finding.compared for finding in self.findings]
        seeds = min((c.seeds for c in compared if c.seeds), default=0)
        if seeds:
            return f"{seeds} more seed{'s' * (seeds > 1)}"
        images = min((c.images for c in compared if c.images), default=0)
        return f"{_two_digits(images):,} images" if images else ""


def _two_digits(number: int) -> int:
    """Rounded up to two significant digits."""
    step = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step


def ledger(seasons: Sequence[SeasonClaims]) -> list[LedgerRow]:
    """A row for every claim of every paper, by group, then in the order of the papers."""
    measured = [(season, dataset) for season in seasons for dataset in season.datasets]
    rows = [
        _row(name, claim, measured) for name, paper in papers().items() for claim in paper.claims
    ]
    order = list(Group)
    return sorted(rows, key=lambda row: order.index(row.group))


def _row(paper: str, claim: Claim, measured: Sequence[tuple[SeasonClaims, Measured]]) -> LedgerRow:
    findings, lacks = [], []
    for season, dataset in measured:
        for judged in dataset.claims:
            if (judged.paper, judged.id) != (paper, claim.id):
                continue
            if judged.compared is None:
                lacks.append(judged.reason)
            else:
                found = Finding(season=season.season, dataset=dataset.title, judged=judged)
                findings.append(found)
    return LedgerRow(paper=paper, claim=claim, findings=findings, lacks=[*dict.fromkeys(lacks)])

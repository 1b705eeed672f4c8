"""The ledger: every claim of every paper with what all seasons say of it.

A season's verdict on a dataset is a finding. The grade of a claim follows from its
findings on photographs (grades); drawings are a test of the machinery.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from benchmark.boards.claims_file import (
    FILE,
    ClaimEntry,
    Measured,
    SeasonClaims,
    column,
    feature_levels,
)
from benchmark.boards.grades import HOLDING, Finding, Grade, Graded, graded
from benchmark.core.errors import UserError
from benchmark.papers.printed_tables import Claim, papers
from benchmark.stats.claim_kinds import KINDS
from benchmark.stats.verdicts import Verdict

UNPLAYABLE = "about what this project cannot measure"
ELSEWHERE = "about data that no season has"
UNTRAINED = "about trained networks whose weights no season had"
PLAYABLE = "that could be run, and was not yet"


@dataclass(kw_only=True, eq=False)
class LedgerRow:
    """A claim with all that was found on it."""

    paper: str
    claim: Claim
    findings: list[Finding] = field(default_factory=list)  # where it was tested
    # the same comparison on data that the sentence is not about: shown, not counted
    alike: list[Finding] = field(default_factory=list)
    lacks: dict[str, list[str]] = field(default_factory=dict)  # why -> which seasons
    graded: Graded | None = None  # on photographs; None: it was tested on none

    def add(
        self,
        entry: ClaimEntry,
        season: SeasonClaims,
        data: Measured,
        evidence: pd.DataFrame,
        level: float,
    ) -> None:
        """Add what a dataset of a season says: `evidence` is what its images do to the
        differences, `level` how strong its features are. Raises UserError for a part
        that the claim no longer has."""
        if any(part.part >= len(self.claim.parts) for part in entry.parts):
            where = f"reports/{season.season}/{FILE}: {self.paper}: {entry.id}"
            expected = f"{len(self.claim.parts)} parts, as the claim has"
            advice = f"run: rematch report --season {season.season}"
            raise UserError(where, expected, "others", advice)
        if not entry.parts:
            # folds play a choice of the rows of their dataset
            if not data.is_of_folds:
                seasons = self.lacks.setdefault(entry.reason, [])
                if season.season not in seasons:
                    seasons.append(season.season)
            return
        verdicts = []
        for part in entry.parts:
            name, noise = column(self.paper, entry.id, part.part), None
            if name in evidence and evidence[name].notna().any():
                noise = evidence[name].dropna().to_numpy(float)
            kind = KINDS[self.claim.parts[part.part].kind]
            of_images = {"images": data.test_images, "noise": noise}
            verdicts.append(part.verdict(kind, entry.reason, **of_images))
        finding = Finding(
            claim=self.claim,
            entry=entry,
            verdicts=tuple(verdicts),
            place=f"{data.title} ({season.season})",
            is_drawn=data.is_drawn,
            level=level,
        )
        findings = self.alike if entry.is_elsewhere else self.findings
        findings.append(finding)

    @property
    def photographs(self) -> list[Finding]:
        """What tests on photographs found, those on the strongest features first."""
        return [finding for finding in self.findings if not finding.is_drawn]

    @property
    def decisive(self) -> Verdict:
        """On the part that decides a tested claim, over set-ups if it has some."""
        if self.graded:
            return self.graded.decisive.verdict
        return self.findings[0].decisive

    def deciding(self, finding: Finding) -> Verdict | None:
        """What a finding says for itself on the part that decides over all set-ups;
        None where it was not run."""
        if self.graded:
            return finding.alone.get(self.decisive.part)
        return finding.decisive

    def repeated(self, finding: Finding) -> Finding | None:
        """Which test on the same images and features counts in the place of a finding,
        on the part that decides; None where it counts itself."""
        verdict = self.deciding(finding)
        if not self.graded or finding not in self.photographs or not verdict:
            return None
        for counted in self.graded.decisive.set_ups:
            inputs = self.deciding(counted).comparison.inputs
            if inputs and inputs == verdict.comparison.inputs:
                return None if finding is counted else counted
        return None

    @property
    def grade(self) -> Grade:
        if self.claim.uncounted:
            return Grade.UNCOUNTED
        if self.graded:
            return self.graded.grade
        return Grade.DRAWINGS if self.findings else Grade.UNTESTED

    @property
    def holds_in_part(self) -> bool:
        """Whether it holds, and no test has all its parts."""
        are_in_part = [finding.is_in_part for finding in self.photographs]
        return self.grade in HOLDING and all(are_in_part)

    @property
    def lacking(self) -> str:
        """Why it was not run: one reason, or that of each season."""
        if len(self.lacks) == 1:
            return next(iter(self.lacks))
        reasons = []
        for reason, seasons in self.lacks.items():
            reasons.append(f"{reason} in {', '.join(seasons)}")
        return "; ".join(reasons)


def ledger(
    seasons: Sequence[SeasonClaims], evidence: Mapping[str, pd.DataFrame] | None = None
) -> list[LedgerRow]:
    """A row for every claim of every paper, by grade, then in the order of the papers.
    Tests on photographs come first, then those on the strongest features. `evidence` is
    what images do to differences, by season: without it, each image is taken to do the
    same in all set-ups."""
    rows = {}
    for name, paper in papers().items():
        for claim in paper.claims:
            rows[name, claim.id] = LedgerRow(paper=name, claim=claim)
    levels = _levels(seasons)
    for season in seasons:
        of_season = (evidence or {}).get(season.season, pd.DataFrame({"dataset": []}))
        for data in season.datasets:
            of_data = of_season[of_season["dataset"] == data.dataset]
            level = levels.get((season.season, data.dataset), 0.0)
            for entry in data.claims:
                row = rows.get((entry.paper, entry.id))
                if row:
                    row.add(entry, season, data, of_data, level)
    for row in rows.values():
        row.findings.sort(key=lambda finding: (finding.is_drawn, -finding.level))
    for name in papers():
        tested = []
        for row in rows.values():
            if row.paper == name and row.photographs and not row.claim.uncounted:
                tested.append(row)
        grades = graded([row.photographs for row in tested])
        for row, of_claim in zip(tested, grades, strict=True):
            row.graded = of_claim
    order = list(Grade)
    return sorted(rows.values(), key=lambda row: order.index(row.grade))


def _levels(seasons: Sequence[SeasonClaims]) -> dict[tuple[str, str], float]:
    """How strong features are, by season and dataset: photographs and drawings apart,
    whose rows are not comparable."""
    levels = {}
    for is_drawn in (False, True):
        leaders = {}
        for season in seasons:
            for data in season.datasets:
                if data.of_retrieval and data.is_drawn == is_drawn:
                    leaders[season.season, data.dataset] = data.of_retrieval
        levels |= dict(zip(leaders, feature_levels([*leaders.values()]), strict=True))
    return levels


def untested_for(claim: Claim) -> str:
    """What keeps a claim untested."""
    if claim.unplayed:
        return UNPLAYABLE
    if claim.only_there:
        return ELSEWHERE
    return UNTRAINED if claim.weights else PLAYABLE

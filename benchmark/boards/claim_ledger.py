"""The ledger: every claim of every paper with what all seasons say of it.

A season's verdict on a dataset is a finding. The grade of a claim follows from its
findings on photographs (grades); drawings are a test of the machinery.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from benchmark.boards.claims_file import (
    DRAWN,
    FILE,
    ClaimEntry,
    Measured,
    SeasonClaims,
    column,
)
from benchmark.boards.grades import HOLDING, ClaimOnSetUp, Grade, Graded, graded
from benchmark.core.errors import UserError
from benchmark.papers.printed_tables import Claim, papers

UNPLAYABLE = "about what this project cannot measure"
ELSEWHERE = "about data that no season has"
UNTRAINED = "about trained networks whose weights no season had"
PLAYABLE = "that could be run, and was not yet"


@dataclass(kw_only=True, eq=False)
class LedgerRow:
    """A claim with all that was found on it."""

    paper: str
    claim: Claim
    findings: list[ClaimEntry] = field(default_factory=list)  # where it was tested
    # the same comparison on data that the sentence is not about: shown, not counted
    alike: list[ClaimEntry] = field(default_factory=list)
    # why it was not -> in which seasons
    lacks: dict[str, list[str]] = field(default_factory=dict)
    # the findings on photographs
    tests: list[ClaimOnSetUp] = field(default_factory=list)
    graded: Graded | None = None  # over these tests; None: there is none

    def add(
        self,
        finding: ClaimEntry,
        season: SeasonClaims,
        data: Measured,
        evidence: pd.DataFrame,
    ) -> None:
        """Add what a dataset of a season says; `evidence` has what its images do. Raises
        UserError for a part that the claim has no longer."""
        if any(entry.part >= len(self.claim.parts) for entry in finding.parts):
            where = f"reports/{season.season}/{FILE}: {self.paper}: {finding.id}"
            expected = f"{len(self.claim.parts)} parts, as the claim has"
            advice = f"run: rematch report --season {season.season}"
            raise UserError(where, expected, "others", advice)
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
        finding = finding.model_copy(update=where)
        if finding.is_elsewhere:
            self.alike.append(finding)
            return
        self.findings.append(finding)
        if not finding.is_drawn:
            noise = _noise(self.paper, finding, evidence)
            images = data.test_images or finding.place
            self.tests.append(ClaimOnSetUp(finding=finding, images=images, noise=noise))

    @cached_property
    def photographs(self) -> list[ClaimEntry]:
        """What tests on photographs found, those on the strongest features first."""
        return [finding for finding in self.findings if not finding.is_drawn]

    @property
    def grade(self) -> Grade:
        if self.claim.uncounted:
            return Grade.UNCOUNTED
        if self.graded:
            return self.graded.grade
        return Grade.DRAWINGS if self.findings else Grade.UNTESTED

    def is_in_part(self, finding: ClaimEntry) -> bool:
        """Whether parts of the claim were not run in a test."""
        return len(finding.parts) < len(self.claim.parts)

    @property
    def holds_in_part(self) -> bool:
        """Whether it holds, and no test has all its parts."""
        return self.grade in HOLDING and all(map(self.is_in_part, self.photographs))

    @property
    def lacking(self) -> str:
        """Why it was not run: one reason, or that of each season."""
        if len(self.lacks) == 1:
            return next(iter(self.lacks))
        return "; ".join(
            f"{reason} in {', '.join(of)}" for reason, of in self.lacks.items()
        )


def _noise(
    paper: str, finding: ClaimEntry, evidence: pd.DataFrame
) -> dict[int, np.ndarray]:
    """What each image does to the parts of a finding, (G,) by part; those that are not
    known are left out."""
    noise = {}
    for entry in finding.parts:
        name = column(paper, finding.id, entry.part)
        known = evidence[name].dropna() if name in evidence else ()
        if len(known):
            noise[entry.part] = known.to_numpy(float)
    return noise


def ledger(
    seasons: Sequence[SeasonClaims], evidence: Mapping[str, pd.DataFrame] | None = None
) -> list[LedgerRow]:
    """A row for every claim of every paper, by grade, then in the order of the papers;
    a season's own claims are left out. Tests on photographs come first, then those on
    the strongest features: their strength is the level of the best row on them.

    `evidence` is what images do to differences, by season: without it, set-ups on the
    same images are pooled as if each image did the same in all of them.
    """
    rows = {}
    for name, paper in papers().items():
        for claim in paper.claims:
            rows[name, claim.id] = LedgerRow(paper=name, claim=claim)
    for season in seasons:
        of_season = (evidence or {}).get(season.season, pd.DataFrame({"dataset": []}))
        for data in season.datasets:
            of_data = of_season[of_season["dataset"] == data.dataset]
            for finding in data.claims:
                row = rows.get((finding.paper, finding.id))
                if row:
                    row.add(finding, season, data, of_data)
    for row in rows.values():
        row.findings.sort(key=lambda finding: (finding.is_drawn, -finding.level))
        row.tests.sort(key=lambda test: -test.finding.level)
    for name in papers():
        of_paper = [row for row in rows.values() if row.paper == name]
        tested = [row for row in of_paper if row.tests and not row.claim.uncounted]
        of_claims = graded([(row.claim, row.tests) for row in tested])
        for row, of_claim in zip(tested, of_claims, strict=True):
            row.graded = of_claim
    order = list(Grade)
    return sorted(rows.values(), key=lambda row: order.index(row.grade))


def untested_for(claim: Claim) -> str:
    """What keeps a claim untested."""
    if claim.unplayed:
        return UNPLAYABLE
    return ELSEWHERE if claim.only_there else UNTRAINED if claim.weights else PLAYABLE

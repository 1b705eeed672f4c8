"""What claims.json says of one claim."""

import pytest

from benchmark.boards.claims_file import BEYOND, ClaimEntry, VerdictEntry
from benchmark.stats.claim_kinds import Conclusion


def part(difference: float = 1.0, **facts: object) -> VerdictEntry:
    known = {
        "first": "a",
        "second": "b",
        "conclusion": Conclusion.UNDECIDED,
        "metric": "rsum",
        "decimals": 1,
        "difference": difference,
        "low": difference - 5,
        "high": difference + 5,
        "p": None,
        "is_of_these_trainings": False,
        "printed": None,
        "margin": 3.0,
        "size": None,
    }
    return VerdictEntry(**known | facts)


def claim(*parts: VerdictEntry, decisive: int = 0) -> ClaimEntry:
    return ClaimEntry(
        paper="p",
        id="c",
        conclusion=Conclusion.UNDECIDED,
        reason="",
        is_elsewhere=False,
        cautions=[],
        parts=list(parts),
        decisive=decisive,
    )


@pytest.mark.parametrize(
    "parts, needs",
    [
        ([part(seeds=3, folds=2)], "3 more seeds"),
        ([part(seeds=1)], "1 more seed"),
        ([part(seeds=3), part(seeds=5)], "5 more seeds"),
        ([part(seeds=3, folds=2), part(folds=4)], "4 more folds"),
        ([part(folds=1)], "1 more fold"),
        ([part(), part(remedy="equal trials")], "equal trials"),
        ([part()], BEYOND),
    ],
)
def test_what_would_decide_a_claim_decides_all_of_its_parts(parts, needs):
    assert claim(*parts).needs == needs


def test_a_part_that_alone_may_deny_a_claim_comes_first():
    parts = part(seeds=9), part(difference=-2.0, seeds=2)
    assert claim(*parts, decisive=1).needs == "2 more seeds"


def test_a_decided_part_needs_nothing():
    decided = part(conclusion=Conclusion.HOLDS)
    assert claim(decided, part(seeds=2), decisive=1).needs == "2 more seeds"

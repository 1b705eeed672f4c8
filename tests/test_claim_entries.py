"""What a season says on the claims, as it is written for the ledger."""

import numpy as np
import pytest
from builders import board, outcome, standing

from benchmark.boards import claim_entries
from benchmark.boards.claims import ClaimTest
from benchmark.boards.claims_file import DRAWN
from benchmark.data import prepared_tables
from benchmark.papers.printed_tables import Claim
from benchmark.stats.claim_kinds import ORDERED
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt
from benchmark.stats.verdicts import Rule, Verdict

NOISE = np.array([0.5, -0.5, 0.25])


def claim_test(name: str, *noises: np.ndarray | None, **facts: object) -> ClaimTest:
    """Of a claim whose first part was not run, with what each image does to the
    others."""
    verdicts = []
    for part, noise in enumerate(noises, start=1):
        doubt = Doubt(images=0.5, interaction=0.0, image_count=3, seeds=())
        measured = {"difference": 1.0, "doubt": doubt, "noise": noise}
        comparison = Comparison(first="a", second="b", **measured)
        rule = Rule(kind=ORDERED, margin=1.0)
        verdicts.append(Verdict(comparison=comparison, rule=rule, part=part))
    parts = [["a", "b"]] * (1 + len(noises))
    given = {"id": name, "statement": "S.", "where": "W", "metric": "rsum"}
    claim = Claim(**given, parts=parts, **facts)
    return ClaimTest(paper="p", claim=claim, is_elsewhere=False, verdicts=verdicts)


@pytest.fixture
def tested(monkeypatch):
    tests = [
        claim_test("known", NOISE, None),
        claim_test("shown", NOISE, uncounted="It names no number."),
    ]
    monkeypatch.setattr(claim_entries, "claim_tests", lambda _board: tests)


def test_evidence_has_a_column_for_each_part_that_counts_and_has_known_images(tested):
    photographs, drawings = board(split="official"), board(split=DRAWN)
    table = claim_entries.evidence([photographs, drawings])
    assert list(table) == ["dataset", "p/known/1"]
    assert table["p/known/1"].tolist() == NOISE.tolist()
    assert set(table["dataset"]) == {photographs.dataset}


def test_test_images_are_told_apart_by_files_split_groups_and_queries(monkeypatch):
    queries = {"group": np.arange(3), "i2t": np.arange(3)}
    others = [
        queries | {"group": np.array([0, 1, 1])},
        queries | {"i2t": np.array([0, 2, 1])},
    ]
    digests = []
    for manifest, split, asked in [
        ("m", "official", queries),
        ("m", "karpathy", queries),
        ("n", "official", queries),
        *(("m", "official", other) for other in others),
        ("m", "official", queries),
    ]:
        monkeypatch.setattr(
            prepared_tables, "read_queries", lambda _, asked=asked: dict(asked)
        )
        made = board(manifest=manifest, split=split)
        digests.append(claim_entries.test_images(made))
    assert digests[-1] == digests[0]
    assert len(set(digests)) == 5


def features_of(**read: object) -> str:
    rows = [standing(preset, [outcome(preset, **read)]) for preset in "ab"]
    (verdict,) = claim_test("known", NOISE).verdicts
    return claim_entries._features(board(*rows), verdict.comparison)


def test_rows_that_read_other_features_are_told_apart():
    texts = {"text_features": {"weights": "x"}}
    pictures = {"image_features": {"encoder": "x"}}
    assert features_of(**texts) == features_of(**texts, seed=1)
    different = [features_of(), features_of(**texts), features_of(**pictures)]
    assert len(set(different)) == 3

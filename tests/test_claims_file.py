"""Verdicts as claims.json has them: rounded, with what they rest on, and read again;
and which page shows what of the papers."""

from dataclasses import replace

import numpy as np
import pytest
from builders import board, outcome, standing
from refusals import refused

from benchmark.boards import claims_file, comparisons
from benchmark.boards.claims import ClaimTest
from benchmark.boards.claims_file import (
    DRAWN,
    FILE,
    PageContents,
    VerdictEntry,
    read_seasons,
)
from benchmark.core.errors import checked
from benchmark.core.files import write_json
from benchmark.data import prepared_tables
from benchmark.papers.printed_tables import Claim
from benchmark.stats.claim_kinds import ORDERED, Conclusion, Side
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt, SeedPart
from benchmark.stats.verdicts import Flag, Limit, Rule, Size, Verdict

FEW = Flag("L", "few", remedy="100 test queries")
OUT = FEW._replace(is_out_of_reach=True)
BIAS = Flag("U", "it", favours=Side.SECOND, remedy="equal settings")
UNKNOWN = BIAS._replace(favours=Side.UNKNOWN)


def verdict(conclusion: Conclusion, **facts: object) -> Verdict:
    doubt = Doubt(images=1.0, interaction=0.0, image_count=1000, seeds=())
    comparison = Comparison(
        first="a",
        second="b",
        metric="rsum",
        titles=("A", "B"),
        heading="rsum",
        difference=7.123456789,
        doubt=doubt,
    )
    rule = Rule(kind=ORDERED, margin=1 / 3)
    return Verdict(comparison=comparison, rule=rule, conclusion=conclusion, **facts)


def undecided(**facts: object) -> Verdict:
    return verdict(Conclusion.UNDECIDED, **facts)


def test_numbers_have_six_digits():
    entry = VerdictEntry.of(verdict(Conclusion.HOLDS, adjusted_p=0.0123456789))
    assert (entry.first, entry.second, entry.metric) == ("A", "B", "rsum")
    assert (entry.difference, entry.margin, entry.p) == (7.12346, 0.333333, 0.0123457)
    assert entry.low == pytest.approx(7.12346 - 1.96, abs=0.01)


def test_p_is_that_of_a_conclusion_that_rests_on_it():
    entry = VerdictEntry.of(verdict(Conclusion.NO_DIFFERENCE, adjusted_p=0.5))
    assert entry.p is None


def test_what_would_decide_it_is_a_number_or_a_remedy():
    entry = VerdictEntry.of(undecided(limit=Limit(seeds=4, folds=2)))
    assert (entry.seeds, entry.folds) == (4, 2)
    blocked = VerdictEntry.of(undecided(blocked=FEW))
    assert (blocked.seeds, blocked.remedy) == (None, "100 test queries")


def test_what_it_can_be_pooled_by_stands_in_it():
    part = SeedPart((3, 3), 1 / 3, 0.25, 12.0, is_own=False)
    doubt = Doubt(images=2 / 3, interaction=0.125, image_count=1000, seeds=(part,))
    made = verdict(Conclusion.HOLDS, part=2)
    made = replace(made, comparison=replace(made.comparison, doubt=doubt))
    entry = VerdictEntry.of(made)
    assert entry.part == 2 and not entry.is_blocked and entry.favours is None
    assert (entry.doubt.images, entry.doubt.seeds[0].variance) == (0.666667, 0.333333)


def test_an_obstacle_is_told_from_a_bias():
    for obstacle in (FEW, OUT):
        entry = VerdictEntry.of(undecided(blocked=obstacle))
        assert entry.is_blocked and entry.is_out_of_reach == obstacle.is_out_of_reach
    blocked = BIAS
    entry = VerdictEntry.of(undecided(blocked=blocked, biases=(BIAS,)))
    assert (entry.is_blocked, entry.favours) == (False, Side.SECOND)


@pytest.mark.parametrize(
    "written",
    [
        verdict(
            Conclusion.HOLDS,
            adjusted_p=0.01,
            printed=9.0,
            size=Size.SMALLER,
            slopes=(0.5, 0.25),
        ),
        verdict(Conclusion.HOLDS, adjusted_p=0.01, biases=(BIAS,), part=1),
        undecided(limit=Limit(4, None)),
        undecided(limit=Limit(None, None)),
        undecided(blocked=FEW),
        undecided(blocked=OUT, biases=(BIAS,)),
        undecided(blocked=UNKNOWN, biases=(UNKNOWN,)),
    ],
)
def test_what_is_read_again_is_what_was_written(written):
    entry = VerdictEntry.of(written)
    again = checked(VerdictEntry, entry.model_dump(mode="json"), "made")
    read = again.verdict(ORDERED, "the reason")
    assert VerdictEntry.of(read) == entry == again
    assert (read.limit, read.interval) == (written.limit, (entry.low, entry.high))


# Pages --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "is_drawn"),
    [
        ("words", True),
        (r"cyclematch\w*-found", True),
        ("word", False),
        (r"match\w*-found", False),
        ("", False),
    ],
)
def test_a_pattern_matches_a_whole_name(pattern, is_drawn):
    page = PageContents(path="p.md", figures=["words", "cyclematch_adaptive-found"])
    assert page.draws(pattern) == is_drawn


def test_a_table_is_of_one_paper():
    page = PageContents(path="p.md", tables={"scan": ["1"]})
    assert page.has("scan", "1")
    assert not page.has("scan", "2") and not page.has("cyclematch", "1")


class TestFiles:
    def test_seasons_come_by_name_and_those_without_the_file_are_left_out(
        self, tmp_path
    ):
        (tmp_path / "none").mkdir()
        for season in ("b", "a"):
            pages = [{"path": "p.md", "tables": {}, "figures": ["words"]}]
            content = {"season": season, "title": "T", "datasets": [], "pages": pages}
            write_json(tmp_path / season / FILE, content)
        seasons = read_seasons(tmp_path)
        assert [season.season for season in seasons] == ["a", "b"]
        assert seasons[0].pages == [PageContents(path="p.md", figures=["words"])]

    def test_another_file_is_refused_with_the_command_that_writes_it(self, tmp_path):
        write_json(tmp_path / "a" / FILE, {"season": "a"})
        with refused(where=FILE, do="rematch report --season a"):
            read_seasons(tmp_path)


# From boards --------------------------------------------------------------------------

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
    monkeypatch.setattr(claims_file, "claim_tests", lambda _board: tests)


def test_evidence_has_a_column_for_each_part_that_counts_and_has_known_images(tested):
    photographs, drawings = board(split="official"), board(split=DRAWN)
    table = claims_file.evidence([photographs, drawings])
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
        digests.append(claims_file.digest_of_images(made))
    assert digests[-1] == digests[0]
    assert len(set(digests)) == 5


def features_of(**read: object) -> str:
    rows = [standing(preset, [outcome(preset, **read)]) for preset in "ab"]
    return comparisons.features_of(*rows)


def test_rows_that_read_other_features_are_told_apart():
    texts = {"text_features": {"weights": "x"}}
    pictures = {"image_features": {"encoder": "x"}}
    assert features_of(**texts) == features_of(**texts, seed=1)
    different = [features_of(), features_of(**texts), features_of(**pictures)]
    assert len(set(different)) == 3

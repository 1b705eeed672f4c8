"""The papers as data: complete, consistent with themselves, and refused where they are wrong."""

from itertools import product

import numpy as np
import pytest
import yaml

from benchmark.boards.claims import margin_of
from benchmark.core.errors import UserError
from benchmark.papers.printed_tables import (
    Claim,
    Paper,
    as_printed,
    effects,
    papers,
    printed,
    quantity,
    read_paper,
)
from benchmark.season.plugins import presets

TABLES = {  # rows and printed numbers of every table, counted in the papers by a second hand
    "instance_loss": {
        "1": (23, 172),
        "2": (5, 20),
        "3": (4, 8),
        "4": (3, 6),
        "5": (2, 8),
        "6": (2, 8),
        "7": (8, 24),
        "8": (22, 162),
    },
    "two_branch": {"1": (15, 32), "2": (16, 94), "3": (14, 62), "4": (6, 18), "5": (2, 12)},
    "cyclematch": {
        "6.2": (6, 72),
        "6.3": (5, 60),
        "6.4": (21, 118),
        "6.5": (23, 126),
        "6.6": (5, 60),
    },
    "scan": {"1": (13, 72), "2": (21, 110), "3": (6, 34), "4": (6, 36), "5": (7, 68)},
}
PAPER = {
    "paper": {"title": "T", "authors": "A", "year": 2000, "venue": "V", "source": "S"},
    "tables": {
        "1": {
            "title": "T",
            "metrics": ["i2t_r1", "t2i_medr"],
            "rows": [
                {"label": "Theirs", "numbers": {"flickr30k/test": [1.5, None]}},
                {"label": "Own", "preset": "latentmatch", "numbers": {"flickr30k/test": [2.5, 4]}},
                {"label": "Other", "preset": "dualmatch", "numbers": {"flickr30k/test": [3.5, 4]}},
            ],
        }
    },
    "claims": [
        {
            "id": "better",
            "statement": "S.",
            "where": "W",
            "presets": ["dualmatch", "latentmatch"],
            "metric": "i2t_r1",
            "table": "1",
            "place": "flickr30k/test",
        }
    ],
}


def changed(*path: str | int, value: object) -> dict:
    """PAPER with one value changed."""
    paper = yaml.safe_load(yaml.safe_dump(PAPER))
    at = paper
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return paper


def read(tmp_path, data: dict) -> Paper:
    path = tmp_path / "try.yaml"
    path.write_text(yaml.safe_dump(data))
    return read_paper(path, presets())


def test_every_table_is_there_with_all_its_rows_and_numbers():
    counted = {
        name: {
            number: (
                len(table.rows),
                sum(x is not None for r in table.rows for ns in r.numbers.values() for x in ns),
            )
            for number, table in paper.tables.items()
        }
        for name, paper in papers().items()
    }
    assert counted == TABLES


def test_recalls_do_not_fall_with_k_where_no_note_says_so():
    for name, paper in papers().items():
        for number, table in paper.tables.items():
            for row in table.rows:
                for numbers in row.numbers.values():
                    value_of = dict(zip(table.metrics, numbers, strict=True))
                    assert_rising(value_of, f"{name}/{number}: {row.label}")
                    odd = median_contradicts(value_of)
                    assert not odd or row.note, f"{name}/{number}: {row.label}: {odd}"


def assert_rising(value_of: dict, where: str) -> None:
    for way in ("i2t", "t2i", "s2s", "p2r"):
        recalls = [value_of.get(f"{way}_r{k}") for k in (1, 5, 10)]
        printed_recalls = [recall for recall in recalls if recall is not None]
        assert printed_recalls == sorted(printed_recalls), f"{where}: {way}"
        assert all(0 < recall < 100 for recall in printed_recalls), where


def median_contradicts(value_of: dict) -> str:
    """A median rank among the first K while R@K is below a half, or the reverse."""
    for way, k in product(("i2t", "t2i"), (1, 5, 10)):
        median, recall = value_of.get(f"{way}_medr"), value_of.get(f"{way}_r{k}")
        if median is not None and recall is not None:
            if (median < k + 0.5 and recall < 49.9) or (median > k + 0.5 and recall > 50.1):
                return f"{way}: MedR {median}, R@{k} {recall}"
    return ""


def test_a_preset_prints_the_same_wherever_the_same_thing_was_measured():
    for preset in presets():
        values_of: dict[tuple, set] = {}
        for row in printed(preset):
            for metric, value in row.numbers.items():
                key = row.table.split("/")[0], row.place, metric
                values_of.setdefault(key, set()).update({value} - {None})
        assert all(len(values) <= 1 for values in values_of.values()), preset


def test_claims_are_about_forty_and_their_printed_effects_agree_with_them():
    """What a paper claims and what it prints: the claim's note explains contradictions."""
    claims = [(paper, claim) for paper in papers().values() for claim in paper.claims]
    assert len(claims) >= 40
    for paper, claim in claims:
        values = effects(paper, claim)
        if claim.kind == "ordered" and claim.presets and values:
            sign = -1 if quantity(claim.metric).less_is_better else 1
            steps = -sign * np.diff(values)
            assert (steps >= 0).all() or claim.note, claim.id


def test_what_a_claim_prints_is_what_its_table_prints():
    for paper in papers().values():
        for claim in paper.claims:
            if claim.printed and claim.presets and claim.table:
                of_table = effects(paper, claim.model_copy(update={"printed": []}))
                assert claim.printed == pytest.approx(of_table), claim.id


def test_effects_come_from_the_table_or_from_what_the_text_prints(tmp_path):
    paper = read(tmp_path, PAPER)
    assert effects(paper, paper.claims[0]) == [3.5, 2.5]
    said = read(tmp_path, changed("claims", 0, "printed", value=[9.0, 8.0]))
    assert effects(said, said.claims[0]) == [9.0, 8.0]
    silent = read(tmp_path, changed("claims", 0, "metric", value="t2i_r1"))
    assert effects(silent, silent.claims[0]) is None
    gap = read(tmp_path, changed("claims", 0, "metric", value="i2t_r1 - t2i_medr"))
    assert effects(gap, gap.claims[0]) == [-0.5, -1.5]


def claim(kind: str, metric: str, *presets: str) -> Claim:
    given = {"id": "c", "statement": "S.", "where": "W", "kind": kind, "metric": metric}
    return Claim(**given, presets=presets or ("a", "b"))


@pytest.mark.parametrize(
    ("kind", "metric", "printed", "expected"),
    [
        ("ordered", "rsum", 3.1, 1.55),  # half of the printed effect
        ("ordered", "rsum", 20.8, 6.0),  # at most a point per recall
        ("ordered", "i2t_r1", 0.2, 0.1),
        ("ordered", "i2t_r1", 33.8, 1.0),
        ("ordered", "i2t_r1", None, 1.0),
        ("ordered", "t2i_r1 - i2t_r1", 8.6, 1.0),
        ("ordered", "overlap_s", 0.0719, 0.03595),
        ("ordered", "mean_matched - mean_unmatched", 0.2, 0.0),
        ("alike", "rsum", 0.8, 6.0),  # a point per recall
        ("alike", "rsum", 6.1, 12.2),  # or twice what the paper calls no difference
        ("alike", "p2r_r1", -1.66, 3.32),
        ("alike", "p2r_r1", None, 1.0),
        ("not_better", "t2i_r1", 1.1, 2.2),
        ("not_better", "rsum", -30.7, 6.0),
    ],
)
def test_a_margin_comes_from_the_claim(kind, metric, printed, expected):
    presets_of = ("a",) if metric.startswith("mean") else ("a", "b")
    assert margin_of(claim(kind, metric, *presets_of), printed) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["ordered", "alike", "not_better"])
def test_a_margin_is_at_most_a_tenth_of_the_better_score(kind):
    """A point of a recall of 1 is all of it."""
    made = claim(kind, "i2t_r1")
    assert margin_of(made, 3.3, level=1.1) == pytest.approx(0.11)
    assert margin_of(made, 3.3, level=90.0) == margin_of(made, 3.3)


def test_a_margin_of_one_direction_s_rsum_is_half_as_large():
    assert margin_of(claim("alike", "rsum"), None, is_half=True) == 3.0
    assert margin_of(claim("ordered", "fold_rsum"), None) == 6.0


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("tables", "1", "metrics", 0), "i2t_r2", "unknown 'i2t_r2'; expected one of .*i2t_r1"),
        (
            ("tables", "1", "rows", 0, "numbers"),
            {"flickr30k/test": [1.0]},
            "'Theirs', flickr30k/te",
        ),
        (("tables", "1", "rows", 0, "numbers"), {"flickr31k/test": [1, 2]}, "unknown 'flickr31k"),
        (
            ("tables", "1", "rows", 0, "cells"),
            [],
            "tables.1.rows.0.cells: expected one of label, note",
        ),
        (("claims", 0, "metric"), "recall", "claims.0: .*unknown 'recall'"),
        (("claims", 0, "presets"), ["dualmatch", "none"], "claim better: .* found 'none'"),
        (("claims", 0, "table"), "7", "claim better: table: unknown '7'"),
        (("claims",), PAPER["claims"] * 2, "the id 'better' is there twice"),
    ],
)
def test_a_mistake_is_refused_with_its_place(tmp_path, path, value, message):
    with pytest.raises(UserError, match=message) as error:
        read(tmp_path, changed(*path, value=value))
    assert error.value.where.startswith(f"{tmp_path}/try.yaml")
    assert "\n" not in str(error.value)


def test_numbers_keep_the_decimals_that_are_printed():
    assert as_printed(61.0, "i2t_r1") == "61.0"
    assert as_printed(14.26, "t2i_r1") == "14.26"
    assert as_printed(4.8, "i2t_medr") == "4.8"
    assert as_printed(16, "t2i_medr") == "16"
    assert as_printed(None, "i2t_r1") == "-"

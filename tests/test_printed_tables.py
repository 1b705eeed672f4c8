"""The papers as data: complete, consistent with themselves, and refused where they are
wrong."""

import re
from itertools import product
from pathlib import Path

import pytest
import yaml
from refusals import holds, refused

from benchmark.boards.claims import margin_of
from benchmark.papers import printed_tables
from benchmark.papers.printed_tables import (
    RECALLS,
    Claim,
    Paper,
    Part,
    Row,
    Shown,
    Table,
    as_printed,
    effects,
    papers,
    printed,
    quantity,
    read_paper,
)
from benchmark.season.plugins import presets

# rows and printed numbers of every table, counted in the papers by a second hand
TABLES = {
    "instance_loss": {
        **{"1": (23, 172), "2": (5, 20), "3": (4, 8), "4": (3, 6)},
        **{"5": (2, 8), "6": (2, 8), "7": (8, 24), "8": (22, 162)},
    },
    "two_branch": {
        "1": (15, 32),
        "2": (16, 94),
        "3": (14, 62),
        "4": (6, 18),
        "5": (2, 12),
    },
    "cyclematch": {
        **{"6.2": (6, 72), "6.3": (5, 60), "6.4": (21, 118)},
        **{"6.5": (23, 126), "6.6": (5, 60)},
    },
    "scan": {"1": (13, 72), "2": (21, 110), "3": (6, 34), "4": (6, 36), "5": (7, 68)},
}
# no more of these papers is at hand
ABSTRACTS = ("siglip", "vse_infinity", "vse_plus_plus")
PAPER = {
    "paper": {"title": "T", "authors": "A", "year": 2000, "venue": "V", "source": "S"},
    "tables": {
        "1": {
            "title": "T",
            "metrics": ["i2t_r1", "t2i_medr"],
            "rows": [
                {"label": "Theirs", "numbers": {"flickr30k/test": [1.5, None]}},
                {
                    "label": "Own",
                    "preset": "latentmatch",
                    "numbers": {"flickr30k/test": [2.5, 4]},
                },
                {
                    "label": "Other",
                    "preset": "dualmatch",
                    "numbers": {"flickr30k/test": [3.5, 4]},
                },
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
                sum(
                    x is not None
                    for r in table.rows
                    for ns in r.numbers.values()
                    for x in ns
                ),
            )
            for number, table in paper.tables.items()
        }
        for name, paper in papers().items()
    }
    assert counted == TABLES | dict.fromkeys(ABSTRACTS, {})


def test_every_figure_is_there_once_with_its_place_or_a_reason():
    # counted in the papers' captions; 6.1 of 003 is the one table without results
    counts = {"instance_loss": 15, "two_branch": 2, "cyclematch": 8, "scan": 13}
    counts |= dict.fromkeys(ABSTRACTS, 0)
    for name, paper in papers().items():
        listed = [number for key in paper.figures for number in key.split(", ")]
        chapter = "6." if name == "cyclematch" else ""
        tables = ["Table 6.1"] if name == "cyclematch" else []
        expected = [f"{chapter}{number}" for number in range(1, counts[name] + 1)]
        assert sorted(listed) == sorted([*expected, *tables])


def test_a_figure_names_what_is_drawn_or_what_it_lacks():
    for figure in ({}, {"where": "losses", "lacks": "x"}):
        with pytest.raises(ValueError, match="drawn or what it lacks"):
            Shown(title="t", **figure)
    assert Shown(title="t", where="losses").where == "losses"


def test_every_figure_that_is_named_is_one_that_the_report_draws():
    report = Path(printed_tables.__file__).parent.parent / "report"
    code = [*report.glob("figures/*.py"), report / "pages/examples.py"]
    drawn = re.findall(
        r'\bname\b.*?["-](\w+)["-]', "\n".join(p.read_text() for p in code)
    )
    named = [
        shown.where for paper in papers().values() for shown in paper.figures.values()
    ]
    assert {where.rpartition("-")[2] for where in named if where} <= {*drawn}


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
            if (median < k + 0.5 and recall < 49.9) or (
                median > k + 0.5 and recall > 50.1
            ):
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


def parts() -> list[tuple[Paper, Claim, Part]]:
    return [
        (of, claim, part)
        for of in papers().values()
        for claim in of.claims
        for part in claim.parts
    ]


def test_claims_are_more_than_forty_and_agree_with_what_is_printed():
    """The claim's note explains contradictions; no two parts compare the same."""
    assert len({(paper.paper.title, claim.id) for paper, claim, _ in parts()}) > 40
    for paper, claim, part in parts():
        values = effects(paper, part)
        if part.kind in ("ordered", "far") and part.presets and values:
            sign = -1 if quantity(part.metric).less_is_better else 1
            assert sign * (values[0] - values[1]) >= 0 or claim.note, claim.id
        if part.printed and part.presets and part.table:
            of_table = effects(paper, part.model_copy(update={"printed": []}))
            assert part.printed == pytest.approx(of_table), claim.id
    for claim in {claim.id: claim for _, claim, _ in parts()}.values():
        run = [part for part in claim.parts if part.presets]
        compared = [(*part.presets, part.metric, part.place) for part in run]
        assert len(set(compared)) == len(compared), claim.id


def test_what_a_claim_gives_for_its_parts_is_of_each_that_gives_nothing_else(tmp_path):
    whole = read(tmp_path, PAPER).claims[0]
    assert len(whole.parts) == 1 and whole.parts[0].presets == [
        "dualmatch",
        "latentmatch",
    ]
    said = {k: v for k, v in PAPER["claims"][0].items() if k != "presets"}
    said["parts"] = [
        ["dualmatch", "latentmatch"],
        {"presets": ["latentmatch", "cca"], "metric": "t2i_medr", "kind": "alike"},
    ]
    first, second = read(tmp_path, changed("claims", 0, value=said)).claims[0].parts
    assert first == whole.parts[0]
    assert (second.metric, second.kind, second.table) == ("t2i_medr", "alike", "1")
    several = read(tmp_path, changed("claims", 0, value=said)).claims[0]
    assert several.presets == ["dualmatch", "latentmatch", "cca"]
    assert several.place == "flickr30k/test"


def test_effects_come_from_the_table_or_from_what_the_text_prints(tmp_path):
    def found(**facts: object) -> list[float] | None:
        paper = read(tmp_path, changed("claims", 0, value=PAPER["claims"][0] | facts))
        return effects(paper, paper.claims[0].parts[0])

    assert found() == [3.5, 2.5]
    assert found(printed=[9.0, 8.0]) == [9.0, 8.0]
    assert found(metric="t2i_r1") is None
    assert found(metric="i2t_r1 - t2i_medr") == [-0.5, -1.5]
    # it stands for itself
    assert not quantity("overlap_s - overlap_s_half_bins").less_is_better


def part(kind: str, metric: str, *presets: str) -> Part:
    return Part(kind=kind, metric=metric, presets=presets or ("a", "b"))


def printed_apart(gap: float | None, base: float = 40.0) -> list[float] | None:
    return None if gap is None else [base + gap, base]


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
    made = part(kind, metric, *(("a",) if metric.startswith("mean") else ("a", "b")))
    less = quantity(metric).less_is_better
    values = printed_apart(-printed if less and printed else printed)
    assert margin_of(made, values) == pytest.approx(expected)


def test_a_margin_is_at_most_a_tenth_of_the_better_score_and_of_one_direction_half():
    """A point of a recall of 1 is all of it."""
    for kind in ("ordered", "alike", "not_better"):
        made = part(kind, "i2t_r1")
        assert margin_of(made, printed_apart(3.3), level=1.1) == pytest.approx(0.11)
        assert margin_of(made, printed_apart(3.3), level=90.0) == margin_of(
            made, printed_apart(3.3)
        )
    assert margin_of(part("alike", "rsum"), None, is_half=True) == 3.0
    assert margin_of(part("ordered", "fold_rsum"), None) == 6.0


@pytest.mark.parametrize(
    ("printed", "level", "expected"),
    [
        ([400.0, 200.0], 100.0, 25.0),
        ([400.0, 200.0], 8.0, 2.0),
        ([90.0, 60.0], 60.0, 10.0),
    ],
)
def test_what_is_far_behind_lacks_half_of_the_printed_share_of_the_level(
    printed, level, expected
):
    assert margin_of(part("far", "rsum"), printed, level=level) == pytest.approx(
        expected
    )
    assert margin_of(part("far", "rsum"), printed, True, level) == pytest.approx(
        expected
    )


ROW, CLAIM = ("tables", "1", "rows", 0), ("claims", 0)
MEDIAN = PAPER["claims"][0] | {"kind": "far", "metric": "t2i_medr"}
UNPRINTED = PAPER["claims"][0] | {"kind": "far", "metric": "t2i_r1"}


PART = "claims.0.parts.0"


@pytest.mark.parametrize(
    ("path", "value", "where", "facts"),
    [
        (
            ("tables", "1", "metrics", 0),
            "i2t_r2",
            "tables.1",
            ["metric", "'i2t_r2'", "i2t_r1"],
        ),
        (
            (*ROW, "numbers"),
            {"flickr30k/test": [1.0]},
            "tables.1",
            ["'Theirs'", "flickr30k/test", "2 numbers"],
        ),
        (
            (*ROW, "numbers"),
            {"flickr31k/test": [1, 2]},
            "tables.1",
            ["place", "'flickr31k/test'", "flickr30k/test"],
        ),
        ((*ROW, "cells"), [], "tables.1.rows.0.cells", ["numbers", "'cells'"]),
        ((*CLAIM, "metric"), "recall", PART, ["metric", "'recall'", "i2t_r1"]),
        ((*CLAIM, "kind"), "above", f"{PART}.kind", ["'far'", "'above'"]),
        ((*CLAIM, "presets"), ["dualmatch"], PART, ["single", "ordered"]),
        (
            (*CLAIM, "presets"),
            ["cca", "dualmatch", "latentmatch"],
            f"{PART}.presets",
            ["at most 2", "not 3"],
        ),
        ((*CLAIM, "presets"), [], "claims.0", ["presets", "reason"]),
        ((*CLAIM, "unplayed"), "No.", "claims.0", ["presets", "reason"]),
        ((*CLAIM, "printed"), [1.0], PART, ["printed", "two values"]),
        ((*CLAIM, "parts"), [], "claims.0.parts", ["at least 1"]),
        ((*CLAIM, "parts"), "dualmatch", "claims.0.parts", ["list", "'dualmatch'"]),
        (
            (*CLAIM, "parts"),
            [{"metrc": "rsum"}],
            f"{PART}.metrc",
            ["metric", "'metrc'"],
        ),
        (
            (*CLAIM, "parts"),
            [["dualmatch", "none"]],
            "claim better",
            ["preset", "'none'"],
        ),
        ((*CLAIM, "bias"), {"because": "B."}, "claims.0.bias.favours", ["nothing"]),
        (
            (*CLAIM, "place"),
            "flickr31k/test",
            PART,
            ["place", "'flickr31k/test'", "flickr30k/test"],
        ),
        (CLAIM, MEDIAN, PART, ["far", "recall"]),
        (CLAIM, UNPRINTED, "(top level)", ["claim better", "far", "printed values"]),
        (
            (*CLAIM, "presets"),
            ["dualmatch", "none"],
            "claim better",
            ["preset", "'none'"],
        ),
        ((*CLAIM, "table"), "7", "(top level)", ["claim better", "table", "'7'"]),
        (
            ("claims",),
            PAPER["claims"] * 2,
            "(top level)",
            ["claims", "'better'", "twice"],
        ),
    ],
)
def test_a_mistake_is_refused_with_its_place(tmp_path, path, value, where, facts):
    with refused(f"{tmp_path}/try.yaml: {where}") as error:
        read(tmp_path, changed(*path, value=value))
    assert error.value.where.endswith(f": {where}")
    assert holds(f"{error.value.expected}, {error.value.found}", *facts)


@pytest.mark.parametrize("last", [10.1, None])
def test_an_rsum_that_is_printed_is_that_of_the_row(last):
    row = Row(label="r", numbers={"flickr30k/test": [10.1] * 5 + [last, 60.9]})
    table = Table(title="t", metrics=[*RECALLS, "rsum"], rows=[row])
    assert table.numbers(row, "flickr30k/test")["rsum"] == 60.9
    row = Row(label="r", numbers={"flickr30k/test": [10.1] * 5 + [last]})
    table = Table(title="t", metrics=list(RECALLS), rows=[row])
    added = table.numbers(row, "flickr30k/test")["rsum"]
    assert added == (None if last is None else pytest.approx(60.6))


def test_numbers_keep_the_decimals_that_are_printed():
    assert as_printed(61.0, "i2t_r1") == "61.0"
    assert as_printed(14.26, "t2i_r1") == "14.26"
    assert as_printed(4.8, "i2t_medr") == "4.8"
    assert as_printed(16, "t2i_medr") == "16"
    assert as_printed(None, "i2t_r1") == "-"

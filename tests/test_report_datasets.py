"""The pages of datasets and the first page, from a season whose figures are left out."""

import json
import re
from pathlib import Path

import builders
import numpy as np
import pandas as pd
import pytest
from documents import section
from PIL import Image
from report_readers import markdown_pages, on_readme, page, raw, shown_table
from report_seasons import (
    CAPTIONS,
    DATASETS,
    FOLDER,
    FUSION,
    IMAGES,
    MEMBERS,
    PLUS_MINUS,
    PRESETS,
    README,
    amend,
    amend_metrics,
    contents,
    enter_played_season,
    enter_reported_season,
    lose,
    presets_once,
    season,
    stop_at_once,
)

from benchmark.analysis import boards
from benchmark.core.files import read_json, write_json
from benchmark.report import __main__ as report
from benchmark.report.number_texts import spread
from benchmark.report.pages.gallery import chosen
from benchmark.season.parameters import Params
from benchmark.season.presets import Fuse


@pytest.fixture
def played(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    """A season with every record, in a folder of its own; its report draws no figures."""
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


@pytest.fixture
def reported(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    """As `played`, after `write_report`."""
    return enter_reported_season(tmp_path_factory, tmp_path / "work", monkeypatch)


def test_the_leaderboard_is_sorted_and_shows_the_spread(reported):
    for text in (on_readme("open"), page("open")):
        rows = shown_table(text, "rsum").records()
        assert "t-i AVG + i-t LSE" in rows[0]["preset"]
        assert "bi-directional" in rows[-1]["preset"]
        assert len(rows) == len(PRESETS)
        assert "\N{PLUS-MINUS SIGN}" in rows[0]["i2t R@1"]
        assert "\N{PLUS-MINUS SIGN}" in rows[0]["rsum"]


def test_own_pictures_have_the_name_of_their_folder_and_few_words_on_claims(played):
    """`open` as a folder of the user's; the other dataset as it was."""
    path = Path("data/prepared/open/card.json")
    write_json(path, read_json(path) | {"reader": "folder", "source": "the user's own"})
    report.write_report(played)
    assert "## open\n" in README.read_text() and "Dataset open" not in README.read_text()
    assert "split `made/test`. The user's own. Licence: none." in page("open")
    text = (FOLDER / "claims.md").read_text()
    own, other = (section(text, title) for title in ("open", "Dataset gated"))
    listed = "claims that were not run, by the reason"
    assert listed in other and listed not in own
    assert "`python -m benchmark export open/claims-not-run` lists each" in own


def test_one_seed_shows_plain_numbers(played):
    report.write_report(season(seeds=(0,)))
    for path in markdown_pages():
        rows = [line for line in path.read_text().splitlines() if line.startswith("|")]
        assert not [line for line in rows if "\N{PLUS-MINUS SIGN}" in line], path
    assert "One seed was played" in page("open")
    for text in (on_readme("open"), page("open")):
        intervals = [row["95% interval"] for row in shown_table(text, "lacks").records()]
        assert intervals and all(re.fullmatch(r"\[.*\]\W†", ends) for ends in intervals)
    assert "† for other test images only" in README.read_text()
    report.write_report(season())
    assert "One seed was played" not in page("open")
    table = shown_table(page("open"), "lacks")
    assert all(row["95% interval"].endswith("]") for row in table.records())
    assert "†" not in README.read_text()


def test_of_a_small_test_set_that_is_said_before_anything_else(played, monkeypatch):
    monkeypatch.setattr(boards, "MIN_TEST_QUERIES", IMAGES + 1)
    report.write_report(played)
    few = "Nothing can be concluded from 12 test queries: "
    assert on_readme("open").split("\n\n")[1].startswith(f"- {few}")
    before, _, rest = page("open").partition(f"**{few}")
    assert rest and "|" not in before
    for text in (on_readme("open"), page("open")):
        assert "Best:" not in text and "overlap least" not in text
        table = shown_table(text, "rsum")
        assert {row["group"] for row in table.records()} == {"-"}
        for head in ("i2t R@1", "rsum"):
            assert not raw("SCAN t-i AVG +", head, text).startswith("**")
    assert not raw("SCAN t-i AVG +", "S", page("open")).startswith("**")


def test_spread_is_the_sample_standard_deviation():
    assert spread([1.0, 3.0], 2) == f"2.00 {PLUS_MINUS}1.41"
    assert spread([1.25], 1) == "1.2"
    assert spread([4], 1) == "4"
    assert spread([], 1) == "-"


def test_the_best_of_a_column_is_bold_and_so_are_its_ties(played):
    for seed in (0, 1):
        for preset in MEMBERS:  # the same scores: ties in every column
            near = 90.04 if preset == MEMBERS[0] else 90.0
            amend_metrics(preset, seed, rsum=100.0, i2t_r1=near, t2i_medr=1)
            bins = {"overlap_s_half_bins": 0.0, "overlap_s_double_bins": 0.0}
            amend_metrics(preset, seed, overlap_s=0.0, **bins)
        amend_metrics(FUSION, seed, i2t_r1=10.0, overlap_s=0.9, t2i_medr=7, rsum=99.0)
    report.write_report(played)
    for text in (on_readme("open"), page("open")):
        for start in ("SCAN t-i AVG  ", "SCAN i-t LSE"):
            assert raw(start, "i2t R@1", text).startswith("**"), start
        for head in ("i2t R@1", "rsum"):
            assert not raw("SCAN t-i AVG +", head, text).startswith("**")
    for head in ("t2i MedR", "S"):
        for start in ("SCAN t-i AVG  ", "SCAN i-t LSE"):
            assert raw(start, head, page("open")).startswith("**"), (start, head)
        assert not raw("SCAN t-i AVG +", head, page("open")).startswith("**")


def test_an_s_above_its_bound_is_marked_and_never_the_best(played):
    for seed in (0, 1):
        amend_metrics("scan_t2i_avg", seed, overlap_s=0.011, one_minus_ks=0.0)
    report.write_report(played)
    text = page("open")
    assert raw("SCAN t-i AVG  ", "S", text).endswith("\\*")
    assert "**" not in raw("SCAN t-i AVG  ", "S", text)
    assert raw("SCAN t-i AVG +", "S", text).startswith("**")
    assert "depends on the number of bins" in text


def test_a_failed_cell_is_a_row_with_its_reason(played):
    for seed in (0, 1):
        lose("open", "two_branch_bidirectional", seed, "the loss | is NaN")
    lose("gated", "two_branch_bidirectional", 1, "diverged")
    report.write_report(played)
    assert "the loss \\| is NaN" in page("open")
    failures = shown_table(page("open"), "reason").records()
    assert [(row["seed"], row["status"], row["reason"]) for row in failures] == [
        ("0", "failed", "the loss | is NaN"),
        ("1", "failed", "the loss | is NaN"),
    ]
    (failure,) = shown_table(page("gated"), "reason").records()
    assert (failure["seed"], failure["reason"]) == ("1", "diverged")
    for text in (on_readme("open"), page("open")):
        lost = shown_table(text, "rsum").records()[-1]
        assert lost["preset"].startswith("Two-branch")
        assert (lost["seeds"], lost["i2t R@1"], lost["rsum"]) == ("0 of 2", "-", "failed")
    for text in (on_readme("gated"), page("gated")):
        assert shown_table(text, "rsum").row("Two-branch")["seeds"] == "1 of 2"
    assert "without a result: 2 of 8" in on_readme("open")
    assert "without a result: 1 of 8" in on_readme("gated")
    metrics = json.loads((FOLDER / "metrics.json").read_text())
    assert "two_branch_bidirectional" not in metrics["open"]


def test_a_cell_that_is_not_applicable_is_a_row_with_its_reason(played):
    reason = "gated: neighbourhood sampling expects 2 captions"
    for seed in (0, 1):
        lose("gated", "two_branch_bidirectional", seed, reason, status="not_applicable")
    report.write_report(played)
    for text in (on_readme("gated"), page("gated")):
        row = shown_table(text, "rsum").row("Two-branch")
        assert (row["seeds"], row["rsum"]) == ("0 of 2", "not applicable")
    assert "expects 2 captions" in page("gated")
    for text in (on_readme("open"), page("open")):
        assert "not applicable" not in text


def test_a_cell_whose_text_was_never_read_says_so(played):
    for seed in (0, 1):
        amend("scan_i2t_lse", seed, text_features={})
    report.write_report(played)
    assert page("open").count("Text: never read (`scan`).") == 1
    assert "Text: never read" not in page("gated")


def test_a_training_of_no_epochs_has_no_epochs(played):
    for seed in (0, 1):
        stop_at_once("open", "scan_i2t_lse", seed)
    report.write_report(played)
    cost = shown_table(page("open"), "epochs")
    untrained, trained = cost.row("SCAN i-t LSE"), cost.records()
    assert untrained["epochs"] == "-"
    trained = next(row for row in trained if row["preset"] == "SCAN t-i AVG")
    assert trained["epochs"] == "3"


def add_sentences(preset: str, seed: int, **metrics: float) -> None:
    amend_metrics(preset, seed, **{f"s2s_{key}": value for key, value in metrics.items()})
    folder = Path(f"results/try/open/{preset}/{seed}")
    ranks = pd.read_parquet(folder / "scores/ranks.parquet").groupby("direction")["rank"]
    stored = {way: of_way.to_numpy() for way, of_way in ranks}
    builders.write_ranks(folder, stored | {"s2s": np.zeros(CAPTIONS, dtype=np.int64)})


def test_sentences_are_a_table_of_the_presets_that_embed_text(played):
    for seed in (0, 1):
        add_sentences("two_branch_bidirectional", seed, r1=60.0 + seed, r5=80.0, r10=90.0, medr=1)
        add_sentences("scan_i2t_lse", seed, r1=50.0, r5=85.0, r10=90.0, medr=2)
    report.write_report(played)
    text = page("open")
    assert text.count("Sentence to sentence") == 1
    part = text[text.index("Sentence to sentence") :]
    part = part[: part.index("\n## ")]
    assert "among all captions but itself" in part
    assert raw("Two-branch", "s2s R@1", part) == f"**60.5 {PLUS_MINUS}0.7**"
    assert not raw("SCAN i-t", "s2s R@1", part).startswith("**")
    assert raw("SCAN i-t", "s2s R@5", part).startswith("**85.0")
    assert not raw("Two-branch", "s2s R@5", part).startswith("**")
    for start in ("Two-branch", "SCAN i-t"):
        assert raw(start, "s2s R@10", part).startswith("**90.0")  # a tie
    # of medians the smaller one is better
    assert raw("Two-branch", "s2s MedR", part).startswith("**1.0")
    assert "SCAN t-i AVG" not in part


def test_without_sentence_queries_there_is_no_table_of_them(reported):
    for dataset in DATASETS:
        assert "Sentence to sentence" not in page(dataset)


def test_remarks_name_fusions_starts_and_notes(played, monkeypatch):
    rows = {name: row for name, (_, row) in presets_once().items()}
    parts = Fuse(how="adaptive", of=["scan_t2i_avg:visual", "scan_i2t_lse"])
    changed = {
        FUSION: rows[FUSION].model_copy(update={"fuse": parts}),
        "scan_i2t_lse": rows["scan_i2t_lse"].model_copy(
            update={"start": "scan_t2i_avg", "note": "A remark."}
        ),
    }
    known = presets_once() | {name: ("scan", row) for name, row in changed.items()}
    monkeypatch.setattr(boards, "presets", lambda: known)
    report.write_report(played)
    for text in (page("open"),):
        remarks = shown_table(text, "kind")
        assert list(remarks.row("fusion").values())[1:] == [
            "adaptive of scan_t2i_avg:visual and scan_i2t_lse, options as theirs; "
            "S is of the scores of image queries",
            "SCAN t-i AVG + i-t LSE",
        ]
        start = remarks.row("start")
        assert list(start.values())[1:] == ["continues from scan_t2i_avg", "SCAN i-t LSE"]
        assert list(remarks.row("scaled").values())[1:] == ["epochs = 3", "all"]
        assert list(remarks.row("deviation").values())[1:] == ["image features: cnn", "all"]
        assert any("A remark." in row[1] and "SCAN i-t LSE" in row[2] for row in remarks.rows)


def test_a_fusion_costs_what_its_members_cost(reported):
    cost = shown_table(page("open"), "epochs")
    assert cost.row("SCAN t-i AVG +")["training (s)"] == "21.0"
    assert cost.row("SCAN i-t LSE")["training (s)"] == "10.5"


def test_thumbnails_are_small(reported):
    paths = list((FOLDER / "figures" / "gallery").rglob("*.png"))
    assert paths
    for path in paths:
        with Image.open(path) as thumbnail:
            assert max(thumbnail.size) <= 128


def test_a_gallery_that_may_not_be_published_stays_local(reported):
    assert "open text" in page("open")
    assert "gated text" in (FOLDER / "local" / "gated.md").read_text()
    assert not (FOLDER / "figures" / "gallery" / "gated").exists()
    assert not (FOLDER / "local" / "open.md").exists()
    assert "(../local/gated.md)" in page("gated")
    assert "python -m benchmark report" in page("gated").split("\n", 1)[1]
    for name, data in contents(FOLDER).items():
        assert "/local/" in name or b"gated text" not in data, name


def test_a_training_that_still_improved_is_remarked(played):
    """Every training of the preset, so that half of them or more did."""
    remark = "trainings still improved at the end"
    for path in Path(f"results/try/open/{PRESETS[0]}").glob("*/training/history.csv"):
        rsum = [100.0, 200.0, 300.0, 400.0]
        rows = pd.DataFrame({"epoch": [1, 2, 3, 4], "loss": 1.0, "val_rsum": rsum})
        rows.to_csv(path, index=False)
    report.write_report(played)
    pages = [path for path in FOLDER.rglob("*.md") if remark in path.read_text()]
    assert pages


class TestChosen:
    def test_half_are_hits_and_both_are_spread_over_the_queries(self):
        ranks = np.array([3, 0] * 30)
        picked = chosen(ranks, each=3)
        assert [rank for _, rank in picked] == [0, 0, 0, 3, 3, 3]
        assert [query for query, _ in picked] == [11, 31, 51, 10, 30, 50]

    def test_fewer_where_there_are_fewer(self):
        assert chosen(np.array([0, 0]), each=3) == [(0, 0), (1, 0)]
        assert chosen(np.array([5]), each=3) == [(0, 5)]

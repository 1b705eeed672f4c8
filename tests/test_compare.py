"""`compare` tells where two presets differ, `export` gives tables and ranks away."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_seasons import CAPTIONS, IMAGES, add_column, enter_played_season, seal

from benchmark.__main__ import main
from benchmark.analysis import query_changes
from benchmark.analysis.boards import read_boards
from benchmark.commands import compare
from benchmark.data import prepared_tables
from benchmark.data.vocabularies import tokenise

FIRST, SECOND = "scan_t2i_avg_i2t_lse", "two_branch_bidirectional"


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch):
    return enter_played_season(tmp_path_factory, tmp_path / "played", monkeypatch)


def ranks(preset: str, direction: str = "t2i") -> np.ndarray:
    """(S, Q) of both seeds."""
    tables = [
        pd.read_parquet(f"results/try/open/{preset}/{seed}/scores/ranks.parquet") for seed in (0, 1)
    ]
    return np.stack([table.loc[table["direction"] == direction, "rank"] for table in tables])


def changed(season, direction: str = "t2i") -> query_changes.Changes:
    board = next(board for board in read_boards(season) if board.dataset == "open")
    standings = board.standing(FIRST), board.standing(SECOND)
    return query_changes.changes(prepared_tables.read("open"), *standings, direction)


@pytest.mark.parametrize(("direction", "count"), [("t2i", CAPTIONS), ("i2t", IMAGES)])
def test_queries_are_compared_one_by_one(season, direction, count):
    change = changed(season, direction)
    first, second = ranks(FIRST, direction), ranks(SECOND, direction)
    means = [(sum(a) / 2, sum(b) / 2) for a, b in zip(first.T, second.T, strict=True)]
    assert list(zip(change.queries["first"], change.queries["second"], strict=True)) == means
    assert change.won == sum(a < b for a, b in means) > change.lost == sum(a > b for a, b in means)
    assert (len(change.queries), change.seeds) == (count, 2)
    steps = [np.log((1 + b) / (1 + a)) for a, b in means]
    moved = change.moved_most(1)
    assert moved.index.tolist() == [int(np.argmax(steps)), int(np.argmin(steps))]


def test_shares_of_lengths_and_words_are_means_of_their_queries(season, monkeypatch):
    monkeypatch.setattr(query_changes, "LEAST", 3)
    change = changed(season)
    table = prepared_tables.read("open").captions
    hits = 100 * (ranks(FIRST) == 0).mean(0)
    texts = [tokenise(text) for text in table["text"]]
    by_length = change.by_length()
    assert by_length["queries"].sum() == CAPTIONS
    assert (by_length["first"] * by_length["queries"]).sum() == pytest.approx(hits.sum())
    by_word = change.by_word().set_index("word")
    assert "evil" in by_word.index and "text" not in by_word.index  # all captions have "text"
    with_word = [hit for hit, words in zip(hits, texts, strict=True) if "evil" in words]
    assert by_word.loc["evil", "queries"] == len(with_word) == CAPTIONS / 2
    assert by_word.loc["evil", "first"] == pytest.approx(np.mean(with_word))
    assert by_word["difference"].is_monotonic_decreasing


def test_the_terminal_shows_the_paired_test_and_the_queries(season, capsys):
    words = ["compare", FIRST, SECOND, "--dataset", "open", "--out", "all.parquet"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert f"{FIRST} against {SECOND} on open, t2i, 2 common seeds" in told
    assert "rsum: +" in told and "95% interval" in told and " won, " in told
    assert len(pd.read_parquet("all.parquet")) == CAPTIONS
    assert told.isascii() and "\x1b" not in told


def test_one_training_each_has_no_p(season, capsys, monkeypatch):
    """The spread of trainings is not known: the interval is of images alone."""
    assert main(["compare", FIRST, SECOND, "--dataset", "open"]) == 0
    told = capsys.readouterr().out
    assert ", p " in told and "nothing is known" not in told
    cells = {key: cell for key, cell in season.cells.items() if cell.seed == 0}
    fusions = {key: cell for key, cell in season.fusions.items() if cell.seed == 0}
    once = season.model_copy(update={"cells": cells, "fusions": fusions})
    monkeypatch.setattr(compare, "read_params", lambda name: once)
    assert main(["compare", FIRST, SECOND, "--dataset", "open"]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("rsum: ")]
    assert line.endswith("]; nothing is known of other trainings") and ", p " not in line


def test_captions_run_as_no_formula(season, capsys):
    folder = Path("data/prepared/open")
    texts = [f"{'=+-@a'[number % 5]}SUM(A{number})" for number in range(CAPTIONS)]
    add_column(folder / "captions.parquet", "text", texts)
    seal(folder / "card.json", [f"{table}.parquet" for table in prepared_tables.TABLES])
    for file in ("all.csv", "all.parquet"):
        assert main(["compare", FIRST, SECOND, "--dataset", "open", "--out", file]) == 0
    shown, exact = pd.read_csv("all.csv"), pd.read_parquet("all.parquet")
    assert exact["text"].tolist() == texts
    assert shown["text"].tolist() == [text if text[0] == "a" else f"'{text}" for text in texts]
    others = [name for name in exact if name != "text"]
    pd.testing.assert_frame_equal(shown[others], exact[others], check_exact=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((FIRST, "scan_t2i_agv", "--dataset", "open"), "did you mean scan_t2i_avg?"),
        ((FIRST, FIRST), f"expected two presets, found {FIRST} twice"),
        ((FIRST, SECOND), "--dataset: expected one that both are played on"),
        ((FIRST, SECOND, "--dataset", "opne"), "did you mean open?"),
        ((FIRST, SECOND, "--dataset", "open", "--out", "a.xlsx"), "a .parquet or .csv file"),
    ],
)
def test_what_cannot_be_compared_is_refused(season, capsys, words, message):
    assert main(["compare", *words]) == 2
    assert message in capsys.readouterr().err


def test_tables_are_exported_in_every_format(season, capsys):
    assert main(["export"]) == 0
    told = capsys.readouterr()
    assert "open/leaderboard" in told.out.splitlines()
    assert "export NAME --format latex > FILE" in told.err  # not among the names
    texts = {}
    for form in ("csv", "json", "latex", "markdown"):
        assert main(["export", "open/leaderboard", "--format", form]) == 0
        texts[form] = capsys.readouterr().out
    table = json.loads(texts["json"])
    assert table["heads"][:2] == ["id", "preset"] and len(table["rows"]) == 4
    assert {row[0] for row in table["rows"]} > {FIRST, SECOND}
    assert all(isinstance(row[table["heads"].index("rsum")], float) for row in table["rows"])
    assert texts["csv"].splitlines()[0].split(",")[:2] == ["id", "preset"]
    assert r"\toprule" in texts["latex"] and texts["markdown"].startswith("| ")
    assert main(["export", "open/leaderbord"]) == 2
    told = capsys.readouterr().err
    assert "table: expected the name of a table" in told and "--table" not in told
    assert "did you mean open/leaderboard?); python -m benchmark export prints" in told


def test_every_rank_is_exported_with_its_ids(season, capsys):
    assert main(["export", "--queries", "all.parquet"]) == 0
    table = pd.read_parquet("all.parquet")
    assert list(table) == ["season", "dataset", "preset", "seed", "direction", "query", "rank"]
    cells = len(season.cells) + len(season.fusions)
    assert len(table) == cells * (IMAGES + CAPTIONS)
    mine = table[(table["preset"] == FIRST) & (table["dataset"] == "open") & (table["seed"] == 1)]
    assert mine.loc[mine["direction"] == "t2i", "rank"].tolist() == ranks(FIRST)[1].tolist()
    assert main(["export", "--queries", "all.csv"]) == 2
    assert not Path("all.csv").exists()

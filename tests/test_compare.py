"""`compare` tells where two rows differ, query by query."""

import json
import shutil
from types import SimpleNamespace

import builders
import made_ranks
import numpy as np
import pandas as pd
import pytest
from refusals import check, holds, refusal, refused
from report_seasons import CAPTIONS, IMAGES, enter_played_season

from benchmark.__main__ import main
from benchmark.boards.season_boards import read_boards
from benchmark.commands import compare
from benchmark.data import prepared_tables, results

FIRST, SECOND = "scan_t2i_avg_i2t_lse", "two_branch_bidirectional"


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch):
    return enter_played_season(tmp_path_factory, tmp_path / "played", monkeypatch)


def ranks(preset: str, direction: str = "t2i") -> np.ndarray:
    """(S, Q) of both seeds."""
    kept = results.read_kept("try", "open")
    return np.stack(
        [kept[f"{preset}/{seed}"].scores.best(direction) for seed in (0, 1)]
    )


def changed(season, direction: str = "t2i") -> pd.DataFrame:
    board = next(board for board in read_boards(season) if board.dataset == "open")
    data = prepared_tables.read("open")
    queries = compare.changes(board.row(FIRST), board.row(SECOND), direction)
    return compare.with_texts(queries, data, direction)


@pytest.mark.parametrize(("direction", "count"), [("t2i", CAPTIONS), ("i2t", IMAGES)])
def test_queries_are_compared_one_by_one(season, direction, count):
    queries = changed(season, direction)
    first, second = ranks(FIRST, direction), ranks(SECOND, direction)
    means = [(sum(a) / 2, sum(b) / 2) for a, b in zip(first.T, second.T, strict=True)]
    assert list(zip(queries["first"], queries["second"], strict=True)) == means
    assert len(queries) == count
    assert queries["step"].tolist() == pytest.approx(
        [np.log((1 + b) / (1 + a)) for a, b in means]
    )


def test_the_terminal_shows_the_paired_test_and_the_queries(
    season, capsys, monkeypatch
):
    words = ["compare", FIRST, SECOND, "--dataset", "open", "--out", "all.parquet"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert f"{FIRST} against {SECOND} on open, t2i" in told
    assert " by rsum: " in told and "difference +" in told and "95% interval" in told
    assert " won, " in told
    assert ", p " in told and "" in told and "not adjusted" in told
    assert len(pd.read_parquet("all.parquet")) == CAPTIONS
    assert told.isascii() and "\x1b" not in told
    cells = {key: cell for key, cell in season.cells.items() if cell.seed == 0}
    fusions = {key: cell for key, cell in season.fusions.items() if cell.seed == 0}
    once = season.model_copy(update={"cells": cells, "fusions": fusions})
    monkeypatch.setattr(compare, "read_declaration", lambda name: once)
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "]," in told and "1 seed" in told
    assert ", p " not in told and f"{FIRST} beats {SECOND} by rsum: undecided" in told


def test_programs_get_the_verdict_and_the_counts(season, capsys):
    words = ["compare", FIRST, SECOND, "--dataset", "open"]
    assert main([*words, "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    counts = facts["queries"]
    assert sum(counts.values()) == CAPTIONS
    assert main(words) == 0
    told = capsys.readouterr().out
    assert f"{counts['won']} won, {counts['lost']} lost" in told
    assert facts["seeds"] == [0, 1] and "common seeds: 0, 1)" in told
    assert facts["verdict"]["conclusion"] in told


def test_only_queries_that_changed_are_largest_changes_each_once(capsys):
    queries = pd.DataFrame(
        {"first": [0, 5, 2], "second": [3, 5, 0], "text": ["won", "even", "lost"]}
    )
    queries["step"] = np.log((1 + queries["second"]) / (1 + queries["first"]))
    compare.print_largest_changes(queries)
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.split()[-1] for line in lines] == ["won", "lost"]


def test_the_largest_changes_of_each_kind_stand_first(capsys):
    texts = ["won by 3", "won by 9", "lost by 9", "lost by 5"]
    ranks = {"first": [0, 0, 9, 5], "second": [3, 9, 0, 0]}
    queries = pd.DataFrame(ranks | {"text": texts})
    queries["step"] = np.log((1 + queries["second"]) / (1 + queries["first"]))
    compare.print_largest_changes(queries)
    lines = capsys.readouterr().out.splitlines()[2:]
    shown = [line.split(maxsplit=2) for line in lines]
    assert shown == [
        ["1.0", "10.0", "won by 9"],
        ["1.0", "4.0", "won by 3"],
        ["10.0", "1.0", "lost by 9"],
        ["6.0", "1.0", "lost by 5"],
    ]


def test_the_only_dataset_with_both_rows_needs_no_name():
    season = []
    for dataset, presets in (("x", "a"), ("y", "ab"), ("z", "b")):
        rows = {preset: SimpleNamespace(preset=preset) for preset in presets}
        board = SimpleNamespace(dataset=dataset, row=rows.get, rows=rows.values())
        season.append(board)
    assert compare.chosen_board(season, "ab", None).dataset == "y"
    with refused("--dataset", found="2 of x, y"):
        compare.chosen_board(season[:2], "aa", None)
    with refused("a and b", found="none of x, z"):
        compare.chosen_board(season[::2], "ab", None)
    with refused("preset 'c'"):
        compare.chosen_board(season, "ac", None)


def test_a_clone_without_data_has_the_verdict(season, capsys):
    shutil.rmtree("data/prepared")
    words = ["compare", FIRST, SECOND, "--dataset", "open"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "95% interval" in out and "rematch prepare open" in out and not err
    assert " won, " in out and "largest" not in out and "dvc pull" not in out
    assert main([*words, "--out", "all.parquet"]) == 2


def test_rows_that_are_one_and_other_seeds_are_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_ranks.prepare()
    first, twin = made_ranks.played("a", 1.0), made_ranks.played("b", 1.0)
    once = made_ranks.played("c", 2.0, (7,))
    board = builders.board(first, twin, once)
    told = [
        compare.shown(compare.verdict_on(board, first, other)) for other in (twin, once)
    ]
    assert "undecided" in told[0] and "identical results" in told[0]
    assert holds(told[1], "0, 1 and 2 of a", "7 of c")


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ((FIRST, "scan_t2i_agv", "--dataset", "open"), {"found": "scan_t2i_avg?"}),
        ((FIRST, FIRST), {"where": "compare", "found": FIRST}),
        ((FIRST, SECOND), {"where": "--dataset"}),
        ((FIRST, SECOND, "--dataset", "opne"), {"found": "open?"}),
        (
            (FIRST, SECOND, "--dataset", "open", "--out", "a.csv"),
            {"where": "--out", "found": "a.csv", "do": "a.parquet"},
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(season, words, fields):
    check(refusal(compare, *words), **fields)

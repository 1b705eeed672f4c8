"""The board of any results: levels, ranks that rows could have, and ties."""

from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import pytest
from refusals import check, refusal, refused

import rematch
from benchmark.__main__ import main
from benchmark.commands import board as command
from benchmark.commands.board import (
    WHOLE,
    Level,
    _mean_difference,
    _on_dataset,
    board_of,
    mean_level,
    ties_of,
)
from benchmark.commands.judge import (
    compare_printed,
    judge_pairs,
    question_of_claim,
)
from benchmark.commands.result_files import Reading, Result, of_frame, read_datasets
from benchmark.stats.significance import holm_products
from rematch.comparing import _frame

QUERIES, SEEDS = 400, 3


def hits(level: float, seed: int = 0, queries: int = QUERIES) -> np.ndarray:
    # queries are as hard for all methods
    hard = np.random.default_rng(1).random(queries)
    rng = np.random.default_rng([int(1000 * level), seed])
    luck = rng.normal(0, 0.05, (queries, SEEDS))
    return (hard[:, None] + luck < level).astype(float)


def test_the_best_result_stands_first_with_its_mean_level():
    given = {"low": hits(0.4), "high": hits(0.7), "mid": hits(0.55)}
    board = rematch.board(given)
    assert [row["name"] for row in board] == ["high", "mid", "low"]
    assert [row["rank"] for row in board] == [1, 2, 3]
    for row in board:
        assert row["level"] == pytest.approx(100 * given[row["name"]].mean())
        assert row["low"] < row["level"] < row["high"]
        assert row["ranks"] == [row["rank"], row["rank"]]
        assert row["seeds"] == SEEDS
    assert [row["ties"] for row in board] == ["a", "b", "c"]


def test_ranks_are_counts_of_the_rows_that_differ_by_the_verdicts_of_judge():
    levels = {"a": 0.5, "b": 0.51, "c": 0.56, "d": 0.6}
    given = {name: hits(level) for name, level in levels.items()}
    board = rematch.board(given)
    names = [row["name"] for row in board]
    pairs = list(combinations(names, 2))
    spread = {name: given[name] for name in names}  # of all, as the board has it
    p_values = []
    for first, second in pairs:
        p_values.append(judged_p(spread, first, second))
    differ = dict(zip(pairs, holm_products(p_values) <= 0.05, strict=True))
    for index, row in enumerate(board):
        better = sum(differ[other, row["name"]] for other in names[:index])
        worse = sum(differ[row["name"], other] for other in names[index + 1 :])
        assert row["ranks"] == [1 + better, len(names) - worse]


def judged_p(given: dict, first: str, second: str) -> float:
    """By `judge`, with the trainings of all results."""
    results = {
        name: of_frame(name, _frame(name, array, None, False), "own", None, Reading())
        for name, array in given.items()
    }
    others = [results[name] for name in given if name not in (first, second)]
    question = question_of_claim("A > B", None, 0.0)
    pair = [results[first], results[second]]
    return judge_pairs([pair], others, question)[0]["p"]


def test_over_datasets_a_level_is_the_mean_of_those_of_each():
    given = {}
    for name, level in {"ours": 0.7, "theirs": 0.5}.items():
        given[name] = {"x": hits(level), "y": hits(level - 0.2, queries=900)}
    board = rematch.board(given)
    for row in board:
        levels = {d: 100 * array.mean() for d, array in given[row["name"]].items()}
        assert row["levels"] == pytest.approx(levels)
        assert row["level"] == pytest.approx(fmean(levels.values()))
    assert list(board.to_frame().loc["ours", ["x", "y"]]) == pytest.approx(
        [board[0]["levels"]["x"], board[0]["levels"]["y"]]
    )


def test_the_interval_of_a_mean_over_datasets_is_the_root_of_the_sum_of_squares():
    levels = Level(mean=10.0, low=7.0, high=16.0), Level(mean=30.0, low=26.0, high=38.0)
    whole = mean_level(levels)
    assert (whole.mean, whole.low, whole.high) == pytest.approx((20.0, 17.5, 25.0))


@pytest.mark.parametrize("datasets", [("x", "y"), ("y", "x")])
def test_a_row_has_the_seeds_of_the_dataset_with_fewest(datasets):
    seeds = {"x": SEEDS, "y": SEEDS - 1}
    given = {}
    for name, level in {"ours": 0.7, "theirs": 0.5}.items():
        given[name] = {d: hits(level)[:, : seeds[d]] for d in datasets}
    assert [row["seeds"] for row in rematch.board(given)] == [SEEDS - 1] * 2


def test_the_command_splits_tables_by_dataset(tmp_path, capsys):
    for name, level in {"ours": 0.7, "theirs": 0.5}.items():
        frames = []
        for dataset, array in {"x": hits(level), "y": hits(level, 7)}.items():
            for seed in range(SEEDS):
                frame = {"query": range(QUERIES), "value": array[:, seed]}
                frames.append(pd.DataFrame(frame).assign(dataset=dataset, seed=seed))
        pd.concat(frames).to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in ("theirs", "ours")]
    assert main(["board", *files, "--by", "dataset"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "ours.csv" in lines[1] and " 1-1 " in lines[1]
    assert "x " in lines[1] and "y " in lines[1]


@pytest.fixture
def correction(tmp_path) -> list[str]:
    """A row and its correction, which is no training of its own."""
    rng = np.random.default_rng(3)
    hard, tables = rng.random(QUERIES), []
    for preset, level in {"vse_official_nnn": 0.53, "vse_official": 0.5}.items():
        for seed in range(2):
            luck = rng.normal(0, 4, QUERIES) - 40 * rng.normal(0, 0.02)
            ranks = np.floor(np.maximum(0, 40 * (hard - level) + luck))
            table = pd.DataFrame({"query": range(QUERIES), "rank": ranks.astype(int)})
            tables.append(table.assign(preset=preset, seed=seed))
    path = tmp_path / "ranks.csv"
    pd.concat(tables).to_csv(path, index=False)
    return [f"{path}:vse_official_nnn", f"{path}:vse_official"]


def test_a_correction_is_no_training_whatever_it_is_called(correction):
    rows = rematch.board({name: name for name in correction})
    others = rematch.board(dict(zip("ab", correction, strict=True)))
    for row, other in zip(rows, others, strict=True):
        assert row["ranks"] == other["ranks"]
        assert (row["low"], row["high"]) == (other["low"], other["high"])
    path = Path(correction[0]).with_name("claims.yaml")
    path.write_text(
        f"results: {{a: '{Path(correction[0]).name}', b: '{Path(correction[1]).name}'}}"
        "\nclaims: [{better: a, than: b}]"
    )
    (verdict,) = rematch.judge_claims(path)
    assert verdict.interval == rematch.judge(*correction).interval


@pytest.mark.parametrize("names", list(permutations(["zeros", "shares", "ones"])))
def test_zeros_and_ones_beside_shares_count_as_these_in_any_order(names):
    shares = np.linspace(0.1, 0.9, QUERIES)
    given = {"zeros": [0] * QUERIES, "shares": shares, "ones": [1] * QUERIES}
    board = rematch.board({name: given[name] for name in names})
    assert [row["level"] for row in board] == pytest.approx([1, 0.5, 0])


@pytest.mark.parametrize("names", list(permutations(["zeros", "shares", "percent"])))
def test_zeros_do_not_hide_that_others_are_on_two_scales(names):
    shares = np.linspace(0.1, 0.9, QUERIES)
    given = {"zeros": [0] * QUERIES, "shares": shares, "percent": 100 * shares}
    with refused("shares", "one scale", do="--scale"):
        rematch.board({name: given[name] for name in names})


def test_what_can_be_read_in_two_ways_is_read_as_an_option_says(tmp_path, capsys):
    levels, files = {"a": 0.7, "b": 0.6, "c": 0.5}, []
    for first, (name, level) in enumerate(levels.items()):
        ranks = (40 * (1 - hits(level)[:, 0])).astype(int) + min(first, 1)
        files.append(str(tmp_path / f"{name}.csv"))
        table = pd.DataFrame({"query": range(QUERIES), "rank": ranks})
        table.to_csv(files[-1], index=False)
    assert main(["board", *files]) == 2
    assert "--first-rank 1" in capsys.readouterr().err
    assert main(["board", *files, "--first-rank", "0,1,1", "--metric", "r1"]) == 0
    assert capsys.readouterr().out.count(" 1-1 ") == 1
    assert main(["board", *files, "--first-rank", "0,1"]) == 2
    assert "3 with commas" in capsys.readouterr().err
    with refused("first_rank", "0 or 1"):
        rematch.board({"a": files[1], "b": files[2]}, first_rank=2)
    assert len(rematch.board({"a": files[1], "b": files[2]}, first_rank=1)) == 2


def test_a_result_may_be_called_clusters():
    first = pd.Series(hits(0.7)[:, 0])
    with refused("clusters, b", "same index"):
        rematch.board({"clusters": first, "b": first[::-1]})


@pytest.mark.parametrize("datasets", [("x",), ("x", "y")])
def test_results_of_one_difference_on_all_queries_are_apart_as_in_judge(datasets):
    given = {}
    for name, value in {"all": 1, "none": 0}.items():
        given[name] = {dataset: [value] * QUERIES for dataset in datasets}
    board = rematch.board(given)
    assert [row["ties"] for row in board] == ["a", "b"]
    assert [row["ranks"] for row in board] == [[1, 1], [2, 2]]
    assert rematch.judge([1] * QUERIES, [0] * QUERIES).holds


def test_a_small_dataset_of_one_difference_is_no_surer_beside_a_large_one():
    pairs = {"x": ([1] * 1000, [0] * 1000), "y": ([1] * 100, [0] * 100)}
    found = {}
    for order in (("x", "y"), ("y", "x")):
        by_dataset = {}
        for dataset in order:
            one, other = pairs[dataset]
            results = {"a": result_of(np.array(one)), "b": result_of(np.array(other))}
            named = {name: replace(each, name=name) for name, each in results.items()}
            differences = _on_dataset(named, None).differences
            by_dataset[dataset] = differences[frozenset("ab")]
        found[order] = _mean_difference(by_dataset)
    (one, other) = found.values()
    assert one == other and one.units == 100


def test_small_values_are_shown_with_their_digits():
    values = np.random.default_rng(0).normal(size=QUERIES)
    board = rematch.board({"a": 1e-6 * values, "b": 1e-6 * values[::-1]})
    assert f"{board[0]['low']:.4g}" in board.summary()


def test_datasets_named_as_a_column_have_columns_of_their_own():
    given = {}
    for name, level in {"ours": 0.7, "theirs": 0.5}.items():
        given[name] = {"low": hits(level), "high": hits(level - 0.2)}
    board = rematch.board(given)
    frame = board.to_frame()
    assert list(frame["low"]) == [row["low"] for row in board]
    of_datasets = [row["levels"]["low"] for row in board]
    assert list(frame["level on low"]) == of_datasets


def test_results_without_any_dataset_are_refused():
    with refused("ours", expected="one dataset or more"):
        rematch.board({"ours": {}, "theirs": {}})


def test_a_result_without_a_dataset_of_others_is_refused():
    given = {"ours": {"x": hits(0.7), "y": hits(0.6)}, "theirs": {"x": hits(0.5)}}
    with refused("theirs", expected="x, y", found="x"):
        rematch.board(given)


def test_a_level_has_the_interval_of_a_printed_number():
    given = {"ours": hits(0.99), "theirs": hits(0.5)}
    ours, _ = rematch.board(given)
    table = {name: _frame(name, array, None, False) for name, array in given.items()}
    results = [of_frame(n, f, "own", None, Reading()) for n, f in table.items()]
    facts = compare_printed(results[0], "99.0", results[1:])
    assert (ours["low"], ours["high"]) == pytest.approx(
        (facts["low"], facts["high"]), rel=1e-5
    )
    assert ours["high"] <= 100


def test_a_row_without_a_dataset_is_refused(tmp_path):
    table = pd.DataFrame({"query": [1, 2], "value": [0, 1], "dataset": ["x", None]})
    table.to_csv(tmp_path / "a.csv", index=False)
    with refused("a.csv", found="none in 1"):
        read_datasets(str(tmp_path / "a.csv"), "own", None, Reading())
    table.drop(columns="dataset").to_csv(tmp_path / "b.csv", index=False)
    with refused("b.csv", expected="dataset"):
        read_datasets(str(tmp_path / "b.csv"), "own", None, Reading())


def test_of_a_list_of_ten_it_is_told_that_ranks_are_known_below_ten_alone():
    ranks = np.arange(QUERIES) % 9
    cut = pd.DataFrame({"query": range(QUERIES), "rank": ranks, "depth": 10})
    cut.loc[0, "rank"] = -1
    whole = pd.DataFrame({"query": range(QUERIES), "rank": ranks})
    board = rematch.board({"cut": cut, "whole": whole}, metric="mrr")
    assert any("below 10" in note for note in board.notes)


def test_one_result_is_no_board():
    with refused("board"):
        rematch.board({"ours": hits(0.7)})


def test_a_result_that_is_named_twice_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    pd.DataFrame({"query": range(QUERIES), "value": 1}).to_csv(path, index=False)
    check(refusal(command, path, path), "board", "each result once", f"{path} twice")


def test_few_queries_leave_every_rank_possible():
    few = {"a": hits(0.9, queries=50), "b": hits(0.1, queries=50)}
    board = rematch.board(few)
    assert [row["ranks"] for row in board] == [[1, 2], [1, 2]]
    assert any("too few" in note for note in board.notes)


def test_rows_with_a_letter_in_common_do_not_differ():
    differ = np.zeros((4, 4), bool)
    for first, second in ((0, 2), (0, 3), (1, 3)):
        differ[first, second] = differ[second, first] = True
    assert ties_of(differ) == ["a", "ab", "bc", "c"]
    assert ties_of(np.zeros((3, 3), bool)) == ["a", "a", "a"]


@pytest.mark.simulation
@pytest.mark.parametrize(
    "gaps",
    [(0, 0, 0, 0), (0.01,) * 4, (0.03,) * 4, (0, 0, 0.2, 0)],
    ids=["equal", "steps of a point", "steps of three", "three equal and two"],
)
def test_all_true_ranks_are_among_those_that_rows_could_have(gaps):
    """Five methods, 1,000 queries; `gaps` lie between one and the next."""
    rng, covered, runs = np.random.default_rng(5), 0, 1000
    levels = 0.5 + np.cumsum((0, *gaps))
    made = {str(index): result_of(hits(level)) for index, level in enumerate(levels)}
    for _ in range(runs):
        hard, given = rng.random(1000), {}
        for name, level in zip(made, levels, strict=True):
            of_training = level + rng.normal(0, 0.01, SEEDS)
            luck = rng.normal(0, 0.1, (1000, SEEDS))
            values = (hard[:, None] + luck < of_training).astype(float)
            given[name] = {WHOLE: with_values_of_own_queries(made[name], name, values)}
        is_covered = True
        for row in board_of(given, None).rows:
            level = levels[int(row.name)]
            first, last = row.ranks
            is_covered &= first <= 1 + (levels > level).sum()
            is_covered &= last >= len(levels) - (levels < level).sum()
        covered += is_covered
    print(f"gaps {gaps}: {100 * covered / runs:.1f}% of {runs}")
    assert covered / runs >= 0.93


def result_of(array: np.ndarray) -> Result:
    return of_frame("made", _frame("made", array, None, False), "own", None, Reading())


def with_values_of_own_queries(made: Result, name: str, values: np.ndarray) -> Result:
    queries = pd.MultiIndex.from_product(
        [made.table.index.unique("direction"), [str(q) for q in range(len(values))]],
        names=made.table.index.names,
    )
    table = pd.DataFrame(values, queries, made.table.columns)
    facts = pd.DataFrame({"cluster": queries.get_level_values(1)}, queries)
    for column in made.facts.columns.drop("cluster"):
        facts[column] = made.facts[column].iloc[0]
    return replace(made, name=name, table=table, facts=facts)

"""Tables and TREC runs from elsewhere: what each shows of its own convention."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from benchmark.commands import conventions, result_files
from benchmark.commands.result_files import (
    Kind,
    Reading,
    Result,
    is_table,
    parts_of,
    read_datasets,
    read_table,
    respelled,
    stem,
)

AS_IT_IS = Reading()
FROM_0, FROM_1 = Reading(first_rank=0), Reading(first_rank=1)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result_files.table_of.cache_clear()


def write(path: str, rows: Iterable[Sequence[object]], heads: str) -> str:
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([heads.split(), *rows])
    return path


def of_ranks(ranks: Iterable[object], reading: Reading = AS_IT_IS) -> Result:
    rows = [(f"q{n}", rank) for n, rank in enumerate(ranks)]
    result_files.table_of.cache_clear()
    return read_table(write("ranks.csv", rows, "query rank"), "own", None, reading)


def of_values(values: Iterable[object], reading: Reading = AS_IT_IS) -> Result:
    rows = [(f"q{n}", value) for n, value in enumerate(values)]
    result_files.table_of.cache_clear()
    return read_table(write("values.csv", rows, "query value"), "own", None, reading)


# Ranks --------------------------------------------------------------------------------

RANKS = np.random.default_rng(0).geometric(0.3, 150) - 1


def test_ranks_from_0_are_taken_as_they_are():
    assert of_ranks(RANKS).table[0].sort_values().tolist() == sorted(RANKS)
    assert of_ranks(RANKS).notes == of_ranks(RANKS, FROM_0).notes


def test_ranks_without_a_0_are_read_as_an_option_says():
    with refused("ranks.csv: rank", "ranks from 0", "none, and 1 in", "--first-rank 1"):
        of_ranks(RANKS + 1)
    assert of_ranks(RANKS + 1, FROM_1).table.equals(of_ranks(RANKS).table)
    assert of_ranks(RANKS + 1, FROM_0).table.equals(of_ranks(RANKS).table + 1)
    with refused("rank of query", "a rank from 1", "'0'", "leave empty"):
        of_ranks(RANKS, FROM_1)


@pytest.mark.parametrize("name", ["a.csv:", "a.csv,b.csv:"])
def test_a_colon_has_a_preset_behind_it(name):
    with refused(name, "FILE:PRESET", "nothing"):
        is_table(name)


def test_seeds_are_as_large_as_those_of_seasons():
    largest = 2**31 - 1
    path = write(
        "a.csv", [(f"q{n}", n / 7, largest) for n in range(9)], "query value seed"
    )
    assert list(read_table(path, "own", None, AS_IT_IS).table) == [largest]


def test_one_list_that_counts_from_1_is_found_among_others():
    rows = [(f"q{n}", rank, 0) for n, rank in enumerate(RANKS)]
    rows += [(f"q{n}", rank + 1, 1) for n, rank in enumerate(RANKS)]
    with refused("mixed.csv: rank", "", "none, and 1 in"):
        read_table(write("mixed.csv", rows, "query rank seed"), "own", None, AS_IT_IS)


@pytest.mark.parametrize("listed", [5, 10, 20])
def test_a_0_that_stands_for_not_found_is_doubted(listed):
    ranks = np.random.default_rng(1).geometric(0.07, 300)
    with refused("ranks.csv: rank", "", "", "leave these empty"):
        of_ranks(np.where(ranks <= listed, ranks, 0))
    empty = [rank if rank <= listed else "" for rank in ranks]
    found = of_ranks(empty, FROM_1)
    assert found.depth == listed
    assert np.isinf(found.table[0]).sum() == (ranks > listed).sum()


def test_a_0_that_is_rarer_than_1_is_doubted():
    with refused("ranks.csv: rank", "", "0 in 10 rows, 1 in 40"):
        of_ranks([0] * 10 + [1] * 40 + [*range(2, 102)])


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.integers(0, 10, 150),
        lambda rng: rng.integers(0, 1000, 150),
        lambda rng: rng.integers(30, 400, 150),
        lambda rng: rng.geometric(0.3, 150) - 1,
        lambda rng: np.floor(np.exp(rng.normal(1, 1.5, 150))),
        lambda rng: np.minimum(rng.geometric(0.1, 150) - 1, 10),
        lambda rng: np.zeros(150, int),
    ],
)
def test_ranks_of_good_and_bad_methods_are_not_doubted(draw):
    for seed in range(20):
        of_ranks(draw(np.random.default_rng(seed)).astype(int))


def test_of_few_ranks_of_1_a_note_says_that_none_is_0():
    (note,) = of_ranks([1] * 3 + [*range(5, 152)]).notes[1:]
    assert "no rank is 0" in note
    assert len(of_ranks([0] * 3 + [*range(5, 152)]).notes) == 1


# Values -------------------------------------------------------------------------------


def test_true_and_false_as_pandas_writes_them_are_hits():
    found = of_values(["True", "false"] * 60)
    assert found.kind == Kind.HITS and found.table[0].sum() == 60
    with refused("value of query 'q0'", "a number", "'True'"):
        of_values(["True", "0.5"])


def test_each_seed_has_hits_of_its_own_scale():
    rows = [(n, n % 2, 0) for n in range(120)] + [
        (n, 100 * (n % 3 > 0), 1) for n in range(120)
    ]
    path = write("hits.csv", rows, "query value seed")
    found = read_table(path, "own", None, AS_IT_IS)
    assert found.kind == Kind.HITS
    assert found.percent.mean().tolist() == [50, pytest.approx(200 / 3)]


def test_a_scale_is_a_factor_and_makes_hits_values():
    found = of_values([0, 1] * 60, Reading(scale=100))
    assert (found.kind, found.is_scaled) == (Kind.VALUES, True)
    assert found.table[0].max() == 100 and "times 100" in found.notes[-1]


def test_percent_signs_are_named():
    with refused("value of query 'q0'", "a number", "'85.5%'", "leave the % out"):
        of_values(["85.5%", "3%"])


@pytest.mark.parametrize("stand_in", [-1, -999])
def test_a_negative_number_that_may_stand_for_no_value_is_doubted(stand_in):
    values = [0.25, 0.5, 0.75, stand_in] * 30
    with refused("value", "every query", f"{stand_in} in 30 of 120 rows"):
        of_values(values)
    found = of_values(values, Reading(scale=1))
    assert found.table[0].min() == stand_in


@pytest.mark.parametrize("others", [[-0.5, 0.5], [-1, -2], [-1.5, 1]])
def test_negative_values_of_a_signed_scale_are_not_doubted(others):
    """Of several sizes, fractions, wins and losses, or one row."""
    found = of_values([0.25, 0.5, *others, 0.75, *others] + [1] * 20)
    once = of_values([-1] + [0.25, 0.5] * 30)
    wins = of_values([-1, 1] * 30)
    assert found.kind == once.kind == wins.kind == Kind.VALUES


# Names --------------------------------------------------------------------------------


def test_names_in_another_spelling_are_found():
    assert respelled(["Q1", "q2"], ["q1", "q3"]) == [("Q1", "q1")]
    assert respelled(["007", "10", "1.0"], ["7", "1", "100"]) == [
        ("007", "7"),
        ("1.0", "1"),
    ]
    assert respelled(["a/b.jpg"], ["b"]) == []
    assert respelled(["a/B.JPG"], ["b"], stem) == [("a/B.JPG", "b")]


@pytest.mark.parametrize("depth", ["inf", "2.5", "0"])
def test_a_depth_that_is_no_whole_number_is_refused(depth):
    rows = [(f"q{n}", n, depth) for n in range(40)]
    path = write("ranks.csv", rows, "query rank depth")
    with refused(where="depth", found=depth):
        read_table(path, "own", None, FROM_0)


@pytest.mark.parametrize("read", [read_table, read_datasets])
def test_presets_of_one_table_are_never_seeds_of_one_result(read):
    rows = []
    for preset, seed in (("a", 0), ("b", 1)):
        for n in range(30):
            rows.append(("d", preset, "hits", seed, f"q{n}", (7 * n + seed) % 10 + 0.5))
    path = write("t.csv", rows, "dataset preset metric seed query value")
    with refused(where="t.csv"):
        read(f"{path}:hits", "own", None, AS_IT_IS)


def test_directions_in_another_spelling_are_not_left_out():
    rows = [("i2t" if n % 2 else "T2I", f"q{n}", n % 7) for n in range(60)]
    path = write("ranks.csv", rows, "direction query rank")
    with refused("direction of query 'q0'", "t2i", found="T2I"):
        read_table(path, "own", None, FROM_0)


@pytest.mark.parametrize(("value", "scale"), [("1e300", None), ("7.5", 1e60)])
def test_values_whose_squares_are_no_numbers_are_refused(value, scale):
    with refused("value of query 'q0'", "at most 1e+60", found=value):
        of_values([value, 2.5, 3.5], Reading(scale=scale))


@pytest.mark.parametrize("again", ["hits.csv", "./hits.csv"])
def test_one_file_is_no_two_trainings(again):
    rows = [(f"q{n}", n % 2) for n in range(9)]
    name = f"{write('hits.csv', rows, 'query value')},{again}"
    with refused(name, expected="for each seed", found=f"{again} twice"):
        read_table(name, "own", None, AS_IT_IS)


def test_a_comma_in_the_name_of_a_file_separates_no_seeds():
    assert parts_of("a,b.csv") == (["a", "b.csv"], "")
    write("a,b.csv", [("q0", 1)], "query value")
    assert parts_of("a,b.csv") == (["a,b.csv"], "")
    assert parts_of("a,b.csv:p") == (["a,b.csv"], "p")


def test_a_seed_in_which_nothing_was_found_is_no_depth_of_0():
    rows = [(f"q{n}", 0, "") for n in range(60)]
    rows += [(f"q{n}", 1, min(n, 9)) for n in range(60)]
    path = write("ranks.csv", rows, "query seed rank")
    lost = read_table(path, "own", None, FROM_0)
    assert conventions.heap_at_end(lost) in (None, 9)


@pytest.mark.parametrize("link", [False, True])
def test_one_file_by_two_paths_is_no_two_trainings(link, tmp_path):
    path = write("hits.csv", [(f"q{n}", n % 2) for n in range(9)], "query value")
    other = str(tmp_path / path)
    if link:
        Path("link.csv").symlink_to(path)
        other = "link.csv"
    with refused(expected="for each seed", found=f"{other} twice"):
        read_table(f"{path},{other}", "own", None, AS_IT_IS)


@pytest.mark.parametrize("column", ["layer", "preset", "metric"])
def test_no_seed_is_left_out_for_want_of_a_column(column):
    rows = [(f"q{n}", n % 2, "own") for n in range(9)]
    write("a.csv", rows, f"query value {column}")
    write("b.csv", [row[:2] for row in rows], "query value")
    for name in ("a.csv,b.csv", "b.csv,a.csv", "a.csv,b.csv:own"):
        with refused("b.csv", f"the column {column}"):
            read_table(name, "own", None, AS_IT_IS)


def test_a_preset_is_in_the_file_of_each_seed():
    for preset in ("ours", "theirs"):
        rows = [(f"q{n}", n % 2, preset) for n in range(9)]
        write(f"{preset}.csv", rows, "query value preset")
    with refused("theirs.csv", "rows of ours", "theirs"):
        read_table("ours.csv,theirs.csv:ours", "own", None, AS_IT_IS)


def test_a_preset_may_be_a_number():
    frame = pd.DataFrame({"query": range(9), "value": 0.5, "preset": 7})
    frame.to_parquet("a.parquet")
    assert len(read_table("a.parquet:7", "own", None, AS_IT_IS).table) == 9


def test_a_list_has_no_rank_beyond_its_depth():
    rows = [(f"q{n}", n % 12, 10) for n in range(60)]
    path = write("ranks.csv", rows, "query rank depth")
    with refused("rank of query 'q10'", "below its depth", "'10' (10 such rows)"):
        read_table(path, "own", None, FROM_0)


def of_two_seeds(first: Iterable[object], second: Iterable[object]) -> Result:
    rows = []
    for seed, ranks in enumerate((first, second)):
        rows += [(f"q{n}", seed, rank) for n, rank in enumerate(ranks)]
    result_files.table_of.cache_clear()
    return read_table(write("r.csv", rows, "query seed rank"), "own", None, FROM_0)


def test_ranks_are_known_up_to_the_end_of_the_shortest_list_that_lacks_some():
    in_5, in_9 = ([*range(last), *[""] * (20 - last)] for last in (5, 9))
    whole = [0, 1, 2, 3] * 5
    assert of_two_seeds(in_5, in_9).depth == of_two_seeds(in_9, in_5).depth == 5
    assert of_two_seeds(whole, in_9).depth == of_two_seeds(in_9, whole).depth == 9


def test_lists_of_several_depths_are_known_to_the_least():
    # the last rank of the longer lists says nothing of the shorter ones
    rows = [(f"q{n}", "" if n % 2 else n % 9, 5 if n % 2 else 10) for n in range(60)]
    path = write("ranks.csv", rows, "query rank depth")
    assert read_table(path, "own", None, FROM_0).depth == 5


def test_a_query_has_one_cluster_in_all_seeds():
    rows = [
        (f"q{n}", n % 2, seed, n // (2 + seed)) for n in range(9) for seed in (0, 1)
    ]
    heads = ("query", "value", "seed", "cluster")
    path = write("hits.csv", rows, " ".join(heads))
    with refused("cluster of query 'q2'", "the same cluster"):
        read_table(path, "own", None, AS_IT_IS)


def test_a_query_has_each_seed_once():
    rows = [(f"q{n}", n % 2, seed) for n in range(9) for seed in (0, 1)]
    rows[1] = rows[0]
    path = write("hits.csv", rows, "query value seed")
    with refused("seed of query 'q0'", "each of 2 seeds"):
        read_table(path, "own", None, AS_IT_IS)


def test_an_option_leaves_no_first_rank_open():
    assert of_ranks(RANKS).is_first_rank_open
    assert not of_ranks(RANKS, FROM_0).is_first_rank_open


def test_of_several_layers_one_is_read():
    rows = [(f"q{n}", n + 3 * n % 2, "own") for n in range(30)]
    rows += [(f"q{n}", 7, "crowd") for n in range(30)]
    path = write("ranks.csv", rows, "query rank layer")
    assert (
        read_table(path, "crowd", None, FROM_0).table.to_numpy().tolist() == [[7]] * 30
    )
    assert read_table(path, "own", None, FROM_0).facts["layer"].unique() == ["own"]

"""Ranks from elsewhere, and the conventions that they may follow."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from external_files import (
    CAPTION_IDS,
    IMAGE_IDS,
    embeddings,
    ranked,
    record,
    refused_score,
    score,
    three_pairs,
)
from refusals import check
from report_seasons import IMAGES, OWNERS

from benchmark.__main__ import main
from benchmark.commands.external_ranks import of_ranks
from benchmark.core import files

pytestmark = pytest.mark.usefixtures("external_season")


def save_table(rows: list[tuple]) -> None:
    table = pd.DataFrame(rows, columns=["direction", "query", "rank"])
    table.to_csv("r.csv", index=False)


def test_ranks_of_a_direction_that_is_not_asked_are_told(tmp_path):
    data = three_pairs()
    rows = [
        f"{way},{query},0"
        for way, names in (("i2t", "abc"), ("t2i", "xyz"))
        for query in names
    ]
    (tmp_path / "r.csv").write_text("\n".join(["direction,query,rank", *rows]))
    data.card["ways"] = ["t2i"]
    not_used, from_0 = of_ranks(tmp_path / "r.csv", data).notes
    assert "not used: 3 ranks i2t" in not_used and "from 0" in from_0


def test_columns_that_are_not_read_are_told(tmp_path):
    data = three_pairs()
    data.card["ways"] = ["t2i"]
    heads = "direction,query,rank,seed,layer"
    rows = [f"t2i,{query},0,7,experts" for query in "xyz"]
    (tmp_path / "r.csv").write_text("\n".join([heads, *rows]))
    not_used, _ = of_ranks(tmp_path / "r.csv", data).notes
    assert "not used: the columns layer, seed" in not_used


def test_names_of_columns_do_not_command_a_terminal(capsys):
    rows = [("i2t", name, 0) for name in IMAGE_IDS]
    rows += [("t2i", name, 0) for name in CAPTION_IDS]
    table = pd.DataFrame(rows, columns=["direction", "query", "rank"])
    table.assign(**{"\x1b[2J": 1}).to_csv("r.csv", index=False)
    assert score("--ranks", "r.csv") == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told and r"the columns \x1b[2j" in told


def test_queries_that_were_not_found_leave_out_what_is_not_known(capsys):
    rows = [("i2t", name, 0) for name in IMAGE_IDS] + [
        ("t2i", name, 4) for name in CAPTION_IDS
    ]
    rows[-1], rows[3] = ("t2i", "c23", ""), ("i2t", "i3", -1)
    save_table(rows)
    assert score("--ranks", "r.csv") == 0
    told = capsys.readouterr().out
    assert re.search("i2t: 1 of 12 .+ 'i3'; .+ below 1 ", told)
    assert re.search("t2i: 1 of 24 .+ 'c23'; .+ below 5 ", told)
    assert "i2t_r5 91.67, i2t_r10 91.67, t2i_r10 95.83" in told
    own_row = next(
        line for line in told.splitlines() if line.strip().startswith("own  ")
    )
    assert own_row.split() == ["own", "91.7", "-", "-", "0.0", "95.8", "-", "-"]
    assert not Path("results/try/open/external").exists()
    assert score("--ranks", "r.csv", "--depth", "10") == 0
    metrics = record().metrics
    assert (
        metrics["t2i_r10"] == pytest.approx(100 * 23 / 24) and metrics["t2i_medr"] == 5
    )
    assert "t2i_meanr" not in metrics and main(["report"]) == 0


def test_a_median_of_which_half_was_not_found_is_not_known(capsys):
    rows = [("i2t", name, 0) for name in IMAGE_IDS]
    for number, name in enumerate(CAPTION_IDS):
        rows.append(("t2i", name, 2 if 2 * number < len(CAPTION_IDS) else ""))
    save_table(rows)
    assert score("--ranks", "r.csv", "--depth", "10") == 0
    assert "t2i_medr" not in record().metrics
    rows[-1] = ("t2i", CAPTION_IDS[-1], 2)
    save_table(rows)
    assert score("--ranks", "r.csv", "--depth", "10") == 0
    assert record().metrics["t2i_medr"] == 3


def test_ranks_of_other_queries_are_refused(capsys):
    rows = [("i2t", name, 0) for name in IMAGE_IDS] + [
        ("t2i", name, 0) for name in CAPTION_IDS
    ]
    lacks = ("t2i", "24 test queries")

    def last(rank: object) -> list[tuple]:
        return [*rows[:-1], ("t2i", "c23", rank)]

    all_12 = [(*row[:2], 12) for row in rows[:-1]] + [last(-1)[-1]]
    for change, fields in (
        (rows[:-1], lacks),
        ([*rows, rows[-1]], (*lacks, "25 rows")),
        ([*rows[:-1], rows[0]], ("i2t", "12 test queries", "13 rows")),
        ([*rows, rows[0]], ("i2t", "", "13 rows, 'i0' twice")),
        ([*rows, ("tti", "c23", 0)], ("direction", "", "'tti' in 1 rows")),
        (last(12), ("t2i", "from 0 below 12", "12 for 'c23' (1 such)")),
        (last(0.5), ("t2i", "from 0 below 12", "0.5 for 'c23'")),
        (last("x"), ("t2i", "", "x for 'c23'")),
        (last(-2), ("t2i", "", "-2 for 'c23' (1 such)")),
        (last(999), ("t2i", "", "999 for 'c23' (1 such)", "--not-found 999")),
        (all_12, ("", "", "", "--first-rank 1")),
        (all_12, ("", "", "", "--not-found items")),
    ):
        save_table(change)
        check(refused_score("--ranks", "r.csv"), *fields)


def test_a_small_table_of_ranks_that_unpacks_to_much_is_refused(capsys, monkeypatch):
    ranks = pa.array(["i2t"] * (1 << 16)).dictionary_encode()
    table = pa.table(
        {"direction": ranks, "query": ranks, "rank": pa.array([0] * (1 << 16))}
    )
    pq.write_table(table, "r.parquet", compression="zstd")
    monkeypatch.setattr(files, "MOST", 1 << 20)
    assert Path("r.parquet").stat().st_size < 4000
    check(refused_score("--ranks", "r.parquet"), "", "1048576 bytes", "more")


# Conventions --------------------------------------------------------------------------


def save_ranks(
    change: Callable[[int, int], object] = lambda rank, items: rank,
) -> tuple[str, str]:
    """`change` of a rank and the size of its gallery."""
    images, captions = embeddings(2.0)
    units = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (images, captions)]
    scores, relevant = units[0] @ units[1].T, np.equal.outer(np.arange(IMAGES), OWNERS)
    rows = []
    for way, ids, of_way, right in (
        ("i2t", IMAGE_IDS, scores, relevant),
        ("t2i", CAPTION_IDS, scores.T, relevant.T),
    ):
        items = of_way.shape[1]
        changed = [change(rank, items) for rank in ranked(of_way, right)]
        rows += [(way, query, rank) for query, rank in zip(ids, changed, strict=True)]
    save_table(rows)
    return "--ranks", "r.csv"


def test_positions_from_1_are_read_if_somebody_says_so(capsys):
    assert score(*save_ranks()) == 0
    expected = record().metrics
    assert 0 < expected["i2t_r1"] < 100
    from_1 = save_ranks(lambda rank, items: rank + 1)
    check(refused_score(*from_1), do="--first-rank 1")
    assert not score(*from_1, "--first-rank", 1, name="one")
    assert (
        record("one").metrics == expected and record("one").options["first_rank"] == 1
    )
    none_first = save_ranks(lambda rank, items: min(rank + 1, items - 1))
    check(refused_score(*none_first), found="none", do="--first-rank 1")
    assert score(*none_first, "--first-rank", 0) == 0
    assert record().metrics["i2t_r1"] == 0
    error = refused_score(*save_ranks(), "--first-rank", 1)
    check(error, expected="from 1 below 25", found="0 for ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rank, items: rank if rank < 3 else "", ()),
        (lambda rank, items: rank if rank < 3 else 999, ("--not-found", "999")),
        (lambda rank, items: rank if rank < 3 else "inf", ("--not-found", "inf")),
        (lambda rank, items: rank if rank < 3 else items, ("--not-found", "items")),
        (lambda rank, items: rank if rank < 3 else 7, ("--not-found", "7")),
        (lambda rank, items: rank + 1 if rank < 3 else "", ("--first-rank", "1")),
        (
            lambda rank, items: rank + 1 if rank < 3 else 0,
            ("--first-rank", "1", "--not-found", "0"),
        ),
        (
            lambda rank, items: rank + 1 if rank < 3 else items + 1,
            ("--first-rank", "1", "--not-found", "items"),
        ),
    ],
)
def test_what_was_not_found_may_be_any_value_that_is_named(capsys, change, words):
    assert (
        score(*save_ranks(lambda rank, items: rank if rank < 3 else -1), "--depth", 10)
        == 0
    )
    expected = record().metrics
    capsys.readouterr()
    if words and "0" not in words:  # of so few, zeros may well be first ranks
        advice = refused_score(*save_ranks(change)).do
        assert "--first-rank" in advice or "--not-found" in advice
    assert score(*save_ranks(change), *words, "--depth", 10, name="other") == 0
    assert record("other").metrics == expected


def test_zeros_that_may_be_what_was_not_found_are_refused(capsys):
    rows = [("i2t", name, n % 6) for n, name in enumerate(IMAGE_IDS)]
    rows += [("t2i", name, n % 6) for n, name in enumerate(CAPTION_IDS)]
    save_table(rows)
    error = refused_score("--ranks", "r.csv")
    check(error, found="0 to 5", do="--first-rank 1 --not-found 0")
    assert score("--ranks", "r.csv", "--first-rank", 0) == 0
    assert record().metrics["t2i_r1"] == pytest.approx(100 / 6)
    words = ("--first-rank", 1, "--not-found", 0, "--depth", 10)
    assert score("--ranks", "r.csv", *words, name="lost") == 0
    assert record("lost").metrics["t2i_r5"] == pytest.approx(500 / 6)


def test_a_list_has_no_rank_beyond_its_depth():
    rows = [("i2t", name, 0) for name in IMAGE_IDS]
    rows += [("t2i", name, 4) for name in CAPTION_IDS]
    rows[-1], rows[3] = ("t2i", "c23", 6), ("i2t", "i3", -1)
    save_table(rows)
    error = refused_score("--ranks", "r.csv", "--depth", "6")
    check(error, "r.csv: t2i", "lists of 6", "rank 6 for 'c23'", "--depth 7")
    assert score("--ranks", "r.csv", "--depth", "7") == 0


@pytest.mark.parametrize("depth", [0, -5])
def test_a_list_has_an_item(depth):
    save_table([("i2t", name, 0) for name in IMAGE_IDS])
    check(refused_score("--ranks", "r.csv", "--depth", depth), "--depth", "from 1")

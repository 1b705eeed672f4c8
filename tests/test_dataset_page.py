"""Made-up boards on a dataset's page."""

from pathlib import Path

import builders
import pandas as pd
import pytest
from made_boards import IMAGES, board, enter_made, row

from benchmark.boards import flags
from benchmark.boards.boards import QUERIES
from benchmark.report.pages.dataset_page import _twins, few_queries, legend, tie_gap
from benchmark.report.tables import Table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


def test_a_legend_explains_the_letters_that_tables_show():
    first, second, third = list(flags.NAMES)[:3]
    shown = Table.of("T", [{"flags": first + third}, {"flags": None}])
    plain = Table.of("T", [{"preset": "a"}])
    names = flags.NAMES
    assert legend([shown, plain]) == f"{first} {names[first]}, {third} {names[third]}"
    assert legend([plain], [second]) == f"all rows: {names[second]}"
    assert legend([plain]) == ""


def test_ties_are_told_by_the_largest_gap_of_any_row():
    gaps = {"i2t_r1_tie_gap": 0.5, "t2i_r1_tie_gap": 2.0}
    tied = row("a", 0.5, metrics=gaps)
    assert tie_gap(board(tied, row("b", 0.5))) == 2.0
    assert tie_gap(board(row("b", 0.5))) is None  # ranks alone do not tell


def test_what_rsum_changes_without_twins_is_told_from_the_least_to_the_most():
    folder = Path("data/prepared/made")
    images = pd.read_parquet(folder / "images.parquet")
    files = [f"{number}.png" for number in range(IMAGES)]
    images.assign(file=files).to_parquet(folder / "images.parquet")
    builders.seal_tables("made")
    made = board(row("a", 0.5), row("b", 1.0))
    assert _twins(made) == {}
    pictures = [["train: x.png", "test: 0.png"]]
    made.card["leakage"] = {"pictures": pictures, "items": {"pictures": {"test": 1}}}
    # the twin is a hit of both; all six recalls of a row are the same
    lost = 600 * 14 / 29 - 600 * 15 / 30
    assert _twins(made) == {
        "low": pytest.approx(lost),
        "high": pytest.approx(0.0),
        "named": 1,
        "all": 1,
    }


def test_tasks_with_too_few_queries_are_named():
    made = board(row("a", 0.5))
    assert few_queries(made) == {}
    made.card["counts"] = {"test": dict.fromkeys(QUERIES.values(), 9)}
    assert few_queries(made) == {"retrieval": 9}

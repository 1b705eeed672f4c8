"""Tables of a season, by name."""

import pytest
from report_seasons import DATASETS, enter_played_season

from benchmark.boards.season_boards import read_boards
from benchmark.papers.printed_tables import papers
from benchmark.report.all_tables import tables_of


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch):
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


def test_tables_of_papers_name_the_dataset_where_a_season_has_several(season):
    boards = read_boards(season)
    both = tables_of(season, boards)
    alone = tables_of(season, boards[:1])
    place = papers()["scan"].tables["1"].places[0]
    name = f"scan/1 {place}"
    assert {f"{name} {dataset}" for dataset in DATASETS} <= both.keys()
    assert name in alone and name not in both
    assert {f"{dataset}/leaderboard" for dataset in DATASETS} <= both.keys()


def test_a_table_without_rows_has_no_name_but_that_of_claims_has(season):
    tables = tables_of(season, read_boards(season))
    assert "open/localisation" not in tables
    assert "open/claims" in tables

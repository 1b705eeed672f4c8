"""Boards from records."""

import pytest
from refusals import refused
from report_seasons import (
    DATASETS,
    PRESETS,
    edit_record,
    enter_played_season,
    lose_record,
)

from benchmark.boards.season_boards import read_boards
from benchmark.season.parameters import Params


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


def test_a_dataset_has_a_board_with_a_row_per_preset_and_an_outcome_per_seed(season):
    boards = read_boards(season)
    assert [board.dataset for board in boards] == list(DATASETS)
    for board in boards:
        assert {row.preset for row in board.rows} == set(PRESETS)
        for row in board.rows:
            assert [outcome.record.seed for outcome in row.outcomes] == [0, 1]
        assert board.missing == ()


def test_cells_that_were_not_run_are_left_out_and_named(season, capsys):
    lose_record("open", PRESETS[0], 1)
    _, of_open = read_boards(season)
    assert of_open.missing == (f"open-{PRESETS[0]}-1",)
    assert [o.record.seed for o in of_open.row(PRESETS[0]).outcomes] == [0]
    assert f"open-{PRESETS[0]}-1" in capsys.readouterr().err


def test_a_record_of_another_protocol_is_refused(season):
    edit_record("open", PRESETS[0], 0, protocol_version=0)
    with refused("", do="rematch play try"):
        read_boards(season)

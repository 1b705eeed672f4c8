"""Curves of trainings."""

import pytest
from made_boards import board, enter_made, points_of_marker, row

from benchmark.report.figures import training


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


def test_curves_are_the_epochs_and_a_dot_marks_the_selected_one():
    left, right = training.training_curves(board(row("_a", 0.5, 0.6))).axes
    assert left.lines[0].get_xydata().tolist() == [[1, 3], [2, 2], [3, 1.9]]
    assert right.lines[0].get_xydata().tolist() == [[1, 10], [2, 30], [3, 20]]
    assert points_of_marker(right, "o") == [[2, 30]]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["_a"]

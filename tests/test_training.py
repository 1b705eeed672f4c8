"""Curves of trainings, and quality beside cost."""

import numpy as np
import pytest
from made_boards import IMAGES, board, enter_made, points_of_marker, row

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


def test_costs_stand_at_their_times_and_rsum():
    made = board(row("a", 0.5, 0.7, training=[10.0]), row("b", 0.9, training=[]))
    left, right = training.quality_and_cost(made, made.rows).axes
    a, b = (each.mean("rsum") for each in made.rows)
    assert points_of_marker(left, "o") == [[10, a]]
    milliseconds = 1000 * (1e-3 + IMAGES * 1e-5)
    assert points_of_marker(right, "o") == [[milliseconds, a], [milliseconds, b]]
    assert (
        left.get_xscale() == right.get_xscale() == "log"
        and left.get_ylim() == right.get_ylim()
    )
    # The front is what no other beats in both.
    made = list(map(tuple, np.random.default_rng(0).integers(1, 9, (40, 2)).tolist()))
    best = {
        x
        for x in made
        if not any(y[0] <= x[0] and y[1] >= x[1] and y != x for y in made)
    }
    assert training.front(made) == sorted(best)

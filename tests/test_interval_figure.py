"""The one figure of numbers with their intervals."""

import pytest
from made_boards import LOOK, enter_made, points_of_marker, titles

from benchmark.report.interval_figure import Line, Look, Mark, intervals


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


def test_marks_intervals_and_bands_stand_at_their_numbers():
    marks = [
        Mark(value=2.0, look=LOOK, ends=(1.0, 3.5)),
        Mark(value=0.5, look=Look(title="other", colour="red", marker="D"), shift=0.05),
    ]
    lines = [
        Line(label="first", marks=marks, panel="p", text="x"),
        Line(label="second", marks=marks[:1], panel="p", band=(1.0, 2.0)),
        Line(label="third", marks=marks[:1], panel="q"),
    ]
    upper, lower = intervals(lines, band="true there").axes
    places = upper.get_yticks()
    assert [label.get_text() for label in upper.get_yticklabels()] == [
        "first",
        "second",
    ]
    assert upper.get_ylim()[0] > upper.get_ylim()[1]  # the first one on top
    assert points_of_marker(upper, "o") == [[2, places[0]], [2, places[1]]]
    assert points_of_marker(upper, "D") == [[0.5, pytest.approx(places[0] + 0.05)]]
    (spans,) = upper.collections
    assert [span[:, 0].tolist() for span in spans.get_segments()] == [
        [1, 3.5],
        [1, 3.5],
    ]
    (band,) = upper.patches
    assert (band.get_x(), band.get_width()) == (1, 1)
    assert band.get_y() < places[1] < band.get_y() + band.get_height()
    assert titles(upper.figure) == ["l", "other", "true there"]
    assert (
        lower.get_title(loc="left") == "q" and points_of_marker(lower, "o")[0][0] == 2
    )


def test_nothing_to_draw_is_said_in_an_empty_panel():
    figure = intervals([])
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "nothing was measured"
    assert not axes.lines and not figure.legends

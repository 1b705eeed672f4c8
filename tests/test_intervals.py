"""Numbers with their intervals: leaderboards, claims, and any lines."""

from types import SimpleNamespace

import numpy as np
import pytest
from made_boards import IMAGES, LOOK, board, enter_made, points_of_marker, row, titles

from benchmark.report.figures.intervals import (
    Line,
    Look,
    Mark,
    claim_lines,
    intervals,
    leaderboard_lines,
)
from benchmark.stats.claim_kinds import KINDS, Conclusion
from benchmark.stats.verdicts import Rule


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


def test_the_ranking_has_the_means_and_intervals_of_the_leaderboard():
    made = board(row("poor", 0.1, 0.2, 0.1), row("best", 0.9, 1.0, 0.9))
    best, poor = leaderboard_lines(made)
    assert (best.label, poor.label) == ("best", "poor")
    recall = 100 * np.mean([27, 30, 27]) / IMAGES
    (mark,) = best.marks
    # R@1 = R@5 = R@10 of both directions
    assert mark.value == pytest.approx(6 * recall)
    assert mark.ends[0] < mark.value < mark.ends[1] <= 600
    assert best.band and not poor.band
    assert best.text.split("; ")[0] == "3"
    (alone,) = leaderboard_lines(board(row("alone", 0.5)))
    assert alone.marks[0].is_of_these_trainings and alone.band is None


def pair(
    conclusion: str, difference: float, printed: float | None, kind: str = "ordered"
):
    comparison = SimpleNamespace(
        is_of_these_trainings=False, metric="i2t_r1", names="A over B"
    )
    return SimpleNamespace(
        conclusion=Conclusion(conclusion),
        difference=difference,
        interval=(difference - 1, difference + 1),
        printed=printed,
        margin=1.5,
        rule=Rule(kind=KINDS[kind], margin=1.5),
        comparison=comparison,
    )


def test_the_claims_have_their_differences_margins_and_printed_ones():
    claim = SimpleNamespace(statement="A beats B.")
    pairs = [pair("holds", 2.0, 4.3), pair("undecided", 0.2, None, "not_better")]
    verdict = SimpleNamespace(claim=claim, verdicts=pairs, is_counted=True)
    first, second = claim_lines([verdict])
    assert [mark.value for mark in first.marks] == [-1.5, 1.5, 2.0, 4.3]
    assert [mark.value for mark in second.marks] == [1.5, 0.2]
    assert (first.marks[2].look.title, second.marks[1].look.title) == (
        "holds",
        "undecided",
    )
    assert first.marks[2].ends == (1.0, 3.0) and "R@1" in first.panel
    assert first.label == "A over B: A beats B."
    pairs[1].interval = None
    assert len(claim_lines([verdict])) == 1
    verdict.is_counted = False
    assert claim_lines([verdict]) == []


# Over all seasons ---


# Any lines with intervals -------------------------------------------------------------


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

"""Leaderboards and claims as numbers with their intervals."""

from types import SimpleNamespace

import numpy as np
import pytest
from made_boards import IMAGES, board, enter_made, row

from benchmark.report.figures.intervals import claim_lines, leaderboard_lines
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

"""Kinds of claims: what is true of a difference, and how much counts as none."""

from dataclasses import replace

import pytest

from benchmark.stats.claim_kinds import (
    ALIKE,
    FAR,
    KINDS,
    NOT_BETTER,
    ORDERED,
    SIGNS,
    Conclusion,
    Effect,
    Side,
)

EFFECT = Effect(difference=4.0, points=6.0, share=0.1, level=300.0)


@pytest.mark.parametrize(
    ("kind", "true"),
    [
        (ORDERED, {5.0: True, 0.5: False, -5.0: False}),
        (FAR, {5.0: True, 0.5: False, -5.0: False}),
        (ALIKE, {5.0: False, 0.5: True, -5.0: False}),
        (NOT_BETTER, {5.0: False, 0.5: True, -5.0: True}),
    ],
    ids=KINDS,
)
def test_what_is_true_of_a_difference(kind, true):
    assert {d: kind.is_true_of(d, margin=1.0) for d in true} == true


@pytest.mark.parametrize(
    ("kind", "facts", "margin"),
    [
        (ORDERED, {}, 2.0),  # half of what is printed
        (ORDERED, {"difference": 40.0}, 6.0),  # at most a point a recall
        (ORDERED, {"difference": 0.0}, 6.0),
        (ORDERED, {"level": 10.0}, 1.0),  # at most a tenth of the level
        (FAR, {}, 15.0),  # half of the share, of the level here
        (ALIKE, {}, 8.0),  # twice what is printed
        (ALIKE, {"difference": -4.0}, 8.0),
        (ALIKE, {"difference": 1.0}, 6.0),
        (NOT_BETTER, {"difference": -4.0}, 6.0),  # a loss is none that is denied
        (NOT_BETTER, {"difference": 40.0}, 30.0),
    ],
)
def test_how_much_counts_as_no_difference(kind, facts, margin):
    assert kind.margin(replace(EFFECT, **facts)) == pytest.approx(margin)


def test_what_lies_within_the_margin_holds_where_a_difference_is_denied():
    within = {kind.name: kind.within for kind in KINDS.values()}
    none = Conclusion.NO_DIFFERENCE
    assert (within["ordered"], within["far"]) == (none, Conclusion.NOT_BETTER)
    assert {within["alike"], within["not_better"]} == {Conclusion.HOLDS}


def test_a_claim_of_judge_has_a_sign_of_its_own():
    assert [*SIGNS] == [">", "=", "not better than"]
    assert all(KINDS[kind.name] is kind for kind in SIGNS.values())


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_despite_a_bias_nothing_is_concluded_that_it_would_bring_about(kind):
    """A bias adds to the difference: what stands must be true of a smaller one, too,
    or of a larger one."""
    for favoured, sign in ((Side.FIRST, -1), (Side.SECOND, 1)):
        for conclusion in RANGES[kind.name]:
            left = kind.despite(conclusion, favoured)
            if left == Conclusion.UNDECIDED:
                continue
            low, high = RANGES[kind.name][left]
            assert (low if sign < 0 else high) == sign * INFINITY, (kind.name, left)
    assert {kind.despite(c, Side.UNKNOWN) for c in Conclusion} == {Conclusion.UNDECIDED}
    above = kind.asserted[0]
    assert kind.despite(above, Side.SECOND) == above


INFINITY = float("inf")
RANGES = {  # of the differences that a conclusion allows, with a margin of 1
    "ordered": {
        Conclusion.HOLDS: (0.0, INFINITY),
        Conclusion.REVERSED: (-INFINITY, 0.0),
        Conclusion.NO_DIFFERENCE: (-1.0, 1.0),
        Conclusion.NOT_BETTER: (-INFINITY, 1.0),
    },
    "far": {
        Conclusion.HOLDS: (1.0, INFINITY),
        Conclusion.NOT_BETTER: (-INFINITY, 1.0),
    },
    "alike": {
        Conclusion.HOLDS: (-1.0, 1.0),
        Conclusion.BETTER: (1.0, INFINITY),
        Conclusion.WORSE: (-INFINITY, -1.0),
    },
    "not_better": {
        Conclusion.HOLDS: (-INFINITY, 1.0),
        Conclusion.BETTER: (1.0, INFINITY),
    },
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_conclusion_allows_a_range_of_differences(kind):
    table = {line.conclusion: (line.low, line.high) for line in kind.table}
    assert table == RANGES[kind.name]
    assert {*kind.asserted} == {line.conclusion for line in kind.table if line.needs_p}

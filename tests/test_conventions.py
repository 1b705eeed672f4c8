"""Whether two results can be compared: kinds, scales, directions, queries,
galleries."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from benchmark.commands import conventions
from benchmark.commands.result_files import KEY, SAME, Kind, Result

QUERIES = [f"q{n:03d}" for n in range(150)]
HARD = np.random.default_rng(0).normal(size=150)


def result(
    name: str,
    values: object,
    kind: Kind = Kind.VALUES,
    queries: list[str] = QUERIES,
    way: str = "i2t",
    **facts: object,
) -> Result:
    """Values (Q,) of one seed, or (S, Q)."""
    seeds = np.atleast_2d(np.asarray(values, float))
    index = pd.MultiIndex.from_product([[way], queries], names=KEY)
    table = pd.DataFrame(seeds.T, index, pd.Index(range(len(seeds)), name="seed"))
    known = pd.DataFrame({"cluster": queries, **SAME}, index)
    return Result(
        name=name, kind=kind, table=table, facts=known, **{"depth": 0} | facts
    )


def fractions(seed: int, level: float) -> np.ndarray:
    own = np.random.default_rng(seed).normal(size=150)
    return 1 / (1 + np.exp(-level - HARD - own / 2))


GOOD, BAD = fractions(1, 2), fractions(2, -3)
HITS = 1.0 * (GOOD > 0.9)
LOSSES = -np.log(fractions(3, 0))


# Kind and scale -----------------------------------------------------------------------

ALIKE = {
    "fractions": (GOOD, BAD),
    "percentages": (100 * GOOD, 100 * BAD),
    "nothing right": (GOOD, 0 * GOOD),
    "nothing right, in per cent": (100 * GOOD, 0 * GOOD),
    "all right": (np.ones(150), BAD),
    "all right, in per cent": (np.full(150, 100), 100 * BAD),
    "losses": (LOSSES, 3 * LOSSES + 0.1),
    "unequal losses": (LOSSES / LOSSES.max() * 0.9, LOSSES),
    "rounded above 1": (GOOD / GOOD.max() + 1e-9, BAD),
    "negative": (GOOD - 0.5, BAD - 0.5),
}


@pytest.mark.parametrize("name", ALIKE)
def test_values_on_one_scale_are_compared(name):
    both = [
        result("a", values, Kind.HITS if set(values) <= {0, 1, 100} else Kind.VALUES)
        for values in ALIKE[name]
    ]
    conventions.check(*both)
    conventions.check(*both[::-1])
    assert conventions.common_kind(*both) == Kind.VALUES


OTHER_SCALES = {
    "percentages": (GOOD, 100 * BAD),
    "few percentages above 1": (GOOD, np.where(BAD > np.median(BAD), 30 * BAD, 0)),
    "up to 1": (GOOD / GOOD.max(), 5 * GOOD),
    "all right": (np.ones(150), 100 * BAD),
    "a hundred": (BAD, np.full(150, 100)),
    "ranks": (1 / np.arange(1, 151), np.arange(150)),
    "negative": (GOOD - 0.5, 100 * BAD - 50),
}


@pytest.mark.parametrize("name", OTHER_SCALES)
def test_values_on_other_scales_are_refused_until_an_option_decides(name):
    first, second = (
        result(name, values, Kind.HITS if set(values) <= {0, 1, 100} else Kind.VALUES)
        for name, values in zip("ab", OTHER_SCALES[name], strict=True)
    )
    with refused("a, b", "one scale", " in a and ", "--scale 100,1 "):
        conventions.check(first, second)
    with refused("b, a", "one scale", " in b and ", "--scale 1,100 "):
        conventions.check(second, first)
    conventions.check(replace(first, is_scaled=True), replace(second, is_scaled=True))


def test_seeds_of_one_side_on_two_scales_are_refused():
    with refused("a", "all seeds", "to 9", "--scale 1"):
        conventions.check(result("a", [GOOD, 100 * GOOD]), result("b", BAD))


def test_hits_and_other_values_are_refused_until_an_option_says_one_metric():
    hits, values = result("a", HITS, Kind.HITS), result("b", BAD)
    with refused(
        "a, b", "the same kind", "hits in a (0 to 1) and values in b", "--scale 1"
    ):
        conventions.check(hits, values)
    conventions.check(
        result("a", HITS, is_scaled=True), replace(values, is_scaled=True)
    )
    with refused("a, b", "the same kind", "values in a"):
        conventions.check(result("a", GOOD), result("b", range(150), Kind.RANKS))


def test_hits_of_two_scales_are_hits_and_that_is_said():
    both = result("a", HITS, Kind.HITS), result("b", 100 * HITS[::-1], Kind.HITS)
    conventions.check(*both)
    assert any("0 and 100" in note for note in conventions.notes(*both))


# Direction ----------------------------------------------------------------------------


@pytest.mark.parametrize("worse", [LOSSES, 1 - BAD])
def test_a_metric_and_a_loss_are_refused_until_an_option_decides(worse):
    both = result("a", GOOD), result("b", worse / 10)
    with refused("a, b", "greater values", "-0.", "--scale 1"):
        conventions.check(*both)
    conventions.check(*(replace(side, is_scaled=True) for side in both))


def test_of_hits_and_ranks_a_note_says_that_they_run_against_each_other():
    for kind, values in ((Kind.HITS, HITS), (Kind.RANKS, np.arange(150.0))):
        both = result("a", values, kind), result("b", values.max() - values, kind)
        conventions.check(*both)
        assert any(
            "rank correlation of -1.00" in note for note in conventions.notes(*both)
        )


def test_unrelated_values_are_no_opposites():
    for seed in range(30):
        own = np.random.default_rng(seed).normal(size=(2, 150))
        conventions.check(result("a", own[0]), result("b", own[1]))


def test_whole_numbers_may_be_ranks():
    both = result("a", np.arange(150)), result("b", np.arange(150) % 30)
    assert sum("column rank" in note for note in conventions.notes(*both)) == 2
    assert not conventions.notes(result("a", GOOD), result("b", BAD))


# Queries and items --------------------------------------------------------------------


def test_the_queries_of_one_side_alone_are_named():
    with refused("a, b", "the same queries", "3 in a alone, as 'q147'", "leave out"):
        conventions.check(
            result("a", GOOD), result("b", BAD[:147], queries=QUERIES[:147])
        )


@pytest.mark.parametrize("spelled", [str.upper, lambda name: f"q{int(name[1:])}"])
def test_queries_in_another_spelling_are_named(spelled):
    others = [spelled(name) for name in QUERIES]
    with refused("a, b", "same query names", "'q000' and ", "name them alike"):
        conventions.check(result("a", GOOD), result("b", BAD, queries=others))


def test_other_directions_are_named():
    with refused("a, b", "the same directions", "i2t and t2i"):
        conventions.check(result("a", GOOD), result("b", BAD, way="t2i"))


def test_a_run_of_more_items_than_a_whole_list_has_is_refused():
    ranks = np.arange(150) % 90
    whole = result("a", ranks, Kind.RANKS, items=frozenset("xyz"), lists_all=True)
    larger = result("b", ranks, Kind.RANKS, items=frozenset("wxyz"))
    with refused(
        "b, a", "the same gallery", "3 items in a, and others in b, such as 'w'"
    ):
        conventions.check(larger, whole)
    conventions.check(whole, replace(larger, items=frozenset("xy")))


# The end of lists ---------------------------------------------------------------------


def test_many_queries_at_the_last_rank_may_not_have_been_found():
    ranks = np.random.default_rng(1).geometric(0.1, 150) - 1
    clipped = result("a", np.minimum(ranks, 5), Kind.RANKS)
    assert conventions.heap_at_end(clipped) == 5
    assert conventions.heap_at_end(replace(clipped, depth=90)) is None  # all are known
    assert conventions.heap_at_end(result("a", ranks, Kind.RANKS)) is None
    assert conventions.heap_at_end(result("a", ranks % 7, Kind.RANKS)) is None
    assert conventions.heap_at_end(result("a", 0 * ranks, Kind.RANKS)) is None


def test_positions_of_which_most_are_zeros_are_refused_until_an_option_decides():
    rng = np.random.default_rng(5)
    sides = []
    for name in ("a", "b"):
        positions = rng.geometric(0.3, 150)
        positions[(positions > 10) | (rng.random(150) < 0.5)] = 0
        positions[0] = 10
        facts = {"kind": Kind.RANKS, "is_first_rank_open": True}
        sides.append(result(name, positions, **facts))
    with refused("a, b: rank", "ranks from 0", "beyond 10", "--first-rank 1"):
        conventions.check(*sides)
    conventions.check(sides[0], replace(sides[1], is_first_rank_open=False))

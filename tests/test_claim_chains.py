"""Claims on several pairs, and on fine-tunings, of made-up records."""

from functools import partial

import pandas as pd
import pytest
from builders import board, outcome, standing
from made_claims import MORE, around, claim, judge, played

from benchmark.analysis.boards import Standing
from benchmark.analysis.grounds import Cause


@pytest.fixture
def claimed(monkeypatch):
    """Judge these claims, and no other, on a board."""
    return partial(judge, monkeypatch)


def test_where_fine_tuning_cost_both_what_they_began_with_nothing_is_concluded(claimed):
    def tuned(name: str, level: float, *best: float) -> list[Standing]:
        """What it goes on from reached 100 on validation; one value for all seeds, or one each."""
        histories = [
            pd.DataFrame({"epoch": [1, 2, 3], "val_rsum": [best[seed % len(best)]] * 3})
            for seed in range(3)
        ]
        history = histories[0]
        facts = {"metrics": {MORE: 9.0}, "history": history.assign(val_rsum=100.0)}
        start = [outcome(f"{name}_start", seed, **facts) for seed in range(3)]
        cells = [
            outcome(name, seed, metrics={MORE: value}, history=histories[seed])
            for seed, value in enumerate(around(level))
        ]
        return [standing(f"{name}_start", start), standing(name, cells, start=f"{name}_start")]

    for best_of_b, conclusion in ((90, "undecided"), (110, "holds")):
        results = board(*tuned("a", 12, 90), *tuned("b", 10, best_of_b))
        (verdict,) = claimed(results, claim("a", "b"))
        assert verdict.conclusion == conclusion
    (partly,) = claimed(board(*tuned("a", 12, 90), *tuned("b", 10, 99, 99, 150)), claim("a", "b"))
    assert partly.conclusion == "holds"  # its mean did not fall
    (verdict,) = claimed(board(*tuned("a", 12, 90), *tuned("b", 10, 90)), claim("a", "b"))
    assert verdict.cause == Cause.BELOW_START and verdict.limits == [None]


def test_a_pair_with_the_opposite_difference_decides_what_a_claim_needs(claimed):
    """Of several, the one that needs least; without one, all undecided pairs count."""
    levels = {"a": 10.0, "b": 10.5, "c": 7.5, "d": 12.7}
    results = board(*(played(name, around(level, 2.0)) for name, level in levels.items()))
    behind, ahead, twice = claimed(
        results, claim("a", "b", "c"), claim("b", "a", "c"), claim("c", "a", "d")
    )
    assert {t.conclusion for of in (behind, twice) for t in of.tested} == {"undecided"}
    assert behind.limits == [behind.tested[0].limit] and behind.limits[0]
    assert behind.decisive == behind.tested[0]
    assert ahead.limits == [pair.limit for pair in ahead.tested] and len(ahead.limits) == 2
    needs = [pair.limit.seeds for pair in twice.tested]
    assert [limit.seeds for limit in twice.limits] == [min(needs)]
    assert twice.decisive.limit == twice.limits[0]


def test_of_pairs_that_are_reversed_the_surest_one_decides(claimed):
    levels = {"a": 10.0, "b": 12.0, "c": 15.0}
    results = board(*(played(name, around(level, 0.3)) for name, level in levels.items()))
    (verdict,) = claimed(results, claim("a", "b", "c"))
    assert {pair.conclusion for pair in verdict.tested} == {"reversed"}
    assert verdict.decisive == verdict.tested[1]


def test_of_pairs_that_all_hold_the_least_sure_one_decides(claimed):
    levels = {"a": 20.0, "b": 12.0, "c": 10.5}
    results = board(*(played(name, around(level, 0.3)) for name, level in levels.items()))
    (verdict,) = claimed(results, claim("a", "b", "c"))
    assert verdict.conclusion == "holds"
    assert verdict.decisive == verdict.tested[1]

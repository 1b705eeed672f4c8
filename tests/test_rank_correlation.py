"""Spearman's rank correlation with its interval."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from benchmark.stats import rank_correlation as module
from benchmark.stats.rank_correlation import FEWEST, rank_correlation, spearman


def groups_of_one(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def test_it_is_that_of_scipy_with_ties_too():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=40), rng.integers(0, 5, 40)
    expected = spearmanr(first, second).statistic
    assert spearman(first, second) == pytest.approx(expected)
    found = rank_correlation(first, second, groups_of_one(40))
    assert found.value == pytest.approx(expected)
    assert (found.count, found.groups) == (40, 40)


def test_the_interval_tells_a_connection_from_none():
    rng = np.random.default_rng(1)
    first = rng.normal(size=60)
    falls = rank_correlation(first, rng.normal(size=60) - 2 * first, groups_of_one(60))
    assert -1 <= falls.low < falls.value < falls.high < -0.5
    none = rank_correlation(first, rng.normal(size=60), groups_of_one(60))
    assert none.low < 0 < none.high
    again = rank_correlation(first, -first, groups_of_one(60))
    assert (again.low, again.value, again.high) == pytest.approx((-1, -1, -1))
    assert rank_correlation(first, -first, groups_of_one(60)) == again


def test_the_interval_covers_the_correlation_of_normal_pairs_95_times_of_100(
    monkeypatch,
):
    monkeypatch.setattr(module, "RESAMPLES", 300)
    rng, hits = np.random.default_rng(2), 0
    rho = 0.7
    truth = 6 / np.pi * np.arcsin(rho / 2)
    for _ in range(60):
        first = rng.normal(size=50)
        second = rho * first + np.sqrt(1 - rho**2) * rng.normal(size=50)
        found = rank_correlation(first, second, groups_of_one(50))
        hits += found.low <= truth <= found.high
    assert hits >= 51  # of 60; 57 are meant


def test_few_pairs_and_those_that_do_not_vary_tell_nothing():
    many = list(map(float, range(FEWEST)))
    apart = groups_of_one(FEWEST)
    assert rank_correlation(many[1:], many[1:], apart[1:]) is None
    assert rank_correlation(many, [1.0] * FEWEST, apart) is None
    assert rank_correlation(many, many, ["a"] * FEWEST) is None
    assert rank_correlation(many, many, apart) is not None


def test_groups_of_alike_pairs_tell_less_than_as_many_pairs_apart():
    rng = np.random.default_rng(3)
    centres = np.repeat(rng.normal(size=(2, 4)), 10, axis=1)
    first, second = centres + 0.1 * rng.normal(size=(2, 40))
    together = rank_correlation(first, second, np.repeat([*"abcd"], 10))
    apart = rank_correlation(first, second, groups_of_one(40))
    assert together.groups == 4
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_a_group_is_drawn_with_all_its_pairs():
    first = np.tile([0.0, 1.0, 2.0, 3.0], 4) + np.repeat(np.arange(4), 4) / 10
    # the first pair of each is the same, and tells nothing
    first[::4] = 0.0
    drawn = rank_correlation(first, first, np.repeat([*"abcd"], 4))
    assert (drawn.low, drawn.high) == pytest.approx((1.0, 1.0))

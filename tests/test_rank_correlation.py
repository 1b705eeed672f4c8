"""Spearman's rank correlation with its interval."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from benchmark.stats.rank_correlation import FEWEST, rank_correlation, spearman


def test_it_is_that_of_scipy_with_ties_too():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 40)), rng.integers(0, 5, (2, 40))
    expected = [spearmanr(*pair).statistic for pair in zip(first, second, strict=True)]
    assert spearman(first, second) == pytest.approx(expected)
    found = rank_correlation(list(first[0]), list(second[0]))
    assert found.value == pytest.approx(expected[0]) and found.count == 40


def test_the_interval_tells_a_connection_from_none():
    rng = np.random.default_rng(1)
    first = rng.normal(size=60)
    falls = rank_correlation(list(first), list(rng.normal(size=60) - 2 * first))
    assert -1 <= falls.low < falls.value < falls.high < -0.5
    none = rank_correlation(list(first), list(rng.normal(size=60)))
    assert none.low < 0 < none.high
    again = rank_correlation(list(first), list(-first))
    assert (again.low, again.value, again.high) == pytest.approx((-1, -1, -1))
    assert rank_correlation(list(first), list(-first)) == again


def test_the_interval_covers_what_it_should():
    """Of normal pairs of known correlation, about 95 of 100 times."""
    rng, hits = np.random.default_rng(2), 0
    rho = 0.7
    truth = 6 / np.pi * np.arcsin(rho / 2)
    for _ in range(60):
        first = rng.normal(size=50)
        second = rho * first + np.sqrt(1 - rho**2) * rng.normal(size=50)
        found = rank_correlation(list(first), list(second))
        hits += found.low <= truth <= found.high
    assert hits >= 51  # of 60; 57 are meant


def test_few_pairs_and_those_that_do_not_vary_tell_nothing():
    many = list(map(float, range(FEWEST)))
    assert rank_correlation(many[1:], many[1:]) is None
    assert rank_correlation(many, [1.0] * FEWEST) is None
    assert rank_correlation(many, many) is not None

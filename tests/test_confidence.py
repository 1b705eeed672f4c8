"""The level of intervals and tests is one number."""

import pytest
from scipy import stats

from benchmark.core.confidence import ALPHA, LEVEL, TAILS
from benchmark.stats.significance import Z


def test_tests_and_tails_follow_from_the_level():
    assert (LEVEL, ALPHA, TAILS) == (0.95, 0.05, (0.025, 0.975))
    assert pytest.approx(LEVEL) == TAILS[1] - TAILS[0]


def test_a_normal_interval_is_as_wide_as_its_tails_say():
    low, high = stats.norm.ppf(TAILS)
    assert (-Z, Z) == pytest.approx((low, high))

"""Options of a dataset that cannot be used are refused by their names."""

import pytest
from refusals import refused

from benchmark.readers import option_checks


@pytest.mark.parametrize("value", [0, -1, True, 2.0, "2", None])
def test_numbers_that_are_too_small_or_none(value):
    with refused("pets: option train", "at least 1", repr(value)):
        option_checks.check_number("pets", "train", value, 1)
    option_checks.check_number("pets", "train", 1, 1)


def test_a_choice_that_is_none_is_refused():
    option_checks.check_choice("pets", "split", "a", ("a", "b"))
    with refused("pets: option split", "a, b", "'c'"):
        option_checks.check_choice("pets", "split", "c", ("a", "b"))

"""Numbers as papers print them."""

import pytest

from benchmark.papers.rounded import Rounded


@pytest.mark.parametrize(
    "text, value, decimals",
    [("58.6", 58.6, 1), ("58,60", 58.6, 2), ("43", 43.0, 0), (".5", 0.5, 1)],
)
def test_a_number_keeps_its_decimals(text, value, decimals):
    number = Rounded.of(text)
    assert (number.value, number.decimals) == (value, decimals)
    assert str(number) == f"{value:.{decimals}f}"


@pytest.mark.parametrize("text", ["", ".", "1.2.3", "-5", "nan", "1e3", "12345678"])
def test_other_texts_are_no_numbers(text):
    assert Rounded.of(text) is None


def test_what_is_rounded_to_a_number_is_that_number():
    number = Rounded.of("58.6")
    assert number.half == pytest.approx(0.05)
    assert number.is_that_of(58.64) and number.is_that_of(58.55)
    assert not number.is_that_of(58.66)


def test_a_fraction_may_be_a_percentage():
    percentage = Rounded.of("0.586").in_percent
    assert (percentage.value, percentage.decimals) == (pytest.approx(58.6), 1)
    assert Rounded.of("0.5").in_percent is None  # too many numbers would be it
    assert Rounded.of("58.6").in_percent is None
    assert Rounded.of("0.58%").is_percent

"""Options of two rows that a season made unequal, or equal."""

from builders import outcome, standing

from benchmark.boards.board_settings import Unequal, settings_of_pair

RATE = {"options": {"rate": 1.0, "epochs": 3}, "scaled": ["rate", "epochs"]}


def row(name: str, rate: float, in_paper: float = 0.1, **facts: object):
    options = {"options": {"rate": rate, "epochs": 3}, "scaled": ["rate", "epochs"]}
    cell = outcome(name, 0, **options, **facts)
    return standing(name, [cell], options={"rate": in_paper})


def test_what_is_scaled_to_two_values_is_unequal():
    settings = settings_of_pair(row("a", 1.0), row("b", 2.0))
    assert settings.unequal == [Unequal("rate", 1.0, 2.0)] and settings.evened == []
    assert str(settings.unequal[0]) == "rate 1.0 and 2.0"


def test_what_the_paper_has_different_and_the_season_has_not_is_evened():
    settings = settings_of_pair(row("a", 1.0, 0.1), row("b", 1.0, 0.2))
    assert settings.unequal == [] and settings.evened == ["rate"]
    assert settings_of_pair(row("a", 1.0), row("b", 1.0)) == ([], [])


def test_rows_that_are_not_trained_alike_have_no_settings_in_common():
    other = row("b", 2.0, method="vse")
    assert settings_of_pair(row("a", 1.0), other) == ([], [])

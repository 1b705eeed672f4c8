"""Checks of the options of a dataset; each raises a UserError that names the option."""

from collections.abc import Iterable

from benchmark.contracts.datasets import UserError

CORRECT = "correct the option where it is set"


def check_number(dataset: str, option: str, value: object, least: int) -> None:
    """`value` must be an int of at least `least`; a bool is not one."""
    if type(value) is not int or value < least:
        raise refusal(dataset, option, f"a whole number of at least {least}", value)


def check_choice(
    dataset: str,
    option: str,
    value: object,
    choices: Iterable[str],
) -> None:
    """`value` must be one of `choices`."""
    choices = tuple(choices)
    if value not in choices:
        raise refusal(dataset, option, f"one of {', '.join(choices)}", value)


def refusal(dataset: str, option: str, expected: str, value: object) -> UserError:
    """The error for an option with the wrong value, to be raised."""
    return UserError(
        f"{dataset}: option {option}",
        expected=expected,
        found=repr(value),
        do=CORRECT,
    )

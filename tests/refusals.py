"""Errors that tests expect: by their fields, not by the wording of the line."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from benchmark.core.errors import UserError


@contextmanager
def refused(
    where: object = "",
    expected: object = "",
    found: object = "",
    do: object = "",
    kind: type[UserError] = UserError,
) -> Iterator[pytest.ExceptionInfo]:
    """The block raises an error of one line whose fields contain these texts."""
    with pytest.raises(kind) as caught:
        yield caught
    check(caught.value, where, expected, found, do)


def check(
    error: UserError,
    where: object = "",
    expected: object = "",
    found: object = "",
    do: object = "",
) -> None:
    """Every field of the error contains its text, and the line of the error is one
    line. `where` may begin with what the item is within."""
    assert str(where) in f"{error.within}: {error.where}", error
    assert str(expected) in error.expected, error
    assert str(found) in error.found, error
    assert str(do) in error.do, error
    assert len(str(error).splitlines()) == 1


def refusal(stage: ModuleType, *words: object) -> UserError:
    """The error with which a stage refuses this command line."""
    error = outcome(stage, *words)
    return (
        pytest.fail(f"{stage.__name__} did not refuse {words}")
        if error is None
        else error
    )


def outcome(stage: ModuleType, *words: object) -> UserError | None:
    """The error with which a stage refuses this command line, if it does; without the
    traceback, which would keep archives open."""
    parser = argparse.ArgumentParser()
    stage.configure(parser)
    try:
        stage.main(parser.parse_args([str(word) for word in words]))
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        return error.but()
    return None

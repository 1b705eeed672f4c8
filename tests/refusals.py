"""What lines say to users, errors above all: by their fields and facts, not by their
wording."""

import argparse
import re
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
    """Fields of the error of one line contain these texts."""
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
    """Fields contain these texts; `where` may begin with what it is within."""
    assert str(where) in f"{error.within}: {error.where}", error
    assert str(expected) in error.expected, error
    assert str(found) in error.found, error
    assert str(do) in error.do, error
    assert len(str(error).splitlines()) == 1


def refusal(stage: ModuleType, *words: object) -> UserError:
    error = outcome(stage, *words)
    return (
        pytest.fail(f"{stage.__name__} did not refuse {words}")
        if error is None
        else error
    )


def outcome(stage: ModuleType, *words: object) -> UserError | None:
    """A copy of the error, if any: its traceback would keep archives open."""
    parser = argparse.ArgumentParser()
    stage.configure(parser)
    try:
        stage.main(parser.parse_args([str(word) for word in words]))
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        return error.but()
    return None


def holds(line: str, *facts: object) -> bool:
    """Each of these numbers, names and words, whole, in any order."""
    return all(
        re.search(rf"(?<!\w){re.escape(str(fact))}(?!\w)", line) for fact in facts
    )

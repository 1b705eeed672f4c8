"""Mistakes that a user can correct, and how a failed check of their files becomes one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from datasets import DataError

LONGEST = 200  # characters of a value in a message
M = TypeVar("M", bound=BaseModel)


class UserError(DataError):
    """One line: where, what was expected, what was found, what to do. The command line exits
    with 2."""


@contextmanager
def corrected_by(command: str) -> Iterator[None]:
    """Errors in files that a command writes tell to run it: nobody corrects these by hand."""
    try:
        yield
    except DataError as error:
        raise UserError(error.where, error.expected, error.found, f"run: {command}") from error


def checked(model: type[M], data: object, where: str) -> M:
    """`data` as `model`; the first thing wrong is a `UserError` that starts with `where`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise unfit(error, where, sorted(model.model_fields)) from error


def unfit(error: ValidationError, where: str, known: list[str]) -> UserError:
    """The first thing that pydantic found wrong, as a `UserError`; `known` are the valid keys."""
    first = error.errors()[0]
    key = ".".join(str(part)[:LONGEST] for part in first["loc"]) or "(top level)"
    if first["type"] == "extra_forbidden":
        expected = f"one of {', '.join(known)}" if len(first["loc"]) == 1 else "a known key"
        return UserError(f"{where}: {key}", expected, "an unknown key", "correct or remove it")
    if first["type"] == "missing":
        return UserError(f"{where}: {key}", "a value", "nothing", "add the key")
    return UserError(f"{where}: {key}", _plain(first["msg"]), short(first["input"]), "correct it")


def short(value: object) -> str:
    """What a value looks like, on one line that can be read."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _plain(message: str) -> str:
    """Pydantic's "Input should be an integer" as what is expected: "an integer"."""
    for start in ("Input should be ", "Value error, "):
        message = message.removeprefix(start)
    return message

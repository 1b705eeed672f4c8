"""Mistakes that a user can correct, and how a failed check of their files becomes one line."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from datasets import DataError

M = TypeVar("M", bound=BaseModel)


class UserError(DataError):
    """One line: where, what was expected, what was found, what to do. The command line exits
    with 2."""


def checked(model: type[M], data: object, where: str) -> M:
    """`data` as `model`; the first thing wrong is a `UserError` that starts with `where`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "(top level)"
        known = ", ".join(sorted(model.model_fields))
        hint = f"; known keys: {known}" if first["type"] == "extra_forbidden" else ""
        found = first["input"]
        raise UserError(f"{where}: {place}: {first['msg']}, found {found!r}{hint}") from error

"""Mistakes that a user can correct, and how a failed check of their files becomes one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import UnionType
from typing import Annotated, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from benchmark.core.suggestions import suggested
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
        keys = keys_at(model, error.errors()[0]["loc"][:-1])
        raise unfit(error, where, keys) from error


def keys_at(model: type, path: tuple[str | int, ...]) -> list[str]:
    """The valid keys of the place that a path leads to, from a model downwards; none where it is
    no model."""
    kinds = [model]
    for part in path:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)]
    return sorted({key for kind in kinds if _is_model(kind) for key in kind.model_fields})


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _inside(kind: object, part: str | int) -> list[object]:
    """What may be under a key or number of a value of this kind."""
    if _is_model(kind):
        return _plain_kinds(kind.model_fields[part].annotation) if part in kind.model_fields else []
    return [inner for each in get_args(kind)[-1:] for inner in _plain_kinds(each)]


def _plain_kinds(kind: object) -> list[object]:
    """The kinds of a union, without what is only annotated."""
    if get_origin(kind) is Annotated:
        return _plain_kinds(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [inner for each in get_args(kind) for inner in _plain_kinds(each)]
    return [kind]


def unfit(error: ValidationError, where: str, known: list[str]) -> UserError:
    """The first thing that pydantic found wrong, as a `UserError`; `known` are the valid keys."""
    first = error.errors()[0]
    key = ".".join(str(part)[:LONGEST] for part in first["loc"]) or "(top level)"
    if first["type"] == "extra_forbidden":
        expected = f"one of {', '.join(known)}" if known else "a known key"
        found = f"an unknown key: {suggested(first['loc'][-1], known)}"
        return UserError(f"{where}: {key}", expected, found, "correct or remove it")
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

"""From the names and options of a cell to its method and the frozen `Config` of it."""

from dataclasses import asdict, fields
from types import ModuleType

from pydantic import TypeAdapter, ValidationError

import methods
from benchmark.core.errors import UserError


def method_of(name: str) -> ModuleType:
    """The module of a method by name or path; an unknown one is a `UserError`."""
    try:
        return methods.load(name)
    except ValueError as error:
        raise UserError(str(error)) from error


def configured(method: ModuleType, options: dict, where: str) -> object:
    """`method.Config` with `options` over its defaults.

    Raises UserError for a key that Config has not, with the valid ones, and for a wrong value.
    """
    known = [field.name for field in fields(method.Config)]
    for key in options:
        if key not in known:
            raise UserError(f"{where}: no option {key!r}; expected one of {', '.join(known)}")
    try:
        return TypeAdapter(method.Config).validate_python(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{where}: {place}: {first['msg']}, found {first['input']!r}") from error
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


def spelt_out(config: object) -> dict:
    """Every hyper-parameter of a Config, as plain values."""
    return asdict(config)

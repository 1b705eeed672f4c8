"""From the names and options of a cell to its method and the frozen `Config` of it."""

from dataclasses import asdict, fields
from types import ModuleType

from pydantic import TypeAdapter, ValidationError

import methods
from benchmark.core.errors import UserError


def method_of(name: str) -> ModuleType:
    """The module of a method by name or path. Raises UserError for an unknown one."""
    try:
        return methods.load(name)
    except ValueError as error:
        raise UserError(
            where=f"method {name!r}",
            expected=f"one of {', '.join(methods.names())}, or the path of a .py file",
            found="no such method",
            do="correct its name",
        ) from error


def configured(method: ModuleType, options: dict, where: str) -> object:
    """`method.Config` with `options` over its defaults.

    Raises UserError for an option that Config does not have, and for a value that it refuses.
    """
    names = [field.name for field in fields(method.Config)]
    for name in options:
        if name not in names:
            raise UserError(
                where=f"{where}: option {name!r}",
                expected=f"one of {', '.join(names)}",
                found="an unknown option",
                do="correct its name in the preset or the season",
            )
    try:
        return TypeAdapter(method.Config).validate_python(dict(options))
    except ValidationError as error:
        raise _refused(error, where) from error


def _refused(error: ValidationError, where: str) -> UserError:
    """The first value that pydantic, or the Config itself, refuses."""
    first = error.errors()[0]
    option = ".".join(str(part) for part in first["loc"])
    expected, found = first["msg"], first["input"]
    for start in ("Input should be ", "Value error, "):
        expected = expected.removeprefix(start)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, methods.OptionError):
        option, expected, found = cause.option, cause.expected, cause.found
    return UserError(
        where=f"{where}: {option}" if option else where,
        expected=expected,
        found=repr(found),
        do="correct it in the preset or the season",
    )


def spelt_out(config: object) -> dict:
    """Every hyper-parameter of a Config, as plain values."""
    return asdict(config)

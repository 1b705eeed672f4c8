"""From the names and options of a cell to its method and the frozen `Config` of it."""

import os
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from pydantic import TypeAdapter, ValidationError

from benchmark.contracts import methods
from benchmark.core.errors import UserError, suggested, unfit
from benchmark.season.parameters import Cell

OFFERED = ("Config", "inputs", "Model", "recipe")


def method_of(name: str) -> ModuleType:
    """The module of a method by name or path. Raises UserError for an unknown one, and for a file
    that cannot be imported or is no method."""
    if name.endswith(".py") and Path(name).is_file():
        return _of_file(name)
    try:
        return methods.load(name)
    except ValueError as error:
        expected = f"one of {', '.join(methods.names())}, or the path of a .py file"
        found = f"no such method: {suggested(name, methods.names())}"
        raise UserError(f"method {name!r}", expected, found, "correct its name") from error


def _of_file(path: str) -> ModuleType:
    """Whatever the file raises is for who wrote it to correct; the last line of the file that the
    error came through is named."""
    try:
        module = methods.load(path)
    except (Exception, SystemExit) as error:
        frames = extract_tb(error.__traceback__)
        lines = [f.lineno for f in frames if os.path.abspath(f.filename) == os.path.abspath(path)]
        lines += [error.lineno] if isinstance(error, SyntaxError) else []
        where = f"{path}: line {lines[-1]}" if lines else path
        found = f"{type(error).__name__}: {error}"
        raise UserError(where, "a method that can be imported", found, "correct it") from error
    if missing := [name for name in OFFERED if name not in vars(module)]:
        do = "benchmark/contracts/methods.py tells what a method offers"
        raise UserError(path, ", ".join(OFFERED), f"no {', '.join(missing)}", do)
    if not is_dataclass(module.Config):
        raise UserError(f"{path}: Config", "a frozen dataclass", "another class", "add @dataclass")
    return module


@dataclass(frozen=True)
class ConfiguredMethod:
    """The method of a cell with the options of its preset, from one load of its file: what a second
    load defines is equal to nothing of the first."""

    module: ModuleType
    config: object
    takes: methods.Inputs

    @classmethod
    def of(cls, cell: Cell) -> "ConfiguredMethod":
        """Raises UserError as `method_of` and `configured`."""
        module = method_of(cell.method)
        config = configured(module, cell.options, f"preset {cell.preset}")
        return cls(module, config, module.inputs(config))


def inputs_of(method: ModuleType, options: dict, where: str) -> methods.Inputs:
    """What a method takes with these options. Raises UserError as `configured`, and where it says
    nothing that can be."""
    takes = method.inputs(configured(method, options, where))
    if not isinstance(takes, methods.Inputs):
        raise UserError(f"{where}: inputs", "Inputs(...)", takes, "correct the method")
    return takes


def configured(method: ModuleType, options: dict, where: str) -> object:
    """`method.Config` with `options` over its defaults. Raises UserError for an option that Config
    does not have, and for a value that it refuses."""
    names = [field.name for field in fields(method.Config)]
    for name in options:
        if name not in names:
            found = f"an unknown option: {suggested(name, names)}"
            do = "correct its name in the preset or the season"
            raise UserError(f"{where}: option {name!r}", f"one of {', '.join(names)}", found, do)
    try:
        return _checker(method.Config).validate_python(dict(options))
    except ValidationError as error:
        cause = error.errors()[0].get("ctx", {}).get("error")
        if not isinstance(cause, methods.OptionError):
            raise unfit(error, where, names) from error
        do = "correct it in the preset or the season"
        raise UserError(
            f"{where}: {cause.option}", cause.expected, repr(cause.found), do
        ) from error


_checker = cache(TypeAdapter)  # a season has hundreds of cells of few methods

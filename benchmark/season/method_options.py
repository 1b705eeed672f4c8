"""From the names and options of a cell to its method and the frozen `Config` of it."""

import os
import sys
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from pydantic import TypeAdapter, ValidationError

import methods
from benchmark.core.errors import UserError
from benchmark.core.suggestions import suggested
from benchmark.season import code_digests
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
        raise UserError(
            where=f"method {name!r}",
            expected=f"one of {', '.join(methods.names())}, or the path of a .py file",
            found=_found(name),
            do="correct its name",
        ) from error


def _found(name: str) -> str:
    if name.endswith(".py"):
        return "no such file"
    return f"no such method: {suggested(name, methods.names())}"


def _of_file(path: str) -> ModuleType:
    """Whatever the file raises is for who wrote it to correct."""
    try:
        module = methods.load(path)
    except (Exception, SystemExit) as error:
        found = f"{type(error).__name__}: {error}"
        where = f"{path}{_line_in(path, error)}"
        raise UserError(where, "a method that can be imported", found, "correct it") from error
    if beside := _imports_beside(path):
        do = "put it into the same file, or install it as a package"
        raise UserError(path, "a method in one file", f"an import of {beside}", do)
    missing = [name for name in OFFERED if name not in vars(module)]
    if missing:
        expected, found = ", ".join(OFFERED), f"no {', '.join(missing)}"
        raise UserError(path, expected, found, "methods/__init__.py tells what a method offers")
    if not is_dataclass(module.Config):
        raise UserError(f"{path}: Config", "a frozen dataclass", "another class", "add @dataclass")
    return module


def _imports_beside(path: str) -> str:
    """A file in its folder, or in the present one, that a method imports: no digest would tell of a
    change of it. Empty where there is none."""
    names = code_digests.imports_of(Path(path).read_text(encoding="utf-8"))
    firsts = {name.partition(".")[0] for name in names}
    firsts -= {*code_digests.PACKAGES, *sys.stdlib_module_names}
    for folder in dict.fromkeys((Path(path).parent, Path())):
        for first in sorted(firsts):
            files = [folder / f"{first}.py", *sorted((folder / first).rglob("*.py"))]
            if beside := next((file for file in files if file.is_file()), None):
                return str(beside)
    return ""


def _line_in(path: str, error: BaseException) -> str:
    """The last line of this file that an error came through; of one that could not be read, the
    line where the reader stopped."""
    if isinstance(error, SyntaxError):
        return f": line {error.lineno}"
    own = os.path.abspath(path)
    lines = [
        f.lineno for f in extract_tb(error.__traceback__) if os.path.abspath(f.filename) == own
    ]
    return f": line {lines[-1]}" if lines else ""


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
    config = configured(method, options, where)
    try:
        takes = method.inputs(config)
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise UserError(f"{where}: inputs", "Inputs(...)", error, "correct the method") from error
    if not isinstance(takes, methods.Inputs):
        raise UserError(f"{where}: inputs", "Inputs(...)", takes, "correct the method")
    return takes


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
                found=f"an unknown option: {suggested(name, names)}",
                do="correct its name in the preset or the season",
            )
    try:
        return _checker(method.Config).validate_python(dict(options))
    except ValidationError as error:
        raise _refused(error, where) from error


@cache
def _checker(config: type) -> TypeAdapter:
    """Made once: a season has hundreds of cells of few methods."""
    return TypeAdapter(config)


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

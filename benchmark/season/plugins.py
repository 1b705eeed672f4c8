"""Methods as a season sees them: their options, their presets, and their code as
identity knows it.

Presets are rows of the papers' tables as options of methods; the numbers that the
papers print for them are in benchmark/papers/. Of code, identity knows the text of
plug-ins, and a version for each stage of the rest. Imports no torch before a method is
loaded.
"""

import ast
import hashlib
import io
import os
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Literal

from pydantic import Field, TypeAdapter, ValidationError

from benchmark.contracts import HOME, methods
from benchmark.core.errors import Strict, UserError, checked, suggested, unfit
from benchmark.core.files import read_yaml
from benchmark.core.names import Name, checked_name
from benchmark.season.parameters import CORRECTIONS, Cell, Correction, Option

CONTRACTS = "benchmark.contracts"
VERSIONS = Path(__file__).parents[1] / "versions.yaml"
OFFERED = ("Config", "inputs", "Model", "recipe")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
STRINGS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))


# Methods ------------------------------------------------------------------------------


def method_of(name: str) -> ModuleType:
    """The module of a method, by its name or the path of its file.

    Raises UserError for an unknown name, and for a file that is missing, cannot be
    imported, or is no method. Whatever the file raises becomes such an error, which
    names the last line of the file in the traceback.
    """
    if not name.endswith(".py"):
        known = methods.names()
        if name not in known:
            raise UserError(
                f"method {name!r}",
                expected=f"one of {', '.join(known)}, or the path of a .py file",
                found=f"unknown method {suggested(name, known)}",
                do="correct its name",
            )
        return methods.load(name)
    file = method_file(name)
    if not file.is_file():
        raise UserError(
            f"method {name!r}",
            expected="the path of a .py file",
            found="no such file",
            do="correct the path",
        )
    try:
        module = methods.load(str(file))
    except (Exception, SystemExit) as error:
        raise _not_imported(str(file), error) from error
    missing = [offer for offer in OFFERED if offer not in vars(module)]
    if missing:
        raise UserError(
            name,
            expected=", ".join(OFFERED),
            found=f"no {', '.join(missing)}",
            do="see benchmark/contracts/methods.py for what a method offers",
        )
    if not is_dataclass(module.Config):
        raise UserError(
            f"{name}: Config",
            expected="a frozen dataclass",
            found="another class",
            do="add @dataclass",
        )
    return module


def method_file(path: str) -> Path:
    """The file of a method that a season names: from the working folder or, as those of
    ready-made seasons, from where methods/ lie."""
    return Path(path) if Path(path).is_file() else HOME / path


def _not_imported(name: str, error: BaseException) -> UserError:
    """What a method file raised, with its last line that the error came through."""
    lines = []
    for frame in extract_tb(error.__traceback__):
        if os.path.abspath(frame.filename) == os.path.abspath(name):
            lines.append(frame.lineno)
    if isinstance(error, SyntaxError) and error.lineno:
        lines.append(error.lineno)
    where = f"{name}: line {lines[-1]}" if lines else name
    advice = "correct it"
    if isinstance(error, ImportError) and error.name == "methods":
        advice = "import it from benchmark.contracts.methods"
    return UserError(
        where,
        expected="a method that can be imported",
        found=f"{type(error).__name__}: {error}",
        do=advice,
    )


@dataclass(frozen=True)
class ConfiguredMethod:
    """The method of a cell with the options of its preset, from one load of its file:
    what a second load defines is equal to nothing of the first."""

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
    """What a method takes with these options. Raises UserError as `configured`, and
    where it says nothing that can be."""
    takes = method.inputs(configured(method, options, where))
    if not isinstance(takes, methods.Inputs):
        raise UserError(
            f"{where}: inputs",
            expected="Inputs(...)",
            found=takes,
            do="correct the method",
        )
    return takes


def configured(method: ModuleType, options: dict, where: str) -> object:
    """`method.Config` with `options` over its defaults. Raises UserError for an option
    that Config does not have, and for a value that it refuses."""
    names = [field.name for field in fields(method.Config)]
    advice = "correct it in the preset or the season"
    for name in options:
        if name not in names:
            raise UserError(
                f"{where}: option {name!r}",
                expected=f"one of {', '.join(names)}",
                found=f"an unknown option: {suggested(name, names)}",
                do=advice,
            )
    try:
        return _checker(method.Config).validate_python(dict(options))
    except ValidationError as error:
        cause = error.errors()[0].get("ctx", {}).get("error")
        if isinstance(cause, methods.OptionError):
            raise UserError(
                f"{where}: {cause.option}",
                expected=cause.expected,
                found=repr(cause.found),
                do=advice,
            ) from error
        raise unfit(error, where, names) from error


_checker = cache(TypeAdapter)  # a season has hundreds of cells of few methods


# Presets ------------------------------------------------------------------------------


class Fuse(Strict):
    """Late fusion: scores of presets, or named parts of them ("preset:score"), as one
    score; or their mean, corrected."""

    how: Literal["average", "adaptive", "weighted"] | Correction
    of: list[str] = Field(min_length=1, max_length=3)

    @property
    def members(self) -> list[tuple[str, str]]:
        """Preset and named score ("": the similarity) of each member."""
        members = []
        for member in self.of:
            name, _, part = member.partition(":")
            members.append((name, part))
        return members


class Preset(Strict):
    """A row of a paper's table: a method with options, or a fusion of other presets."""

    title: str
    family: Literal["paper", "official"] = "paper"
    network: str | None = None  # image network the paper feeds it
    # side of the image grid, where it needs more regions than the season's
    grid: int | None = None
    sentence: Name | None = None  # encoder of benchmark/features, for sentence vectors
    start: str | None = None  # preset whose checkpoint training starts from
    options: dict[str, Option] = {}
    fuse: Fuse | None = None
    note: str = ""
    of_paper: bool = True  # its network and encoder are those of a paper


# preset -> its method, a name or a file, and its content
Known = dict[str, tuple[str, Preset]]


@cache
def presets() -> Known:
    """Every preset, from the YAML file beside each method; not to be changed."""
    by_name: Known = {}
    for path in sorted((HOME / "methods").glob("*.yaml")):
        rows = _read_presets(path)
        for name, preset in rows.items():
            if name in by_name:
                raise UserError(
                    f"{shown(path)}: preset {name!r}",
                    expected="every preset once",
                    found=f"another in methods/{by_name[name][0]}.yaml",
                    do="rename one of them",
                )
            by_name[name] = path.stem, preset
    return by_name


def own_presets(own_methods: Mapping[str, str]) -> Known:
    """Presets of method files anywhere, by the names of the methods: those of the YAML
    file beside each, and the method as it is, under its own name. Raises UserError for
    names that are taken."""
    by_name: Known = {}
    others = presets() if own_methods else {}
    for method, file in own_methods.items():
        rows = _read_presets(method_file(file).with_suffix(".yaml"))
        rows.setdefault(method, Preset(title=f"{method}, defaults"))
        for name, preset in rows.items():
            if name in others or name in by_name:
                raise UserError(
                    f"methods.{method}: preset {name!r}",
                    expected="an unused name",
                    found="that of a preset",
                    do="rename it",
                )
            by_name[name] = file, preset
    return by_name


def check_corrections(
    corrections: Mapping[Correction, list[str]], known: Known
) -> None:
    """Raise UserError for a preset that cannot be corrected."""
    able = []
    for name, (_, preset) in known.items():
        if not preset.fuse or preset.fuse.how == "average":
            able.append(name)
    for correction, names in corrections.items():
        for name in names:
            corrected = f"{name}_{correction}"
            if name not in able or corrected in known:
                raise UserError(
                    f"corrections.{correction}",
                    expected="a preset with a score of its own, or an average; "
                    f"and no preset {corrected}",
                    found=suggested(name, able),
                    do="correct it",
                )


def corrected_presets(
    corrections: Mapping[Correction, list[str]], known: Known
) -> Known:
    """Presets of a season's corrections, which can be corrected."""
    by_name: Known = {}
    for correction, names in corrections.items():
        for name in names:
            method, preset = known[name]
            members = preset.fuse.of if preset.fuse else [name]
            title = f"{preset.title}, {CORRECTIONS[correction]}"
            fuse = Fuse(how=correction, of=members)
            changes = {"title": title, "fuse": fuse}
            corrected = f"{name}_{correction}"
            by_name[corrected] = method, preset.model_copy(update=changes)
    return by_name


def _read_presets(path: Path) -> dict[str, Preset]:
    """Those of a YAML file; none where there is no such file."""
    rows = read_yaml(path) if path.is_file() else {}
    if {"title", "datasets", "presets"} <= rows.keys():
        rows = {}  # the file of a season that has the name of the method
    by_name = {}
    for name, row in rows.items():
        checked_name(name, f"{shown(path)}: preset")
        by_name[name] = checked(Preset, row, f"{shown(path)}: {name}")
    return by_name


def needs(name: str, known: Known, needed_by: tuple[str, ...] = ()) -> list[str]:
    """The preset and, before it, what it is made of: members of a fusion, the one that
    it starts from, and so on. `needed_by` are those that led to it. Raises UserError
    for one that is unknown, that needs itself, or that is a fusion."""
    _, preset = known[name]
    others = [member for member, _ in preset.fuse.members] if preset.fuse else []
    if preset.start:
        others.append(preset.start)
    needed: dict[str, None] = {}
    path = (*needed_by, name)
    for other in others:
        fault = ""
        if other not in known:
            fault = f"an unknown preset: {suggested(other, known)}"
        elif other in path:
            fault = f"{other}, which needs {name}"
        elif known[other][1].fuse:
            fault = f"{other}, a fusion"
        if fault:
            raise UserError(
                f"preset {name}",
                expected="presets with trainings of their own in `start` and `fuse`",
                found=fault,
                do="correct the .yaml file of its method",
            )
        needed |= dict.fromkeys(needs(other, known, path))
    return [*needed, name]


def shown(path: Path) -> str:
    """`path` as messages name it: from the repository root where it lies in there."""
    if path.is_relative_to(HOME):
        return str(path.relative_to(HOME))
    return str(path)


# Code ---------------------------------------------------------------------------------


@cache
def versions() -> dict[str, int]:
    """Stage -> the version of what it writes."""
    return read_yaml(VERSIONS)


def code_files(path: Path) -> dict[Path, str]:
    """The file of a plug-in, those of the plug-ins that it imports, and files beside it
    that these import -> the sha256 of their code."""
    reached: dict[Path, str] = {}
    ahead = [path.resolve()]
    while ahead:
        file = ahead.pop()
        if file in reached or not file.is_file():
            continue
        source = file.read_text(encoding="utf-8")
        reached[file], beside, plugins = _digest_and_imports(source)
        ahead += [file.parent / name for name in beside]
        ahead += [HOME / name for name in plugins]
    return reached


def plugin_digest(path: Path) -> str:
    """sha256 of the code of all `code_files` of a plug-in."""
    digests = " ".join(sorted(code_files(path).values()))
    return hashlib.sha256(digests.encode()).hexdigest()


def method_digest(method: str) -> str:
    """`plugin_digest` of a method, by its name or the path of its file."""
    if method.endswith(".py"):
        return plugin_digest(method_file(method))
    return plugin_digest(methods.FOLDER / f"{method}.py")


@cache
def _digest_and_imports(source: str) -> tuple[str, frozenset[str], frozenset[str]]:
    """sha256 of the text without comments and docstrings and, outside of strings, blank
    lines and trailing spaces; and the files that it may import: those beside it, and
    plug-ins."""
    tree = ast.parse(source)
    lines = source.splitlines()
    verbatim: set[int] = set()  # rows that end within a string
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
        elif token.type in STRINGS:
            verbatim.update(range(token.start[0], token.end[0]))
    for row in _docstring_rows(tree):
        lines[row - 1] = ""
        verbatim.discard(row)
    code = []
    for row, line in enumerate(lines, 1):
        if row in verbatim:
            code.append(line)
        elif line.strip():
            code.append(line.rstrip())
    digest = hashlib.sha256("\n".join(code).encode()).hexdigest()
    beside = set()
    plugins = set()
    for name in _imports(tree):
        beside.add(f"{name.partition('.')[0]}.py")
        # benchmark.contracts.methods.x
        if name.startswith(CONTRACTS) and name.count(".") > 2:
            kind, plugin = name.split(".")[2:4]
            plugins.add(f"{kind}/{plugin}.py")
    return digest, frozenset(beside), frozenset(plugins)


def _docstring_rows(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, DOCUMENTED):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            yield from range(text.lineno, text.end_lineno + 1)


def _imports(tree: ast.Module) -> Iterator[str]:
    """The dotted names that it imports: `from a import b` gives a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            for alias in node.names:
                yield f"{node.module}.{alias.name}"

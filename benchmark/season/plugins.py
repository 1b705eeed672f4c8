"""Methods as a season sees them: their options, their presets, and their code as
identity knows it.

Presets are rows of the papers' tables as options of methods; the numbers that the
papers print for them are in benchmark/papers/. Of code, identity knows the text of
plug-ins, and a version for each stage of the rest. Knows no torch before a method is
loaded.
"""

import ast
import hashlib
import io
import os
import tokenize
from collections.abc import Mapping
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

PACKAGE_ROOT = HOME  # where methods/, datasets/ and seasons/ lie
CONTRACTS = "benchmark.contracts"
VERSIONS = Path(__file__).parents[1] / "versions.yaml"
OFFERED = ("Config", "inputs", "Model", "recipe")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
STRINGS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))


# Methods ------------------------------------------------------------------------------


def method_of(name: str) -> ModuleType:
    """The module of a method by name or path. Raises UserError for an unknown one, and
    for a file that cannot be imported or is no method: whatever the file raises is for
    who wrote it to correct, and its last line that the error came through is named."""
    if not (name.endswith(".py") and Path(name).is_file()):
        if name not in methods.names():
            expected = f"one of {', '.join(methods.names())}, or the path of a .py file"
            found = f"no such method: {suggested(name, methods.names())}"
            raise UserError(f"method {name!r}", expected, found, "correct its name")
        return methods.load(name)
    try:
        module = methods.load(name)
    except (Exception, SystemExit) as error:
        frames = extract_tb(error.__traceback__)
        lines = [
            f.lineno
            for f in frames
            if os.path.abspath(f.filename) == os.path.abspath(name)
        ]
        lines += [error.lineno] if isinstance(error, SyntaxError) else []
        where = f"{name}: line {lines[-1]}" if lines else name
        found = f"{type(error).__name__}: {error}"
        is_old = isinstance(error, ImportError) and error.name == "methods"
        do = "import it from benchmark.contracts.methods" if is_old else "correct it"
        raise UserError(where, "a method that can be imported", found, do) from error
    if missing := [offer for offer in OFFERED if offer not in vars(module)]:
        do = "benchmark/contracts/methods.py tells what a method offers"
        raise UserError(name, ", ".join(OFFERED), f"no {', '.join(missing)}", do)
    if not is_dataclass(module.Config):
        raise UserError(
            f"{name}: Config", "a frozen dataclass", "another class", "add @dataclass"
        )
    return module


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
        raise UserError(f"{where}: inputs", "Inputs(...)", takes, "correct the method")
    return takes


def configured(method: ModuleType, options: dict, where: str) -> object:
    """`method.Config` with `options` over its defaults. Raises UserError for an option
    that Config does not have, and for a value that it refuses."""
    names = [field.name for field in fields(method.Config)]
    do = "correct it in the preset or the season"
    for name in options:
        if name not in names:
            found = f"an unknown option: {suggested(name, names)}"
            raise UserError(
                f"{where}: option {name!r}", f"one of {', '.join(names)}", found, do
            )
    try:
        return _checker(method.Config).validate_python(dict(options))
    except ValidationError as error:
        cause = error.errors()[0].get("ctx", {}).get("error")
        if isinstance(cause, methods.OptionError):
            place = f"{where}: {cause.option}"
            raise UserError(place, cause.expected, repr(cause.found), do) from error
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
        return [
            (name, part)
            for name, _, part in (member.partition(":") for member in self.of)
        ]


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
    for path in sorted((PACKAGE_ROOT / "methods").glob("*.yaml")):
        rows = _read_presets(path)
        if taken := rows.keys() & by_name:
            where = f"{shown(path)}: preset {min(taken)!r}"
            other = f"another in methods/{by_name[min(taken)][0]}.yaml"
            raise UserError(where, "every preset once", other, "rename one of them")
        by_name |= {name: (path.stem, preset) for name, preset in rows.items()}
    return by_name


def own_presets(own_methods: Mapping[str, str]) -> Known:
    """Presets of method files anywhere, by the names of the methods: those of the YAML
    file beside each, and the method as it is, under its own name. Raises UserError for
    names that are taken."""
    by_name: Known = {}
    others = presets() if own_methods else {}
    for name, file in own_methods.items():
        rows = _read_presets(Path(file).with_suffix(".yaml"))
        rows.setdefault(name, Preset(title=f"{name}, defaults"))
        if taken := rows.keys() & (others | by_name):
            where = f"methods.{name}: preset {min(taken)!r}"
            raise UserError(
                where, "a name that no preset has", "one", "give it another name"
            )
        by_name |= {row: (file, preset) for row, preset in rows.items()}
    return by_name


def corrected_presets(
    corrections: Mapping[Correction, list[str]], known: Known
) -> Known:
    """Those of a season's corrections. Raises UserError for a preset that cannot be
    corrected."""
    by_name: Known = {}
    able = [
        of
        for of, (_, row) in known.items()
        if not row.fuse or row.fuse.how == "average"
    ]
    for of, how in ((of, how) for how, those in corrections.items() for of in those):
        if of not in able or f"{of}_{how}" in known:
            expected = f"a preset with a score of its own, or an average; and no preset {of}_{how}"
            raise UserError(
                f"corrections.{how}", expected, suggested(of, able), "correct it"
            )
        method, row = known[of]
        fuse = Fuse(how=how, of=row.fuse.of if row.fuse else [of])
        title = f"{row.title}, {CORRECTIONS[how]}"
        by_name[f"{of}_{how}"] = (
            method,
            row.model_copy(update={"title": title, "fuse": fuse}),
        )
    return by_name


def _read_presets(path: Path) -> dict[str, Preset]:
    """Those of a YAML file; none where there is no such file."""
    rows = read_yaml(path) if path.is_file() else {}
    if {"title", "datasets", "presets"} <= rows.keys():
        rows = {}  # a season's file, which one may well call as one's method
    names = [checked_name(name, f"{shown(path)}: preset") for name in rows]
    return {
        name: checked(Preset, rows[name], f"{shown(path)}: {name}") for name in names
    }


def needs(name: str, known: Known) -> list[str]:
    """The preset and, before it, what it is made of: members of a fusion, the one that
    it starts from, and so on."""
    row = known[name][1]
    others = [member for member, _ in row.fuse.members] if row.fuse else []
    others += [row.start] if row.start else []
    needed = [preset for other in others for preset in needs(other, known)]
    return list(dict.fromkeys([*needed, name]))


def shown(path: Path) -> str:
    """`path` as messages name it: from the repository root where it lies in there."""
    return (
        str(path.relative_to(PACKAGE_ROOT))
        if path.is_relative_to(PACKAGE_ROOT)
        else str(path)
    )


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
        reached[file], names = _digest_and_imports(file.read_text(encoding="utf-8"))
        for name in names:
            ahead.append(file.parent / f"{name.partition('.')[0]}.py")
            # benchmark.contracts.methods.x
            if name.startswith(CONTRACTS) and name.count(".") > 2:
                kind, plugin = name.split(".")[2:4]
                ahead.append(PACKAGE_ROOT / kind / f"{plugin}.py")
    return reached


def plugin_digest(path: Path) -> str:
    """sha256 of the code of all `code_files` of a plug-in."""
    return hashlib.sha256(
        " ".join(sorted(code_files(path).values())).encode()
    ).hexdigest()


def method_digest(method: str) -> str:
    """That of a method, by its name or the path of its file."""
    is_own = method.endswith(".py")
    return plugin_digest(Path(method) if is_own else methods.FOLDER / f"{method}.py")


@cache
def _digest_and_imports(source: str) -> tuple[str, frozenset[str]]:
    """sha256 of the text without comments and docstrings and, outside of strings, blank
    lines and trailing spaces; and the dotted names that it imports: `from a import b`
    gives a and a.b."""
    lines, names, verbatim = source.splitlines(), set(), set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
        elif token.type in STRINGS:
            # rows that end within a string
            verbatim.update(range(token.start[0], token.end[0]))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {
                node.module,
                *(f"{node.module}.{alias.name}" for alias in node.names),
            }
        elif (
            isinstance(node, DOCUMENTED)
            and ast.get_docstring(node, clean=False) is not None
        ):
            for row in range(node.body[0].lineno, node.body[0].end_lineno + 1):
                lines[row - 1] = ""
                verbatim.discard(row)
    kept = [(row in verbatim, line) for row, line in enumerate(lines, 1)]
    code = "\n".join(
        line if inside else line.rstrip()
        for inside, line in kept
        if inside or line.strip()
    )
    return hashlib.sha256(code.encode()).hexdigest(), frozenset(names)

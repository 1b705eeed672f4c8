"""Digests of the code that decides what a stage writes: data/code/<stage>.txt.

A file lists every module that the stage imports, directly or not, with a sha256 of its code. The
stage depends on its file, so that DVC plays it again after a change of any of these modules, and of
no other. Comments, docstrings and blank lines are no code. Modules that a stage loads by name, as
methods and datasets, are in the file of their name: train-scan.txt, fetch-shapes.txt.
"""

import ast
import hashlib
import io
import os
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from benchmark.core.files import replaced, write_text
from benchmark.season.presets import PACKAGE_ROOT

DIGESTS = Path("data/code")
PACKAGES = ("benchmark", "methods", "datasets")
KINDS = ("pictures", "words", "sentences", "phrases", "proposals")
STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)
DRAWN = "datasets/shapes.py"  # what the network for drawn scenes is pretrained on


def write_digests(root: Path, folder: Path = DIGESTS) -> None:
    """Write the digests of the code below `root`. Files whose content stays are written anew with
    the same bytes."""
    with replaced(folder) as part:
        for name, modules in targets(root).items():
            write_text(part / f"{name}.txt", digest(root, modules))


def targets(root: Path) -> dict[str, list[str]]:
    """What a stage's code begins with: its module, and the one that it loads by name."""
    methods, datasets = _names(root, "methods"), _names(root, "datasets")
    by_name = {
        "fetch": [f"datasets/{name}.py" for name in datasets],
        "prepare": [f"datasets/{name}.py" for name in datasets],
        "train": [f"methods/{name}.py" for name in methods],
        "evaluate": [f"methods/{name}.py" for name in methods],
    }
    entries = {
        f"{stage}-{Path(module).stem}": [f"benchmark/{stage}/__main__.py", module]
        for stage, modules in by_name.items()
        for module in modules
    }
    encode = "benchmark/encode/__main__.py"
    entries |= {f"encode-{kind}": [encode, f"benchmark/encode/{kind}.py"] for kind in KINDS}
    for name in _names(root, "benchmark/encoders"):
        entries[f"encoder-{name}"] = [f"benchmark/encoders/{name}.py"]
    entries |= {f"dataset-{name}": [f"datasets/{name}.py"] for name in datasets}
    entries["pretrain"] = ["benchmark/encode/drawn_pretraining.py", DRAWN]
    return entries | {stage: [f"benchmark/{stage}/__main__.py"] for stage in ("train", "evaluate")}


def sha256_of(modules: Iterable[str]) -> str:
    """One digest of the code of modules and of all that they import; paths below the root, or of
    files anywhere."""
    return hashlib.sha256(digest(PACKAGE_ROOT, modules).encode()).hexdigest()


def digest(root: Path, modules: Iterable[str]) -> str:
    """One line per module of the import closure: sha256 of its code, and its path below `root`, or
    the name of a file elsewhere: where that lies decides nothing."""
    named = sorted(
        (Path(path).name if os.path.isabs(path) else path, _sha256(_source(root, path)))
        for path in closure(root, modules)
    )
    return "".join(f"{sha256}  {name}\n" for name, sha256 in named)


def closure(root: Path, modules: Iterable[str]) -> set[str]:
    """The modules and everything of this repository that they import, as paths below `root`."""
    reached: set[str] = set()
    names: set[str] = set()
    ahead = list(modules)
    while ahead:
        path = ahead.pop()
        if path not in reached:
            reached.add(path)
            own = path.removesuffix(".py").replace("/", ".")
            new = {own, *_imported(_source(root, path))} - names
            names |= new
            ahead += [file for name in new for file in _files_of(root, name)]
    return reached


def code_of(source: str) -> str:
    """`source` without comments, docstrings, blank lines and trailing spaces."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for docstring in _docstrings(_tree(source)):
        for row in range(docstring.lineno - 1, docstring.end_lineno):
            lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _docstrings(tree: ast.Module) -> list[ast.Expr]:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in _statements(tree) if isinstance(node, owners)]
    firsts = [body[0] for body in bodies if body]
    return [
        first
        for first in firsts
        if isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ]


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The module and its statements, however deep; without their expressions, which are most."""
    ahead: list[ast.AST] = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        ahead += [child for child in ast.iter_child_nodes(node) if isinstance(child, STATEMENTS)]


def _source(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8")


@cache
def _tree(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def _sha256(source: str) -> str:
    return hashlib.sha256(code_of(source).encode()).hexdigest()


@cache
def _imported(source: str) -> frozenset[str]:
    """Dotted names of this repository that a module imports."""
    names = imports_of(source)
    return frozenset(name for name in names if name.partition(".")[0] in PACKAGES)


def imports_of(source: str) -> set[str]:
    """Dotted names that a module imports; `from a import b` gives a and a.b, `from . import b`
    gives b."""
    names: set[str] = set()
    for node in _statements(_tree(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            own = [node.module] if node.module else []
            names |= {*own, *(".".join([*own, alias.name]) for alias in node.names)}
    return names


def _files_of(root: Path, name: str) -> list[str]:
    parts = name.split(".")
    stems = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    files = [file for stem in stems for file in (f"{stem}.py", f"{stem}/__init__.py")]
    return [file for file in files if os.path.isfile(f"{root}/{file}")]  # faster than a Path


def _names(root: Path, folder: str) -> list[str]:
    """The modules of a folder that are loaded by name."""
    return sorted(path.stem for path in (root / folder).glob("[!_]*.py"))

"""What identity knows of code: the text of plug-ins, and a version for each stage of the rest."""

import ast
import hashlib
import io
import tokenize
from functools import cache
from pathlib import Path

from benchmark.contracts import datasets, methods
from benchmark.core.files import read_yaml

VERSIONS = Path(__file__).parents[1] / "versions.yaml"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def versions() -> dict[str, int]:
    """Stage -> the version of what it writes."""
    return read_yaml(VERSIONS)


def plugin_digest(path: Path) -> str:
    """sha256 of the code of a plug-in, of the plug-ins that it imports, and of files beside it."""
    reached: dict[Path, str] = {}
    ahead = [path.resolve()]
    while ahead:
        file = ahead.pop()
        if file not in reached and file.is_file():
            reached[file], names = _digest_and_imports(file.read_text(encoding="utf-8"))
            for name in names:
                ahead.append(file.parent / f"{name.partition('.')[0]}.py")
                for contract in (methods, datasets):
                    if name.startswith(f"{contract.__name__}."):
                        own = name.removeprefix(f"{contract.__name__}.").partition(".")[0]
                        ahead.append(contract.FOLDER / f"{own}.py")
    return hashlib.sha256(" ".join(sorted(reached.values())).encode()).hexdigest()


def method_digest(method: str) -> str:
    """That of a method, by its name or the path of its file."""
    path = Path(method) if method.endswith(".py") else methods.FOLDER / f"{method}.py"
    return plugin_digest(path)


@cache
def _digest_and_imports(source: str) -> tuple[str, frozenset[str]]:
    """sha256 of the text without comments, docstrings, blank lines and trailing spaces, and the
    dotted names that it imports; `from a import b` gives a and a.b."""
    lines, names = source.splitlines(), set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            for row in range(node.body[0].lineno, node.body[0].end_lineno + 1):
                lines[row - 1] = ""
    code = "\n".join(line.rstrip() for line in lines if line.strip())
    return hashlib.sha256(code.encode()).hexdigest(), frozenset(names)

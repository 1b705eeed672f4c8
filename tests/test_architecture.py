"""The house: which rooms there are, who may import whom, and how files are named and sized."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("benchmark", "methods", "datasets")
FILES = sorted(
    str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")
)
STAGES = ("fetch", "prepare", "encode", "train", "evaluate", "report")
SHARED_ROOMS = (  # from top to bottom
    "analysis",
    "matching",
    "encoders",
    "data",
    "papers",
    "season",
    "protocol",
    "core",
)
ROOMS = ("commands", *STAGES, *SHARED_ROOMS, "checks")
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_TEST_FILE = 400, 40, 600
DRAWINGS = ("datasets/shapes.py", "datasets/people.py", "datasets/shared/people_drawing.py")
VAGUE = {
    *("utils", "util", "misc", "helpers", "common", "common_functions", "base", "tools"),
    *("places", "outcomes", "moments", "operations", "judging", "extraction", "raw", "stage"),
    *("options", "samples", "look", "album"),
}


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


@cache
def imported(file: str) -> frozenset[str]:
    """Dotted names that a file imports, anywhere in it; `from a import b` gives a and a.b."""
    names = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def packages(file: str) -> set[str]:
    return {name.split(".")[0] for name in imported(file)}


def files_of(name: str) -> set[str]:
    """Files that importing a dotted name runs: the module, and its packages' __init__.py."""
    parts, files = name.split("."), set()
    for end in range(1, len(parts) + 1):
        stem = "/".join(parts[:end])
        files |= {file for file in (f"{stem}.py", f"{stem}/__init__.py") if file in FILES}
    return files


def closure(*files: str) -> set[str]:
    """The files and everything of this repository that they import, directly or not."""
    reached, ahead = set(), [*files]
    while ahead:
        file = ahead.pop()
        if file not in reached:
            reached.add(file)
            own = file.removesuffix(".py").replace("/", ".")
            for name in (own, *imported(file)):
                ahead += files_of(name)
    return reached


def room(file: str) -> str:
    """benchmark/<room>/..., or "" for what lies directly in benchmark/."""
    parts = file.split("/")
    return parts[1] if len(parts) > 2 else ""


def rooms_of_imports(file: str) -> set[str]:
    parts = [name.split(".") for name in imported(file)]
    return {part[1] for part in parts if part[0] == "benchmark" and len(part) > 1}


def may_import(own: str) -> set[str]:
    """The rooms that a room may import: itself and those below it; only commands import stages."""
    if own in ("", "commands", "checks"):
        return set(ROOMS) - {"checks"} | {own}
    if own in STAGES:
        return {own, *SHARED_ROOMS}
    return set(SHARED_ROOMS[SHARED_ROOMS.index(own) :])


def test_the_packages_were_found():
    assert {"benchmark/train/__main__.py", "methods/scan.py", "datasets/shapes.py"} <= set(FILES)
    assert "benchmark/protocol/ranks.py" in closure("benchmark/evaluate/__main__.py")
    assert "methods/__init__.py" in closure("benchmark/train/__main__.py")


def test_directly_in_benchmark_lie_rooms_alone():
    here = {path.name for path in (ROOT / "benchmark").iterdir() if path.name != "__pycache__"}
    assert here == {*ROOMS, "__init__.py", "__main__.py"}


def test_rooms_import_only_rooms_below_them():
    upward = {
        file: rooms_of_imports(file) - may_import(room(file))
        for file in FILES
        if file.startswith("benchmark/")
    }
    assert len(upward) > 100
    assert {file: rooms for file, rooms in upward.items() if rooms} == {}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_reaches_no_other_stage(stage):
    others = {f"benchmark/{other}" for other in STAGES if other != stage}
    files = closure(f"benchmark/{stage}/__main__.py")
    assert not [file for file in files if str(Path(file).parent) in others]


def test_packages_do_not_look_upwards():
    forbidden = {
        "datasets": {"benchmark", "methods", "torch"},
        "methods": {"benchmark", "datasets"},
    }
    for file in FILES:
        own = file.split("/")[0]
        assert not packages(file) & forbidden.get(own, set()), file


@pytest.mark.parametrize("package", ["methods", "datasets"])
def test_no_method_imports_another_and_no_dataset_another(package):
    for file in FILES:
        if file.startswith(f"{package}/"):
            reached = {other for name in imported(file) for other in files_of(name)} - {file}
            own = {other for other in reached if other.startswith(f"{package}/")}
            shared = {other for other in own if other.startswith(f"{package}/shared/")}
            assert own - shared <= {f"{package}/__init__.py"}, file


def test_what_promises_to_know_no_torch_does_not():
    promised = {file for file in FILES if room(file) == "protocol"}
    promised |= {
        file for file in FILES if "Knows no torch" in (ast.get_docstring(tree(file)) or "")
    }
    assert len(promised) >= 4
    for file in promised:
        guilty = [other for other in closure(file) if packages(other) & {"torch", "torchvision"}]
        assert not guilty, f"{file} reaches torch by {guilty}"


def test_imports_are_at_the_top():
    for file in FILES:
        for function in ast.walk(tree(file)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = [
                    x for x in ast.walk(function) if isinstance(x, ast.Import | ast.ImportFrom)
                ]
                assert not inner, f"{file}: {function.name}"


def test_nothing_is_probed():
    """What a method or encoder offers is declared."""
    for file in FILES:
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                where = f"{file}: line {node.lineno}"
                assert node.func.id != "hasattr", where
                assert node.func.id != "getattr" or len(node.args) == 2, where


def test_files_are_named_after_what_they_hold():
    assert not [file for file in FILES if Path(file).stem in VAGUE]


def test_no_stem_occurs_twice():
    stems = Counter(
        Path(file).stem
        for file in FILES
        if file.startswith("benchmark/") and Path(file).stem not in ("__init__", "__main__")
    )
    assert [stem for stem, count in stems.items() if count > 1] == []


def test_files_and_functions_are_short():
    for file in set(FILES) - set(DRAWINGS):
        assert (ROOT / file).read_text(encoding="utf-8").count("\n") <= LONGEST_FILE, file
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.lineno + 1
                assert lines <= LONGEST_FUNCTION, f"{file}: {node.name}"


def test_test_files_are_short():
    for path in (ROOT / "tests").rglob("*.py"):
        assert path.read_text(encoding="utf-8").count("\n") <= LONGEST_TEST_FILE, path.name

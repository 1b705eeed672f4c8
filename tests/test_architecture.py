"""The house: which rooms there are, who may import whom, and what plug-ins may
import."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# from bottom to top; a room may import those of its own level, and those below
ROOMS = [
    {"core"},
    {"contracts", "layers", "readers", "stats"},
    {"data"},
    {"papers", "season", "scoring", "features"},
    {"boards"},
    {"fetch", "prepare", "encode", "train", "evaluate", "collect", "report"},
    {"commands"},
]
STAGES = ROOMS[5]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
FOR_PLUG_INS = {"contracts", "layers", "readers"}


def imported(path: Path) -> set[str]:
    """Dotted; `from a import b` gives a.b."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms_of_imports(path: Path) -> set[str]:
    parts = [name.split(".") for name in imported(path)]
    return {part[1] for part in parts if part[0] == "benchmark" and len(part) > 1}


def test_every_room_has_its_place():
    rooms = {path.parent.name for path in (ROOT / "benchmark").glob("*/__init__.py")}
    assert rooms | {"checks"} == LEVEL.keys() | {"checks"}


def test_rooms_import_only_rooms_below_them():
    upward = set()
    for room, level in LEVEL.items():
        for path in (ROOT / "benchmark" / room).rglob("*.py"):
            for other in rooms_of_imports(path) - {room}:
                is_stage = room in STAGES and other in STAGES
                if other not in LEVEL or LEVEL[other] > level or is_stage:
                    upward.add((str(path.relative_to(ROOT)), other))
    assert upward == set()


def test_slow_libraries_are_imported_where_they_are_needed():
    """Inside of functions: seconds that other encoders and commands need not wait
    for."""
    for path in (ROOT / "benchmark").rglob("*.py"):
        at_once = [
            node for node in ast.parse(path.read_text()).body if hasattr(node, "names")
        ]
        names = {getattr(node, "module", node.names[0].name) for node in at_once}
        assert not {name.split(".")[0] for name in names} & {"transformers", "timm"}, (
            path
        )


def test_plug_ins_import_only_what_is_made_for_them():
    paths = [
        path
        for folder in ("methods", "datasets")
        for path in (ROOT / folder).glob("*.py")
    ]
    assert len(paths) > 15
    for path in paths:
        assert rooms_of_imports(path) <= FOR_PLUG_INS, path
        contract = f"benchmark.contracts.{path.parent.name}"
        others = {
            f"{contract}.{other.stem}" for other in paths if other.parent == path.parent
        }
        assert not others & {name.rpartition(".")[0] for name in imported(path)}, path
        assert not others & imported(path), path


def test_nothing_named_like_a_library_is_on_the_path(tmp_path):
    """A library named `datasets` works beside this package, and in its folder."""
    for name in ("methods", "datasets"):
        assert not (ROOT / name / "__init__.py").exists()
    library = tmp_path / "datasets"
    library.mkdir()
    (library / "__init__.py").write_text("WHOSE = 'the library'\n")
    code = (
        "import sys, datasets; assert datasets.WHOSE == 'the library'\n"
        "from benchmark.contracts.datasets import load, shapes\n"
        "assert load('shapes') is shapes and sys.modules['datasets'] is datasets\n"
    )
    path = f"{ROOT}:{tmp_path}"
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": path}, check=True)


def test_a_dataset_needs_no_torch():
    """`list datasets`, `fetch` and `prepare` start in the second that torch would
    take."""
    code = "import sys, benchmark.prepare.__main__; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    assert importlib.util.find_spec("torch")

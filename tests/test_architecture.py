"""The house: which rooms there are, who may import whom, and what plug-ins may import. A
dataset, a method and a figure are one file each: dropped into a copy of the tree, they
are played."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
PRESETS = """\
plain_256:
  title: Plain, 256 numbers
  sentence: mean_words
  options: {embedding_size: 256}
"""
FIGURE = '''\
"""A bar per preset."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from benchmark.report.figure_listing import FigureInputs, ReportFigure


def figures(inputs: FigureInputs) -> Iterator[ReportFigure]:
    figure = Figure(figsize=(2, 2))
    figure.subplots().bar([0, 1], [0, 1])
    yield ReportFigure(name="plain_bars", figure=figure, alt="bars of presets")


FIGURES = {"result": figures}
'''
PLAY = """\
import benchmark  # pins the numerics before numpy is imported
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from benchmark.collect.__main__ import collect
from benchmark.commands import run
from benchmark.core.files import read_json
from benchmark.features import drawn_cnn
from benchmark.report.__main__ import write_report
from benchmark.season.parameters import DatasetSettings, ImageEncoder, Season, WordVectors
from benchmark.season.resolving import resolve

drawn_cnn.WEIGHTS.parent.mkdir(parents=True)
torch.save(drawn_cnn.Network().state_dict(), drawn_cnn.WEIGHTS)
settings = DatasetSettings(
    options={"train": 24, "val": 6, "test": 10},
    image=ImageEncoder(network="drawn_cnn", input_size=96, flip=False),
    words=WordVectors(size=8),
)
season = Season(
    title="Mine", datasets={"colours": settings}, presets=["plain_256"], seeds=[0], device="cpu"
)
params = resolve("mine", season)
run.run(params)
collect(params, "colours")
record = read_json(Path("results/mine/colours/records.json"))["plain_256/0"]
assert (record["status"], record["method"]) == ("ok", "plain"), record["reason"]
assert record["options"]["embedding_size"] == 256
Figure.draw_without_rendering = lambda figure: None
Figure.savefig = lambda figure, file, **settings: file.write(b"<svg/>")
write_report(params)
raise SystemExit(pytest.main("-q -p no:cacheprovider -k plain tests/test_methods.py".split()))
"""


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


def test_a_program_starts_when_all_of_its_file_is_defined():
    # as DVC and a shell run it, by `python -m`; whoever imports it starts later
    guarded = 0
    for path in (ROOT / "benchmark").rglob("*.py"):
        statements = ast.parse(path.read_text()).body
        for place, statement in enumerate(statements, 1):
            is_guard = isinstance(statement, ast.If) and (
                ast.unparse(statement.test) == "__name__ == '__main__'"
            )
            if is_guard:
                guarded += 1
                assert place == len(statements), path
    assert guarded >= len(STAGES)


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


# Dropped in ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_dataset_a_method_and_a_figure_need_no_edit_elsewhere(tmp_path):
    for folder in ("benchmark", "methods", "datasets", "seasons", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "datasets/shapes.py", tmp_path / "datasets/colours.py")
    shutil.copy(ROOT / "tests/own_methods/plain.py", tmp_path / "methods")
    (tmp_path / "methods/plain.yaml").write_text(PRESETS)
    (tmp_path / "benchmark/report/figures/plain_bars.py").write_text(FIGURE)
    command, environment = (
        [sys.executable, "-c", PLAY],
        os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    played = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "passed" in played.stdout and "failed" not in played.stdout
    page = (tmp_path / "reports/mine/datasets/colours.md").read_text(encoding="utf-8")
    assert "Plain, 256 numbers" in page and "bars of presets" in page
    assert list((tmp_path / "reports/mine/figures").glob("*plain_bars*.svg"))

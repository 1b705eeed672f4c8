"""The light core, and what is told where a library of an extra is missing."""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchmark.core import extras
from benchmark.core.command_line import guarded

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
PACKAGES = {"scikit-image": "skimage", "scikit-learn": "sklearn"}
OF_ANOTHER = {"ruamel.yaml.clib"}  # DVC's
HEAVY = {"dvc", "matplotlib", "torch", "torchvision"}


def packages(requirements: list[str]) -> set[str]:
    names = {re.split(r"[<>=\[!,]", line)[0] for line in requirements}
    return {PACKAGES.get(name, name) for name in names - OF_ANOTHER}


def test_the_extra_has_the_libraries_that_are_told_of():
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    assert packages(project["optional-dependencies"]["run"]) == set(extras.RUN)
    assert not packages(project["dependencies"]) & HEAVY


def test_every_other_extra_that_runs_something_brings_it():
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    others = project["optional-dependencies"]
    for name in ("site", "transformers", "timm", "words", "layers"):
        assert f"{extras.NAME}[run]" in others[name]


@pytest.mark.parametrize("package", ["torch", "torch.nn", "sklearn.cluster"])
def test_a_missing_library_is_told_with_its_extra(package, capsys):
    def main(arguments: argparse.Namespace) -> None:
        raise ModuleNotFoundError(name=package)

    assert guarded(main, argparse.Namespace()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"pip install '{extras.NAME}[run]'" in line
    assert package.partition(".")[0] in line


def test_another_missing_module_is_a_fault_of_the_program():
    def main(arguments: argparse.Namespace) -> None:
        raise ModuleNotFoundError(name="benchmark.gone")

    with pytest.raises(ModuleNotFoundError):
        guarded(main, argparse.Namespace())


LIGHT = ("audit", "board", "compare", "export", "judge", "list", "plan", "printed")
BLOCKED = """
import sys
from importlib import import_module

from benchmark.core import extras

for package in (*extras.RUN, *extras.OF_DVC):
    sys.modules[package] = None  # so that its import raises ModuleNotFoundError
"""
IMPORTED = """
for name in sys.argv[1:]:
    import_module(name)
"""
ASKED = """
from benchmark.__main__ import main

raise SystemExit(main(sys.argv[1:]))
"""


def test_the_library_and_some_verbs_need_no_library_of_the_extra():
    modules = ["rematch.comparing", "rematch.looking_up", "rematch.scoring"]
    modules += ["rematch_pytest", *(f"benchmark.commands.{v}" for v in LIGHT)]
    command = [sys.executable, "-c", BLOCKED + IMPORTED, *modules]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]


@pytest.mark.parametrize(
    "words, said",
    [
        ("judge flickr8k:vse flickr8k:cca", "from images"),
        ("compare vse cca --season flickr8k", "of 5000 queries"),
        ("export flickr8k/leaderboard --season flickr8k --format json", '"preset"'),
        ("printed 58.6", "Rematch, season flickr8k"),
        ("list seasons", "flickr8k_strong"),
        ("list presets", "scan_t2i_avg"),
    ],
)
def test_results_of_seasons_are_judged_without_it_and_without_a_clone(
    words, said, tmp_path
):
    command = [sys.executable, "-c", BLOCKED + ASKED, *words.split()]
    settings = os.environ | {"PYTHONPATH": str(PYPROJECT.parent)}
    process = {"cwd": tmp_path, "env": settings, "capture_output": True, "text": True}
    found = subprocess.run(command, **process)
    assert found.returncode == 0, found.stderr[-2000:]
    assert said in found.stdout

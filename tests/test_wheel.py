"""Installed from a wheel, outside of a checkout, beside a library that is named
`datasets`. Copied into a container: all that git tracks, and nothing of this machine."""

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path, PurePosixPath

import pytest

from benchmark.core.names import FOLDS

ROOT = Path(__file__).parent.parent
BUILD = ("--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check")
COPIED = ("benchmark", "rematch", "methods", "datasets", "seasons", "examples")


COPIED += ("results", "reports", "data/cards")
WEIGHTS = """
import torch
from benchmark.features import drawn_cnn
drawn_cnn.WEIGHTS.parent.mkdir(parents=True)
torch.save(drawn_cnn.Network().state_dict(), drawn_cnn.WEIGHTS)
"""  # untrained ones: minutes less
SEASON = """
title: Small
datasets:
  shapes:
    options: {train: 40, val: 10, test: 12}
    image: {network: drawn_cnn, input_size: 96}
    words: {size: 8}
presets: [vse]
seeds: [0]
"""
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no clone")
def test_a_wheel_has_the_seasons_and_cards_that_git_has():
    """By the names in setup.py."""
    lists = {}
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id in (
            "SEASONS",
            "DATASETS",
        ):
            lists[node.targets[0].id] = set(ast.literal_eval(node.value))
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True
    )
    paths = [Path(line) for line in listing.stdout.splitlines()]
    seasons = {
        path.parent.name for path in paths if path.match("seasons/*/season.yaml")
    }
    cards = {path.parent.name for path in paths if path.match("data/cards/*/card.json")}
    assert lists == {"SEASONS": seasons, "DATASETS": cards}


@pytest.mark.slow
def test_an_installed_wheel_lists_and_runs(tmp_path):
    source, venv, here = tmp_path / "source", tmp_path / "venv", tmp_path / "here"
    for name in COPIED:
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    # this environment's libraries, and nothing of this checkout
    for name in FILES:
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    for name in ("seasons", "results", "data/cards"):  # of a user
        (source / name / "pets").mkdir()
        (source / name / "pets/season.yaml").write_text("title: Pets\n")
    (packages,) = venv.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "install", *BUILD, "--target", packages, source]
    subprocess.run(pip, check=True)
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (packages / "datasets").mkdir()
    (packages / "datasets/__init__.py").write_text("WHOSE = 'the library'\n")
    assert [path.name for path in packages.glob("rematch_benchmark-*")]
    assert not (packages / "methods").exists()

    here.mkdir()
    python = venv / "bin/python"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "OMP_NUM_THREADS": "1",
    }

    def said(*words: object) -> str:
        told = subprocess.run(
            [python, *words], cwd=here, env=environment, capture_output=True, text=True
        )
        assert told.returncode == 0, told.stderr
        return told.stdout

    where = "import benchmark, datasets; print(benchmark.__file__, datasets.WHOSE)"
    assert said("-c", where) == f"{packages}/benchmark/__init__.py the library\n"
    assert "scan_t2i_avg" in said("-m", "benchmark", "list", "presets")
    assert "demo" in said("-m", "benchmark", "list", "seasons")
    verdict = said("-m", "benchmark", "judge", "flickr8k:vse", "flickr8k:cca")
    assert "from images" in verdict
    assert not list(packages.glob("benchmark/*/pets"))
    assert not list(packages.rglob("answers.zip"))
    assert (packages / "rematch/py.typed").is_file()
    verdict = (
        "import rematch; print(rematch.judge([1, 0] * 60, [0, 1] * 60).conclusion)"
    )
    assert said("-c", verdict) == "undecided\n"
    said("-c", WEIGHTS)
    (here / "small.yaml").write_text(SEASON)
    said("-m", "benchmark", "season", "small.yaml")
    run = ("run", "vse", "--dataset", "shapes", "--option", "epochs=1")
    assert "rsum" in said("-m", "benchmark", *run)


# A container --------------------------------------------------------------------------


def patterns() -> list[str]:
    return (ROOT / ".containerignore").read_text().split()


def is_copied(path: str) -> bool:
    # .dockerignore: the last pattern that fits a path, or a folder above it
    places = [PurePosixPath("/", path), *PurePosixPath("/", path).parents]
    copied = True
    for pattern in patterns():
        shape = pattern.removeprefix("!")
        rooted = shape.removeprefix("**/") if shape.startswith("**/") else f"/{shape}"
        if any(place.match(rooted) for place in places):
            copied = pattern.startswith("!")
    return copied


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no clone")
    return listed.stdout.splitlines()


def test_the_container_copies_the_whole_folder():
    lines = (ROOT / "Containerfile").read_text().splitlines()
    assert "COPY . ." in lines


def test_everything_that_git_tracks_is_in_the_container(tracked):
    assert [path for path in tracked if not is_copied(path)] == []


def test_the_container_has_cards_and_queries_of_each_dataset_with_results(tracked):
    content = {path for path in tracked if is_copied(path)}
    seasons = {path.split("/")[1] for path in content if path.startswith("results/")}
    assert seasons
    for path in sorted(content):
        if not path.endswith("records.json"):
            continue
        dataset = path.split("/")[2]
        manifest = dataset.removesuffix(FOLDS)  # folds are of the same raw files
        assert f"data/cards/{dataset}/card.json" in content
        assert f"data/cards/{dataset}/queries.npz" in content
        assert f"data/manifests/{manifest}.json" in content
        assert path.replace("records.json", "ranks.zip") in content
    for season in seasons:
        assert f"seasons/{season}/season.yaml" in content


@pytest.mark.parametrize(
    "path",
    [
        "local.yaml",
        ".venv/bin/python",
        ".scratch/log/x.log",
        "data/raw/flickr8k/1.jpg",
        "data/features/few/drawn/card.json",
        "benchmark/core/__pycache__/files.pyc",
    ],
)
def test_nothing_of_this_machine_is_in_the_container(path):
    assert not is_copied(path)

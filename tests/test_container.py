"""What `COPY . .` of the Containerfile brings along: all that git tracks, and nothing
of this machine."""

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from benchmark.core.folds import FOLDER

ROOT = Path(__file__).parent.parent


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
        manifest = dataset.removesuffix(FOLDER)  # folds are of the same raw files
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

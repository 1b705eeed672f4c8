"""Speed as a ratio, in one process: `pytest benchmark/`. SCAN is in test_scan_speed.py.

Absolute times differ from machine to machine and from minute to minute. The ratio of the fastest
of interleaved runs does not, measured in the processor time of one thread.
"""

import resource
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from dvc.repo import Repo

from benchmark.checks import evaluation_sizes
from benchmark.checks.interleaved_runs import fastest, is_settled
from benchmark.checks.step_products import over_products, step_of
from benchmark.commands.data_shapes import SeasonShapes
from benchmark.commands.step_times import Rehearsal
from benchmark.protocol import positive_ranks
from benchmark.season.resolving import resolve
from benchmark.season.season_files import read_season

ROOT = Path(__file__).parents[2]
EVALUATION_OVER_PRODUCT, MEGABYTES = 3, 1000
STEP_OVER_PRODUCTS = 1.4
DRY_SECONDS, STAGES = 10, 250
# Presets of the papers' season, at the size of their papers; SCAN's are in test_scan_speed.py.
PRESETS = ["two_branch_constraints", "two_branch_similarity", "cyclematch", "vse"]


def test_an_evaluation_takes_few_times_its_product_and_little_memory(benchmark):
    """5,000 images and 25,000 captions in 256 dimensions, as MSCOCO 5K."""
    row = benchmark.pedantic(evaluation_sizes.in_a_process, args=(5000, 2), rounds=1)
    benchmark.extra_info |= row
    assert row["over_product"] < EVALUATION_OVER_PRODUCT
    assert row["megabytes"] < MEGABYTES


@pytest.mark.parametrize("preset", PRESETS)
def test_a_training_step_is_mostly_products(preset, benchmark, one_thread):
    params = resolve("papers", read_season(str(ROOT / "seasons/papers/season.yaml")))
    cell = next(cell for cell in params.cells.values() if cell.preset == preset)
    rehearsal = Rehearsal(SeasonShapes(params), cell)
    step = step_of(rehearsal, rehearsal.phases[0])
    benchmark.pedantic(step)
    ratio = min(over_products(step) for _ in range(3))
    benchmark.extra_info["over_products"] = round(ratio, 2)
    assert ratio < STEP_OVER_PRODUCTS


@pytest.fixture
def repository(tmp_path, monkeypatch) -> None:
    """The papers' season in a folder of its own, with the code and nothing played."""
    for package in ("benchmark", "methods", "datasets"):
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    season = Path("seasons/papers/season.yaml")
    (tmp_path / season).parent.mkdir(parents=True)
    for file in ("dvc.yaml", ".gitignore", ".dvcignore", season):
        shutil.copy(ROOT / file, tmp_path / file)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    subprocess.run(["git", "init", "-q"], check=True)
    Repo.init().close()
    run("season", "papers")


def run(*arguments: str) -> list[str]:
    """What a verb prints, in a process of its own."""
    command = [sys.executable, "-m", "benchmark", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_a_dry_play_of_the_papers_season_is_soon_over(repository, benchmark):
    """Processor time of a process that reads all pipelines and asks of each stage whether it is
    stale; the fastest of three. Nothing was played, so that all of them are."""

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert len(run("play", "papers", "--dry")) > STAGES
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    taken = min(seconds(), seconds(), benchmark.pedantic(seconds, rounds=1))
    benchmark.extra_info["seconds"] = round(taken, 1)
    assert taken < DRY_SECONDS


def test_ranks_are_faster_than_sorting(benchmark, one_thread):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((1000, 5000)).astype(np.float32)
    relevant = np.arange(1000)[:, None] == np.repeat(np.arange(1000), 5)[None]

    def sorting() -> list[int]:
        order = np.argsort(-scores, axis=1, kind="stable")
        return [int(np.flatnonzero(relevant[q, row])[0]) for q, row in enumerate(order)]

    assert positive_ranks(scores, relevant).tolist() == sorting()
    counting = partial(positive_ranks, scores, relevant)
    own, slow = fastest(counting, sorting, seconds=10)
    benchmark.pedantic(counting)
    benchmark.extra_info["times_faster"] = round(slow / own, 2)
    assert slow > 3 * own


def test_runs_are_added_until_none_is_faster():
    slower = [[2.0, 3.0]] * 5
    assert not is_settled(slower + [[1.0, 3.0]] * 10)
    assert is_settled(slower + [[1.0, 3.0]] * 11)
    assert not is_settled(slower)

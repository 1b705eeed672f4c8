"""Processes that are killed at random moments, or run twice at once: the same bits in the end."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from forks import begun
from layouts import draw
from raw_formats import write_weights
from report_seasons import enter_played_season
from tiny_cells import cell_of, enter, evaluated, fusion_of, train_cell

from benchmark.__main__ import main
from benchmark.encode import __main__ as encode
from benchmark.encode import pictures
from benchmark.report import __main__ as report
from benchmark.season.parameter_files import read_shared

KILLS = int(os.environ.get("REMATCH_KILLS", "1"))  # of each kind of stage
SEASON = """
title: Mine
datasets:
  mine:
    reader: folder
    image: {network: mobilenet_v2, input_size: 64, grid: 2, pixels: 32}
    words: {size: 8}
presets: [scan_t2i_avg]
seeds: [0]
"""
LONGEST = 180  # seconds
PICTURES, CHUNK = 40, 16  # several chunks of them


@dataclass(frozen=True)
class Stage:
    """What is killed, and the folder of what it leaves."""

    play: Callable[[], object]
    folders: tuple[str, ...]

    def left(self) -> dict[str, bytes]:
        """Everything but costs, which hold times."""
        files = [path for folder in self.folders for path in Path(folder).rglob("*")]
        kept = [path for path in files if path.is_file() and path.name != "cost.json"]
        return {str(path): path.read_bytes() for path in kept}


@pytest.fixture
def gru_training(tmp_path, monkeypatch) -> Stage:
    enter(tmp_path, monkeypatch)
    cell = cell_of("scan", epochs=8)
    return Stage(lambda: train_cell(cell), ("data/checkpoints", "results"))


@pytest.fixture
def pixel_training(tmp_path, monkeypatch) -> Stage:
    enter(tmp_path, monkeypatch)
    cell = cell_of("pixels", epochs=6)
    return Stage(lambda: train_cell(cell), ("data/checkpoints", "results"))


@pytest.fixture
def fusion(tmp_path, monkeypatch) -> Stage:
    enter(tmp_path, monkeypatch)
    members = [cell_of("scan", folder=f"results/{seed}", seed=seed) for seed in (0, 1)]
    for member in members:
        train_cell(member)
    fused = fusion_of(*members, how="adaptive")
    return Stage(lambda: evaluated(fused, *members), ("results/fused",))


@pytest.fixture
def encoding(tmp_path, monkeypatch) -> Stage:
    """Photographs by a network with random weights, which stand in its folder."""
    own, weights = tmp_path / "own", tmp_path / "weights"
    for number in range(PICTURES):
        draw(own / f"pictures/{number}.jpg", number, (96 + number, 80))
    split = ["train"] * (PICTURES - 2) + ["val", "test"]
    rows = [f"pictures/{n}.jpg,The number {n}.,{split[n]}" for n in range(PICTURES)]
    (own / "captions.csv").write_text("\n".join(["image,caption,split", *rows, ""]))
    weights.mkdir()
    write_weights(weights)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("mine.yaml").write_text(SEASON)
    monkeypatch.setattr(pictures, "CHUNK", CHUNK)
    places = ["--source", f"mine={own}", "--weights-dir", str(weights)]
    assert main(["season", "mine.yaml", *places]) == 0
    assert main(["fetch", "mine"]) == 0 and main(["prepare", "mine"]) == 0
    params = read_shared()
    (wanted,) = [entry for entry in params.feature_sets.values() if entry.kind == "pictures"]
    return Stage(lambda: encode.encode(params, wanted), ("data/features",))


@pytest.fixture
def reporting(tmp_path_factory, tmp_path, monkeypatch) -> Stage:
    params = enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)
    return Stage(lambda: report.write_report(params), ("reports",))


STAGES = ["gru_training", "pixel_training", "fusion", "encoding", "reporting"]


@pytest.fixture(params=STAGES)
def stage(request) -> Stage:
    return request.getfixturevalue(request.param)


def ended(process: int) -> int:
    """The exit status of a process, which is killed if it does not end."""
    latest = time.monotonic() + LONGEST
    while (reaped := os.waitpid(process, os.WNOHANG)) == (0, 0):
        time.sleep(0.01)
        if time.monotonic() > latest:
            os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(reaped[1])


def clear(stage: Stage) -> None:
    for folder in (*stage.folders, ".scratch"):
        shutil.rmtree(folder, ignore_errors=True)


def test_killed_at_any_moment_it_ends_in_the_same_bits(stage):
    started = time.perf_counter()
    assert ended(begun(stage.play)) == 0
    seconds, whole = time.perf_counter() - started, stage.left()
    assert whole
    moments = random.Random(0)
    killed = 0
    for _ in range(KILLS):
        clear(stage)
        process = begun(stage.play)
        time.sleep(moments.uniform(0, seconds))
        os.kill(process, signal.SIGKILL)
        killed += ended(process) == -signal.SIGKILL
        assert ended(begun(stage.play)) == 0
        assert stage.left() == whole
        assert not [path for path in Path.cwd().rglob(".*.part")]
    assert killed or KILLS < 5, "every process had ended before it was killed"


@pytest.mark.parametrize("stage", ["gru_training", "encoding"], indirect=True)
def test_two_at_once_end_in_the_same_bits(stage):
    assert ended(begun(stage.play)) == 0
    whole = stage.left()
    clear(stage)
    assert {ended(process) for process in [begun(stage.play), begun(stage.play)]} <= {0, 1}
    assert ended(begun(stage.play)) == 0
    assert stage.left() == whole

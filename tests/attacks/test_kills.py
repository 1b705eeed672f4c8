"""Processes that are killed at random moments, or run twice at once: the same bits in
the end."""

import os
import random
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_cells import cell_of, enter, train_cell

KILLS = int(os.environ.get("REMATCH_KILLS", "1"))
FOLDERS = ("data/checkpoints", "results")
LONGEST = 180  # seconds


def left_but_for_costs() -> dict[str, object]:
    paths = [
        path for folder in FOLDERS for path in Path(folder).rglob("*") if path.is_file()
    ]
    return {str(path): path.read_bytes() for path in paths}


@pytest.fixture
def play(tmp_path, monkeypatch) -> Callable[[], object]:
    enter(tmp_path, monkeypatch)
    cell = cell_of("scan", epochs=8)
    return lambda: train_cell(cell)


def begun(play: Callable[[], object]) -> int:
    """A fork that plays this, by its number; its status is 0 if `play` returns."""
    with warnings.catch_warnings():
        # of threads: those of pytest's workers hold no lock here
        warnings.simplefilter("ignore")
        process = os.fork()
    if process == 0:
        status = 1
        try:
            play()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return process


def status_of_ended(process: int) -> int:
    latest = time.monotonic() + LONGEST
    while (reaped := os.waitpid(process, os.WNOHANG)) == (0, 0):
        time.sleep(0.01)
        if time.monotonic() > latest:
            os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(reaped[1])


def clear() -> None:
    for folder in (*FOLDERS, ".scratch"):
        shutil.rmtree(folder, ignore_errors=True)


def test_killed_at_any_moment_it_ends_in_the_same_bits(play):
    started = time.perf_counter()
    assert status_of_ended(begun(play)) == 0
    seconds, whole = time.perf_counter() - started, left_but_for_costs()
    assert whole
    moments, killed = random.Random(0), 0
    for _ in range(KILLS):
        clear()
        process = begun(play)
        time.sleep(moments.uniform(0, seconds))
        os.kill(process, signal.SIGKILL)
        killed += status_of_ended(process) == -signal.SIGKILL
        assert status_of_ended(begun(play)) == 0
        assert left_but_for_costs() == whole
        assert not [path for path in Path.cwd().rglob(".*.part")]
    assert killed or KILLS < 5, "none was killed"


def test_two_at_once_end_in_the_same_bits(play):
    assert status_of_ended(begun(play)) == 0
    whole = left_but_for_costs()
    clear()
    assert {status_of_ended(process) for process in [begun(play), begun(play)]} <= {
        0,
        1,
    }
    assert status_of_ended(begun(play)) == 0
    assert left_but_for_costs() == whole

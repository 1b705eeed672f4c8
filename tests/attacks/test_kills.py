"""Processes that are killed at random moments, or run twice at once: the same bits in
the end. A disk that fills up: one line with the path and the free space, and nothing
torn or lost."""

import os
import random
import shutil
import signal
import subprocess
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny_cells import cell_of, enter, train_cell

from benchmark.core import files
from benchmark.core.command_line import guarded
from benchmark.core.files import replaced, write_text

KILLS = int(os.environ.get("REMATCH_KILLS", "1"))
FOLDERS = ("data/checkpoints", "results")
LONGEST = 180  # seconds
DISK = 4 << 20  # bytes
FREE = [0, 8, 64]  # kB


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


# Disks that fill up -------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, capture_output=True).returncode
    ):
        pytest.skip("no right to mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def work(disk, monkeypatch) -> Path:
    enter(disk, monkeypatch)
    return disk


def fill(disk: Path, left: int) -> Path:
    """A file that leaves `left` kB of the disk."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, files.free_below(disk) - 1024 * left)
    return filler


def contents(folder: Path) -> dict[str, bytes]:
    files = [
        path for path in folder.rglob("*") if path.is_file() and path.name != "filler"
    ]
    return {str(path): path.read_bytes() for path in files}


def said(stage, cell, capsys: pytest.CaptureFixture) -> tuple[int, str]:
    capsys.readouterr()
    status = guarded(lambda _: stage(cell) and None, None)
    return status, capsys.readouterr().err


@pytest.mark.parametrize("left", FREE)
def test_a_training_loses_nothing(work, left, capsys):
    cell = cell_of("two_branch")
    train_cell(cell)
    whole = Path(cell.checkpoint).read_bytes()
    for folder in ("data/checkpoints", "results", ".scratch"):
        shutil.rmtree(folder, ignore_errors=True)
    filler = fill(work, left)
    status, line = said(train_cell, cell, capsys)
    if status:  # or it was enough
        last = line.splitlines()[-1]
        assert status == 2 and last.startswith("rematch: ") and " GB" in last, line
        assert "Traceback" not in line
        assert not Path(cell.checkpoint).exists() and not list(work.rglob(".*.part"))
    filler.unlink()
    train_cell(cell)
    assert Path(cell.checkpoint).read_bytes() == whole


@pytest.mark.parametrize("left", [0])
def test_files_and_folders_that_were_to_be_replaced_stay(disk, left, capsys):
    write_text(disk / "file.txt", "before")
    with replaced(disk / "folder") as folder:
        (folder / "a.txt").write_text("before")
    before = contents(disk)
    fill(disk, left)
    text = "after" * 4000

    def folder_again(_: object) -> None:
        with replaced(disk / "folder") as folder:
            (folder / "a.txt").write_text(text)

    for write in (lambda _: write_text(disk / "file.txt", text), folder_again):
        assert guarded(write, None) == 2
        line = capsys.readouterr().err
        assert (
            "No space left" in line
            and "GB free there" in line
            and line.count("\n") == 1
        )
    assert contents(disk) == before

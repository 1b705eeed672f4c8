"""A disk that fills up: one line with the path and the free space, and nothing torn or lost."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_cells import cell_of, enter, evaluated, train_cell

from benchmark.core import disk_space, sealed_files
from benchmark.core.command_line import guarded
from benchmark.core.errors import UserError
from benchmark.core.files import replaced, write_text
from benchmark.encode.resumable_arrays import scratch_array

DISK = 4 << 20  # bytes
FREE = [0, 4, 8, 16, 32, 64, 128]  # kB


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk needs the right to mount one")
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
        os.posix_fallocate(file.fileno(), 0, disk_space.free_below(disk) - 1024 * left)
    return filler


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "filler"]
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


@pytest.mark.parametrize("left", FREE)
def test_an_evaluation_leaves_no_half_record(work, left, capsys):
    cell = cell_of("two_branch")
    train_cell(cell)
    record = evaluated(cell)
    shutil.rmtree("results/a/scores")
    Path("results/a/record.json").unlink()
    before = contents(work)
    filler = fill(work, left)
    status, line = said(evaluated, cell, capsys)
    if status:
        assert status == 2 and "Traceback" not in line and " GB" in line, line
        assert not Path("results/a/record.json").exists() and not list(work.rglob(".*.part"))
        assert before.items() <= contents(work).items()
    filler.unlink()
    assert evaluated(cell) == record


@pytest.mark.parametrize("left", [0, 8, 64, 1000])
def test_a_memory_map_has_its_room_before_it_is_written(disk, left):
    fill(disk, left)
    with pytest.raises(UserError) as error:
        scratch_array(disk / "array.npy", (1 << 20, 2), np.dtype(np.float16))
    assert "free space" in error.value.expected and "array.npy" in str(error.value)


def test_weights_that_do_not_fit_are_the_fault_of_the_disk(disk):
    """What torch raises then would be taken for a failure of the method."""
    fill(disk, left=64)
    with pytest.raises(OSError, match="No space left"):
        sealed_files.save(disk / "weights.pt", {"weights": torch.zeros(1 << 18)})
    assert [path.name for path in disk.iterdir()] == ["filler"]


def test_a_memory_map_that_fits_has_its_room(disk):
    array = scratch_array(disk / "array.npy", (1 << 18, 2), np.dtype(np.float16))
    fill(disk, 0)
    array[:] = 1  # on a map that only claims its bytes, this would kill the process
    assert disk_space.free_below(disk) == 0


@pytest.mark.parametrize("left", [0, 4])
def test_what_was_there_stays(disk, left, capsys):
    """Files and folders that are to be replaced."""
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
        assert "No space left" in line and "GB are free" in line and line.count("\n") == 1
    assert contents(disk) == before


@pytest.mark.skipif(os.name != "posix", reason="needs the rights of POSIX")
def test_a_folder_without_rights_is_named(disk, capsys):
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert guarded(lambda _: write_text(disk / "new/file.txt", "x"), None) == 2
    line = capsys.readouterr().err
    assert "Read-only file system" in line and str(disk) in line

"""A disk that fills up: one line with the path and the free space, and nothing torn or
lost."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_cells import cell_of, enter, train_cell

from benchmark.core import files
from benchmark.core.command_line import guarded
from benchmark.core.files import replaced, write_text

DISK = 4 << 20  # bytes
FREE = [0, 8, 64]  # kB


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

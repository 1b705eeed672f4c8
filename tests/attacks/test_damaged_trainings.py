"""Files of a training that are damaged: noticed by the stage that reads them, in one
line."""

import shutil
from pathlib import Path

import pytest
from tiny_cells import cell_of, enter, train_cell

from benchmark.core.files import atomic
from benchmark.data import results
from benchmark.train import resumable_loop

CELL = {"epochs": 3}


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 4
    path.write_bytes(content)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A trained cell with all that it was trained from."""
    folder = tmp_path_factory.mktemp("trained") / "work"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        train_cell(cell_of("two_branch", **CELL))
    return folder


@pytest.fixture(autouse=True)
def work(whole, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(whole, tmp_path / "work"))


# What a killed training left ----------------------------------------------------------


def killed_training(monkeypatch: pytest.MonkeyPatch) -> Path:
    # killed after its first epoch
    def killed(run: object, *facts: object) -> None:
        end(run, *facts)
        raise KeyboardInterrupt

    end = resumable_loop.Run._end_epoch
    with monkeypatch.context() as patch:
        patch.setattr(resumable_loop.Run, "_end_epoch", killed)
        with pytest.raises(KeyboardInterrupt):
            train_cell(cell_of("two_branch", **CELL))
    (path,) = Path(".scratch").rglob("last.pt")
    return path


def test_a_damaged_state_begins_the_training_again(monkeypatch, capsys):
    cell = cell_of("two_branch", **CELL)
    first = Path(cell.checkpoint).read_bytes()
    flipped(killed_training(monkeypatch))
    train_cell(cell)
    assert "starts again" in capsys.readouterr().err
    assert Path(cell.checkpoint).read_bytes() == first


def test_scratch_is_kept_until_everything_is_written(monkeypatch):
    """A training that is killed while its last file is written has lost nothing."""
    cell = cell_of("two_branch", **CELL)

    def killed(*facts: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("benchmark.train.__main__.write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            train_cell(cell)
    assert list(Path(".scratch").rglob("last.pt"))
    monkeypatch.setattr(resumable_loop.Run, "step", None)  # no step is played again
    train_cell(cell)
    assert not list(Path(".scratch").rglob("last.pt"))
    cost = results.read_training_cost(Path(cell.costs), Path(cell.checkpoint))
    assert cost.seconds["training"] > 0


def test_what_a_killed_process_left_unfinished_is_swept(tmp_path):
    path = tmp_path / "file.txt"
    dead, living = 2**22 + 1, 1  # no process has the first number
    with atomic(path) as part:
        part.touch()
        others = [
            part.with_name(f"{part.name.rsplit('.', 2)[0]}.{n}.part")
            for n in (dead, living)
        ]
    for other in others:
        other.write_text("half")
    with atomic(path) as part:
        part.write_text("whole")
    assert [other.exists() for other in others] == [False, True]

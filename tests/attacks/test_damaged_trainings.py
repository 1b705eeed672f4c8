"""Files of a training that are damaged: noticed by the stage that reads them, in one line."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tiny_cells import CAPTIONS, IMAGES, PREPARED, VECTORS, cell_of, enter, evaluated, train_cell

from benchmark.core import sealed_files
from benchmark.core.files import atomic, read_json
from benchmark.core.sealed_files import DamagedError
from benchmark.train import resumable_loop
from datasets import DataError

CELL = {"epochs": 3}


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 4
    path.write_bytes(content)


def cut(share: float) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


WAYS = {
    "flipped": flipped,
    "empty": cut(0),
    "halved": cut(0.5),
    "cut at the end": cut(0.98),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "text": lambda path: path.write_text("not this"),
    "missing": Path.unlink,
    "a folder": replaced_by_folder,
}
READ_BY_TRAINING = [
    *(IMAGES / name for name in ("pooled.npy", "regions.npy", "positions.npy", "card.json")),
    *(VECTORS / name for name in ("sentence.npy", "card.json")),
    *(PREPARED / name for name in ("images.parquet", "captions.parquet", "regions.parquet")),
    PREPARED / "card.json",
]


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


def is_one_line(error: pytest.ExceptionInfo, path: Path) -> None:
    line = str(error.value)
    assert "\n" not in line and len(line) < 1000
    assert path.parent.name in line, line


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "path", READ_BY_TRAINING, ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_damaged_inputs_stop_training_and_evaluation(path, way):
    cell = cell_of("two_branch", **CELL)
    WAYS[way](path)
    for stage in (train_cell, evaluated):
        with pytest.raises((DataError, OSError)) as error:
            stage(cell)
        is_one_line(error, path)


@pytest.mark.parametrize("way", WAYS)
def test_damaged_checkpoints_are_not_evaluated(way):
    cell = cell_of("two_branch", **CELL)
    path = Path(cell.checkpoint)
    WAYS[way](path)
    with pytest.raises((DataError, OSError)) as error:
        evaluated(cell)
    is_one_line(error, path)


@pytest.mark.parametrize("byte", range(0, 40))
def test_any_flipped_bit_of_a_checkpoint_is_noticed(byte):
    """Each at another place from the first byte to the last."""
    path = Path(cell_of("two_branch", **CELL).checkpoint)
    content = bytearray(path.read_bytes())
    place = byte * (len(content) - 1) // 39
    content[place] ^= 1 << byte % 8
    path.write_bytes(content)
    with pytest.raises(DamagedError):
        sealed_files.load(path)


# What a killed training left -------------------------------------------------------------------


def killed_training(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state that a training leaves which is killed after its first epoch."""

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


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("missing", "a folder")])
def test_a_damaged_state_begins_the_training_again(way, monkeypatch, capsys):
    cell = cell_of("two_branch", **CELL)
    first = Path(cell.checkpoint).read_bytes()
    WAYS[way](killed_training(monkeypatch))
    train_cell(cell)
    assert "the training begins again" in capsys.readouterr().err
    assert Path(cell.checkpoint).read_bytes() == first


def test_scratch_is_kept_until_everything_is_written(monkeypatch):
    """A training that is killed while its last file is written has lost nothing."""
    cell = cell_of("two_branch", **CELL)

    def killed(*facts: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("benchmark.train.__main__.write_provenance", killed)
        with pytest.raises(KeyboardInterrupt):
            train_cell(cell)
    assert list(Path(".scratch").rglob("last.pt"))
    monkeypatch.setattr(resumable_loop.Run, "step", None)  # no step is played again
    train_cell(cell)
    assert not list(Path(".scratch").rglob("last.pt"))
    assert read_json(Path("results/a/training/cost.json"))["seconds"]["training"] > 0


def test_what_a_killed_process_left_unfinished_is_swept(tmp_path):
    path = tmp_path / "file.txt"
    dead, living = 2**22 + 1, 1  # no process has the first number
    with atomic(path) as part:
        part.touch()
        others = [part.with_name(f"{part.name.rsplit('.', 2)[0]}.{n}.part") for n in (dead, living)]
    for other in others:
        other.write_text("half")
    with atomic(path) as part:
        part.write_text("whole")
    assert [other.exists() for other in others] == [False, True]


def test_a_state_of_another_version_of_torch_is_still_an_archive(tmp_path):
    """The digest at its end disturbs no reader."""
    path = tmp_path / "x.pt"
    sealed_files.save(path, {"a": torch.arange(3)})
    assert torch.load(path, weights_only=True)["a"].tolist() == [0, 1, 2]
    assert CAPTIONS.is_file()

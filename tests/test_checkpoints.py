"""A record cannot tell of what was not trained: the checkpoint knows what decided its
weights."""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from builders import seal_tables
from refusals import refused
from tiny_cells import (
    IMAGES,
    OWN_METHODS,
    cell_of,
    enter,
    evaluated,
    kill_after_epoch,
    seal_features,
    train_cell,
    write_dataset,
)

from benchmark.data.prepared_tables import read
from benchmark.scoring import checkpoints
from benchmark.season.parameters import Cell

CHECKPOINT = "data/checkpoints/a.pt"
AGAIN = "python -m benchmark.train tiny-"


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)


def refuse_checkpoint(cell: Cell, expected: str, found: str = "") -> None:
    with refused(CHECKPOINT, expected, found, AGAIN):
        evaluated(cell)
    assert not Path("data/cells/a/record.json").exists()


@pytest.mark.parametrize(
    ("option", "value", "trained"),
    [("learning_rate", 0.9, "0.01"), ("epochs", 77, "3")],
)
def test_a_tampered_option_is_no_record(option, value, trained):
    cell = cell_of("scan")
    train_cell(cell)
    tampered = cell.model_copy(update={"options": cell.options | {option: value}})
    refuse_checkpoint(tampered, f"cell options {option} = {value}", trained)


@pytest.mark.parametrize("field", ["seed", "precision", "validation_images", "threads"])
def test_every_field_of_a_cell_counts(field):
    cell = cell_of("two_branch")
    train_cell(cell)
    others = {"seed": 5, "precision": "bfloat16", "validation_images": 3, "threads": 2}
    refuse_checkpoint(
        cell.model_copy(update={field: others[field]}), f"cell {field} = "
    )


def test_the_advice_is_to_train_in_the_season_of_the_cell():
    cell = cell_of("two_branch", folder="data/cells/other/tiny/two_branch/0")
    train_cell(cell)
    command = f"{AGAIN}two_branch-5 --season other"
    with refused("data/checkpoints/other/", "cell seed = 5", "0", do=command):
        evaluated(cell.model_copy(update={"seed": 5}))


def test_where_results_lie_does_not_count():
    cell = cell_of("two_branch")
    train_cell(cell)
    for end in ("pt", "json"):
        shutil.copyfile(f"data/checkpoints/a.{end}", f"data/checkpoints/b.{end}")
    moved = cell.model_copy(update={"folder": "data/cells/b"})
    assert evaluated(moved).status == "ok"


def replace_features() -> None:
    pooled = np.load(IMAGES / "pooled.npy")
    np.save(IMAGES / "pooled.npy", pooled[::-1])
    seal_features()


def replace_pictures() -> None:
    # other raw files have another manifest, and features are encoded anew
    seal_tables("tiny", manifest="1" * 64)
    for folder in Path("data/features/tiny").iterdir():
        facts = json.loads((folder / "card.json").read_text())
        from_now = {"prepared_sha256": read("tiny").sha256}
        (folder / "card.json").write_text(json.dumps(facts | from_now))


def replace_captions() -> None:
    write_dataset(words={"train": ("other",)})


@pytest.mark.parametrize(
    "change", [replace_features, replace_pictures, replace_captions]
)
def test_replaced_inputs_are_no_record(change):
    cell = cell_of("two_branch")
    train_cell(cell)
    change()
    refuse_checkpoint(cell, f"features {IMAGES}")


def own_method(text: str) -> str:
    path = Path("mine.py").resolve()
    path.write_text((OWN_METHODS / "plain.py").read_text() + text)
    return str(path)


def test_an_edited_method_is_no_record():
    cell = cell_of("plain").model_copy(update={"method": own_method("")})
    train_cell(cell)
    own_method("# a comment decides nothing\n")
    assert evaluated(cell).status == "ok"
    Path("data/cells/a/record.json").unlink()
    own_method("EDITED = True\n")
    refuse_checkpoint(cell, "method")


@pytest.mark.parametrize("stage", ["prepare", "encode", "train"])
def test_weights_of_another_version_of_a_stage_are_no_record(stage, monkeypatch):
    cell, before = cell_of("two_branch"), checkpoints.versions()
    train_cell(cell)
    after = before | {stage: before[stage] + 1}
    monkeypatch.setattr(checkpoints, "versions", lambda: after)
    refuse_checkpoint(cell, f"versions {stage}")


def test_the_weights_that_a_training_starts_from_are_in_its_identity():
    cell = cell_of("two_branch").model_copy(update={"start": "start.pt"})
    tables = read("tiny").sha256
    starts = []
    for content in (b"one", b"other", b"one"):
        Path("start.pt").write_bytes(content)
        starts.append(checkpoints.identity_of(cell, tables)["start"])
    assert starts[0] == starts[2] != starts[1]


# Files --------------------------------------------------------------------------------


class Trap:
    """Unpickling it leaves a file behind."""

    def __reduce__(self):
        return Path.touch, (Path("sprung").absolute(),)


def test_a_checkpoint_that_is_a_pickle_is_refused_and_not_executed():
    cell = cell_of("two_branch")
    train_cell(cell)
    path = Path(cell.checkpoint)
    whole = path.read_bytes()
    for write in (
        lambda: torch.save(Trap(), path),
        lambda: path.write_bytes(pickle.dumps(Trap())),
    ):
        write()
        with refused(CHECKPOINT, "this version"):
            evaluated(cell)
        assert not Path("sprung").exists()
    place = len(whole) * 2 // 3
    flipped = whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :]
    for rest in (b"", whole[: len(whole) // 2], flipped):
        path.write_bytes(rest)
        with refused(CHECKPOINT):
            evaluated(cell)
    path.unlink()
    with refused(CHECKPOINT, "a checkpoint", "nothing", "dvc repro"):
        evaluated(cell)
    path.write_bytes(pickle.dumps(Trap()))
    pickle.loads(path.read_bytes())
    assert Path("sprung").exists()  # the trap works


# A killed training --------------------------------------------------------------------


def test_a_killed_training_does_not_go_on_with_an_edited_loss(monkeypatch):
    cell = cell_of("plain").model_copy(update={"method": own_method("")})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        kill_after_epoch(patch, 1)
        train_cell(cell)
    (before,) = Path(".scratch/data/cells/a").iterdir()
    own_method("EDITED = True\n")
    train_cell(cell)
    assert not before.exists()  # nothing of the old training is left

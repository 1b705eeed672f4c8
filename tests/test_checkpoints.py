"""A record cannot tell of what was not trained: the checkpoint knows what decided its
weights."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from builders import seal_tables
from tiny_cells import (
    IMAGES,
    OWN_METHODS,
    cell_of,
    enter,
    evaluated,
    kill_after_epoch,
    seal,
    train_cell,
    write_dataset,
)

from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import read
from benchmark.season.parameters import Cell

HEAD = "data/checkpoints/a.pt: expected weights of "
AGAIN = "train again: python -m benchmark.train tiny-"


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)


def refused(cell: Cell) -> str:
    with pytest.raises(UserError) as error:
        evaluated(cell)
    assert AGAIN in str(error.value) and not Path("data/cells/a/record.json").exists()
    return str(error.value)


@pytest.mark.parametrize(
    ("option", "value", "trained"),
    [("learning_rate", 0.9, "0.01"), ("epochs", 77, "3")],
)
def test_a_tampered_option_is_no_record(option, value, trained):
    cell = cell_of("scan")
    train_cell(cell)
    tampered = cell.model_copy(update={"options": cell.options | {option: value}})
    said = refused(tampered)
    assert said.startswith(
        f"{HEAD}cell options {option} = {value}, found those of {trained};"
    )


@pytest.mark.parametrize("field", ["seed", "precision", "validation_images", "threads"])
def test_every_field_of_a_cell_counts(field):
    cell = cell_of("two_branch")
    train_cell(cell)
    others = {"seed": 5, "precision": "bfloat16", "validation_images": 3, "threads": 2}
    assert f"{HEAD}cell {field} = " in refused(
        cell.model_copy(update={field: others[field]})
    )


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
    seal()


def replace_pictures() -> None:
    """Other raw files have another manifest, and features are encoded anew."""
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
    assert f"{HEAD}the present features {IMAGES}" in refused(cell)


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
    assert f"{HEAD}the present method, found those of another" in refused(cell)


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

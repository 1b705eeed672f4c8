"""Training that goes on from the checkpoint of another one."""

import re

import numpy as np
import pytest
import torch
from tiny_cells import (
    IMAGES,
    WORDS,
    cell_of,
    checkpoint_of,
    enter,
    evaluated,
    scored,
    state_of,
    train_cell,
)

from benchmark.features import drawn_cnn


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    yield
    torch.use_deterministic_algorithms(False)


def test_training_goes_on_from_a_checkpoint_with_its_vocabulary():
    train_cell(cell_of("scan"))
    first = checkpoint_of()
    start = "data/checkpoints/a.pt"
    # A word that occurs less than 99 times would be none here, and everything would be <unk>.
    cell = cell_of("scan", folder="results/b", start=start, min_count=99, learning_rate=1e-9)
    train_cell(cell)
    second = checkpoint_of("results/b")
    assert second.words == first.words and len(first.words) == 4 + len(WORDS)
    assert second.sizes == first.sizes
    for name, value in second.state.items():
        torch.testing.assert_close(value, first.state[name], rtol=0, atol=1e-6)
    fresh = cell_of("scan", folder="results/c", min_count=1, learning_rate=1e-9, seed=1)
    train_cell(fresh)
    assert not torch.allclose(
        state_of("results/c")["project.weight"], first.state["project.weight"]
    )


def test_a_recipe_without_epochs_keeps_the_weights_it_starts_from(monkeypatch):
    train_cell(cell_of("scan"))
    start = "data/checkpoints/a.pt"
    cell = cell_of("scan", folder="results/b", start=start, trains=False, pooling="max")
    assert train_cell(cell)[1] == b"{}"
    first, second = state_of("results/a"), state_of("results/b")
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    record = evaluated(cell)
    assert (record.status, record.selected_epoch) == ("ok", None)
    assert record.options["pooling"] == "max" and record.metrics["rsum"] > 0
    scores = [scored(c, monkeypatch=monkeypatch)["i2t"] for c in (cell_of("scan"), cell)]
    assert not np.allclose(*scores)


def test_a_new_image_network_may_join_the_weights_that_training_starts_from():
    """Stage one learns from features, stage two from pixels; the rest goes on."""
    train_cell(cell_of("pixels", freeze=True))
    cell = cell_of("pixels", folder="results/b", start="data/checkpoints/a.pt", epochs=0)
    train_cell(cell)
    first, second = state_of("results/a"), state_of("results/b")
    assert {name for name in second if name not in first} == {
        f"image_network.{name}" for name in drawn_cnn.Network(width=4).state_dict()
    }
    assert all(torch.equal(first[name], second[name]) for name in first)
    kept = torch.load(IMAGES / "network.pt", weights_only=True)
    assert all(torch.equal(second[f"image_network.{name}"], kept[name]) for name in kept)
    assert evaluated(cell).status == "ok"


@pytest.mark.parametrize(
    ("kind", "options", "part"),
    [("scan", {"bidirectional": False}, "gru"), ("two_branch", {"hidden_size": 9}, "image_branch")],
)
def test_weights_that_do_not_fit_are_not_applicable(kind, options, part):
    train_cell(cell_of(kind))
    start = "data/checkpoints/a.pt"
    train_cell(cell_of(kind, folder="results/b", start=start, **options))
    checkpoint = checkpoint_of("results/b")
    assert checkpoint.status == "not_applicable"
    reason = f"{start}: expected weights like those of .*, found others in {part}; give both"
    assert re.match(reason, checkpoint.reason) and "\n" not in checkpoint.reason


@pytest.mark.parametrize("status", ["failed", "not_applicable"])
def test_a_training_cannot_go_on_from_one_without_a_result(status):
    kind, options = {"failed": ("breaks", {}), "not_applicable": ("scan", {"regions": 99})}[status]
    train_cell(cell_of(kind, **options))
    start = "data/checkpoints/a.pt"
    first = checkpoint_of()
    assert first.status == status
    cell = cell_of(kind, folder="results/b", start=start)
    train_cell(cell)
    record = evaluated(cell)
    assert record.status == "not_applicable"
    assert record.reason == f"{start}: {status}: {first.reason}"

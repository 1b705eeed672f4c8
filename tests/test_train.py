"""Training of tiny cells: the same twice, after a kill too, and honest failures."""

import os
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from refusals import holds
from tiny_cells import (
    CAPTIONS,
    IMAGES,
    KINDS,
    KNOWN,
    WORDS,
    cell_of,
    checkpoint_of,
    enter,
    evaluated,
    history_of,
    kill_after_epoch,
    kill_in_epoch,
    scores_of,
    seal_features,
    state_of,
    train_cell,
    write_dataset,
)

from benchmark.contracts.methods import Captions, NotApplicableError, Phase
from benchmark.data.feature_folders import Words
from benchmark.data.prepared_tables import read
from benchmark.features import drawn_cnn
from benchmark.scoring import model_scores
from benchmark.scoring.checkpoints import Checkpoint, identity_of
from benchmark.season.parameters import Cell
from benchmark.train import __main__ as train
from benchmark.train import resumable_loop


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    yield
    torch.use_deterministic_algorithms(False)


@cache
def uninterrupted(kind: str) -> tuple[bytes, bytes]:
    """The same wherever it runs."""
    return train_cell(cell_of(kind, folder="data/cells/uninterrupted"))


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_bytes(kind):
    first = train_cell(cell_of(kind))
    assert train_cell(cell_of(kind)) == first
    assert uninterrupted(kind) == first  # the folder's name is not in the files
    other = train_cell(cell_of(kind, seed=1))
    assert other[0] != first[0] and other[1] != first[1]


@pytest.mark.parametrize("kind", KINDS)
def test_training_never_sees_a_test_item(kind):
    _, history = train_cell(cell_of(kind))
    first = checkpoint_of()
    write_dataset(words={"test": ("never", "seen")}, bad="test")
    pixels = np.load(IMAGES / "pixels.npy")
    pixels[17:] = 255  # of the test split
    np.save(IMAGES / "pixels.npy", pixels)
    seal_features()
    assert train_cell(cell_of(kind))[1] == history
    second = checkpoint_of()
    assert second.identity["prepared"] != first.identity["prepared"]
    assert second.words == first.words and second.state.keys() == first.state.keys()
    assert all(second.state[name].equal(first.state[name]) for name in first.state)


@pytest.mark.parametrize("kill", [kill_after_epoch, kill_in_epoch])
@pytest.mark.parametrize(
    ("kind", "epoch"),
    [("scan", 2), ("two_branch", 1), ("pixels", 2)]
    + [("two_phases", n) for n in (2, 3, 4)],
)
def test_a_killed_training_goes_on_as_if_nothing_had_happened(
    kind, epoch, kill, monkeypatch
):
    expected = uninterrupted(kind)
    epochs = played_epochs(monkeypatch)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        kill(patch, epoch)
        train_cell(cell_of(kind))
    assert not Path("data/cells/a").exists()
    done = epoch if kill is kill_after_epoch else epoch - 1
    epochs.clear()
    assert train_cell(cell_of(kind)) == expected
    assert epochs == list(range(done, 4 if kind == "two_phases" else 3))
    assert not list(Path(".scratch").rglob("*.pt"))


def test_a_killed_training_leaves_no_state_of_other_options(monkeypatch):
    for rate in (0.001, 0.002):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            kill_after_epoch(patch, 1)
            train_cell(cell_of("two_branch", learning_rate=rate))
    assert len(list(Path(".scratch").rglob("last.pt"))) == 1


def test_a_training_is_not_resumed_on_a_device_of_another_kind(monkeypatch):
    folders = set()
    for kind in ("cpu", "a GPU"):
        monkeypatch.setattr(train, "kind", lambda device, kind=kind: kind)
        folders.add(train._scratch(cell_of("scan"), {}, torch.device("cpu")))
    assert len(folders) == 2


def test_the_state_of_a_training_stays_where_it_began_wherever_the_method_goes(
    monkeypatch,
):
    cell = cell_of("wrong", how="leaves")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        kill_after_epoch(patch, 1)
        train_cell(cell)
    states = {path.name for path in Path(".scratch").rglob("*.pt")}
    assert states == {"last.pt", "best-1.pt"}
    epochs = played_epochs(monkeypatch)
    train_cell(cell)
    assert epochs == [] and checkpoint_of().status == "ok"
    assert not list(Path(".scratch").rglob("*.pt"))


def test_the_traceback_of_a_method_that_left_lies_in_the_working_folder(monkeypatch):
    def breaks(*given):
        os.chdir("/")
        raise RuntimeError("far away")

    kept = Path(".scratch/failed/data/cells/a.txt")
    cell = cell_of("two_branch")
    with monkeypatch.context() as patch:
        patch.setattr(resumable_loop.Run, "play", breaks)
        train_cell(cell)
    assert "far away" in checkpoint_of().reason and "far away" in kept.read_text()
    kept.unlink()
    train_cell(cell)
    monkeypatch.setattr(model_scores, "encoded", breaks)
    assert "far away" in evaluated(cell).reason and "far away" in kept.read_text()


def played_epochs(monkeypatch) -> list[int]:
    epochs, original = [], resumable_loop.Run._epoch
    monkeypatch.setattr(
        resumable_loop.Run,
        "_epoch",
        lambda self, *given: epochs.append(given[0]) or original(self, *given),
    )
    return epochs


def test_validation_compares_no_items(monkeypatch):
    # as a test does: in every epoch it would take as long as the scores
    monkeypatch.setattr(model_scores, "first_equal", None)
    train_cell(cell_of("scan"))
    assert checkpoint_of().status == "ok"


def test_validation_may_see_the_first_images_only():
    cell = cell_of("scan")
    whole = train_cell(cell)[1]
    for count, same in ((5, True), (3, False)):
        limited = cell.model_copy(update={"validation_images": count})
        assert (train_cell(limited)[1] == whole) == same
    # of three images every rank is below 5: R@5 and R@10 of t2i cannot miss
    history = history_of()
    assert (history["val_t2i_r5"] == 100).all()
    assert not (history["val_t2i_r1"] % 20 == 0).all()


def test_the_best_epoch_is_kept_and_named():
    train_cell(cell_of("scan", epochs=6))
    history = history_of()
    assert history["epoch"].tolist() == [1, 2, 3, 4, 5, 6]
    best = history["val_rsum"].idxmax()
    assert history["val_rsum"].nunique() > 1
    assert checkpoint_of().epoch == history["epoch"][best]
    names = [f"{way}_r{k}" for way in ("val_i2t", "val_t2i") for k in (1, 5, 10)]
    assert history["val_rsum"].tolist() == pytest.approx(
        history[names].sum(axis=1).tolist()
    )
    terms = ["loss_image_anchor", "loss_caption_anchor"]
    assert history["loss"].tolist() == pytest.approx(
        history[terms].sum(axis=1).tolist()
    )
    assert history["learning_rate"].tolist() == pytest.approx([0.01] * 2 + [0.001] * 4)


@pytest.mark.parametrize(
    ("batch_size", "reason"),
    [
        (
            4,
            "epoch 1, step 2, learning rate 1e+30: image_anchor ",
        ),
        (500, "validation"),
    ],
)
def test_a_diverged_training_is_a_failed_record(batch_size, reason):
    cell = cell_of("two_branch", learning_rate=1e30, batch_size=batch_size)
    train_cell(cell)
    checkpoint = checkpoint_of()
    assert reason in checkpoint.reason and checkpoint.status == "failed"
    assert (checkpoint.state, checkpoint.epoch) == ({}, None)
    record = evaluated(cell)
    assert (record.status, record.reason) == ("failed", checkpoint.reason)
    assert (record.metrics, record.selected_epoch, record.images) == ({}, None, 6)
    assert not scores_of().ranks


STEPS = 6  # an epoch: 23 training captions, 4 at a time, of a last batch of 3


@pytest.mark.parametrize(
    ("breaks_at", "value", "term", "check_every"),
    [
        (2 * STEPS + 5, float("nan"), "odd nan", 2),
        (2 * STEPS + 1, float("inf"), "odd inf", 6),
        (3 * STEPS, float("nan"), "odd nan", 50),
    ],
)
def test_a_training_that_diverges_keeps_its_last_good_weights_and_tells_when(
    breaks_at, value, term, check_every, monkeypatch
):
    monkeypatch.setattr(resumable_loop, "CHECK_EVERY", check_every)
    kept = []
    original = resumable_loop.Run._end_epoch

    def note(self, *given):
        original(self, *given)
        kept.append({k: v.clone() for k, v in self.model.state_dict().items()})

    monkeypatch.setattr(resumable_loop.Run, "_end_epoch", note)
    cell = cell_of("breaks", breaks_at=breaks_at, value=value)
    train_cell(cell)
    checkpoint = checkpoint_of()
    step = breaks_at - 2 * STEPS
    assert f"epoch 3, step {step}, learning rate 0.125: far " in checkpoint.reason
    assert checkpoint.reason.endswith(term)
    history = history_of()
    assert history["epoch"].tolist() == [1, 2]
    assert checkpoint.epoch == history["val_rsum"].idxmax() + 1
    good = kept[checkpoint.epoch - 1]
    assert good.keys() == checkpoint.state.keys()
    assert all(
        torch.equal(good[name], value) for name, value in checkpoint.state.items()
    )
    record = evaluated(cell)
    assert (record.status, record.reason) == ("failed", checkpoint.reason)
    assert (record.metrics, record.selected_epoch) == ({}, checkpoint.epoch)
    assert not list(Path(".scratch").rglob("*.pt"))


# kind of cell, its options, arguments of the dataset, an array that is not there
LACKING = [
    (
        *("two_branch", {}, {"captions_of_image": 1}, ""),
        "tiny: .*2 captions of an image, found 1",
    ),
    ("scan", {}, {}, "regions", f"{IMAGES}: expected regions.npy, found none"),
    ("scan", {"regions": 5}, {}, "", "regions: expected 5 or more, found 4"),
    ("scan", {}, {"empty": "val"}, "", "tiny: .*val .*captions"),
    ("pixels", {}, {}, "pixels", f"{IMAGES}: expected pixels.npy, found none"),
    ("pixels", {}, {}, "pooled", f"{IMAGES}: expected pooled.npy, found none"),
    (
        "pixels",
        {"clusters": 2.5},
        {},
        "",
        "k-means: expected 1 to 12 clusters, .*, found 15",
    ),
]


@pytest.mark.parametrize(("kind", "options", "dataset", "lost", "reason"), LACKING)
def test_what_a_dataset_cannot_give_is_a_record_that_says_so(
    kind, options, dataset, lost, reason
):
    if dataset:
        write_dataset(**dataset)
    if lost:
        (IMAGES / f"{lost}.npy").unlink()
        seal_features()
    cell = cell_of(kind, **options)
    assert train_cell(cell)[1] == b"{}"
    checkpoint = checkpoint_of()
    assert checkpoint == Checkpoint(
        identity=identity_of(cell, read("tiny").sha256),
        status="not_applicable",
        reason=checkpoint.reason,
    )
    assert re.fullmatch(f"{reason}.*", checkpoint.reason)
    record = evaluated(cell)
    assert (record.status, record.reason) == ("not_applicable", checkpoint.reason)
    assert (record.metrics, record.selected_epoch, record.parameters) == ({}, None, 0)
    assert not scores_of().ranks


@pytest.mark.parametrize(
    ("draws", "owners", "found"),
    [
        ("images", [3, 3, 3], "2 training images or more, found 1"),
        ("captions", [0], "found 1"),
    ],
)
def test_a_single_row_makes_no_batch(draws, owners, found):
    phase = Phase(epochs=1, learning_rates=(0.1,), batch_size=4, draws=draws)
    with pytest.raises(NotApplicableError, match=f"^tiny: a batch expects .*{found}$"):
        train.check_batches(cell_of("scan"), [phase], np.array(owners))
    train.check_batches(cell_of("scan"), [phase], np.append(owners, 4))


@pytest.mark.parametrize("kind", ["scan", "two_branch"])
def test_batches_of_one_row_are_refused_by_name(kind):
    train_cell(cell_of(kind, batch_size=1))
    checkpoint = checkpoint_of()
    assert checkpoint.status == "failed"
    assert holds(checkpoint.reason, "batch_size", "2", "found 1")


# What a batch holds -------------------------------------------------------------------


def batches_seen(cell: Cell) -> list:
    train_cell(cell)
    return sys.modules["benchmark.contracts.methods.of_file.pixels"].SEEN


def check_rows_are_captions_of(
    ids: torch.Tensor, text: Captions, said_of: dict, words: tuple[str, ...]
) -> None:
    for number, row, length in zip(
        ids.tolist(), text.values, text.lengths, strict=True
    ):
        said = " ".join(words[word] for word in row[:length].tolist())
        known = {
            " ".join(w for w in t.split() if w in words) or "<pad>"
            for t in said_of[number]
        }
        assert said in known


def test_batches_hold_what_the_phase_asks_for():
    seen = batches_seen(cell_of("pixels", epochs=2, batch_size=6))
    assert [len(batch.group_ids) for batch in seen] == [6, 6, 6, 6]
    pixels = torch.from_numpy(np.load(IMAGES / "pixels.npy"))
    shown = [
        (batch.images[:, None] == pixels).flatten(2).all(2).int().argmax(1)
        for batch in seen
    ]
    for epoch in (shown[:2], shown[2:]):
        assert sorted(torch.cat(epoch).tolist()) == list(range(12))
    captions = (
        pd.read_parquet(CAPTIONS).query("split == 'train'").reset_index(drop=True)
    )
    words = checkpoint_of().words
    # known, in training captions
    assert words == ("<pad>", "a", "dog", "green", "red", "runs")
    for batch, images in zip(seen, shown, strict=True):
        assert torch.equal(batch.images, pixels[images])
        assert batch.images.dtype == torch.uint8
        groups = [image // 2 for image in images.tolist()]
        assert batch.class_ids.tolist() == batch.group_ids.tolist() == groups
        assert (
            len(batch.pool_ids)
            == len(batch.pool.values)
            == len(batch.pool.lengths)
            == 5
        )
        own = captions["image_id"].str[1:].astype(int)
        said_of = {image: captions["text"][own == image] for image in images.tolist()}
        said_of_group = {g: captions["text"][own // 2 == g] for g in range(6)}
        check_rows_are_captions_of(images, batch.captions, said_of, words)
        check_rows_are_captions_of(batch.pool_ids, batch.pool, said_of_group, words)
    assert len({tuple(batch.pool_ids.tolist()) for batch in seen}) > 1


def rates_seen(cell: Cell, monkeypatch) -> list[tuple]:
    """Epoch, optimiser, and (factor, learning rate) of every group, of each step
    once."""
    seen, original = [], resumable_loop.Run.step

    def note(self, *given):
        groups = sorted(
            (group["factor"], group["lr"]) for group in self.optimiser.param_groups
        )
        seen.append((self.progress.epoch, type(self.optimiser).__name__, groups))
        return original(self, *given)

    monkeypatch.setattr(resumable_loop.Run, "step", note)
    train_cell(cell)
    return [step for n, step in enumerate(seen) if step not in seen[:n]]


def test_each_epoch_has_the_rate_and_optimiser_of_its_phase(monkeypatch):
    steps = rates_seen(cell_of("two_phases"), monkeypatch)
    rates = [(0, "Adam", 0.1), (1, "Adam", 0.01), (2, "SGD", 0.1), (3, "SGD", 0.1)]
    assert steps == [(epoch, name, [(1.0, rate)]) for epoch, name, rate in rates]


def test_frozen_parameters_stay_and_the_others_learn():
    train_cell(cell_of("pixels"))
    state, kept = (
        state_of("data/cells/a"),
        torch.load(IMAGES / "network.pt", weights_only=True),
    )
    words = Words.read(KNOWN)
    expected = np.vstack(
        [np.zeros((1, 2)), words.rows(["a", "dog", "green", "red", "runs"])]
    )
    np.testing.assert_array_equal(
        state["words.weight"].numpy(), expected.astype(np.float32)
    )
    moved = "trunk.0.0.weight"
    assert not torch.equal(state[f"image_network.{moved}"], kept[moved])


# From the checkpoint of another training ----------------------------------------------


def test_training_goes_on_from_a_checkpoint_with_its_vocabulary():
    train_cell(cell_of("scan"))
    first = checkpoint_of()
    start = "data/checkpoints/a.pt"
    # A word that occurs less than 99 times would be none here, and everything would be
    # <unk>.
    cell = cell_of(
        "scan", folder="data/cells/b", start=start, min_count=99, learning_rate=1e-9
    )
    train_cell(cell)
    second = checkpoint_of("data/cells/b")
    assert second.words == first.words and len(first.words) == 4 + len(WORDS)
    assert second.sizes == first.sizes
    for name, value in second.state.items():
        torch.testing.assert_close(value, first.state[name], rtol=0, atol=1e-6)
    fresh = cell_of(
        "scan", folder="data/cells/c", min_count=1, learning_rate=1e-9, seed=1
    )
    train_cell(fresh)
    assert not torch.allclose(
        state_of("data/cells/c")["project.weight"], first.state["project.weight"]
    )


@pytest.mark.parametrize(
    ("first", "second", "expected", "found"),
    [
        ("two_branch", "scan", "tokens", "vectors"),
        ("two_branch", "pixels", "words", "vectors"),
        ("scan", "pixels", "words", "tokens"),
        ("scan", "two_branch", "vectors", "tokens"),
        ("pixels", "scan", "tokens", "words"),
    ],
)
def test_a_start_with_another_kind_of_text_is_not_applicable(
    first, second, expected, found
):
    train_cell(cell_of(first))
    start = "data/checkpoints/a.pt"
    train_cell(cell_of(second, folder="data/cells/b", start=start))
    checkpoint = checkpoint_of("data/cells/b")
    assert checkpoint.status == "not_applicable"
    facts = (f"captions as {expected}", f"found one with {found}")
    assert checkpoint.reason.startswith(f"{start}: ")
    assert holds(checkpoint.reason, *facts)


def test_a_new_image_network_may_join_the_weights_that_training_starts_from():
    train_cell(cell_of("pixels", freeze=True))
    cell = cell_of(
        "pixels", folder="data/cells/b", start="data/checkpoints/a.pt", epochs=0
    )
    train_cell(cell)
    first, second = state_of("data/cells/a"), state_of("data/cells/b")
    assert {name for name in second if name not in first} == {
        f"image_network.{name}" for name in drawn_cnn.Network(width=4).state_dict()
    }
    assert all(torch.equal(first[name], second[name]) for name in first)
    kept = torch.load(IMAGES / "network.pt", weights_only=True)
    assert all(
        torch.equal(second[f"image_network.{name}"], kept[name]) for name in kept
    )
    assert evaluated(cell).status == "ok"


@pytest.mark.parametrize(
    ("kind", "options", "part"),
    [
        ("scan", {"bidirectional": False}, "gru"),
        ("two_branch", {"hidden_size": 9}, "image_branch"),
    ],
)
def test_weights_that_do_not_fit_are_not_applicable(kind, options, part):
    train_cell(cell_of(kind))
    start = "data/checkpoints/a.pt"
    train_cell(cell_of(kind, folder="data/cells/b", start=start, **options))
    checkpoint = checkpoint_of("data/cells/b")
    assert checkpoint.status == "not_applicable"
    assert checkpoint.reason.startswith(f"{start}: ") and holds(checkpoint.reason, part)
    assert "\n" not in checkpoint.reason


@pytest.mark.parametrize("status", ["failed", "not_applicable"])
def test_a_training_cannot_go_on_from_one_without_a_result(status):
    kind, options = {
        "failed": ("breaks", {}),
        "not_applicable": ("scan", {"regions": 99}),
    }[status]
    train_cell(cell_of(kind, **options))
    start = "data/checkpoints/a.pt"
    first = checkpoint_of()
    assert first.status == status
    cell = cell_of(kind, folder="data/cells/b", start=start)
    train_cell(cell)
    record = evaluated(cell)
    assert record.status == "not_applicable"
    assert record.reason == f"{start}: {status}: {first.reason}"

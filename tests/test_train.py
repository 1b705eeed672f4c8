"""Training and evaluation of tiny cells: the same twice, after a kill too, and honest failures."""

import json
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from benchmark.core.errors import UserError
from benchmark.core.files import write_json
from benchmark.core.records import Record, read_record
from benchmark.data.feature_folders import fingerprint
from benchmark.data.word_vectors import Words
from benchmark.encoders import drawn_cnn
from benchmark.evaluate import __main__ as evaluate
from benchmark.evaluate import evaluation
from benchmark.matching import checkpoints, scoring
from benchmark.matching.checkpoints import Checkpoint
from benchmark.protocol import fusion
from benchmark.season.parameters import Cell, Fusion, Params
from benchmark.train import __main__ as train
from benchmark.train import loop
from methods import Captions

COUNTS = {"train": 12, "val": 5, "test": 6, "unused": 1}
WORDS = ("red", "green", "dog", "runs", "sleeps", "a", "the")
PREPARED, IMAGES = Path("data/prepared/tiny"), Path("data/features/tiny/grid")
VECTORS, KNOWN = Path("data/features/tiny/vectors"), Path("data/features/tiny/words")
CAPTIONS, CARD = str(PREPARED / "captions.parquet"), str(PREPARED / "card.json")
SCAN = {
    **{"embedding_size": 6, "word_size": 4, "batch_size": 8, "min_count": 1, "regions": 4},
    **{"epochs": 3, "decay_after": 2, "learning_rate": 0.01},
}
TWO_BRANCH = {
    **{"hidden_size": 8, "embedding_size": 6, "batch_size": 8, "epochs": 3},
    **{"neighbourhood_sampling": True, "lambda4": 0.05, "learning_rate": 0.01},
}
KINDS = ["scan", "two_branch", "pixels"]
EVALUATED = (
    "record.json",
    "scores/ranks.parquet",
    "scores/similarities.npz",
    "scores/retrieved.npz",
    "scores/samples.npz",
)

TWO_PHASES = '''
"""A method whose training has two stretches with different optimisers."""

from dataclasses import dataclass

import torch
from torch import nn

from methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    size: int = 4


def inputs(config):
    return Inputs(image="pooled", text="sentence")


def recipe(config):
    return [
        Phase(epochs=2, learning_rates=(0.1, 0.01), batch_size=8),
        Phase(epochs=2, learning_rates=(0.1, 0.1), batch_size=5, optimiser="sgd", momentum=0.9),
    ]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(sizes.text, 4)
        self.dropout = nn.Dropout(0.5)

    def encode_images(self, images):
        return (self.dropout(self.image(images)),)

    def encode_captions(self, captions):
        return (self.text(captions.values),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T

    def scores(self, images, captions):
        product = self.similarity(images, captions)
        distance = torch.cdist(images[0], captions[0])
        return {"product": product, "nearness": 1 - distance}

    def loss(self, batch):
        scores = self.similarity(
            self.encode_images(batch.images), self.encode_captions(batch.captions)
        )
        return {"term": nn.functional.cross_entropy(scores, torch.arange(len(scores)))}
'''

PIXELS = '''
"""A method that trains an image network, and the vectors of words."""

from dataclasses import dataclass

import torch
from torch import nn

from methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    epochs: int = 3
    batch_size: int = 8
    freeze: bool = False
    clusters: float = 0.0


def inputs(config):
    image = "pooled" if config.freeze else "pixels"
    return Inputs(image=image, text="words", word_vectors=True, clusters=config.clusters)


def recipe(config):
    return [
        Phase(
            epochs=config.epochs,
            learning_rates=(0.05,) * config.epochs,
            batch_size=config.batch_size,
            draws="images",
            pool=5,
            rates=(("words.", 0.0), ("image_network.", 0.1)),
        )
    ]


SEEN = []  # batches, for the tests


class Model(nn.Module):
    def __init__(self, config, sizes, word_vectors=None, image_network=None):
        super().__init__()
        self.words = nn.Embedding(sizes.text, 2)
        if word_vectors is not None:
            self.words.weight.data.copy_(word_vectors)
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(2, 4)
        self.share = nn.Linear(4, sizes.classes) if sizes.classes else None
        self.image_network = image_network

    def encode_images(self, images):
        if self.image_network is not None:
            images = self.image_network(images.float() / 255)[0]
        return (self.image(images),)

    def encode_captions(self, captions):
        return (self.text(self.words(captions.values).mean(1)),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T

    def loss(self, batch):
        SEEN.append(batch)
        (images,), (texts,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        return {
            "rank": nn.functional.cross_entropy(images @ texts.T, torch.arange(len(texts))),
            "class": nn.functional.cross_entropy(self.share(images), batch.class_ids),
        }
'''

BREAKS = '''
"""A method whose loss is no longer a number after some steps."""

from dataclasses import dataclass

import torch
from torch import nn

from methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    breaks_at: int = 7  # of all steps, counted from 1
    value: float = float("nan")
    batch_size: int = 4


def inputs(config):
    return Inputs(image="pooled", text="sentence")


def recipe(config):
    rates = (0.5, 0.25, 0.125, 0.0625)
    return [Phase(epochs=4, learning_rates=rates, batch_size=config.batch_size)]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.config, self.steps = config, 0
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(sizes.text, 4)

    def encode_images(self, images):
        return (self.image(images),)

    def encode_captions(self, captions):
        return (self.text(captions.values),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T

    def loss(self, batch):
        self.steps += 1
        (images,), (texts,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        odd = self.config.value if self.steps == self.config.breaks_at else 1.0
        return {"far": (images - texts).square().mean(), "odd": odd + 0 * texts.mean()}
'''


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("two_phases", TWO_PHASES), ("pixels", PIXELS), ("breaks", BREAKS)):
        Path(f"{name}.py").write_text(text)
    write_dataset()
    yield
    torch.use_deterministic_algorithms(False)


NO_REGIONS = pd.DataFrame(columns=["phrase_id", "image_id", "caption_id", "phrase", "chain"])


def write_dataset(
    words: dict[str, tuple[str, ...]] | None = None,
    bad: str | None = None,
    captions_of_image: int | None = None,
    empty: str | None = None,
) -> None:
    """Prepared tables and random features; `words` are other words for the captions of a split,
    `bad` a split whose features are NaN, `empty` one without captions."""
    rng = np.random.default_rng(0)
    splits = [split for split, count in COUNTS.items() for _ in range(count)]
    ids = [f"i{n}" for n in range(len(splits))]
    groups = [f"g{n // 2}" for n in range(len(splits))]  # two pictures a group
    images = pd.DataFrame({"image_id": ids, "split": splits, "group": groups})
    rows = [
        (f"i{n}#{c}", f"i{n}", " ".join(rng.choice((words or {}).get(split, WORDS), 4)), split)
        for n, split in enumerate(splits)
        for c in range(captions_of_image or 1 + n % 3)
        if split != empty
    ]
    captions = pd.DataFrame(rows, columns=["caption_id", "image_id", "text", "split"])
    PREPARED.mkdir(parents=True, exist_ok=True)
    for name, table in (("images", images), ("captions", captions), ("regions", NO_REGIONS)):
        table.to_parquet(PREPARED / f"{name}.parquet")
    card = {"split": "official", "manifest": "0" * 64, "ways": ["i2t", "t2i"], "folds": 1}
    write_json(PREPARED / "card.json", card)
    used = images[images["split"] != "unused"]
    spoilt = (used["split"] == bad).to_numpy()
    arrays = {"pooled": rng.normal(size=(23, 8)), "regions": rng.normal(size=(23, 4, 5))}
    for array in arrays.values():
        array[spoilt] = np.nan
    settings = {"network": "drawn_cnn", "grid": 2, "standardise": False}
    write_features(IMAGES, arrays, used["image_id"].tolist(), {"settings": settings})
    np.save(IMAGES / "places.npy", np.zeros((23, 4), np.int16))
    np.save(IMAGES / "pixels.npy", rng.integers(0, 256, (23, 3, 16, 16), dtype=np.uint8))
    write_network()
    vectors = rng.normal(size=(len(captions), 7))
    vectors[(captions["split"] == bad).to_numpy()] = np.nan
    facts = {"settings": {"encoder": "none", "standardise": False}, "vectors": "made up"}
    write_features(VECTORS, {"sentence": vectors}, captions["caption_id"].tolist(), facts)
    known = ("a", "dog", "green", "never", "red", "runs", "zebra")
    Words(known, rng.normal(size=(7, 2)).astype(np.float32)).save(KNOWN)
    write_json(KNOWN / "card.json", {"vectors": "made up"})


def write_network() -> None:
    """As the encode stage keeps it; its pooled size is that of the pooled features."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        torch.save(drawn_cnn.Network(width=4).state_dict(), IMAGES / "network.pt")


def write_features(folder: Path, arrays: dict, ids: list[str], facts: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array.astype(np.float16))
    card = {"dataset": "tiny", "encoder": folder.name, "items": len(ids)}
    write_json(folder / "card.json", card | {"items_sha256": fingerprint(ids)} | facts)


METHODS = {
    "scan": ("scan", SCAN),
    "two_branch": ("two_branch_embedding", TWO_BRANCH),
    "two_phases": ("two_phases.py", {}),
    "pixels": ("pixels.py", {}),
    "breaks": ("breaks.py", {}),
}


def cell_of(
    kind: str, folder: str = "results/a", seed: int = 0, start: str = CARD, **options
) -> Cell:
    method, default = METHODS[kind]
    return Cell(
        dataset="tiny",
        preset=kind,
        seed=seed,
        method=method,
        family="paper",
        options=default | options,
        scaled=["epochs"],
        network="drawn_cnn",
        images=str(IMAGES),
        backbone="drawn_cnn" if kind == "pixels" else "__init__",
        texts=CAPTIONS if kind in ("scan", "pixels") else str(VECTORS),
        words=str(KNOWN) if kind == "pixels" else CAPTIONS,
        start=start,
        folder=folder,
    )


def fusion_of(*members: Cell, how: str = "average", parts: tuple[str, ...] = ()) -> Fusion:
    folders = [member.folder for member in members]
    first, second, third = (folders + folders[-1:] * 2)[:3]
    return Fusion(
        dataset="tiny",
        preset="fused",
        seed=0,
        how=how,
        members=folders,
        parts=list(parts) or [""] * len(folders),
        first=first,
        second=second,
        third=third,
        folder="results/fused",
    )


def params_of(*cells: Cell) -> Params:
    return Params(
        season="try",
        title="Try",
        device="cpu",
        precision="float32",
        validation_images=None,
        weights_dir=None,
        datasets={},
        feature_sets={},
        cells={cell.folder: cell for cell in cells},
        fusions={},
    )


def train_cell(cell: Cell) -> tuple[bytes, bytes]:
    """Bytes of the checkpoint and of the history, after training from nothing or what is there."""
    train.train_cell(params_of(cell), cell)
    folder = Path(cell.folder)
    return (folder / "checkpoint.pt").read_bytes(), (folder / "training/history.csv").read_bytes()


def evaluated(cell: Cell | Fusion, *members: Cell) -> Record:
    """The record of a cell, or of a fusion of members."""
    evaluate.evaluate_cell(params_of(*(members or (cell,))), cell)
    return read_record(Path(cell.folder))


def scored(cell: Cell | Fusion, *members: Cell, monkeypatch) -> dict[str, np.ndarray]:
    """The test scores that evaluating the cell judged, a row a query."""
    seen = []
    original = evaluation.of_retrieval
    with monkeypatch.context() as patch:
        patch.setattr(
            evaluation,
            "of_retrieval",
            lambda scores, *rest: seen.append(scores) or original(scores, *rest),
        )
        evaluated(cell, *members)
    return seen[0]


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_bytes(kind):
    first = train_cell(cell_of(kind))
    assert train_cell(cell_of(kind)) == first  # the folder's name is not in the files
    assert train_cell(cell_of(kind, folder="results/b")) == first
    other = train_cell(cell_of(kind, seed=1))
    assert other[0] != first[0] and other[1] != first[1]


@pytest.mark.parametrize("kind", KINDS)
def test_training_never_sees_a_test_item(kind):
    first = train_cell(cell_of(kind))
    write_dataset(words={"test": ("never", "seen")}, bad="test")
    pixels = np.load(IMAGES / "pixels.npy")
    pixels[17:] = 255  # of the test split
    np.save(IMAGES / "pixels.npy", pixels)
    assert train_cell(cell_of(kind)) == first


def kill_in_note(monkeypatch, epoch: int) -> None:
    original = loop.Run._note

    def note(self, *given):
        original(self, *given)
        if self.progress.epoch == epoch:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop.Run, "_note", note)


def kill_in_epoch(monkeypatch, epoch: int) -> None:
    original = loop.Run._validate

    def validate(self, number):
        if self.progress.epoch + 1 == epoch:
            raise KeyboardInterrupt
        return original(self, number)

    monkeypatch.setattr(loop.Run, "_validate", validate)


@pytest.mark.parametrize("kill", [kill_in_note, kill_in_epoch])
@pytest.mark.parametrize(
    ("kind", "epoch"),
    [("scan", 2), ("two_branch", 1), ("two_branch", 3), ("pixels", 2)]
    + [("two_phases", n) for n in (1, 2, 3, 4)],
)
def test_a_killed_training_goes_on_as_if_nothing_had_happened(kind, epoch, kill, monkeypatch):
    unbroken = train_cell(cell_of(kind, folder="results/unbroken"))
    epochs = played_epochs(monkeypatch)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        kill(patch, epoch)
        train_cell(cell_of(kind))
    assert not Path("results/a").exists()
    done = epoch if kill is kill_in_note else epoch - 1
    epochs.clear()
    assert train_cell(cell_of(kind)) == unbroken
    assert epochs == list(range(done, 4 if kind == "two_phases" else 3))
    assert not list(Path(".scratch").rglob("*.pt"))


def played_epochs(monkeypatch) -> list[int]:
    epochs, original = [], loop.Run._epoch
    monkeypatch.setattr(
        loop.Run,
        "_epoch",
        lambda self, *given: epochs.append(given[0]) or original(self, *given),
    )
    return epochs


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"learning_rate": 0.5}, {"epochs": 2}], ids=lambda c: next(iter(c))
)
def test_another_training_does_not_go_on_with_a_killed_one(change, monkeypatch):
    expected = train_cell(cell_of("two_branch", folder="results/b", **change))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        kill_in_note(patch, 2)
        train_cell(cell_of("two_branch"))
    assert train_cell(cell_of("two_branch", **change)) == expected


def test_a_killed_training_of_other_captions_is_not_gone_on_with(monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        kill_in_note(patch, 2)
        train_cell(cell_of("scan"))
    write_dataset(words={"train": WORDS[::-1]})  # other captions of the same words and images
    resumed = train_cell(cell_of("scan"))
    assert train_cell(cell_of("scan", folder="results/b")) == resumed


def test_validation_may_see_the_first_images_only():
    cell = cell_of("scan")
    whole = train_cell(cell)[1]
    for count, same in ((5, True), (3, False)):
        params = params_of(cell).model_copy(update={"validation_images": count})
        train.train_cell(params, cell)
        assert (Path("results/a/history.csv").read_bytes() == whole) == same
    # of three images every rank is below 5: R@5 and R@10 of t2i cannot miss
    history = pd.read_csv("results/a/history.csv")
    assert (history["val_t2i_r5"] == 100).all()
    assert not (pd.read_csv("results/a/history.csv")["val_t2i_r1"] % 20 == 0).all()


def test_the_best_epoch_is_kept_and_named():
    train_cell(cell_of("scan", epochs=6))
    history = pd.read_csv("results/a/history.csv")
    assert history["epoch"].tolist() == [1, 2, 3, 4, 5, 6]
    best = history["val_rsum"].idxmax()
    assert history["val_rsum"].nunique() > 1
    assert checkpoints.load(Path("results/a/checkpoint.pt")).epoch == history["epoch"][best]
    names = [f"{way}_r{k}" for way in ("val_i2t", "val_t2i") for k in (1, 5, 10)]
    assert history["val_rsum"].tolist() == pytest.approx(history[names].sum(axis=1).tolist())
    terms = ["loss_image_anchor", "loss_caption_anchor"]
    assert history["loss"].tolist() == pytest.approx(history[terms].sum(axis=1).tolist())
    assert history["learning_rate"].tolist() == pytest.approx([0.01] * 2 + [0.001] * 4)


@pytest.mark.parametrize(
    ("batch_size", "reason"),
    [
        (4, "the loss is not finite in epoch 1, step 2, learning rate 1e+30: image_anchor "),
        (500, "validation"),
    ],
)
def test_a_diverged_training_is_a_failed_record(batch_size, reason):
    cell = cell_of("two_branch", learning_rate=1e30, batch_size=batch_size)
    train_cell(cell)
    checkpoint = checkpoints.load(Path("results/a/checkpoint.pt"))
    assert reason in checkpoint.reason and checkpoint.status == "failed"
    assert (checkpoint.state, checkpoint.epoch) == ({}, None)
    record = evaluated(cell)
    assert (record.status, record.reason) == ("failed", checkpoint.reason)
    assert (record.metrics, record.selected_epoch, record.images) == ({}, None, 6)
    assert len(pd.read_parquet("results/a/ranks.parquet")) == 0


STEPS = 6  # an epoch: 23 training captions, 4 at a time, of a last batch of 3


@pytest.mark.parametrize(
    ("breaks_at", "value", "told"),
    [
        (2 * STEPS + 5, float("nan"), "odd nan"),
        (2 * STEPS + 1, float("inf"), "odd inf"),
        (3 * STEPS, float("nan"), "odd nan"),
    ],
)
@pytest.mark.parametrize("looked_at", [2, 3, 6, 50])
def test_a_training_that_diverges_keeps_its_last_good_weights(
    breaks_at, value, told, looked_at, monkeypatch
):
    """It stops when the loss is looked at next, and tells when it broke, not when it was seen."""
    monkeypatch.setattr(loop, "LOOKED_AT", looked_at)
    kept = []
    original = loop.Run._note

    def note(self, *given):
        original(self, *given)
        kept.append({k: v.clone() for k, v in self.model.state_dict().items()})

    monkeypatch.setattr(loop.Run, "_note", note)
    cell = cell_of("breaks", breaks_at=breaks_at, value=value)
    train_cell(cell)
    checkpoint = checkpoints.load(Path("results/a/checkpoint.pt"))
    step = breaks_at - 2 * STEPS
    assert checkpoint.reason.startswith(
        f"the loss is not finite in epoch 3, step {step}, learning rate 0.125: far "
    )
    assert checkpoint.reason.endswith(told)
    history = pd.read_csv("results/a/history.csv")
    assert history["epoch"].tolist() == [1, 2]
    assert checkpoint.epoch == history["val_rsum"].idxmax() + 1
    good = kept[checkpoint.epoch - 1]
    assert good.keys() == checkpoint.state.keys()
    assert all(torch.equal(good[name], value) for name, value in checkpoint.state.items())
    record = evaluated(cell)
    assert (record.status, record.reason) == ("failed", checkpoint.reason)
    assert (record.metrics, record.selected_epoch) == ({}, checkpoint.epoch)
    assert not list(Path(".scratch").rglob("*.pt"))


def test_an_epoch_of_just_as_many_steps_as_the_loss_is_looked_at_ends_well(monkeypatch):
    monkeypatch.setattr(loop, "LOOKED_AT", STEPS)
    train_cell(cell_of("breaks", breaks_at=0))
    assert len(pd.read_csv("results/a/history.csv")) == 4
    assert checkpoints.load(Path("results/a/checkpoint.pt")).status == "ok"


def lack_regions() -> None:
    (IMAGES / "regions.npy").unlink()


def lack_pixels() -> None:
    (IMAGES / "pixels.npy").unlink()


def one_caption_an_image() -> None:
    write_dataset(captions_of_image=1)


def no_validation_captions() -> None:
    write_dataset(empty="val")


@pytest.mark.parametrize(
    ("kind", "options", "change", "reason"),
    [
        (
            "two_branch",
            {},
            one_caption_an_image,
            "tiny: neighbourhood sampling expects 2 captions of an image, found 1 at most",
        ),
        ("scan", {}, lack_regions, f"{IMAGES}: expected regions.npy, found none"),
        ("scan", {"regions": 5}, None, "regions: expected 5 or more, found 4"),
        ("scan", {}, no_validation_captions, "tiny: the val split has no captions"),
        ("pixels", {}, lack_pixels, f"{IMAGES}: expected pixels.npy, found none"),
        ("pixels", {"clusters": 2.5}, None, "k-means: expected 1 to 12 clusters, .*, found 15"),
    ],
)
def test_what_a_dataset_cannot_give_is_a_record_that_says_so(kind, options, change, reason):
    if change:
        change()
    cell = cell_of(kind, **options)
    assert train_cell(cell)[1] == b"epoch\n"
    checkpoint = checkpoints.load(Path("results/a/checkpoint.pt"))
    assert checkpoint == Checkpoint.not_applicable(checkpoint.reason)
    assert re.fullmatch(f"{reason}.*", checkpoint.reason)
    record = evaluated(cell)
    assert (record.status, record.reason) == ("not_applicable", checkpoint.reason)
    assert (record.metrics, record.selected_epoch, record.parameters) == ({}, None, 0)
    assert len(pd.read_parquet("results/a/ranks.parquet")) == 0
    with np.load("results/a/similarities.npz") as arrays:
        assert not arrays.files


def test_a_test_split_without_captions_is_not_applicable():
    cell = cell_of("scan")
    train_cell(cell)
    write_dataset(empty="test")
    record = evaluated(cell)
    assert (record.status, record.reason) == (
        "not_applicable",
        "tiny: the test split has no captions",
    )
    assert (record.captions, record.metrics) == (0, {})


# Training that goes on from a checkpoint ------------------------------------------------------


def state_of(folder: str) -> dict[str, torch.Tensor]:
    return checkpoints.load(Path(folder, "checkpoint.pt")).state


def test_training_goes_on_from_a_checkpoint_with_its_vocabulary():
    train_cell(cell_of("scan"))
    first = checkpoints.load(Path("results/a/checkpoint.pt"))
    start = "results/a/checkpoint.pt"
    # A word that occurs less than 99 times would be none here, and everything would be <unk>.
    cell = cell_of("scan", folder="results/b", start=start, min_count=99, learning_rate=1e-9)
    train_cell(cell)
    second = checkpoints.load(Path("results/b/checkpoint.pt"))
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
    start = "results/a/checkpoint.pt"
    cell = cell_of("scan", folder="results/b", start=start, trains=False, pooling="max")
    assert train_cell(cell)[1] == b"epoch\n"
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
    cell = cell_of("pixels", folder="results/b", start="results/a/checkpoint.pt", epochs=0)
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
def test_weights_that_do_not_fit_are_not_gone_on_from(kind, options, part):
    train_cell(cell_of(kind))
    start = "results/a/checkpoint.pt"
    train_cell(cell_of(kind, folder="results/b", start=start, **options))
    checkpoint = checkpoints.load(Path("results/b/checkpoint.pt"))
    assert checkpoint.status == "not_applicable"
    reason = f"{start}: expected weights like those of .*, found others in {part}; give both"
    assert re.match(reason, checkpoint.reason) and "\n" not in checkpoint.reason


@pytest.mark.parametrize("status", ["failed", "not_applicable"])
def test_a_training_cannot_go_on_from_one_without_a_result(status):
    kind, options = {"failed": ("breaks", {}), "not_applicable": ("scan", {"regions": 99})}[status]
    train_cell(cell_of(kind, **options))
    start = "results/a/checkpoint.pt"
    reason = checkpoints.load(Path(start)).reason
    assert checkpoints.load(Path(start)).status == status
    cell = cell_of(kind, folder="results/b", start=start)
    train_cell(cell)
    record = evaluated(cell)
    assert record.status == "not_applicable"
    assert record.reason == f"{start}: {status}: {reason}"


def test_a_missing_checkpoint_to_start_from_is_told():
    with pytest.raises(UserError, match="results/no/checkpoint.pt: not found"):
        train_cell(cell_of("scan", start="results/no/checkpoint.pt"))


def test_a_killed_training_from_another_start_is_not_gone_on_with(monkeypatch):
    train_cell(cell_of("scan"))
    train_cell(cell_of("scan", folder="results/b", seed=1))
    starts = [f"results/{name}/checkpoint.pt" for name in "ab"]
    expected = train_cell(cell_of("scan", folder="results/c", start=starts[1]))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        kill_in_note(patch, 2)
        train_cell(cell_of("scan", folder="results/c", start=starts[0]))
    Path(starts[0]).write_bytes(Path(starts[1]).read_bytes())  # trained again, otherwise
    assert train_cell(cell_of("scan", folder="results/c", start=starts[0])) == expected


# What a batch holds ---------------------------------------------------------------------------


def batches_seen(cell: Cell) -> list:
    train_cell(cell)
    return sys.modules["pixels"].SEEN


def check_said(ids: torch.Tensor, text: Captions, said_of: dict, words: tuple[str, ...]) -> None:
    """Each row of text is a caption of what its id names."""
    for number, row, length in zip(ids.tolist(), text.values, text.lengths, strict=True):
        said = " ".join(words[word] for word in row[:length].tolist())
        known = {" ".join(w for w in t.split() if w in words) or "<pad>" for t in said_of[number]}
        assert said in known


def test_batches_hold_what_the_phase_asks_for():
    seen = batches_seen(cell_of("pixels", epochs=2, batch_size=6))
    assert [len(batch.group_ids) for batch in seen] == [6, 6, 6, 6]
    pixels = torch.from_numpy(np.load(IMAGES / "pixels.npy"))
    shown = [(batch.images[:, None] == pixels).flatten(2).all(2).int().argmax(1) for batch in seen]
    for epoch in (shown[:2], shown[2:]):
        assert sorted(torch.cat(epoch).tolist()) == list(range(12))
    captions = pd.read_parquet(CAPTIONS).query("split == 'train'").reset_index(drop=True)
    words = checkpoints.load(Path("results/a/checkpoint.pt")).words
    assert words == ("<pad>", "a", "dog", "green", "red", "runs")  # known, in training captions
    for batch, images in zip(seen, shown, strict=True):
        assert torch.equal(batch.images, pixels[images])
        assert batch.images.dtype == torch.uint8
        groups = [image // 2 for image in images.tolist()]
        assert batch.class_ids.tolist() == batch.group_ids.tolist() == groups
        assert len(batch.pool_ids) == len(batch.pool.values) == len(batch.pool.lengths) == 5
        own = captions["image_id"].str[1:].astype(int)
        said_of = {image: captions["text"][own == image] for image in images.tolist()}
        said_of_group = {g: captions["text"][own // 2 == g] for g in range(6)}
        check_said(images, batch.captions, said_of, words)
        check_said(batch.pool_ids, batch.pool, said_of_group, words)
    assert len({tuple(batch.pool_ids.tolist()) for batch in seen}) > 1


def test_clusters_take_the_place_of_groups():
    seen = batches_seen(cell_of("pixels", epochs=1, clusters=0.5))
    found = torch.cat([batch.class_ids for batch in seen])
    assert sorted(set(found.tolist())) == [0, 1, 2]  # half as many as there are groups
    assert checkpoints.load(Path("results/a/checkpoint.pt")).sizes.classes == 3


def rates_seen(cell: Cell, monkeypatch) -> list[tuple]:
    """Epoch, optimiser, and (factor, learning rate) of every group, of each step once."""
    seen, original = [], loop.Run.step

    def note(self, *given):
        groups = sorted((group["factor"], group["lr"]) for group in self.optimiser.param_groups)
        seen.append((self.progress.epoch, type(self.optimiser).__name__, groups))
        return original(self, *given)

    monkeypatch.setattr(loop.Run, "step", note)
    train_cell(cell)
    return [step for n, step in enumerate(seen) if step not in seen[:n]]


def test_each_group_learns_at_its_share_of_the_rate(monkeypatch):
    found = rates_seen(cell_of("pixels", epochs=2), monkeypatch)
    shares = [(0.1, pytest.approx(0.005)), (1.0, 0.05)]
    assert found == [(0, "Adam", shares), (1, "Adam", shares)]


def test_each_epoch_has_the_rate_and_optimiser_of_its_phase(monkeypatch):
    found = rates_seen(cell_of("two_phases"), monkeypatch)
    rates = [(0, "Adam", 0.1), (1, "Adam", 0.01), (2, "SGD", 0.1), (3, "SGD", 0.1)]
    assert found == [(epoch, name, [(1.0, rate)]) for epoch, name, rate in rates]


def test_frozen_parameters_stay_and_the_others_learn():
    train_cell(cell_of("pixels"))
    found, kept = state_of("results/a"), torch.load(IMAGES / "network.pt", weights_only=True)
    words = Words.read(KNOWN)
    expected = np.vstack([np.zeros((1, 2)), words.rows(["a", "dog", "green", "red", "runs"])])
    np.testing.assert_array_equal(found["words.weight"].numpy(), expected.astype(np.float32))
    moved = "trunk.0.0.weight"
    assert not torch.equal(found[f"image_network.{moved}"], kept[moved])


def test_test_scores_that_are_not_finite_are_a_failed_record():
    cell = cell_of("two_branch")
    train_cell(cell)
    write_dataset(bad="test")
    record = evaluated(cell)
    assert record.status == "failed"
    assert "scores are NaN or infinite" in record.reason


@pytest.mark.parametrize("kind", KINDS)
def test_evaluating_twice_gives_the_same_bytes(kind):
    cell = cell_of(kind)
    train_cell(cell)
    found = []
    for _ in range(2):
        assert evaluated(cell).status == "ok"
        found.append([Path(cell.folder, name).read_bytes() for name in EVALUATED])
    assert found[0] == found[1]


def rank_of(scores: np.ndarray, image: int) -> int:
    """Of the images of a test image's group: test images are i17 to i22, two consecutive even and
    odd ones a group."""
    groups = [(17 + i) // 2 for i in range(len(scores))]
    best = max(scores[i] for i in range(len(scores)) if groups[i] == groups[image])
    return sum(scores[i] >= best for i in range(len(scores)) if groups[i] != groups[image])


def test_a_record_tells_what_was_played(monkeypatch):
    cell = cell_of("scan")
    train_cell(cell)
    judged = scored(cell, monkeypatch=monkeypatch)
    scores = judged["i2t"]
    assert (judged["t2i"] == scores.T).all()
    record = json.loads(Path("results/a/record.json").read_text())
    captions = pd.read_parquet(PREPARED / "captions.parquet").query("split == 'test'")
    assert scores.shape == (6, len(captions))
    assert (record["images"], record["captions"]) == scores.shape
    assert (record["status"], record["split"], record["seed"]) == ("ok", "official/test", 0)
    assert record["options"]["epochs"] == 3 and record["options"]["margin"] == 0.2
    assert record["scaled"] == ["epochs"]
    assert record["text_features"] == {"vocabulary": 4 + len(WORDS)}
    assert record["deviations"] == ["regions: a 2 x 2 grid instead of a detector's boxes"]
    assert "s2s_r1" not in record["metrics"]
    ranks = pd.read_parquet("results/a/ranks.parquet")
    i2t, t2i = (ranks[ranks["direction"] == way] for way in ("i2t", "t2i"))
    assert i2t["query"].tolist() == [f"i{n}" for n in range(17, 23)]
    assert t2i["query"].tolist() == captions["caption_id"].tolist()
    assert record["metrics"]["t2i_r1"] == pytest.approx(100 * (t2i["rank"] < 1).mean())
    for row, (_, caption) in enumerate(captions.iterrows()):
        own = int(caption["image_id"][1:]) - 17
        assert t2i["rank"].iloc[row] == rank_of(scores[:, row], own)
    with np.load("results/a/retrieved.npz") as retrieved:
        assert retrieved["t2i"].shape == (len(captions), 6)
        assert (retrieved["i2t"][:, 0] == scores.argmax(1)).all()
    with np.load("results/a/similarities.npz") as similarities:
        s = np.minimum(similarities["matched"], similarities["unmatched"]).sum()
        assert s == pytest.approx(record["metrics"]["overlap_s"])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("two_branch", ["image features: drawn_cnn, in the paper vgg19", "sentence vectors: word"]),
        ("pixels", ["image features: drawn_cnn, in the paper vgg19", "word vectors: made up"]),
    ],
)
def test_a_record_tells_where_its_features_differ_from_the_papers(kind, expected):
    cell = cell_of(kind).model_copy(update={"network": "vgg19"})
    train_cell(cell)
    found = evaluated(cell).deviations
    assert len(found) == len(expected)
    assert all(sentence.startswith(start) for sentence, start in zip(found, expected, strict=True))


def test_sentences_are_queries_of_methods_that_embed_text():
    cell = cell_of("two_branch")
    train_cell(cell)
    metrics = evaluated(cell).metrics
    member = evaluate._member(cell, "")
    model = evaluate._model(member).eval()
    data = evaluate.read_data(cell)
    given = evaluate.split_inputs(data, cell, member.takes, "test", None, torch.device("cpu"))
    with torch.no_grad():
        captions = model.encode_captions(given.captions)
        scores = model.caption_similarity(captions, captions).numpy()
    owners, ranks = given.image_of_caption.tolist(), []
    for q, owner in enumerate(owners):
        others = [c for c in range(len(owners)) if c != q]
        siblings = [scores[q, c] for c in others if owners[c] == owner]
        if siblings:
            wrong = [scores[q, c] for c in others if owners[c] != owner]
            ranks.append(sum(score >= max(siblings) for score in wrong))
    assert 0 < len(ranks) < len(owners)  # an only caption is no query
    for k in (1, 5, 10):
        expected = 100 * sum(rank < k for rank in ranks) / len(ranks)
        assert metrics[f"s2s_r{k}"] == pytest.approx(expected)
    assert "s2s_r1" not in evaluated(fusion_of(cell), cell).metrics  # scores are fused, not texts


@pytest.mark.parametrize("chunk", [1, 4])
def test_sentences_are_scored_in_blocks_of_any_size(chunk, monkeypatch):
    cell = cell_of("two_branch")
    train_cell(cell)
    whole = evaluated(cell).metrics
    monkeypatch.setattr(scoring, "ENCODE_CHUNK", chunk)
    found = evaluated(cell).metrics
    assert found.keys() == whole.keys() and found.pop("overlap_range") == whole.pop("overlap_range")
    assert found == pytest.approx(whole, rel=1e-5)
    assert not torch.is_inference_mode_enabled()


def two_members() -> tuple[Cell, Cell]:
    first, second = cell_of("scan"), cell_of("scan", folder="results/b", direction="i2t")
    second = second.model_copy(update={"preset": "other"})
    for cell in (first, second):
        train_cell(cell)
    return first, second


def test_a_fusion_scores_the_mean_of_its_members(monkeypatch):
    members = two_members()
    matrices = [scored(cell, monkeypatch=monkeypatch)["i2t"] for cell in members]
    fused = fusion_of(*members)
    scores = scored(fused, *members, monkeypatch=monkeypatch)
    np.testing.assert_allclose(scores["i2t"], (matrices[0] + matrices[1]) / 2, rtol=1e-6)
    assert (scores["t2i"] == scores["i2t"].T).all()
    assert not np.allclose(matrices[0], matrices[1])
    records = [read_record(Path("results") / name) for name in ("a", "b", "fused")]
    assert records[2].parameters == records[0].parameters + records[1].parameters
    assert set(records[2].options["average"]) == {"scan", "other"}
    assert (records[2].selected_epoch, records[2].preset) == (None, "fused")


def test_an_adaptive_fusion_is_judged_by_each_directions_own_scores(monkeypatch):
    members = two_members()
    matrices = [scored(cell, monkeypatch=monkeypatch)["i2t"] for cell in members]
    scores = scored(fusion_of(*members, how="adaptive"), *members, monkeypatch=monkeypatch)
    expected = fusion.adaptive(matrices)
    for way in ("i2t", "t2i"):
        np.testing.assert_allclose(scores[way], expected[way], rtol=1e-6)
    assert not np.allclose(scores["i2t"], scores["t2i"].T, rtol=1e-3)
    record = read_record(Path("results/fused"))
    assert set(record.options) == {"adaptive"} and "s2s_r1" not in record.metrics
    ranks = pd.read_parquet("results/fused/ranks.parquet")
    captions = pd.read_parquet(CAPTIONS).query("split == 'test'")
    own = captions["image_id"].str[1:].astype(int).to_numpy() - 17
    found = ranks.loc[ranks["direction"] == "t2i", "rank"].to_numpy()
    for c, image in enumerate(own):
        assert found[c] == rank_of(scores["t2i"][c], image)


def test_parts_of_one_training_can_be_fused(monkeypatch):
    cell, other = cell_of("two_phases"), cell_of("scan", folder="results/b")
    for one in (cell, other):
        train_cell(one)
    product, nearness = (
        scored(fusion_of(cell, parts=(part,)), cell, monkeypatch=monkeypatch)["i2t"]
        for part in ("product", "nearness")
    )
    np.testing.assert_array_equal(product, scored(cell, monkeypatch=monkeypatch)["i2t"])
    assert (nearness <= 1).all() and not np.allclose(product, nearness)
    scan = scored(other, monkeypatch=monkeypatch)["i2t"]
    three = fusion_of(cell, cell, other, parts=("product", "nearness", ""))
    found = scored(three, cell, other, monkeypatch=monkeypatch)["i2t"]
    np.testing.assert_allclose(found, (product + nearness + scan) / 3, rtol=1e-5)
    records = [read_record(Path("results") / name) for name in ("fused", "b")]
    parameters = checkpoints.load(Path("results/a/checkpoint.pt")).parameters
    assert records[0].parameters == parameters + records[1].parameters  # each training once
    adaptive = fusion_of(cell, cell, how="adaptive", parts=("product", "nearness"))
    found = scored(adaptive, cell, monkeypatch=monkeypatch)
    np.testing.assert_allclose(found["t2i"], fusion.adaptive([product, nearness])["t2i"], rtol=1e-5)


def test_a_fusion_with_a_failed_member_fails():
    first = cell_of("two_branch")
    second = cell_of("two_branch", folder="results/b", learning_rate=1e30)
    for cell in (first, second):
        train_cell(cell)
    record = evaluated(fusion_of(first, second), first, second)
    assert record.status == "failed" and "finite" in record.reason.replace("NaN", "finite")


def test_a_fusion_with_a_member_that_is_not_applicable_is_neither():
    first, second = cell_of("scan"), cell_of("scan", folder="results/b", regions=9)
    for cell in (first, second):
        train_cell(cell)
    record = evaluated(fusion_of(first, second), first, second)
    reason = "regions: expected 9 or more, found 4"
    assert (record.status, record.reason) == ("not_applicable", reason)


@pytest.mark.parametrize("stage", ["train", "evaluate"])
def test_features_of_something_else_are_refused(stage):
    cell = cell_of("two_branch")
    run = train.train_cell
    if stage == "evaluate":
        train_cell(cell)
        run = evaluate.evaluate_cell
    card = json.loads((IMAGES / "card.json").read_text())
    write_json(IMAGES / "card.json", card | {"dataset": "other"})
    with pytest.raises(UserError, match="grid/card.json: .*'tiny', found 'other'"):
        run(params_of(cell), cell)
    write_json(IMAGES / "card.json", card | {"items_sha256": fingerprint(["i1", "i0"])})
    with pytest.raises(UserError, match="features of other items .*dvc repro"):
        run(params_of(cell), cell)
    write_json(IMAGES / "card.json", card)
    np.save(IMAGES / "pooled.npy", np.zeros((22, 8), np.float16))
    with pytest.raises(UserError, match="pooled.npy: expected 23 rows of float16, found 22"):
        run(params_of(cell), cell)
    (IMAGES / "pooled.npy").write_bytes(pickle.dumps(np.zeros(3)))
    with pytest.raises(UserError, match="pooled.npy: cannot be read as an array"):
        run(params_of(cell), cell)


class Trap:
    """Unpickling it leaves a file behind."""

    def __reduce__(self):
        return Path.touch, (Path("sprung").absolute(),)


def test_a_checkpoint_that_is_a_pickle_is_refused_and_not_executed():
    cell = cell_of("two_branch")
    train_cell(cell)
    path = Path(cell.folder) / "checkpoint.pt"
    whole = path.read_bytes()
    for write in (lambda: torch.save(Trap(), path), lambda: path.write_bytes(pickle.dumps(Trap()))):
        write()
        with pytest.raises(UserError, match="checkpoint.pt: not a checkpoint of this version"):
            evaluate.evaluate_cell(params_of(cell), cell)
        assert not Path("sprung").exists()
    for rest in (b"", whole[: len(whole) // 2]):
        path.write_bytes(rest)
        with pytest.raises(UserError, match="not a checkpoint of this version"):
            evaluate.evaluate_cell(params_of(cell), cell)
    path.unlink()
    with pytest.raises(UserError, match="checkpoint.pt: not found; run"):
        evaluate.evaluate_cell(params_of(cell), cell)
    path.write_bytes(pickle.dumps(Trap()))
    pickle.loads(path.read_bytes())
    assert Path("sprung").exists()  # the trap works

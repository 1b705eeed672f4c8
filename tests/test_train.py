"""Training and evaluation of tiny cells: the same twice, after a kill too, and honest failures."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from benchmark import checkpoints, evaluate, train
from benchmark.errors import UserError
from benchmark.features import fingerprint
from benchmark.files import write_json
from benchmark.params import Cell, Fusion, Params
from benchmark.records import read_record

COUNTS = {"train": 12, "val": 5, "test": 6, "unused": 1}
WORDS = ("red", "green", "dog", "runs", "sleeps", "a", "the")
PREPARED, IMAGES = Path("data/prepared/tiny"), Path("data/features/tiny/grid")
VECTORS = Path("data/features/tiny/vectors")
SCAN = {
    **{"embedding_size": 6, "word_size": 4, "batch_size": 8, "min_count": 1},
    **{"epochs": 3, "decay_after": 2, "learning_rate": 0.01},
}
TWO_BRANCH = {
    **{"hidden_size": 8, "embedding_size": 6, "batch_size": 8, "epochs": 3},
    **{"neighbourhood_sampling": True, "lambda4": 0.05, "learning_rate": 0.01},
}
EVALUATED = ("record.json", "ranks.parquet", "similarities.npz", "retrieved.npz")

TWO_PHASES = '''
"""A method whose training has two stretches with different optimisers."""

from dataclasses import dataclass

import torch
from torch import nn

from methods import Inputs, Phase

INPUTS = Inputs(image="pooled", text="sentence")


@dataclass(frozen=True, kw_only=True)
class Config:
    size: int = 4


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

    def loss(self, batch):
        scores = self.similarity(
            self.encode_images(batch.images), self.encode_captions(batch.captions)
        )
        return {"term": nn.functional.cross_entropy(scores, torch.arange(len(scores)))}
'''


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_dataset()
    yield
    torch.use_deterministic_algorithms(False)


def write_dataset(words: dict[str, tuple[str, ...]] | None = None, bad: str | None = None) -> None:
    """Prepared tables and random features; `words` are other words for the captions of a split,
    `bad` a split whose features are NaN."""
    rng = np.random.default_rng(0)
    splits = [split for split, count in COUNTS.items() for _ in range(count)]
    images = pd.DataFrame({"image_id": [f"i{n}" for n in range(len(splits))], "split": splits})
    rows = [
        (f"i{n}#{c}", f"i{n}", " ".join(rng.choice((words or {}).get(split, WORDS), 4)), split)
        for n, split in enumerate(splits)
        for c in range(1 + n % 3)
    ]
    captions = pd.DataFrame(rows, columns=["caption_id", "image_id", "text", "split"])
    PREPARED.mkdir(parents=True, exist_ok=True)
    for name, table in (("images", images), ("captions", captions), ("regions", images[:0])):
        table.to_parquet(PREPARED / f"{name}.parquet")
    write_json(PREPARED / "card.json", {"split": "official", "manifest": "0" * 64})
    used = images[images["split"] != "unused"]
    spoilt = (used["split"] == bad).to_numpy()
    arrays = {"pooled": rng.normal(size=(23, 5)), "regions": rng.normal(size=(23, 4, 5))}
    for array in arrays.values():
        array[spoilt] = np.nan
    settings = {"network": "none", "grid": 2, "standardise": False}
    write_features(IMAGES, arrays, used["image_id"].tolist(), {"settings": settings})
    vectors = rng.normal(size=(len(captions), 7))
    vectors[(captions["split"] == bad).to_numpy()] = np.nan
    facts = {"settings": {"encoder": "none", "standardise": False}, "vectors": "made up"}
    write_features(VECTORS, {"sentence": vectors}, captions["caption_id"].tolist(), facts)


def write_features(folder: Path, arrays: dict, ids: list[str], facts: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array.astype(np.float16))
    card = {"dataset": "tiny", "encoder": folder.name, "items": len(ids)}
    write_json(folder / "card.json", card | {"items_sha256": fingerprint(ids)} | facts)


def cell_of(kind: str, folder: str = "results/a", seed: int = 0, **options) -> Cell:
    method, default = {
        "scan": ("scan", SCAN),
        "two_branch": ("two_branch_embedding", TWO_BRANCH),
        "two_phases": ("two_phases.py", {}),
    }[kind]
    return Cell(
        dataset="tiny",
        preset=kind,
        seed=seed,
        method=method,
        family="paper",
        options=default | options,
        scaled=["epochs"],
        images=str(IMAGES),
        texts=str(PREPARED / "captions.parquet") if kind == "scan" else str(VECTORS),
        folder=folder,
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
        encodings={},
        cells={cell.folder: cell for cell in cells},
        fusions={},
    )


def train_cell(cell: Cell) -> tuple[bytes, bytes]:
    """Bytes of the checkpoint and of the history, after training from nothing or what is there."""
    train.train_cell(params_of(cell), cell)
    folder = Path(cell.folder)
    return (folder / "checkpoint.pt").read_bytes(), (folder / "history.csv").read_bytes()


def scored(cell: Cell | Fusion, *members: Cell, monkeypatch) -> np.ndarray:
    """The test scores that evaluating the cell judged."""
    judged = []
    original = evaluate._judge
    with monkeypatch.context() as patch:
        patch.setattr(
            evaluate, "_judge", lambda *given: judged.append(original(*given)) or judged[-1]
        )
        evaluate.evaluate_cell(params_of(*(members or (cell,))), cell)
    return judged[0].scores


@pytest.mark.parametrize("kind", ["scan", "two_branch"])
def test_same_seed_same_bytes(kind):
    first = train_cell(cell_of(kind))
    assert train_cell(cell_of(kind)) == first  # the folder's name is not in the files
    assert train_cell(cell_of(kind, folder="results/b")) == first
    other = train_cell(cell_of(kind, seed=1))
    assert other[0] != first[0] and other[1] != first[1]


@pytest.mark.parametrize("kind", ["scan", "two_branch"])
def test_training_never_sees_a_test_item(kind):
    first = train_cell(cell_of(kind))
    write_dataset(words={"test": ("never", "seen")}, bad="test")
    assert train_cell(cell_of(kind)) == first


def kill_in_note(monkeypatch, epoch: int) -> None:
    original = train._Run._note

    def note(self, *given):
        original(self, *given)
        if self.progress.epoch == epoch:
            raise KeyboardInterrupt

    monkeypatch.setattr(train._Run, "_note", note)


def kill_in_epoch(monkeypatch, epoch: int) -> None:
    original = train._Run._validate

    def validate(self):
        if self.progress.epoch + 1 == epoch:
            raise KeyboardInterrupt
        return original(self)

    monkeypatch.setattr(train._Run, "_validate", validate)


@pytest.mark.parametrize("kill", [kill_in_note, kill_in_epoch])
@pytest.mark.parametrize(
    ("kind", "epoch"),
    [("scan", 2), ("two_branch", 1), ("two_branch", 3)] + [("two_phases", n) for n in (1, 2, 3, 4)],
)
def test_a_killed_training_goes_on_as_if_nothing_had_happened(kind, epoch, kill, monkeypatch):
    Path("two_phases.py").write_text(TWO_PHASES)
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
    epochs, original = [], train._Run._epoch
    monkeypatch.setattr(
        train._Run, "_epoch", lambda self, *given: epochs.append(given[0]) or original(self, *given)
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
    for count, same in ((5, True), (2, False)):
        params = params_of(cell).model_copy(update={"validation_images": count})
        train.train_cell(params, cell)
        assert (Path("results/a/history.csv").read_bytes() == whole) == same
    # of two images every rank is below 5: R@5 and R@10 of t2i cannot miss
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
    ("batch_size", "reason"), [(4, "training loss is not finite in epoch 1"), (500, "validation")]
)
def test_a_diverged_training_is_a_failed_record(batch_size, reason):
    cell = cell_of("two_branch", learning_rate=1e30, batch_size=batch_size)
    train_cell(cell)
    checkpoint = checkpoints.load(Path("results/a/checkpoint.pt"))
    assert reason in checkpoint.failure
    assert (checkpoint.state, checkpoint.epoch) == ({}, None)
    evaluate.evaluate_cell(params_of(cell), cell)
    record = read_record(Path("results/a"))
    assert (record.status, record.reason) == ("failed", checkpoint.failure)
    assert (record.metrics, record.selected_epoch, record.images) == ({}, None, 6)
    assert len(pd.read_parquet("results/a/ranks.parquet")) == 0


def test_test_scores_that_are_not_finite_are_a_failed_record():
    cell = cell_of("two_branch")
    train_cell(cell)
    write_dataset(bad="test")
    evaluate.evaluate_cell(params_of(cell), cell)
    record = read_record(Path("results/a"))
    assert record.status == "failed"
    assert "scores are NaN or infinite" in record.reason


@pytest.mark.parametrize("kind", ["scan", "two_branch"])
def test_evaluating_twice_gives_the_same_bytes(kind):
    cell = cell_of(kind)
    train_cell(cell)
    found = []
    for _ in range(2):
        evaluate.evaluate_cell(params_of(cell), cell)
        found.append([Path(cell.folder, name).read_bytes() for name in EVALUATED])
    assert found[0] == found[1]


def test_a_record_tells_what_was_played(monkeypatch):
    cell = cell_of("scan")
    train_cell(cell)
    scores = scored(cell, monkeypatch=monkeypatch)
    record = json.loads(Path("results/a/record.json").read_text())
    captions = pd.read_parquet(PREPARED / "captions.parquet").query("split == 'test'")
    assert scores.shape == (6, len(captions))
    assert (record["images"], record["captions"]) == scores.shape
    assert (record["status"], record["split"], record["seed"]) == ("ok", "official/test", 0)
    assert record["options"]["epochs"] == 3 and record["options"]["margin"] == 0.2
    assert record["scaled"] == ["epochs"]
    assert record["text_features"] == {"vocabulary": 4 + len(WORDS)}
    assert any("2 x 2 grid" in sentence for sentence in record["deviations"])
    ranks = pd.read_parquet("results/a/ranks.parquet")
    i2t, t2i = (ranks[ranks["direction"] == way] for way in ("i2t", "t2i"))
    assert i2t["query"].tolist() == [f"i{n}" for n in range(17, 23)]
    assert t2i["query"].tolist() == captions["caption_id"].tolist()
    assert record["metrics"]["t2i_r1"] == pytest.approx(100 * (t2i["rank"] < 1).mean())
    for row, (_, caption) in enumerate(captions.iterrows()):
        own = int(caption["image_id"][1:]) - 17
        ahead = sum(scores[i, row] >= scores[own, row] for i in range(6) if i != own)
        assert t2i["rank"].iloc[row] == ahead
    with np.load("results/a/retrieved.npz") as retrieved:
        assert retrieved["t2i"].shape == (len(captions), 6)
        assert (retrieved["i2t"][:, 0] == scores.argmax(1)).all()
    with np.load("results/a/similarities.npz") as similarities:
        s = np.minimum(similarities["matched"], similarities["unmatched"]).sum()
        assert s == pytest.approx(record["metrics"]["overlap_s"])


def test_a_fusion_scores_the_mean_of_its_members(monkeypatch):
    first, second = cell_of("scan"), cell_of("scan", folder="results/b", direction="i2t")
    second = second.model_copy(update={"preset": "other"})
    matrices = []
    for cell in (first, second):
        train_cell(cell)
        matrices.append(scored(cell, monkeypatch=monkeypatch))
    fusion = Fusion(
        dataset="tiny",
        preset="both",
        seed=0,
        left=first.folder,
        right=second.folder,
        folder="results/c",
    )
    scores = scored(fusion, first, second, monkeypatch=monkeypatch)
    np.testing.assert_allclose(scores, (matrices[0] + matrices[1]) / 2, rtol=1e-6)
    assert not np.allclose(matrices[0], matrices[1])
    records = [read_record(Path("results") / name) for name in "abc"]
    assert records[2].parameters == records[0].parameters + records[1].parameters
    assert set(records[2].options["average"]) == {"scan", "other"}
    assert (records[2].selected_epoch, records[2].preset) == (None, "both")


def test_a_fusion_with_a_failed_member_fails(monkeypatch):
    first = cell_of("two_branch")
    second = cell_of("two_branch", folder="results/b", learning_rate=1e30)
    for cell in (first, second):
        train_cell(cell)
    fusion = Fusion(
        dataset="tiny",
        preset="both",
        seed=0,
        left=first.folder,
        right=second.folder,
        folder="results/c",
    )
    evaluate.evaluate_cell(params_of(first, second), fusion)
    record = read_record(Path("results/c"))
    assert record.status == "failed" and "finite" in record.reason.replace("NaN", "finite")


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
    np.save(IMAGES / "pooled.npy", np.zeros((22, 5), np.float16))
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

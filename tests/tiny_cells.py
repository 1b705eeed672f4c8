"""Cells of a tiny dataset with random features, to be trained and evaluated in a
moment."""

import contextlib
import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from pretended_cuda import pretended_steps

from benchmark.core.files import read_json
from benchmark.core.records import Record, read_record
from benchmark.data import prepared_tables, results
from benchmark.data.feature_folders import Words, sha256_of_items, write_card
from benchmark.data.prepared_tables import read
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import CellResult, Scores
from benchmark.evaluate import __main__ as evaluate
from benchmark.features import drawn_cnn
from benchmark.scoring import checkpoints, evaluation
from benchmark.season.parameters import Cell, Fusion
from benchmark.train import __main__ as train
from benchmark.train import resumable_loop
from seasons import params_of

COUNTS = {"train": 12, "val": 5, "test": 6, "unused": 1}
WORDS = ("red", "green", "dog", "runs", "sleeps", "a", "the")
PREPARED, IMAGES = Path("data/prepared/tiny"), Path("data/features/tiny/grid")
VECTORS, KNOWN = Path("data/features/tiny/vectors"), Path("data/features/tiny/words")
CAPTIONS = PREPARED / "captions.parquet"
RESULTS = Path("data/cells/a")  # of a cell, unless a test says otherwise
SCAN = {
    **{
        "embedding_size": 6,
        "word_size": 4,
        "batch_size": 8,
        "min_count": 1,
        "regions": 4,
    },
    **{"epochs": 3, "decay_after": 2, "learning_rate": 0.01},
}
TWO_BRANCH = {
    **{"hidden_size": 8, "embedding_size": 6, "batch_size": 8, "epochs": 3},
    **{"neighbourhood_sampling": True, "lambda4": 0.05, "learning_rate": 0.01},
}
OWN_METHODS = Path(__file__).parent / "own_methods"
METHODS = {  # kind of cell -> its method and options
    "scan": ("scan", SCAN),
    "two_branch": ("two_branch_embedding", TWO_BRANCH),
    **{path.stem: (str(path), {}) for path in OWN_METHODS.glob("*.py")},
}
KINDS = ["scan", "two_branch", "pixels"]


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `folder` the working folder, with the dataset in it."""
    monkeypatch.chdir(folder)
    for path, content in _files_of_dataset().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


# The dataset --------------------------------------------------------------------------

NO_REGIONS = pd.DataFrame(
    columns=["phrase_id", "image_id", "caption_id", "phrase", "chain"]
)


@cache
def _files_of_dataset() -> dict[Path, bytes]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_dataset()
        return {
            path: path.read_bytes()
            for path in Path("data").rglob("*")
            if path.is_file()
        }


def write_dataset(
    words: dict[str, tuple[str, ...]] | None = None,
    bad: str | None = None,
    captions_of_image: int | None = None,
    empty: str | None = None,
) -> None:
    """`words` of the captions of a split; `bad`, a split whose features are NaN;
    `empty`, one without captions."""
    rng = np.random.default_rng(0)
    splits = [split for split, count in COUNTS.items() for _ in range(count)]
    ids = [f"i{n}" for n in range(len(splits))]
    groups = [f"g{n // 2}" for n in range(len(splits))]  # two pictures per group
    images = pd.DataFrame({"image_id": ids, "split": splits, "group": groups})
    rows = [
        (
            f"i{n}#{c}",
            f"i{n}",
            " ".join(rng.choice((words or {}).get(split, WORDS), 4)),
            split,
        )
        for n, split in enumerate(splits)
        for c in range(captions_of_image or 1 + n % 3)
        if split != empty
    ]
    captions = pd.DataFrame(rows, columns=["caption_id", "image_id", "text", "split"])
    PREPARED.mkdir(parents=True, exist_ok=True)
    for name, table in (
        ("images", images),
        ("captions", captions),
        ("regions", NO_REGIONS),
    ):
        table.to_parquet(PREPARED / f"{name}.parquet")
    card = {
        "split": "official",
        "manifest": "0" * 64,
        "ways": ["i2t", "t2i"],
        "folds": 1,
    }
    prepared_tables.write_card("tiny", card)
    _write_images(images[images["split"] != "unused"], bad, rng)
    _write_texts(captions, bad, rng)


def _write_images(
    used: pd.DataFrame, bad: str | None, rng: np.random.Generator
) -> None:
    arrays = {
        "pooled": rng.normal(size=(23, 8)),
        "regions": rng.normal(size=(23, 4, 5)),
    }
    for array in arrays.values():
        array[(used["split"] == bad).to_numpy()] = np.nan
    settings = {"network": "drawn_cnn", "grid": 2, "standardise": False}
    IMAGES.mkdir(parents=True, exist_ok=True)
    np.save(IMAGES / "positions.npy", np.zeros((23, 4), np.int16))
    np.save(
        IMAGES / "pixels.npy", rng.integers(0, 256, (23, 3, 16, 16), dtype=np.uint8)
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)  # its pooled size is that of the pooled features
        torch.save(drawn_cnn.Network(width=4).state_dict(), IMAGES / "network.pt")
    write_features(IMAGES, arrays, used["image_id"].tolist(), {"settings": settings})


def _write_texts(
    captions: pd.DataFrame, bad: str | None, rng: np.random.Generator
) -> None:
    vectors = rng.normal(size=(len(captions), 7))
    vectors[(captions["split"] == bad).to_numpy()] = np.nan
    facts = {
        "settings": {"encoder": "none", "standardise": False},
        "vectors": "made up",
    }
    write_features(
        VECTORS, {"sentence": vectors}, captions["caption_id"].tolist(), facts
    )
    known = ("a", "dog", "green", "never", "red", "runs", "zebra")
    Words(known, rng.normal(size=(7, 2)).astype(np.float32)).save(KNOWN)
    write_card(KNOWN, {"vectors": "made up", "prepared_sha256": read("tiny").sha256})


def write_features(folder: Path, arrays: dict, ids: list[str], facts: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array.astype(np.float16))
    card = {"dataset": "tiny", "encoder": folder.name, "items": len(ids)}
    card |= {
        "items_sha256": sha256_of_items(ids),
        "prepared_sha256": read("tiny").sha256,
    }
    write_card(folder, card | facts)


def seal_features(folder: Path = IMAGES) -> None:
    write_card(folder, read_json(folder / "card.json"))


# Cells --------------------------------------------------------------------------------


def cell_of(
    kind: str,
    folder: str = str(RESULTS),
    seed: int = 0,
    start: str | None = None,
    **options,
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
        backbone="drawn_cnn" if kind == "pixels" else None,
        texts=None if kind in ("scan", "pixels") else str(VECTORS),
        words=str(KNOWN) if kind == "pixels" else None,
        start=start,
        folder=folder,
    )


def fusion_of(
    *members: Cell, how: str = "average", parts: tuple[str, ...] = ()
) -> Fusion:
    folders = [member.folder for member in members]
    return Fusion(
        dataset="tiny",
        preset="fused",
        seed=0,
        how=how,
        members=folders,
        parts=list(parts) or [""] * len(folders),
        folder="data/cells/fused",
    )


def train_cell(cell: Cell) -> tuple[bytes, bytes]:
    """Checkpoint and history, as bytes."""
    train.train_cell(params_of(cells={cell.folder: cell}), cell)
    history = read_json(Path(cell.history))["history"]
    return Path(cell.checkpoint).read_bytes(), json.dumps(history).encode()


def ended_on(device: str, cell: Cell) -> tuple[pd.DataFrame, dict]:
    params = params_of(device=device, cells={cell.folder: cell})
    train.train_cell(params, cell)
    evaluate.evaluate_cell(params, cell)
    return history_of(cell.folder), read_record(Path(cell.folder)).metrics


def check_on_a_pretended_gpu(cell: Cell) -> None:
    expected_history, expected = ended_on("cpu", cell)
    with pretended_steps():
        history, metrics = ended_on("cuda", cell)
    pd.testing.assert_frame_equal(history, expected_history, rtol=1e-4)
    assert metrics["rsum"] == expected["rsum"]


def history_of(folder: str | Path = RESULTS) -> pd.DataFrame:
    path = Path("data/checkpoints", f"{Path(folder).name}.json")
    return pd.DataFrame(read_json(path)["history"])


def checkpoint_of(folder: str | Path = RESULTS) -> checkpoints.Checkpoint:
    return checkpoints.load(Path("data/checkpoints", f"{Path(folder).name}.pt"))


def state_of(folder: str | Path = RESULTS) -> dict[str, torch.Tensor]:
    return checkpoint_of(folder).state


def evaluated(cell: Cell | Fusion, *members: Cell) -> Record:
    cells = {member.folder: member for member in members or (cell,)}
    evaluate.evaluate_cell(params_of(cells=cells), cell)
    return read_record(Path(cell.folder))


def scores_on_test(
    cell: Cell | Fusion, *members: Cell, monkeypatch
) -> dict[str, np.ndarray]:
    """One row per query."""
    seen = []
    original = evaluation.of_retrieval

    def of_retrieval(tiles, *rest):
        seen.extend(tiles)
        return original(tiles, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "of_retrieval", of_retrieval)
        evaluated(cell, *members)
    (tile,) = seen
    by_place = {way: np.empty_like(tile.of(RankKey(way))) for way in ("i2t", "t2i")}
    for way, matrix in by_place.items():
        matrix[np.ix_(tile.rows, tile.columns)] = tile.of(RankKey(way))
    return {"i2t": by_place["i2t"], "t2i": by_place["t2i"].T}


def scores_of(folder: str | Path = RESULTS) -> Scores:
    return result_in(folder).scores


def result_in(folder: str | Path = RESULTS) -> CellResult:
    return results.read_cell(Path(folder), Path(folder).name)


# Kills --------------------------------------------------------------------------------


def kill_after_epoch(monkeypatch, epoch: int) -> None:
    original = resumable_loop.Run._end_epoch

    def end_epoch(self, *given):
        original(self, *given)
        if self.progress.epoch == epoch:
            raise KeyboardInterrupt

    monkeypatch.setattr(resumable_loop.Run, "_end_epoch", end_epoch)


def kill_in_epoch(monkeypatch, epoch: int) -> None:
    original = resumable_loop.Run._validate

    def validate(self, *given):
        if self.progress.epoch + 1 == epoch:
            raise KeyboardInterrupt
        return original(self, *given)

    monkeypatch.setattr(resumable_loop.Run, "_validate", validate)

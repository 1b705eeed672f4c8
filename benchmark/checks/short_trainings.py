"""Short trainings on a few drawn scenes: how good a method is in seconds, not in hours.

`python -m benchmark.checks.short_trainings` trains ten seeds of each and writes
short_trainings.csv, which `pytest benchmark/` compares fresh trainings with.
"""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmark.core.devices import make_deterministic
from benchmark.data.vocabularies import Vocabulary
from benchmark.matching import scoring
from benchmark.matching.retrieval_inputs import SplitInputs
from benchmark.season.method_options import method_of
from benchmark.train import selection
from benchmark.train.resumable_loop import Run
from datasets import shapes
from methods import Captions, Sizes

SCORES = Path(__file__).with_suffix(".csv")
SEEDS = range(10)
SCENES = shapes.Options(train=400, val=1, test=150)
GRID = 6  # cells of a picture, by side; the features of a cell are its mean colour and contrast


@dataclass(frozen=True)
class Training:
    method: str
    options: dict


TRAININGS = {
    "scan_t2i": Training(
        "scan", {"embedding_size": 64, "word_size": 32, "batch_size": 64} | {"learning_rate": 2e-3}
    ),
    "scan_i2t": Training(
        "scan",
        {"direction": "i2t", "pooling": "lse", "lambda1": 4.0, "lambda2": 5.0}
        | {"embedding_size": 64, "word_size": 32, "batch_size": 64, "learning_rate": 2e-3},
    ),
    "two_branch": Training(
        "two_branch_embedding",
        {"text": "lstm", "word_size": 32, "lstm_size": 64, "lstm_hidden_size": 128}
        | {"hidden_size": 256, "embedding_size": 64, "batch_size": 100, "learning_rate": 1e-3},
    ),
    "dual_path": Training(
        "dual_path",
        {"word_init": "random", "word_size": 32, "blocks": "1,1,1,1", "text_width": 0.0625}
        | {"hidden_size": 128, "image_hidden_size": 128, "embedding_size": 128, "dropout": 0.25}
        | {"learning_rate": 0.05},
    ),
}
EPOCHS = {"scan_t2i": 4, "scan_i2t": 4, "two_branch": 12, "dual_path": 30}


def rsum(name: str, seed: int, harm=lambda model: None) -> float:
    """rsum of the test scenes after a training of one seed; `harm` may plant a defect in the
    model."""
    make_deterministic()
    training, data = TRAININGS[name], scenes()
    method = method_of(training.method)
    epochs = {"epochs": EPOCHS[name], "decay_after": EPOCHS[name]}
    known = {"epochs"} if name == "two_branch" else set(epochs)
    config = method.Config(**training.options, **{key: epochs[key] for key in known})
    takes, (train, test, vocabulary) = method.inputs(config), data
    if takes.image == "pooled":
        train, test = pooled(train), pooled(test)
    sizes = Sizes(image=train.images.shape[-1], text=len(vocabulary), classes=len(train.images))
    torch.manual_seed(seed)
    model = method.Model(config, sizes)
    harm(model)
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(
            model=model,
            phases=method.recipe(config),
            train=train,
            validate=lambda model: {"rsum": 0.0},
            seed=seed,
            autocast=False,
            scratch=Path(scratch),
            name=f"{name} {seed}",
        )
        run.play()
    model.eval()
    scores = scoring.score(model, test, quiet=True).matrix
    return selection.retrieval_recalls(scores, test.relevant, ("i2t", "t2i"))["rsum"]


@cache
def scenes() -> tuple[SplitInputs, SplitInputs, Vocabulary]:
    """Training and test scenes as grids of cells with their captions, and the training words."""
    tables, picture = shapes.read(Path(), SCENES), shapes.pictures(Path(), SCENES)
    texts = tables.captions.merge(tables.images[["image_id", "split"]], on="image_id")
    vocabulary = Vocabulary.of(texts["text"][texts["split"] == "train"], 1)
    splits = []
    for split in ("train", "test"):
        ids = tables.images["image_id"][tables.images["split"] == split].tolist()
        cells = np.stack([_cells(np.asarray(picture(name).convert("RGB"))) for name in ids])
        rows = texts[texts["split"] == split]
        values, lengths = (torch.from_numpy(x) for x in vocabulary.encode(rows["text"].tolist()))
        owners = torch.from_numpy(pd.Index(ids).get_indexer(rows["image_id"]))
        splits.append((torch.from_numpy(cells), Captions(values=values, lengths=lengths), owners))
    mean, deviation = splits[0][0].mean((0, 1)), splits[0][0].std((0, 1))
    train, test = (
        SplitInputs(
            images=(cells - mean) / deviation,
            captions=captions,
            image_of_caption=owners,
            group_of_image=torch.arange(len(cells)),
            class_of_image=torch.arange(len(cells)),
            device=torch.device("cpu"),
        )
        for cells, captions, owners in splits
    )
    return train, test, vocabulary


def pooled(split: SplitInputs) -> SplitInputs:
    return SplitInputs(**vars(split) | {"images": split.images.flatten(1)})


def _cells(pixels: np.ndarray) -> np.ndarray:
    """(GRID ** 2, 6) float32: mean and deviation of each colour in each cell."""
    side = len(pixels) // GRID
    kept = pixels[: GRID * side, : GRID * side].astype(np.float32)
    blocks = kept.reshape(GRID, side, GRID, side, 3).transpose(0, 2, 1, 3, 4)
    blocks = blocks.reshape(GRID**2, side**2, 3)
    return np.concatenate([blocks.mean(1), blocks.std(1)], axis=1)


def main() -> None:
    rows = [(name, seed, rsum(name, seed)) for name in TRAININGS for seed in SEEDS]
    table = pd.DataFrame(rows, columns=["training", "seed", "rsum"])
    table.to_csv(SCORES, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()

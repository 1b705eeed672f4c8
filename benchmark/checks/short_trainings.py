"""Short trainings on a few drawn scenes: how good a method is in seconds, not in hours.

    python -m benchmark.checks.short_trainings [NAME ...]

trains ten seeds of each, or of those that are named, and writes short_trainings.json, which
`pytest benchmark/` compares fresh trainings with. Scenes, features and vectors are the same in all
of them: seeds differ in the weights they start from, in batches and in dropout.

Negatives are all of a batch, since the hardest alone teach little at first, and each seed another
thing. The instance loss learns nothing in so few steps (rsum 27 after 320, as by chance): dual_path
is judged by its records alone, in tests/test_played_cells.py, and so are the methods of phrases and
CCA.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.stats import t
from torch import Tensor, nn

from benchmark.core.devices import make_deterministic
from benchmark.core.files import read_json, write_json
from benchmark.data.vocabularies import Vocabulary
from benchmark.matching import scoring
from benchmark.matching.retrieval_inputs import SplitInputs
from benchmark.season.method_options import method_of
from benchmark.train import selection
from benchmark.train.resumable_loop import Run
from datasets import shapes
from methods import Captions, Sizes

SCORES = Path(__file__).with_suffix(".json")
SEEDS = range(10)
FOLDS, GALLERY = 4, 120  # test scenes of a fold: many queries, few scenes to choose from
SCENES = shapes.Options(train=240, val=1, test=FOLDS * GALLERY)
GRID = 4  # cells of a picture, by side; the features of a cell are its mean colour and contrast
SURE = 0.99  # probability that a sound method passes


@dataclass(frozen=True)
class Training:
    method: str
    options: dict


SMALL_SCAN = {"embedding_size": 48, "word_size": 32, "batch_size": 40, "learning_rate": 4e-3}
SMALL_SCAN |= {"lambda1": 4.0}  # with 9, seeds differ by up to a quarter after so few steps
SMALL_SCAN |= {"regions": 16, "epochs": 5, "decay_after": 4, "hard_negatives": False}
BRANCHES = {"hidden_size": 256, "embedding_size": 64, "batch_size": 100, "learning_rate": 1e-3}
CYCLE = {"hidden_size": 256, "embedding_size": 64, "batch_size": 100, "top_k": 10, "epochs": 15}
CYCLE |= {"decay_every": 9, "dropout": 0.2}
VSE = {"embedding_size": 48, "word_size": 32, "batch_size": 40, "learning_rate": 4e-3}
VSE |= {"epochs": 8, "decay_after": 6, "hard_negatives": False}
TRAININGS = {
    "scan_t2i": Training("scan", SMALL_SCAN),
    "scan_i2t": Training("scan", SMALL_SCAN | {"direction": "i2t"}),
    "vse": Training("vse", VSE),
    "two_branch": Training("two_branch_embedding", BRANCHES | {"epochs": 15}),
    "cyclematch": Training("cyclematch", CYCLE),
}


def rsum(name: str, seed: int, harm: Callable[[nn.Module], None] = lambda model: None) -> float:
    """Mean rsum of the folds of test scenes after a training of one seed; `harm` may plant a defect
    in the model before."""
    make_deterministic()
    method = method_of(TRAININGS[name].method)
    config = method.Config(**TRAININGS[name].options)
    takes = method.inputs(config)
    train, test, words = scenes(takes.image, takes.text)
    sizes = Sizes(image=train.images.shape[-1], text=words, classes=len(train.images))
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
    return float(np.mean([rsum_of(model, fold(test, number)) for number in range(FOLDS)]))


def rsum_of(model: nn.Module, split: SplitInputs) -> float:
    scores = scoring.score(model, split)
    return selection.retrieval_recalls(scores, split.relevant, ("i2t", "t2i"))["rsum"]


def fold(split: SplitInputs, number: int) -> SplitInputs:
    """The scenes of one fold, with their captions."""
    start = number * GALLERY
    rows = (split.image_of_caption // GALLERY == number).nonzero()[:, 0]
    values, lengths = split.captions.values[rows], split.captions.lengths[rows]
    return replace(
        split,
        images=split.images[start : start + GALLERY],
        captions=Captions(values=values, lengths=lengths),
        image_of_caption=split.image_of_caption[rows] - start,
        group_of_image=torch.arange(GALLERY),
    )


@cache
def scenes(image: str, text: str) -> tuple[SplitInputs, SplitInputs, int]:
    """Training and test scenes as a method takes them, and how many words or numbers describe
    texts. Cells are standardised by the training scenes, and words counted there."""
    (cells, texts, owners), (test_cells, test_texts, test_owners) = drawn("train"), drawn("test")
    mean, deviation = cells.mean((0, 1)), cells.std((0, 1))
    vocabulary = Vocabulary.of(texts, 1)
    splits = []
    for of_split, lines, owner in ((cells, texts, owners), (test_cells, test_texts, test_owners)):
        images = (of_split - mean) / deviation
        values, lengths = (torch.from_numpy(array) for array in vocabulary.encode(lines))
        if text == "sentence":
            values, lengths = bags(values, len(vocabulary)), torch.ones_like(lengths)
        splits.append(
            SplitInputs(
                images=images if image == "regions" else images.flatten(1),
                captions=Captions(values=values, lengths=lengths),
                image_of_caption=owner,
                group_of_image=torch.arange(len(images)),
                class_of_image=torch.arange(len(images)),
                device=torch.device("cpu"),
            )
        )
    return *splits, len(vocabulary)


def drawn(split: str) -> tuple[Tensor, list[str], Tensor]:
    """Cells (I, GRID ** 2, 6) of the scenes, their captions, and the scene of each caption."""
    tables, picture = shapes.read(Path(), SCENES), shapes.pictures(Path(), SCENES)
    ids = tables.images["image_id"][tables.images["split"] == split].tolist()
    rows = tables.captions[tables.captions["image_id"].isin(ids)]
    cells = np.stack([cells_of(np.asarray(picture(name).convert("RGB"))) for name in ids])
    owners = torch.from_numpy(pd.Index(ids).get_indexer(rows["image_id"]))
    return torch.from_numpy(cells), rows["text"].tolist(), owners


def cells_of(pixels: np.ndarray) -> np.ndarray:
    """(GRID ** 2, 6) float32: mean and deviation of each colour in each cell."""
    side = len(pixels) // GRID
    kept = pixels[: GRID * side, : GRID * side].astype(np.float32)
    blocks = kept.reshape(GRID, side, GRID, side, 3).transpose(0, 2, 1, 3, 4)
    blocks = blocks.reshape(GRID**2, side**2, 3)
    return np.concatenate([blocks.mean(1), blocks.std(1)], axis=1)


def bags(ids: Tensor, words: int) -> Tensor:
    """(C, words) unit vectors: which words a caption has."""
    has = torch.zeros(len(ids), words).scatter_(1, ids, 1.0)
    has[:, :3] = 0.0  # padding and the frame
    return has / has.norm(dim=1, keepdim=True)


# Defects --------------------------------------------------------------------------------------


def with_wrong_margin(model: nn.Module) -> None:
    """A margin of the wrong sign: wrong pairs may score above right ones."""
    model.config = replace(model.config, margin=-model.config.margin)


def with_shuffled_pairs(model: nn.Module) -> None:
    """A tenth of each batch gets the image of its neighbour."""
    loss = model.loss

    def of_shuffled(batch):
        images, count = batch.images.clone(), max(2, len(batch.images) // 10)
        images[:count] = images[:count].roll(1, 0)
        return loss(replace(batch, images=images))

    model.loss = of_shuffled


# What ten seeds gave --------------------------------------------------------------------------


def lowest(rsums: list[float], fresh: int) -> float:
    """The mean of `fresh` more trainings lies below it by chance with probability 1 - SURE:
    one-sided bound of the mean of new values of the same normal distribution (Student's t)."""
    spread = np.std(rsums, ddof=1) * (1 / len(rsums) + 1 / fresh) ** 0.5
    return float(np.mean(rsums) - t.ppf(SURE, len(rsums) - 1) * spread)


def main(names: list[str]) -> None:
    for name in names or TRAININGS:
        rsums = [round(rsum(name, seed), 2) for seed in SEEDS]
        known = read_json(SCORES) if SCORES.is_file() else {}
        known[name] = {
            "rsums": rsums,
            "mean": round(float(np.mean(rsums)), 2),
            "deviation": round(float(np.std(rsums, ddof=1)), 2),
        }
        write_json(SCORES, known)
        print(name, known[name], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

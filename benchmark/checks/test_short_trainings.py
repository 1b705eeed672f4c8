"""Short trainings on drawn scenes are as good as those of ten seeds were: `pytest
benchmark/`.

A method that got a tenth worse is caught, an unlucky seed is not. What ten seeds gave
stands in short_trainings.json, and is written anew by

    python -m benchmark.checks.test_short_trainings

Scenes, features and vectors are the same in all trainings: seeds differ in the weights
they start from, in batches and in dropout. Negatives are all of a batch, since the
hardest alone teach little at first. The instance loss learns nothing in so few steps:
dual_path is judged by its records alone, and so are the methods of phrases and CCA.
"""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import t
from torch import Tensor

from benchmark.contracts import methods
from benchmark.contracts.datasets import shapes
from benchmark.contracts.methods import Captions, Sizes
from benchmark.core.devices import make_deterministic
from benchmark.core.files import read_json, write_json
from benchmark.data.vocabularies import Vocabulary
from benchmark.scoring import model_scores, validation
from benchmark.scoring.inputs import SplitInputs
from benchmark.train.resumable_loop import Run

KNOWN = Path(__file__).with_name("short_trainings.json")
# test scenes of a fold: many queries, few scenes to choose from
FOLDS, GALLERY = 4, 120
SCENES = shapes.Options(train=240, val=1, test=FOLDS * GALLERY)
GRID = 4  # cells of a picture, by side
SURE = 0.99  # probability that a sound method passes
SCAN = {"embedding_size": 48, "word_size": 32, "batch_size": 40, "learning_rate": 4e-3}
SCAN |= {"lambda1": 4.0}  # with 9, seeds differ by up to a quarter after so few steps
SCAN |= {"regions": 16, "epochs": 5, "decay_after": 4, "hard_negatives": False}
VSE = {"embedding_size": 48, "word_size": 32, "batch_size": 40, "learning_rate": 4e-3}
VSE |= {"epochs": 8, "decay_after": 6, "hard_negatives": False}
BRANCHES = {"hidden_size": 256, "embedding_size": 64, "batch_size": 100, "epochs": 15}
# name -> method, its options, and as many fresh trainings as catch a tenth less
TRAININGS = {
    "scan_t2i": ("scan", SCAN, 4),
    "scan_i2t": ("scan", SCAN | {"direction": "i2t"}, 4),
    "vse": ("vse", VSE, 4),
    "two_branch": ("two_branch_embedding", BRANCHES | {"learning_rate": 1e-3}, 6),
    "cyclematch": (
        "cyclematch",
        BRANCHES | {"top_k": 10, "decay_every": 9, "dropout": 0.2},
        4,
    ),
}


def rsum(name: str, seed: int) -> float:
    """Mean rsum of the folds of test scenes after a training of one seed."""
    make_deterministic()
    method, options, _ = TRAININGS[name]
    module = methods.load(method)
    config = module.Config(**options)
    train, test, words = scenes(module.inputs(config).image, module.inputs(config).text)
    torch.manual_seed(seed)
    sizes = Sizes(image=train.images.shape[-1], text=words, classes=len(train.images))
    model = module.Model(config, sizes)
    with tempfile.TemporaryDirectory() as scratch:
        Run(
            model=model,
            phases=module.recipe(config),
            train=train,
            validate=lambda model: {"rsum": 0.0},
            seed=seed,
            autocast=False,
            scratch=Path(scratch),
            name=f"{name} {seed}",
        ).play()
    model.eval()
    scores = model_scores.score(model, test)
    rsums = []
    for fold in range(FOLDS):
        scenes_of_fold = torch.arange(fold * GALLERY, (fold + 1) * GALLERY)
        captions = (test.image_of_caption // GALLERY == fold).nonzero()[:, 0]
        pairs = scenes_of_fold[:, None] == test.image_of_caption[captions]
        of_fold = scores[scenes_of_fold][:, captions]
        recalls = validation.retrieval_recalls(of_fold, pairs, ("i2t", "t2i"))
        rsums.append(recalls["rsum"])
    return float(np.mean(rsums))


@cache
def scenes(image: str, text: str) -> tuple[SplitInputs, SplitInputs, int]:
    """Training and test scenes as a method takes them, and how many words or numbers
    describe texts. Cells are standardised by the training scenes, and words counted
    there."""
    drawn_of = {split: drawn(split) for split in ("train", "test")}
    cells, texts, _ = drawn_of["train"]
    mean, deviation = cells.mean((0, 1)), cells.std((0, 1))
    vocabulary, splits = Vocabulary.of(texts, 1), []
    for of_split, lines, owners in drawn_of.values():
        images = (of_split - mean) / deviation
        values, lengths = map(torch.from_numpy, vocabulary.encode(lines))
        if text == "sentence":  # unit vectors: which words a caption has
            has = torch.zeros(len(values), len(vocabulary)).scatter_(1, values, 1.0)
            has[:, :3] = 0.0  # padding and the frame
            values, lengths = (
                has / has.norm(dim=1, keepdim=True),
                torch.ones_like(lengths),
            )
        splits.append(
            SplitInputs(
                images=images if image == "regions" else images.flatten(1),
                captions=Captions(values=values, lengths=lengths),
                image_of_caption=owners,
                group_of_image=torch.arange(len(images)),
                class_of_image=torch.arange(len(images)),
                device=torch.device("cpu"),
            )
        )
    return *splits, len(vocabulary)


def drawn(split: str) -> tuple[Tensor, list[str], Tensor]:
    """Cells (I, GRID ** 2, 6) of the scenes: mean and deviation of each colour; their
    captions, and the scene of each caption."""
    tables, picture = shapes.read(Path(), SCENES), shapes.pictures(Path(), SCENES)
    ids = tables.images["image_id"][tables.images["split"] == split].tolist()
    rows = tables.captions[tables.captions["image_id"].isin(ids)]
    pixels = np.stack([np.asarray(picture(name).convert("RGB")) for name in ids])
    side = pixels.shape[1] // GRID
    blocks = pixels[:, : GRID * side, : GRID * side].astype(np.float32)
    blocks = blocks.reshape(-1, GRID, side, GRID, side, 3).transpose(0, 1, 3, 2, 4, 5)
    blocks = blocks.reshape(len(ids), GRID**2, side**2, 3)
    cells = np.concatenate([blocks.mean(2), blocks.std(2)], axis=2)
    owners = torch.from_numpy(pd.Index(ids).get_indexer(rows["image_id"]))
    return torch.from_numpy(cells), rows["text"].tolist(), owners


def lowest(rsums: list[float], fresh: int) -> float:
    """The mean of `fresh` more trainings lies below it by chance with probability 1 -
    SURE: one-sided bound of the mean of new values of the same normal distribution
    (Student's t)."""
    spread = np.std(rsums, ddof=1) * (1 / len(rsums) + 1 / fresh) ** 0.5
    return float(np.mean(rsums) - t.ppf(SURE, len(rsums) - 1) * spread)


@pytest.mark.parametrize("name", TRAININGS)
def test_fresh_trainings_are_as_good_as_ten_seeds_were(name):
    known, fresh = read_json(KNOWN)[name], TRAININGS[name][2]
    bound = lowest(known, fresh)
    assert 0.9 * np.mean(known) < bound, "a tenth less is caught"
    assert (min(known) + (fresh - 1) * np.mean(known)) / fresh >= bound, (
        "one unlucky seed is not"
    )
    assert np.mean([rsum(name, 100 + seed) for seed in range(fresh)]) >= bound


if __name__ == "__main__":
    known = {}
    for training in TRAININGS:
        known[training] = [round(rsum(training, seed), 2) for seed in range(10)]
    write_json(KNOWN, known)

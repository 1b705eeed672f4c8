"""Hours and disk of a season: timed steps, multiplied out, against sums done by hand."""

import dataclasses
import sys
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import datasets
from benchmark.commands import data_shapes, step_times
from benchmark.commands.data_shapes import (
    VOCABULARY,
    WORDS,
    DatasetSize,
    SeasonShapes,
    UnknownShapeError,
    dataset_size,
)
from benchmark.commands.disk_needs import GIB, disk_needs
from benchmark.commands.step_times import Rehearsal, preset_times
from benchmark.data import prepared_tables
from benchmark.data.raw_files import raw_dataset
from benchmark.data.vocabularies import SPECIAL
from benchmark.matching import scoring
from benchmark.season.parameters import FeatureSet, Params
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season, read_season
from methods import Phase

METHOD = """
from dataclasses import dataclass

from torch import nn

from methods import Inputs, Phase

losses = []  # rows of every batch that a loss was asked for


@dataclass(frozen=True, kw_only=True)
class Config:
    epochs: int = 3
    fails: bool = False


def inputs(config):
    return Inputs(image="pooled", text="sentence")


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.config = config
        self.image = nn.Linear(sizes.image, 8, bias=False)
        self.text = nn.Linear(sizes.text, 8, bias=False)

    def encode_images(self, images):
        return (self.image(images),)

    def encode_captions(self, captions):
        return (self.text(captions.values),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T

    def loss(self, batch):
        if self.config.fails:
            raise RuntimeError("no loss today\\nsecond line")
        losses.append(len(batch.images))
        return {"one": (self.image(batch.images) @ self.text(batch.captions.values).T).mean()}


def recipe(config):
    epochs = config.epochs
    return [
        Phase(epochs=epochs, learning_rates=(0.1,) * epochs, batch_size=32),
        Phase(epochs=1, learning_rates=(0.1,), batch_size=50, draws="images", captions_per_image=2),
    ]
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(METHOD)


def season(presets: list[str], **settings: object) -> Params:
    image = {"network": "resnet50", "input_size": 224, "grid": 6, "flip": True}
    wanted = {
        "title": "Try",
        "datasets": {"flickr8k": {"image": image, "sentence": {"hglmm": {"size": 10}}} | settings},
        "presets": presets,
        "seeds": [0, 1],
        "device": "cpu",
    }
    return resolve("try", Season.model_validate(wanted))


def own_method(**options: object) -> Params:
    """A season of two seeds of METHOD."""
    params = season(["two_branch_bidirectional"])
    cells = {
        key: cell.model_copy(update={"method": "mine.py", "options": options})
        for key, cell in params.cells.items()
    }
    return params.model_copy(update={"cells": cells})


def prepared(name: str, images: int, captions: list[str]) -> None:
    """A training split of so many images, two of each group, and captions of the first ones."""
    folder = Path("data/prepared") / name
    folder.mkdir(parents=True)
    ids = [f"{i:03}" for i in range(images)]
    groups = [str(i // 2) for i in range(images)]
    image_table = pd.DataFrame({"image_id": ids, "split": "train", "group": groups})
    owners = [ids[i % images] for i in range(len(captions))]
    caption_table = pd.DataFrame({"image_id": owners, "text": captions, "split": "train"})
    tables = datasets.Tables(images=image_table, captions=caption_table)
    for name in prepared_tables.TABLES:
        getattr(tables, name).to_parquet(folder / f"{name}.parquet")
    (folder / "card.json").write_text("{}")


def times(params: Params) -> list[dict]:
    return preset_times(params, SeasonShapes(params))


@pytest.fixture
def clock(monkeypatch):
    """Time that a test sets: the ends of the steps; validation takes none."""

    def ticking(*seconds: float) -> None:
        ends = cycle(np.cumsum([0.0, *seconds]))
        monkeypatch.setattr(step_times, "now", lambda device: next(ends))
        monkeypatch.setattr(step_times, "_validation_seconds", lambda *given: 0.0)

    return ticking


def test_hours_are_steps_times_the_timed_ones(clock):
    prepared("flickr8k", images=100, captions=["a cat"] * 301)
    clock(9.0, 1.0, 3.0)  # the first step only warms up
    (row,) = times(own_method(epochs=4))
    steps = 4 * 301 / 32 + 100 / 50
    assert row["hours"] == pytest.approx([2 * steps * 1 / 3600, 2 * steps * 3 / 3600])
    assert (row["trainings"], row["steps"]) == (2, round(steps))


def test_seeds_share_one_timing_of_every_phase():
    prepared("flickr8k", images=100, captions=["a cat"] * 301)
    assert [row["trainings"] for row in times(own_method())] == [2]
    assert sys.modules["methods.of_file.mine"].losses == 3 * [32] + 3 * [2 * 50]


def test_trainings_that_are_done_are_left_out():
    params = own_method()
    done = [*params.cells.values()][0]
    Path(done.folder, "training").mkdir(parents=True)
    Path(done.folder, "training/cost.json").touch()
    assert [row["trainings"] for row in times(params)] == [1]


def test_validation_is_scaled_to_the_split_that_will_be_scored(monkeypatch):
    """Of 2 images and 4 captions: one second each for images, captions and pairs."""
    params = own_method()
    rehearsal = Rehearsal(SeasonShapes(params), [*params.cells.values()][0])
    phase = Phase(epochs=1, learning_rates=(0.1,), batch_size=2, captions_per_image=2)
    data = rehearsal.data(phase, torch.device("cpu"))
    whole = rehearsal.validation()
    assert whole == {"images": 1000, "captions": 5000, "phrases": 15000}
    rehearsal.cell = rehearsal.cell.model_copy(update={"validation_images": 100})
    fewer = rehearsal.validation()
    assert fewer == {"images": 100, "captions": 500, "phrases": 1500}
    cost = {"per_image": 1 / 2, "per_caption": 1 / 4}
    clock = iter((0.0, 1.0))
    model = rehearsal.model()
    split = scoring.Encoded(model, (), (), np.arange(2), np.arange(4), seconds=cost)
    monkeypatch.setattr(scoring, "encoded", lambda model, inputs: split)
    monkeypatch.setattr(scoring, "score_pairs", lambda *given: None)
    monkeypatch.setattr(step_times, "now", lambda device: next(clock))
    seconds = step_times._validation_seconds(model, data, fewer)
    assert seconds == pytest.approx(100 / 2 + 500 / 4 + 100 * 500 / 8)


def test_what_cannot_be_timed_is_named_with_its_reason():
    closed = "no training steps: solved in closed form"
    unprepared = "flickr8k: its size is not known before it is prepared"
    for params, reason in [
        (season(["cca"]), closed),
        (season(["two_branch_bidirectional"], reader="folder"), unprepared),
        (own_method(fails=True), "RuntimeError: no loss today"),
    ]:
        assert [row["reason"] for row in times(params)] == [reason]


SMALL = {
    "dual_path": {"batch_size": 4},
    "two_branch_*": {"batch_size": 4},
    "cyclematch": {"batch_size": 4},
    "vse": {"batch_size": 4},
    "scan": {"batch_size": 4},
}


@pytest.mark.slow
def test_every_preset_of_the_demo_can_be_timed(monkeypatch):
    split = {"images": 100, "captions": 500, "phrases": 700}
    size = DatasetSize({"train": split, "val": split}, groups=100)
    monkeypatch.setattr(data_shapes, "dataset_size", lambda dataset: size)
    demo = read_season("demo")
    options = {key: demo.options.get(key, {}) | changes for key, changes in SMALL.items()}
    params = resolve("try", demo.model_copy(update={"options": demo.options | options}))
    rows = times(params)
    assert [row["preset"] for row in rows if "reason" in row] == ["cca_phrases"]
    assert all(0 < low <= high for low, high in (row["hours"] for row in rows if "hours" in row))


def test_counts_come_from_the_prepared_dataset_else_the_card_else_the_code():
    dataset = raw_dataset(season([]), "flickr8k")
    assert dataset_size(dataset).counts["train"] == {
        "images": dataset.card.expected_images["train"],
        "captions": 30000,
        "phrases": 90000,
    }
    prepared("flickr8k", images=8, captions=["a cat", "the black cat"])
    size = dataset_size(dataset)
    assert size.counts["train"] == {"images": 8, "captions": 2, "phrases": 0}
    assert (size.groups, size.lengths, size.words) == (4, (2, 3), 4 + len(SPECIAL))
    drawn = dataclasses.replace(dataset, name="drawn", module=datasets.load("people"))
    assert dataset_size(drawn).counts["test"]["images"] == 255
    own = dataclasses.replace(dataset, name="own", module=datasets.load("folder"))
    with pytest.raises(UnknownShapeError, match="own: its size is not known before it is prepared"):
        dataset_size(own)


@pytest.mark.parametrize(("captions", "framed"), [([], WORDS + 2), (["a black cat"] * 9, 5)])
def test_made_up_captions_are_as_long_as_the_real_ones(captions, framed):
    params = season(["scan_t2i_avg"])
    if captions:
        prepared("flickr8k", images=3, captions=captions)
    rehearsal = Rehearsal(SeasonShapes(params), [*params.cells.values()][0])
    data = rehearsal.data(rehearsal.phases[0], torch.device("cpu"))
    assert set(data.captions.lengths.tolist()) == {framed}
    assert rehearsal.sizes.text == (3 + len(SPECIAL) if captions else VOCABULARY)


def feature_sets(**image: object) -> tuple[SeasonShapes, FeatureSet]:
    settings = {"network": "resnet50", "input_size": 224, "grid": 6} | image
    params = season(["scan_t2i_avg"], image=settings, features={"bottom_up": "precomp"})
    return SeasonShapes(params), [*params.feature_sets.values()][0]


def test_shapes_of_features_are_those_that_a_network_gives():
    resnet = {"pooled": (2048,), "regions": (36, 2048)}
    vgg = {"pooled": (4096,), "regions": (16, 512), "pixels": (3, 64, 64)}
    drawn = {"pooled": (384,), "regions": (36, 192)}
    for settings, expected in [
        ({}, resnet),
        ({"network": "bottom_up"}, resnet),
        ({"network": "vgg16", "grid": 4, "pixels": 64}, vgg),
        ({"network": "drawn_cnn", "input_size": 96}, drawn),
    ]:
        shapes, features = feature_sets(**settings)
        assert shapes.arrays(features) == expected


def test_shapes_of_features_are_read_where_they_exist():
    shapes, features = feature_sets(network="bottom_up")
    Path(features.folder).mkdir(parents=True)
    Path(features.folder, "card.json").write_text("{}")
    np.save(Path(features.folder, "regions.npy"), np.zeros((2, 10, 7), np.float16))
    assert shapes.arrays(features) == {"regions": (10, 7)}


def test_shapes_of_features_of_an_unknown_network_are_not_known():
    params = season(["scan_t2i_avg"], features={"resnet50": "mine.npy"})
    shapes, features = SeasonShapes(params), [*params.feature_sets.values()][0]
    with pytest.raises(UnknownShapeError, match="mine.npy: its sizes are not known before the imp"):
        shapes.arrays(features)


def test_disk_is_what_is_still_to_be_written():
    prepared("flickr8k", images=100, captions=["a black cat"] * 300)
    params = season(["two_branch_bidirectional"])
    disk = disk_needs(params, SeasonShapes(params), ["flickr8k"])["gib"]
    images = 100 * (2048 + 36 * 2048) * 2
    sentences, words = 300 * 10 * 2, (3 + len(SPECIAL)) * 300 * 4
    assert disk["features"] == pytest.approx((images + sentences + words) / GIB, rel=1e-2)
    parameters = (2048 + 10) * 2048 + 2 * 2048 + 2 * 2048 * 512 + 6 * 512
    assert disk["checkpoints"] == pytest.approx(2 * 2 * parameters * 4 / GIB, rel=1e-2)
    raw = raw_dataset(params, "flickr8k").card.raw_gib
    assert disk["raw_files"] == pytest.approx(raw, rel=0.01)
    total = disk["raw_files"] + disk["features"] + disk["checkpoints"]
    assert disk["needed"] == pytest.approx(total, rel=1e-2)
    for features in params.feature_sets.values():
        Path(features.folder).mkdir(parents=True)
        Path(features.folder, "card.json").write_text("{}")
    for cell in params.cells.values():
        Path(cell.folder).mkdir(parents=True)
        Path(cell.checkpoint).parent.mkdir(parents=True, exist_ok=True)
        Path(cell.checkpoint).touch()
    done = disk_needs(params, SeasonShapes(params), [])["gib"]
    assert (done["needed"], done["raw_files"]) == (0, 0)


def test_disk_that_is_not_known_is_named_with_its_reason():
    params = season(["two_branch_bidirectional"], reader="folder")
    disk = disk_needs(params, SeasonShapes(params), [])
    reasons = {"flickr8k: its size is not known before it is prepared"}
    assert set(disk["unknown"]) == {*params.cells, *params.feature_sets}
    assert set(disk["unknown"].values()) == reasons and disk["gib"]["needed"] == 0

"""Estimates of hours and disk, against sums done by hand and against steps that were really run."""

import dataclasses
import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import datasets
from benchmark.commands import estimates, operations
from benchmark.commands.estimates import GIB, OVERHEAD, RATE, counts_of, estimate
from benchmark.commands.operations import Fed, UnknownError, counted, seen
from benchmark.data.raw_files import raw_dataset
from benchmark.season.method_options import method_of
from benchmark.season.parameters import Params
from benchmark.season.season_files import Season
from benchmark.season.resolving import resolve
from methods import Batch, Captions, Phase, Sizes

METHOD = """
from dataclasses import dataclass

import torch
from torch import nn

from methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    width: int = 8
    looks: bool = False
    epochs: int = 3
    frozen: bool = False


def inputs(config):
    return Inputs(image="pooled", text="sentence")


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.config = config
        self.image = nn.Linear(sizes.image, config.width, bias=False)
        self.text = nn.Linear(sizes.text, config.width, bias=False)

    def loss(self, batch):
        scores = self.image(batch.images) @ self.text(batch.captions.values).T
        if self.config.looks and scores.max().item() < -1e9:
            raise AssertionError
        return {"one": scores.sum(), "two": scores.mean()}


def recipe(config):
    rates = (("image", 0.0),) if config.frozen else ()
    epochs = config.epochs
    return [
        Phase(epochs=epochs, learning_rates=(0.1,) * epochs, batch_size=32, rates=rates),
        Phase(epochs=1, learning_rates=(0.1,), batch_size=50, draws="images", captions_per_image=2),
    ]
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(METHOD)
    counted.cache_clear()
    operations.COUNTS.clear()


def by_hand(rows: int, image: int, text: int, width: int, frozen: bool = False) -> int:
    """Two projections and a product of all pairs: a product of (a, b) and (b, c) takes 2abc. Going
    back, the product of pairs costs twice itself and a projection of data once itself."""
    forth = 2 * rows * width * (image + text) + 2 * rows * rows * width
    back = 2 * rows * width * text + 2 * rows * rows * width
    if not frozen:
        back += 2 * rows * width * image + 2 * rows * rows * width
    return forth + back


SIZES, FED = Sizes(image=20, text=10), Fed(image=(20,), word_size=0, network=None)


@pytest.mark.parametrize("looks", [False, True], ids=["shapes alone", "a loss that looks"])
@pytest.mark.parametrize("frozen", [False, True])
def test_operations_of_a_step_are_those_by_hand(looks, frozen):
    config = method_of("mine.py").Config(looks=looks, frozen=frozen)
    found = counted("mine.py", config, SIZES, FED)
    assert found.parameters == 8 * 30
    expected = [by_hand(32, 20, 10, 8, frozen), by_hand(100, 20, 10, 8)]
    assert found.steps == pytest.approx(expected, rel=1e-9)


def test_a_method_that_fails_is_named():
    config = method_of("mine.py").Config()
    with pytest.raises(UnknownError, match="AttributeError|TypeError"):
        counted("mine.py", config, dataclasses.replace(SIZES, image=None), FED)


def test_a_phase_counts_its_own_terms_only():
    """One term of two is one way back less, where each has its own network."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = (nn.Linear(6, 4, bias=False) for _ in range(2))

        def loss(self, batch):
            return {"a": self.a(batch.images).sum(), "b": self.b(batch.images).sum()}

    images = torch.zeros(5, 6)
    captions = Captions(values=images, lengths=torch.ones(5))
    batch = Batch(images=images, captions=captions, group_ids=torch.arange(5))
    phase = Phase(epochs=1, learning_rates=(0.1,), batch_size=5)
    one = 2 * 5 * 6 * 4
    assert operations._operations(Two(), phase, batch) == 4 * one
    only = dataclasses.replace(phase, terms=("a",))
    assert operations._operations(Two(), only, batch) == 3 * one


PRESETS = [
    "scan_t2i_avg",
    "scan_i2t_lse",
    "two_branch_constraints",
    "two_branch_lstm",
    "two_branch_similarity",
    "cyclematch",
]


@pytest.mark.parametrize("preset", PRESETS)
def test_small_batches_of_short_captions_lead_to_the_real_one(preset):
    """Against a step of 24 rows that is really run."""
    cell = next(iter(season([preset]).cells.values()))
    method = method_of(cell.method)
    config = method.Config(**cell.options | {"batch_size": 24})
    takes = method.inputs(config)
    image = (36, 40) if takes.image == "regions" else (40,)
    sizes, fed = Sizes(image=40, text=50), Fed(image=image, word_size=0, network=None)
    task = operations._Task(method, config, takes, sizes, fed)
    phase = method.recipe(config)[-1]
    with torch.random.fork_rng(devices=[]):
        model = task.model().train()
        with FlopCounterMode(display=False) as counter:
            sum(model.loss(task.batch(24, phase)).values()).backward()
    found = counted(cell.method, config, sizes, fed).steps[-1]
    assert found == pytest.approx(counter.get_total_flops(), rel=0.02)


def test_what_a_network_sees_is_what_it_gives():
    """ResNet-50 takes 4.09 billion multiply-adds for a picture of 224 x 224 (its model card)."""
    found = seen("torchvision_cnn", "resnet50", 224)
    assert (found.pooled, found.map) == (2048, 2048)
    assert found.operations == pytest.approx(2 * 4.09e9, rel=0.01)
    assert (
        seen("torchvision_cnn", "vgg16", 224).pooled,
        seen("drawn_cnn", "drawn_cnn", 96).map,
    ) == (
        4096,
        192,
    )
    with pytest.raises(UnknownError, match="bottom_up: the size of its features is not known"):
        seen("torchvision_cnn", "bottom_up", 224)


def season(presets: list[str], **settings: object) -> Params:
    image = {"network": "resnet50", "input_size": 224, "grid": 6, "flip": True}
    wanted = {
        "title": "Try",
        "datasets": {"flickr8k": {"image": image, "sentence": {"hglmm": {"size": 10}}} | settings},
        "presets": presets,
        "seeds": [0, 1],
    }
    return resolve("try", Season.model_validate(wanted))


def prepared(name: str, images: int, captions: int) -> None:
    split = {"images": images, "captions": captions, "phrases": 0}
    folder = Path("data/prepared") / name
    folder.mkdir(parents=True)
    (folder / "card.json").write_text(json.dumps({"counts": {"train": split, "unused": split}}))


def test_hours_are_steps_times_operations():
    prepared("flickr8k", images=100, captions=301)
    params = season(["two_branch_bidirectional"])
    cells = {
        key: cell.model_copy(update={"method": "mine.py", "options": {"epochs": 4}})
        for key, cell in params.cells.items()
    }
    found = estimate(params.model_copy(update={"cells": cells}), [])
    flops = 4 * math.ceil(301 / 32) * by_hand(32, 2048, 10, 8)
    flops += 2 * by_hand(100, 2048, 10, 8)
    hours = (flops / RATE + (4 * 10 + 2) * OVERHEAD) / 3600
    assert found["hours_of_cells"] == pytest.approx(dict.fromkeys(cells, hours), rel=1e-2)
    assert found["device_hours"]["training"] == pytest.approx(2 * hours, rel=1e-2)
    looks = 2 * 100 * seen("torchvision_cnn", "resnet50", 224).operations / RATE / 3600
    assert found["device_hours"]["encoding"] == pytest.approx(looks, rel=1e-2)
    assert found["kind"] == "estimated, not measured" and found["not_counted"] == {}


def test_disk_is_what_is_still_to_be_written():
    prepared("flickr8k", images=100, captions=300)
    params = season(["two_branch_bidirectional"])
    disk = estimate(params, ["flickr8k"])["disk_gib"]
    images = 100 * (2048 + 36 * 2048) * 2
    sentences, words = 300 * 10 * 2, estimates.VOCABULARY * 300 * 4
    assert disk["features"] == pytest.approx((images + sentences + words) / GIB, rel=1e-2)
    parameters = (2048 + 10) * 2048 + 2 * 2048 + 2 * 2048 * 512 + 6 * 512
    assert disk["checkpoints"] == pytest.approx(2 * 2 * parameters * 4 / GIB, rel=1e-2)
    assert disk["raw_files"] == pytest.approx(
        raw_dataset(params, "flickr8k").card.raw_gib, rel=0.01
    )
    assert disk["needed"] == pytest.approx(
        disk["raw_files"] + disk["features"] + disk["checkpoints"], rel=1e-2
    )
    for encoding in params.feature_sets.values():
        Path(encoding.folder).mkdir(parents=True)
        (Path(encoding.folder) / "card.json").write_text("{}")
    for cell in params.cells.values():
        Path(cell.folder).mkdir(parents=True)
        (Path(cell.folder) / "checkpoint.pt").touch()
    done = estimate(params, [])["disk_gib"]
    assert (done["needed"], done["raw_files"]) == (0, 0)


def test_counts_come_from_the_prepared_dataset_else_the_card_else_the_code():
    dataset = raw_dataset(season([]), "flickr8k")
    assert counts_of(dataset)["train"]["images"] == dataset.card.expected_images["train"] == 6000
    prepared("flickr8k", images=7, captions=9)
    assert counts_of(dataset)["train"] == {"images": 7, "captions": 9, "phrases": 0}
    drawn = dataclasses.replace(dataset, name="drawn", module=datasets.load("shapes"))
    assert counts_of(drawn)["test"]["images"] == 500
    own = dataclasses.replace(dataset, name="own", module=datasets.load("folder"))
    with pytest.raises(UnknownError, match="own: its size is not known before it is prepared"):
        counts_of(own)


def test_what_cannot_be_counted_is_named_with_its_reason():
    found = estimate(season(["cca"]), [])["not_counted"]
    assert set(found.values()) == {"closed form: solved at once, on the host"}
    found = estimate(season(["two_branch_bidirectional"], reader="folder"), [])
    assert set(found["not_counted"].values()) == {
        "flickr8k: its size is not known before it is prepared"
    }
    assert found["device_hours"] == {"encoding": 0.0, "training": 0.0}


def test_cells_that_differ_in_their_schedule_alone_are_counted_once(monkeypatch):
    steps = []
    original = operations._step
    monkeypatch.setattr(operations, "_step", lambda *given: steps.append(given) or original(*given))
    config = method_of("mine.py").Config
    for epochs, width in ((3, 8), (5, 8), (3, 8), (3, 9)):
        counted("mine.py", config(epochs=epochs, width=width), SIZES, FED)
    assert len(steps) == 2 * 2  # two phases, two widths

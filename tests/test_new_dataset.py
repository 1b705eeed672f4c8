"""A dataset is one .py, and so is a figure: dropped into a copy of the tree, they are played."""

import shutil
from pathlib import Path

import forks
import pytest

ROOT = Path(__file__).parent.parent
DATASET = '''\
"""Pictures of one colour each."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from PIL import Image

from benchmark.contracts.datasets import Card, OpenPicture, Tables

COLOURS = ("red", "green", "blue", "orange")
SPLIT_OF = ["train"] * 24 + ["val"] * 6 + ["test"] * 10


@dataclass(frozen=True)
class Options:
    """None."""


def card(options: Options = Options()) -> Card:
    facts = {"licence": "free", "split": "painted", "may_publish": True}
    return Card(title="Colours", source="This test", **facts)


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    return []


def read(raw: Path, options: Options = Options()) -> Tables:
    ids = [f"p{number}" for number in range(len(SPLIT_OF))]
    images = pd.DataFrame({"image_id": ids, "file": ids, "split": SPLIT_OF, "group": ids})
    rows = [(f"{i}/{n}", i, f"picture {i} is {_colour(i)} {n}") for i in ids for n in ("a", "b")]
    captions = pd.DataFrame(rows, columns=["caption_id", "image_id", "text"])
    return Tables(images=images, captions=captions)


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    return lambda file: Image.new("RGB", (96, 96 + int(file[1:])), _colour(file))


def _colour(image_id: str) -> str:
    return COLOURS[int(image_id[1:]) % len(COLOURS)]
'''
FIGURE = '''\
"""A bar per preset."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from benchmark.report.figure_listing import FigureInputs, ReportFigure


def figures(inputs: FigureInputs) -> Iterator[ReportFigure]:
    figure = Figure(figsize=(2, 2))
    figure.subplots().bar([0, 1], [0, 1])
    yield ReportFigure(name="plain_bars", figure=figure, alt="bars of all presets")


FIGURES = {"result": figures}
'''
PLAY = """\
from pathlib import Path

import torch
from matplotlib.figure import Figure

from benchmark.commands import run
from benchmark.features import drawn_cnn
from benchmark.report.__main__ import write_report
from benchmark.season.parameters import DatasetSettings, ImageEncoder, SentenceEncoder, WordVectors
from benchmark.season.resolving import resolve
from benchmark.season.parameters import Season

drawn_cnn.WEIGHTS.parent.mkdir(parents=True)
torch.save(drawn_cnn.Network().state_dict(), drawn_cnn.WEIGHTS)
settings = DatasetSettings(
    image=ImageEncoder(network="drawn_cnn", input_size=96, flip=False),
    words=WordVectors(size=8),
    sentence={"hglmm": SentenceEncoder(centres=1, size=6)},
)
sizes = {"hidden_size": 8, "embedding_size": 8, "epochs": 1}
season = Season(
    title="Mine",
    datasets={"colours": settings},
    presets=["two_branch_single"],
    seeds=[0],
    device="cpu",
    options={"two_branch_embedding": sizes},
)
params = resolve("mine", season)
run.run(params, "colours", None)
Figure.draw_without_rendering = lambda figure: None
Figure.savefig = lambda figure, file, **settings: file.write(b"<svg/>")
write_report(params)
"""


@pytest.mark.slow
def test_a_dataset_and_a_figure_need_no_edit_elsewhere(tmp_path):
    for folder in ("benchmark", "methods", "datasets"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    (tmp_path / "datasets/colours.py").write_text(DATASET)
    (tmp_path / "benchmark/report/figures/plain_bars.py").write_text(FIGURE)
    played = forks.python(PLAY, tmp_path)
    assert played.status == 0, played.said
    page = (tmp_path / "reports/mine/datasets/colours.md").read_text(encoding="utf-8")
    assert "Colours" in page and "bars of all presets" in page
    assert list((tmp_path / "reports/mine/figures").glob("*plain_bars*.svg"))

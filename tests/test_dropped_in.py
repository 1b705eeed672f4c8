"""A dataset, a method and a figure are one file each: dropped into a copy of the tree,
they are played."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PRESETS = """\
plain_256:
  title: Plain, 256 numbers
  sentence: mean_words
  options: {embedding_size: 256}
"""
FIGURE = '''\
"""A bar per preset."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from benchmark.report.figure_listing import FigureInputs, ReportFigure


def figures(inputs: FigureInputs) -> Iterator[ReportFigure]:
    figure = Figure(figsize=(2, 2))
    figure.subplots().bar([0, 1], [0, 1])
    yield ReportFigure(name="plain_bars", figure=figure, alt="bars of presets")


FIGURES = {"result": figures}
'''
PLAY = """\
import benchmark  # pins the numerics before numpy is imported
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from benchmark.collect.__main__ import collect
from benchmark.commands import run
from benchmark.core.files import read_json
from benchmark.features import drawn_cnn
from benchmark.report.__main__ import write_report
from benchmark.season.parameters import DatasetSettings, ImageEncoder, Season, WordVectors
from benchmark.season.resolving import resolve

drawn_cnn.WEIGHTS.parent.mkdir(parents=True)
torch.save(drawn_cnn.Network().state_dict(), drawn_cnn.WEIGHTS)
settings = DatasetSettings(
    options={"train": 24, "val": 6, "test": 10},
    image=ImageEncoder(network="drawn_cnn", input_size=96, flip=False),
    words=WordVectors(size=8),
)
season = Season(
    title="Mine", datasets={"colours": settings}, presets=["plain_256"], seeds=[0], device="cpu"
)
params = resolve("mine", season)
run.run(params)
collect(params, "colours")
record = read_json(Path("results/mine/colours/records.json"))["plain_256/0"]
assert (record["status"], record["method"]) == ("ok", "plain"), record["reason"]
assert record["options"]["embedding_size"] == 256
Figure.draw_without_rendering = lambda figure: None
Figure.savefig = lambda figure, file, **settings: file.write(b"<svg/>")
write_report(params)
raise SystemExit(pytest.main("-q -p no:cacheprovider -k plain tests/test_methods.py".split()))
"""


@pytest.mark.slow
def test_a_dataset_a_method_and_a_figure_need_no_edit_elsewhere(tmp_path):
    for folder in ("benchmark", "methods", "datasets", "seasons", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "datasets/shapes.py", tmp_path / "datasets/colours.py")
    shutil.copy(ROOT / "tests/own_methods/plain.py", tmp_path / "methods")
    (tmp_path / "methods/plain.yaml").write_text(PRESETS)
    (tmp_path / "benchmark/report/figures/plain_bars.py").write_text(FIGURE)
    command, environment = (
        [sys.executable, "-c", PLAY],
        os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    played = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "passed" in played.stdout and "failed" not in played.stdout
    page = (tmp_path / "reports/mine/datasets/colours.md").read_text(encoding="utf-8")
    assert "Plain, 256 numbers" in page and "bars of presets" in page
    assert list((tmp_path / "reports/mine/figures").glob("*plain_bars*.svg"))

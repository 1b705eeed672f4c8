"""Make a season of your own pictures: read a folder, check it, and write a season file for it.

    python -m benchmark init DIR

DIR holds the pictures and one annotation file: .csv or .jsonl (image and caption, or Hugging
Face's metadata), Karpathy's .json or COCO's captions. The season gets presets of several methods
with a budget that fits the number of captions, and a test split that is large enough for verdicts
where there are enough pictures. It becomes the active season.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import datasets
from benchmark.analysis.boards import MIN_TEST_QUERIES
from benchmark.commands import season
from benchmark.commands.data_shapes import SeasonShapes
from benchmark.commands.doctor import training_lines, training_times
from benchmark.core.errors import UserError
from benchmark.core.files import read_json, write_text
from benchmark.core.names import LONGEST, checked_name
from benchmark.data import prepared_tables
from benchmark.fetch.__main__ import fetch
from benchmark.prepare.__main__ import prepare
from benchmark.season.parameter_files import read_params
from benchmark.season.season_files import SEASON_FILE, SEASONS
from datasets import folder as reader

LEAST_TRAINED = 0.25  # share of the images that a larger test split must leave to train on
STEPS = {"two_branch_embedding": 600, "scan": 300, "dual_path": 600, "cyclematch": 400}
BATCH, MOST_EPOCHS = 64, 60
LARGE = 20_000  # training captions from which on the papers' sizes are kept
SHARE_OF_VECTORS = 2  # training captions per number that PCA keeps


@dataclass(frozen=True)
class Counted:
    """How many images there are, and how they are divided."""

    images: int
    captions: int
    has_splits: bool
    val: int
    test: int

    @property
    def trained(self) -> int:
        """Captions to train on."""
        return max(1, round(self.captions * (1 - (self.val + self.test) / self.images)))

    @property
    def is_conclusive(self) -> bool:
        return self.test >= MIN_TEST_QUERIES


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="with the pictures and their captions")
    parser.add_argument("--name", help="of the dataset and the season; default: the folder's")
    parser.add_argument("--captions", help="the annotation file, where there are several")
    parser.add_argument("--weights-dir", help="folder of pretrained image networks (*.pth)")
    parser.add_argument("--quick", action="store_true", help="do not time any training step")


def main(arguments: argparse.Namespace) -> None:
    name = checked_name(arguments.name or _name_of(arguments.folder), "--name")
    path = SEASONS / name / SEASON_FILE
    if path.exists():
        raise UserError(path, "no such season yet", "one", "choose another with --name")
    if not arguments.folder.is_dir():
        raise UserError(arguments.folder, "a folder", "nothing", "check the path")
    counted = count(arguments.folder, arguments.captions)
    print(f"{arguments.folder}: {counted.images} images, {counted.captions} captions")
    print(_told(counted))
    write_text(path, season_text(name, arguments.folder, arguments.captions, counted))
    chosen = argparse.Namespace(
        name=name, schema=False, reference=False, weights_dir=arguments.weights_dir, source=[]
    )
    try:
        season.main(chosen)
        params = read_params(name)
        fetch(params, name)
        print("\n".join(prepare(params, name)))
    except datasets.DataError:
        path.unlink()  # the next try may have the same name
        raise
    for note in read_json(prepared_tables.ROOT / name / "card.json")["leakage"]["notes"]:
        print(note)
    if not arguments.quick:
        print("\n".join(training_lines(training_times(params, SeasonShapes(params)))))
    print(f"{path}: what is played; edit it, then: python -m benchmark season {name}")
    print(f"next: python -m benchmark play; then read reports/{name}/README.md")


def _tables(folder: Path, captions: str | None) -> datasets.Tables:
    try:
        return reader.read(folder, reader.Options(captions=captions))
    except datasets.DataError as error:
        where = f"{folder}: {error.where}"
        raise datasets.DataError(where, error.expected, error.found, error.do) from error


def count(folder: Path, captions: str | None) -> Counted:
    """What the annotation file says, and the split that is best for it."""
    tables = _tables(folder, captions)
    images, texts = tables.images, len(tables.captions)
    groups = images["group"].nunique()
    if reader.has_splits(folder, reader.Options(captions=captions)):
        sizes = images["split"].value_counts()
        return Counted(len(images), texts, True, int(sizes.get("val", 0)), _tested(images))
    val = max(1, round(groups / 10))
    enough = groups - val - MIN_TEST_QUERIES >= LEAST_TRAINED * groups
    test = max(round(groups / 10), MIN_TEST_QUERIES) if enough else max(1, round(groups / 5))
    return Counted(len(images), texts, False, val, test)


def _tested(images: pd.DataFrame) -> int:
    return int((images["split"] == "test").sum())


def _told(counted: Counted) -> str:
    whose = "of the annotations" if counted.has_splits else "by a hash of the paths"
    text = f"split {whose}: {counted.test} to test, {counted.val} to validate"
    if counted.is_conclusive:
        return text
    return (
        f"{text}. Nothing can be concluded from {counted.test} test images: "
        f"{MIN_TEST_QUERIES} are needed"
    )


def _name_of(folder: Path) -> str:
    """A name from that of the folder; other characters become _."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", folder.resolve().name).strip("_-")[:LONGEST]


# The season file ----------------------------------------------------------------------------------


def season_text(name: str, folder: Path, captions: str | None, counted: Counted) -> str:
    """The season file, with comments."""
    chosen = {"captions": captions} if captions else {}
    if not counted.has_splits:
        chosen |= {"val": counted.val, "test": counted.test}
    options = f"\n    options: {_flow(chosen)}" if chosen else ""
    size = max(2, min(256, counted.trained // SHARE_OF_VECTORS))
    return f"""\
# yaml-language-server: $schema=../../docs/season.schema.json
# {counted.images} images, {counted.captions} captions; {_told(counted)}.
# Every key is explained in docs/season-file.md. After a change: python -m benchmark season {name}
title: {name}
datasets:
  {name}:
    reader: folder
    source: {_quoted(str(folder))}{options}
    # mobilenet_v2 is downloaded, or read from the folder that --weights-dir names.
    image: {{network: mobilenet_v2, input_size: 224, grid: 6, standardise: true}}
    words: {{size: 100}}
    sentence:
      hglmm: {{centres: 8, size: {size}, standardise: true}}
presets:
  - cca
  - two_branch_bidirectional
  - two_branch_constraints
  - dual_path_instance_1
  - cyclematch
  - scan_t2i_avg
# A verdict that one preset is better than another needs three seeds.
seeds: [0, 1, 2]
seeds_of: {{scan: [0]}}  # the slowest method
{_budget(counted)}"""


def _budget(counted: Counted) -> str:
    """The papers' recipes, scaled to few captions: records list what was scaled."""
    if counted.trained >= LARGE:
        return "# As many captions as the papers trained on: their recipes are played as printed.\n"
    batch = min(BATCH, max(2, counted.trained // 4))
    epochs = {
        method: max(3, min(MOST_EPOCHS, round(steps * batch / counted.trained)))
        for method, steps in STEPS.items()
    }
    return f"""\
# The papers' recipes for {counted.trained} training captions: smaller layers, {batch} pairs a batch
# and as many epochs as give some hundred steps. Records and reports say what was scaled.
options:
  dual_path: {{blocks: "1,1,1,1", text_width: 0.125, word_size: 100, hidden_size: 256, \
image_hidden_size: 256, embedding_size: 256, dropout: 0.25, learning_rate: 0.05, \
epochs: {epochs["dual_path"]}, decay_after: {round(0.8 * epochs["dual_path"])}}}
  two_branch_embedding: {{hidden_size: 512, embedding_size: 128, batch_size: {batch}, \
learning_rate: 0.001, epochs: {epochs["two_branch_embedding"]}}}
  cyclematch: {{hidden_size: 256, embedding_size: 128, batch_size: {batch}, \
epochs: {epochs["cyclematch"]}, decay_every: {max(1, round(0.4 * epochs["cyclematch"]))}}}
  scan: {{embedding_size: 128, word_size: 100, batch_size: {batch}, min_count: 1, \
learning_rate: 0.001, epochs: {epochs["scan"]}, decay_after: {round(0.8 * epochs["scan"])}}}
"""


def _flow(options: dict) -> str:
    return "{" + ", ".join(f"{k}: {_quoted(v)}" for k, v in options.items()) + "}"


def _quoted(value: str | int) -> str:
    """As YAML in double quotes."""
    return str(value) if isinstance(value, int) else f'"{_escaped(value)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')

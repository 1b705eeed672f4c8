"""Make a season of your own pictures: read a folder, check it, and write a season file for it.

    python -m benchmark init DIR

DIR holds the pictures and one annotation file: .csv or .jsonl (image and caption, or Hugging
Face's metadata), Karpathy's .json or COCO's captions. The season gets presets of several methods
with a budget that fits the number of captions, and a test split that is large enough for verdicts
where there are enough pictures. All is checked before anything is written, and the new season
becomes the active one. Run it in the clone of Rematch.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

import datasets
from benchmark import encoders
from benchmark.analysis.boards import MIN_TEST_QUERIES
from benchmark.commands import season
from benchmark.commands.data_shapes import SeasonShapes
from benchmark.commands.doctor import training_lines, training_times
from benchmark.commands.project_folder import check_project
from benchmark.core.errors import UserError, checked
from benchmark.core.files import read_json, read_yaml, write_text
from benchmark.core.names import LONGEST, checked_name
from benchmark.data import prepared_tables
from benchmark.fetch.__main__ import fetch
from benchmark.prepare.__main__ import prepare
from benchmark.season.networks import module_of
from benchmark.season.parameter_files import LOCAL, read_local, read_params
from benchmark.season.resolving import resolve
from benchmark.season.season_files import SEASON_FILE, SEASONS, Season, season_name
from datasets import folder as reader
from datasets.shared.plain_files import is_file

LEAST_TRAINED = 0.25  # share of the images that a larger test split must leave to train on
STEPS = {"two_branch_embedding": 600, "scan": 300, "dual_path": 600, "cyclematch": 400}
BATCH, MOST_EPOCHS = 64, 60
LARGE = 20_000  # training captions from which on the papers' sizes are kept
SHARE_OF_VECTORS = 2  # training captions per number that PCA keeps
NETWORK = "mobilenet_v2"
SHOWN = 5  # files that a message names


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
    check_project()  # elsewhere, this would begin a second project
    _check_untaken(name)
    _check_folder(arguments.folder)
    _check_weights(arguments.weights_dir)
    counted = count(arguments.folder, arguments.captions)
    _check_pictures(arguments.folder, arguments.captions)
    print(f"{arguments.folder}: {counted.images} images, {counted.captions} captions")
    print(_told(counted))
    text = season_text(name, arguments.folder, arguments.captions, counted)
    print("\n".join(_prepared(name, text, arguments.folder)))
    write_text(path, text)
    for note in read_json(prepared_tables.ROOT / name / "card.json")["leakage"]["notes"]:
        print(note)
    chosen = argparse.Namespace(
        name=name, schema=False, reference=False, weights_dir=arguments.weights_dir, source=[]
    )
    season.main(chosen)
    if not arguments.quick:
        params = read_params(name)
        print("\n".join(training_lines(training_times(params, SeasonShapes(params)))))
    print(f"{path}: what is played; edit it, then: python -m benchmark season {name}")
    print(f"next: python -m benchmark play; then read reports/{name}/README.md")


def _prepared(name: str, text: str, folder: Path) -> list[str]:
    """Fetch and prepare the dataset of a season that is not written yet; lines that tell what was
    read. What is wrong with a picture is told of the user's folder, not of the link to it."""
    declared = checked(Season, yaml.safe_load(text), str(SEASONS / name / SEASON_FILE))
    params = resolve(name, declared)
    fetch(params, name)
    try:
        return prepare(params, name)
    except datasets.DataError as error:
        item = error.where.removeprefix(f"{name}: ").replace(f"data/raw/{name}/", "")
        do = "correct it, then init again"
        raise UserError(f"{folder}: {item}", error.expected, error.found, do) from error


# Checks, before anything is written ---------------------------------------------------------------


def _check_untaken(name: str) -> None:
    season_name(name)  # refuses those that are reserved
    path = SEASONS / name / SEASON_FILE
    if path.exists():
        do = f"python -m benchmark season {name} --weights-dir DIR"
        do = f"choose another with --name, or give this one other weights: {do}"
        raise UserError(path, "no such season yet", "one", do)
    for other in sorted(SEASONS.glob("*/params.yaml")):
        if other.parent.name != name and name in (read_yaml(other).get("datasets") or ()):
            expected, found = f"no dataset {name} yet", "one"
            raise UserError(other, expected, found, "choose another with --name")


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        found, do = "nothing", "check the path"
        if folder.exists():
            found, do = "a file", "name the folder that holds it and the pictures"
        raise UserError(folder, "a folder", found, do)


def _check_weights(named: str | None) -> None:
    """Refuse a folder that lacks the weights of the network, or has others under their name."""
    kept = read_local().weights_dir
    if not (named or kept):
        return  # they are downloaded
    folder = Path(named or kept)
    where = f"--weights-dir {folder}" if named else f"{LOCAL}: weights_dir {folder}"
    do = "name the folder of the file with --weights-dir"
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise UserError(where, f"a folder with a file {NETWORK}-*.pth", found, do)
    try:
        encoders.load(module_of(NETWORK)).load(NETWORK, folder)
    except UserError as error:
        names = sorted(path.name for path in folder.iterdir())
        more = f" and {len(names) - SHOWN} more" * (len(names) > SHOWN)
        found = f"{error.found} (the folder holds {', '.join(names[:SHOWN]) or 'nothing'}{more})"
        raise UserError(where, error.expected, found, do) from error


def _check_pictures(folder: Path, captions: str | None) -> None:
    files = reader.inventory(folder, reader.Options(captions=captions))
    missing = [path for path in files if not is_file(path)]
    if missing:
        found = f"nothing ({len(missing)} of {len(files) - 1} pictures are missing)"
        do = "correct the annotation file or add the picture, then init again"
        raise UserError(missing[0], f"a picture that {files[0].name} names", found, do)


# What is there ------------------------------------------------------------------------------------


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
title: {_quoted(name)}
datasets:
  {_quoted(name)}:
    reader: folder
    source: {_quoted(str(folder))}{options}
    # {NETWORK} is downloaded, or read from the folder that --weights-dir names.
    image: {{network: {NETWORK}, input_size: 224, grid: 6, standardise: true}}
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

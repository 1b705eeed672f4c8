"""Train a preset of a season with other options, and note what validation says.

    python -m benchmark tune vse --season flickr8k --option learning_rate=0.0005 --option epochs=20

The test split is never seen. A trial is a row of seasons/<season>/tuning.csv, from which the report
shows what was tried and what the season takes. Give every method as many trials.
"""

import argparse
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pandas as pd

from benchmark.analysis import tuning_trials
from benchmark.commands.run import option
from benchmark.core import numerics
from benchmark.core.errors import UserError
from benchmark.core.locks import alone, lock_of
from benchmark.matching import checkpoints
from benchmark.matching.method_errors import OF_A_METHOD
from benchmark.season.method_options import ConfiguredMethod, configured, method_of
from benchmark.season.parameter_files import entry, read_params
from benchmark.season.parameters import Cell, Option, Params
from benchmark.train.__main__ import train_cell


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("preset", help="one that the season trains")
    parser.add_argument(
        "--option",
        action="append",
        required=True,
        metavar="KEY=VALUE",
        help="what the trial sets otherwise than the season; may be given again",
    )
    parser.add_argument("--dataset", help="default: the first that the preset is played on")
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    options = dict(map(option, arguments.option))
    cell = _trial(_cell(params, arguments.preset, arguments.dataset), options)
    _check_trained(cell)
    numerics.require(cell.numerics, cell.threads)
    if _is_known(params.season, cell, options):
        print(f"{cell.preset} {tuning_trials.spelt(options)}: tried before")
        return
    is_first = not tuning_trials.path(params.season).is_file()
    with alone(
        lock_of(f"{cell.folder}.tune"), f"tune {cell.preset} {tuning_trials.spelt(options)}"
    ):
        try:
            train_cell(params, cell)
            trial = _result(cell, options)
            tuning_trials.add_trial(params.season, trial)
        finally:
            _remove(cell)
    print(f"{cell.preset} {trial['options']}: epoch {trial['epoch']}, rsum {trial['val_rsum']:.1f}")
    if is_first:
        print(f"next: python -m benchmark season {params.season}; then its report reads the trials")


def _cell(params: Params, preset: str, dataset: str | None) -> Cell:
    """The first training of a preset. Raises UserError for a preset that the season does not
    train."""
    cells = {cell.preset: cell for cell in reversed(params.cells.values()) if _on(cell, dataset)}
    return entry(cells, preset, "preset")


def _on(cell: Cell, dataset: str | None) -> bool:
    return dataset in (None, cell.dataset)


def _trial(cell: Cell, options: dict[str, Option]) -> Cell:
    """The same training with other options, in a folder that git ignores. Raises UserError for
    options that the method does not have."""
    changed = cell.options | options
    configured(method_of(cell.method), changed, f"preset {cell.preset}")
    name = "-".join([cell.preset, *(f"{key}_{value}" for key, value in sorted(options.items()))])
    folder = f"results/run/{cell.dataset}/{name.replace('/', '_')}/{cell.seed}"
    return cell.model_copy(update={"options": changed, "folder": folder})


def _check_trained(cell: Cell) -> None:
    """Raises UserError for a closed form, of which validation says nothing. What the recipe itself
    raises is told as of every training."""
    method = ConfiguredMethod.of(cell)
    try:
        epochs = sum(phase.epochs for phase in method.module.recipe(method.config))
    except OF_A_METHOD:
        return
    if not epochs:
        expected, found = "a recipe with epochs, of which validation chooses one", "none"
        raise UserError(f"preset {cell.preset}", expected, found, "tune another preset")


def _remove(cell: Cell) -> None:
    """The files of a trial, and its folders unless another trial is in them."""
    folder, checkpoint = Path(cell.folder), Path(cell.checkpoint)
    shutil.rmtree(folder, ignore_errors=True)
    checkpoint.unlink(missing_ok=True)
    for parent in (folder.parent, checkpoint.parent):
        with suppress(OSError):
            os.removedirs(parent)


def _is_known(season: str, cell: Cell, options: dict[str, Option]) -> bool:
    trials = tuning_trials.read_trials(season)
    same = trials[(trials.dataset == cell.dataset) & (trials.preset == cell.preset)]
    return tuning_trials.spelt(options) in set(same.options)


def _result(cell: Cell, options: dict[str, Option]) -> dict:
    """The row of a trial. Raises UserError for a training that failed."""
    checkpoint = checkpoints.load(Path(cell.checkpoint))
    if checkpoint.status != "ok":
        where = f"{cell.preset} {tuning_trials.spelt(options)}"
        raise UserError(where, "a training to its end", checkpoint.reason, "try other options")
    history = pd.read_csv(Path(cell.folder) / "training/history.csv", index_col="epoch")
    return {
        "dataset": cell.dataset,
        "preset": cell.preset,
        "options": tuning_trials.spelt(options),
        "epoch": checkpoint.epoch,
        "val_rsum": round(history.val_rsum[checkpoint.epoch], 1),
    }

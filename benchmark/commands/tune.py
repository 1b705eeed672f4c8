"""Train a preset of a season with other options, and note what validation says.

    rematch tune vse --season flickr8k --option learning_rate=0.0005 --option epochs=20

The test split is never read. A trial is a row of seasons/<season>/tuning.csv, from
which the report shows what was tried and what the season takes. Give every method as
many trials.
"""

import argparse
import os
from contextlib import suppress
from pathlib import Path

from benchmark.commands.run import options_of
from benchmark.core import numerics
from benchmark.core.command_line import alone, lock_of
from benchmark.core.errors import UserError, entry
from benchmark.core.files import remove
from benchmark.core.names import fold_of
from benchmark.season import tuning
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import CELLS, Cell, Option, Params
from benchmark.season.plugins import ConfiguredMethod
from benchmark.season.tuning import Trial
from benchmark.train.__main__ import train_cell


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("preset", help="a preset that the season trains")
    options = {"action": "append", "required": True, "metavar": "KEY=VALUE"}
    add("--option", **options, help="set an option for the trial; may be repeated")
    add("--dataset", help="default: the first that the preset is run on")
    add("--season", metavar="NAME", help="default: the active one")


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season, arguments.preset)
    options = options_of(arguments.option)
    cells: dict[str, dict[str, Cell]] = {}  # by preset and dataset
    for cell in params.cells.values():
        cells.setdefault(cell.preset, {}).setdefault(cell.dataset, cell)
    of_preset = entry(cells, arguments.preset, "preset")
    dataset = arguments.dataset or next(iter(of_preset))
    cell = entry(of_preset, dataset, "dataset")
    if fold := fold_of(cell.dataset):
        raise UserError(
            "--dataset",
            expected="a dataset of the season",
            found=f"a fold of {fold.dataset}",
            do=f"tune on {fold.dataset}: its folds take the settings",
        )
    settings = [f"{name}_{value}" for name, value in sorted(options.items())]
    name = "-".join([cell.preset, *settings]).replace("/", "_")
    folder = f"{CELLS}/run/{cell.dataset}/{name}/{cell.seed}"  # files of its own
    changes = {"options": cell.options | options, "folder": folder}
    trial_cell = cell.model_copy(update=changes)
    ConfiguredMethod.of(trial_cell)  # refuses options that the method does not have
    numerics.require(cell.numerics, cell.threads)
    title = f"{cell.preset} {tuning.written(options)}"
    trials = tuning.read_trials(params.season)
    if any(trial.is_of(cell.dataset, cell.preset, options) for trial in trials):
        print(f"{title}: already tried")
        return
    with alone(lock_of(f"{trial_cell.folder}.tune"), f"tune {title}"):
        try:
            trial = run_trial(params, trial_cell, options)
            tuning.add_trial(params.season, trial)
        finally:
            # its files, and the folders that this leaves empty
            for file in (
                folder,
                trial_cell.checkpoint,
                trial_cell.history,
                trial_cell.costs,
            ):
                with suppress(OSError):  # other trials are in the folder
                    remove(Path(file))
                    os.removedirs(Path(file).parent)
    kept = f"epoch {trial.epoch}" if trial.epoch else "closed form"
    print(f"{title}: {kept}, rsum {trial.val_rsum:.1f}")
    if not trials:
        print(f"next: rematch season {params.season}; then its report reads the trials")


def run_trial(params: Params, cell: Cell, options: dict[str, Option]) -> Trial:
    """Train, and note what validation says of the best epoch, or of a closed form.
    Raises UserError for a training that did not come to its end."""
    training = train_cell(params, cell)
    checkpoint = training.checkpoint
    if checkpoint.status != "ok":
        raise UserError(
            f"preset {cell.preset}",
            expected="a training to its end",
            found=checkpoint.reason,
            do="try other options",
        )
    return Trial(
        dataset=cell.dataset,
        preset=cell.preset,
        options=options,
        epoch=checkpoint.epoch or 0,
        val_rsum=round(training.val_rsum, 1),
    )

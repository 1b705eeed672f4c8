"""Train a preset of a season with other options, and note what validation says.

    rematch tune vse --season flickr8k --option learning_rate=0.0005 --option epochs=20

The test split is never seen. A trial is a row of seasons/<season>/tuning.csv, from
which the report shows what was tried and what the season takes. Give every method as
many trials.
"""

import argparse
import os
from contextlib import suppress
from pathlib import Path

from benchmark.boards import boards
from benchmark.commands.run import option
from benchmark.core import numerics
from benchmark.core.command_line import alone, lock_of
from benchmark.core.errors import UserError, entry
from benchmark.core.files import read_json, remove
from benchmark.scoring import checkpoints
from benchmark.scoring.checkpoints import OF_A_METHOD
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import CELLS
from benchmark.season.plugins import ConfiguredMethod
from benchmark.train.__main__ import train_cell


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("preset", help="one that the season trains")
    said = "what the trial sets otherwise than the season; may be given again"
    given = {"action": "append", "required": True, "metavar": "KEY=VALUE"}
    parser.add_argument("--option", **given, help=said)
    parser.add_argument(
        "--dataset", help="default: the first that the preset is run on"
    )
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season, arguments.preset)
    options = dict(map(option, arguments.option))
    spelt, place = boards.spelt(options), arguments.dataset
    cells = [cell for cell in params.cells.values() if place in (None, cell.dataset)]
    cell = entry(
        {cell.preset: cell for cell in reversed(cells)}, arguments.preset, "preset"
    )
    name = "-".join(
        [cell.preset, *(f"{key}_{value}" for key, value in sorted(options.items()))]
    )
    folder = f"{CELLS}/run/{cell.dataset}/{name.replace('/', '_')}/{cell.seed}"
    trial = cell.model_copy(
        update={"options": cell.options | options, "folder": folder}
    )
    method = ConfiguredMethod.of(trial)  # refuses options that the method does not have
    try:
        epochs = sum(phase.epochs for phase in method.module.recipe(method.config))
    except OF_A_METHOD:
        epochs = 1  # the training tells what the recipe raises
    if not epochs:
        expected = "a recipe with epochs, of which validation chooses one"
        raise UserError(
            f"preset {cell.preset}", expected, "none", "tune another preset"
        )
    numerics.require(cell.numerics, cell.threads)
    trials = boards.read_trials(params.season)
    same = (trials.dataset == cell.dataset) & (trials.preset == cell.preset)
    if spelt in set(trials[same].options):
        print(f"{cell.preset} {spelt}: tried before")
        return
    with alone(lock_of(f"{folder}.tune"), f"tune {cell.preset} {spelt}"):
        try:
            train_cell(params, trial)
            checkpoint = checkpoints.load(Path(trial.checkpoint))
            if checkpoint.status != "ok":
                where, do = f"preset {trial.preset}", "try other options"
                raise UserError(where, "a training to its end", checkpoint.reason, do)
            history = read_json(Path(trial.history))["history"]
            rsum = history["val_rsum"][history["epoch"].index(checkpoint.epoch)]
            row = {"dataset": cell.dataset, "preset": cell.preset, "options": spelt}
            row |= {"epoch": checkpoint.epoch, "val_rsum": round(rsum, 1)}
            boards.add_trial(params.season, row)
        finally:
            for place in map(
                Path, (trial.folder, trial.checkpoint, trial.history, trial.costs)
            ):
                with suppress(OSError):  # other trials are in the folder
                    remove(place)
                    os.removedirs(place.parent)
    print(f"{cell.preset} {spelt}: epoch {row['epoch']}, rsum {row['val_rsum']:.1f}")
    if trials.empty:
        print(f"next: rematch season {params.season}; then its report reads the trials")

"""Stage: the cells of a dataset -> what git keeps of them, in
results/<season>/<dataset>/; those of all its folds -> results/<season>/<dataset>_folds/.

Where a cell gave what is kept of it, its costs stay those that are kept: they tell of
the run that the results come from, and a repetition changes no file. A cell that was
not run here stays as it is; one that the season does not have any more is left out.
"""

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from benchmark.core.command_line import add_season, alone, lock_of, run_stage
from benchmark.core.errors import corrected_by, entry
from benchmark.core.records import RECORD, Record
from benchmark.data import results
from benchmark.data.results import RESULTS, CellResult
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Cell, Fusion, Params


def configure(parser: argparse.ArgumentParser) -> None:
    about = "a dataset of the season, or DATASET_folds"
    parser.add_argument("folder", metavar="dataset", help=about)
    add_season(parser)


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    folders = {folder: folder for folder in params.folders}
    collect(params, entry(folders, arguments.folder, "dataset"))


def collect(
    params: Params, folder_name: str, only: Iterable[str] | None = None
) -> None:
    """Collect the cells of a folder of results, or those with the keys `only`. Raises
    UserError for a new result whose costs are not here."""
    folder = RESULTS / params.season / folder_name
    chosen = set(params.everything if only is None else only)
    with alone(lock_of(str(folder)), f"collect {folder}"):
        before = results.read_folder(folder)
        cells: dict[str, CellResult] = {}
        for cell in params.kept_in(folder_name):
            name = cell.kept_as
            if cell.key in chosen and results.has_record(Path(cell.folder)):
                cells[name] = _collected(params, cell, before.get(name))
            elif name in before:
                cells[name] = before[name]
        results.write_folder(folder, cells)


def _collected(
    params: Params, cell: Cell | Fusion, kept: CellResult | None
) -> CellResult:
    """The result of a cell with its costs."""
    folder = Path(cell.folder)
    result = results.read_cell(folder, cell.inside)
    if kept and kept.costs and is_same(result.record, kept.record):
        costs = kept.costs
    else:
        again = f"python -m benchmark.evaluate {cell.key} --season {params.season}"
        with corrected_by(again):
            costs = results.read_cell_costs(Path(cell.costs), folder / RECORD)
    return replace(result, costs=costs)


def is_same(record: Record, other: Record) -> bool:
    """Whether two records tell of equal results: older ones name fewer files."""
    for name in record.files.keys() & other.files.keys():
        if record.files[name] != other.files[name]:
            return False
    facts = record.model_dump(exclude={"files"})
    return facts == other.model_dump(exclude={"files"})


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))

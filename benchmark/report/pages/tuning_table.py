"""What was tried on validation before a season was played, as a table. Knows no torch."""

from benchmark.analysis import tuning_trials
from benchmark.analysis.preset_titles import title_of
from benchmark.report.table_formats import Table
from benchmark.season.parameters import Cell, Params


def tuning(params: Params, dataset: str) -> Table | None:
    """One row per trial on a dataset; None where nothing was tried."""
    trials = tuning_trials.read_trials(params.season)
    trials = trials[trials.dataset == dataset]
    if trials.empty:
        return None
    cells = {cell.preset: cell for cell in params.cells.values() if cell.dataset == dataset}
    rows = [
        [
            title_of(trial.preset),
            trial.options,
            str(trial.epoch),
            f"{trial.val_rsum:.1f}",
            _taken(trial.options, cells.get(trial.preset)),
        ]
        for trial in trials.itertuples()
    ]
    heads = ["preset", "options", "epoch kept", "validation rsum", "taken"]
    return Table(title="Trials on validation", heads=heads, rows=rows, names=2)


def _taken(options: str, cell: Cell | None) -> str:
    return "yes" if cell and tuning_trials.is_taken(options, cell) else ""

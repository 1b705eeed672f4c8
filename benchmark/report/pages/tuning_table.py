"""What was tried on validation, as a table. Knows no torch."""

from collections import Counter
from collections.abc import Iterator

import pandas as pd

from benchmark.analysis import tuning_trials
from benchmark.analysis.boards import Board, Outcome
from benchmark.analysis.preset_titles import title_of
from benchmark.report.table_formats import Table
from benchmark.season.parameters import Params


def tuning(params: Params, board: Board) -> Table | None:
    """One row per trial on a dataset, and one for the season's own options where none of a
    preset's trials had them; None where nothing was tried."""
    trials = _trials(params, board)
    if trials.empty:
        return None
    rows = [
        [
            title_of(trial.preset),
            trial.options,
            str(trial.epoch),
            f"{trial.val_rsum:.1f}",
            "yes" if trial.is_taken else "",
        ]
        for trial in trials.itertuples()
    ]
    heads = ["preset", "options", "epoch kept", "validation rsum", "taken"]
    return Table(title="Trials on validation", heads=heads, rows=rows, names=2)


def trials_per_method(params: Params, board: Board) -> dict[str, int]:
    """Number of rows of `tuning` by method of a paper that is trained, the most first."""
    trained = [s for s in board.standings if any(o.history is not None for o in s.outcomes)]
    methods = {standing.preset: standing.method for standing in trained if not standing.is_own}
    presets = _trials(params, board)["preset"]
    counts = Counter(dict.fromkeys(methods.values(), 0))
    counts.update(methods[preset] for preset in presets if preset in methods)
    return dict(counts.most_common())


def _trials(params: Params, board: Board) -> pd.DataFrame:
    """The rows of `tuning`: columns preset, options, epoch, val_rsum and is_taken."""
    trials = tuning_trials.read_trials(params.season)
    trials = trials[trials["dataset"] == board.dataset]
    taken = [_is_taken(board, trial.preset, trial.options) for trial in trials.itertuples()]
    trials = trials.assign(is_taken=taken)
    own = pd.DataFrame(_own(board, trials), columns=trials.columns)
    return pd.concat([trials, own]).sort_values("preset", kind="stable")


def _is_taken(board: Board, preset: str, options: str) -> bool:
    standing = board.standing(preset)
    return bool(standing) and tuning_trials.is_taken(options, standing.outcomes[0].record)


def _own(board: Board, trials: pd.DataFrame) -> Iterator[dict]:
    """What the first training of a preset that was tried had and reached, unless a trial did."""
    for preset, tried in trials.groupby("preset"):
        standing = board.standing(preset)
        played = standing.played if standing else []
        trained = [outcome for outcome in played if _is_judged(outcome)]
        if trained and not tried["is_taken"].any():
            yield _reached(trained[0], set().union(*map(tuning_trials.keys, tried["options"])))


def _is_judged(outcome: Outcome) -> bool:
    """Whether validation chose an epoch: not of a fusion or a closed form."""
    has_curve = outcome.history is not None and "val_rsum" in outcome.history
    return has_curve and outcome.record.selected_epoch in set(outcome.history["epoch"])


def _reached(outcome: Outcome, keys: set[str]) -> dict:
    """The options of a training and what it reached on validation, as a trial."""
    record = outcome.record
    of_epoch = outcome.history.set_index("epoch")["val_rsum"]
    return {
        "dataset": record.dataset,
        "preset": record.preset,
        "options": tuning_trials.spelt({k: v for k, v in record.options.items() if k in keys}),
        "epoch": record.selected_epoch,
        "val_rsum": of_epoch[record.selected_epoch],
        "is_taken": True,
    }

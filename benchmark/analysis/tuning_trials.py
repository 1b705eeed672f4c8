"""What was tried on validation: seasons/<season>/tuning.csv.

One row per trial, which `python -m benchmark tune` writes: the dataset, the preset, the options
that were tried, the epoch whose weights validation chose (1 is the first), and its rsum (0 to 600).
"""

import fcntl
from pathlib import Path

import pandas as pd

from benchmark.core.array_files import read_csv
from benchmark.core.errors import UserError
from benchmark.core.files import write_text
from benchmark.core.records import Record
from benchmark.season.parameters import Cell, Option
from benchmark.season.season_files import SEASONS

LOCK = Path(".scratch/tuning.lock")
NUMBERS = ("epoch", "val_rsum")
COLUMNS = ["dataset", "preset", "options", *NUMBERS]
FROM_YAML = {"true": "True", "false": "False", "null": "None"}  # -> as `spelt` has it


def path(season: str) -> Path:
    return SEASONS / season / "tuning.csv"


def read_trials(season: str) -> pd.DataFrame:
    """The trials of a season, in the order of the file; none where there is no file. Raises
    UserError for a damaged file and for other columns."""
    file = path(season)
    if not file.is_file():
        return pd.DataFrame(columns=COLUMNS)
    trials = read_csv(file, str).fillna("")
    if list(trials.columns) != COLUMNS:
        expected = f"the columns {', '.join(COLUMNS)}"
        raise UserError(file, expected, ", ".join(trials.columns), "correct its first line")
    for column in NUMBERS:
        numbers = pd.to_numeric(trials[column], errors="coerce")
        if numbers.isna().any():
            row = int(numbers.isna().to_numpy().argmax())
            where, found = f"{file}: row {row + 1}: {column}", repr(trials[column][row])
            raise UserError(where, "a number", found, "correct it, or remove the row")
        trials[column] = numbers
    return trials


def tried_presets(season: str, dataset: str) -> frozenset[str]:
    """The presets with a trial on a dataset."""
    trials = read_trials(season)
    return frozenset(trials["preset"][trials["dataset"] == dataset])


def add_trial(season: str, trial: dict) -> None:
    """Write one more row; rows are kept in the order of their presets, one of those that were tried
    twice. Trials that end together wait for each other."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        trials = pd.concat([read_trials(season), pd.DataFrame([trial], columns=COLUMNS)])
        trials = trials.drop_duplicates(["dataset", "preset", "options"])
        trials = trials.sort_values(["dataset", "preset"], kind="stable")
        write_text(path(season), trials.to_csv(index=False, lineterminator="\n"))


def spelt(options: dict[str, Option]) -> str:
    """Options as they stand in a row: "epochs=20 learning_rate=0.0005"."""
    return " ".join(f"{key}={options[key]}" for key in sorted(options))


def keys(options: str) -> set[str]:
    """The options that a row names."""
    return {word.partition("=")[0] for word in options.split()}


def is_taken(options: str, cell: Cell | Record) -> bool:
    """Whether a cell is trained with the options of a trial."""
    named = {key: cell.options[key] for key in keys(options) if key in cell.options}
    return _words(options) == _words(spelt(named))


def _words(options: str) -> list[str]:
    """What a row says, in any order and in one spelling: 1e-05 may stand in it as 0.00001."""
    pairs = (word.partition("=") for word in options.split())
    return sorted(f"{key}{sign}{_respelt(value)}" for key, sign, value in pairs)


def _respelt(value: str) -> str:
    try:
        return repr(float(value))
    except ValueError:
        return FROM_YAML.get(value, value)

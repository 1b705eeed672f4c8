"""What was tried on validation: seasons/<season>/tuning.csv.

One row per trial, which `rematch tune` writes: the dataset, the preset, the options that were
tried, the epoch whose weights validation chose (1 is the first), and its rsum (0 to 600).
"""

import fcntl
from pathlib import Path

import pandas as pd

from benchmark.core.errors import UserError
from benchmark.core.files import read_csv, write_text
from benchmark.core.records import Record
from benchmark.season.parameters import Cell, Option

LOCK = Path(".scratch/tuning.lock")
COLUMNS = ["dataset", "preset", "options", "epoch", "val_rsum"]


def path(season: str) -> Path:
    return Path("seasons") / season / "tuning.csv"


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
    try:
        return trials.astype({"epoch": int, "val_rsum": float})
    except ValueError as error:
        raise UserError(file, "numbers as epoch and val_rsum", error, "correct the row") from error


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


def is_taken(options: str, cell: Cell | Record) -> bool:
    """Whether a cell is trained with the options of a trial, in any order and in one spelling:
    1e-05 may stand in the row as 0.00001, True as true."""
    words = [word.partition("=") for word in options.split()]
    return all(_value(text) == _value(str(cell.options.get(key))) for key, _, text in words)


def _value(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return {"true": "True", "false": "False", "null": "None"}.get(text, text)

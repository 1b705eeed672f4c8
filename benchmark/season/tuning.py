"""What was tried on validation, in seasons/<season>/tuning.csv: a row per trial.

dataset   of the season
preset    that was trained
options   those that the trial set otherwise: "epochs=20 learning_rate=0.0005"
epoch     the best one by validation, from 1; 0: a closed form has none
val_rsum  its rsum on validation, one digit behind the point
"""

import csv
import fcntl
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from benchmark.contracts import committed
from benchmark.core.errors import UserError
from benchmark.core.files import readable, write_text
from benchmark.season.parameter_files import SEASONS
from benchmark.season.parameters import Option

LOCK = Path(".scratch/tuning.lock")
WORDS = {
    "True": True,
    "true": True,
    "False": False,
    "false": False,
    "None": None,
    "null": None,
}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One training with other options than the season's."""

    dataset: str
    preset: str
    options: Mapping[str, Option]
    epoch: int
    val_rsum: float

    def is_taken(self, options: Mapping[str, Option]) -> bool:
        """Whether a cell with these options is trained as the trial was."""
        for name, value in self.options.items():
            other = options.get(name)
            # 1 is 1.0, and not True
            if value != other or isinstance(value, bool) != isinstance(other, bool):
                return False
        return True

    def is_of(self, dataset: str, preset: str, options: Mapping[str, Option]) -> bool:
        """Whether it is the trial of just these options of a preset."""
        if (self.dataset, self.preset) != (dataset, preset):
            return False
        return self.options.keys() == options.keys() and self.is_taken(options)


COLUMNS = [field.name for field in fields(Trial)]


def file_of(season: str) -> Path:
    return SEASONS / season / "tuning.csv"


def read_trials(season: str) -> list[Trial]:
    """The trials of a season, in the order of the file; none where there is no file.
    Raises UserError for a damaged file, other columns and what is no number or no
    option."""
    file = committed(file_of(season))
    if not file.is_file():
        return []
    with readable(file, "a CSV file", "restore it"):
        lines = io.StringIO(file.read_text(encoding="utf-8"), newline="")
        columns, *rows = list(csv.reader(lines)) or [[]]
    if columns != COLUMNS:
        raise UserError(
            file,
            expected=f"the columns {', '.join(COLUMNS)}",
            found=", ".join(columns) or "no line",
            do="correct its first line",
        )
    trials = []
    for number, row in enumerate(rows, 2):
        if not row:
            continue
        try:
            dataset, preset, options, epoch, val_rsum = row
            trial = Trial(
                dataset=dataset,
                preset=preset,
                options=parsed(options),
                epoch=int(epoch),
                val_rsum=float(val_rsum),
            )
        except ValueError as error:
            raise UserError(
                f"{file}: line {number}",
                expected="KEY=VALUE options, a whole epoch and a number as val_rsum",
                found=error,
                do="correct the row",
            ) from error
        trials.append(trial)
    return trials


def add_trial(season: str, trial: Trial) -> None:
    """Write one more row, unless it is there. Rows are kept in the order of their
    presets. Trials that end together wait for each other."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        trials = read_trials(season)
        this = trial.dataset, trial.preset, trial.options
        if not any(other.is_of(*this) for other in trials):
            trials.append(trial)
        trials.sort(key=lambda each: (each.dataset, each.preset))
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(COLUMNS)
        for each in trials:
            options = written(each.options)
            cell = each.dataset, each.preset
            rows.writerow([*cell, options, each.epoch, each.val_rsum])
        write_text(file_of(season), text.getvalue())


def written(options: Mapping[str, Option]) -> str:
    """Options as they stand in a row, in the order of their names."""
    return " ".join(f"{name}={options[name]}" for name in sorted(options))


def parsed(text: str) -> dict[str, Option]:
    """Options of a row, in the order of their names; values may have spaces. Raises
    ValueError for a beginning without `=`."""
    options: dict[str, Option] = {}
    for word in sorted(filter(None, re.split(r"\s+(?=\w+=)", text.strip()))):
        name, separator, value = word.partition("=")
        if not separator:
            raise ValueError(repr(word))
        options[name] = _value(value)
    return options


def _value(text: str) -> Option:
    if text in WORDS:
        return WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

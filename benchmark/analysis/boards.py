"""What the declared grid left behind: every declared cell and no other.

A cell whose record is missing, or is not a record of this grid, is an error that names it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

from benchmark.core.errors import UserError, checked
from benchmark.core.files import read_json
from benchmark.core.provenance import Provenance, read_provenance
from benchmark.core.records import SCHEMA_VERSION, Record
from benchmark.protocol import rules
from benchmark.season.parameters import Cell, Fusion, Params
from benchmark.season.presets import Preset, presets

CARDS = Path("data/prepared")
TASKS = ("retrieval", "localisation")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One declared cell with its record and what it cost."""

    folder: Path
    record: Record
    trainings: tuple[Provenance, ...]  # one; of a fusion, those of all members
    scoring: Provenance
    history: pd.DataFrame | None  # one row an epoch; None: it has no training of its own

    @property
    def is_ok(self) -> bool:
        return self.record.status == "ok"

    @property
    def training_seconds(self) -> float:
        """Of a fusion, its members' together."""
        return sum(facts.seconds["training"] for facts in self.trainings)

    def ranks(self, way: str) -> np.ndarray:
        """Zero-based rank of every test query of a direction, in the split's order."""
        frame = pd.read_parquet(self.folder / "scores/ranks.parquet")
        return frame.loc[frame["direction"] == way, "rank"].to_numpy()

    def arrays(self, file: str) -> dict[str, np.ndarray]:
        """The arrays of scores/similarities.npz, scores/retrieved.npz or scores/samples.npz."""
        with np.load(self.folder / file, allow_pickle=False) as stored:
            return dict(stored)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A preset on a dataset, over all seeds."""

    preset: str
    row: Preset
    outcomes: list[Outcome]  # in the order of the seeds

    @property
    def played(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.is_ok]

    @property
    def method(self) -> str:
        return self.outcomes[0].record.method

    @property
    def task(self) -> str:
        return self.outcomes[0].record.task

    @cached_property
    def samples(self) -> dict[str, np.ndarray]:
        """What the first seed that left samples left for the figures; see samples.py."""
        found = (outcome.arrays("scores/samples.npz") for outcome in self.played)
        return next((arrays for arrays in found if arrays), {})

    def values(self, metric: str) -> list[float]:
        """The metric of every seed that was played to the end."""
        return [outcome.record.metrics[metric] for outcome in self.played]

    def mean(self, metric: str) -> float:
        return fmean(self.values(metric))

    def means(self) -> dict[str, float]:
        """Every metric that is a number and that all seeds have, as its mean over the seeds."""
        records = [outcome.record.metrics for outcome in self.played]
        return {
            name: self.mean(name)
            for name, value in records[0].items()
            if isinstance(value, int | float) and all(name in other for other in records)
        }


@dataclass(frozen=True, kw_only=True)
class Board:
    """A dataset with the standings on it, in season order: of all tasks, or of one."""

    dataset: str
    card: dict  # of the prepared dataset
    standings: list[Standing]

    @cached_property
    def retrieval(self) -> "Board":
        """The same dataset with nothing but standings of retrieval."""
        return self._of_task("retrieval")

    @cached_property
    def localisation(self) -> "Board":
        """The same dataset with nothing but standings of phrase localisation."""
        return self._of_task("localisation")

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions that are retrieved; cards that do not say have both."""
        return tuple(self.card.get("ways", ("i2t", "t2i")))

    @property
    def folds(self) -> int:
        """Consecutive parts of the test split that are judged on their own as well; 1: none."""
        return self.card.get("folds", 1)

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome for standing in self.standings for outcome in standing.outcomes]

    def standing(self, preset: str) -> Standing | None:
        """The standing of a preset; None where it is not of the season."""
        return next((s for s in self.standings if s.preset == preset), None)

    @property
    def ranked(self) -> list[Standing]:
        """Highest mean rsum first; the order of the season on ties. Failures are left out.

        Sums of different recalls are not compared: the tasks follow each other.
        """
        played = [standing for standing in self.standings if standing.played]
        return sorted(played, key=lambda s: (TASKS.index(s.task), -s.mean("rsum")))

    def _of_task(self, task: str) -> "Board":
        return replace(self, standings=[s for s in self.standings if s.task == task])


def read_boards(params: Params) -> list[Board]:
    """Every dataset of the season with every declared cell; raises UserError for a missing one."""
    known = presets()
    return [_board(params, dataset, known) for dataset in params.datasets]


def _board(params: Params, dataset: str, known: dict[str, tuple[str, Preset]]) -> Board:
    card = read_json(CARDS / dataset / "card.json")
    found: dict[str, list[Outcome]] = {}
    for key, cell in {**params.cells, **params.fusions}.items():
        if cell.dataset == dataset:
            outcome = _outcome(params, key, cell)
            _check_data(key, cell, outcome.record, card)
            found.setdefault(cell.preset, []).append(outcome)
    standings = [
        Standing(preset=preset, row=_row(preset, known), outcomes=outcomes)
        for preset, outcomes in found.items()
    ]
    return Board(dataset=dataset, card=card, standings=standings)


def _row(preset: str, known: dict[str, tuple[str, Preset]]) -> Preset:
    return known[preset][1] if preset in known else Preset(title=preset)


def _outcome(params: Params, key: str, cell: Cell | Fusion) -> Outcome:
    is_fusion = isinstance(cell, Fusion)
    folder = Path(cell.folder)
    trained = list(dict.fromkeys(map(Path, cell.members))) if is_fusion else [folder]
    arrays = ("scores/similarities.npz", "scores/retrieved.npz", "scores/samples.npz")
    left_behind = ("scores/cost.json", "scores/ranks.parquet", *arrays)
    _check_there(key, cell, [folder / name for name in left_behind])
    _check_there(key, cell, [path / "training/cost.json" for path in trained])
    return Outcome(
        folder=folder,
        record=_record(params, key, cell),
        trainings=tuple(read_provenance(path / "training/cost.json") for path in trained),
        scoring=read_provenance(folder / "scores/cost.json"),
        history=None if is_fusion else _history(key, cell, folder / "training/history.csv"),
    )


def _record(params: Params, key: str, cell: Cell | Fusion) -> Record:
    path = Path(cell.folder) / "record.json"
    _check_there(key, cell, [path])
    data = read_json(path)
    expected = {
        "schema_version": SCHEMA_VERSION,
        "protocol_version": rules.VERSION,
        "season": params.season,
        "dataset": cell.dataset,
        "preset": cell.preset,
        "seed": cell.seed,
    }
    for name, value in expected.items():
        if data.get(name) != value:
            raise UserError(
                f"{path}: {name}: expected {value!r}, found {data.get(name)!r}; "
                f"run: {_command(key, cell)}"
            )
    return checked(Record, data, str(path))


def _history(key: str, cell: Cell, path: Path) -> pd.DataFrame | None:
    _check_there(key, cell, [path])
    history = pd.read_csv(path)
    return history if len(history) else None


def _check_data(key: str, cell: Cell | Fusion, record: Record, card: dict) -> None:
    """Numbers of different splits, or of different files, never share a table."""
    counted = card["counts"]["test"]
    expected = {
        "split": f"{card['split']}/test",
        "images": counted["images"],
        "captions": counted["captions"],
        "manifest_sha256": card["manifest"],
    }
    if record.task == "localisation" and record.status == "ok":
        expected["phrases"] = counted.get("phrases", 0)
    for name, value in expected.items():
        if getattr(record, name) != value:
            raise UserError(
                f"{cell.folder}/record.json: {name}: expected {value!r} as in "
                f"{CARDS / cell.dataset}/card.json, found {getattr(record, name)!r}; "
                f"run: {_command(key, cell)}"
            )


def _check_there(key: str, cell: Cell | Fusion, paths: Iterable[Path]) -> None:
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path}: not found: {key} is not played; run: {_command(key, cell)}")


def _command(key: str, cell: Cell | Fusion) -> str:
    return f"dvc repro {'fuse' if isinstance(cell, Fusion) else 'evaluate'}@{key}"

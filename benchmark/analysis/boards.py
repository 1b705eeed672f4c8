"""From the records of a season to outcomes, standings and boards.

outcome    one declared cell, (dataset, preset, seed), with its record and its cost
standing   one preset on a dataset, with the outcomes of all its seeds
board      one dataset, with the standings of all presets that are played on it

A season declares its cells. Every declared cell is read, and no other; one without a record, or
with a record of another season, protocol or data, is an error that names the command to run.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

from benchmark.analysis import record_checks, score_files, split_tables
from benchmark.analysis.card_checks import read_card
from benchmark.analysis.rank_files import read_ranks
from benchmark.analysis.tuning_trials import tried_presets
from benchmark.core.array_files import check_bytes, read_arrays, read_csv
from benchmark.core.errors import UserError, checked, corrected_by
from benchmark.core.json_objects import read_object
from benchmark.core.provenance import Provenance, read_provenance
from benchmark.core.records import SCHEMA_VERSION, Record
from benchmark.papers.own_claims import own_claims
from benchmark.papers.printed_tables import Paper
from benchmark.protocol import METRICS, VERSION
from benchmark.protocol.metrics import FORMULA_VERSIONS, outdated
from benchmark.season.parameters import BROUGHT, Brought, Cell, Fusion, Params
from benchmark.season.presets import Preset, own_presets, presets

CARDS = Path("data/prepared")
RANKED_BY = {"retrieval": "rsum", "localisation": "p2r_r1"}  # task -> metric
TASKS = tuple(RANKED_BY)
MIN_TEST_QUERIES = 100  # of every direction: fewer let nothing be concluded
OWN_PICTURES = "folder"  # module of datasets/
QUERIES = {"i2t": "images", "t2i": "captions", "p2r": "phrases"}  # direction -> what is counted


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One declared cell with its record and what it cost."""

    folder: Path
    record: Record
    trainings: tuple[Provenance, ...]  # its training's; of a fusion, those of all members; none
    # where it was brought along
    scoring: Provenance
    history: pd.DataFrame | None  # one row per epoch; None: it has no training of its own

    @property
    def is_ok(self) -> bool:
        """Whether the cell has a result."""
        return self.record.status == "ok"

    @property
    def has_scores(self) -> bool:
        """Whether a result is of scores: of ranks that were brought along there are none."""
        return "overlap_s" in self.record.metrics

    @property
    def training_seconds(self) -> float:
        """Duration of the training; of a fusion, of all its members together."""
        return sum(facts.seconds["training"] for facts in self.trainings)

    def ranks(self, direction: str) -> np.ndarray:
        """Zero-based rank of every test query of a direction, in the split's order."""
        frame = read_ranks(self.folder / "scores/ranks.parquet")
        return frame.loc[frame["direction"] == direction, "rank"].to_numpy()

    def arrays(self, file: str) -> dict[str, np.ndarray]:
        """The arrays of scores/similarities.npz, scores/retrieved.npz or scores/samples.npz."""
        return read_arrays(self.folder / file)


@dataclass(frozen=True, kw_only=True, eq=False)
class Standing:
    """One preset on a dataset, over all its seeds."""

    preset: str
    row: Preset
    outcomes: list[Outcome]  # in the order of the seeds

    @property
    def played(self) -> list[Outcome]:
        """The outcomes with a result."""
        return [outcome for outcome in self.outcomes if outcome.is_ok]

    @property
    def has_scores(self) -> bool:
        """Whether all results are of scores, none of ranks alone."""
        return all(outcome.has_scores for outcome in self.played)

    @property
    def method(self) -> str:
        return self.outcomes[0].record.method

    @property
    def is_own(self) -> bool:
        """Whether the method is a file of the season's, of which no paper prints anything."""
        return self.method.endswith(".py")

    @property
    def is_brought(self) -> bool:
        """Whether its scores were made elsewhere: nothing was trained or timed here."""
        return self.outcomes[0].record.family == BROUGHT

    @property
    def task(self) -> str:
        """retrieval or localisation"""
        return self.outcomes[0].record.task

    @cached_property
    def samples(self) -> dict[str, np.ndarray]:
        """The samples for figures of the first seed that has some; empty where none has."""
        stored = (outcome.arrays("scores/samples.npz") for outcome in self.played)
        return next((arrays for arrays in stored if arrays), {})

    @cached_property
    def samples_seed(self) -> int | None:
        """The seed whose `samples` are drawn; None where no seed has some."""
        return next((o.record.seed for o in self.played if o.arrays("scores/samples.npz")), None)

    def values(self, metric: str) -> list:
        """The metric of every seed with a result; empty if the record of one of them lacks it."""
        records = [outcome.record.metrics for outcome in self.played]
        if not all(metric in metrics for metrics in records):
            return []
        return [metrics[metric] for metrics in records]

    def by_fold(self, metric: str) -> list[list[float]]:
        """The metric (i2t_r1, without "fold_") in every fold, one list per seed with a result;
        empty if the record of one of them lacks it."""
        records = [outcome.record.metrics.get("fold_values", {}) for outcome in self.played]
        if not all(metric in values for values in records):
            return []
        return [values[metric] for values in records]

    def mean(self, metric: str) -> float | None:
        """Mean of `values`; None where they are empty."""
        values = self.values(metric)
        return fmean(values) if values else None

    def means(self) -> dict[str, float]:
        """Every metric that is a number and that all seeds have, as its mean over the seeds."""
        numbers = [
            name
            for name, value in self.played[0].record.metrics.items()
            if isinstance(value, int | float)
        ]
        return {name: self.mean(name) for name in numbers if self.values(name)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Board:
    """One dataset with the standings on it, in season order: of all tasks, or of one."""

    dataset: str
    card: dict  # of the prepared dataset
    standings: list[Standing]
    own_claims: dict[str, Paper] = field(default_factory=dict)  # those of the season file
    tried: frozenset[str] = frozenset()  # presets with trials on validation
    whole: "Board | None" = None  # of one task: that of all tasks

    @cached_property
    def retrieval(self) -> "Board":
        """The same dataset with its standings of retrieval only."""
        return self._of_task("retrieval")

    @cached_property
    def localisation(self) -> "Board":
        """The same dataset with its standings of phrase localisation only."""
        return self._of_task("localisation")

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions that are retrieved, i2t and t2i or one of them."""
        return tuple(self.card.get("ways", ("i2t", "t2i")))

    def test_queries(self, task: str) -> int:
        """Number of test queries of a task, in the direction that has the fewest."""
        counted = self.card["counts"]["test"]
        directions = ("p2r",) if task == "localisation" else self.ways
        return min(counted.get(QUERIES[direction], 0) for direction in directions)

    def is_small(self, task: str) -> bool:
        """Whether a task has too few test queries for any conclusion."""
        return self.test_queries(task) < MIN_TEST_QUERIES

    @property
    def has_own_pictures(self) -> bool:
        """Whether the pictures are a folder of the user's, no dataset of a paper."""
        return self.card.get("reader") == OWN_PICTURES

    @property
    def folds(self) -> int:
        """How many consecutive parts of the test split are ranked on their own as well; 1: none."""
        return self.card.get("folds", 1)

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of all standings."""
        return [outcome for standing in self.standings for outcome in standing.outcomes]

    def standing(self, preset: str) -> Standing | None:
        """The standing of a preset; None where it is not of the season."""
        return next((s for s in self.standings if s.preset == preset), None)

    @property
    def ranked(self) -> list[Standing]:
        """The standings with a result: retrieval, highest mean rsum first, then localisation,
        highest mean R@1 first; season order on ties."""
        with_result = [standing for standing in self.standings if standing.played]
        return sorted(with_result, key=lambda s: (TASKS.index(s.task), -s.mean(RANKED_BY[s.task])))

    def _of_task(self, task: str) -> "Board":
        of_task = [standing for standing in self.standings if standing.task == task]
        return replace(self, standings=of_task, whole=self.whole or self)


def read_boards(params: Params) -> list[Board]:
    """One board per dataset of the season. Raises UserError for a cell that is not played, or
    that was played with other data or another protocol."""
    methods_and_presets = presets() | own_presets(params.methods)
    boards = [_board(params, dataset, methods_and_presets) for dataset in params.datasets]
    titles = [board.card["title"] for board in boards]
    for board, title in zip(boards, titles, strict=True):
        if titles.count(title) > 1:  # splits or partitions of one dataset
            board.card["title"] = f"{title} ({board.dataset})"
    return boards


def _board(params: Params, dataset: str, methods_and_presets: dict) -> Board:
    with corrected_by(f"python -m benchmark.prepare {dataset}"):
        card = read_card(CARDS / dataset / "card.json")
    if card["reader"] == OWN_PICTURES:  # all such folders have the same title
        card["title"] = dataset
    outcomes_of: dict[str, list[Outcome]] = {}
    for key, cell in {**params.cells, **params.fusions, **params.brought}.items():
        if cell.dataset == dataset:
            outcome = _outcome(params, key, cell)
            _check_data(key, cell, outcome.record, card)
            outcomes_of.setdefault(cell.preset, []).append(outcome)
    _check_results(dataset, card, [o for outcomes in outcomes_of.values() for o in outcomes])
    standings = [
        Standing(preset=preset, row=_row(outcomes[0], methods_and_presets), outcomes=outcomes)
        for preset, outcomes in outcomes_of.items()
    ]
    own, tried = own_claims(params), tried_presets(params.season, dataset)
    return Board(dataset=dataset, card=card, standings=standings, own_claims=own, tried=tried)


def _row(outcome: Outcome, methods_and_presets: dict[str, tuple[str, Preset]]) -> Preset:
    """The preset's row; a title alone for a method that is no file of methods/."""
    preset = outcome.record.preset
    if outcome.record.family == BROUGHT:
        return Preset(title=f"{preset} (brought along)")
    if preset not in methods_and_presets:
        return Preset(title=preset)
    return methods_and_presets[preset][1]


def _outcome(params: Params, key: str, cell: Cell | Fusion | Brought) -> Outcome:
    folder = Path(cell.folder)
    trained = _trained(cell)
    files = ("cost.json", "ranks.parquet", "similarities.npz", "retrieved.npz", "samples.npz")
    _check_there(key, cell, [folder / "scores" / name for name in files])
    _check_there(key, cell, [path / "training/cost.json" for path in trained])
    record = _record(params, key, cell)
    with corrected_by(_command(cell)):
        check_bytes(folder, record.files)
        costs = [path / "training/cost.json" for path in trained]
        return Outcome(
            folder=folder,
            record=record,
            trainings=tuple(_cost(path, ("training",)) for path in costs),
            scoring=_cost(folder / "scores/cost.json", record_checks.durations(record)),
            history=_history(key, cell, record) if isinstance(cell, Cell) else None,
        )


def _trained(cell: Cell | Fusion | Brought) -> list[Path]:
    """The folders of the trainings that a cell rests on."""
    if isinstance(cell, Brought):
        return []
    members = cell.members if isinstance(cell, Fusion) else [cell.folder]
    return list(dict.fromkeys(map(Path, members)))


def _cost(path: Path, needed: tuple[str, ...]) -> Provenance:
    facts = read_provenance(path)
    record_checks.check_cost(facts, str(path), needed)
    return facts


def _record(params: Params, key: str, cell: Cell | Fusion | Brought) -> Record:
    path = Path(cell.folder) / "record.json"
    _check_there(key, cell, [path])
    with corrected_by(_command(cell)):
        data = read_object(path)
    expected = {
        "schema_version": SCHEMA_VERSION,
        "protocol_version": VERSION,
        "season": params.season,
        "dataset": cell.dataset,
        "preset": cell.preset,
        "seed": cell.seed,
    }
    for name, value in expected.items():
        if data.get(name) != value:
            raise UserError(
                f"{path}: {name}", repr(value), repr(data.get(name)), f"run: {_command(cell)}"
            )
    with corrected_by(_command(cell)):
        record = checked(Record, data, str(path))
        record_checks.check_kinds(record, str(path))
    for name in outdated(record.metrics):
        raise UserError(
            f"{path}: metrics.{name}",
            f"version {METRICS[name].version} of its formula",
            f"version {record.metrics.get(FORMULA_VERSIONS, {}).get(name, 1)}",
            f"run: {_command(cell)}",
        )
    return record


def _history(key: str, cell: Cell, record: Record) -> pd.DataFrame | None:
    path = Path(cell.folder) / "training/history.csv"
    _check_there(key, cell, [path])
    history = read_csv(path)
    score_files.check_history(history, record, str(path))
    return history if len(history) else None


def _check_data(key: str, cell: Cell | Fusion | Brought, record: Record, card: dict) -> None:
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
    recorded = record.model_dump()
    for name, value in expected.items():
        if recorded[name] != value:
            raise UserError(
                f"{cell.folder}/record.json: {name}",
                f"{value!r} as in {CARDS / cell.dataset}/card.json",
                repr(recorded[name]),
                f"run: {_command(cell)}",
            )


def _check_results(dataset: str, card: dict, outcomes: list[Outcome]) -> None:
    """What cells left behind is of the test split. Without a result nothing of it is read."""
    with_result = [outcome for outcome in outcomes if outcome.is_ok]
    if with_result:
        with corrected_by(f"python -m benchmark.prepare {dataset}"):
            queries = split_tables.test_queries(dataset, card)
    for outcome in with_result:
        with corrected_by(_command(outcome)):
            _check_scores(outcome, card, queries)


def _check_scores(outcome: Outcome, card: dict, queries: dict[str, np.ndarray]) -> None:
    record, scores = outcome.record, outcome.folder / "scores"
    path = str(outcome.folder / "record.json")
    record_checks.check_complete(record, card, path)
    ranks = read_ranks(scores / "ranks.parquet")
    score_files.check_ranks(ranks, record, queries, str(scores / "ranks.parquet"))
    if "scores/ranks.parquet" in record.files:
        record_checks.check_agreement(record, ranks, path)
    samples = scores / "samples.npz"
    score_files.check_samples(read_arrays(samples), record, str(samples))
    if record.task == "retrieval" and outcome.has_scores:
        retrieved, similarities = scores / "retrieved.npz", scores / "similarities.npz"
        ways = card.get("ways", ["i2t", "t2i"])
        score_files.check_retrieved(read_arrays(retrieved), record, ways, str(retrieved))
        score_files.check_similarities(read_arrays(similarities), str(similarities))


def _check_there(key: str, cell: Cell | Fusion | Brought, paths: Iterable[Path]) -> None:
    for path in paths:
        if not path.is_file():
            raise UserError(path, f"a file of {key}", "nothing", f"run: {_command(cell)}")


def _command(cell: Cell | Fusion | Brought | Outcome) -> str:
    """Plays the cell again: its stage in the pipeline of its preset."""
    *_, season, dataset, preset, seed = Path(cell.folder).parts
    if isinstance(cell, Brought) or isinstance(cell, Outcome) and cell.record.family == BROUGHT:
        return f"python -m benchmark score --season {season} --dataset {dataset} --name {preset}"
    return f"dvc repro seasons/{season}/pipelines/{dataset}/{preset}/dvc.yaml:evaluate-{seed}"

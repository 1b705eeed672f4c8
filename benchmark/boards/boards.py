"""From the records of a season to outcomes, rows and boards.

outcome    one declared cell, (dataset, preset, seed), with its record
row        one preset on a dataset, with the outcomes of all its seeds
board      one dataset, with the rows of all presets that are run on it

A season declares its cells. Every declared cell is read, and no other; one without a record, or
with a record of other data or another protocol, is an error that names the command to run.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

from benchmark.boards.tuning_trials import read_trials
from benchmark.core.errors import UserError, corrected_by
from benchmark.core.files import read_object
from benchmark.core.records import RECORD, Provenance, Record, read_record
from benchmark.data import prepared_tables, results
from benchmark.data.results import Scores
from benchmark.papers.printed_tables import Paper, own_claims
from benchmark.scoring import VERSION, has_sibling
from benchmark.season.parameters import BROUGHT, Brought, Cell, Fusion, Params
from benchmark.season.presets import Preset, own_presets, presets

RANKED_BY = {"retrieval": "rsum", "localisation": "p2r_r1"}  # task -> metric
TASKS = tuple(RANKED_BY)
MIN_TEST_QUERIES = 100  # of every direction: fewer let nothing be concluded
OWN_IMAGES = "folder"  # module of datasets/
QUERIES = {"i2t": "images", "t2i": "captions", "p2r": "phrases"}  # direction -> what is counted


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """One declared cell with its record."""

    folder: Path
    record: Record
    trainings: tuple[Provenance, ...] = ()  # its training's; of a fusion, those of all members;
    # none of an external row

    @property
    def is_ok(self) -> bool:
        """Whether the cell has a result."""
        return self.record.status == "ok"

    @property
    def has_scores(self) -> bool:
        """Whether a result is of scores: of external ranks there are none."""
        return "overlap_s" in self.record.metrics

    @property
    def scoring(self) -> Provenance:
        """What its scoring cost."""
        return self.record.cost.scoring

    @property
    def training_seconds(self) -> float:
        """Duration of the training; of a fusion, of all its members together."""
        return sum(facts.seconds["training"] for facts in self.trainings)

    @cached_property
    def history(self) -> pd.DataFrame | None:
        """One row per epoch; None: it has no training of its own."""
        return self.record.epochs

    @cached_property
    def scores(self) -> Scores:
        """Its ranks, histograms of scores, and S of resamples of the images."""
        is_kept = (self.folder / results.RANKS).is_file()
        return results.read_scores(self.folder, self.record) if is_kept else Scores()

    def ranks(self, direction: str) -> np.ndarray:
        """Zero-based rank of every test query of a direction, (Q,), in the split's order."""
        return self.scores.best(direction)

    @cached_property
    def retrieved(self) -> dict[str, np.ndarray]:
        """The first items of every query by direction; empty where they are not kept."""
        is_kept = results.kept(self.folder, results.RETRIEVED).is_file()
        return results.read_retrieved(self.folder) if is_kept else {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """One preset on a dataset, over all its seeds."""

    preset: str
    declared: Preset  # of methods/*.yaml; a title alone for a method that is no file of it
    outcomes: list[Outcome]  # in the order of the seeds

    @property
    def title(self) -> str:
        return self.declared.title

    @property
    def record(self) -> Record:
        """Of the first seed."""
        return self.outcomes[0].record

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
        return self.record.method

    @property
    def is_own(self) -> bool:
        """Whether the method is a file of the season's, of which no paper prints anything."""
        return self.method.endswith(".py")

    @property
    def is_external(self) -> bool:
        """Whether its scores were made elsewhere: nothing was trained or timed here."""
        return self.record.family == BROUGHT

    @property
    def task(self) -> str:
        """retrieval or localisation"""
        return self.record.task

    @cached_property
    def _sampled(self) -> tuple[int | None, dict[str, np.ndarray]]:
        for outcome in self.played:
            if results.kept(outcome.folder, results.SAMPLES).is_file():
                if arrays := results.read_samples(outcome.folder):
                    return outcome.record.seed, arrays
        return None, {}

    @cached_property
    def samples(self) -> dict[str, np.ndarray]:
        """The samples for figures of the first seed that has some; empty where none has."""
        return self._sampled[1]

    @cached_property
    def samples_seed(self) -> int | None:
        """The seed whose `samples` are drawn; None where no seed has some."""
        return self._sampled[0]

    def values(self, metric: str) -> list:
        """The metric of every seed with a result; empty if the record of one of them lacks it."""
        records = [outcome.record.metrics for outcome in self.played]
        if not all(metric in metrics for metrics in records):
            return []
        return [metrics[metric] for metrics in records]

    def by_fold(self, metric: str) -> list[list[float]]:
        """The metric (i2t_r1, without "fold_") in every fold, one list per seed with a result;
        empty if the record of one of them lacks it."""
        folds = self.values("fold_values")
        return [of[metric] for of in folds] if all(metric in of for of in folds) else []

    def mean(self, metric: str) -> float | None:
        """Mean of `values`; None where they are empty."""
        values = self.values(metric)
        return fmean(values) if values else None

    def means(self) -> dict[str, float]:
        """Every metric that is a number and that all seeds have, as its mean over the seeds."""
        metrics = self.played[0].record.metrics
        numbers = [name for name, value in metrics.items() if isinstance(value, int | float)]
        return {name: self.mean(name) for name in numbers if self.values(name)}


@dataclass(frozen=True, eq=False)
class Groups:
    """The images of the queries of a test split, and their groups: an image is one of its own, or
    belongs to a person."""

    image_of_query: dict[str, np.ndarray]  # direction -> (Q,) in [0, I)
    of_image: np.ndarray  # (I,) in [0, G)

    @property
    def count(self) -> int:
        return int(self.of_image.max()) + 1

    def of_queries(self, direction: str) -> np.ndarray:
        """(Q,) in [0, G)."""
        return self.of_image[self.image_of_query[direction]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Board:
    """One dataset with the rows on it, in season order: of all tasks, or of one."""

    dataset: str
    card: dict  # of the prepared dataset
    rows: list[Row]
    own_claims: dict[str, Paper] = field(default_factory=dict)  # those of the season file
    tried: frozenset[str] = frozenset()  # presets with trials on validation
    whole: "Board | None" = None  # of one task: that of all tasks

    @property
    def title(self) -> str:
        return self.card["title"]

    @cached_property
    def retrieval(self) -> "Board":
        """The same dataset with its rows of retrieval only."""
        return self._of_task("retrieval")

    @cached_property
    def localisation(self) -> "Board":
        """The same dataset with its rows of phrase localisation only."""
        return self._of_task("localisation")

    def _of_task(self, task: str) -> "Board":
        of_task = [row for row in self.rows if row.task == task]
        return replace(self, rows=of_task, whole=self.whole or self)

    @cached_property
    def groups(self) -> Groups:
        """Of the prepared tables."""
        data = prepared_tables.read(self.dataset)
        split = data.split("test")
        images = pd.Index(data.images["image_id"].iloc[split.image_rows])
        of_caption = split.image_of_caption
        image_of_query = {
            "i2t": np.arange(len(images)),
            "t2i": of_caption,
            "s2s": of_caption[has_sibling(of_caption)],
            "p2r": images.get_indexer(data.regions["image_id"].iloc[split.region_rows]),
        }
        return Groups(image_of_query, split.group_of_image)

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions that are retrieved, i2t and t2i or one of them."""
        return tuple(self.card.get("ways", ("i2t", "t2i")))

    @property
    def folds(self) -> int:
        """How many consecutive parts of the test split are ranked on their own as well; 1: none."""
        return self.card.get("folds", 1)

    def test_queries(self, task: str) -> int:
        """Number of test queries of a task, in the direction that has the fewest."""
        counted = self.card["counts"]["test"]
        directions = ("p2r",) if task == "localisation" else self.ways
        return min(counted.get(QUERIES[direction], 0) for direction in directions)

    def is_small(self, task: str) -> bool:
        """Whether a task has too few test queries for any conclusion."""
        return self.test_queries(task) < MIN_TEST_QUERIES

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of all rows."""
        return [outcome for row in self.rows for outcome in row.outcomes]

    def row(self, preset: str) -> Row | None:
        """The row of a preset; None where it is not of the season."""
        return next((row for row in self.rows if row.preset == preset), None)

    @property
    def ranked(self) -> list[Row]:
        """The rows with a result: retrieval, highest mean rsum first, then localisation, highest
        mean R@1 first; season order on ties."""
        rows = [row for row in self.rows if row.played]
        return sorted(rows, key=lambda row: (TASKS.index(row.task), -row.mean(RANKED_BY[row.task])))


def read_boards(params: Params) -> list[Board]:
    """One board per dataset of the season. Raises UserError for a cell that was not run, or that
    was run with other data or another protocol."""
    boards = [_board(params, dataset) for dataset in params.datasets]
    titles = [board.title for board in boards]
    for board in boards:
        if titles.count(board.title) > 1:  # splits or partitions of one dataset
            board.card["title"] = f"{board.title} ({board.dataset})"
    return boards


def _board(params: Params, dataset: str) -> Board:
    with corrected_by(f"rematch prepare {dataset}"):
        card = read_object(prepared_tables.ROOT / dataset / "card.json")
    if card["reader"] == OWN_IMAGES:  # all such folders have the same title
        card["title"] = dataset
    outcomes_of: dict[str, list[Outcome]] = {}
    for cell in (params.cells | params.fusions | params.brought).values():
        if cell.dataset == dataset:
            outcomes_of.setdefault(cell.preset, []).append(_outcome(params, cell, card))
    known, rows = presets() | own_presets(params.methods), []
    for preset, outcomes in outcomes_of.items():
        declared = known[preset][1] if preset in known else Preset(title=preset)
        if outcomes[0].record.family == BROUGHT:
            declared = Preset(title=f"{preset} (external)")
        rows.append(Row(preset=preset, declared=declared, outcomes=outcomes))
    trials = read_trials(params.season)
    tried = frozenset(trials["preset"][trials["dataset"] == dataset])
    return Board(dataset=dataset, card=card, rows=rows, own_claims=own_claims(params), tried=tried)


def _outcome(params: Params, cell: Cell | Fusion | Brought, card: dict) -> Outcome:
    """Numbers of different splits, files or protocols never share a table."""
    folder, counted = Path(cell.folder), card["counts"]["test"]
    do = f"rematch play {params.season}"
    if isinstance(cell, Brought):
        do = f"rematch score --season {params.season} --dataset {cell.dataset} --name {cell.preset}"
    with corrected_by(do):
        record = read_record(folder)
        expected = {
            "protocol_version": VERSION,
            "season": params.season,
            "dataset": cell.dataset,
            "preset": cell.preset,
            "seed": cell.seed,
            "split": f"{card['split']}/test",
            "images": counted["images"],
            "captions": counted["captions"],
            "manifest_sha256": card["manifest"],
        }
        if record.task == "localisation" and record.status == "ok":
            expected["phrases"] = counted.get("phrases", 0)
        for name, value in expected.items():
            if (found := getattr(record, name)) != value:
                raise UserError(f"{folder}/{RECORD}: {name}", repr(value), repr(found))
        members = dict.fromkeys(cell.members) if isinstance(cell, Fusion) else ()
        records = [read_record(Path(member)) for member in members] or [record]
    trainings = tuple(of.cost.training for of in records if of.cost.training)
    return Outcome(folder=folder, record=record, trainings=trainings)

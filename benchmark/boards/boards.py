"""From the records of a season to outcomes, rows and boards.

outcome    one declared cell, (dataset, preset, seed), with its record
row        one preset on a dataset, with the outcomes of all its seeds
board      one dataset, with the rows of all presets that are run on it

A season declares its cells. Every declared cell is read, and no other; those without a
record are named, and the rest is shown; a record of other data or another protocol is
an error that names the command to run.

What was tried on validation stands in seasons/<season>/tuning.csv. One row per trial,
which `rematch tune` writes: the dataset, the preset, the options that were tried, the
epoch whose weights validation chose (1 is the first), and its rsum (0 to 600).
"""

import fcntl
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

from benchmark.core.errors import UserError, corrected_by
from benchmark.core.files import read_csv, write_text
from benchmark.core.records import Provenance, Record
from benchmark.data import prepared_tables, results
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import (
    COSTS,
    EXTERNAL,
    RECORDS,
    RESULTS,
    RETRIEVED,
    SAMPLES,
    CellResult,
    Ranks,
    Scores,
)
from benchmark.papers.printed_tables import Paper, own_claims
from benchmark.scoring import VERSION
from benchmark.scoring.metrics import retrieval_metrics, rsum_terms
from benchmark.scoring.relevance import LayerPairs, layers_of
from benchmark.season.parameters import BROUGHT, Brought, Cell, Fusion, Option, Params
from benchmark.season.plugins import Preset, corrected_presets, own_presets, presets

RANKED_BY = {"retrieval": "rsum", "localisation": "p2r_r1"}  # task -> metric
TASKS = tuple(RANKED_BY)
MIN_TEST_QUERIES = 100  # of every direction: fewer let nothing be concluded
NAMED = 5  # of the cells that were not run
OWN_IMAGES = "folder"  # module of datasets/
COLUMNS = ["dataset", "preset", "options", "epoch", "val_rsum"]  # of tuning.csv
LOCK = Path(".scratch/tuning.lock")
# direction -> what is counted
QUERIES = {"i2t": "images", "t2i": "captions", "p2r": "phrases"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """One declared cell with its record."""

    kept: CellResult
    record: Record  # under a layer of relevance: with other metrics than the kept one
    # its training's; of a fusion, those of all members; none of an external row
    trainings: tuple[Provenance, ...] = ()
    # under a layer of relevance: the ranks of its queries
    of_layer: Scores | None = None

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
        return self.kept.costs.scoring

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
        if self.of_layer:
            return self.of_layer
        return self.kept.scores

    def ranks(self, direction: str) -> np.ndarray:
        """Zero-based rank of every test query of a direction, (Q,), in the split's
        order."""
        return self.scores.best(direction)

    @cached_property
    def retrieved(self) -> dict[str, np.ndarray]:
        """The first items of every query by direction; empty where they are not
        kept."""
        return self.kept.retrieved if self.kept.has(RETRIEVED) else {}

    def by(
        self, layer: Mapping[str, LayerPairs], kept_as: str = ""
    ) -> "Outcome | None":
        """The outcome by a layer of relevance, by its directions: from the ranks of all
        right items where they are kept under the name of the layer, else from the first
        answers to each query, which tell R@K and rsum. None without both."""
        ranks, is_whole = {}, True
        for way, pairs in layer.items():
            found = self.scores.ranks.get(RankKey(way, kept_as))
            if found is None or not np.array_equal(
                found.counts, pairs.counts[pairs.queries]
            ):
                if way not in self.retrieved:  # and what is kept is of other judgements
                    return None
                found, is_whole = pairs.first_right(self.retrieved[way]), False
            ranks[way] = found
        return self._with(ranks, () if is_whole else (*rsum_terms(ranks), "rsum"))

    def on(self, layer: Mapping[str, LayerPairs]) -> "Outcome | None":
        """The outcome by `own`, on the queries of a layer alone. None without ranks of
        them."""
        ranks = {}
        for way, pairs in layer.items():
            of_all = self.scores.ranks.get(RankKey(way))
            if of_all is None:
                return None
            ranks[way] = of_all.at(pairs.counts > 0)
        return self._with(ranks)

    def _with(self, ranks: dict[str, Ranks], known: Sequence[str] = ()) -> "Outcome":
        """With the metrics that follow from other ranks, or those that are known of
        them."""
        found = retrieval_metrics(ranks)
        found = {name: found[name] for name in known or found}
        record = self.record.model_copy(update={"metrics": found})
        by_key = {RankKey(way): of_way for way, of_way in ranks.items()}
        return replace(self, record=record, of_layer=Scores(ranks=by_key))


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """One preset on a dataset, over all its seeds."""

    preset: str
    # of methods/*.yaml; a title alone for a method that is no file of it
    declared: Preset
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
    def network(self) -> str | None:
        """The image network whose features it was fed; None where that is not known."""
        return self.record.image_features.get("settings", {}).get("network")

    @property
    def costs(self) -> list[Provenance]:
        """Of all trainings and scorings with a result."""
        return [facts for o in self.played for facts in (*o.trainings, o.scoring)]

    @property
    def is_own(self) -> bool:
        """Whether the method is a file of the season's, of which no paper prints
        anything."""
        return self.method.endswith(".py")

    @property
    def has_paper(self) -> bool:
        """Whether a paper has its network and its encoder."""
        return self.declared.of_paper and not self.is_own

    @property
    def is_external(self) -> bool:
        """Whether its scores were made elsewhere: nothing was trained or timed here."""
        return self.record.family == BROUGHT

    @property
    def task(self) -> str:
        """retrieval or localisation"""
        return self.record.task

    @cached_property
    def samples_seed(self) -> int | None:
        """The first seed that has `samples`; None where none has."""
        kept = (o for o in self.played if o.kept.has(SAMPLES))
        return next((o.record.seed for o in kept if o.kept.samples), None)

    @cached_property
    def samples(self) -> dict[str, np.ndarray]:
        """The samples for figures of `samples_seed`; empty where no seed has some."""
        of_seed = (o for o in self.played if o.record.seed == self.samples_seed)
        return next((o.kept.samples for o in of_seed), {})

    def values(self, metric: str) -> list:
        """The metric of every seed with a result; empty if the record of one of them
        lacks it."""
        records = [outcome.record.metrics for outcome in self.played]
        return (
            [of[metric] for of in records]
            if all(metric in of for of in records)
            else []
        )

    def by_fold(self, metric: str) -> list[list[float]]:
        """The metric (i2t_r1, without "fold_") in every fold, one list per seed with a
        result; empty if the record of one of them lacks it."""
        folds = self.values("fold_values")
        return [of[metric] for of in folds] if all(metric in of for of in folds) else []

    def mean(self, metric: str) -> float | None:
        """Mean of `values`; None where they are empty."""
        values = self.values(metric)
        return fmean(values) if values else None

    def means(self) -> dict[str, float]:
        """Every metric that is a number and that all seeds have, as its mean over the
        seeds."""
        metrics = self.played[0].record.metrics
        numbers = [
            name for name, value in metrics.items() if isinstance(value, int | float)
        ]
        return {name: self.mean(name) for name in numbers if self.values(name)}


@dataclass(frozen=True, eq=False)
class Groups:
    """The images of the queries of a test split, and their groups: an image is one of
    its own, or belongs to a person."""

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
    # those of the season file
    own_claims: dict[str, Paper] = field(default_factory=dict)
    # names of the options that each trial set, by preset
    tried: dict[str, list[frozenset[str]]] = field(default_factory=dict)
    whole: "Board | None" = None  # of one task: that of all tasks
    missing: tuple[str, ...] = ()  # keys of declared cells that were not run
    # the layer of relevance by direction; empty: `own`
    asked: Mapping[str, LayerPairs] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.card["title"]

    @cached_property
    def retrieval(self) -> "Board":
        """The same dataset with its rows of retrieval only."""
        rows = [row for row in self.rows if row.task == "retrieval"]
        return replace(self, rows=rows, whole=self.whole or self)

    @cached_property
    def localisation(self) -> "Board":
        """The same dataset with its rows of phrase localisation only."""
        rows = [row for row in self.rows if row.task == "localisation"]
        return replace(self, rows=rows, whole=self.whole or self)

    @cached_property
    def layers(self) -> dict[str, dict[str, LayerPairs]]:
        """The layers of relevance beside `own`, by name and direction."""
        return (
            layers_of(prepared_tables.read(self.dataset))
            if self.card.get("layers")
            else {}
        )

    def under(self, name: str) -> "Board":
        """The rows of retrieval by a layer of relevance: its queries, their ranks, and
        the metrics that follow from these."""
        return self.judged(
            self.layers[name], lambda outcome, layer: outcome.by(layer, name)
        )

    def judged(self, layer: Mapping[str, LayerPairs], judge: Callable) -> "Board":
        """The rows of retrieval whose outcomes all have one by a layer, as `judge`
        says."""
        found = [
            (row, [judge(o, layer) for o in row.played]) for row in self.retrieval.rows
        ]
        rows = [replace(row, outcomes=of) for row, of in found if of and all(of)]
        queries = {QUERIES[way]: len(pairs.queries) for way, pairs in layer.items()}
        counts = self.card["counts"] | {"test": self.card["counts"]["test"] | queries}
        card = self.card | {"ways": list(layer), "counts": counts}
        return replace(self, card=card, rows=rows, whole=None, asked=layer)

    @cached_property
    def groups(self) -> Groups:
        """Of the test queries, or of those that a layer asks."""
        images = prepared_tables.read_queries(self.dataset)
        images |= {way: images[way][layer.queries] for way, layer in self.asked.items()}
        return Groups(images, images.pop("group"))

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions that are retrieved, i2t and t2i or one of them."""
        return tuple(self.card.get("ways", ("i2t", "t2i")))

    @property
    def folds(self) -> int:
        """How many consecutive parts of the test split are ranked on their own as well;
        1: none."""
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
        return [outcome for row in self.rows for outcome in row.outcomes]

    def row(self, preset: str) -> Row | None:
        """The row of a preset; None where it is not of the season."""
        return next((row for row in self.rows if row.preset == preset), None)

    @property
    def ranked(self) -> list[Row]:
        """The rows with a result: retrieval, highest mean rsum first, then
        localisation, highest mean R@1 first; season order on ties."""
        rows = [row for row in self.rows if row.played]
        return sorted(
            rows,
            key=lambda row: (TASKS.index(row.task), -row.mean(RANKED_BY[row.task])),
        )


def read_boards(params: Params) -> list[Board]:
    """One board per dataset with a cell that was run; the others are named on stderr.
    Raises UserError where none was run, and for one that was run with other data or
    another protocol."""
    cells = params.cells | params.fusions | params.brought
    with corrected_by(f"rematch play {params.season}"):
        kept = {
            name: results.read_kept(params.season, name) for name in params.datasets
        }
    missing = [
        key for key, cell in cells.items() if not _was_run(cell, kept[cell.dataset])
    ]
    do = f"rematch play {params.season}"
    if missing and len(missing) == len(cells):
        first = cells[missing[0]]
        where = f"{RESULTS / params.season / first.dataset / RECORDS}: {first.name}"
        raise UserError(where, "a record", "nothing", f"run: {do}")
    if missing:
        some = ", ".join(missing[:NAMED])
        if len(missing) > NAMED:
            some += ", ..."
        told = f"{len(missing)} of {len(cells)} cells were not run, and are left out: {some}"
        print(f"rematch: season {params.season}: {told}; run: {do}", file=sys.stderr)
    boards, known, trials = (
        [],
        presets() | own_presets(params.methods),
        read_trials(params.season),
    )
    known |= corrected_presets(params.corrections, known)
    for dataset in params.datasets:
        of_dataset = {
            key: cell for key, cell in cells.items() if cell.dataset == dataset
        }
        if of_dataset.keys() <= set(missing):
            continue
        card = prepared_tables.read_card(dataset)
        if card["reader"] == OWN_IMAGES:  # all such folders have the same title
            card["title"] = dataset
        outcomes_of: dict[str, list[Outcome]] = {}
        for key, cell in of_dataset.items():
            if key not in missing:
                outcome = _outcome(params, cell, card, kept[dataset])
                outcomes_of.setdefault(cell.preset, []).append(outcome)
        rows = []
        for preset, outcomes in outcomes_of.items():
            declared = known[preset][1] if preset in known else Preset(title=preset)
            if outcomes[0].record.family == BROUGHT:
                declared = Preset(title=f"{preset} (external)")
            rows.append(Row(preset=preset, declared=declared, outcomes=outcomes))
        here = trials[trials["dataset"] == dataset]
        tried = {
            preset: [option_names(options) for options in trials_of]
            for preset, trials_of in here.groupby("preset")["options"]
        }
        facts = {"own_claims": own_claims(params), "tried": tried}
        facts["missing"] = tuple(key for key in of_dataset if key in missing)
        boards.append(Board(dataset=dataset, card=card, rows=rows, **facts))
    titles = [board.title for board in boards]
    for board in boards:
        if titles.count(board.title) > 1:  # splits or partitions of one dataset
            board.card["title"] = f"{board.title} ({board.dataset})"
    return boards


def _was_run(cell: Cell | Fusion | Brought, kept: Mapping[str, CellResult]) -> bool:
    """Whether the cell, and what it is a fusion of, have records."""
    return {cell.name, *_members(cell)} <= kept.keys()


def _members(cell: Cell | Fusion | Brought) -> list[str]:
    """What the results of the dataset call the cells that a fusion is of; of others
    none."""
    folders = dict.fromkeys(cell.members) if isinstance(cell, Fusion) else ()
    return ["/".join(Path(folder).parts[-2:]) for folder in folders]


def _outcome(
    params: Params,
    cell: Cell | Fusion | Brought,
    card: dict,
    kept: Mapping[str, CellResult],
) -> Outcome:
    """Numbers of different splits, files or protocols never share a table."""
    where, counted = RESULTS / params.season / cell.dataset, card["counts"]["test"]
    where /= RECORDS if type(cell) is not Brought else Path(EXTERNAL, RECORDS)
    do = f"rematch play {params.season}"
    if type(cell) is Brought:  # Cell and Fusion are of its kind
        do = f"rematch score --season {params.season} --dataset {cell.dataset} --name {cell.preset}"
    with corrected_by(do):
        result = kept[cell.name]
        record = result.record
        expected = {
            "protocol_version": VERSION,
            "season": params.season,
            "dataset": cell.dataset,
            "preset": cell.preset,
            "seed": cell.seed,
            "split": f"{card['split']}/test",
            "images": counted["images"],
            "captions": counted["captions"],
        }
        if record.manifest_sha256 != card["manifest"]:
            wanted = f"results of the raw files that data/prepared/{cell.dataset} was read from"
            found = "those of other files, as of another release: other images give other numbers"
            raise UserError(f"{where}: {cell.name}", wanted, found)
        if record.task == "localisation" and record.status == "ok":
            expected["phrases"] = counted.get("phrases", 0)
        for name, value in expected.items():
            if (found := getattr(record, name)) != value:
                raise UserError(
                    f"{where}: {cell.name}: {name}", repr(value), repr(found)
                )
        if result.costs is None:
            raise UserError(
                where.with_name(COSTS), f"the costs of {cell.name}", "nothing"
            )
    trained = [kept[member] for member in _members(cell)] or [result]
    costs = [each.costs.training for each in trained if each.costs]
    trainings = tuple(filter(None, costs))
    return Outcome(kept=result, record=record, trainings=trainings)


# Trials on validation -----------------------------------------------------------------


def trials_file(season: str) -> Path:
    return Path("seasons") / season / "tuning.csv"


def read_trials(season: str) -> pd.DataFrame:
    """The trials of a season, in the order of the file; none where there is no file.
    Raises UserError for a damaged file and for other columns."""
    file = trials_file(season)
    if not file.is_file():
        return pd.DataFrame(columns=COLUMNS)
    trials = read_csv(file, str).fillna("")
    if list(trials.columns) != COLUMNS:
        expected = f"the columns {', '.join(COLUMNS)}"
        raise UserError(
            file, expected, ", ".join(trials.columns), "correct its first line"
        )
    try:
        return trials.astype({"epoch": int, "val_rsum": float})
    except ValueError as error:
        raise UserError(
            file, "numbers as epoch and val_rsum", error, "correct the row"
        ) from error


def add_trial(season: str, trial: dict) -> None:
    """Write one more row; rows are kept in the order of their presets, one of those
    that were tried twice. Trials that end together wait for each other."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        trials = pd.concat(
            [read_trials(season), pd.DataFrame([trial], columns=COLUMNS)]
        )
        trials = trials.drop_duplicates(["dataset", "preset", "options"])
        trials = trials.sort_values(["dataset", "preset"], kind="stable")
        write_text(trials_file(season), trials.to_csv(index=False, lineterminator="\n"))


def spelt(options: dict[str, Option]) -> str:
    """Options as they stand in a row: "epochs=20 learning_rate=0.0005"."""
    return " ".join(f"{key}={options[key]}" for key in sorted(options))


def option_names(options: str) -> frozenset[str]:
    """Which options a trial set."""
    return frozenset(word.partition("=")[0] for word in options.split())


def is_taken(options: str, cell: Cell | Record) -> bool:
    """Whether a cell is trained with the options of a trial, in any order and in one
    spelling: 1e-05 may stand in the row as 0.00001, True as true."""
    words = [word.partition("=") for word in options.split()]
    return all(
        _value(text) == _value(str(cell.options.get(key))) for key, _, text in words
    )


def _value(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return {"true": "True", "false": "False", "null": "None"}.get(text, text)

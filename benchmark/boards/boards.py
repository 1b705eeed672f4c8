"""What a report is about, made of the records of a season.

outcome    one declared cell, (dataset, preset, seed), with its record
row        one preset on a dataset, with the outcomes of all its seeds
board      one dataset, with the rows of all presets that are run on it

`season_boards` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

import numpy as np

from benchmark.core.records import Provenance, Record
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import (
    RETRIEVED,
    SAMPLES,
    CellResult,
    Ranks,
    Scores,
    StoredScores,
)
from benchmark.papers.printed_tables import Paper
from benchmark.scoring.metrics import retrieval_metrics, rsum_terms
from benchmark.scoring.relevance import LayerPairs, layers_of
from benchmark.season.parameters import BROUGHT
from benchmark.season.plugins import Preset
from benchmark.season.tuning import Trial

RANKED_BY = {"retrieval": "rsum", "localisation": "p2r_r1"}  # task -> metric
TASKS = tuple(RANKED_BY)
MIN_TEST_QUERIES = 100  # of every direction: fewer let nothing be concluded
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
    def scores(self) -> Scores | StoredScores:
        """Its ranks, histograms of scores, and S of resamples of the images."""
        return self.of_layer or self.kept.scores

    def ranks(self, direction: str) -> np.ndarray:
        """Zero-based rank of every test query of a direction, (Q,), in the split's
        order."""
        return self.scores.best(direction)

    @cached_property
    def retrieved(self) -> dict[str, np.ndarray]:
        """The first items of every query by direction; empty where they are not
        kept."""
        return self.kept.retrieved if self.kept.has(RETRIEVED) else {}

    def by(self, layer: Mapping[str, LayerPairs], kept_as: str = "") -> Outcome | None:
        """The outcome by a layer of relevance, given by direction. It follows from the
        ranks of all right items where they are kept under the name of the layer, else
        from the first answers to each query, which give R@K and rsum only. None where
        neither is kept."""
        ranks = {}
        known: Sequence[str] = ()  # metrics; empty: all of retrieval
        for way, pairs in layer.items():
            kept = self.scores.ranks.get(RankKey(way, kept_as))
            counts = pairs.counts[pairs.queries]  # others: of other judgements
            if kept is None or not np.array_equal(kept.counts, counts):
                if way not in self.retrieved:
                    return None
                kept = pairs.first_right(self.retrieved[way])
                known = (*rsum_terms(layer), "rsum")
            ranks[way] = kept
        return self._with(ranks, known)

    def on(self, layer: Mapping[str, LayerPairs]) -> Outcome | None:
        """The outcome by `own`, on the queries of a layer alone. None without ranks of
        them."""
        ranks = {}
        for way, pairs in layer.items():
            of_all = self.scores.ranks.get(RankKey(way))
            if of_all is None:
                return None
            ranks[way] = of_all.at(pairs.counts > 0)
        return self._with(ranks)

    def _with(self, ranks: dict[str, Ranks], known: Sequence[str] = ()) -> Outcome:
        """With other ranks and their metrics; only with those of `known` if it names
        some."""
        metrics = retrieval_metrics(ranks)
        if known:
            metrics = {name: metrics[name] for name in known}
        record = self.record.model_copy(update={"metrics": metrics})
        by_key = {RankKey(way): ranks[way] for way in ranks}
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

    @cached_property
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
        costs = []
        for outcome in self.played:
            costs += [*outcome.trainings, outcome.scoring]
        return costs

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
        for outcome in self.played:
            if outcome.kept.has(SAMPLES) and outcome.kept.samples:
                return outcome.record.seed
        return None

    @cached_property
    def samples(self) -> dict[str, np.ndarray]:
        """The samples for figures of `samples_seed`; empty where no seed has some."""
        for outcome in self.played:
            if outcome.record.seed == self.samples_seed:
                return outcome.kept.samples
        return {}

    @property
    def validation(self) -> dict[int, float]:
        """The best validation rsum by seed, of its trainings that were validated."""
        best = {}
        for record in (outcome.record for outcome in self.played):
            if "val_rsum" in record.history:
                best[record.seed] = max(record.history["val_rsum"])
        return best

    def values(self, metric: str) -> list:
        """The metric of every seed with a result; empty if the record of one of them
        lacks it."""
        records = [outcome.record.metrics for outcome in self.played]
        if any(metric not in metrics for metrics in records):
            return []
        return [metrics[metric] for metrics in records]

    def mean(self, metric: str) -> float | None:
        """Mean of `values`; None where they are empty."""
        values = self.values(metric)
        return fmean(values) if values else None

    @property
    def level(self) -> float:
        """The mean of the metric that ranks."""
        return self.mean(RANKED_BY[self.task])

    def means(self) -> dict[str, float]:
        """Every metric that is a number and that all seeds have, as its mean over the
        seeds."""
        first = self.played[0].record.metrics
        numbers = [name for name in first if isinstance(first[name], int | float)]
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

    @cached_property
    def asked(self) -> dict[str, int]:
        """Direction -> how many groups its queries are of."""
        ways = self.image_of_query
        return {way: len(np.unique(self.of_queries(way))) for way in ways}

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
    # what the season file says that text encoders and external rows were trained on
    trained_on: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # trials on validation, by preset
    tried: dict[str, list[Trial]] = field(default_factory=dict)
    whole: Board | None = None  # of one task: that of all tasks
    missing: tuple[str, ...] = ()  # keys of declared cells that were not run
    # the layer of relevance by direction; empty: `own`
    layer: Mapping[str, LayerPairs] = field(default_factory=dict)
    # of several folds: the board of each; a result is the mean of theirs (fold_boards)
    fold_boards: tuple[Board, ...] = ()

    @property
    def title(self) -> str:
        return self.card["title"]

    @cached_property
    def retrieval(self) -> Board:
        """The same dataset with its rows of retrieval only."""
        return self._of_task("retrieval")

    @cached_property
    def localisation(self) -> Board:
        """The same dataset with its rows of phrase localisation only."""
        return self._of_task("localisation")

    def _of_task(self, task: str) -> Board:
        rows = [row for row in self.rows if row.task == task]
        return replace(self, rows=rows, whole=self.whole or self)

    @property
    def by_task(self) -> list[Board]:
        """The same dataset with its rows of each task that it has some of."""
        return [board for board in (self.retrieval, self.localisation) if board.rows]

    @cached_property
    def data(self) -> Prepared:
        """The prepared dataset. Raises UserError where this machine lacks it."""
        return prepared_tables.read(self.dataset)

    @cached_property
    def layers(self) -> dict[str, dict[str, LayerPairs]]:
        """The layers of relevance beside `own`, by name and direction."""
        if not self.card.get("layers"):
            return {}
        return layers_of(self.data, self.data.split("test"))

    def under(self, name: str) -> Board:
        """The rows of retrieval by a layer of relevance: its queries, their ranks, and
        the metrics that follow from these."""
        return self.judged(
            self.layers[name], lambda outcome, layer: outcome.by(layer, name)
        )

    def judged(self, layer: Mapping[str, LayerPairs], judge: Callable) -> Board:
        """The rows of retrieval by a layer: `judge` gives each of their outcomes by it,
        or None. A row with an outcome that has none is left out."""
        rows = []
        for row in self.retrieval.rows:
            outcomes = [judge(outcome, layer) for outcome in row.played]
            if outcomes and None not in outcomes:
                rows.append(replace(row, outcomes=outcomes))
        queries = {QUERIES[way]: len(pairs.queries) for way, pairs in layer.items()}
        counts = self.card["counts"] | {"test": self.card["counts"]["test"] | queries}
        card = self.card | {"ways": list(layer), "counts": counts}
        return replace(self, card=card, rows=rows, whole=None, layer=layer)

    @cached_property
    def groups(self) -> Groups:
        """Of the test queries, or of those that a layer asks; of several folds, those
        of the first."""
        if self.fold_boards:
            return self.fold_boards[0].groups
        image_of_query = prepared_tables.read_queries(self.dataset)
        group_of_image = image_of_query.pop("group")
        for way, pairs in self.layer.items():
            image_of_query[way] = image_of_query[way][pairs.queries]
        return Groups(image_of_query, group_of_image)

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions that are retrieved, i2t and t2i or one of them."""
        return tuple(self.card.get("ways", ("i2t", "t2i")))

    def directions(self, task: str) -> tuple[str, ...]:
        return ("p2r",) if task == "localisation" else self.ways

    @property
    def folds(self) -> int:
        """How many consecutive parts of the test split are ranked on their own as well;
        1: none."""
        return self.card.get("folds", 1)

    def test_queries(self, task: str) -> int:
        """Number of test queries of a task, in the direction that has the fewest; of
        folds, of one of them."""
        return min(self.queries_in([way]) for way in self.directions(task))

    def queries_in(self, directions: Iterable[str]) -> int:
        """Number of test queries of these directions together; of folds, of one of
        them."""
        counted = self.card["counts"]["test"]
        return sum(counted.get(QUERIES[way], 0) for way in directions)

    def is_small(self, task: str) -> bool:
        """Whether a task has too few test queries for any conclusion."""
        return self.test_queries(task) < MIN_TEST_QUERIES

    @property
    def test_image_count(self) -> int:
        """Number of test images, of all folds together."""
        boards = self.fold_boards or (self,)
        return sum(board.card["counts"]["test"]["images"] for board in boards)

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
        return sorted(rows, key=lambda row: (TASKS.index(row.task), -row.level))

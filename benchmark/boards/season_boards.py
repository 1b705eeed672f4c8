"""The boards of a season, read from its records.

A season declares its cells. Every declared cell is read, and no other; those without a
record are named, and the rest is shown; a record of other data or another protocol is
an error that names the command to run.

The board of the further folds of a dataset is one more set-up for each claim. Fold 0 is
the official test split, with a board of its own. Each further fold has other test
images and its own training of each row, so what a row reaches is the mean over folds,
and two rows are compared fold by fold. The differences of folds vary by their images
and by their trainings; both are in the variance between folds (stats.comparisons). Two
folds have most of their training images in common, which this variance does not show:
`resampled_t` is a test that allows for it.
"""

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmark.boards import claims, comparisons
from benchmark.boards.boards import Board, Outcome, Row
from benchmark.core.errors import UserError, corrected_by
from benchmark.core.names import folder_of_folds
from benchmark.core.records import Record
from benchmark.data import prepared_tables, results
from benchmark.data.results import COSTS, RECORDS, RESULTS, CellResult
from benchmark.papers.printed_tables import Paper, own_claims
from benchmark.scoring.metrics import INTERVAL_ENDS
from benchmark.season.parameters import BROUGHT, Brought, Declaration, Declared, Fused
from benchmark.season.plugins import (
    Preset,
    corrected_presets,
    own_presets,
    presets,
    versions,
)
from benchmark.season.tuning import Trial, read_trials
from benchmark.stats.significance import Estimate

NAMED = 5  # of the cells that were not run
OWN_IMAGES = "folder"  # module of datasets/
AnyCell = Declared | Brought


def read_boards(params: Declaration) -> list[Board]:
    """One board per dataset with a cell that was run; the others are named on stderr.
    Raises UserError where none was run, and for one that was run with other data or
    another protocol."""
    season = SeasonResults.read(params, params.datasets)
    season.tell_missing()
    run = {season.cells[key].dataset for key in season.cells.keys() - season.missing}
    boards = [season.board(dataset) for dataset in params.datasets if dataset in run]
    return _with_titles_of_their_own(boards)


@dataclass(frozen=True, kw_only=True, eq=False)
class SeasonResults:
    """What a season declares, and what was kept of it."""

    params: Declaration
    cells: Mapping[str, AnyCell]  # those that are declared, by key
    kept: Mapping[str, Mapping[str, CellResult]]  # by dataset and name of the cell
    # keys of the cells without a record of theirs, or of what they are a fusion of
    missing: Collection[str]
    presets: Mapping[str, tuple[str, Preset]]
    trials: list[Trial]
    own_claims: dict[str, Paper]

    @classmethod
    def read(cls, params: Declaration, datasets: Collection[str]) -> "SeasonResults":
        """Of some datasets or folds of the season."""
        own = own_claims(params)
        cells = {}
        for key, cell in (params.everything | params.brought).items():
            if cell.dataset in datasets:
                cells[key] = cell
        with corrected_by(f"rematch play {params.season}"):
            kept = {name: results.read_kept(params.season, name) for name in datasets}
        known = presets() | own_presets(params.methods)
        known |= corrected_presets(params.corrections, known)
        trials = read_trials(params.season)
        missing = []
        for key, cell in cells.items():
            if not {cell.name, *_members(cell)} <= kept[cell.dataset].keys():
                missing.append(key)
        return cls(
            params=params,
            cells=cells,
            kept=kept,
            missing=missing,
            presets=known,
            trials=trials,
            own_claims=own,
        )

    def tell_missing(self) -> None:
        """Name cells without a record on stderr. Raises UserError if all lack one."""
        if not self.missing:
            return
        season = self.params.season
        play = f"run: rematch play {season}"
        if len(self.missing) == len(self.cells):
            first = self.cells[self.missing[0]]
            file = RESULTS / season / first.dataset / RECORDS
            advice = f"{play}; or name a season that was played, see: "
            advice += "rematch list seasons"
            raise UserError(f"{file}: {first.name}", "a record", "nothing", advice)
        some = ", ".join(self.missing[:NAMED])
        if len(self.missing) > NAMED:
            some += ", ..."
        count = f"{len(self.missing)} of {len(self.cells)} cells"
        message = f"{count} were not run, and are left out: {some}"
        print(f"rematch: season {season}: {message}; {play}", file=sys.stderr)

    def board(self, dataset: str) -> Board:
        card = prepared_tables.read_card(dataset)
        if card["reader"] == OWN_IMAGES:  # all such folders have the same title
            card["title"] = dataset
        outcomes: dict[str, list[Outcome]] = {}
        missing = []
        for key, cell in self.cells.items():
            if cell.dataset != dataset:
                continue
            if key in self.missing:
                missing.append(key)
            else:
                outcome = _outcome(self.params, cell, card, self.kept[dataset])
                outcomes.setdefault(cell.preset, []).append(outcome)
        return Board(
            dataset=dataset,
            card=card,
            rows=[self._row(preset, outcomes[preset]) for preset in outcomes],
            own_claims=self.own_claims,
            trained_on=self.params.trained_on,
            tried=self._tried(dataset),
            missing=tuple(missing),
        )

    def _row(self, preset: str, outcomes: list[Outcome]) -> Row:
        declared = Preset(title=preset)
        if outcomes[0].record.family == BROUGHT:
            declared = Preset(title=f"{preset} (external)")
        elif preset in self.presets:
            _, declared = self.presets[preset]
        return Row(preset=preset, declared=declared, outcomes=outcomes)

    def _tried(self, dataset: str) -> dict[str, list[Trial]]:
        trials: dict[str, list[Trial]] = {}
        for trial in self.trials:
            if trial.dataset == dataset:
                trials.setdefault(trial.preset, []).append(trial)
        return trials


def _with_titles_of_their_own(boards: list[Board]) -> list[Board]:
    """Splits or partitions of one dataset have its name beside their title."""
    count = Counter(board.title for board in boards)
    titled = []
    for board in boards:
        if count[board.title] > 1:
            title = f"{board.title} ({board.dataset})"
            board = replace(board, card=board.card | {"title": title})
        titled.append(board)
    return titled


def _members(cell: AnyCell) -> list[str]:
    """What the results of the dataset call the cells that a fusion is of; of others
    none."""
    folders = dict.fromkeys(cell.members) if isinstance(cell, Fused) else ()
    return ["/".join(Path(folder).parts[-2:]) for folder in folders]


def _outcome(
    params: Declaration, cell: AnyCell, card: dict, kept: Mapping[str, CellResult]
) -> Outcome:
    """Numbers of different splits, files or protocols never share a table."""
    advice = f"rematch play {params.season}"
    if type(cell) is Brought:  # the others are of its kind
        advice = f"rematch score --season {params.season} --dataset {cell.dataset} "
        advice += f"--name {cell.preset}"
    result = kept[cell.name]
    with corrected_by(advice):
        _check_record(f"{result.file}: {cell.name}", result.record, params, cell, card)
        if result.costs is None:
            expected = f"the costs of {cell.name}"
            raise UserError(result.file.with_name(COSTS), expected, "nothing")
    trained = [kept[member] for member in _members(cell)] or [result]
    costs = [each.costs.training for each in trained if each.costs]
    trainings = tuple(filter(None, costs))
    return Outcome(kept=result, record=result.record, trainings=trainings)


def _check_record(
    where: str, record: Record, params: Declaration, cell: AnyCell, card: dict
) -> None:
    """Raise UserError for a record of other data or another protocol."""
    if record.manifest_sha256 != card["manifest"]:
        folder = f"data/prepared/{cell.dataset}"
        wanted = f"results of the raw files that {folder} was read from"
        found = "those of other files, as of another release: other images give other "
        raise UserError(where, wanted, f"{found}numbers")
    counts = card["counts"]["test"]
    expected = {
        "protocol_version": versions()["protocol"],
        "season": params.season,
        "dataset": cell.dataset,
        "preset": cell.preset,
        "seed": cell.seed,
        "split": f"{card['split']}/test",
        "images": counts["images"],
        "captions": counts["captions"],
    }
    if record.task == "localisation" and record.status == "ok":
        expected["phrases"] = counts.get("phrases", 0)
    for name, value in expected.items():
        actual = getattr(record, name)
        if actual != value:
            raise UserError(f"{where}: {name}", repr(value), repr(actual))


def metrics(boards: list[Board]) -> dict:
    """dataset -> preset -> metric -> mean over the seeds, and dataset -> claims ->
    counts.

    Presets without a result are left out, and so are the ends of single trainings'
    intervals: their means are no interval of the preset.
    """
    datasets = {}
    for board in boards:
        of_dataset: dict[str, dict] = {}
        for row in board.ranked:
            means = row.means()
            for name in INTERVAL_ENDS:
                means.pop(name, None)
            of_dataset[row.preset] = means
        of_dataset["claims"] = claims.counts(claims.claim_tests(board))
        datasets[board.dataset] = of_dataset
    return datasets


# Folds --------------------------------------------------------------------------------


def read_fold_boards(params: Declaration) -> list[Board]:
    """A board for each dataset of the season with folds, of the rows that have a result
    on all of them. A dataset whose folds were not run has none; cells of the others
    that were not are named on stderr."""
    boards = []
    for dataset, folds in params.fold_names.items():
        season = SeasonResults.read(params, folds)
        if len(season.missing) == len(season.cells):
            continue
        season.tell_missing()
        boards.append(
            _board_of_folds(dataset, [_of_fold(season, fold) for fold in folds])
        )
    return boards


def _of_fold(season: SeasonResults, fold: str) -> Board:
    board = season.board(fold)
    played = [row for row in board.rows if len(row.played) == len(row.outcomes)]
    return replace(board, rows=played)


def _board_of_folds(dataset: str, folds: list[Board]) -> Board:
    """The folds together: the card says of the dataset what holds for each of them."""
    whole, first = prepared_tables.read_card(dataset), folds[0]
    title = f"{whole['title']}, folds 1 to {len(folds)}"
    card = first.card | {"title": title, "split": whole["split"]}
    for fact in ("leakage", "twins"):  # which are of one fold's images
        card.pop(fact, None)
    rows = []
    for row in first.rows:
        of_folds = [fold.row(row.preset) for fold in folds]
        if all(of_folds):
            outcomes = [outcome for each in of_folds for outcome in each.outcomes]
            rows.append(replace(row, outcomes=outcomes))
    return replace(
        first,
        dataset=folder_of_folds(dataset),
        card=card,
        rows=rows,
        fold_boards=tuple(folds),
    )


# What differs between folds -----------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FoldLevel:
    """The level of a row on fold 0, the official test split, and on the others."""

    row: Row
    official: float | None  # None: not run on it
    by_fold: tuple[float, ...]  # of fold 1 and the others
    low: float  # ends of the interval of the mean over these, for other folds
    high: float

    @property
    def mean(self) -> float:
        return float(np.mean(self.by_fold))

    @property
    def deviation(self) -> float:
        """Standard deviation between folds."""
        return float(np.std(self.by_fold, ddof=1))


def levels(folds: Board, official: Board, metric: str) -> list[FoldLevel]:
    """Of each row on the further folds, the highest mean first. Rows without an
    interval, as of a single fold, are left out."""
    listed = []
    for row in folds.rows:
        sample = comparisons.sample_of(folds, row, metric)
        ends = comparisons.interval(folds, row, metric) if sample.values else None
        if ends is None:
            continue
        there, (low, high) = official.row(row.preset), ends
        level = FoldLevel(
            row=row,
            official=there.mean(metric) if there and there.played else None,
            by_fold=tuple(sample.values.values()),
            low=low,
            high=high,
        )
        listed.append(level)
    return sorted(listed, key=lambda level: -level.mean)


def resampled_t(folds: Board, differences: np.ndarray) -> Estimate:
    """The mean of the differences (K,) of K folds with the corrected resampled t of
    Nadeau and Bengio (Machine Learning 52, 2003): its variance is that between folds
    times 1 / K + n_test / n_train, since two trainings have most images in common."""
    counts = [board.card["counts"] for board in folds.fold_boards]
    tested = np.mean([count["test"]["images"] for count in counts])
    trained = np.mean([count["train"]["images"] for count in counts])
    factor = 1 / len(differences) + tested / trained
    error = float(np.sqrt(factor * np.var(differences, ddof=1)))
    value, freedom = float(np.mean(differences)), len(differences) - 1
    return Estimate(value=value, error=error, freedom=freedom)

"""The boards of a season, read from its records.

A season declares its cells. Every declared cell is read, and no other; those without a
record are named, and the rest is shown; a record of other data or another protocol is
an error that names the command to run.
"""

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmark.boards.boards import Board, Outcome, Row
from benchmark.core.errors import UserError, corrected_by
from benchmark.core.folds import folder_of
from benchmark.core.records import Record
from benchmark.data import prepared_tables, results
from benchmark.data.results import COSTS, EXTERNAL, RECORDS, RESULTS, CellResult
from benchmark.papers.printed_tables import own_claims
from benchmark.scoring import VERSION
from benchmark.season.parameters import (
    BROUGHT,
    Brought,
    Declaration,
    Declared,
    Fused,
)
from benchmark.season.plugins import Preset, corrected_presets, own_presets, presets
from benchmark.season.tuning import Trial, read_trials

NAMED = 5  # of the cells that were not run
OWN_IMAGES = "folder"  # module of datasets/
AnyCell = Declared | Brought


def read_boards(params: Declaration) -> list[Board]:
    """One board per dataset with a cell that was run; the others are named on stderr.
    Raises UserError where none was run, and for one that was run with other data or
    another protocol."""
    season = SeasonResults.read(params, params.datasets)
    if season.missing:
        season.tell_missing()
    boards = []
    for dataset in params.datasets:
        if season.was_run(dataset):
            boards.append(season.board(dataset))
    return _with_titles_of_their_own(boards)


@dataclass(frozen=True, kw_only=True, eq=False)
class SeasonResults:
    """What a season declares, and what was kept of it."""

    params: Declaration
    cells: Mapping[str, AnyCell]  # those that are declared, by key
    kept: Mapping[str, Mapping[str, CellResult]]  # by dataset and name of the cell
    missing: Collection[str]  # keys of the cells without a record
    presets: Mapping[str, tuple[str, Preset]]
    trials: list[Trial]

    @classmethod
    def read(cls, params: Declaration, datasets: Collection[str]) -> "SeasonResults":
        """Of some datasets or folds of the season."""
        cells = {}
        for key, cell in (params.everything | params.brought).items():
            if cell.dataset in datasets:
                cells[key] = cell
        with corrected_by(f"rematch play {params.season}"):
            kept = {name: results.read_kept(params.season, name) for name in datasets}
        known = presets() | own_presets(params.methods)
        known |= corrected_presets(params.corrections, known)
        return cls(
            params=params,
            cells=cells,
            kept=kept,
            missing=[key for key, cell in cells.items() if not _was_run(cell, kept)],
            presets=known,
            trials=read_trials(params.season),
        )

    def tell_missing(self) -> None:
        """Name cells without a record on stderr. Raises UserError if all lack one."""
        season = self.params.season
        advice = f"run: rematch play {season}"
        if len(self.missing) == len(self.cells):
            first = self.cells[self.missing[0]]
            file = RESULTS / season / first.dataset / RECORDS
            raise UserError(f"{file}: {first.name}", "a record", "nothing", advice)
        some = ", ".join(self.missing[:NAMED])
        if len(self.missing) > NAMED:
            some += ", ..."
        count = f"{len(self.missing)} of {len(self.cells)} cells"
        told = f"{count} were not run, and are left out: {some}"
        print(f"rematch: season {season}: {told}; {advice}", file=sys.stderr)

    def cells_on(self, dataset: str) -> dict[str, AnyCell]:
        return {
            key: cell for key, cell in self.cells.items() if cell.dataset == dataset
        }

    def was_run(self, dataset: str) -> bool:
        """Whether any of its cells has a record."""
        return not self.cells_on(dataset).keys() <= set(self.missing)

    def board(self, dataset: str) -> Board:
        card = prepared_tables.read_card(dataset)
        if card["reader"] == OWN_IMAGES:  # all such folders have the same title
            card["title"] = dataset
        outcomes: dict[str, list[Outcome]] = {}
        missing = []
        for key, cell in self.cells_on(dataset).items():
            if key in self.missing:
                missing.append(key)
            else:
                outcome = _outcome(self.params, cell, card, self.kept[dataset])
                outcomes.setdefault(cell.preset, []).append(outcome)
        return Board(
            dataset=dataset,
            card=card,
            rows=[self._row(preset, outcomes[preset]) for preset in outcomes],
            own_claims=own_claims(self.params),
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
        """The trials on a dataset, by preset."""
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


def _was_run(cell: AnyCell, kept: Mapping[str, Mapping[str, CellResult]]) -> bool:
    """Whether the cell, and what it is a fusion of, have records."""
    return {cell.name, *_members(cell)} <= kept[cell.dataset].keys()


def _members(cell: AnyCell) -> list[str]:
    """What the results of the dataset call the cells that a fusion is of; of others
    none."""
    folders = dict.fromkeys(cell.members) if isinstance(cell, Fused) else ()
    return ["/".join(Path(folder).parts[-2:]) for folder in folders]


def _outcome(
    params: Declaration, cell: AnyCell, card: dict, kept: Mapping[str, CellResult]
) -> Outcome:
    """Numbers of different splits, files or protocols never share a table."""
    folder = RESULTS / params.season / folder_of(cell.dataset)
    file, advice = folder / RECORDS, f"rematch play {params.season}"
    if type(cell) is Brought:  # the others are of its kind
        file = folder / EXTERNAL / RECORDS
        advice = f"rematch score --season {params.season} --dataset {cell.dataset} "
        advice += f"--name {cell.preset}"
    result = kept[cell.name]
    with corrected_by(advice):
        _check_record(f"{file}: {cell.name}", result.record, params, cell, card)
        if result.costs is None:
            expected = f"the costs of {cell.name}"
            raise UserError(file.with_name(COSTS), expected, "nothing")
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
        "protocol_version": VERSION,
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

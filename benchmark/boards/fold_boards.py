"""The board of the further folds of a dataset: one more set-up for each claim.

Fold 0 is the official test split, with a board of its own. Each further fold has other
test images and its own training of each row, so what a row reaches is the mean over
folds, and two rows are compared fold by fold. The differences of folds vary by their
images and by their trainings; both are in the variance between folds
(stats.comparisons). Two folds have most of their training images in common, which this
variance does not show: `resampled_t` is a test that allows for it.
"""

from dataclasses import dataclass, replace

import numpy as np

from benchmark.boards import comparisons
from benchmark.boards.boards import Board, Row
from benchmark.boards.season_boards import SeasonResults
from benchmark.core.folds import Fold, folder_of_folds, folds_of
from benchmark.data import prepared_tables
from benchmark.season.parameters import Declaration
from benchmark.stats.significance import Estimate


def read_fold_boards(params: Declaration) -> list[Board]:
    """A board for each dataset of the season with folds, of the rows that have a result
    on all of them. A dataset whose folds were not run has none; cells of the others
    that were not are named on stderr."""
    boards = []
    for dataset, count in params.folds.items():
        folds = folds_of(dataset, count)
        season = SeasonResults.read(params, [fold.name for fold in folds])
        if len(season.missing) == len(season.cells):
            continue
        if season.missing:
            season.tell_missing()
        boards.append(_board(dataset, [_of_fold(season, fold) for fold in folds]))
    return boards


def _of_fold(season: SeasonResults, fold: Fold) -> Board:
    board = season.board(fold.name)
    played = [row for row in board.rows if len(row.played) == len(row.outcomes)]
    return replace(board, rows=played)


def _board(dataset: str, folds: list[Board]) -> Board:
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
class Level:
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


def levels(folds: Board, official: Board, metric: str) -> list[Level]:
    """Of each row on the further folds, the highest mean first. Rows without an
    interval, as of a single fold, are left out."""
    listed = []
    for row in folds.rows:
        sample = comparisons.sample_of(folds, row, metric)
        ends = comparisons.interval(folds, row, metric) if sample.values else None
        if ends is None:
            continue
        there, (low, high) = official.row(row.preset), ends
        level = Level(
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

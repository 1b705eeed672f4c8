"""The tables of a dataset, for its page and for export. Knows neither torch nor
matplotlib."""

from collections.abc import Callable
from functools import partial

from benchmark.boards.boards import Board
from benchmark.contracts.datasets import SPLITS
from benchmark.papers.printed_tables import title_of
from benchmark.report.pages import result_tables
from benchmark.report.tables import Number, Table
from benchmark.season.parameters import Declaration
from benchmark.season.tuning import read_trials, written

Maker = Callable[[], Table]
SHARED = {  # field of the card's leakage -> what it counts
    "pictures": "images, pixel for pixel",
    "near_pictures": "images, nearly (pairs)",
    "captions": "captions, word for word",
    "near_captions": "captions but for case, punctuation and spaces",
}


def dataset_tables(params: Declaration, board: Board) -> dict[str, Table]:
    """The tables of a dataset by name, those for export among them; without rows:
    nothing."""
    return {name: make() for name, make in table_makers(params, board).items()}


def table_makers(params: Declaration, board: Board) -> dict[str, Maker]:
    """What makes each of them: some take seconds."""
    retrieval, localisation = board.retrieval, board.localisation
    all_items = {}
    for way in board.ways:
        all_items[f"{way}_all"] = partial(result_tables.of_all_items, retrieval, way)
    return {
        "leaderboard": partial(result_tables.leaderboard, retrieval),
        "folds": partial(result_tables.folds, retrieval),
        "failures": partial(result_tables.failures, board),
        "i2t": partial(result_tables.of_direction, retrieval, "i2t"),
        "t2i": partial(result_tables.of_direction, retrieval, "t2i"),
        "s2s": partial(result_tables.of_direction, retrieval, "s2s"),
        **all_items,
        "p2r": partial(result_tables.of_direction, localisation, "p2r"),
        "overlap": partial(result_tables.overlaps, retrieval),
        "localisation": partial(result_tables.leaderboard, localisation),
        "flags": partial(result_tables.of_each_row, board),
        "remarks": partial(result_tables.remarks, board),
        "tuning": partial(tuning, params, board),
        "leakage": partial(leakage, board.card),
        "cost": partial(result_tables.costs, retrieval),
        "localisation_cost": partial(result_tables.costs, localisation),
    }


def tuning(params: Declaration, board: Board) -> Table:
    """What was tried on validation, a row per trial."""
    lines = []
    for trial in read_trials(params.season):
        if trial.dataset != board.dataset:
            continue
        row = board.row(trial.preset)
        is_taken = row is not None and trial.is_taken(row.record.options)
        line = {
            "preset": title_of(trial.preset),
            "options": written(trial.options),
            "epoch kept": trial.epoch or None,
            "rsum": Number(value=trial.val_rsum),
            "taken": "yes" if is_taken else "",
        }
        lines.append(line)
    return Table.of(f"{board.title}: trials on validation", lines)


def leakage(card: dict) -> Table:
    """What occurs in more than one split, and how many items of each split have such a
    twin."""
    shared = card["leakage"]
    lines = []
    for name, what in SHARED.items():
        if "items" not in shared:
            break
        count = shared["near_pictures_total" if name == "near_pictures" else name]
        count = len(count) if isinstance(count, list) else count
        line = {"in more than one split": what, "found": count}
        for split in SPLITS[:3]:
            line[f"of {split}"] = shared["items"][name][split]
        lines.append(line)
    return Table.of(f"{card['title']}: what the splits share", lines)

"""Compare two presets of a season query by query: won, lost and moved most, by length and word.

python -m benchmark compare scan_t2i_avg two_branch_constraints --dataset flickr8k
"""

import argparse
from pathlib import Path

import pandas as pd

from benchmark.analysis import comparisons, query_changes
from benchmark.analysis.boards import Board, Standing, read_boards
from benchmark.analysis.query_changes import Changes
from benchmark.core.errors import UserError
from benchmark.core.files import atomic
from benchmark.core.suggestions import suggested
from benchmark.data import prepared_tables
from benchmark.report.table_formats import Table
from benchmark.report.table_numbers import as_csv
from benchmark.season.parameter_files import entry, read_params
from datasets import printable

SHOWN, LONGEST = 5, 70  # queries and words of each kind; characters of a caption


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", help="a preset of the season, or a row that `score` added")
    parser.add_argument("second")
    parser.add_argument("--dataset", help="default: the only one that both are played on")
    parser.add_argument("--direction", choices=("t2i", "i2t"), default="t2i")
    parser.add_argument("--season", metavar="NAME", help="default: the active one")
    parser.add_argument("--out", type=Path, metavar="FILE", help="all queries, as .parquet or .csv")


def main(arguments: argparse.Namespace) -> None:
    if arguments.first == arguments.second:
        found = f"{arguments.first} twice"
        raise UserError("compare", "two presets", found, "name another one as the second")
    params = read_params(arguments.season)
    boards = {board.dataset: board for board in read_boards(params)}
    board = _board(boards, arguments)
    first, second = _standing(board, arguments.first), _standing(board, arguments.second)
    data = prepared_tables.read(board.dataset)
    changed = query_changes.changes(data, first, second, arguments.direction)
    if arguments.out:
        _write(changed.queries, arguments.out)
    print("\n".join(_lines(board, first, second, changed)))


def _board(boards: dict[str, Board], arguments: argparse.Namespace) -> Board:
    if arguments.dataset:
        return entry(boards, arguments.dataset, "dataset")
    wanted = (arguments.first, arguments.second)
    both = [board for board in boards.values() if all(map(board.standing, wanted))]
    if len(both) == 1 or len(boards) == 1:
        return (both or list(boards.values()))[0]
    found = f"{len(both)} of {', '.join(boards)}"
    raise UserError("--dataset", "one that both are played on", found, "name it")


def _standing(board: Board, preset: str) -> Standing:
    standing = board.standing(preset)
    names = [each.preset for each in board.standings]
    if standing is None:
        expected = f"one of {', '.join(names)}"
        raise UserError(f"preset on {board.dataset}", expected, suggested(preset, names), "choose")
    return standing


def _lines(board: Board, first: Standing, second: Standing, changed: Changes) -> list[str]:
    count = len(changed.queries)
    lines = [
        f"{first.preset} against {second.preset} on {board.dataset}, {changed.direction}, "
        f"{changed.seeds} common seed{'s' * (changed.seeds != 1)}",
        _test(board, first, second),
        f"of {count} queries: {changed.won} won, {changed.lost} lost, "
        f"{count - changed.won - changed.lost} equal",
        "",
        "R@1 by the number of words",
        *_table(changed.by_length(), ["words", "queries", "first", "second"]),
    ]
    words = changed.by_word()
    if len(words) and changed.direction == "t2i":
        ends = pd.concat([words[:SHOWN], words[-SHOWN:]]).drop_duplicates("word")
        lines += ["", f"R@1 by word, of those in {query_changes.LEAST} captions or more"]
        lines += _table(ends, ["word", "queries", "first", "second"])
    moved = changed.moved_most(SHOWN)
    lines += ["", "moved most: position with the first, with the second, query"]
    return lines + [
        f"{1 + row.first:8.1f} {1 + row.second:8.1f}  {printable(row.text)[:LONGEST]}"
        for row in moved.itertuples()
    ]


def _test(board: Board, first: Standing, second: Standing) -> str:
    """The difference of rsum, its interval, and p where anything is known of other trainings."""
    compared = comparisons.compare(board, first, second, "rsum")
    if compared is None:
        return "rsum: not comparable"
    estimate = compared.estimate
    ends = estimate.interval if estimate else None
    interval = f", 95% interval [{ends[0]:.1f}, {ends[1]:.1f}]" if ends else ""
    p = f", p {estimate.p():.2g}" if estimate else ""
    if compared.is_of_these_trainings:
        p = "; nothing is known of other trainings"
    small = "; too few test queries for a conclusion" if board.is_small(first.task) else ""
    return f"rsum: {compared.difference:+.1f}{interval}{p}{small}"


def _table(rows: pd.DataFrame, columns: list[str]) -> list[str]:
    return rows[columns].to_string(index=False, float_format="{:.1f}".format).split("\n")


def _write(queries: pd.DataFrame, path: Path) -> None:
    if path.suffix not in (".parquet", ".csv"):
        raise UserError("--out", "a .parquet or .csv file", path.name, "name it so")
    with atomic(path) as part:
        if path.suffix == ".csv":
            part.write_text(_csv(queries), encoding="utf-8", newline="\n")
        else:
            queries.to_parquet(part, index=False)


def _csv(queries: pd.DataFrame) -> str:
    """Captions come from anywhere: as in every table, none may begin a formula."""
    heads, rows = list(queries), queries.astype(str).to_numpy().tolist()
    return as_csv(Table(title="queries", heads=heads, rows=rows, names=len(heads)))

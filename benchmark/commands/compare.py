"""Compare two rows of a season query by query: won, lost, largest rank changes.

rematch compare scan_t2i_avg two_branch_constraints --dataset flickr8k
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.boards.boards import Board, Row
from benchmark.boards.season_boards import read_boards
from benchmark.commands.judged_results import Question, of_season
from benchmark.commands.verdict_facts import facts_of, shown
from benchmark.core.errors import UserError, entry, printable
from benchmark.core.files import atomic
from benchmark.data import prepared_tables, results
from benchmark.data.prepared_tables import Prepared
from benchmark.data.rank_keys import RankKey
from benchmark.season.parameter_files import read_declaration
from benchmark.stats.claim_kinds import ORDERED

SHOWN, LONGEST = 5, 70  # queries of each kind; characters of a caption


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("first", help="a preset of the season, or a row that `score` added")
    add("second")
    add("--dataset", help="default: the only one where both were run")
    add("--direction", choices=("t2i", "i2t"), default="t2i")
    add("--season", metavar="NAME", help="default: the active one")
    add("--out", type=Path, metavar="FILE", help="all queries, as .parquet")


def main(arguments: argparse.Namespace) -> None:
    names = (arguments.first, arguments.second)
    if names[0] == names[1]:
        raise UserError(
            "compare",
            expected="two presets",
            found=f"{names[0]} twice",
            do="name another one",
        )
    if arguments.out and arguments.out.suffix != ".parquet":
        raise UserError(
            "--out",
            expected="a .parquet file",
            found=arguments.out.name,
            do=f"name it {arguments.out.stem}.parquet",
        )
    boards = read_boards(read_declaration(arguments.season))
    board = chosen_board(boards, names, arguments.dataset)
    dataset = board.dataset
    rows = {row.preset: row for row in board.rows}
    first, second = (entry(rows, name, f"preset on {dataset}") for name in names)
    print(f"{names[0]} against {names[1]} on {dataset}, {arguments.direction}")
    print(verdict(board, first, second))
    queries = changes(first, second, arguments.direction)
    steps = queries["step"]
    won = (steps > 0).sum()
    lost = (steps < 0).sum()
    equal = len(queries) - won - lost
    print(f"of {len(queries)} queries: {won} won, {lost} lost, {equal} equal")
    if not arguments.out and not prepared_tables.is_here(dataset):
        advice = prepared_tables.preparing(dataset)
        print(f"captions of {dataset} are not here, so no query is shown; {advice}")
        return
    data = prepared_tables.read(dataset)
    queries = with_texts(queries, data, arguments.direction)
    if arguments.out:
        with atomic(arguments.out) as part:
            queries.to_parquet(part, index=False)
    print_largest_changes(queries)


def chosen_board(
    season: Sequence[Board], presets: Sequence[str], dataset: str | None
) -> Board:
    """The board of a dataset; without a name, the only one, or the only one where both
    presets were run. Raises UserError where that is none or several."""
    boards = {board.dataset: board for board in season}
    if dataset is not None:
        return entry(boards, dataset, "dataset")
    both = [board for board in season if all(map(board.row, presets))]
    if len(both) != 1 < len(boards):
        raise UserError(
            "--dataset",
            expected="one where both were run",
            found=f"{len(both)} of {', '.join(boards)}",
            do="name it",
        )
    return (both or season)[0]


def print_largest_changes(queries: pd.DataFrame) -> None:
    """The queries that the first row finds sooner by most steps, and those that the
    second does."""
    print("\nlargest rank changes: rank with the first, with the second, query")
    order = queries["step"].sort_values(kind="stable").index
    largest = [*order[::-1][:SHOWN], *order[:SHOWN]]
    for query in queries.loc[largest].itertuples():
        ranks = f"{1 + query.first:8.1f} {1 + query.second:8.1f}"
        print(f"{ranks}  {printable(query.text)[:LONGEST]}")


def verdict(board: Board, first: Row, second: Row) -> str:
    """What `judge` says of two rows."""
    question = Question(kind=ORDERED, metric=None, margin=None)
    judged = of_season((board, first), (board, second), question)
    (facts,) = facts_of([judged])
    return shown(facts)


def changes(first: Row, second: Row, direction: str) -> pd.DataFrame:
    """The queries of a direction, in the order of the split: first and second (0-based
    ranks, means over the common seeds), step (above zero: the first finds it sooner;
    from 1 to 3 is as far as from 10 to 30).

    Raises UserError where the rows share no seed with ranks of the direction.
    """
    ranks = _ranks(first, direction)
    other_ranks = _ranks(second, direction)
    seeds = [seed for seed in ranks if seed in other_ranks]
    if not seeds:
        raise UserError(
            f"{first.preset}, {second.preset}",
            expected=f"a seed of both with ranks of {direction}",
            found="none",
            do="choose others",
        )
    means = {
        "first": np.mean([ranks[seed] for seed in seeds], axis=0),
        "second": np.mean([other_ranks[seed] for seed in seeds], axis=0),
    }
    step = np.log1p(means["second"]) - np.log1p(means["first"])
    return pd.DataFrame(means | {"step": step})


def with_texts(queries: pd.DataFrame, data: Prepared, direction: str) -> pd.DataFrame:
    """The same with query (its id) and text (of a caption, or the captions of an
    image)."""
    captions = data.captions[data.captions["split"] == "test"]
    texts = captions.set_index("caption_id")["text"]
    if direction == "i2t":
        texts = captions.groupby("image_id", sort=False)["text"].agg(" | ".join)
    ids = results.test_queries(data)[direction]
    named = pd.DataFrame({"query": ids, "text": texts.loc[ids].to_numpy()})
    return named.join(queries)


def _ranks(row: Row, direction: str) -> dict[int, np.ndarray]:
    """The ranks of a row by seed, where they are kept."""
    ranks = {}
    for outcome in row.played:
        if RankKey(direction) in outcome.scores.ranks:
            ranks[outcome.record.seed] = outcome.ranks(direction)
    return ranks

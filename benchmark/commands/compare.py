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
from benchmark.core.command_line import JSON, add_format
from benchmark.core.errors import UserError, entry, printable
from benchmark.core.files import atomic, json_text
from benchmark.core.names import preparing
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
    add_format(parser)


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
    what, advice = f"preset on {dataset}", "correct the name"
    first, second = (entry(rows, name, what, advice) for name in names)
    queries = changes(first, second, arguments.direction)
    seeds = common_seeds(first, second, arguments.direction)
    has_captions = prepared_tables.is_here(dataset)
    if has_captions or arguments.out:
        data = prepared_tables.read(dataset)
        queries = with_texts(queries, data, arguments.direction)
    if arguments.out:
        with atomic(arguments.out) as part:
            queries.to_parquet(part, index=False)
    verdict, counts = verdict_on(board, first, second), counts_of(queries)
    if arguments.format == JSON:
        about = {"dataset": dataset, "direction": arguments.direction}
        of_queries = {"seeds": seeds, "queries": counts}
        print(json_text(about | {"verdict": verdict} | of_queries), end="")
        return
    print(f"{names[0]} against {names[1]} on {dataset}, {arguments.direction}")
    print(shown(verdict))
    parts = [f"{count} {step}" for step, count in counts.items()]
    named = ", ".join(map(str, seeds))
    print(f"of {len(queries)} queries: {', '.join(parts)} (common seeds: {named})")
    if has_captions:
        print_largest_changes(queries)
    else:
        advice = preparing(dataset)
        print(f"captions of {dataset} are not here, so no query is shown; {advice}")


def chosen_board(
    season: Sequence[Board], presets: Sequence[str], dataset: str | None
) -> Board:
    """The board of a dataset or, without a name, the season's only board, or else the
    only one on which both presets were run. Raises UserError if there is no such
    board or preset, or if there are several."""
    boards = {board.dataset: board for board in season}
    if dataset is not None:
        return entry(boards, dataset, "dataset")
    if len(season) == 1:
        return season[0]
    with_both = [board for board in season if all(map(board.row, presets))]
    if not with_both:
        known = {}
        for board in season:
            known |= {row.preset: row for row in board.rows}
        for preset in presets:
            entry(known, preset, "preset", "correct the name")
        both = " and ".join(presets)
        raise UserError(
            both,
            expected="a dataset where both were run",
            found=f"none of {', '.join(boards)}",
            do="name two presets of one dataset",
        )
    if len(with_both) > 1:
        raise UserError(
            "--dataset",
            expected="one where both were run",
            found=f"{len(with_both)} of {', '.join(boards)}",
            do="name it",
        )
    return with_both[0]


def print_largest_changes(queries: pd.DataFrame) -> None:
    """Print the queries with the largest steps: those that the first row won, then
    those that it lost."""
    print("\nlargest rank changes: rank with the first, with the second, query")
    steps = queries["step"].sort_values(kind="stable")
    won = steps[steps > 0].index[::-1]
    lost = steps[steps < 0].index
    largest = [*won[:SHOWN], *lost[:SHOWN]]
    for query in queries.loc[largest].itertuples():
        ranks = f"{1 + query.first:8.1f} {1 + query.second:8.1f}"
        print(f"{ranks}  {printable(query.text)[:LONGEST]}")


def verdict_on(board: Board, first: Row, second: Row) -> dict:
    """What `judge` says of two rows, as data."""
    question = Question(kind=ORDERED, metric=None, margin=None)
    judged = of_season((board, first), (board, second), question)
    (facts,) = facts_of([judged])
    return facts


def counts_of(queries: pd.DataFrame) -> dict[str, int]:
    """How many queries the first row won, lost, and ranks as the second does."""
    steps = queries["step"]
    return {
        "won": int((steps > 0).sum()),
        "lost": int((steps < 0).sum()),
        "equal": int((steps == 0).sum()),
    }


def changes(first: Row, second: Row, direction: str) -> pd.DataFrame:
    """How far the rank of each query changes, in the order of the split.

    The columns are `first` and `second`, zero-based ranks as means over the common
    seeds, and `step`, the logarithm of the ratio of the two ranks from 1: above zero if
    the first row ranks it better. Raises UserError if the rows have no seed in common
    with ranks of the direction.
    """
    ranks = _ranks(first, direction)
    other_ranks = _ranks(second, direction)
    seeds = common_seeds(first, second, direction)
    means = {
        "first": np.mean([ranks[seed] for seed in seeds], axis=0),
        "second": np.mean([other_ranks[seed] for seed in seeds], axis=0),
    }
    step = np.log1p(means["second"]) - np.log1p(means["first"])
    return pd.DataFrame(means | {"step": step})


def common_seeds(first: Row, second: Row, direction: str) -> list[int]:
    """The seeds of which both rows have ranks of the direction. Raises UserError if
    there are none."""
    other_ranks = _ranks(second, direction)
    seeds = [seed for seed in _ranks(first, direction) if seed in other_ranks]
    if not seeds:
        raise UserError(
            f"{first.preset}, {second.preset}",
            expected=f"a seed of both with ranks of {direction}",
            found="none",
            do="choose others",
        )
    return seeds


def with_texts(queries: pd.DataFrame, data: Prepared, direction: str) -> pd.DataFrame:
    """The queries with their ids, `query`, and the text of the caption or of all
    captions of the image, `text`."""
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

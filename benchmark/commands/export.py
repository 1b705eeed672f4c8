"""Any table of a season as CSV, JSON, LaTeX or Markdown, the rank of every query, TREC
files.

rematch export                                       the names of all tables
rematch export flickr8k/leaderboard --format latex   one table
rematch export --queries ranks.parquet               season, dataset, preset, seed, layer of
                                                     relevance, direction, query, cluster (its
                                                     image or person), rank (from 0) of the best
rematch export --trec FOLDER                         runs and qrels of images and captions
rematch export --format eee --out FOLDER             files of Every Eval Ever, with intervals
"""

import argparse
from pathlib import Path

import pandas as pd

from benchmark.boards.boards import Board, read_boards
from benchmark.boards.eee_export import write_eee
from benchmark.boards.trec_export import write_trec
from benchmark.core.errors import UserError, suggested
from benchmark.core.files import atomic
from benchmark.data import prepared_tables
from benchmark.report.__main__ import tables_of
from benchmark.report.tables import FORMATS
from benchmark.scoring.relevance import queries_of
from benchmark.season.parameter_files import read_params

COLUMNS = [
    "season",
    "dataset",
    "preset",
    "seed",
    "layer",
    "direction",
    "query",
    "cluster",
    "rank",
]
EEE = "eee"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", nargs="?", help="default: list their names")
    parser.add_argument("--format", choices=(*FORMATS, EEE), default="csv")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=f"of --format {EEE}")
    parser.add_argument(
        "--queries", type=Path, metavar="FILE", help="a .parquet of all ranks"
    )
    parser.add_argument("--trec", type=Path, metavar="FOLDER")
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def main(arguments: argparse.Namespace) -> None:
    params, is_eee = read_params(arguments.season), arguments.format == EEE
    others = arguments.table or arguments.queries or arguments.trec
    if is_eee != bool(arguments.out) or is_eee and others:
        expected = f"--format {EEE} with --out FOLDER, and nothing else"
        raise UserError("export", expected, "other options", "remove or add them")
    if arguments.queries and arguments.queries.suffix != ".parquet":
        raise UserError(
            "--queries", "a .parquet file", arguments.queries.name, "name it so"
        )
    boards = read_boards(params)
    if arguments.trec:
        for board in boards:
            write_trec(
                board.outcomes, prepared_tables.read(board.dataset), arguments.trec
            )
        print(arguments.trec)
    elif is_eee:
        files = [
            f
            for board in boards
            for f in write_eee(board, params.season, arguments.out)
        ]
        print(f"{arguments.out}: {len(files)} files")
    elif arguments.queries:
        rows = every_rank(boards)
        with atomic(arguments.queries) as part:
            rows.to_parquet(part, index=False)
        print(f"{arguments.queries}: {len(rows)} ranks")
    else:
        tables, name = tables_of(params, boards), arguments.table
        # A name without its place, such as two_branch/4, stands for the tables of all
        # places.
        chosen = [
            of
            for known, of in tables.items()
            if name in (known, known.partition(" ")[0])
        ]
        if name and not chosen:
            found, do = suggested(name, tables), "rematch export prints all names"
            raise UserError("table", "the name of a table", found, do)
        print("\n".join(map(FORMATS[arguments.format], chosen) if name else tables))


def every_rank(boards: list[Board]) -> pd.DataFrame:
    """One row per cell with a result, direction and query; the cluster is the query's
    image, or the person or other group that its image belongs to."""
    tables = [pd.DataFrame(columns=COLUMNS)]
    for board in boards:
        queries = queries_of(prepared_tables.read(board.dataset))
        for outcome in (outcome for outcome in board.outcomes if outcome.is_ok):
            cell = {name: getattr(outcome.record, name) for name in COLUMNS[:4]}
            for key, ranks in outcome.scores.ranks.items():
                tables.append(queries[key].assign(**cell, rank=ranks.best)[COLUMNS])
    return pd.concat(tables, ignore_index=True)

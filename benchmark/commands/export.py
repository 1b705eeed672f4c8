"""Any table of a season as CSV, JSON, LaTeX or Markdown, the rank of every query, and
files of TREC, Every Eval Ever and the Hugging Face Hub. Knows neither torch nor
matplotlib.

rematch export                                       the names of all tables
rematch export people/leaderboard --format latex     one table, of the active season
rematch export flickr8k/leaderboard --season flickr8k     of another season
rematch export --queries ranks.parquet               season, dataset, preset, seed, layer of
                                                     relevance, direction, query, cluster (its
                                                     image or person), rank (from 0) of the best
rematch export --trec FOLDER                         runs and qrels of images and captions
rematch export --format eee --out FOLDER             files of Every Eval Ever, with intervals;
                                                     --samples: its single queries, too
rematch export --format eval_results --out FOLDER    a file per preset for .eval_results of its
                                                     model repository on the Hugging Face Hub
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from benchmark.boards import claims
from benchmark.boards.boards import Board
from benchmark.boards.eee_export import write_eee
from benchmark.boards.eval_results_export import write_eval_results
from benchmark.boards.season_boards import read_boards
from benchmark.boards.trec_export import write_trec
from benchmark.core.errors import UserError, suggested
from benchmark.core.files import atomic
from benchmark.data import prepared_tables
from benchmark.papers.printed_tables import papers
from benchmark.report.pages import dataset_tables
from benchmark.report.pages.claim_tables import claims_table
from benchmark.report.pages.dataset_tables import Maker
from benchmark.report.pages.paper_tables import paper_table
from benchmark.report.tables import FORMATS, Table
from benchmark.scoring.relevance import queries_of
from benchmark.season.parameter_files import read_declaration, season_names
from benchmark.season.parameters import Declaration

OF_CELL = ["season", "dataset", "preset", "seed"]  # columns that its record has
COLUMNS = [*OF_CELL, "layer", "direction", "query", "cluster", "rank"]
CSV = "csv"  # if no format is asked for
EEE, EVAL_RESULTS = "eee", "eval_results"
IN_FOLDERS = (EEE, EVAL_RESULTS)  # formats that are several files


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", nargs="?", help="default: list their names")
    formats = (*FORMATS, *IN_FOLDERS)
    parser.add_argument("--format", choices=formats, default=CSV)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help=f"for --format {' or '.join(IN_FOLDERS)}",
    )
    parser.add_argument(
        "--samples", action="store_true", help=f"with --format {EEE}: single queries"
    )
    parser.add_argument(
        "--queries", type=Path, metavar="FILE", help="write all ranks, as .parquet"
    )
    parser.add_argument("--trec", type=Path, metavar="FOLDER")
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def main(arguments: argparse.Namespace) -> None:
    check_options(arguments)
    params = read_declaration(arguments.season)
    boards = read_boards(params)
    if arguments.trec:
        for board in boards:
            data = prepared_tables.read(board.dataset)
            write_trec(board.outcomes, data, arguments.trec)
        print(arguments.trec)
    elif arguments.format == EEE:
        files = []
        for board in boards:
            queries = None
            if arguments.samples:
                queries = queries_of(prepared_tables.read(board.dataset))
            files += write_eee(board, params.season, arguments.out, queries)
        print(f"{arguments.out}: {len(files)} files")
    elif arguments.format == EVAL_RESULTS:
        files = write_eval_results(boards, arguments.out)
        print(f"{arguments.out}: {len(files)} files")
    elif arguments.queries:
        rows = every_rank(boards)
        with atomic(arguments.queries) as part:
            rows.to_parquet(part, index=False)
        print(f"{arguments.queries}: {len(rows)} ranks")
    elif arguments.table:
        makers = table_makers(params, boards)
        chosen = chosen_tables(makers, arguments.table, params.season)
        print("\n".join(map(FORMATS[arguments.format], chosen)))
    else:
        print("\n".join(tables_of(params, boards)))


def check_options(arguments: argparse.Namespace) -> None:
    """Raises UserError for options that do not go together."""
    in_folder = arguments.format in IN_FOLDERS
    outputs = {
        "a table": arguments.table,
        "--queries": arguments.queries,
        "--trec": arguments.trec,
    }
    given = [name for name, value in outputs.items() if value]
    fault = ""
    if in_folder and given:
        fault = "a table, --queries or --trec beside it"
    elif in_folder and not arguments.out:
        fault = f"--format {arguments.format} alone"
    elif arguments.out and not in_folder:
        raise UserError(
            "--out",
            expected=f"--format {' or '.join(IN_FOLDERS)}",
            found=f"--format {arguments.format}",
            do=f"write what is printed to a file: > {arguments.out}",
        )
    if fault:
        name = arguments.format if in_folder else EEE
        raise UserError(
            "export",
            expected=f"--format {name} with --out FOLDER, and nothing else",
            found=fault,
            do=f"run: rematch export --format {name} --out FOLDER",
        )
    if len(given) > 1:
        raise UserError(
            "export",
            expected="a table, --queries or --trec",
            found=" and ".join(given),
            do="run one export for each",
        )
    if given and not arguments.table and arguments.format != CSV:
        raise UserError(
            "--format",
            expected="a table",
            found=given[0],
            do="leave --format out, or name a table",
        )
    if arguments.samples and arguments.format != EEE:
        raise UserError(
            "--samples",
            expected=f"--format {EEE}",
            found=f"--format {arguments.format}",
            do="leave it out; --queries writes all ranks",
        )
    if arguments.queries and arguments.queries.suffix != ".parquet":
        raise UserError(
            "--queries",
            expected="a .parquet file",
            found=arguments.queries.name,
            do=f"run: rematch export --queries {arguments.queries.stem}.parquet",
        )


def chosen_tables(makers: Mapping[str, Maker], name: str, season: str) -> list[Table]:
    """The table of a name; a name without its place, such as two_branch/4, stands for
    the tables of all places. Raises UserError for an unknown one."""
    chosen = []
    for known, make in makers.items():
        if name in (known, known.partition(" ")[0]):
            chosen.append(make())
    chosen = [table for table in chosen if table]
    if not chosen:
        tables = [known for known, make in makers.items() if make()]
        advice = f"run: rematch export --season {season}, which prints all names"
        raise UserError(
            "table",
            expected="the name of a table",
            found=suggested(name, tables),
            do=_of_other_season(name, season) or advice,
        )
    return chosen


def _of_other_season(name: str, season: str) -> str:
    """What to run for a name that begins with another season: the command that prints
    its tables, or that exports the table, if that season has it; else ""."""
    other, _, what = name.partition("/")
    if other == season or other not in season_names():
        return ""
    if not what:
        return f"run: rematch export --season {other}, which prints all names"
    params = read_declaration(other)
    table = f"{next(iter(params.datasets))}/{what}"
    if table not in table_makers(params, read_boards(params)):
        return ""
    return f"run: rematch export --season {other} {table}"


def every_rank(boards: list[Board]) -> pd.DataFrame:
    """One row per cell with a result, direction and query; the cluster is the query's
    image, or the person or other group that its image belongs to."""
    tables = [pd.DataFrame(columns=COLUMNS)]
    for board in boards:
        queries = queries_of(prepared_tables.read(board.dataset))
        for outcome in board.outcomes:
            if not outcome.is_ok:
                continue
            cell = {name: getattr(outcome.record, name) for name in OF_CELL}
            for key, ranks in outcome.scores.ranks.items():
                table = queries[key].assign(**cell, rank=ranks.best)
                tables.append(table[COLUMNS])
    return pd.concat(tables, ignore_index=True)


# Names of tables ----------------------------------------------------------------------


def tables_of(params: Declaration, boards: Sequence[Board]) -> dict[str, Table]:
    """Every table that has rows, by its name."""
    tables = {}
    for name, make in table_makers(params, boards).items():
        table = make()
        if table:
            tables[name] = table
    return tables


def table_makers(params: Declaration, boards: Sequence[Board]) -> dict[str, Maker]:
    """What makes each table by its name: <dataset>/<what>, and <paper>/<number> <place>
    with the dataset where the season has several. Some have no rows."""
    makers: dict[str, Maker] = {}
    for board in boards:
        for what, make in dataset_tables.table_makers(params, board).items():
            makers[f"{board.dataset}/{what}"] = make
        makers[f"{board.dataset}/claims"] = partial(_claims, board)
        dataset = f" {board.dataset}" if len(boards) > 1 else ""
        for name, paper in papers().items():
            for number, printed in paper.tables.items():
                for place in printed.places:
                    make = partial(paper_table, paper, number, place, board)
                    makers[f"{name}/{number} {place}{dataset}"] = make
    return makers


def _claims(board: Board) -> Table:
    return claims_table(f"{board.title}: claims", claims.claim_tests(board))

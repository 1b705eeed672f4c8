"""Any table of a season as CSV, JSON, LaTeX or Markdown, and the rank of every query.

python -m benchmark export                                  the names of all tables
python -m benchmark export flickr8k/leaderboard --format latex > leaderboard.tex
python -m benchmark export --queries ranks.parquet          season, dataset, preset, seed,
                                                            direction, query, rank (from 0)
python -m benchmark export --metrics                        reports/<season>/metrics/, a file per
                                                            dataset and preset: `dvc metrics show`
"""

import argparse
import sys
from pathlib import Path

import pandas as pd
from pydantic import RootModel

from benchmark.analysis.boards import Board, read_boards
from benchmark.core.array_files import read_parquet
from benchmark.core.errors import UserError, checked, corrected_by
from benchmark.core.files import atomic, replaced, write_json
from benchmark.core.json_objects import read_object
from benchmark.core.names import Name
from benchmark.report.__main__ import FORMATS, ROOT, printed_table
from benchmark.season.parameter_files import read_params

KEYS = ("season", "dataset", "preset", "seed")
IN_SHORT = ("rsum", "i2t_r1", "t2i_r1", "p2r_r1", "overlap_s")
DECIMALS = 3
LIST = "list"
KEEP = "to keep one: python -m benchmark export NAME --format latex > FILE"


class ReportedMetrics(RootModel[dict[Name, dict[Name, dict[str, float]]]]):
    """A report's metrics.json: dataset -> preset, or claims -> metric, or count."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", nargs="?", default=LIST, help="default: list their names")
    parser.add_argument("--format", choices=FORMATS, default="csv")
    parser.add_argument(
        "--queries", type=Path, metavar="FILE", help="write a .parquet of all ranks"
    )
    parser.add_argument("--metrics", action="store_true", help="few metrics of each, for DVC")
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    if arguments.metrics:
        print(write_metrics(ROOT / params.season))
        return
    boards = read_boards(params)
    if not arguments.queries:
        sys.stdout.write(printed_table(boards, arguments.table, arguments.format))
        if arguments.table == LIST:
            print(KEEP, file=sys.stderr)
        return
    if arguments.queries.suffix != ".parquet":
        raise UserError("--queries", "a .parquet file", arguments.queries.name, "name it so")
    rows = every_rank(boards)
    with atomic(arguments.queries) as part:
        rows.to_parquet(part, index=False)
    print(f"{arguments.queries}: {len(rows)} ranks")


def every_rank(boards: list[Board]) -> pd.DataFrame:
    """One row per cell with a result, direction and query."""
    columns = [*KEYS, "direction", "query", "rank"]
    tables = [
        read_parquet(outcome.folder / "scores/ranks.parquet").assign(
            **{key: vars(outcome.record)[key] for key in KEYS}
        )[columns]
        for board in boards
        for outcome in board.outcomes
        if outcome.is_ok
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def write_metrics(folder: Path) -> Path:
    """metrics/<dataset>/<preset>.json in the folder of a report, from its metrics.json.

    `dvc metrics show` makes a line of each file, and a column of each of its few metrics."""
    path, target = folder / "metrics.json", folder / "metrics"
    with corrected_by(f"python -m benchmark report --season {folder.name}"):
        reported = checked(ReportedMetrics, read_object(path), str(path)).root
    with replaced(target) as part:
        for dataset, presets in reported.items():
            for preset, metrics in presets.items():
                short = {key: round(metrics[key], DECIMALS) for key in IN_SHORT if key in metrics}
                if short:  # not the counts of claims
                    write_json(part / dataset / f"{preset}.json", short)
    return target

"""Stage: the records of a season -> reports/<season>/, Markdown with figures.

README.md is the first page; it links to papers/, datasets/ and claims.md. claims.json
is what `rematch ledger` reads for the pages over all seasons; plots/ are tables for
`dvc plots`. The same records give the same bytes. Images and captions that may not be
published go to reports/<season>/local/, which is not committed. `rematch export` prints
single tables.
"""

import argparse
import gc
from pathlib import Path

import pandas as pd

from benchmark.boards import claims_file
from benchmark.boards.boards import Board
from benchmark.boards.claims_file import SeasonClaims
from benchmark.boards.season_boards import metrics, read_boards, read_fold_boards
from benchmark.core.command_line import add_season_first, run_stage
from benchmark.core.files import atomic, write_json, write_text
from benchmark.report import ROOT
from benchmark.report.figure_listing import FigureFolder, remove_others
from benchmark.report.pages.season_pages import season_pages
from benchmark.report.tables import number_for_programs
from benchmark.season.parameter_files import read_declaration
from benchmark.season.parameters import Declaration

CURVES = ["epoch", "loss", "val_rsum"]
OBJECTS = 50_000  # new ones, after which garbage is looked for: a figure has some


def configure(parser: argparse.ArgumentParser) -> None:
    add_season_first(parser)


def main(arguments: argparse.Namespace) -> None:
    gc.set_threshold(OBJECTS)
    params = read_declaration(arguments.season)
    folder = write_report(params)
    print(folder / "README.md")


def write_report(params: Declaration) -> Path:
    """Write all pages, figures/, plots/ and metrics.json of the season; returns their
    folder."""
    boards = read_boards(params)
    folds = read_fold_boards(params)
    measured = metrics(boards)
    season_claims = SeasonClaims.of(params, boards, folds)
    evidence = claims_file.evidence([*boards, *folds])
    folder = ROOT / params.season
    figures = FigureFolder(folder / "figures")
    pages = season_pages(params, boards, figures, folds)
    texts = pages.texts | plots(boards)
    of_season = season_claims.model_copy(update={"pages": pages.contents})
    remove_others(figures.folder, figures.written)
    kept = [folder / name for name in texts]
    for subfolder in ("datasets", "papers"):
        remove_others(folder / subfolder, kept)
    # which DVC expects, empty ones, too
    for subfolder in ("datasets", "papers", "figures"):
        (folder / subfolder).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_text(folder / name, text)
    write_json(folder / "metrics.json", measured)
    write_json(folder / claims_file.FILE, of_season.model_dump(mode="json"))
    if len(evidence):
        with atomic(folder / claims_file.EVIDENCE) as part:
            evidence.to_parquet(part, index=False)
    return folder


def plots(boards: list[Board]) -> dict[str, str]:
    """The texts of training.csv, one row per epoch, and leaderboard.csv, one row per
    preset, by their places in the folder."""
    curves = [pd.DataFrame(columns=[*CURVES, "cell"])]
    rows = []
    for board in boards:
        for row in board.rows:
            for outcome in row.played:
                epochs = outcome.record.epochs
                if epochs is not None:
                    cell = f"{board.dataset} {row.preset} {outcome.record.seed}"
                    curves.append(epochs[CURVES].round(5).assign(cell=cell))
        for row in board.retrieval.ranked:
            rsum = number_for_programs(row.mean("rsum"))
            rows.append([board.dataset, row.preset, rsum])
    tables = {
        "training": pd.concat(curves[1:] or curves),
        "leaderboard": pd.DataFrame(rows, columns=["dataset", "preset", "rsum"]),
    }
    texts = {}
    for name, table in tables.items():
        texts[f"plots/{name}.csv"] = table.to_csv(index=False, lineterminator="\n")
    return texts


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))

"""Stage: the records of a season -> reports/<season>/, Markdown with figures.

README.md is the first page; it links to papers/, datasets/ and claims.md. claims.json is what
`python -m benchmark ledger` reads for the pages over all seasons. The same records give the same
bytes. Pictures and captions that may not be published go to reports/<season>/local/, which is not
committed.

    --table NAME   print one table instead, for a paper or a spreadsheet
    --trec FOLDER  write the rankings of images and captions as TREC run and qrels instead, for
                   other tools
"""

import argparse
import gc
import sys
from pathlib import Path

from benchmark.analysis import claims, season_claims, trec_export
from benchmark.analysis.boards import Board, Standing, read_boards
from benchmark.core.command_line import add_season, run_stage
from benchmark.core.errors import UserError
from benchmark.core.files import write_json, write_text
from benchmark.core.suggestions import suggested
from benchmark.data import prepared_tables
from benchmark.papers.printed_tables import papers
from benchmark.protocol.record_metrics import INTERVAL_ENDS
from benchmark.report import table_formats, table_numbers
from benchmark.report.pages.claim_tables import claims_table, not_run_table
from benchmark.report.pages.dataset_page import dataset_tables
from benchmark.report.pages.dvc_plots import write_plots
from benchmark.report.pages.figure_files import FigureFolder, remove_others
from benchmark.report.pages.paper_tables import paper_tables
from benchmark.report.pages.season_pages import season_pages
from benchmark.report.table_formats import Table
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Params

ROOT = Path("reports")
FORMATS = {
    "markdown": table_formats.as_markdown,
    "latex": table_formats.as_latex,
    "csv": table_numbers.as_csv,
    "json": table_numbers.as_json,
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_season(parser)
    parser.add_argument("--json", action="store_true", help="print metrics.json as well")
    parser.add_argument(
        "--table", metavar="NAME", help="for example two_branch/2; `list` prints all names"
    )
    parser.add_argument("--format", choices=FORMATS, default="markdown", help="of --table")
    parser.add_argument("--trec", metavar="FOLDER", type=Path)


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    if arguments.table:
        sys.stdout.write(printed_table(read_boards(params), arguments.table, arguments.format))
    elif arguments.trec:
        write_rankings(read_boards(params), arguments.trec)
        print(arguments.trec)
    else:
        folder = write_report(params)
        text = (folder / "metrics.json").read_text(encoding="utf-8")
        print(text if arguments.json else folder / "README.md")


def write_report(params: Params) -> Path:
    """Write all pages, figures/, plots/ and metrics.json of the season; returns their folder."""
    boards = read_boards(params)
    gc.freeze()  # what was read stays: no need to search it for garbage after each figure
    verdicts = {board.dataset: claims.verdicts(board) for board in boards}
    folder = ROOT / params.season
    figures = FigureFolder(folder / "figures", "figures/")
    pages = season_pages(params, boards, verdicts, figures)
    figures.remove_others()
    for subfolder in ("datasets", "papers", "figures"):  # which DVC expects, empty ones, too
        (folder / subfolder).mkdir(parents=True, exist_ok=True)
    for subfolder in ("datasets", "papers"):
        remove_others(folder / subfolder, [folder / name for name in pages])
    for name, text in pages.items():
        write_text(folder / name, text)
    write_plots(boards, folder / "plots")
    write_json(folder / "metrics.json", metrics(boards, verdicts))
    of_claims = season_claims.season_claims(params, boards, verdicts)
    write_json(folder / season_claims.FILE, of_claims.model_dump(mode="json"))
    return folder


def metrics(boards: list[Board], verdicts: dict[str, list[claims.Verdict]]) -> dict:
    """dataset -> preset -> metric -> mean over the seeds, and dataset -> claims -> counts.

    Presets without a result are left out, and so are the ends of single trainings' intervals: their
    means are no interval of the preset.
    """
    return {
        board.dataset: {standing.preset: _means(standing) for standing in board.ranked}
        | {"claims": claims.counts(verdicts[board.dataset])}
        for board in boards
    }


def _means(standing: Standing) -> dict[str, float]:
    return {name: mean for name, mean in standing.means().items() if name not in INTERVAL_ENDS}


def printed_table(boards: list[Board], name: str, form: str) -> str:
    """One table of the season in a format of FORMATS, or with `list` the names of all tables.

    A name without its place, such as two_branch/4, stands for the tables of all places. Raises
    UserError for an unknown name.
    """
    tables = tables_of(boards)
    if name == "list":
        return "".join(f"{known}\n" for known in tables)
    chosen = [table for known, table in tables.items() if name in (known, known.partition(" ")[0])]
    if not chosen:
        raise UserError(
            "table",
            expected="the name of a table",
            found=suggested(name, tables),
            do="python -m benchmark export prints all names",
        )
    return "\n".join(FORMATS[form](table) for table in chosen)


def tables_of(boards: list[Board]) -> dict[str, Table]:
    """Every table by its name: <paper>/<number> <place>, <dataset>/<what>."""
    tables = {
        f"{name}/{number} {place}": table
        for name, paper in papers().items()
        for number, by_place in paper_tables(paper, boards).items()
        for place, table in by_place.items()
    }
    for board in boards:
        title, verdicts = board.card["title"], claims.verdicts(board)
        of_dataset = dataset_tables(board)
        of_dataset["claims"] = claims_table(f"{title}: claims", verdicts)
        of_dataset["claims-not-run"] = not_run_table(f"{title}: claims not run", verdicts)
        tables |= {f"{board.dataset}/{what}": table for what, table in of_dataset.items() if table}
    return tables


def write_rankings(boards: list[Board], folder: Path) -> None:
    """TREC run and qrels files of every retrieval cell with a result."""
    for board in boards:
        trec_export.write_trec(board.outcomes, prepared_tables.read(board.dataset), folder)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))

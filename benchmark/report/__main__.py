"""Stage: the records of the declared grid -> reports/<season>/, Markdown with figures.

README.md is the way in; papers/, datasets/, claims.md and fidelity.md say the rest. A pure function
of its inputs: the same records give the same bytes. What shows pictures or captions that may not be
published goes to reports/<season>/local/, which is not committed.

    --table NAME   print one table instead, for a paper or a spreadsheet
    --trec FOLDER  write every ranking of images and captions as TREC run and qrels instead, for
                   outside tools
"""

import argparse
import sys
from pathlib import Path

from benchmark.analysis import claims, trec_export
from benchmark.analysis.boards import Board, read_boards
from benchmark.core.command_line import add_season, run_stage
from benchmark.core.errors import UserError
from benchmark.core.files import write_json, write_text
from benchmark.data import prepared_tables
from benchmark.papers.printed_tables import papers
from benchmark.report import table_formats
from benchmark.report.pages import paper_tables, season_pages
from benchmark.report.pages.claim_tables import claims_grid, not_run_grid
from benchmark.report.pages.dvc_plots import write_plots
from benchmark.report.pages.figure_files import Album, remove_others
from benchmark.report.table_formats import Grid
from benchmark.season.parameters import Params
from benchmark.season.parameter_files import read_params

ROOT = Path("reports")
FORMATS = {
    "markdown": table_formats.as_markdown,
    "latex": table_formats.as_latex,
    "csv": table_formats.as_csv,
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_season(parser)
    parser.add_argument("--json", action="store_true", help="print metrics.json as well")
    parser.add_argument(
        "--table", metavar="NAME", help="for example two_branch/2; `list` names all"
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
    judged = {board.dataset: claims.verdicts(board) for board in boards}
    folder = ROOT / params.season
    album = Album(folder / "figures", "figures/")
    written = season_pages.pages(params, boards, judged, album)
    album.remove_others()
    for pages_of in ("datasets", "papers"):
        remove_others(folder / pages_of, [folder / name for name in written])
    for name, text in written.items():
        write_text(folder / name, text)
    write_plots(boards, folder / "plots")
    write_json(folder / "metrics.json", metrics(boards, judged))
    return folder


def metrics(boards: list[Board], judged: dict[str, list[claims.Verdict]]) -> dict:
    """dataset -> preset -> metric -> mean over the seeds, and how many claims ended how.

    Presets without a result are left out.
    """
    return {
        board.dataset: {standing.preset: standing.means() for standing in board.ranked}
        | {"claims": claims.counts(judged[board.dataset])}
        for board in boards
    }


def printed_table(boards: list[Board], name: str, form: str) -> str:
    """One table of the season in a format of FORMATS; `list` gives the names of all."""
    found = tables_of(boards)
    if name == "list":
        return "".join(f"{known}\n" for known in found)
    chosen = [table for known, table in found.items() if name in (known, known.partition(" ")[0])]
    if not chosen:
        raise UserError(f"--table: no table {name!r}; see: python -m benchmark report --table list")
    return "\n".join(FORMATS[form](table) for table in chosen)


def tables_of(boards: list[Board]) -> dict[str, Grid]:
    """Every table by its name: <paper>/<number> <place>, <dataset>/<what>."""
    found = {
        f"{name}/{number} {place}": table
        for name, paper in papers().items()
        for number, places in paper_tables.paper_grids(paper, boards).items()
        for place, table in places.items()
    }
    for board in boards:
        title, verdicts = board.card["title"], claims.verdicts(board)
        known = season_pages.dataset_grids(board)
        known["claims"] = claims_grid(f"{title}: claims", verdicts)
        known["claims-not-run"] = not_run_grid(f"{title}: claims not run", verdicts)
        found |= {f"{board.dataset}/{what}": table for what, table in known.items() if table}
    return found


def write_rankings(boards: list[Board], folder: Path) -> None:
    """TREC run and qrels files of every retrieval cell with a result."""
    for board in boards:
        trec_export.write_trec(board.outcomes, prepared_tables.read(board.dataset), folder)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))

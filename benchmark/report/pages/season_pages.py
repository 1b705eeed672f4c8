"""All pages of a season's report: the first page, claims, fidelity, papers and datasets.

Each is a template filled from boards. Knows no torch.
"""

from collections.abc import Sequence

from benchmark.analysis import comparisons
from benchmark.analysis.boards import MIN_TEST_QUERIES, Board
from benchmark.analysis.claims import Verdict
from benchmark.analysis.seed_spread import CARRIES
from benchmark.analysis.significance import ALPHA
from benchmark.papers.fidelity_notes import Entry, fidelity
from benchmark.papers.printed_tables import Paper, papers
from benchmark.protocol import distribution_overlap
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.pages import result_tables, summary
from benchmark.report.pages.claim_tables import claims_table, counted, not_run_table
from benchmark.report.pages.dataset_page import dataset_page, dataset_tables, is_coarse
from benchmark.report.pages.figure_files import FigureFolder
from benchmark.report.pages.paper_tables import paper_tables
from benchmark.report.pages.replay_lines import replay_lines
from benchmark.report.pages.template_filling import filled
from benchmark.report.table_formats import Table
from benchmark.season.parameters import Params

UP = "../"  # from papers/ to the folder of the report
Verdicts = dict[str, list[Verdict]]  # by dataset
Tables = dict[str, Table | None]  # of a dataset, by name


def season_pages(
    params: Params, boards: Sequence[Board], verdicts: Verdicts, figures: FigureFolder
) -> dict[str, str]:
    """The Markdown of every page by its path; saves the figures that the pages show."""
    tables = {board.dataset: dataset_tables(board) for board in boards}
    pages = {
        "README.md": _readme(params, boards, verdicts, tables),
        "claims.md": _claims(boards, verdicts, figures),
        "fidelity.md": _fidelity(boards),
    }
    for name, paper in papers().items():
        pages[f"papers/{name}.md"] = _paper(name, paper, boards, verdicts, figures)
    for board in boards:
        page = dataset_page(params, board, tables[board.dataset], figures)
        pages[f"datasets/{board.dataset}.md"] = page
    return pages


def _readme(
    params: Params, boards: Sequence[Board], verdicts: Verdicts, tables: dict[str, Tables]
) -> str:
    return filled(
        "readme.md.j2",
        params=params,
        boards=[
            {
                "dataset": board.dataset,
                "title": board.card["title"],
                "verdict": summary.sentences(board, verdicts[board.dataset]),
                "tables": tables[board.dataset],
                "is_coarse": is_coarse(board),
            }
            for board in boards
        ],
        papers=papers(),
        replays=replay_lines(params.season, boards),
        has_one_way=any(len(board.ways) == 1 for board in boards),
        has_phrases=any(board.localisation.standings for board in boards),
        bins=distribution_overlap.BINS,
        plus_minus=result_tables.PLUS_MINUS,
        slack=comparisons.SLACK,
        bin_gap=comparisons.BIN_GAP,
        carries=CARRIES,
        min_queries=MIN_TEST_QUERIES,
    )


def _claims(boards: Sequence[Board], verdicts: Verdicts, figures: FigureFolder) -> str:
    return filled(
        "claims.md.j2",
        boards=[
            {
                "title": board.card["title"],
                "counts": counted(verdicts[board.dataset]),
                "figures": figures.section(
                    "claims",
                    FigureInputs(board=board, verdicts=verdicts[board.dataset]),
                    board.dataset,
                ),
                "tested": claims_table("Tested", verdicts[board.dataset]),
                "not_run": not_run_table("Not run", verdicts[board.dataset]),
            }
            for board in boards
        ],
        carries=CARRIES,
        alpha=ALPHA,
        min_queries=MIN_TEST_QUERIES,
    )


def _fidelity(boards: Sequence[Board]) -> str:
    return filled(
        "fidelity.md.j2",
        methods={name: _entries(name, entries) for name, entries in fidelity().items()},
        boards=[
            {"title": board.card["title"], "remarks": result_tables.remarks(board)}
            for board in boards
        ],
    )


def _entries(name: str, entries: Sequence[Entry]) -> Table:
    heads = ["topic", "paper", "official code", "ours", "why", "option"]
    rows = [[e.topic, e.paper, e.code, e.ours, e.why, e.option or ""] for e in entries]
    return Table(title=f"{name}: paper, official code, ours", heads=heads, rows=rows, names=6)


def _paper(
    name: str, paper: Paper, boards: Sequence[Board], verdicts: Verdicts, figures: FigureFolder
) -> str:
    return filled(
        "paper.md.j2",
        paper=paper,
        name=name,
        tables=paper_tables(paper, boards),
        boards=[_on_board(name, board, verdicts[board.dataset], figures) for board in boards],
    )


def _on_board(name: str, board: Board, verdicts: Sequence[Verdict], figures: FigureFolder) -> dict:
    """What the page of a paper shows of a dataset."""
    own = [verdict for verdict in verdicts if verdict.paper == name]
    stem = f"{board.dataset}-{name}"
    of_claims = FigureInputs(board=board, verdicts=own)
    of_paper = FigureInputs(board=board.retrieval)
    return {
        "title": board.card["title"],
        "dataset": board.dataset,
        "counts": counted(own),
        "tested": claims_table(f"Claims on {board.card['title']}", own),
        "not_run": not_run_table(f"Claims not run on {board.card['title']}", own),
        "forest": figures.section("claims", of_claims, stem, UP),
        "figures": figures.section(f"papers/{name}", of_paper, stem, UP),
    }

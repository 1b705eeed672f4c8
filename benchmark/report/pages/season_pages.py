"""All pages of a season's report: the first page, claims, papers and datasets.

Each is a template filled from boards. Knows no torch.
"""

from collections.abc import Sequence

from benchmark.boards import flags
from benchmark.boards.board_layers import board_layers
from benchmark.boards.boards import MIN_TEST_QUERIES, Board
from benchmark.boards.claim_entries import leader
from benchmark.boards.claims import ClaimTest, claim_tests_on
from benchmark.papers.printed_tables import OWN, papers
from benchmark.report.figure_listing import FigureFolder, FigureInputs
from benchmark.report.pages import claim_tables, filled, paper_tables, result_tables
from benchmark.report.pages.dataset_page import dataset_page, few_queries, legend
from benchmark.report.pages.relevance_page import relevance_page
from benchmark.season.parameters import Params
from benchmark.stats.claim_kinds import Conclusion
from benchmark.stats.significance import ALPHA

UP = "../"  # from papers/ to the folder of the report
HEADS = {  # of the claims that a sentence names
    "Claims that hold": (Conclusion.HOLDS,),
    "Claims that do not hold": (
        Conclusion.REVERSED,
        Conclusion.BETTER,
        Conclusion.WORSE,
    ),
    "Claims without a difference beyond the margin": (Conclusion.NO_DIFFERENCE,),
}


def season_pages(
    params: Params, boards: Sequence[Board], figures: FigureFolder
) -> dict[str, str]:
    """The Markdown of every page by its path; saves the figures that the pages show. A
    paper of which nothing was measured has no page."""
    measured = [
        name
        for name, paper in papers().items()
        if len(paper_tables.unmeasured(paper, boards)) < len(paper.tables)
    ]
    pages = {
        "README.md": _readme(params, boards, measured, figures),
        "claims.md": _claims(boards, figures),
    }
    for name in measured:
        pages[f"papers/{name}.md"] = _paper(name, boards, figures)
    for board in boards:
        pages[f"datasets/{board.dataset}.md"] = dataset_page(params, board, figures)
        if of := board_layers(board):
            pages[f"datasets/{board.dataset}-relevance.md"] = relevance_page(board, of)
    return pages


def _readme(
    params: Params,
    boards: Sequence[Board],
    measured: Sequence[str],
    figures: FigureFolder,
) -> str:
    """The first page: of each dataset and task a figure, who leads, and what was found
    in short; of the one with most rows before everything else."""
    shown: list[dict] = []
    tasks = [
        of
        for board in boards
        for of in (board.retrieval, board.localisation)
        if of.rows
    ]
    for board in sorted(tasks, key=lambda of: -len(of.ranked)):
        task, table = board.rows[0].task, result_tables.first_page(board)
        drawn = figures.section(
            "first", FigureInputs(board=board), f"{board.dataset}-{task}"
        )
        is_told = board.dataset in [of["board"].dataset for of in shown]
        said = "" if is_told else summary(board.whole, claim_tests_on(board.whole))
        shared = result_tables.shared_flags(board)
        of_task = {"board": board, "task": task, "table": table, "figures": drawn}
        shown.append(of_task | {"summary": said, "legend": legend([table], shared)})
    return filled(
        "season.md.j2",
        params=params,
        shown=shown,
        boards=boards,
        layered=[board for board in boards if board_layers(board)],
        papers={name: papers()[name].paper.title for name in measured},
    )


def _claims(boards: Sequence[Board], figures: FigureFolder) -> str:
    """Every claim that was run with its verdict, and why a verdict against a paper may
    be our fault."""
    shown = []
    for board in boards:
        # The season's own claims first, then the papers'; of each those that are
        # decided first.
        ordered = sorted(
            claim_tests_on(board),
            key=lambda claim_test: (
                claim_test.paper != OWN,
                claim_test.conclusion == Conclusion.UNDECIDED,
            ),
        )
        inputs = FigureInputs(board=board, claim_tests=ordered)
        of_board = {
            "board": board,
            "tally": claim_tables.tally(ordered),
            "figures": figures.section("claims", inputs, board.dataset),
            "table": claim_tables.verdict_table(board.title, ordered),
            "against": claim_tables.against_papers(board, ordered),
            "not_run": sum(not claim_test.verdicts for claim_test in ordered),
        }
        shown.append(of_board)
    return filled(
        "claims.md.j2",
        shown=shown,
        claim_tables=claim_tables,
        said=flags.said,
        alpha=ALPHA,
        legend=legend(of_board["table"] for of_board in shown),
    )


def _paper(name: str, boards: Sequence[Board], figures: FigureFolder) -> str:
    """A paper: what became of its headlines, and its tables, printed and measured."""
    paper, shown = papers()[name], []
    for board in boards:
        section, inputs = f"papers/{name}", FigureInputs(board=board.retrieval)
        of_board = {
            "title": board.title,
            "tables": paper_tables.shown_tables(paper, board),
            "answers": sorted(paper_tables.answers(paper, board)),
            "figures": figures.section(section, inputs, f"{board.dataset}-{name}", UP),
        }
        shown.append(of_board)
    return filled(
        "paper.md.j2",
        paper=paper.paper,
        name=name,
        headlines=[claim for claim in paper.claims if claim.headline],
        boards=boards,
        claim_tests={board.dataset: claim_tests_on(board) for board in boards},
        claim_tables=claim_tables,
        shown=shown,
        unmeasured=paper_tables.unmeasured(paper, boards),
    )


def summary(board: Board, claim_tests: Sequence[ClaimTest]) -> str:
    """Who leads, which claims hold, what is missing: the most important first."""
    tasks = [of for of in (board.retrieval, board.localisation) if of.ranked]
    counted = [claim_test for claim_test in claim_tests if claim_test.is_counted]
    counted.sort(key=lambda claim_test: not claim_test.claim.headline)
    phrases = board.localisation.ranked
    return filled(
        "summary.md.j2",
        board=board,
        few_queries=few_queries(board),
        min_queries=MIN_TEST_QUERIES,
        leaders=[leader(of) for of in tasks if not board.is_small(of.ranked[0].task)],
        level=claim_tables.level,
        bounds=[
            f"{row.mean(x):.1f}" for row in phrases[:1] for x in result_tables.LIMITS
        ],
        tally=claim_tables.tally(claim_tests)
        if any(test.verdicts for test in claim_tests)
        else "",
        claims={
            head: [
                v.claim.statement.rstrip(".") for v in counted if v.conclusion in kinds
            ]
            for head, kinds in HEADS.items()
        },
        comparable=any(
            paper_tables.YES in paper_tables.answers(paper, board)
            for paper in papers().values()
        ),
        lost=sum(not outcome.is_ok for outcome in board.outcomes),
        cells=len(board.outcomes),
    )

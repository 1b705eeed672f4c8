"""All pages of a season's report: the first page, claims, papers and datasets.

Each is a template filled from boards. Knows no torch.
"""

from collections.abc import Sequence

from benchmark.boards import flags
from benchmark.boards.boards import Board
from benchmark.boards.claims import Verdict
from benchmark.papers.printed_tables import OWN, papers
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.pages import claim_tables, paper_tables
from benchmark.report.pages.dataset_page import dataset_page, legend
from benchmark.report.pages.figure_files import FigureFolder
from benchmark.report.pages.result_tables import first_page
from benchmark.report.pages.summary import summary
from benchmark.report.pages.templates import filled
from benchmark.season.parameters import Params
from benchmark.stats.significance import ALPHA
from benchmark.stats.verdicts import Conclusion

UP = "../"  # from papers/ to the folder of the report
Verdicts = dict[str, list[Verdict]]  # by dataset


def season_pages(
    params: Params, boards: Sequence[Board], verdicts: Verdicts, figures: FigureFolder
) -> dict[str, str]:
    """The Markdown of every page by its path; saves the figures that the pages show.

    A paper of which nothing was measured has no page.
    """
    measured = [
        name
        for name, paper in papers().items()
        if len(paper_tables.unmeasured(paper, boards)) < len(paper.tables)
    ]
    pages = {
        "README.md": _readme(params, boards, verdicts, measured, figures),
        "claims.md": _claims(boards, verdicts, figures),
    }
    for name in measured:
        pages[f"papers/{name}.md"] = _paper(name, boards, verdicts, figures)
    for board in boards:
        pages[f"datasets/{board.dataset}.md"] = dataset_page(params, board, figures)
    return pages


def _readme(
    params: Params,
    boards: Sequence[Board],
    verdicts: Verdicts,
    measured: Sequence[str],
    figures: FigureFolder,
) -> str:
    """The first page: of each dataset a figure, what was found in short, and who leads."""
    shown, tables = [], []
    for board in boards:
        of_tasks = [of for of in (board.retrieval, board.localisation) if of.ranked]
        first = [first_page(of_task) for of_task in of_tasks]
        drawn = []
        for of_task in of_tasks:
            stem = f"{board.dataset}-{of_task.ranked[0].task}"
            drawn += figures.section("first", FigureInputs(board=of_task), stem)
        said = summary(board, verdicts[board.dataset])
        shown.append({"board": board, "summary": said, "tables": first, "figures": drawn})
        tables += [table for table, _ in first]
    return filled(
        "readme.md.j2",
        params=params,
        shown=shown,
        papers={name: papers()[name].paper.title for name in measured},
        legend=legend(*tables),
    )


def _claims(boards: Sequence[Board], verdicts: Verdicts, figures: FigureFolder) -> str:
    """Every claim that was run with its verdict, and why a verdict against a paper may be our
    fault."""
    shown = []
    for board in boards:
        # The season's own claims first, then the papers'; of each those that are decided first.
        ordered = sorted(
            verdicts[board.dataset],
            key=lambda verdict: (verdict.paper != OWN, verdict.conclusion == Conclusion.UNDECIDED),
        )
        inputs = FigureInputs(board=board, verdicts=ordered)
        shown.append(
            {
                "board": board,
                "tally": claim_tables.tally(ordered),
                "figures": figures.section("claims", inputs, board.dataset),
                "table": claim_tables.verdict_table(board.title, ordered),
                "against": claim_tables.against_papers(board, ordered),
                "not_run": sum(not verdict.pairs for verdict in ordered),
            }
        )
    return filled(
        "claims.md.j2",
        shown=shown,
        statement=claim_tables.statement,
        said=flags.said,
        alpha=ALPHA,
        legend=legend(*(of_board["table"] for of_board in shown)),
    )


def _paper(name: str, boards: Sequence[Board], verdicts: Verdicts, figures: FigureFolder) -> str:
    """A paper: what became of its headlines, and its tables, printed and measured."""
    paper, shown = papers()[name], []
    for board in boards:
        tables = paper_tables.shown_tables(paper, board)
        inputs = FigureInputs(board=board.retrieval)
        shown.append(
            {
                "title": board.title,
                "tables": tables,
                "answers": sorted(paper_tables.answers(paper, board)),
                "figures": figures.section(f"papers/{name}", inputs, f"{board.dataset}-{name}", UP),
            }
        )
    return filled(
        "paper.md.j2",
        paper=paper.paper,
        name=name,
        headlines=[claim for claim in paper.claims if claim.headline],
        boards=boards,
        verdicts=verdicts,
        claim_tables=claim_tables,
        shown=shown,
        unmeasured=paper_tables.unmeasured(paper, boards),
    )

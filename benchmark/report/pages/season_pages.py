"""All pages of a season's report: those that the files of this folder add, among them
its claims and papers here, and the first page, which links to them.

Each is a template filled from boards. Imports no torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import MIN_TEST_QUERIES, Board
from benchmark.boards.claims import ClaimTest, claim_tests
from benchmark.boards.claims_file import Leader, PageContents
from benchmark.boards.row_warnings import choice_of, is_corrected
from benchmark.papers.printed_tables import OWN, papers
from benchmark.report.figure_listing import FigureFolder, FigureInputs
from benchmark.report.pages import (
    Page,
    SeasonInputs,
    claim_tables,
    filled,
    listed_pages,
    paper_tables,
    result_tables,
)
from benchmark.report.pages.dataset_page import few_queries, legend
from benchmark.report.tables import Table
from benchmark.season.parameters import Declaration
from benchmark.stats import ALPHA
from benchmark.stats.claim_kinds import FAILED, KINDS, Conclusion

FRONT = ("README.md", "claims.md")  # pages on which papers have no table or figure
HEADS = {  # start of a line of the summary -> conclusions of the claims that it names
    "Holding": (Conclusion.HOLDS,),
    "Failing or without effect": FAILED,
}


@dataclass(frozen=True)
class SeasonPages:
    """The Markdown of the pages by their paths, and what they show of the papers."""

    texts: dict[str, str]
    contents: list[PageContents]


def season_pages(
    params: Declaration,
    boards: Sequence[Board],
    figures: FigureFolder,
    folds: Sequence[Board] = (),
) -> SeasonPages:
    """All pages; saves the figures that they show."""
    inputs = SeasonInputs(params, boards, folds, figures)
    listed = list(listed_pages(inputs))
    texts: dict[str, str] = {}
    for page in listed:
        if page.path in texts:
            raise ValueError(f"{page.path}: two pages of report/pages/ have this path")
        texts[page.path] = page.text
    # last: it shows figures of the datasets' pages
    texts["README.md"] = _readme(inputs, listed)
    contents = []
    for page in sorted(listed, key=lambda page: page.path):
        drawn = figures.shown.get(page.path, [])
        if page.path not in FRONT and (page.tables or drawn):
            on_page = PageContents(path=page.path, tables=page.tables, figures=drawn)
            contents.append(on_page)
    return SeasonPages(texts, contents)


def pages(inputs: SeasonInputs) -> Iterator[Page]:
    """The page of claims, and one for each paper of which something was measured."""
    boards = inputs.boards
    yield Page(
        path="claims.md",
        text=_claims(boards, inputs.figures),
        title="Claims",
        about="every claim with its verdict",
    )
    for name, paper in papers().items():
        if len(paper_tables.unmeasured(paper, boards)) == len(paper.tables):
            continue
        of_boards = [paper_tables.shown_tables(paper, board) for board in boards]
        shown = set(chain.from_iterable(of_boards))
        yield Page(
            path=f"papers/{name}.md",
            text=_paper(name, boards, of_boards, inputs.figures),
            title=paper.paper.title,
            about="printed numbers and ours",
            tables={name: [number for number in paper.tables if number in shown]},
        )


def _readme(inputs: SeasonInputs, listed: Sequence[Page]) -> str:
    """The first page: for each dataset and task a figure, the leaders and a summary;
    the one with the most ranked rows first."""
    boards, figures = inputs.boards, inputs.figures
    tasks = list(chain.from_iterable(board.by_task for board in boards))
    tasks.sort(key=lambda board: -len(board.ranked))
    shown = []
    summed_up = set()
    for board in tasks:
        task = board.rows[0].task
        table = result_tables.first_page(board)
        corrected = sum(map(is_corrected, board.ranked))
        stem = f"{board.dataset}-{task}"
        section = {
            "board": board,
            "task": task,
            "table": table,
            "without_corrected": 0 < corrected < len(board.ranked),
            "figures": figures.save_section(
                "first", FigureInputs(board=board), stem, "README.md"
            ),
            "summary": "",
            "legend": legend([table], result_tables.shared_flags(board)),
        }
        if board.dataset not in summed_up:
            section["summary"] = summary(board.whole, claim_tests(board.whole))
            summed_up.add(board.dataset)
        shown.append(section)
    links: dict[str, list[Page]] = {}
    for page in listed:
        links.setdefault(page.about, []).append(page)
    return filled(
        "season.md.j2",
        params=inputs.params,
        shown=shown,
        links=links,
        overlaps=list(filter(None, (_overlap(board, figures) for board in boards))),
    )


def _overlap(board: Board, figures: FigureFolder) -> dict:
    """S of the best row, and of all rows whose S can be compared: none with corrected
    scores, and none whose S depends on its bins. And the figure of the densities, if
    the page of the dataset shows it. Empty without such a row."""
    rows = []
    for row in board.retrieval.ranked:
        is_reliable = not comparisons.is_coarse(row) and not is_corrected(row)
        if row.values(result_tables.S) and is_reliable:
            rows.append(row)
    if not rows:
        return {}
    levels = [row.mean(result_tables.S) for row in rows]
    drawn = figures.folder / f"{board.dataset}-similarities.svg"
    return {
        "board": board,
        "best": rows[0],
        "level": levels[0],
        "low": min(levels),
        "high": max(levels),
        "count": len(rows),
        "figure": f"figures/{drawn.name}" if drawn in figures.written else "",
    }


def _claims(boards: Sequence[Board], figures: FigureFolder) -> str:
    """Every claim that was run with its verdict, and why a verdict against a paper may
    be our fault."""
    shown = []
    tables = []
    for board in boards:
        ordered = sorted(claim_tests(board), key=_order_of_claims)
        inputs = FigureInputs(board=board, claim_tests=ordered)
        table = claim_tables.verdict_table(board.title, ordered)
        section = {
            "board": board,
            "tally": claim_tables.tally(ordered),
            "figures": figures.save_section(
                "claims", inputs, board.dataset, "claims.md"
            ),
            "table": table,
            "against": claim_tables.against_papers(board, ordered),
            "not_run": sum(not test.verdicts for test in ordered),
        }
        shown.append(section)
        tables.append(table)
    return filled(
        "claims.md.j2",
        shown=shown,
        claim_tables=claim_tables,
        said=flags.said,
        alpha=ALPHA,
        kinds=KINDS.values(),
        legend=legend(tables),
    )


def _order_of_claims(test: ClaimTest) -> tuple[bool, bool]:
    """The season's own claims first, then the papers'; of each those that are decided
    first."""
    return test.paper != OWN, test.conclusion == Conclusion.UNDECIDED


def _paper(
    name: str,
    boards: Sequence[Board],
    tables: Sequence[dict[str, list[Table]]],
    figures: FigureFolder,
) -> str:
    """A paper: what became of its headlines, and its tables, printed and measured, by
    number for each board."""
    paper = papers()[name]
    page = f"papers/{name}.md"
    shown = []
    for board, by_number in zip(boards, tables, strict=True):
        stem = f"{board.dataset}-{name}"
        inputs = FigureInputs(board=board.retrieval)
        section = {
            "title": board.title,
            "tables": list(chain.from_iterable(by_number.values())),
            "obstacles": list(paper_tables.obstacles_of_rows(paper, board)),
            "figures": figures.save_section(f"papers/{name}", inputs, stem, page),
        }
        shown.append(section)
    return filled(
        "paper.md.j2",
        paper=paper.paper,
        name=name,
        headlines=[claim for claim in paper.claims if claim.headline],
        boards=boards,
        claim_tests={board.dataset: claim_tests(board) for board in boards},
        claim_tables=claim_tables,
        shown=shown,
        unmeasured=paper_tables.unmeasured(paper, boards),
    )


def summary(board: Board, tests: Sequence[ClaimTest]) -> str:
    """Who leads, which claims hold, what is missing: the most important first."""
    leaders, choices = [], {}
    for of_task in board.by_task:
        task = of_task.rows[0].task
        if of_task.ranked and not board.is_small(task):
            leaders.append(Leader.of(of_task))
            choices[task] = choice_of(of_task)
    counted = [test for test in tests if test.is_counted]
    counted.sort(key=lambda test: not test.claim.headline)
    claims = {}
    for head, conclusions in HEADS.items():
        listed = [test.claim for test in counted if test.conclusion in conclusions]
        claims[head] = [claim.statement.rstrip(".") for claim in listed]
    bounds = []
    if board.localisation.ranked:
        best = board.localisation.ranked[0]
        bounds = [f"{best.mean(limit):.1f}" for limit in result_tables.LIMITS]
    is_any_run = any(test.verdicts for test in tests)
    obstacles = set()
    for paper in papers().values():
        obstacles |= paper_tables.obstacles_of_rows(paper, board)
    return filled(
        "summary.md.j2",
        board=board,
        few_queries=few_queries(board),
        min_queries=MIN_TEST_QUERIES,
        leaders=leaders,
        level=claim_tables.level,
        choices=choices,
        bounds=bounds,
        tally=claim_tables.tally(tests) if is_any_run else "",
        claims=claims,
        comparable=() in obstacles,  # no obstacle for at least one row
        lost=sum(not outcome.is_ok for outcome in board.outcomes),
        cells=len(board.outcomes),
    )

"""All pages of a season's report: the first page, claims, papers and datasets.

Each is a template filled from boards. Knows no torch.
"""

from collections.abc import Sequence

from benchmark.analysis import validity
from benchmark.analysis.boards import MIN_TEST_QUERIES, Board
from benchmark.analysis.claims import Verdict
from benchmark.analysis.seed_spread import CARRIES
from benchmark.analysis.significance import ALPHA
from benchmark.analysis.verdict_rules import Conclusion
from benchmark.papers.printed_tables import Paper, papers
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.pages import claim_tables, leaderboards, replay_tables, summary
from benchmark.report.pages.careful_rows import careful_rows, twins_line
from benchmark.report.pages.contradictions import evidence
from benchmark.report.pages.dataset_page import dataset_page, dataset_tables
from benchmark.report.pages.figure_files import FigureFolder
from benchmark.report.pages.replay_lines import replay_lines
from benchmark.report.pages.template_filling import filled
from benchmark.season.parameters import Params
from benchmark.season.presets import presets

UP = "../"  # from papers/ to the folder of the report
Verdicts = dict[str, list[Verdict]]  # by dataset


def season_pages(
    params: Params, boards: Sequence[Board], verdicts: Verdicts, figures: FigureFolder
) -> dict[str, str]:
    """The Markdown of every page by its path; saves the figures that the pages show.

    A paper of which nothing was measured has no page.
    """
    measured = {
        name: paper for name, paper in papers().items() if replay_tables.has_numbers(paper, boards)
    }
    pages = {
        "README.md": _readme(params, boards, verdicts, measured, figures),
        "claims.md": _claims(boards, verdicts, figures),
    }
    for name, paper in measured.items():
        pages[f"papers/{name}.md"] = _paper(name, paper, boards, verdicts, figures)
    for board in boards:
        page = dataset_page(params, board, dataset_tables(board), figures)
        pages[f"datasets/{board.dataset}.md"] = page
    return pages


def _readme(
    params: Params,
    boards: Sequence[Board],
    verdicts: Verdicts,
    measured: dict[str, Paper],
    figures: FigureFolder,
) -> str:
    return filled(
        "readme.md.j2",
        params=params,
        boards=[_first_look(board, verdicts[board.dataset], figures) for board in boards],
        papers=measured,
        replays=replay_lines(params.season, boards),
        legend=validity.BRIEF_LEGEND,
        has_dagger=any(
            leaderboards.is_of_these_trainings(of_task)
            for board in boards
            for of_task in (board.retrieval, board.localisation)
        ),
    )


def _first_look(board: Board, verdicts: Sequence[Verdict], figures: FigureFolder) -> dict:
    """What the first page shows of a dataset."""
    of_tasks = [of_task for of_task in (board.retrieval, board.localisation) if of_task.ranked]
    return {
        "dataset": board.dataset,
        "title": board.card["title"],
        "verdict": summary.sentences(board, verdicts),
        "tables": [leaderboards.first_page(of_task) for of_task in of_tasks],
        "limits": [text for text in map(leaderboards.limits, of_tasks) if text],
        "budget": summary.budget(board),
        "careful": [
            line
            for of_task in of_tasks
            for line in (*careful_rows(of_task), twins_line(of_task))
            if line
        ],
        "figures": [
            figure
            for of_task in of_tasks
            for figure in figures.section(
                "first", FigureInputs(board=of_task), f"{board.dataset}-{of_task.ranked[0].task}"
            )
        ],
    }


def _claims(boards: Sequence[Board], verdicts: Verdicts, figures: FigureFolder) -> str:
    return filled(
        "claims.md.j2",
        boards=[_judged(board, verdicts[board.dataset], figures) for board in boards],
        key=claim_tables.key_table(),
        has_own=any(board.own_claims for board in boards),
        statement=claim_tables.statement,
        facts=claim_tables.facts,
        has_dagger=any(
            claim_tables.has_dagger(tested.comparison)
            for of_board in verdicts.values()
            for verdict in of_board
            for tested in verdict.tested
        ),
        carries=CARRIES,
        alpha=ALPHA,
        min_queries=MIN_TEST_QUERIES,
    )


def _judged(board: Board, verdicts: Sequence[Verdict], figures: FigureFolder) -> dict:
    """What the page of the claims shows of a dataset."""
    own, of_papers = claim_tables.own_first(verdicts)
    verdicts = [*own, *of_papers]
    run = [verdict for verdict in verdicts if verdict.conclusion != Conclusion.NOT_RUN]
    listed = own if board.has_own_pictures else verdicts  # of those that were not run
    not_run = claim_tables.not_run_reasons(listed)
    listed_count = sum(map(len, not_run.values()))
    known = presets()
    method_of = {preset: method for preset, (method, _) in known.items()}
    adaptive = {
        preset for preset, (_, row) in known.items() if row.fuse and row.fuse.how == "adaptive"
    }
    inputs = FigureInputs(board=board, verdicts=verdicts)
    return {
        "dataset": board.dataset,
        "title": board.card["title"],
        "tally": claim_tables.tally(verdicts),
        "adjusted_alone": claim_tables.adjusted_alone(verdicts),
        "figures": figures.section("claims", inputs, board.dataset),
        "tested": claim_tables.verdict_table("Tested", verdicts),
        "run": [
            (verdict, evidence(verdict, board.dataset, method_of, adaptive)) for verdict in run
        ],
        "not_run": not_run,
        "not_run_count": listed_count,
        "folded_count": len(verdicts) - len(run) - listed_count,
    }


def _paper(
    name: str,
    paper: Paper,
    boards: Sequence[Board],
    verdicts: Verdicts,
    figures: FigureFolder,
) -> str:
    by_title = {board.card["title"]: verdicts[board.dataset] for board in boards}
    return filled(
        "paper.md.j2",
        paper=paper,
        name=name,
        headlines=claim_tables.headlines(name, by_title),
        boards=[_on_board(name, paper, board, figures) for board in boards],
        arrow=replay_tables.ARROW,
        unmeasured=replay_tables.unmeasured(paper, boards),
    )


def _on_board(name: str, paper: Paper, board: Board, figures: FigureFolder) -> dict:
    """What the page of a paper shows of a dataset."""
    stem = f"{board.dataset}-{name}"
    tables = replay_tables.replay_tables(paper, board)
    inputs = FigureInputs(board=board.retrieval, paper=name)
    return {
        "title": board.card["title"],
        "why": figures.section("why", inputs, stem, UP) if tables else [],
        "tables": tables,
        "comparability": replay_tables.comparability_sentences(paper, board),
        "has_dagger": any(
            claim_tables.DAGGER in entry
            for table in tables.values()
            for row in table.rows
            for entry in row
        ),
        "has_times": any("µs" in head for table in tables.values() for head in table.heads),
        "figures": figures.section(f"papers/{name}", inputs, stem, UP),
    }

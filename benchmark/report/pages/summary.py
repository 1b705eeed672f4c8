"""What was found on a dataset, in a few sentences of Markdown. Knows no torch."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import MIN_TEST_QUERIES, RANKED_BY, Board, Row
from benchmark.boards.claims import Verdict
from benchmark.papers.printed_tables import papers
from benchmark.report.costs import by_setting, query_seconds, training_seconds
from benchmark.report.pages import result_tables
from benchmark.report.pages.claim_tables import tally
from benchmark.report.pages.paper_tables import YES, answers
from benchmark.report.pages.templates import filled
from benchmark.report.tables import DAGGER, Number, three_digits
from benchmark.scoring import METRICS
from benchmark.stats.verdicts import Conclusion

TIE = 1.1  # times closer than this cannot be told apart
HEADS = {  # of the claims that a sentence names
    "Claims that do not hold": (Conclusion.REVERSED, Conclusion.BETTER, Conclusion.WORSE),
    "Claims without a difference beyond the margin": (Conclusion.NO_DIFFERENCE,),
}


def summary(board: Board, verdicts: Sequence[Verdict]) -> str:
    """Who leads, at what cost, which claims hold, what is missing: the most important first."""
    tasks = [of for of in (board.retrieval, board.localisation) if of.ranked]
    return filled(
        "summary.md.j2",
        board=board,
        few_queries=few_queries(board),
        min_queries=MIN_TEST_QUERIES,
        leaders=[_leader(of) for of in tasks if not board.is_small(of.ranked[0].task)],
        cheapest=_cheapest(board.retrieval),
        tally=tally(verdicts),
        claims={
            head: [v.claim.statement.rstrip(".") for v in verdicts if v.conclusion in kinds]
            for head, kinds in HEADS.items()
        },
        undecided=_undecided(verdicts),
        comparable=any(YES in answers(paper, board) for paper in papers().values()),
        lost=sum(not outcome.is_ok for outcome in board.outcomes),
        cells=len(board.outcomes),
    )


def few_queries(board: Board) -> dict[str, int]:
    """The tasks with too few test queries for any conclusion, with their number."""
    tasks = dict.fromkeys(row.task for row in board.rows)
    return {task: board.test_queries(task) for task in tasks if board.is_small(task)}


def _leader(board: Board) -> dict:
    """The best row of a task with its interval, and those that cannot be told apart from it."""
    best, *others = board.ranked
    metric = RANKED_BY[best.task]
    first, *letters = comparisons.rank_letters(board)
    ends = result_tables.interval_of(board, best, metric) or Number()
    is_of_phrases = best.task == "localisation"
    return {
        "task": best.task,
        "title": best.title,
        "metric": METRICS[metric].heading,
        "level": replace(ends, value=best.mean(metric), note=""),
        "has_dagger": ends.note == DAGGER,
        "bounds": [f"{best.mean(name):.1f}" for name in result_tables.LIMITS if is_of_phrases],
        "others": len(others),
        "is_compared": comparisons.is_compared(board),
        "rivals": [
            row.title
            for row, own in zip(others, letters, strict=True)
            if not set(first).isdisjoint(own)
        ],
    }


def _cheapest(board: Board) -> dict[str, list[str]]:
    """Of the most rows that were timed alike, the fastest at a query and to train."""
    timed = max(by_setting(board).values(), key=len, default=[])
    if len(timed) < 2:
        return {}
    trained = [row for row in timed if row.played[0].trainings]
    return {
        "query": _fastest({row: 1e3 * query_seconds(row) for row in timed}, "ms"),
        "training": _fastest({row: training_seconds(board, row) for row in trained}, "s"),
    }


def _fastest(seconds: dict[Row, float], unit: str) -> list[str]:
    """The rows that take as long as the fastest, up to TIE, with their times."""
    least = min(seconds.values(), default=0)
    near = sorted((row for row in seconds if seconds[row] <= TIE * least), key=seconds.get)
    return [
        f"{row.title} ({three_digits(seconds[row])} {unit}, rsum {row.mean('rsum'):.1f})"
        for row in near
    ]


def _undecided(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """What keeps claims undecided, with their number."""
    undecided = [v for v in verdicts if v.conclusion == Conclusion.UNDECIDED]
    blocking = [[flags.NAMES[flag.letter] for flag in v.flags if flag.blocks] for v in undecided]
    return dict(Counter(names[0] if names else "the interval" for names in blocking).most_common())

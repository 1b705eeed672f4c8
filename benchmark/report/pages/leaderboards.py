"""Tables that a page shows of a task's results: at most eight columns, one row per preset.

`result_tables` has the same numbers with every metric, for export. Knows no torch.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isinf

from benchmark.analysis import comparisons, seed_spread, validity
from benchmark.analysis.boards import RANKED_BY, Board, Standing
from benchmark.analysis.seed_spread import Spread
from benchmark.protocol import METRICS, table_metrics
from benchmark.report.number_texts import NO_BREAK, NONE
from benchmark.report.pages import result_tables
from benchmark.report.pages.claim_tables import DAGGER
from benchmark.report.table_formats import Entry, Table

MOST = 15  # rows of a board that the first page shows whole; of a longer one, the best of each
# method and those of no paper
LACKS = "lacks"
BESIDE = {  # task -> metrics beside that of the ranking
    "retrieval": ("i2t_r1", "t2i_r1"),
    "localisation": ("p2r_r5", "p2r_r10"),
}


def first_page(board: Board) -> tuple[Table | None, str]:
    """The leaderboard as the first page shows it, and a sentence on the rows that are left out."""
    table = leaderboard(board)
    if table is None or len(table.rows) <= MOST:
        return table, ""
    standings = [*board.ranked, *(s for s in board.standings if not s.played)]
    best_of_method = {s.method: s for s in reversed(board.ranked)}.values()
    places = [
        place
        for place, s in enumerate(standings, start=1)
        if s in best_of_method or s.is_own or s.is_brought
    ]
    shown = [table.rows[place - 1] for place in places]
    left_out = len(table.rows) - len(shown)
    said = f"{left_out} more {'is' if left_out == 1 else 'are'} on the dataset's page."
    if not left_out:
        return table, ""
    return replace(table, rows=shown), f"{_chosen(places, standings)} {said}"


def _chosen(places: Sequence[int], standings: Sequence[Standing]) -> str:
    """Which rows a cut board has, and their ranks on the whole one."""
    ranks = ", ".join(map(str, places))
    shown = [standings[place - 1] for place in places]
    others = ", and those of no paper" if any(s.is_own or s.is_brought for s in shown) else ""
    return f"Rows: the best of every method{others}: ranks {ranks}."


def leaderboard(board: Board) -> Table | None:
    """The board of one task, best first, presets without a result last; None where nothing has a
    result."""
    if not board.ranked:
        return None
    task = board.ranked[0].task
    main, others = RANKED_BY[task], BESIDE[task]
    others = [m for m in others if task == "localisation" or m.partition("_")[0] in board.ways]
    ranked, metrics = board.ranked, [main, *others]
    columns = result_tables.metric_entries(board, ranked, metrics)
    lines = [
        [_name(s), values[0], _interval(board, s, main), *values[1:], group, *_trust(board, s)]
        for s, values, group in zip(ranked, columns, result_tables.groups(board), strict=True)
    ]
    blank = [NONE] * (len(others) + 2)
    lines += [
        [
            _name(s),
            result_tables.status_of(s.outcomes[0]),
            *blank,
            result_tables.seeds_played(s),
            NONE,
        ]
        for s in board.standings
        if not s.played
    ]
    heads = result_tables.headings(metrics)
    return Table(
        title=f"{board.card['title']}: {task}",
        heads=["preset", heads[0], "95% interval", *heads[1:], "group", "seeds", LACKS],
        rows=lines,
    )


def recalls(board: Board, way: str) -> Table | None:
    """Every metric of a direction's table; None where the board has none."""
    metrics = table_metrics(way)
    standings = [s for s in board.ranked if s.values(metrics[0])]
    entries = result_tables.metric_entries(board, standings, metrics)
    rows = [[_name(s), *values] for s, values in zip(standings, entries, strict=True)]
    title = f"{board.card['title']}: {way}"
    heads = ["preset", *result_tables.headings(metrics)]
    return Table(title=title, heads=heads, rows=rows) if rows else None


def is_of_these_trainings(board: Board) -> bool:
    """Whether an interval of the leaderboard has a dagger."""
    return any(_interval(board, s, RANKED_BY[s.task]).endswith(DAGGER) for s in board.ranked)


def spread_sentence(board: Board) -> str:
    """How far trainings lie apart, and whether rows vary alike; empty where that is not known."""
    metric = RANKED_BY[board.ranked[0].task] if board.ranked else "rsum"
    spread = comparisons.spread_of(board, board.ranked[0].task, metric) if board.ranked else None
    p = seed_spread.alike_p(list(spread.pool.values())) if spread else None
    if p is None:
        return ""
    variance, _, freedom = spread.pooled
    return (
        f"Trainings of a row have a standard deviation of {variance**0.5:.1f} in "
        f"{METRICS[metric].heading}, pooled over {len(spread.pool)} rows with {freedom:.0f} "
        f"degrees of freedom; Bartlett's test of rows that vary alike gives p {p:.2g}. "
        f"{_prior_sentence(spread)}{_aside_sentence(board, spread)}"
    )


def _prior_sentence(spread: Spread) -> str:
    if spread.pooled.freedom < seed_spread.TELLS:
        return "So few rows do not tell whether they vary alike; all have this spread."
    if isinf(spread.prior.freedom):
        return "So all these rows have this spread."
    return (
        "So a row keeps part of its own spread: the common one counts as "
        f"{spread.prior.freedom:.1f} degrees of freedom beside it."
    )


def _aside_sentence(board: Board, spread: Spread) -> str:
    """The rows that vary far more than the pooled ones; empty where there are none."""
    wider = [
        f"{_name(s)} ({spread.own[s.preset].variance ** 0.5:.1f})"
        for s in board.ranked
        if s.preset in spread.outliers
    ]
    return f" Not pooled, as they vary far more: {', '.join(wider)}." if wider else ""


def limits(board: Board) -> str:
    """What bounds phrase localisation, as a sentence; empty for retrieval."""
    if not board.ranked or board.ranked[0].task == "retrieval":
        return ""
    said = [
        f"{METRICS[name].heading} {_range([s.mean(name) for s in board.ranked])}"
        for name in result_tables.LIMITS
    ]
    return f"Of a right box: {', '.join(said)}."


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def _name(standing: Standing) -> str:
    return standing.row.title


def _interval(board: Board, standing: Standing, metric: str) -> str:
    ends = result_tables.interval(board, standing, metric)
    if ends != NONE:
        return ends
    ends = result_tables.interval_of_these(board, standing, metric)
    return ends if ends == NONE else f"{ends}{NO_BREAK}{DAGGER}"


def _trust(board: Board, standing: Standing) -> list[str | Entry]:
    marks = Entry(validity.marks(board, standing), is_code=True)
    return [result_tables.seeds_played(standing), marks]

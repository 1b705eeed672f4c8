"""The papers' own rows, printed and measured in one entry: "67.9 -> 27.1 [24.4, 29.8]".

For pages: only rows, columns and tables with a measured number. `paper_tables` has all of a printed
table, for export. Knows no torch.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean, median

from benchmark.analysis import comparability, comparisons
from benchmark.analysis.boards import Board, Standing
from benchmark.papers import printed_tables
from benchmark.papers.claimed_quantities import is_time
from benchmark.papers.printed_tables import Paper, Row, as_printed
from benchmark.protocol import METRICS
from benchmark.report.number_texts import NO_BREAK, NONE
from benchmark.report.pages import result_tables
from benchmark.report.pages.claim_tables import DAGGER
from benchmark.report.pages.paper_tables import obstacles
from benchmark.report.table_formats import Table

ARROW = "\N{RIGHTWARDS ARROW}"
MOST = 7  # metrics of a table: more do not fit a page
RECALLS = {"rsum", "i2t_r1", "t2i_r1"}  # shown where there are more metrics than fit


def replay_tables(paper: Paper, board: Board) -> dict[str, Table]:
    """Number and place -> table, of the tables with a measured number.

    Of several places that are all other datasets than the board's, the first stands for all; a row
    that an earlier table has with the same numbers is left out.
    """
    tables, before = {}, set()
    for number, printed in paper.tables.items():
        for place in _places(printed, board):
            played = list(_played(printed, place, board))
            new = [(r, s) for r, s in played if not _is_among(before, r, place, printed)]
            numbers = {r.preset: tuple(printed.numbers(r, place).items()) for r, _ in played}
            before |= {(preset, place, values) for preset, values in numbers.items()}
            name = f"Table {number}: {printed.title}, {place} {ARROW} {board.card['title']}"
            table = _table(name, printed, place, board, new)
            if table.rows:
                tables[f"{number} {place}"] = table
    return tables


def _places(printed: printed_tables.Table, board: Board) -> list[str]:
    alike = [place for place in printed.places if comparability.is_dataset(board, place)]
    return alike or printed.places[:1]


def _is_among(before: set[tuple], row: Row, place: str, printed: printed_tables.Table) -> bool:
    """Whether a row was shown with all that it prints here."""
    numbers = printed.numbers(row, place).items()
    return any(
        (preset, where) == (row.preset, place) and numbers <= dict(shown).items()
        for preset, where, shown in before
    )


def unmeasured(paper: Paper, boards: Sequence[Board]) -> str:
    """The numbers of the tables without any measured number; empty: there are none."""
    return ", ".join(number for number in paper.tables if not _is_played(paper, number, boards))


def has_numbers(paper: Paper, boards: Sequence[Board]) -> bool:
    """Whether any number of the paper's own rows was measured."""
    return any(_is_played(paper, number, boards) for number in paper.tables)


def _is_played(paper: Paper, number: str, boards: Sequence[Board]) -> bool:
    printed = paper.tables[number]
    return any(list(_played(printed, place, board)) for board in boards for place in printed.places)


def comparability_sentences(paper: Paper, board: Board) -> list[str]:
    """Which rows can be compared with what is printed, and why others cannot."""
    by_reason: dict[str, dict[str, None]] = {}
    for printed in paper.tables.values():
        for place in _places(printed, board):
            for row, standing in _played(printed, place, board):
                reasons = ", ".join(obstacles(paper, board, standing, place))
                by_reason.setdefault(reasons, {})[row.label] = None
    if len(by_reason) == 1:
        (reason,) = by_reason
        return [f"Not comparable: {reason}." if reason else "All rows are comparable."]
    return [
        f"{'Not comparable' if reason else 'Comparable'}: {', '.join(labels)}"
        f"{f' ({reason})' if reason else ''}."
        for reason, labels in by_reason.items()
    ]


def _table(
    title: str,
    printed: printed_tables.Table,
    place: str,
    board: Board,
    played: Sequence[tuple[Row, Standing]],
) -> Table:
    metrics = _metrics(printed, place, board, [standing for _, standing in played])
    rows = []
    for row, standing in played:
        numbers = printed.numbers(row, place)
        entries = [
            _entry(board, standing, comparability.metric_at(board, place, metric), text)
            for metric in metrics
            for text in [as_printed(numbers[metric], metric, printed.decimals(metric))]
        ]
        is_alone = [other.label for other in printed.rows].count(row.label) == 1
        rows.append([row.label if is_alone else f"{row.label}, {row.setting}", *entries])
    heads = ["row", *(METRICS[metric].heading for metric in metrics)]
    return Table(title=title, heads=heads, rows=rows if metrics else [])


def _played(
    printed: printed_tables.Table, place: str, board: Board
) -> Iterator[tuple[Row, Standing]]:
    for row in printed.rows:
        standing = board.standing(row.preset) if row.preset and place in row.numbers else None
        if standing and standing.played:
            yield row, standing


def _metrics(
    printed: printed_tables.Table, place: str, board: Board, standings: Sequence[Standing]
) -> list[str]:
    """The columns in which something was measured; of more than fit, the main ones."""
    is_half = len(board.ways) == 1
    columns = [
        metric
        for metric in printed.columns
        if not (metric == "rsum" and is_half)
        and any(
            comparisons.values(s, comparability.metric_at(board, place, metric)) for s in standings
        )
    ]
    is_long = len(columns) > MOST
    return [c for c in columns if c in RECALLS or "_r" not in c][:MOST] if is_long else columns


def _entry(board: Board, standing: Standing, metric: str, printed: str) -> str:
    values = comparisons.values(standing, metric)
    if not values:
        return f"{printed} {ARROW} {NONE}"
    if is_time(metric):  # which other work on the machine changes by far more than its digits say
        return f"{printed}{NO_BREAK}{ARROW} {float(f'{median(values):.2g}'):g}"
    decimals = max(1, METRICS[metric].decimals)
    text = f"{printed}{NO_BREAK}{ARROW} {fmean(values):.{decimals}f}"
    ends = result_tables.interval(board, standing, metric, decimals)
    if ends != NONE:
        return f"{text} {ends}"
    ends = result_tables.interval_of_these(board, standing, metric, decimals)
    return text if ends == NONE else f"{text} {ends}{NO_BREAK}{DAGGER}"

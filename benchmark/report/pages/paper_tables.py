"""The papers' tables, reported against reproduced: one grid a table and place. Knows no torch.

Under a row, the boards whose test images are those of the paper come first.
"""

from collections.abc import Sequence
from statistics import fmean

from benchmark.analysis import comparability, comparisons, significance
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.claims import SEEDS
from benchmark.papers.printed_tables import METRICS, Paper, Row, Table, as_printed
from benchmark.report.pages import result_tables
from benchmark.report.pages.result_tables import NONE, spread
from benchmark.report.table_formats import Grid


def paper_grids(paper: Paper, boards: Sequence[Board]) -> dict[str, dict[str, Grid]]:
    """Every table of a paper: number -> place that was measured -> grid."""
    return {
        number: {
            place: _grid(f"Table {number}: {table.title} ({place})", paper, table, place, boards)
            for place in table.places
        }
        for number, table in paper.tables.items()
    }


def _grid(title: str, paper: Paper, table: Table, place: str, boards: Sequence[Board]) -> Grid:
    metrics = table.columns
    heads = ["row", "setting", "numbers of", *(METRICS[name].head for name in metrics), "remark"]
    boards = sorted(boards, key=lambda board: not comparability.is_same(paper, board, place))
    rows = []
    for row in table.rows:
        if place in row.numbers:
            rows.append(_printed(row, table, place))
            rows += _reproduced(paper, row, table, place, boards) if row.is_own else []
    return Grid(title=title, heads=heads, rows=rows, names=3, has_remarks=True)


def _printed(row: Row, table: Table, place: str) -> list[str]:
    cells = [
        as_printed(value, metric, table.decimals(metric))
        for metric, value in table.numbers(row, place).items()
    ]
    return [row.label, row.setting, "paper", *cells, row.note]


def _reproduced(
    paper: Paper, row: Row, table: Table, place: str, boards: Sequence[Board]
) -> list[list[str]]:
    """What was measured here for an own row, or why nothing was."""
    metrics = table.columns
    if row.preset is None:
        return [_blank("here", row.unplayed, metrics)]
    found = []
    for board in boards:
        standing = board.standing(row.preset)
        name = f"here: {board.card['title']}"
        if standing is None:
            found.append(_blank(name, "not played in this season", metrics))
        elif not standing.played:
            found.append(_blank(name, _lost(standing), metrics))
        else:
            found += _measured(name, paper, row, table, place, board, standing)
    return found


def _blank(name: str, reason: str, metrics: Sequence[str]) -> list[str]:
    return ["", "", name, *[NONE] * len(metrics), reason]


def _lost(standing: Standing) -> str:
    record = standing.outcomes[0].record
    return f"{record.status.replace('_', ' ')}: {record.reason}"


def _measured(
    name: str,
    paper: Paper,
    row: Row,
    table: Table,
    place: str,
    board: Board,
    standing: Standing,
) -> list[list[str]]:
    """Means over the seeds, then their 95% intervals, then the gaps where they mean something."""
    ours, seeds = _ours(table, place, board), len(standing.played)
    counted = f"{seeds} seed{'s' if seeds != 1 else ''}"
    reasons = obstacles(paper, board, standing, place)
    remark = f"not comparable: {', '.join(reasons)}" if reasons else "comparable"
    means = [_mean(standing, metric) for metric in ours.values()]
    rows = [["", "", name, *means, f"{counted}; {remark}"]]
    ends = [result_tables.interval(board, standing, m) if m else NONE for m in ours.values()]
    if set(ends) != {NONE}:
        rows.append(["", "", "95% interval", *ends, ""])
    return rows if reasons else [*rows, _gaps(row, table, place, ours, standing)]


def _ours(table: Table, place: str, board: Board) -> dict[str, str | None]:
    """Column -> metric of our records; None: rsum of a single direction is not that of the papers'
    tables, which is of both."""
    is_half = len(board.ways) == 1
    return {
        metric: None
        if metric == "rsum" and is_half
        else comparability.metric_at(board, place, metric)
        for metric in table.columns
    }


def _mean(standing: Standing, metric: str | None) -> str:
    return (
        spread(comparisons.values(standing, metric), METRICS[metric].decimals) if metric else NONE
    )


def obstacles(paper: Paper, board: Board, standing: Standing, place: str) -> list[str]:
    """Why the numbers of `place` and ours may not be compared; empty where they may."""
    record = standing.outcomes[0].record
    is_dataset = comparability.is_dataset(board, place)
    found = {
        "other dataset": not is_dataset,
        "other split": is_dataset and not comparability.is_same(paper, board, place),
        "other features": bool(record.deviations),
        "other budget": bool(record.scaled),
    }
    return [obstacle for obstacle, is_there in found.items() if is_there]


def _gaps(
    row: Row, table: Table, place: str, ours_of: dict[str, str | None], standing: Standing
) -> list[str]:
    """Reproduced minus reported, and whether the reported numbers could be those of another seed.

    The test images are the same, so it is the seeds that make the difference.
    """
    found = table.numbers(row, place)
    known = {metric: value for metric, value in found.items() if value is not None}
    ours = {m: comparisons.values(standing, ours_of[m]) if ours_of[m] else [] for m in known}
    gaps = {m: fmean(ours[m]) - value for m, value in known.items() if ours[m]}
    cells = [f"{gaps[metric]:+.1f}" if metric in gaps else NONE for metric in found]
    return ["", "", "gap", *cells, _reached({m: (known[m], ours[m]) for m in gaps})]


def _reached(numbers: dict[str, tuple[float, list[float]]]) -> str:
    """The verdict on a row: reported number and ours of every seed, by metric."""
    if not numbers or min(len(ours) for _, ours in numbers.values()) < SEEDS:
        return f"reproduced minus reported; a verdict needs {SEEDS} seeds"
    ends = {m: significance.prediction_interval(ours) for m, (_, ours) in numbers.items()}
    inside = [low <= numbers[m][0] <= high for m, (low, high) in ends.items()]
    return (
        f"reproduced minus reported; {sum(inside)} of {len(inside)} reported numbers lie where "
        f"another seed would (95% prediction interval)"
    )

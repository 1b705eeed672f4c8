"""The papers' tables, reported against reproduced: one table per printed table and place.

Under a row, the boards with the same test images as the paper come first. Knows no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmark.analysis import comparability, comparisons, significance
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.departures import Departure, departures
from benchmark.papers import printed_tables
from benchmark.papers.printed_tables import Paper, Row, as_printed
from benchmark.protocol import METRICS
from benchmark.report.number_texts import NONE, spread
from benchmark.report.pages import result_tables
from benchmark.report.table_formats import Table


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The part of a printed table that was measured at one place."""

    paper: Paper
    printed: printed_tables.Table
    place: str  # dataset/split


def paper_tables(paper: Paper, boards: Sequence[Board]) -> dict[str, dict[str, Table]]:
    """Every table of a paper: number -> place where the paper measured -> table."""
    return {
        number: {
            place: _table(
                f"Table {number}: {printed.title} ({place})",
                _Part(paper=paper, printed=printed, place=place),
                boards,
            )
            for place in printed.places
        }
        for number, printed in paper.tables.items()
    }


def _table(title: str, part: _Part, boards: Sequence[Board]) -> Table:
    metrics = part.printed.columns
    heads = ["row", "setting", "numbers of", *(METRICS[name].heading for name in metrics), "remark"]
    boards = sorted(boards, key=lambda b: not comparability.is_same(part.paper, b, part.place))
    rows = []
    for row in part.printed.rows:
        if part.place in row.numbers:
            rows.append(_printed(part, row))
            rows += _reproduced(part, row, boards) if row.is_own else []
    return Table(title=title, heads=heads, rows=rows, names=3, has_remarks=True)


def _printed(part: _Part, row: Row) -> list[str]:
    entries = [
        as_printed(value, metric, part.printed.decimals(metric))
        for metric, value in part.printed.numbers(row, part.place).items()
    ]
    return [row.label, row.setting, "paper", *entries, row.note]


def _reproduced(part: _Part, row: Row, boards: Sequence[Board]) -> list[list[str]]:
    """What was measured here for one of the paper's own rows, or why nothing was."""
    metrics = part.printed.columns
    if row.preset is None:
        return [_blank("here", row.unplayed, metrics)]
    rows = []
    for board in boards:
        standing = board.standing(row.preset)
        name = f"here: {board.card['title']}"
        if standing is None:
            rows.append(_blank(name, "not played in this season", metrics))
        elif not standing.played:
            rows.append(_blank(name, _reason(standing), metrics))
        else:
            rows += _measured(name, part, row, board, standing)
    return rows


def _blank(name: str, reason: str, metrics: Sequence[str]) -> list[str]:
    return ["", "", name, *[NONE] * len(metrics), reason]


def _reason(standing: Standing) -> str:
    record = standing.outcomes[0].record
    return f"{record.status.replace('_', ' ')}: {record.reason}"


def _measured(
    name: str, part: _Part, row: Row, board: Board, standing: Standing
) -> list[list[str]]:
    """Means over the seeds, then their 95% intervals, then the gaps if they can be compared."""
    metrics, seeds = _measured_metrics(part, board), len(standing.played)
    seeds_said = f"{seeds} seed{'s' if seeds != 1 else ''}"
    reasons = obstacles(part.paper, board, standing, part.place)
    remark = f"not comparable: {', '.join(reasons)}" if reasons else "comparable"
    means = [_mean(standing, metric) for metric in metrics.values()]
    rows = [["", "", name, *means, f"{seeds_said}; {remark}"]]
    kinds = {
        "95% interval": result_tables.interval,
        f"95% {result_tables.THESE_TRAININGS}": result_tables.interval_of_these,
    }
    for whose, ends_of in kinds.items():
        intervals = [ends_of(board, standing, m) if m else NONE for m in metrics.values()]
        rows += [["", "", whose, *intervals, ""]] if set(intervals) != {NONE} else []
    return rows if reasons else [*rows, _gaps(part, row, metrics, board, standing)]


def _measured_metrics(part: _Part, board: Board) -> dict[str, str | None]:
    """Column -> metric of the records to show in it.

    None: the papers' rsum is of both directions, so that of a single one is not shown.
    """
    is_half = len(board.ways) == 1
    return {
        metric: None
        if metric == "rsum" and is_half
        else comparability.metric_at(board, part.place, metric)
        for metric in part.printed.columns
    }


def _mean(standing: Standing, metric: str | None) -> str:
    if metric is None:
        return NONE
    return spread(comparisons.values(standing, metric), METRICS[metric].decimals)


def obstacles(paper: Paper, board: Board, standing: Standing, place: str) -> list[str]:
    """Why the paper's numbers at `place` and the measured ones cannot be compared; empty if they
    can."""
    record, reasons = standing.outcomes[0].record, departures(board, standing)
    is_dataset = comparability.is_dataset(board, place)
    differs = {
        "other dataset": not is_dataset,
        "other split": is_dataset and not comparability.is_same(paper, board, place),
        "other features": bool(record.deviations),
        "other budget": bool(record.scaled),
        "random text encoder": Departure.TEXT in reasons,
        "extra input": Departure.INPUT in reasons,
    }
    return [obstacle for obstacle, is_there in differs.items() if is_there]


def _gaps(
    part: _Part, row: Row, metrics: dict[str, str | None], board: Board, standing: Standing
) -> list[str]:
    """Reproduced minus reported, and whether the reported numbers could be those of another
    training.

    The test images are the same, so only the trainings make a difference.
    """
    printed = part.printed.numbers(row, part.place)
    measured = {
        column: comparisons.values(standing, metrics[column])
        for column, value in printed.items()
        if value is not None and metrics[column]
    }
    gaps = {
        column: fmean(values) - printed[column] for column, values in measured.items() if values
    }
    entries = [f"{gaps[column]:+.1f}" if column in gaps else NONE for column in printed]
    inside = [
        _is_within_reach(board, standing, metrics[column], printed[column]) for column in gaps
    ]
    return ["", "", "gap", *entries, _within_reach(inside)]


def _is_within_reach(board: Board, standing: Standing, metric: str, printed: float) -> bool | None:
    """Whether another training could give the reported number; None where its spread is not
    known."""
    part = comparisons.seed_part(board, standing, metric)
    if part is None or not part.variance:
        return None
    mean = fmean(comparisons.values(standing, metric))
    low, high = significance.prediction_interval(mean, part)
    return low <= printed <= high


def _within_reach(inside: Sequence[bool | None]) -> str:
    """How many reported numbers another training could give."""
    known = [is_inside for is_inside in inside if is_inside is not None]
    if not known:
        return "reproduced minus reported; how far trainings lie apart is not known"
    return (
        f"reproduced minus reported; {sum(known)} of {len(known)} reported numbers lie where "
        f"another training would (95% prediction interval)"
    )

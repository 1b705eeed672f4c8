"""The papers' tables, reported against reproduced: one grid a table and place. Knows no torch."""

from collections.abc import Sequence
from statistics import fmean

from benchmark import comparisons, tables
from benchmark.grid import Grid
from benchmark.outcomes import Board, Standing
from benchmark.papers import METRICS, Paper, Row, Table, as_printed
from benchmark.tables import NONE, spread

RECALLS = tuple(f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10))


def paper_grids(paper: Paper, boards: Sequence[Board]) -> dict[str, dict[str, Grid]]:
    """Every table of a paper: number -> place that was measured -> grid."""
    return {
        number: {
            place: _grid(f"Table {number}: {table.title} ({place})", table, place, boards)
            for place in table.places
        }
        for number, table in paper.tables.items()
    }


def _grid(title: str, table: Table, place: str, boards: Sequence[Board]) -> Grid:
    metrics = with_rsum(table.metrics)
    heads = ["row", "setting", "numbers of", *(METRICS[name].head for name in metrics), "remark"]
    rows = []
    for row in table.rows:
        if place in row.numbers:
            rows.append(_printed(row, table, place))
            rows += _reproduced(row, table, place, boards) if row.is_own else []
    return Grid(title=title, heads=heads, rows=rows, names=3, has_remarks=True)


def with_rsum(metrics: Sequence[str]) -> list[str]:
    """The metrics of a table, and rsum where all its terms are there."""
    return [*metrics, *["rsum"] * (set(RECALLS) <= set(metrics))]


def _printed(row: Row, table: Table, place: str) -> list[str]:
    found = dict(zip(table.metrics, row.numbers[place], strict=True))
    terms = [found.get(metric) for metric in RECALLS]
    cells = [as_printed(found[name], name, table.decimals(name)) for name in table.metrics]
    if len(with_rsum(table.metrics)) > len(cells):
        cells.append(as_printed(None if None in terms else sum(terms), "rsum"))
    return [row.label, row.setting, "paper", *cells, row.note]


def _reproduced(row: Row, table: Table, place: str, boards: Sequence[Board]) -> list[list[str]]:
    """What was measured here for an own row, or why nothing was."""
    metrics = with_rsum(table.metrics)
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
            found += _measured(name, row, table, place, board, standing)
    return found


def _blank(name: str, reason: str, metrics: Sequence[str]) -> list[str]:
    return ["", "", name, *[NONE] * len(metrics), reason]


def _lost(standing: Standing) -> str:
    record = standing.outcomes[0].record
    return f"{record.status.replace('_', ' ')}: {record.reason}"


def _measured(
    name: str,
    row: Row,
    table: Table,
    place: str,
    board: Board,
    standing: Standing,
) -> list[list[str]]:
    """Means over the seeds, then their 95% intervals, then the gaps where they mean something."""
    metrics, seeds = with_rsum(table.metrics), len(standing.played)
    counted = f"{seeds} seed{'s' if seeds != 1 else ''}"
    remark = comparability(board, standing, place)
    means = [_mean(standing, metric) for metric in metrics]
    rows = [["", "", name, *means, f"{counted}; {remark}"]]
    ends = [tables.interval(board, standing, metric) for metric in metrics]
    if set(ends) != {NONE}:
        rows.append(["", "", "95% interval", *ends, ""])
    if is_comparable(board, standing, place):
        rows.append(_gaps(row, table, place, board, standing))
    return rows


def _mean(standing: Standing, metric: str) -> str:
    return spread(comparisons.values(standing, metric), METRICS[metric].decimals)


def is_comparable(board: Board, standing: Standing, place: str) -> bool:
    """Whether printed and reproduced number answer the same question: the same data, the same
    split, the features that the paper used."""
    same_data = place == f"{board.dataset}/test"
    return same_data and not standing.outcomes[0].record.deviations


def comparability(board: Board, standing: Standing, place: str) -> str:
    """The reason why the numbers of `place` and ours may not be compared, if there is one."""
    dataset, split = place.split("/")
    reasons = []
    if dataset != board.dataset:
        reasons.append("other dataset")
    elif split != "test":
        reasons.append("other split")
    if standing.outcomes[0].record.deviations:
        reasons.append("other features")
    if standing.outcomes[0].record.scaled:
        reasons.append("other budget")
    if is_comparable(board, standing, place):
        return "; ".join([f"comparable: {board.card['split']} split", *reasons])
    return "not comparable: " + ", ".join(reasons)


def _gaps(row: Row, table: Table, place: str, board: Board, standing: Standing) -> list[str]:
    """Reproduced minus reported, and whether the reported numbers lie in our intervals."""
    cells, inside = [], []
    for metric, value in zip(table.metrics, row.numbers[place], strict=True):
        ours, ends = (
            comparisons.values(standing, metric),
            comparisons.interval(board, standing, metric),
        )
        known = value is not None and ours
        cells.append(f"{fmean(ours) - value:+.1f}" if known else NONE)
        inside += [ends[0] <= value <= ends[1]] if known and ends else []
    verdict = f"{sum(inside)} of {len(inside)} reported numbers lie in the interval"
    blank = [NONE] * (len(with_rsum(table.metrics)) - len(table.metrics))
    return ["", "", "gap", *cells, *blank, verdict]

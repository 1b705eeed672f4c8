"""The papers' tables, each number printed and measured in one cell: "67.9 -> 27.1
[24.4, 29.8]".

Imports no torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from statistics import fmean, median
from typing import TYPE_CHECKING

from benchmark.boards import claims, comparisons, flags
from benchmark.boards.boards import Board, Row
from benchmark.papers.printed_tables import Paper, is_time
from benchmark.report.pages.result_tables import interval_of, status
from benchmark.report.tables import ARROW, DAGGER, Number, Table, three_digits
from benchmark.scoring import METRICS

if TYPE_CHECKING:
    import pandas as pd

MOST = 7  # metrics of a table on a page: more do not fit
# of the recalls of a wider table, those that are shown
SHOWN_RECALLS = [METRICS[name].heading for name in ("rsum", "i2t_r1", "t2i_r1")]


def paper_table(paper: Paper, number: str, place: str, board: Board) -> Table:
    """A whole table as a paper prints it for a place, with the rows of other papers.
    The paper's own rows have what this board measured: means of trainings with their
    intervals, and whether these can be compared; or why nothing was measured."""
    printed = paper.tables[number]
    lines = []
    rows = [row for row in printed.rows if place in row.numbers]
    for row in rows:
        measured = board.row(row.preset) if row.preset else None
        comparable = None
        remark = row.note or row.unplayed
        if measured and measured.played:
            reasons = ", ".join(obstacles(paper, board, measured, place))
            comparable = f"no: {reasons}" if reasons else "yes"
        elif measured:
            remark = f"{status(measured.record)}: {measured.record.reason}"
        elif row.preset:
            remark = "not run in this season"
        line = {"row": row.label, "setting": row.setting}
        for column, value in printed.numbers(row, place).items():
            metric = METRICS[column]
            form = f".{printed.decimals(column)}f" if metric.decimals else "g"
            reference = Number(value=value, form=form)
            cell = Number()
            # the papers' rsum is of both directions
            is_half = column == "rsum" and len(board.ways) == 1
            if measured and not is_half:
                name = claims.metric_at(board, place, column)
                cell = measured_cell(board, measured, name)
            line[metric.heading] = replace(cell, printed=reference)
        line |= {"comparable": comparable, "remark": remark or None}
        lines.append(line)
    title = f"Table {number}: {printed.title}, {place} {ARROW} {board.title}"
    return Table.of(title, lines, [row.preset or "" for row in rows])


def measured_cell(board: Board, row: Row, metric: str) -> Number:
    """The mean over the trainings of a row with its interval, of a time the median;
    empty where it has none."""
    values = comparisons.values(row, metric)
    if not values:
        return Number()
    if is_time(metric):
        return three_digits(median(values))
    interval = interval_of(board, row, metric) or Number()
    decimals = max(1, METRICS[metric].decimals)
    return replace(interval, value=fmean(values), form=f".{decimals}f")


def shown_tables(paper: Paper, board: Board) -> dict[str, list[Table]]:
    """The tables with a measured row, by number, for a page: the paper's own rows, and
    the columns that have a measured number. There is a table for each place of the
    board's dataset, or for all places if none is of it."""
    shown: dict[str, list[Table]] = {}
    lacks = unmeasured(paper, [board])
    for number, printed in paper.tables.items():
        if number in lacks:
            continue
        alike = [place for place in printed.places if claims.is_dataset(board, place)]
        for place in alike or printed.places:
            table = paper_table(paper, number, place, board)
            rows = [row for row in printed.rows if place in row.numbers]
            is_own = [bool(row.preset or row.unplayed) for row in rows]
            if any(is_own):
                narrow = _narrow(Table(table.title, table.frame[is_own]))
                shown.setdefault(number, []).append(narrow)
    return shown


def _narrow(table: Table) -> Table:
    """A table that fits a page. A dagger that all of its numbers have stands once, in
    the title. Where rows differ in whether they are comparable, their labels say so."""
    frame = table.frame
    heads = _shown_heads(frame)
    cells = frame[heads]
    title = table.title
    intervals = [cell for cell in cells.to_numpy().flat if cell.low is not None]
    if {cell.note for cell in intervals} == {DAGGER}:
        cells = cells.map(lambda cell: replace(cell, note=""))
        title = f"{title} {DAGGER}"
    counts = Counter(frame["row"])
    differs = frame["comparable"].nunique() > 1
    labels = []
    for _, line in frame.iterrows():
        label = line["row"]
        if counts[label] > 1 and line["setting"]:
            label = f"{label}, {line['setting']}"
        if differs and line["comparable"]:
            label += f"; comparable: {line['comparable'].replace(':', ',')}"
        labels.append(label)
    return Table(title, cells.assign(row=labels)[["row", *heads]])


def _shown_heads(frame: pd.DataFrame) -> list[str]:
    """The metrics with a measured number, or all of them, up to MOST."""
    metrics = list(frame.columns[2:-2])  # between row, setting and comparable, remark
    is_measured = frame[metrics].map(lambda cell: cell.value is not None).any()
    heads = [head for head in metrics if is_measured[head]] or metrics
    if len(heads) > MOST:
        heads = [head for head in heads if head in SHOWN_RECALLS or "R@" not in head]
    return heads[:MOST]


def obstacles_of_rows(paper: Paper, board: Board) -> set[tuple[str, ...]]:
    """The obstacles to comparing each measured row with what is printed; an empty tuple
    for rows that can be compared."""
    reasons = set()
    for table in paper.tables.values():
        for printed in table.rows:
            row = board.row(printed.preset) if printed.preset else None
            if row and row.played:
                for place in printed.numbers:
                    reasons.add(tuple(obstacles(paper, board, row, place)))
    return reasons


def unmeasured(paper: Paper, boards: Sequence[Board]) -> list[str]:
    """The numbers of the tables of which nothing was measured."""
    ranked = chain.from_iterable(board.ranked for board in boards)
    played = {row.preset for row in ranked}
    numbers = []
    for number, table in paper.tables.items():
        if played.isdisjoint(row.preset for row in table.rows):
            numbers.append(number)
    return numbers


def obstacles(paper: Paper, board: Board, row: Row, place: str) -> list[str]:
    """Why the paper's numbers at `place` and the measured ones cannot be compared;
    empty if they can."""
    is_dataset = claims.is_dataset(board, place)
    differs = {
        "other dataset": not is_dataset,
        "other split": is_dataset and not claims.is_same(paper, board, place),
        "other features": bool(row.record.departures),
        "other budget": bool(row.record.scaled),
        "random text encoder": flags.has_flag(board, row, flags.random_text_encoder),
        "extra input": flags.has_flag(board, row, flags.extra_input),
    }
    return [obstacle for obstacle, is_there in differs.items() if is_there]

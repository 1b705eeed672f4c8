"""The papers' tables, each number printed and measured in one cell: "67.9 -> 27.1 [24.4, 29.8]".

Knows no torch.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

from benchmark.boards import claims, comparisons, flags
from benchmark.boards.boards import Board, Row
from benchmark.papers.printed_tables import Paper, is_time
from benchmark.report.pages.result_tables import interval_of, status
from benchmark.report.tables import ARROW, DAGGER, Number, Table, three_digits
from benchmark.scoring import METRICS

YES = "yes"
MOST = 7  # metrics of a table on a page: more do not fit
RECALLS = [METRICS[name].heading for name in ("rsum", "i2t_r1", "t2i_r1")]  # where more do not


def paper_table(paper: Paper, number: str, place: str, board: Board) -> Table:
    """A whole table as a paper prints it for a place, rows of others included, with what this board
    has for the paper's own rows: the means of the trainings with their intervals, whether they can
    be compared, and else why there is nothing."""
    printed, lines, ids = paper.tables[number], [], []
    for row in printed.rows:
        if place not in row.numbers:
            continue
        measured = board.row(row.preset) if row.preset else None
        comparable, remark = None, row.note or row.unplayed
        if measured and measured.played:
            reasons = obstacles(paper, board, measured, place)
            comparable = f"no: {', '.join(reasons)}" if reasons else YES
        elif measured:
            remark = f"{status(measured.record)}: {measured.record.reason}"
        elif row.preset:
            remark = "not run in this season"
        line = {"row": row.label, "setting": row.setting}
        for column, value in printed.numbers(row, place).items():
            form = f".{printed.decimals(column)}f" if METRICS[column].decimals else "g"
            cell = Number(printed=Number(value=value, form=form))
            metric = claims.metric_at(board, place, column)
            is_half = column == "rsum" and len(board.ways) == 1  # the papers' is of both directions
            values = comparisons.values(measured, metric) if measured and not is_half else []
            if values and is_time(metric):
                cell = replace(three_digits(median(values)), printed=cell.printed)
            elif values:
                form = f".{max(1, METRICS[metric].decimals)}f"
                ends = interval_of(board, measured, metric) or Number()
                cell = replace(ends, value=fmean(values), form=form, printed=cell.printed)
            line[METRICS[column].heading] = cell
        lines.append(line | {"comparable": comparable, "remark": remark or None})
        ids.append(row.preset or "")
    title = f"Table {number}: {printed.title}, {place} {ARROW} {board.title}"
    return Table.of(title, lines, ids)


def shown_tables(paper: Paper, board: Board) -> list[Table]:
    """For a page: of the tables with a measured row all rows of the paper's own, and the columns
    that have a measured number. The places are those of the board's dataset, or all that are
    printed. A dagger that all of its numbers have stands once, in the title."""
    shown, lacks = [], unmeasured(paper, [board])
    for number, printed in paper.tables.items():
        alike = [place for place in printed.places if claims.is_dataset(board, place)]
        for place in () if number in lacks else alike or printed.places:
            table = paper_table(paper, number, place, board)
            rows = [row for row in printed.rows if place in row.numbers]
            frame = table.frame[[bool(row.preset or row.unplayed) for row in rows]]
            if frame.empty:
                continue
            columns = list(frame.columns[2:-2])
            heads = [h for h in columns if any(c.value is not None for c in frame[h])] or columns
            if len(heads) > MOST:
                heads = [h for h in heads if h in RECALLS or "R@" not in h][:MOST]
            cells, title = frame[heads], table.title
            if {c.note for h in heads for c in frame[h] if c.low is not None} == {DAGGER}:
                cells, title = cells.map(lambda c: replace(c, note="")), f"{title} {DAGGER}"
            twice, differs = Counter(frame["row"]), frame["comparable"].nunique() > 1
            labels = []
            for label, setting, answer in frame[["row", "setting", "comparable"]].to_numpy():
                labels.append(f"{label}, {setting}" if twice[label] > 1 and setting else label)
                if differs and answer:  # a column of its own would not fit
                    labels[-1] += f"; comparable: {answer.replace(':', ',')}"
            shown.append(Table(title, cells.assign(row=labels)[["row", *heads]]))
    return shown


def answers(paper: Paper, board: Board) -> set[str]:
    """Whether the measured rows can be compared with what is printed, or why not."""
    return {
        f"no: {', '.join(reasons)}" if reasons else YES
        for table in paper.tables.values()
        for printed in table.rows
        for row in [board.row(printed.preset) if printed.preset else None]
        for place in (printed.numbers if row and row.played else ())
        for reasons in [obstacles(paper, board, row, place)]
    }


def unmeasured(paper: Paper, boards: Sequence[Board]) -> list[str]:
    """The numbers of the tables of which nothing was measured."""
    played = {row.preset for board in boards for row in board.ranked}
    return [
        number
        for number, table in paper.tables.items()
        if played.isdisjoint(row.preset for row in table.rows)
    ]


def obstacles(paper: Paper, board: Board, row: Row, place: str) -> list[str]:
    """Why the paper's numbers at `place` and the measured ones cannot be compared; empty if they
    can."""
    letters = flags.letters(flags.row_flags(board, row))
    is_dataset = claims.is_dataset(board, place)
    differs = {
        "other dataset": not is_dataset,
        "other split": is_dataset and not claims.is_same(paper, board, place),
        "other features": bool(row.record.departures),
        "other budget": bool(row.record.scaled),
        "random text encoder": "T" in letters,
        "extra input": "X" in letters,
    }
    return [obstacle for obstacle, is_there in differs.items() if is_there]

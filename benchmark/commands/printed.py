"""Find a printed number in the papers' tables, and what was measured here in its place.

rematch printed 58.6             also 58,6 or 58.60 %
rematch printed scan             rows of a paper, those with a preset; scan/4: of one of its tables
rematch printed scan_t2i_avg     the rows of a preset; "VSE++": those of a label, or of a part of it

Below the first row of each preset and place stand the means over the seeds of each season in
reports/, with their 95% intervals where the prepared data that these need are there.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from benchmark.boards.boards import Board, read_boards
from benchmark.boards.claims import FOLDED
from benchmark.core.errors import UserError, suggested
from benchmark.core.files import read_json
from benchmark.papers.printed_tables import Printed, as_printed, papers, printed
from benchmark.report.__main__ import ROOT
from benchmark.report.pages.paper_tables import obstacles
from benchmark.report.pages.result_tables import interval_of
from benchmark.report.tables import NO_BREAK, Number
from benchmark.scoring.metrics import METRICS
from benchmark.season.parameter_files import read_params

NUMBER = re.compile(r"(\d{1,6})(?:[.,](\d{1,6}))?\s*%?")
SLACK = 1e-6  # of sums of printed numbers


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("wanted", help="a number, or a paper, table, preset or label")


def main(arguments: argparse.Namespace) -> None:
    seen = set()
    for line in found(" ".join(arguments.wanted.split())):
        told = [f"{METRICS[m].heading} {as_printed(n, m)}" for m, n in line.numbers.items()]
        names = filter(None, (line.table, line.place, line.row.label, line.row.setting))
        preset = f" ({line.row.preset})" if line.row.preset else ""
        print(f"{', '.join(names)}{preset}: {', '.join(told)}")
        for measured in here(line):
            if (key := (line.row.preset, line.place, measured)) not in seen:
                print(f"    {measured}")
            seen.add(key)


def found(wanted: str) -> list[Printed]:
    """The rows that are asked for; of a number, those that print it, or one that it is rounded to,
    each with it alone. Raises UserError for what is in no table."""
    lines = printed()
    if number := NUMBER.fullmatch(wanted):
        whole, decimals = number[1], number[2] or ""
        value, half = float(f"{whole}.{decimals}"), 0.5 * 10.0 ** -len(decimals)
        known = {number for line in lines for number in line.numbers.values()}
        if all(abs(number - value) > half + SLACK for number in known):
            nearest = min(known, key=lambda number: abs(number - value))
            raise UserError("printed", "a printed number", f"{wanted}; nearest is {nearest:g}")
        for place, line in enumerate(lines):
            near = {m: n for m, n in line.numbers.items() if abs(n - value) <= half + SLACK}
            lines[place] = line._replace(numbers=near)
        return [line for line in lines if line.numbers]
    key, names = wanted.casefold(), []
    for line in lines:
        of = (line.table.partition("/")[0], line.table, line.row.preset or "", line.row.label)
        names.append([name.casefold() for name in of])
    named = [line for line, of in zip(lines, names, strict=True) if key in of]
    named = named or [line for line, of in zip(lines, names, strict=True) if key in " ".join(of)]
    if not key or not named:
        expected = "a printed number, or a paper, table, preset or label of the papers' tables"
        near = suggested(wanted, [name for of in names for name in of])
        raise UserError("printed", expected, near, "see: rematch list presets")
    return [line for line in named if line.row.preset or key not in papers()]


def here(line: Printed) -> Iterator[str]:
    """What each season has for the preset of a row: the metrics that are printed."""
    folds = "fold_" if line.place.startswith(f"{FOLDED}/") else ""
    for path in sorted(ROOT.glob("*/metrics.json")):
        season = path.parent.name
        for dataset, presets in read_json(path).items():
            means, told = presets.get(line.row.preset, {}), []
            board = boards_of(season).get(dataset) if means else None
            row = board and board.row(line.row.preset)
            for metric in line.numbers:
                if (key := folds + metric if folds + metric in means else metric) in means:
                    ends = row and interval_of(board, row, key)
                    number = replace(ends or Number(), value=means[key])
                    told.append(f"{METRICS[metric].heading} {number}".replace(NO_BREAK, " "))
            if told:
                paper = papers()[line.table.partition("/")[0]]
                differs = obstacles(paper, board, row, line.place) if row else ()
                beside = f" (not comparable: {', '.join(differs)})" if differs else ""
                yield f"here, {season}, {dataset}{beside}: {', '.join(told)}"


@cache
def boards_of(season: str) -> dict[str, Board]:
    """The boards of a season, which intervals need; none where its data are not prepared."""
    try:
        return {board.dataset: board for board in read_boards(read_params(season))}
    except UserError as error:
        print(f"rematch: {season}: without intervals: {error}", file=sys.stderr)
        return {}

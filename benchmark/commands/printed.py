"""Find a printed number in the papers' tables, and what was measured here in its place.

rematch printed 58.6             also 58,6 or 58.60 %; of 0.586 also 58.6
rematch printed scan             rows of a paper, those with a preset; scan/4: of one of its tables
rematch printed scan_t2i_avg     the rows of a preset; "VSE++": those of a label, or of a part of it

Below the first row of each preset and place stand the means over the seeds of each
season in reports/, with their 95% intervals where the prepared data that these need are
there.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

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

NUMBER = re.compile(r"(\d{0,6})(?:[.,](\d{1,6}))?(\s*%)?")
SLACK = 1e-6  # of sums of printed numbers


@dataclass(frozen=True)
class Rounded:
    """A number as it is written."""

    value: float
    decimals: int
    is_percent: bool = False  # a sign says so

    @classmethod
    def of(cls, text: str) -> Self | None:
        """None for a text that is no number."""
        match = NUMBER.fullmatch(text)
        if not match or not (match[1] or match[2]):
            return None
        decimals = match[2] or ""
        return cls(float(f"{match[1]}.{decimals}0"), len(decimals), bool(match[3]))

    def __str__(self) -> str:
        return f"{self.value:.{self.decimals}f}"

    @property
    def in_percent(self) -> Self | None:
        """The same as a percentage, if it may be a fraction; of a single decimal, too
        many numbers would be it."""
        if self.is_percent or self.value >= 1 or self.decimals < 2:
            return None
        return Rounded(100 * self.value, self.decimals - 2)

    def is_that_of(self, number: float) -> bool:
        """Whether a printed number is this one, or is rounded to it."""
        return abs(number - self.value) <= 0.5 * 10.0**-self.decimals + SLACK


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("wanted", help="a number, or a paper, table, preset or label")


def main(arguments: argparse.Namespace) -> None:
    wanted = " ".join(arguments.wanted.split())
    number = Rounded.of(wanted)
    if number is None:
        show(named(wanted))
        return
    lines, share = with_number(number), number.in_percent
    of_share = with_number(share) if share else []
    if not lines and not of_share:
        evidence, advice = f"{wanted}; nearest is {nearest(number):g}", ""
        if share:
            evidence += f", and to {share} per cent {nearest(share):g}"
        elif number.value < 1:
            advice = f"of a fraction write the percentage: {100 * number.value:g}"
        raise UserError("printed", "a printed number", evidence, advice)
    show(lines)
    if of_share:
        print(f"{wanted} as a fraction, {share} per cent:")
        show(of_share)


def show(lines: list[Printed]) -> None:
    """Print rows of the papers' tables, each with what was measured here in its
    place."""
    seen = set()
    for line in lines:
        told = [
            f"{METRICS[m].heading} {as_printed(n, m)}" for m, n in line.numbers.items()
        ]
        names = filter(None, (line.table, line.place, line.row.label, line.row.setting))
        preset = f" ({line.row.preset})" if line.row.preset else ""
        print(f"{', '.join(names)}{preset}: {', '.join(told)}")
        for measured in here(line):
            if (key := (line.row.preset, line.place, measured)) not in seen:
                print(f"    {measured}")
            seen.add(key)


def with_number(number: Rounded) -> list[Printed]:
    """The rows that print a number, each with it alone."""
    lines = []
    for line in printed():
        near = {m: n for m, n in line.numbers.items() if number.is_that_of(n)}
        if near:
            lines.append(line._replace(numbers=near))
    return lines


def nearest(number: Rounded) -> float:
    """The printed number that is closest to one that nobody prints."""
    known = {n for line in printed() for n in line.numbers.values()}
    return min(known, key=lambda known_number: abs(known_number - number.value))


def named(wanted: str) -> list[Printed]:
    """The rows of a paper, table, preset or label. Raises UserError for what is in no
    table."""
    lines = printed()
    key, names = wanted.casefold(), []
    for line in lines:
        of = (
            line.table.partition("/")[0],
            line.table,
            line.row.preset or "",
            line.row.label,
        )
        names.append([name.casefold() for name in of])
    named = [line for line, of in zip(lines, names, strict=True) if key in of]
    named = named or [
        line for line, of in zip(lines, names, strict=True) if key in " ".join(of)
    ]
    if not key or not named:
        expected = (
            "a printed number, or a paper, table, preset or label of the papers' tables"
        )
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
                if (
                    key := folds + metric if folds + metric in means else metric
                ) in means:
                    ends = row and interval_of(board, row, key)
                    number = replace(ends or Number(), value=means[key])
                    told.append(
                        f"{METRICS[metric].heading} {number}".replace(NO_BREAK, " ")
                    )
            if told:
                paper = papers()[line.table.partition("/")[0]]
                differs = obstacles(paper, board, row, line.place) if row else ()
                beside = f" (not comparable: {', '.join(differs)})" if differs else ""
                yield f"here, {season}, {dataset}{beside}: {', '.join(told)}"


@cache
def boards_of(season: str) -> dict[str, Board]:
    """The boards of a season, which intervals need; none where its data are not
    prepared."""
    try:
        return {board.dataset: board for board in read_boards(read_params(season))}
    except UserError as error:
        print(f"rematch: {season}: without intervals: {error}", file=sys.stderr)
        return {}

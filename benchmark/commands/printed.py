"""Find a printed number in the papers' tables, and what was measured here in its place.

rematch printed 58.6             also 58,6 or 58.60 %; of 0.586 also 58.6
rematch printed scan             rows of a paper, those with a preset; scan/4: of one of its tables
rematch printed scan_t2i_avg     the rows of a preset; "VSE++": those of a label, or of a part of it

Below the first row of each preset and place stand the means over the seeds of each
season in reports/, with their intervals where the prepared data that these need are
there.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from benchmark.boards.boards import Board
from benchmark.boards.claims import FOLDED
from benchmark.boards.season_boards import read_boards
from benchmark.contracts import committed
from benchmark.core.command_line import JSON, add_format
from benchmark.core.errors import UserError, suggested
from benchmark.core.files import json_text, read_json
from benchmark.papers.printed_numbers import Rounded
from benchmark.papers.printed_tables import Printed, as_printed, papers, printed
from benchmark.report import ROOT
from benchmark.report.pages.paper_tables import obstacles
from benchmark.report.pages.result_tables import interval_of
from benchmark.report.tables import NO_BREAK, Number
from benchmark.scoring.metrics import METRICS
from benchmark.season.parameter_files import read_declaration


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("wanted", help="a number, or a paper, table, preset or label")
    form = "of what is printed; json has no results of seasons"
    add_format(parser, form)


def main(arguments: argparse.Namespace) -> None:
    lines, of_share = looked_up(arguments.wanted)
    if arguments.format == JSON:
        print(json_text([facts_of(line) for line in (*lines, *of_share)]), end="")
        return
    show(lines)
    if of_share:
        share = Rounded.of(arguments.wanted.strip()).in_percent
        print(f"{arguments.wanted} as a fraction, {share} per cent:")
        show(of_share)


def facts_of(line: Printed) -> dict:
    """A row of a paper's table as data, with what it prints by metric."""
    return {
        "table": line.table,
        "place": line.place,
        "label": line.row.label,
        "setting": line.row.setting,
        "preset": line.row.preset,
        "numbers": dict(line.numbers),
    }


def looked_up(text: str) -> tuple[list[Printed], list[Printed]]:
    """The rows that print a number, or are called so, and those that print it as a
    percentage, if it may be a fraction. Raises UserError for what is in no table."""
    wanted = " ".join(text.split())
    number = Rounded.of(wanted)
    if number is None:
        return named(wanted), []
    lines = with_number(number)
    share = number.in_percent
    of_share = with_number(share) if share else []
    if not lines and not of_share:
        actual = f"{wanted}; nearest is {nearest(number):g}"
        advice = f"run: rematch printed {nearest(number):g}"
        if share:
            actual += f", and to {share} per cent {nearest(share):g}"
        elif number.value < 1:
            advice = f"run: rematch printed {100 * number.value:g}, its percentage"
        raise UserError(
            "printed",
            expected="a printed number",
            found=actual,
            do=advice,
        )
    return lines, of_share


def show(lines: list[Printed]) -> None:
    """Print rows of the papers' tables, each with what was measured here in its
    place."""
    shown = set()
    # season -> dataset -> preset -> metric -> mean over the seeds, as reports have them
    seasons = {}
    for path in sorted(committed(ROOT).glob("*/metrics.json")):
        seasons[path.parent.name] = read_json(path)
    for line in lines:
        numbers = []
        for metric, number in line.numbers.items():
            numbers.append(f"{METRICS[metric].heading} {as_printed(number, metric)}")
        names = filter(None, (line.table, line.place, line.row.label, line.row.setting))
        preset = f" ({line.row.preset})" if line.row.preset else ""
        print(f"{', '.join(names)}{preset}: {', '.join(numbers)}")
        for measured in measured_lines(line, seasons):
            key = (line.row.preset, line.place, measured)
            if key not in shown:
                print(f"    {measured}")
            shown.add(key)


def with_number(number: Rounded) -> list[Printed]:
    """The rows that print a number, each with it alone."""
    lines = []
    for line in printed():
        numbers = line.numbers.items()
        alike = {metric: value for metric, value in numbers if number.is_that_of(value)}
        if alike:
            lines.append(line._replace(numbers=alike))
    return lines


def nearest(number: Rounded) -> float:
    """The printed number that is closest to one that nobody prints."""
    known: set[float] = set()
    for line in printed():
        known.update(line.numbers.values())
    return min(known, key=lambda value: abs(value - number.value))


def named(wanted: str) -> list[Printed]:
    """The rows of a paper, table, preset or label. Raises UserError for what is in no
    table."""
    key = wanted.casefold()
    named = []
    similar = []
    known = []
    for line in printed():
        names = _names(line)
        known += names
        if key in names:
            named.append(line)
        if key in " ".join(names):
            similar.append(line)
    lines = named or similar
    if not key or not lines:
        raise UserError(
            "printed",
            expected="a printed number, or a paper, table, preset or label of the papers' tables",
            found=suggested(wanted, known),
            do="run: rematch list presets",
        )
    return [line for line in lines if line.row.preset or key not in papers()]


def _names(line: Printed) -> list[str]:
    """Under which a row is found: its paper, table, preset and label."""
    names = (_paper(line), line.table, line.row.preset or "", line.row.label)
    return [name.casefold() for name in names]


def _paper(line: Printed) -> str:
    return line.table.partition("/")[0]


def measured_lines(line: Printed, seasons: Mapping[str, dict]) -> Iterator[str]:
    """What each season has for the preset of a row: the metrics that are printed."""
    for season, datasets in seasons.items():
        for dataset, presets in datasets.items():
            means = presets.get(line.row.preset, {})
            board = boards_of(season).get(dataset) if means else None
            row = board.row(line.row.preset) if board else None
            numbers = []
            for metric in line.numbers:
                name = metric
                # over folds, where the paper's is, and the season has them
                if line.place.startswith(f"{FOLDED}/") and f"fold_{metric}" in means:
                    name = f"fold_{metric}"
                if name in means:
                    ends = interval_of(board, row, name) if row else None
                    number = replace(ends or Number(), value=means[name])
                    text = f"{METRICS[metric].heading} {number}"
                    numbers.append(text.replace(NO_BREAK, " "))
            if numbers:
                differs = []
                if row:
                    differs = obstacles(papers()[_paper(line)], board, row, line.place)
                reason = f" (not comparable: {', '.join(differs)})" if differs else ""
                place = f"season {season}"
                if dataset != season:
                    place += f", {dataset}"
                yield f"Rematch, {place}{reason}: {', '.join(numbers)}"


@cache
def boards_of(season: str) -> dict[str, Board]:
    """The boards of a season, which intervals need; none where its data are not
    prepared."""
    try:
        return {board.dataset: board for board in read_boards(read_declaration(season))}
    except UserError as error:
        print(f"rematch: {season}: without intervals: {error}", file=sys.stderr)
        return {}

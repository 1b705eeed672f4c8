"""Rank any results, query by query: the level of each, and the ranks that it could have.

    rematch board a.parquet b.parquet c.parquet
    rematch board a.csv b0.csv,b1.csv c.csv --metric t2i_r1
    rematch board a.csv b.csv c.csv --by dataset

A result is a table as `rematch judge` takes it: one file, one for each seed with commas
between, or FILE:PRESET. All pairs are compared for other queries and other trainings, with
Holm's adjustment over all of them. Rows that differ significantly keep their order; the
ranks of a row are those that it could have, and all true ranks are among them at once with
the confidence of an interval. Rows with a letter of ties in common are not significantly different.

Results that can be read in two ways are refused until --first-rank or --scale decides.
Each takes one value for all results, or one for each, separated by commas, as in
--scale 1,100,1.

With --by dataset the tables have a column dataset, and a level is the mean over datasets,
each with the same weight. A result that lacks a dataset of others is refused.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from statistics import fmean
from string import ascii_lowercase

import numpy as np

from benchmark.commands import conventions
from benchmark.commands.judge import factor, first_rank, per_result
from benchmark.commands.judged_results import (
    Measure,
    compared,
    fewest_queries,
    interval_of_level,
    measured_together,
    too_few,
)
from benchmark.commands.result_files import (
    DATASET,
    OWN,
    Reading,
    Result,
    is_table,
    read_datasets,
    read_table,
    table_of,
)
from benchmark.core.command_line import JSON, add_format
from benchmark.core.errors import UserError, printable
from benchmark.core.files import json_text
from benchmark.stats import PERCENT, pooling, significance
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Constant, Estimate

WHOLE = ""  # the name of the only dataset of results that are not split


@dataclass(frozen=True, kw_only=True)
class BoardRow:
    """Where a result stands, the best first."""

    name: str
    level: float  # in the unit of the metric; mean over datasets
    low: float  # ends of its interval
    high: float
    rank: int  # from 1
    ranks: tuple[int, int]  # those that it could have
    ties: str  # letters; rows with one in common do not differ
    seeds: int
    levels: Mapping[str, float]  # by dataset; empty: they are not split


@dataclass(frozen=True, kw_only=True)
class ResultBoard:
    metric: str
    rows: Sequence[BoardRow]
    queries: int  # of the direction and the dataset that have fewest
    is_of_these_trainings: bool  # nothing is known of other trainings
    notes: Sequence[str]


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("results", nargs="+", metavar="RESULT", help="tables, two or more")
    add("--metric", help="default: rsum, r1 of one direction, or value")
    add("--by", choices=(DATASET,), help="the column that tells datasets apart")
    add("--layer", default=OWN, help=f"of relevance; default: {OWN}")
    ranks = "0 or 1: what the first place is called in tables"
    add("--first-rank", metavar="N", help=ranks)
    scale = "multiply values by X; 1: all are right as they are"
    add("--scale", metavar="X", help=scale)
    add_format(parser)


def main(arguments: argparse.Namespace) -> None:
    names = arguments.results
    if len(names) < 2:
        raise UserError("board", "two results or more", "one", "name another")
    for name in names:
        if names.count(name) > 1:
            raise UserError(
                "board", "each result once", f"{name} twice", "leave it out"
            )
    for name in names:
        if not is_table(name):
            advice = "rematch export --queries writes one of a season's rows"
            raise UserError(name, "a table of results", "no file of one", advice)
    table_of.cache_clear()  # files may have changed
    given: dict[str, dict[str, Result]] = {}
    for name, reading in zip(names, readings_of(names, arguments), strict=True):
        asked_of = name, arguments.layer, arguments.metric, reading
        if arguments.by:
            given[name] = read_datasets(*asked_of)
        else:
            given[name] = {WHOLE: read_table(*asked_of)}
    board = board_of(given, arguments.metric)
    if arguments.format == JSON:
        print(json_text(facts_of(board)), end="")
    else:
        print(shown_facts(facts_of(board)))


def readings_of(names: Sequence[str], arguments: argparse.Namespace) -> list[Reading]:
    """How each result is to be read. Raises UserError for options without a valid
    value for each."""
    count = len(names)
    first_ranks = per_result(
        "--first-rank", arguments.first_rank, first_rank, "0 or 1", count
    )
    scales = per_result("--scale", arguments.scale, factor, "a number above 0", count)
    readings = []
    for rank, scale in zip(first_ranks, scales, strict=True):
        readings.append(Reading(first_rank=rank, scale=scale))
    return readings


# Ranking ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Level:
    """The mean of a result, with its interval for other queries and other trainings, as
    `rematch judge --printed` has it."""

    mean: float
    low: float
    high: float


def mean_level(levels: Sequence[Level]) -> Level:
    """The mean over datasets, whose errors are independent."""
    means = [level.mean for level in levels]
    ends = [(level.low, level.high) for level in levels]
    low, high = significance.summed(means, ends)
    return Level(mean=fmean(means), low=low / len(means), high=high / len(means))


@dataclass(frozen=True, kw_only=True)
class OnDataset:
    """What the results on one dataset say."""

    measure: Measure
    levels: Mapping[str, Level]  # by name
    differences: Mapping[frozenset[str], Comparison]  # by the names of the pair
    queries: int  # of the direction that has fewest
    is_enough: bool  # for conclusions
    is_of_these_trainings: bool  # nothing is known of other trainings
    notes: Sequence[str]


def board_of(
    given: Mapping[str, Mapping[str, Result]], metric: str | None
) -> ResultBoard:
    """The board of results by name, each by dataset. Raises UserError for results that
    cannot be compared, or that lack a dataset."""
    names = list(given)
    for one, other in pairwise(given):
        if set(given[one]) != set(given[other]):
            expected = f"the datasets of {one}: {', '.join(sorted(given[one]))}"
            others = ", ".join(sorted(given[other]))
            raise UserError(other, expected, others, "leave one out, or add its rows")
    by_dataset = {}
    for dataset in given[names[0]]:
        results = {name: given[name][dataset] for name in names}
        by_dataset[dataset] = _on_dataset(results, metric)
    (first, *_), parts = by_dataset.values(), list(by_dataset.values())
    is_enough = all(part.is_enough for part in parts)
    levels = {}
    for name in names:
        levels[name] = mean_level([part.levels[name] for part in parts])
    sign = 1 if first.measure.less_is_better else -1
    ordered = sorted(names, key=lambda name: sign * levels[name].mean)
    p_values = []
    for pair in map(frozenset, combinations(ordered, 2)):
        of_pair = {
            dataset: part.differences[pair] for dataset, part in by_dataset.items()
        }
        estimate = _mean_difference(of_pair)
        p_values.append(estimate.p() if estimate and is_enough else 1.0)
    apart_RR = significance.apart(p_values, len(ordered))
    ranks, ties, rows = significance.rank_intervals(apart_RR), ties_of(apart_RR), []
    for index, name in enumerate(ordered):
        of_each = {}
        if list(by_dataset) != [WHOLE]:
            of_each = {d: part.levels[name].mean for d, part in by_dataset.items()}
        row = BoardRow(
            name=name,
            level=levels[name].mean,
            low=levels[name].low,
            high=levels[name].high,
            rank=index + 1,
            ranks=ranks[index],
            ties=ties[index],
            seeds=min(result.table.shape[1] for result in given[name].values()),
            levels=of_each,
        )
        rows.append(row)
    return ResultBoard(
        metric=first.measure.shown,
        rows=rows,
        queries=min(part.queries for part in parts),
        is_of_these_trainings=any(part.is_of_these_trainings for part in parts),
        notes=_notes(parts, is_enough),
    )


def _on_dataset(results: Mapping[str, Result], metric: str | None) -> OnDataset:
    """The results on one dataset, by name. All of them tell how far trainings lie
    apart."""
    # each with each: zeros fit any scale, and would hide that others do not
    for first, second in combinations(results.values(), 2):
        conventions.check(first, second)
    measured = measured_together(list(results.values()), [], metric)
    levels, differences = {}, {}
    for name, result in results.items():
        low, high = interval_of_level(result, measured)
        mean = measured.samples[name].mean
        levels[name] = Level(mean=mean, low=low, high=high)
    for one, other in combinations(results, 2):
        difference = compared(results[one], results[other], measured)
        differences[frozenset([one, other])] = difference
    of_these = [each.is_of_these_trainings for each in differences.values()]
    return OnDataset(
        measure=measured.measure,
        levels=levels,
        differences=differences,
        queries=min(map(fewest_queries, results.values())),
        is_enough=not any(map(too_few, results.values())),
        is_of_these_trainings=any(of_these),
        notes=measured.notes,
    )


def _mean_difference(
    by_dataset: Mapping[str, Comparison],
) -> Estimate | Constant | None:
    """Over datasets, which have other queries; None where nothing tells the error. If
    all clusters of each dataset have one difference, the mean counts as known from the
    clusters of the smallest dataset: no less sure than it is."""
    set_ups = [
        replace(comparison, images=dataset)
        for dataset, comparison in by_dataset.items()
    ]
    units = min(set_up.units for set_up in set_ups)
    reach = max(set_up.reach for set_up in set_ups)
    return replace(pooling.pool(set_ups), units=units, reach=reach).estimate


def _notes(parts: Sequence[OnDataset], is_enough: bool) -> list[str]:
    notes = []
    for part in parts:
        notes += part.notes
    if not is_enough:
        notes.append("too few queries for any conclusion: every rank is possible")
    return list(dict.fromkeys(notes))


def ties_of(apart_RR: np.ndarray) -> list[str]:
    """Letters of ranked rows, of which `apart_RR` says who differ: each letter is a
    longest run of rows of which no two differ."""
    count, runs = len(apart_RR), []
    for start in range(count):
        end = start + 1
        while end < count and not apart_RR[start : end + 1, start : end + 1].any():
            end += 1
        if not runs or end > runs[-1][1]:
            runs.append((start, end))
    letters = [""] * count
    for number, (start, end) in enumerate(runs):
        for index in range(start, end):
            letters[index] += _letter(number)
    return letters


def _letter(number: int) -> str:
    """a to z, then a1 and so on."""
    round_number, place = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[place] + (str(round_number) if round_number else "")


# Telling ------------------------------------------------------------------------------


def facts_of(board: ResultBoard) -> dict:
    rows = []
    for row in board.rows:
        both = {"levels": dict(row.levels), "ranks": list(row.ranks)}
        rows.append(vars(row) | both)
    return vars(board) | {"rows": rows, "notes": list(board.notes)}


def shown_facts(facts: Mapping) -> str:
    """A line for each row, then what a reader must know."""
    width = max(len(printable(row["name"])) for row in facts["rows"])
    metric = facts["metric"]
    lines = [f"{'rank':>4} {'ranks':>8}  {'ties':5} {'result':{width}}  {metric}"]
    lines += [_line(row, width) for row in facts["rows"]]
    scope = "other queries and other trainings"
    if facts["is_of_these_trainings"]:
        scope = "other queries alone: nothing is known of other trainings"
    counted = f"{facts['queries']} queries or more"
    lines.append(f"{PERCENT} intervals, for {scope}; {counted}")
    return "\n".join([*lines, *map(printable, facts["notes"])])


def _line(row: Mapping, width: int) -> str:
    ranks = "{}-{}".format(*row["ranks"])
    name = printable(row["name"])
    line = f"{row['rank']:>4} {ranks:>8}  {row['ties']:5} {name:{width}}"
    # as `judge` shows them: values may be of any scale
    line += f"  {row['level']:.4g} [{row['low']:.4g}, {row['high']:.4g}]"
    of_each = [f"{dataset} {level:.4g}" for dataset, level in row["levels"].items()]
    return f"{line}  ({printable(', '.join(of_each))})" if of_each else line

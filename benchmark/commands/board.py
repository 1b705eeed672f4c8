"""Rank any results, query by query: the level of each, and the ranks that it could have.

    rematch board a.parquet b.parquet c.parquet
    rematch board a.csv b0.csv,b1.csv c.csv --metric t2i_r1
    rematch board a.csv b.csv c.csv --by dataset

A result is a table as `rematch judge` takes it: one file, one for each seed with commas
between, or FILE:PRESET. All pairs are compared for other queries and other trainings, with
Holm's adjustment over all of them. Rows that differ significantly keep their order; the
ranks of a row are those that it could have, and all true ranks are among them at once at
95%. Rows with a letter of ties in common are not significantly different.

With --by dataset the tables have a column dataset, and a level is the mean over datasets,
each with the same weight. A result that lacks a dataset of others is refused.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pandas as pd

from benchmark.commands import conventions
from benchmark.commands.judged_results import (
    Measure,
    common_depth,
    fewest_queries,
    is_trained,
    measure_of,
    sampled,
    too_few,
)
from benchmark.commands.result_files import (
    OWN,
    Reading,
    Result,
    of_frame,
    parts_of,
    read_table,
    table_of,
)
from benchmark.core.confidence import PERCENT
from benchmark.core.errors import UserError, printable
from benchmark.core.files import json_text
from benchmark.stats import comparisons, pooling, significance
from benchmark.stats.comparisons import Comparison, Sample
from benchmark.stats.pooling import SetUp

TEXT, JSON = "text", "json"
BY = "dataset"  # the column by which results can be split
WHOLE = ""  # the name of the only dataset of results that are not split


@dataclass(frozen=True, kw_only=True)
class BoardRow:
    """Where a result stands, the best first."""

    name: str
    level: float  # in the unit of the metric; mean over datasets
    low: float | None  # ends of its interval; None: there is no spread
    high: float | None
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
    add("--by", choices=(BY,), help="the column that tells datasets apart")
    add("--layer", default=OWN, help=f"of relevance; default: {OWN}")
    add("--format", choices=(TEXT, JSON), default=TEXT, help="of what is printed")


def main(arguments: argparse.Namespace) -> None:
    names = list(dict.fromkeys(arguments.results))
    if len(names) < 2:
        raise UserError("board", "two results or more", "one", "name another")
    table_of.cache_clear()  # files may have changed
    read = read_by_dataset if arguments.by else read_whole
    given = {name: read(name, arguments.layer, arguments.metric) for name in names}
    board = board_of(given, arguments.metric)
    if arguments.format == JSON:
        print(json_text(facts_of(board)), end="")
    else:
        print(shown_facts(facts_of(board)))


# Reading ------------------------------------------------------------------------------


def read_whole(name: str, layer: str, metric: str | None) -> dict[str, Result]:
    return {WHOLE: read_table(name, layer, metric, Reading())}


def read_by_dataset(name: str, layer: str, metric: str | None) -> dict[str, Result]:
    """A result for each dataset of a table. Raises UserError for one without the
    column."""
    files, preset = parts_of(name)
    tables = []
    for seed, file in enumerate(files):
        table = table_of(Path(file))
        if BY not in table:
            raise UserError(name, f"a column {BY}", ", ".join(table), "add it")
        if preset:
            table = table[table.get("preset") == preset]
        tables.append(table.assign(seed=seed) if len(files) > 1 else table)
    results = {}
    for dataset, rows in pd.concat(tables).groupby(BY):
        frame = rows.drop(columns=[BY, "preset"], errors="ignore")
        results[str(dataset)] = of_frame(name, frame, layer, metric, Reading())
    return results


# Ranking ------------------------------------------------------------------------------


def board_of(
    given: Mapping[str, Mapping[str, Result]], metric: str | None
) -> ResultBoard:
    """The board of results by name, each by dataset. Raises UserError for results that
    cannot be compared, or that lack a dataset."""
    names = list(given)
    datasets = list(given[names[0]])
    for first, second in pairwise(names):
        if set(given[first]) != set(given[second]):
            expected = f"the datasets of {first}: {', '.join(sorted(given[first]))}"
            found = ", ".join(sorted(given[second]))
            raise UserError(second, expected, found, "leave one out, or add its rows")
    alone: dict[str, list[SetUp]] = {name: [] for name in names}
    apart: dict[tuple[str, str], list[SetUp]] = {}
    is_known, is_enough, queries, notes = True, True, [], []
    for dataset in datasets:
        results = [given[name][dataset] for name in names]
        for result in results[1:]:
            conventions.check(results[0], result)
        measure = measure_of(results[0], results[1], metric)
        levels, differences = _compared(results, measure)
        for name, comparison in zip(names, levels, strict=True):
            alone[name].append(_set_up(comparison, dataset))
            is_known = is_known and not comparison.is_of_these_trainings
        for pair, comparison in zip(combinations(names, 2), differences, strict=True):
            apart.setdefault(pair, []).append(_set_up(comparison, dataset))
        queries.append(min(fewest_queries(result) for result in results))
        is_enough = is_enough and not any(map(too_few, results))
        for result in results:
            notes += result.notes
    if not is_enough:
        notes.append("too few queries for any conclusion: every rank is possible")
    means = {name: pooling.pool(set_ups) for name, set_ups in alone.items()}
    sign = -1 if measure.less_is_better else 1
    ordered = sorted(names, key=lambda name: -sign * means[name].difference)
    p_values = []
    for first, second in combinations(ordered, 2):
        is_known_so = (first, second) in apart
        set_ups = apart[(first, second) if is_known_so else (second, first)]
        p_values.append(_p_apart(set_ups) if is_enough else 1.0)
    apart_RR = significance.apart(p_values, len(ordered))
    ties = ties_of(apart_RR)
    rows = []
    for index, name in enumerate(ordered):
        pooled = means[name]
        estimate = significance.on_other_images(pooled.difference, pooled.doubt)
        low, high = estimate.interval if estimate else (None, None)
        better, worse = apart_RR[index, :index].sum(), apart_RR[index, index:].sum()
        split = {} if datasets == [WHOLE] else _levels(datasets, alone[name])
        row = BoardRow(
            name=name,
            level=pooled.difference,
            low=low,
            high=high,
            rank=index + 1,
            ranks=(1 + int(better), len(ordered) - int(worse)),
            ties=ties[index],
            seeds=min(result.table.shape[1] for result in given[name].values()),
            levels=split,
        )
        rows.append(row)
    return ResultBoard(
        metric=measure.shown,
        rows=rows,
        queries=min(queries),
        is_of_these_trainings=not is_known,
        notes=list(dict.fromkeys(notes)),
    )


def _compared(
    results: Sequence[Result], measure: Measure
) -> tuple[list[Comparison], list[Comparison]]:
    """Of one dataset: the level of each result, and the difference of each pair."""
    cut = common_depth(results)
    samples: dict[str, Sample] = {}
    for result in results:
        samples[result.name] = sampled(result, measure, cut)
    trained = [name for name in samples if is_trained(name)]
    spread = comparisons.spread(samples, trained)
    levels = []
    for name, sample in samples.items():
        levels.append(comparisons.compare([name], [sample], spread))
    differences = []
    for pair in combinations(samples, 2):
        both = [samples[name] for name in pair]
        differences.append(comparisons.compare(list(pair), both, spread))
    return levels, differences


def _set_up(comparison: Comparison, dataset: str) -> SetUp:
    """Datasets have other images."""
    return SetUp(
        difference=comparison.difference, doubt=comparison.doubt, images=dataset
    )


def _levels(datasets: Sequence[str], set_ups: Sequence[SetUp]) -> dict[str, float]:
    pairs = zip(datasets, set_ups, strict=True)
    return {dataset: set_up.difference for dataset, set_up in pairs}


def _p_apart(set_ups: Sequence[SetUp]) -> float:
    pooled = pooling.pool(set_ups)
    estimate = significance.on_other_images(pooled.difference, pooled.doubt)
    return estimate.p() if estimate else 1.0


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
    line += f"  {row['level']:.2f}"
    if row["low"] is not None:
        line += f" [{row['low']:.2f}, {row['high']:.2f}]"
    of_each = [f"{dataset} {level:.2f}" for dataset, level in row["levels"].items()]
    return f"{line}  ({printable(', '.join(of_each))})" if of_each else line

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
from benchmark.stats.pooling import Pooled, SetUp
from benchmark.stats.significance import Estimate

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


@dataclass(frozen=True, kw_only=True)
class OnDataset:
    """What the results on one dataset say."""

    measure: Measure
    levels: Mapping[str, Comparison]  # with zero, by name
    differences: Mapping[frozenset[str], Comparison]  # by the names of the pair
    queries: int  # of the direction that has fewest
    is_enough: bool  # for conclusions
    notes: Sequence[str]

    @property
    def is_of_these_trainings(self) -> bool:
        return any(level.is_of_these_trainings for level in self.levels.values())


def board_of(
    given: Mapping[str, Mapping[str, Result]], metric: str | None
) -> ResultBoard:
    """The board of results by name, each by dataset. Raises UserError for results that
    cannot be compared, or that lack a dataset."""
    names = list(given)
    _check_datasets(given)
    by_dataset = {}
    for dataset in given[names[0]]:
        results = {name: given[name][dataset] for name in names}
        by_dataset[dataset] = _compared(results, metric)
    (first, *_), parts = by_dataset.values(), list(by_dataset.values())
    is_enough = all(part.is_enough for part in parts)
    pooled = {}
    for name in names:
        of_each = {dataset: part.levels[name] for dataset, part in by_dataset.items()}
        pooled[name] = _pooled(of_each)
    sign = 1 if first.measure.less_is_better else -1
    ordered = sorted(names, key=lambda name: sign * pooled[name].difference)
    p_values = []
    for pair in map(frozenset, combinations(ordered, 2)):
        of_each = {
            dataset: part.differences[pair] for dataset, part in by_dataset.items()
        }
        estimate = _estimate(_pooled(of_each))
        p_values.append(estimate.p() if estimate and is_enough else 1.0)
    apart_RR = significance.apart(p_values, len(ordered))
    rows = []
    for index, (name, ties) in enumerate(zip(ordered, ties_of(apart_RR), strict=True)):
        estimate = _estimate(pooled[name])
        low, high = estimate.interval if estimate else (None, None)
        better, worse = apart_RR[index, :index].sum(), apart_RR[index, index:].sum()
        row = BoardRow(
            name=name,
            level=pooled[name].difference,
            low=low,
            high=high,
            rank=index + 1,
            ranks=(1 + int(better), len(ordered) - int(worse)),
            ties=ties,
            seeds=min(result.table.shape[1] for result in given[name].values()),
            levels=_levels(by_dataset, name),
        )
        rows.append(row)
    return ResultBoard(
        metric=first.measure.shown,
        rows=rows,
        queries=min(part.queries for part in parts),
        is_of_these_trainings=any(part.is_of_these_trainings for part in parts),
        notes=_notes(parts, is_enough),
    )


def _check_datasets(given: Mapping[str, Mapping[str, Result]]) -> None:
    for first, second in pairwise(given):
        if set(given[first]) != set(given[second]):
            expected = f"the datasets of {first}: {', '.join(sorted(given[first]))}"
            others = ", ".join(sorted(given[second]))
            raise UserError(second, expected, others, "leave one out, or add its rows")


def _compared(results: Mapping[str, Result], metric: str | None) -> OnDataset:
    """The results on one dataset, by name. All of them tell how far trainings lie
    apart."""
    first, second, *_ = results.values()
    for result in results.values():
        if result is not first:
            conventions.check(first, result)
    measure, cut = measure_of(first, second, metric), common_depth([*results.values()])
    samples: dict[str, Sample] = {}
    for name, result in results.items():
        samples[name] = sampled(result, measure, cut)
    trained = [name for name in samples if is_trained(name)]
    spread = comparisons.spread(samples, trained)
    levels, differences, notes = {}, {}, []
    for name, sample in samples.items():
        levels[name] = comparisons.compare([name], [sample], spread)
    for pair in combinations(samples, 2):
        both = [samples[name] for name in pair]
        differences[frozenset(pair)] = comparisons.compare(list(pair), both, spread)
    for result in results.values():
        notes += result.notes
    return OnDataset(
        measure=measure,
        levels=levels,
        differences=differences,
        queries=min(map(fewest_queries, results.values())),
        is_enough=not any(map(too_few, results.values())),
        notes=notes,
    )


def _pooled(by_dataset: Mapping[str, Comparison]) -> Pooled:
    """The mean over datasets, which have other images."""
    set_ups = []
    for dataset, comparison in by_dataset.items():
        set_up = SetUp(
            difference=comparison.difference, doubt=comparison.doubt, images=dataset
        )
        set_ups.append(set_up)
    return pooling.pool(set_ups)


def _estimate(pooled: Pooled) -> Estimate | None:
    return significance.on_other_images(pooled.difference, pooled.doubt)


def _levels(by_dataset: Mapping[str, OnDataset], name: str) -> dict[str, float]:
    """Of a result on each dataset; empty where it is not split."""
    if list(by_dataset) == [WHOLE]:
        return {}
    return {d: part.levels[name].difference for d, part in by_dataset.items()}


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
    line += f"  {row['level']:.2f}"
    if row["low"] is not None:
        line += f" [{row['low']:.2f}, {row['high']:.2f}]"
    of_each = [f"{dataset} {level:.2f}" for dataset, level in row["levels"].items()]
    return f"{line}  ({printable(', '.join(of_each))})" if of_each else line

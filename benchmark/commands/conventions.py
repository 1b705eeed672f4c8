"""Whether two results of single queries can be compared: the same queries, clusters and
galleries, one scale, one direction.

Where two readings are possible, the error names the option that decides.
"""

import itertools

import numpy as np
import pandas as pd

from benchmark.commands.result_files import (
    SAME,
    Kind,
    Result,
    respelled,
    zero_for_nothing,
)
from benchmark.core.errors import UserError
from benchmark.scoring.rank_conventions import end_together, largest_may_mean_lost

FAR = 10  # a value beyond which the scale is not that of values within 1
OPPOSITE = -0.4  # rank correlation below which one side seems to be a loss
ROUNDING = 1e-6  # of the largest share, 1
CHOOSE = "choose results that have the same"
AS_THEY_ARE = "add --scale 1 if both are right as they are"


def common_kind(first: Result, second: Result) -> Kind | None:
    """What two results can be compared as; None: they are of two kinds. Hits count as
    values beside values where all are the same, such as 0, or have a scale."""
    if first.kind == second.kind:
        return first.kind
    if {first.kind, second.kind} != {Kind.HITS, Kind.VALUES}:
        return None
    hits = first if first.kind == Kind.HITS else second
    return Kind.VALUES if hits.is_constant or hits.is_scaled else None


def check(first: Result, second: Result) -> None:
    """Raise UserError for two results that cannot be compared, or that can be read in
    two ways. They are A and B of the command line, in this order."""
    kind = common_kind(first, second)
    if kind is None:
        advice = CHOOSE
        if Kind.RANKS not in (first.kind, second.kind):
            advice = "if both are one metric, add --scale 1, or --scale 100,1 if B is "
            advice += "in per cent and A is not"
        raise UserError(
            _names(first, second),
            expected="the same kind",
            found=f"{_kind(first)} and {_kind(second)}",
            do=advice,
        )
    _check_facts(first, second)
    if first.is_first_rank_open and second.is_first_rank_open:
        lists = []
        for result in (first, second):
            for _, ranks in result.table.stack().groupby(level=["direction", "seed"]):
                lists.append(ranks.to_numpy())
        # as positions from 1 do beside zeros for what was not found
        if all(map(np.isfinite, map(np.max, lists))) and end_together(lists):
            evidence = f"none beyond {lists[0].max():g} on either side, and 0 on both"
            raise zero_for_nothing(_names(first, second), evidence)
    is_scaled = first.is_scaled or second.is_scaled
    if kind == Kind.VALUES and not is_scaled:
        _check_scale(first, second)
        correlation = rank_correlation(first, second)
        if correlation < OPPOSITE:
            expected = "greater values for better queries on both sides"
            evidence = f"a rank correlation of {correlation:.2f} over queries"
            advice = "compare one metric (turn an error rate into 1 minus it), or add "
            advice += "--scale 1 if greater is better on both sides"
            raise UserError(
                _names(first, second),
                expected=expected,
                found=evidence,
                do=advice,
            )


def notes(first: Result, second: Result) -> list[str]:
    """What looks odd, but is no reason to refuse a comparison."""
    lines = []
    kind = common_kind(first, second)
    if kind == Kind.VALUES:
        for result in (first, second):
            if is_whole(result) and not result.is_scaled:
                what = "whole numbers, of which greater ones count as better"
                advice = "if these are ranks, name the column rank"
                lines.append(f"{result.name}: {what}; {advice}")
    elif (correlation := rank_correlation(first, second)) < OPPOSITE:
        what = f"a rank correlation of {correlation:.2f} over queries"
        lines.append(f"{what}: does one side count errors?")
    if kind == Kind.HITS:
        largest = {first.table.max(axis=None), second.table.max(axis=None)}
        if largest == {1, 100}:
            lines.append("hits are 0 and 1 on one side, 0 and 100 on the other")
    return lines


def is_whole(result: Result) -> bool:
    """Whether the values may be ranks: whole numbers from 0, of many sizes."""
    table = result.table
    whole = ((table % 1 == 0) & (table >= 0)).all(axis=None)
    return bool(whole and table.stack().nunique() > 2)


def _kind(result: Result) -> str:
    return f"{result.kind} in {result.name} ({_range(result)})"


def _range(result: Result) -> str:
    values = result.table.replace(np.inf, np.nan)
    return f"{values.min(axis=None):.4g} to {values.max(axis=None):.4g}"


def _names(first: Result, second: Result) -> str:
    return f"{first.name}, {second.name}"


def _check_facts(first: Result, second: Result) -> None:
    """Layers, datasets, galleries, directions, queries and clusters are the same."""
    names = _names(first, second)
    facts = (first.facts, second.facts)
    for column in SAME:
        one, other = (of_side[column].iloc[0] for of_side in facts)
        if one and other and one != other:
            raise UserError(
                names,
                expected=f"the same {column}",
                found=f"{one} and {other}",
                do=CHOOSE,
            )
    for whole, other in ((first, second), (second, first)):
        if whole.lists_all and (beyond := other.items - whole.items):
            evidence = f"{len(whole.items)} items in {whole.name}, and others in "
            evidence += f"{other.name}, such as {min(beyond)!r}"
            raise UserError(
                names,
                expected="the same gallery",
                found=evidence,
                do=CHOOSE,
            )
    one, other = (", ".join(of_side.index.unique("direction")) for of_side in facts)
    if one != other:
        raise UserError(
            names,
            expected="the same directions",
            found=f"{one} and {other}",
            do=f"{CHOOSE}; without a column direction, i2t is meant",
        )
    if not first.facts.index.equals(second.facts.index):
        raise _other_queries(first, second)
    differs = first.facts["cluster"] != second.facts["cluster"]
    if differs.any():
        query = differs.idxmax()
        one, other = (of_side["cluster"][query] for of_side in facts)
        raise UserError(
            f"{names}: {query[1]!r}",
            expected="the same cluster",
            found=f"{one!r} and {other!r}",
            do=CHOOSE,
        )


def _other_queries(first: Result, second: Result) -> UserError:
    names = _names(first, second)
    first_alone = _queries_beyond(first, second)
    second_alone = _queries_beyond(second, first)
    pairs = respelled(first_alone, second_alone)
    if pairs:
        one, other = pairs[0]
        return UserError(
            names,
            expected="the same query names",
            found=f"{one!r} and {other!r} ({len(pairs)} such)",
            do="name them alike",
        )
    parts = []
    for result, queries in ((first, first_alone), (second, second_alone)):
        if queries:
            count = f"{len(queries)} in {result.name} alone"
            parts.append(f"{count}, as {queries[0]!r}")
    return UserError(
        names,
        expected="the same queries",
        found=", ".join(parts),
        do="leave out what one side lacks, or add it: a value, or an empty rank if "
        "not found",
    )


def _queries_beyond(result: Result, other: Result) -> list:
    """The queries of a result that the other one lacks, in one of its directions."""
    index = result.facts.index.difference(other.facts.index)
    return list(index.unique("query"))


def _check_scale(first: Result, second: Result) -> None:
    """Raise UserError where all values of one side lie within 1, and those of the other
    reach so far beyond that these may be per cent, and the first fractions. Zeros alone
    have no scale."""
    for result in (first, second):
        lists = result.table.abs().stack().groupby(level=["direction", "seed"])
        sizes = [size for _, size in lists]
        pairs = itertools.permutations(sizes, 2)
        if any(_is_other_scale(one, other) for one, other in pairs):
            raise UserError(
                result.name,
                expected="all seeds and directions on one scale",
                found=_range(result),
                do="write all of them in per cent, or add --scale 1",
            )
    sizes = first.table.abs().stack()
    other_sizes = second.table.abs().stack()
    if _is_other_scale(sizes, other_sizes):
        factors = "100,1"
    elif _is_other_scale(other_sizes, sizes):
        factors = "1,100"
    else:
        return
    advice = f"if one side is in per cent, add --scale {factors} (A times, B times); "
    if is_whole(first) or is_whole(second):
        advice += "if whole numbers are ranks, name the columns rank; "
    raise UserError(
        _names(first, second),
        expected="values on one scale",
        found=f"{_range(first)} in {first.name} and {_range(second)} in {second.name}",
        do=f"{advice}{AS_THEY_ARE}",
    )


def _is_other_scale(sizes: pd.Series, others: pd.Series) -> bool:
    """Whether the first may be fractions of 1, and the others are none. Where the first
    reach 1, others that are larger are on another scale; else only those beyond FAR."""
    largest = sizes.max()
    if not 0 < largest <= 1 + ROUNDING:
        return False
    reaches_1 = largest >= 1 - ROUNDING
    limit = 1 + ROUNDING if reaches_1 else FAR
    return bool(others.max() > limit)


def rank_correlation(first: Result, second: Result) -> float:
    """Spearman's correlation over queries, 0 where one side does not vary."""
    first_means = first.table.rank().mean(axis=1)
    second_means = second.table.rank().mean(axis=1)
    if 1 in (first_means.nunique(), second_means.nunique()):
        return 0.0
    return float(first_means.rank().corr(second_means.rank()))


def heap_at_end(result: Result) -> int | None:
    """The last rank of a table, if so many queries have it that it may stand for "not
    found". Nothing is doubted where the table says to which depth items were listed."""
    if result.kind != Kind.RANKS or result.depth:
        return None
    ranks = result.table.stack().to_numpy()
    if not np.isfinite(ranks).all():  # what was not found is marked
        return None
    return int(ranks.max()) if largest_may_mean_lost(ranks) else None

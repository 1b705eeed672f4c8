"""Two results against each other, or one against a printed number."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from benchmark.core.errors import UserError
from rematch.answers import Board, PrintedVerdict, Recalls, Verdict
from rematch.scoring import array_of

if TYPE_CHECKING:
    import pandas as pd

    from benchmark.commands.judged_results import BoardAndRow
    from benchmark.commands.result_files import Reading, Result

    Given = ArrayLike | pd.DataFrame | Recalls | str | PathLike[str]


def judge(
    a: "Given",
    b: "Given",
    claim: str = "A > B",
    *,
    clusters: ArrayLike | None = None,
    metric: str | None = None,
    margin: float | None = None,
    ranks: bool = False,
    layer: str = "own",
    first_rank: int | None = None,
    scale: float | None = None,
) -> Verdict:
    """Whether a claim on two results holds, query by query, for other queries and other
    trainings.

    Parameters
    ----------
    a, b : results on the same queries
        An array (Q,), or (Q, S) of S trainings: hits (0 and 1, or 0 and 100), any
        values, or ranks. Or a DataFrame with the columns query and value, or query and
        rank, and perhaps direction, cluster, seed (docs/statistics.md). Or what
        `recalls` and `score` give. Or what `rematch judge` takes: the path of such a
        table, FILE:PRESET, SEASON:PRESET; the last beside its like alone.
    claim : "A > B", "A = B" or "A not better than B", perhaps with "by METRIC"
    clusters : (Q,) of arrays: what is drawn anew, such as the image of a caption;
        default: each query is one
    metric : of ranks: "rsum", "t2i_r1", "r5"; default: rsum, or r1 of one direction
    margin : differences up to it count as none, in the metric's unit; default: a point
        per recall, 0 for values of another scale
    ranks : whether arrays are ranks of the best right item, from 0; -1 or NaN: not
        found
    layer : of relevance, of tables that have several
    first_rank : what the first place is called in tables of ranks, 0 or 1
    scale : what values are multiplied by; 1: they are right as they are

    Raises
    ------
    UserError (a ValueError) for results that cannot be read or compared, and for what
    is no claim.

    >>> hits = [1, 1, 0, 1] * 50
    >>> rematch.judge(hits, [0, 1, 0, 0] * 50).conclusion
    'holds'
    """
    from benchmark.commands import judge as command

    question = command.question_of_claim(claim, metric, margin)
    reading = _reading(first_rank, scale)
    sides = {"A": a, "B": b}
    given, others = _read(sides, clusters, question.metric, ranks, layer, reading)
    if len(given) < 2:
        raise UserError("judge", "two results", f"{a} twice", "name another one")
    (facts,) = command.judge_pairs([given], others, question)
    return Verdict(facts)


def judge_claims(path: str | PathLike[str]) -> list[Verdict | PrintedVerdict]:
    """Whether the claims of a file hold, in its order; p is adjusted over all of them
    that compare two results.

    Parameters
    ----------
    path : of a .yaml file with `results` and `claims` (docs/claims.md)

    Raises
    ------
    UserError (a ValueError) for a file that is none, and for results that cannot be
    read or compared.
    """
    from benchmark.commands.judge import judge_claims as facts_of_claims
    from benchmark.commands.written_claims import read_claims

    verdicts: list[Verdict | PrintedVerdict] = []
    for facts in facts_of_claims(read_claims(Path(path))):
        is_printed = "printed" in facts
        verdicts.append(PrintedVerdict(facts) if is_printed else Verdict(facts))
    return verdicts


def judge_printed(
    mine: "Given",
    number: str | float,
    *,
    clusters: ArrayLike | None = None,
    metric: str | None = None,
    margin: float | None = None,
    ranks: bool = False,
    layer: str = "own",
    first_rank: int | None = None,
    scale: float | None = None,
) -> PrintedVerdict:
    """Whether one result is compatible with a printed number, below or above it.

    Parameters
    ----------
    mine : as a of `judge`
    number : as it is printed, such as "77.80": a text keeps its zeros, which say how it
        was rounded
    margin : how far the interval of a compatible result may reach from the number
    clusters, metric, ranks, layer, first_rank, scale : as those of `judge`

    Raises
    ------
    UserError (a ValueError) for a result that cannot be read, and for what is no number
    of its scale.
    """
    from benchmark.commands import judge as command

    reading = _reading(first_rank, scale)
    sides = {"A": mine}
    (given,), others = _read(sides, clusters, metric, ranks, layer, reading)
    facts = command.compare_printed(given, str(number), others, metric, margin)
    return PrintedVerdict(facts)


def board(
    results: "Mapping[str, Given | Mapping[str, Given]]",
    *,
    clusters: ArrayLike | None = None,
    metric: str | None = None,
    ranks: bool = False,
    layer: str = "own",
    first_rank: int | None = None,
    scale: float | None = None,
) -> Board:
    """The levels of several results on the same queries, and the ranks that each could
    have for other queries and other trainings.

    Parameters
    ----------
    results : by name, each as a of `judge`, but for SEASON:PRESET; or by name and then by
        dataset: a level is then the mean over datasets, each with the same weight
    clusters, metric, ranks, layer, first_rank, scale : as those of `judge`

    Raises
    ------
    UserError (a ValueError) for results that cannot be read or compared, or that lack a
    dataset of others.

    >>> hits = {"ours": [1, 1, 0, 1] * 50, "theirs": [0, 1, 0, 0] * 50}
    >>> [row["name"] for row in rematch.board(hits)]
    ['ours', 'theirs']
    """
    from benchmark.commands import board as command

    if len(results) < 2:
        raise UserError("board", "two results or more", len(results), "name others")
    reading = _reading(first_rank, scale)
    given = {}
    in_memory: dict[str, dict[str, Given]] = {}  # by dataset, then by name
    for name, of_name in results.items():
        by_dataset = {command.WHOLE: of_name}
        if isinstance(of_name, Mapping) and not isinstance(of_name, Recalls):
            by_dataset = of_name
        if not by_dataset:
            raise UserError(name, "one dataset or more", "none", "give its results")
        for dataset, each in by_dataset.items():
            in_memory.setdefault(str(dataset), {})[name] = each
        given[name] = {
            str(dataset): _one(name, each, clusters, metric, ranks, layer, reading)
            for dataset, each in by_dataset.items()
        }
    for of_dataset in in_memory.values():
        _refuse_other_order(of_dataset, clusters)
    return Board(command.facts_of(command.board_of(given, metric)))


def _one(
    name: str,
    given: "Given",
    clusters: ArrayLike | None,
    metric: str | None,
    ranks: bool,
    layer: str,
    reading: "Reading",
) -> "Result":
    """One result under a name of its own."""
    from benchmark.commands.result_files import of_frame, read_table

    if isinstance(given, str | Path | PathLike):
        _refuse_clusters(name, given, clusters)
        table = read_table(str(given), layer, metric, reading)
        result = replace(table, name=name)
    else:
        frame = _frame(name, given, clusters, ranks)
        result = of_frame(name, frame, layer, metric, reading)
    _refuse_values(name, result, ranks)
    _warn_of_ranks(result)
    return result


def _reading(first_rank: int | None, scale: float | None) -> "Reading":
    """Raises UserError for what is no first rank, and no factor."""
    from benchmark.commands.result_files import Reading

    if first_rank not in (None, 0, 1):
        raise UserError("first_rank", "0 or 1", first_rank, "correct it")
    if scale is not None and not 0 < scale < np.inf:
        raise UserError("scale", "a number above 0", scale, "correct it")
    return Reading(first_rank=first_rank, scale=scale)


def _read(
    sides: dict[str, "Given"],
    clusters: ArrayLike | None,
    metric: str | None,
    ranks: bool,
    layer: str,
    reading: "Reading",
) -> tuple[list["Result | BoardAndRow"], list["Result"]]:
    """What the sides are, and the other presets of their files."""
    from benchmark.commands import judge as command
    from benchmark.commands.result_files import of_frame

    source = command.Source(metric=metric, layer=layer)
    _refuse_other_order(sides, clusters)
    names = {}
    for side, given in sides.items():
        if isinstance(given, str | Path | PathLike):
            _refuse_clusters(side, given, clusters)
            names[side] = str(given)
    readings = dict.fromkeys(names.values(), reading)
    known, others = command.read_each(readings, source) if names else ({}, [])
    for side, given in sides.items():
        if side not in names:
            frame = _frame(side, given, clusters, ranks)
            known[side] = of_frame(side, frame, layer, metric, reading)
        result = known[names.get(side, side)]
        _refuse_values(side, result, ranks)
        _warn_of_ranks(result)
    command.refuse_mixed(known.values())
    wanted = dict.fromkeys(names.get(side, side) for side in sides)
    return [known[name] for name in wanted], others


def _frame(
    side: str, given: "Given", clusters: ArrayLike | None, ranks: bool
) -> "pd.DataFrame":
    """An array as a table; a table as it is."""
    import pandas as pd

    if isinstance(given, Recalls | pd.DataFrame):
        _refuse_clusters(side, given, clusters)
        return given.ranks if isinstance(given, Recalls) else given
    expected = "numbers (queries,) or (queries, seeds)"
    values = array_of(given, side, expected)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.dtype.kind not in "biuf" or not values.size:
        found = f"{values.dtype} of shape {values.shape}"
        raise UserError(side, expected, found, "give an array of them")
    values = values.astype(float)
    count, seeds = values.shape
    columns: dict[str, Sequence] = {
        "query": np.tile(np.arange(count), seeds),
        "seed": np.repeat(np.arange(seeds), count),
        "rank" if ranks else "value": values.T.ravel(),
    }
    if clusters is not None:
        expected = f"one for each of {count} queries"
        of_query = array_of(clusters, "clusters", expected)
        if of_query.shape != (count,):
            found = f"shape {of_query.shape}"
            raise UserError("clusters", expected, found, "give so many")
        columns["cluster"] = np.tile(of_query, seeds)
    return pd.DataFrame(columns)


def _refuse_clusters(side: str, given: "Given", clusters: ArrayLike | None) -> None:
    """Raise UserError for clusters beside a table, which has them in a column."""
    if clusters is not None:
        found = f"{side} as a {type(given).__name__}"
        advice = "leave them out; a table has them in a column cluster"
        raise UserError("clusters", "arrays", found, advice)


def _refuse_values(side: str, result: "Result | BoardAndRow", ranks: bool) -> None:
    """Raise UserError for `ranks` beside a table of values."""
    from benchmark.commands.result_files import Kind, Result

    if ranks and isinstance(result, Result) and result.kind != Kind.RANKS:
        expected = "arrays, or a table with the column rank"
        found = f"{side} with the column value"
        raise UserError("ranks", expected, found, "name the column rank")


def _refuse_other_order(
    given: Mapping[str, "Given"], clusters: ArrayLike | None
) -> None:
    """Raise UserError for Series whose indexes differ: their values are compared place
    by place."""
    import pandas as pd

    series = []  # a result may be called clusters, too
    for name, each in [*given.items(), ("clusters", clusters)]:
        if isinstance(each, pd.Series):
            series.append((name, each))
    for (first, one), (second, other) in pairwise(series):
        if not one.index.equals(other.index):
            expected = "Series with the same index, in one order"
            advice = "reindex one as the other, or give both as arrays"
            raise UserError(f"{first}, {second}", expected, "another index", advice)


def _warn_of_ranks(result: "Result | BoardAndRow") -> None:
    """Warn of values that may be ranks, of which the smaller ones are better."""
    from benchmark.commands.conventions import is_whole
    from benchmark.commands.result_files import Kind, Result

    if not isinstance(result, Result) or result.kind != Kind.VALUES:
        return
    if is_whole(result) and not result.is_scaled:
        what = f"{result.name}: whole numbers, of which greater ones count as better"
        advice = "pass ranks=True if they are ranks, or name the column rank"
        warnings.warn(f"{what}; {advice}", stacklevel=4)

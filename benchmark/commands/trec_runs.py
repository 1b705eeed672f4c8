"""Read TREC runs, and the relevance judgements (qrels) that they are scored with.

A run is refused if its scores contradict its ranks, or if its queries or items are not
those of the judgements.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.commands.result_files import (
    CORRECT,
    ENOUGH,
    RANK,
    Order,
    Reading,
    Result,
    refuse_repeated,
    respelled,
    result_of,
    spelled_alike,
    stem,
)
from benchmark.core.errors import UserError
from benchmark.core.files import content, is_file, readable
from benchmark.features import embedding_files
from benchmark.features.embedding_files import MOST_TEXT
from benchmark.readers.judged_corpora import ROLES, cells_of, role_of
from benchmark.scoring.ties import stands_before

UNANSWERED = 0.05  # largest share of unanswered queries without --count-unanswered
BEHIND = 0.7  # mean place of relevant items in a list, 1 = last; random order has 0.5
FEW_ITEMS = 0.02  # share of judged items below which a run seems to be of other items
RESPELLED = 0.05  # largest share of relevant items that may be spelled otherwise

RUN = "query Q0 item rank score tag"
QRELS = "lines of query 0 item score, or a table with query-id, corpus-id and score"


@dataclass(frozen=True, eq=False)
class Qrels:
    """Which items are relevant to which queries."""

    path: Path
    pairs: pd.DataFrame  # query, item, is_relevant
    queries: pd.Index  # those with a relevant item
    notes: list[str]


@cache
def read_qrels(path: Path) -> Qrels:
    """Judgements in the format of TREC or BEIR; columns of a table with a header are
    found by name. A score above 0 means relevant. Raises UserError for anything
    else."""
    with readable(path, QRELS, "correct the path, or the file"):
        pairs, others = _judgements(path)
        pairs = pairs.assign(score=_numbers(pairs, "score"))
    pairs["is_relevant"] = pairs.pop("score") > 0
    has_relevant = pairs.groupby("query")["is_relevant"].any()
    notes = []
    if others:
        notes.append(f"{path}: not used: the columns {', '.join(others)}")
    if idle := int((~has_relevant).sum()):
        notes.append(f"{path}: not used: {idle} queries with no relevant item")
    if not has_relevant.any():
        raise UserError(
            path,
            expected="relevant items, with a score above 0",
            found="none",
            do=CORRECT,
        )
    return Qrels(path, pairs, has_relevant.index[has_relevant], notes)


def _judgements(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """Query, item and score as text, and the columns that have no meaning here."""
    if path.suffix.lower() in (".csv", ".jsonl", ".parquet"):
        table = embedding_files.table_of(path).astype(object)
        return _by_name(path, table.map(embedding_files.text_of))
    lines = content(path, MOST_TEXT).decode("utf-8-sig").splitlines()
    rows = [row for row in map(cells_of, lines) if row]
    first = rows[0] if rows else []
    if first and not np.isfinite(pd.to_numeric(first[-1], errors="coerce")):
        return _by_name(path, embedding_files.framed(first, rows[1:]))
    columns = [*ROLES]
    if len(first) == 4:
        columns = ["query", "0", "item", "score"]
    return embedding_files.framed(columns, rows)[[*ROLES]], []


def _by_name(path: Path, table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The columns of a table of judgements, and the names of further ones."""
    columns = {}
    for role in ROLES:
        named = [column for column in table if role_of(column) == role]
        if len(named) != 1:
            raise UserError(
                path,
                expected="the columns query-id, corpus-id and score, each once",
                found=", ".join(table),
                do="name them so",
            )
        columns[named[0]] = role
    others = [column for column in table if role_of(column) is None and column != "0"]
    return table[list(columns)].rename(columns=columns), others


def _numbers(table: pd.DataFrame, column: str) -> pd.Series:
    """The finite numbers of a column. Raises ValueError for others, and for an item
    that a query has twice."""
    number = pd.to_numeric(table[column], errors="coerce")
    is_wrong = ~np.isfinite(number) | table.duplicated(["query", "item"])
    if is_wrong.any():
        line = " ".join(table[is_wrong].iloc[0])
        raise ValueError(f"{line!r}: no finite number, or the item a second time")
    return number


def read_run(path: Path) -> pd.DataFrame:
    """Query, item, rank as text, and score of each line of a TREC run."""
    advice = "correct the path, or convert the file"
    with readable(path, f"lines of {RUN}", advice):
        lines = content(path, MOST_TEXT).decode("utf-8-sig").split("\n")
        table = embedding_files.framed(RUN.split(), map(str.split, lines))
        table["score"] = _numbers(table, "score")
    if not len(table):
        raise UserError(
            path,
            expected=f"lines of {RUN}",
            found="none",
            do=advice,
        )
    return table[["query", "item", "rank", "score"]]


def read_runs(name: str, qrels: Qrels, reading: Reading) -> Result:
    """The result of TREC runs, one for each seed from 0, by names with commas between.

    Among equal scores, items that are not relevant come first. Raises UserError for a
    run of other queries or items, and for one whose scores contradict its ranks.
    """
    reading.refuse_all_but(name, "order", "count_unanswered")
    files = [name] if is_file(name) else name.split(",")  # its name may have commas
    refuse_repeated(name, files)
    tables = []
    depths = []
    notes = list(qrels.notes)
    items = set()
    lists_all = True
    for seed, file in enumerate(files):
        path = Path(file)
        run = read_run(path)
        notes += check_queries(path, run, qrels, reading)
        run = run[run["query"].isin(qrels.queries)]
        check_items(path, run, qrels)
        height = heights(path, run, reading.order)
        run = run.assign(height=height).merge(qrels.pairs, "left", ["query", "item"])
        run["is_relevant"] = run["is_relevant"].eq(True)
        places = places_of(run)
        if reading.order is None:
            with_others = places[places["other"] > 0]
            better = with_others["above"] + with_others["level"] / 2
            behind = better / with_others["other"]
            if len(behind) >= ENOUGH and behind.mean() > BEHIND:
                share = f"{behind.mean():.0%} of the others"
                raise UserError(
                    f"{path}: score",
                    expected="relevant items before others",
                    found=f"behind {share}, over {len(behind)} queries",
                    do="negate the scores if these are distances, or add --order scores",
                )
        if tied := int((places["level"] > 0).sum()):
            ties = "other items tied with the relevant one; they count as better"
            notes.append(f"{path}: {tied} queries have {ties}")
        ranks = places["before"].astype(str)
        ranks = ranks.reindex(qrels.queries, fill_value="")
        rows = {"query": qrels.queries, RANK: ranks.array, "seed": str(seed)}
        tables.append(pd.DataFrame(rows))
        lengths = run["query"].value_counts()
        depths.append(int(lengths.max()))
        items |= set(run["item"])
        lists_all &= bool((lengths == run["item"].nunique()).all())
    rows = pd.concat(tables, ignore_index=True)
    from_0 = replace(reading, first_rank=0)
    result = result_of(name, rows, True, notes, from_0, min(depths))
    return replace(result, items=frozenset(items), lists_all=lists_all)


def check_queries(
    path: Path,
    run: pd.DataFrame,
    qrels: Qrels,
    reading: Reading,
) -> list[str]:
    """Notes on the queries of a run. Raises UserError if they are not those of the
    qrels, are spelled otherwise, or are only a part of them."""
    count = len(qrels.queries)
    answered = set(run["query"])
    unanswered = [query for query in qrels.queries if query not in answered]
    unjudged = answered - set(qrels.pairs["query"])
    has_none = len(unanswered) == count
    form = stem if has_none else spelled_alike
    pairs = respelled(unjudged, unanswered, form)
    if pairs:
        raise UserError(
            path,
            expected=f"the queries of {qrels.path}",
            found=f"{pairs[0][0]!r} for {pairs[0][1]!r} ({len(pairs)} such)",
            do="name them alike",
        )
    if has_none:
        raise UserError(
            path,
            expected=f"the queries of {qrels.path}",
            found=f"others, such as {min(answered)!r} for {unanswered[0]!r}",
            do="name the qrels that belong to the run",
        )
    if len(unanswered) > UNANSWERED * count and not reading.count_unanswered:
        evidence = f"none to {len(unanswered)}, such as {unanswered[0]!r}"
        advice = "leave these out of the qrels, or add --count-unanswered to count "
        advice += "them as not found"
        raise UserError(
            path,
            expected=f"answers to the {count} queries of {qrels.path}",
            found=evidence,
            do=advice,
        )
    notes = []
    if unanswered:
        notes.append(
            f"{path}: no answer to {len(unanswered)} queries, as {unanswered[0]!r}"
        )
    if unjudged:
        notes.append(f"{path}: not used: {len(unjudged)} queries without judgements")
    return notes


def check_items(path: Path, run: pd.DataFrame, qrels: Qrels) -> None:
    """Raise UserError for a run that has none or hardly any of the judged items, or has
    them in another spelling."""
    judged = set(qrels.pairs["item"])
    listed = set(run["item"])
    shared = judged & listed
    relevant = set(qrels.pairs["item"][qrels.pairs["is_relevant"]])
    has_few = len(shared) < FEW_ITEMS * min(len(judged), len(listed))
    form = stem if has_few else spelled_alike
    pairs = respelled(listed - shared, relevant - shared, form)
    where = f"{path}: items"
    if len(pairs) > RESPELLED * len(relevant):
        raise UserError(
            where,
            expected=f"the ids of {qrels.path}",
            found=f"{pairs[0][0]!r} for {pairs[0][1]!r} ({len(pairs)} such)",
            do="name them alike",
        )
    if has_few:
        evidence = f"{len(shared)} of them among {len(listed)}, such as {min(listed)!r}"
        expected = f"some of the {len(judged)} items of {qrels.path}, "
        expected += f"such as {min(judged)!r}"
        raise UserError(
            where,
            expected=expected,
            found=evidence,
            do="name the qrels and items of the run",
        )


def heights(path: Path, run: pd.DataFrame, order: Order | None) -> pd.Series:
    """What orders the items of a query, the greatest first: the scores, or the ranks
    turned round. Raises UserError where these contradict each other and no option says
    which count."""
    rank = pd.to_numeric(run["rank"], errors="coerce")
    if order is Order.RANKS:
        is_twice = run.assign(rank=rank).duplicated(["query", "rank"])
        is_wrong = ~np.isfinite(rank) | is_twice
        if is_wrong.any():
            wrong = run[is_wrong].iloc[0]
            raise UserError(
                f"{path}: rank of {wrong['item']!r} for query {wrong['query']!r}",
                expected="a number that no other item of the query has, for --order ranks",
                found=repr(wrong["rank"]),
                do="add --order scores",
            )
        return -rank
    if order is None:
        _check_order(path, run.assign(rank=rank).dropna(subset="rank"))
    return run["score"]


def _check_order(path: Path, run: pd.DataFrame) -> None:
    """Raise UserError where an item has a better rank and a lower score than another
    of its query, and where most queries have one score at several ranks."""
    levels = run.groupby(["query", "rank"])["score"].agg(["min", "max"])
    lowest_before = levels.groupby("query")["min"].cummin().groupby("query").shift()
    is_rising = levels["max"] > lowest_before
    of_query = levels.groupby("query")
    has_several = of_query.size() > 1
    highest = of_query["max"].max()
    is_constant = has_several & (highest == of_query["min"].min())
    queries = len(has_several)
    if is_rising.any():
        query, rank = is_rising.idxmax()
        count = is_rising.groupby("query").any().sum()
        low = lowest_before[query, rank]
        high = levels["max"][query, rank]
        evidence = f"{high:g} at rank {rank:g}, {low:g} at a better rank "
        evidence += f"({count} of {queries} queries)"
        raise UserError(
            f"{path}: query {query!r}",
            expected="scores that fall from rank to rank",
            found=evidence,
            do="add --order ranks if these are distances, or --order scores",
        )
    count = is_constant.sum()
    if count > has_several.sum() / 2:
        query = is_constant.idxmax()
        score = highest[query]
        raise UserError(
            f"{path}: query {query!r}",
            expected="scores that differ",
            found=f"{score:g} at all ranks ({count} of {queries} queries)",
            do="add --order ranks, or --order scores, which makes all of them ties",
        )


def places_of(run: pd.DataFrame) -> pd.DataFrame:
    """Where the best relevant item of each query stands: how many `other` items are
    listed, how many of them stand `before` it, `above` it and on its `level`. Without
    the queries whose relevant items are not listed."""
    query = run["query"]
    height = run["height"]
    is_relevant = run["is_relevant"]
    is_other = ~is_relevant
    best_of_query = height[is_relevant].groupby(query).max()
    best = query.map(best_of_query)
    sides = {
        "before": is_other & stands_before(height, best),
        "above": is_other & (height > best),
        "level": is_other & (height == best),
        "other": is_other,
    }
    counts = pd.DataFrame(sides).groupby(query).sum()
    return counts.loc[query[is_relevant].unique()]

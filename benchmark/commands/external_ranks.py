"""Score ranks of the best relevant items that were computed elsewhere, from a table or
from lists of retrieved items."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.commands.external_scores import (
    AS_IT_IS,
    QUERIES,
    External,
    Given,
    ReadingOptions,
    names_of,
)
from benchmark.core.errors import UserError
from benchmark.core.files import readable
from benchmark.data.prepared_tables import Prepared
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import Ranks, Scores
from benchmark.features import embedding_files
from benchmark.features.embedding_files import TABLES
from benchmark.scoring.evaluation import Evaluation
from benchmark.scoring.metrics import (
    RECALLED_K,
    retrieval_metrics,
    rsum_terms,
)
from benchmark.scoring.rank_conventions import (
    largest_may_mean_lost,
    list_without_first,
    zero_may_mean_lost,
)

HEADS = ["direction", "query", "rank"]
ID_OF = {"i2t": "image_id", "t2i": "caption_id"}  # what the ids of queries are
NO_VALUE, ALL_ITEMS = "none", "items"  # of --not-found: no value; the gallery's size


@dataclass(frozen=True, eq=False)
class BestOfLists:
    """The best relevant items of the queries of one direction, as far as lists go."""

    queries: Sequence[str]
    items: int  # size of the gallery
    ranks: np.ndarray  # (Q,) of the best relevant item; not used where it is lost
    is_lost: np.ndarray  # (Q,) bool, whether it was not found
    depth: int  # all ranks below it are known

    @property
    def known(self) -> np.ndarray:
        """The ranks of what was found."""
        return self.ranks[~self.is_lost]


def of_ranks(
    path: Path, data: Prepared, reading: ReadingOptions = AS_IT_IS
) -> External:
    """Score a table of the ranks of the best relevant items.

    If some items were not found, metrics that depend on their ranks are left out.
    Without options, ranks count from 0. Raises UserError if they may count from 1, or
    if the queries are not the test queries.
    """
    table = _rank_table(path)
    ways = data.card["ways"]
    notes = []
    if others := sorted(set(table) - set(HEADS)):
        notes.append(f"{path}: not used: the columns {', '.join(others)}")
    for way, count in table["direction"].value_counts().items():
        if way not in QUERIES:
            rows = f"{way!r} in {count} rows"
            raise UserError(f"{path}: direction", "i2t or t2i", rows, "name them so")
        if way not in ways:
            unused = f"{count} ranks {way}, which this dataset does not ask"
            notes.append(f"{path}: not used: {unused}")
    names = names_of(data)
    items = {"i2t": len(names["captions"][0]), "t2i": len(names["images"][0])}
    lists = {}
    for way in ways:
        where = f"{path}: {way}"
        rows = table[table["direction"] == way]
        query_names = names[QUERIES[way]]
        queries, given = query_names[0], rows["query"]
        places = embedding_files.rows_of_items(given.tolist(), ID_OF[way], query_names)
        is_missing = places < 0
        if is_missing.any() or len(rows) != len(queries):
            actual = f"{len(rows)} rows"
            if is_missing.any():
                actual += f", none for {queries[is_missing.argmax()]!r}"
            is_twice = given.duplicated()
            if is_twice.any():
                actual += f", {given[is_twice].iloc[0]!r} twice"
            expected = f"one row for each of the {len(queries)} test queries"
            raise UserError(where, expected, actual, reading.order)
        texts = rows["rank"].iloc[places]
        lists[way] = _best_of(where, texts, queries, items[way], reading)
    _refuse_other_conventions(path, lists, reading)
    if reading.first_rank is None:
        notes.append(f"{path}: ranks are read from 0, the best item first")
    depths = dict.fromkeys(lists, reading.depth) if reading.depth else {}
    return of_lists(Given.RANKS, path, lists, notes, depths)


def _rank_table(path: Path) -> pd.DataFrame:
    """The direction, query and rank of each row, as text, beside other columns."""
    if path.suffix.lower() not in TABLES:
        advice = "of a TREC run take the rank of each query's best relevant item"
        expected, ending = f"ranks as {', '.join(TABLES)}", path.suffix or "no ending"
        raise UserError(path, expected, ending, advice)
    with readable(path, "a table of ranks", "save it again, or correct the path"):
        table = embedding_files.table_of(path)
        if not set(HEADS) <= set(table) or not table.columns.is_unique:
            expected = f"the columns {', '.join(HEADS)}"
            raise UserError(path, expected, ", ".join(table.columns), "name them so")
        texts = table[HEADS].astype(object).map(embedding_files.text_of)
        return table.assign(**texts)


def _best_of(
    where: str,
    texts: pd.Series,
    queries: Sequence[str],
    items: int,
    reading: ReadingOptions,
) -> BestOfLists:
    """Ranks from 0, and which items were not found. Raises UserError for values that
    are no ranks of a gallery of so many items, and if nothing was found at all."""
    first_rank = reading.first_rank or 0
    lost_value = reading.not_found
    if lost_value == ALL_ITEMS:
        lost_value = str(items + first_rank)
    ranks = embedding_files.ranks_of(texts, first_rank, lost_value).to_numpy()
    is_lost = np.isinf(ranks)
    is_wrong = ~(is_lost | (ranks < items))
    if is_wrong.any() or is_lost.all():
        expected = f"whole ranks from {first_rank} below {items + first_rank}"
        advice = "correct them, or leave empty what was not found"
        if not is_wrong.any():
            raise UserError(where, expected, "none", advice)
        wrong, options = texts[is_wrong], []
        value = wrong.iloc[0]
        if not first_rank and value == str(items):
            options.append("--first-rank 1 if these are positions from 1")
        if wrong.nunique() == 1:
            option = _not_found_option(value, first_rank, items)
            options.append(f"{option} if it means that")
        if options:
            advice = f"add {', or '.join(options)}; or {advice}"
        query = queries[is_wrong.argmax()]
        actual = f"{value} for {query!r} ({len(wrong)} such)"
        raise UserError(where, expected, actual, advice)
    last = np.where(is_lost, -1, ranks).argmax()
    depth = int(ranks[last]) + 1
    if 0 < reading.depth < depth:
        found = f"rank {texts.iloc[last]} for {queries[last]!r}"
        expected = f"ranks in lists of {reading.depth} items, as --depth says"
        raise UserError(where, expected, found, f"say --depth {depth} or more")
    depth = max(depth, reading.depth)
    return BestOfLists(queries, items, ranks, is_lost, depth)


def _not_found_option(value: str, first_rank: int, items: int) -> str:
    """The option by which this value stands for what was not found."""
    if value == str(items + first_rank):
        return f"--not-found {ALL_ITEMS} (their number)"
    if not first_rank and value == str(items + 1):
        return f"--not-found {ALL_ITEMS} --first-rank 1"
    join = "=" if value.startswith("-") else " "
    return f"--not-found{join}{shlex.quote(value)}"


def _refuse_other_conventions(
    path: Path, lists: Mapping[str, BestOfLists], reading: ReadingOptions
) -> None:
    """Raise UserError for ranks that may be positions from 1, and for a number that may
    mean "not found", unless the options say."""
    known = {way: of_way.known for way, of_way in lists.items()}
    is_open = reading.first_rank is None
    # every test query is there, so a single 1 without a 0 is enough
    if is_open and list_without_first(list(known.values()), ones=1) is not None:
        expected = "rank 0 for some query, whose best item is first"
        advice = "add --first-rank 1 if these are positions from 1, or --first-rank 0"
        raise UserError(path, expected, "none", advice)
    marks_lost = any(of_way.is_lost.any() for of_way in lists.values())
    if reading.not_found is not None or marks_lost:
        return
    for way, ranks in known.items():
        if largest_may_mean_lost(ranks):
            largest = int(ranks.max())
            value = largest + (reading.first_rank or 0)
            count = int((ranks == largest).sum())
            actual = f"{value} in {count} of {len(ranks)} rows"
            advice = f"add --not-found {value} if it means that, else --not-found "
            advice += NO_VALUE
            raise UserError(f"{path}: {way}", "ranks that fall off", actual, advice)
    sizes = {way: of_way.items for way, of_way in lists.items()}
    if is_open and zero_may_mean_lost(known, sizes):
        largest = int(max(ranks.max() for ranks in known.values()))
        other = "positions from 1 with 0 for what was not found"
        advice = "add --first-rank 1 --not-found 0 if so, or --first-rank 0 if 0 is "
        advice += "the best rank"
        actual = f"0 to {largest}, which may be {other}"
        raise UserError(path, "ranks from 0", actual, advice)


def of_lists(
    given: Given,
    path: Path,
    lists: Mapping[str, BestOfLists],
    notes: list[str],
    depths: Mapping[str, int],
) -> External:
    """Score the best relevant items of lists. If some items of a direction were not
    found, metrics that depend on their ranks are left out."""
    ranks, unknown = {}, set()
    for way, of_way in lists.items():
        best = np.where(of_way.is_lost, of_way.items - 1, of_way.ranks)
        ranks[way] = Ranks.of_best(best)
        lost = int(of_way.is_lost.sum())
        if not lost:
            continue
        unknown |= {f"{way}_r{k}" for k in RECALLED_K if k > of_way.depth}
        unknown.add(f"{way}_meanr")
        # of an even number of queries the median is the mean of the two in the middle
        if 2 * lost >= len(of_way.is_lost):
            unknown.add(f"{way}_medr")
        query = of_way.queries[of_way.is_lost.argmax()]
        few = f"{lost} of {len(of_way.queries)} not found, as {query!r}"
        note = f"{way}: {few}; ranks are known below {of_way.depth}"
        if given == Given.RANKS:
            note += " (--depth, if more were listed)"
        notes.append(note)
    metrics = retrieval_metrics(ranks)
    terms = rsum_terms(ranks)
    if not unknown.isdisjoint(terms):
        unknown.add("rsum")
        bounds = [f"{name} {metrics[name]:.2f}" for name in terms if name in unknown]
        notes.append(f"at least: {', '.join(bounds)}")
    known = {name: value for name, value in metrics.items() if name not in unknown}
    scores = Scores(ranks={RankKey(way): of_way for way, of_way in ranks.items()})
    return External(
        given=given,
        files=[path],
        result=Evaluation(metrics=known, scores=scores),
        notes=notes,
        lost={way: of_way.is_lost for way, of_way in lists.items()},
        depths=depths,
    )

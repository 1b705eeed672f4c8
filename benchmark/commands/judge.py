"""Judge a claim on any two results, query by query: verdict, margin, interval and p.

rematch judge a.csv b.csv --claim "A > B"
rematch judge a.parquet b.parquet --claim "A not better than B by rsum" --margin 3
rematch judge a.run b0.run,b1.run,b2.run --qrels FILE --metric r10
rematch judge flickr8k:scan_t2i_avg flickr8k:vse_official --pair flickr8k:vse flickr8k:cca

A result is a table, .csv, .tsv, .parquet or .jsonl, with the columns query and value (hits, 0 and 1
or 0 and 100, or any number), or query and rank (of the best relevant item, from 0; empty or -1: not
found). It may have direction (i2t, t2i, ...), cluster (what is drawn anew, such as the image of a
caption; default: the query), seed (default: 0), layer, dataset and gallery. With --qrels it is a
TREC run. Either is one file, or one per seed with commas between; FILE:PRESET is a row of a table
that `export --queries` wrote, whose other rows tell how far trainings lie apart. Else it is
SEASON:PRESET, with all its seeds.

Claims are "A > B", the default, "A = B", and "A not better than B", and may end with "by METRIC";
where less is better, claim "B > A".
Every further --pair is asked the same, and p is adjusted for all of them by Holm.
"""

import argparse
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.boards import comparisons as of_boards
from benchmark.boards import flags
from benchmark.boards.boards import MIN_TEST_QUERIES, RANKED_BY, Board, read_boards
from benchmark.boards.boards import Row as BoardRow
from benchmark.boards.claims import DIGITS, margin_of
from benchmark.core.command_line import add_season
from benchmark.core.errors import UserError, entry, printable, short, suggested
from benchmark.core.files import content, is_file, readable, write_json, write_text
from benchmark.data.results import DIRECTIONS, Ranks
from benchmark.features import embedding_files
from benchmark.features.embedding_files import MOST, NOWHERE, TABLES
from benchmark.papers.printed_tables import Part, quantity, sides
from benchmark.report.markdown import escaped
from benchmark.report.pages.claim_tables import SIGNS, limited
from benchmark.scoring.corrections import GRIDS
from benchmark.scoring.metrics import (
    FOLDED,
    METRICS,
    SUMMED_DIRECTIONS,
    SUMMED_K,
    Metric,
    query_terms,
)
from benchmark.season.parameter_files import read_params
from benchmark.season.plugins import presets
from benchmark.stats import comparisons, verdicts
from benchmark.stats.comparisons import Comparison, Sample
from benchmark.stats.verdicts import Flag, Pair, Rule

OWN, ONE_WAY = "own", "i2t"  # the layer and the direction of results that name none
SAME = {"layer": OWN, "dataset": "", "gallery": ""}  # columns in which two results must agree
COLUMNS = ("query", "value", "rank", "direction", "cluster", "seed", "season", "preset")
COLUMNS += ("depth", *SAME)
KINDS = {">": "ordered", "=": "alike", "not better than": "not_better"}
CLAIM = re.compile(r"\s*([AB])\s*(>|=|not better than)\s*([AB])(?:\s+by\s+(\S.*?))?\s*")
DECLARED = {name.removeprefix(f"{of.direction}_") for name, of in METRICS.items() if of.direction}
VALUE, R1 = "value", "r1"  # what is judged of values, and of ranks in one direction
ENOUGH = 20  # clusters of equal size: intervals of fewer cover less than 94%
KEY = ["direction", "query"]
LONGEST = 600  # letters of a note
DO = "correct the file"
Row = tuple[Board, BoardRow]  # of a preset
table_of = cache(embedding_files.table_of)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """What is known of each query. Q = queries, S = seeds."""

    name: str  # as it was given
    kind: str  # hits, in percent; values; or ranks of the best item, from 0, infinite: not found
    table: pd.DataFrame  # (Q, S) by direction and query
    facts: pd.DataFrame  # of each query: cluster, and the columns of SAME
    depth: int  # ranks below it are known, where something was not found
    notes: list[str]  # what was left out or taken for granted


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A", help="a table, a TREC run, or SEASON:PRESET")
    parser.add_argument("second", metavar="B")
    parser.add_argument("--pair", nargs=2, action="append", default=[], metavar=("C", "D"))
    parser.add_argument("--claim", default="A > B", help="such as 'A not better than B by rsum'")
    parser.add_argument("--metric", help="default: rsum, r1 of one direction, or value")
    parser.add_argument("--margin", type=float, metavar="X", help="the largest difference of none")
    parser.add_argument("--layer", default=OWN, help="of relevance")
    parser.add_argument("--qrels", type=Path, metavar="FILE", help="the results are TREC runs")
    parser.add_argument("--dataset", help="of presets; default: the only one that has them")
    parser.add_argument("--out", type=Path, action="append", default=[], help="a .md or .json file")
    add_season(parser)


def main(arguments: argparse.Namespace) -> None:
    for path in arguments.out:
        if path.suffix not in (".md", ".json"):
            raise UserError("--out", "a .md or .json file", path.name, "name it so")
    if arguments.margin is not None and not 0 <= arguments.margin < math.inf:
        raise UserError("--margin", "a number from 0", arguments.margin, "correct it")
    asked = [[arguments.first, arguments.second], *arguments.pair]
    if twice := [first for first, second in asked if first == second]:
        raise UserError("judge", "two results", f"{twice[0]} twice", "name another one")
    if read_claim(arguments):
        asked = [names[::-1] for names in asked]
    table_of.cache_clear()  # files may have changed
    given = {name: read(name, arguments) for name in dict.fromkeys(sum(asked, []))}
    kinds, others = {type(of) for of in given.values()}, [read(x, arguments) for x in beside(given)]
    of_presets = {"--season": arguments.season, "--dataset": arguments.dataset}
    unused = [name for name, of in of_presets.items() if of and Result in kinds]
    if len(kinds) > 1 or unused:
        found = unused[0] if unused else "one of each"
        raise UserError("judge", "files, or presets, and options of these", found, "choose")
    everything = [*given.values(), *others]
    put = [
        of_files(*both, everything, arguments) if Result in kinds else of_season(*both, arguments)
        for both in ([given[name] for name in names] for names in asked)
    ]
    found = told(put)
    for path in arguments.out:
        if path.suffix == ".json":
            write_json(path, found)
            continue
        texts = [[*map(escaped, lines(of))] for of in found]
        pages = ["\n- ".join([f"## {head}\n", *of]) for head, *of in texts]
        write_text(path, "\n\n".join(pages) + "\n")
    print("\n\n".join(map(shown, found)))


def read_claim(arguments: argparse.Namespace) -> bool:
    """Whether the claim names B first; its kind and metric become arguments. Raises UserError for
    what is no claim on A and B."""
    match = CLAIM.fullmatch(arguments.claim)
    first, sign, second, by = match.groups() if match else [None] * 4
    if first == second:  # or no claim at all
        do = f"say one of {', '.join(KINDS)}"
        raise UserError("--claim", "a claim on A and B", short(arguments.claim), do)
    if by and arguments.metric not in (None, by):
        raise UserError("--metric", f"{by}, as the claim says", arguments.metric, "name one")
    arguments.kind, arguments.metric = KINDS[sign], by or arguments.metric
    return first == "B"


# Reading ------------------------------------------------------------------------------------------


def read(name: str, arguments: argparse.Namespace) -> Result | Row:
    """What a name stands for. Raises UserError for what cannot be judged."""
    if arguments.qrels and arguments.layer == OWN:
        return read_runs(name, arguments.qrels)
    if arguments.qrels:
        raise UserError("--layer", "a table that has it", "--qrels, which are one", "choose")
    if Path(name).suffix.lower() in TABLES or parts_of(name)[1]:
        return read_table(name, arguments.layer, arguments.metric)
    if is_file(name):
        do = f"name it {', '.join(TABLES)} as what it is, or add --qrels to a TREC run"
        raise UserError(name, "a table, a TREC run or a preset", "a file of another ending", do)
    season, _, preset = name.rpartition(":")
    boards = {of.dataset: of for of in boards_of(season or arguments.season, arguments.layer)}
    if not boards:
        do = "choose another with --layer"
        raise UserError(f"{name}: layer", f"judgements as {arguments.layer}", "none", do)
    if arguments.dataset:
        boards = {arguments.dataset: entry(boards, arguments.dataset, "dataset")}
    rows = [(board, row) for board in boards.values() for row in board.rows if row.played]
    entry({row.preset: row for _, row in rows}, preset, "preset")
    first, *others = [(board, row) for board, row in rows if row.preset == preset]
    if others:
        raise UserError("--dataset", "one dataset", f"{preset} on {len(others) + 1}", "name it")
    return first


def parts_of(name: str) -> tuple[list[str], str]:
    """The files of a name, one or one per seed, and the preset that FILE:PRESET names, or ""."""
    file, _, preset = name.rpartition(":")
    if Path(file).suffix.lower() not in TABLES:
        file, preset = name, ""
    return [file] if is_file(file) else file.split(","), preset


def is_trained(name: str) -> bool:
    """Whether a result has trainings of its own, as far as its preset tells."""
    preset = parts_of(name)[1]
    if preset.endswith(tuple(f"_{how}" for how in GRIDS)):  # a season's correction
        return False
    _, declared = presets().get(preset, (None, None))
    return declared is None or not declared.fuse and declared.options.get("trains", True) is True


def beside(names: Iterable[str]) -> list[str]:
    """The other presets of files that `export --queries` wrote, which tell how far trainings lie
    apart: those with trainings of their own."""
    files = dict.fromkeys(name.rpartition(":")[0] for name in names if parts_of(name)[1])
    first = {file: table_of(Path(parts_of(file)[0][0])) for file in files}
    every = [f"{file}:{preset}" for file, of in first.items() for preset in of["preset"].unique()]
    return [name for name in every if name not in names and is_trained(name)]


@cache
def boards_of(season: str | None, layer: str) -> list[Board]:
    """The boards of a season that have a layer of relevance, by it; read once."""
    boards = read_boards(read_params(season))
    return boards if layer == OWN else [of.under(layer) for of in boards if layer in of.layers]


def read_table(name: str, layer: str, metric: str | None) -> Result:
    """A table with a value or a rank for each query, in the direction of the metric."""
    files, preset = parts_of(name)
    ending = Path(files[0]).suffix
    with readable(name, f"a table as {ending}", "save it again, or correct the path"):
        of_seed = [table_of(Path(file)) for file in files]
        if len(files) > 1:  # one per seed
            of_seed = [of.assign(seed=n) for n, of in enumerate(of_seed)]
        table = pd.concat(of_seed)
        heads = list(table)
        numbers = [head for head in (VALUE, "rank") if head in heads]
        if "query" not in heads or len(numbers) != 1 or len(set(heads)) < len(heads):
            expected = "the columns query and value, or query and rank, each once"
            raise UserError(name, expected, ", ".join(heads), "name them so")
        if preset:
            table = table[table["preset"] == preset] if "preset" in heads else table[:0]
            if not len(table):
                raise UserError(name, f"rows of the preset {preset}", "none", DO)
        rows = table[[head for head in COLUMNS if head in heads]].astype(object)
        rows = rows.map(embedding_files.text_of)
    rows, others = rows.rename(columns={numbers[0]: "number"}), [*set(heads) - set(COLUMNS)]
    notes = [f"{name}: not used: the columns {', '.join(sorted(others))}"] if others else []
    layers = sorted(set(rows.get("layer", [OWN])))
    if layer not in layers:
        do = "choose another with --layer"
        raise UserError(f"{name}: layer", f"rows of {layer}", ", ".join(layers), do)
    if len(layers) > 1:
        rows = rows[rows["layer"] == layer]
        notes.append(f"{name}: of the layers {', '.join(layers)} the rows of {layer}")
    if numbers == [VALUE] and metric not in (None, VALUE):
        raise UserError("--metric", f"{VALUE}, of {name}", metric, "call ranks rank, if these are")
    of = METRICS.get(metric)
    folds = [f"{way}_fold" for way in FOLDED if of and of.is_of_folds]
    ways = [of.ranks] if of and of.direction else folds or SUMMED_DIRECTIONS
    if "direction" in rows and (is_of_metric := rows["direction"].isin(ways)).any():
        rows = rows[is_of_metric]
    return _result(name, rows, numbers == ["rank"], notes)


def read_runs(name: str, qrels: Path) -> Result:
    """TREC runs, one per seed from 0. Of equal scores those of other items count as the better."""
    judged = _trec(qrels, "query 0 item number")
    judged["is_right"] = judged.pop("number") > 0
    is_asked = judged.groupby("query")["is_right"].any()
    asked, tables, depths, notes = is_asked.index[is_asked], [], [], []
    if len(asked) < len(is_asked):
        notes = [f"{qrels}: not used: {(~is_asked).sum()} queries with no relevant item"]
    for seed, path in enumerate(name.split(",")):
        run = _trec(Path(path), "query Q0 item rank number tag")
        run = run.merge(judged, "left", ["query", "item"])
        is_right, query = run["is_right"].eq(True), run["query"]
        best = query.map(run["number"][is_right].groupby(query).max())
        above = (~is_right & (run["number"] >= best)).groupby(query).sum()
        ranks = above[query[is_right].unique()].astype(str).reindex(asked, fill_value="")
        tables.append(pd.DataFrame({"query": asked, "number": ranks.array, "seed": str(seed)}))
        depths.append(query.value_counts().max())
        silent, strange = asked.difference(query, sort=False), set(query) - set(is_asked.index)
        if len(silent) == len(asked):
            raise UserError(path, f"the queries of {qrels}", "others", "name the qrels of the run")
        if len(silent):
            notes.append(f"{path}: no answer to {len(silent)} queries, as {silent[0]!r}")
        if strange:
            notes.append(f"{path}: not used: {len(strange)} queries without judgements")
    return _result(name, pd.concat(tables, ignore_index=True), True, notes, min(depths))


def _trec(path: Path, form: str) -> pd.DataFrame:
    """The query, item and number of each line of a TREC file."""
    with readable(path, f"lines of {form}", "correct the path, or the file"):
        lines = content(path, MOST).decode("utf-8-sig").split("\n")
        table = embedding_files.framed(form.split(), map(str.split, lines))
        number = pd.to_numeric(table["number"], errors="coerce")
        is_wrong = ~np.isfinite(number) | table.duplicated(["query", "item"])
        if is_wrong.any():
            found = " ".join(table[is_wrong].iloc[0])
            raise ValueError(f"{found!r}: no finite number, or the item a second time")
    return table[["query", "item"]].assign(number=number)


def _result(
    name: str, rows: pd.DataFrame, is_ranks: bool, notes: list[str], depth: int = 0
) -> Result:
    """From rows of text. `depth` is how many items were listed for a query; default: as many as to
    the last rank. Raises UserError for the first row that is wrong."""

    def check(is_right: pd.Series, head: str, expected: str) -> None:
        if not is_right.all():
            wrong = rows[~is_right].iloc[0]
            found = f"{wrong[head]!r} ({(~is_right).sum()} such rows)"
            raise UserError(f"{name}: {head} of query {wrong['query']!r}", expected, found, DO)

    if not len(rows):
        raise UserError(name, "a row for each query", "none", DO)
    if "cluster" not in rows:
        alike = "if some are alike, as captions of one image, the interval is too narrow"
        notes = [*notes, f"{name}: no clusters, so each query is one; {alike}"]
    defaults = {"direction": ONE_WAY, "seed": "0", "cluster": rows["query"], **SAME}
    rows = rows.assign(**{head: of for head, of in defaults.items() if head not in rows})
    for head in ("season", "preset", *SAME):
        same = rows[head].iloc[0] if head in rows else ""
        check(rows.get(head, pd.Series(same, rows.index)) == same, head, f"{same!r} in all rows")
    for head in ("query", "cluster"):
        check(rows[head] != "", head, "a name")
    check(rows["direction"].isin(DIRECTIONS), "direction", f"one of {', '.join(DIRECTIONS)}")
    check(rows["seed"].str.fullmatch(r"[0-9]{1,9}"), "seed", "a whole number from 0")
    number = pd.to_numeric(rows["number"], errors="coerce").astype(float)
    kind = "hits" if number.isin([0, 1]).all() or number.isin([0, 100]).all() else "values"
    if is_ranks:
        kind, number = "ranks", embedding_files.ranks_of(rows["number"])
        is_lost, what = np.isinf(number), "a rank, whole and from 0, or nothing if not found"
        check(number.notna(), "number", what)
        if is_lost.any():
            lists = [rows["direction"], rows["seed"]]
            ends = number.mask(is_lost, -1.0).groupby(lists).max() + 1
            depth = depth or int(ends[is_lost.groupby(lists).any()].min())
            if "depth" in rows:  # of the lists, as `score --depth` writes it
                listed = pd.to_numeric(rows["depth"], errors="coerce")
                check(listed >= 1, "depth", "a whole number from 1")
                depth = max(depth, int(listed.min()))
            few = f"{is_lost.sum()} of {len(rows)} not found, as {rows['query'][is_lost].iloc[0]!r}"
            notes = [*notes, f"{name}: {few}; ranks are known below {depth}"]
    else:
        check(np.isfinite(number), "number", "a number")
    rows = rows.assign(number=number, seed=rows["seed"].astype(int))
    seeds, of_query = rows["seed"].nunique(), rows.groupby(KEY)
    is_once = (of_query["seed"].transform("size") == seeds) & ~rows.duplicated([*KEY, "seed"])
    check(is_once, "seed", f"one row for each query and each of {seeds} seeds")
    is_same = of_query["cluster"].transform("first") == rows["cluster"]
    check(is_same, "cluster", "the same cluster for each seed")
    table = rows.pivot(index=KEY, columns="seed", values="number")
    if kind == "hits" and number.max() == 1:
        table *= 100
    facts = of_query[["cluster", *SAME]].first()
    return Result(name=name, kind=kind, table=table, facts=facts, depth=depth, notes=notes)


# Judging ------------------------------------------------------------------------------------------


def of_season(
    first: Row, second: Row, arguments: argparse.Namespace
) -> tuple[Pair, str, int, list[str]]:
    """A pair of presets as their report puts it, what is drawn anew, how many queries there are,
    and what a reader must know. All rows of the board tell how far trainings lie apart."""
    (board, row), (other, against) = first, second
    metric, names = arguments.metric or RANKED_BY[row.task], [row.preset, against.preset]
    if lacking := [side for side in sides(metric) if side not in METRICS]:
        raise UserError("--metric", "a metric", suggested(lacking[0], METRICS), "correct it")
    comparison = of_boards.compare(board, row, against, metric) if board is other else None
    if comparison is None:
        expected, do = f"{metric} of both on one dataset", "choose other presets, or another metric"
        raise UserError(", ".join(names), expected, "none", do)
    rule = _rule(metric, comparison, len(board.ways) == 1, arguments)
    pair = Pair(comparison=comparison, rule=rule, blocked=flags.obstacle(board, comparison))
    notes = map(flags.said, flags.claim_flags(board, names, [pair]))
    return pair, "images", board.test_queries(row.task), list(notes)


def of_files(
    first: Result, second: Result, given: Sequence[Result], arguments: argparse.Namespace
) -> tuple[Pair, str, int, list[str]]:
    """The same of results from anywhere. The seeds of all that are given on the same queries tell
    how far trainings lie apart. Raises UserError for two that cannot be compared."""
    if error := unlike(first, second):
        raise error
    less, terms, shown = False, [], VALUE
    metric = {"hits": f"{ONE_WAY}_{R1}"}.get(first.kind, "")  # whose unit and margin it has
    if first.kind == "ranks":
        ways = list(first.table.index.unique("direction"))
        shown = arguments.metric or (R1 if len(ways) == 1 else "rsum")
        metric = f"{ways[0]}_{shown}" if shown in DECLARED and len(ways) == 1 else shown
        if metric not in METRICS:
            found = suggested(shown, {*DECLARED, *METRICS})
            raise UserError("--metric", "a metric of ranks alone", found, "correct it")
        terms = query_terms(metric, [f"{way.removesuffix('_fold')}_{R1}" for way in ways])
        lacks = not {term.ranks for term in terms} <= set(ways)
        if not terms or lacks or any(term.needs_all for term in terms):
            expected = f"a mean over queries of their best ranks of {', '.join(ways)}"
            raise UserError(f"{first.name}: {shown}", expected, "another", "name another --metric")
        less = METRICS[metric].less_is_better
    names, both = [first.name, second.name], (first, second)
    samples = {of.name: sampled(of, terms) for of in given if not unlike(first, of)}
    spread = comparisons.spread(samples, [*filter(is_trained, samples)])
    facts = {"less_is_better": less, "metric": shown, "titles": names}
    comparison = comparisons.compare(names, [samples[name] for name in names], spread, **facts)
    notes = [*first.notes, *second.notes]
    if comparison.is_of_these_trainings:
        why = "nothing is known of other trainings"
        notes.append(f"{why}: the verdict is for these very ones, and for other queries alone")
    if not metric and arguments.margin is None:
        notes.append("margin 0, as the scale of the values is not known: --margin gives another")
    runs = [sorted(of.to_numpy().tobytes() for _, of in table.table.items()) for table in both]
    queries = int(first.table.index.get_level_values("direction").value_counts().min())
    sizes, blocked = first.facts["cluster"].value_counts(), None
    clusters = sizes.sum() ** 2 / (sizes**2).sum()
    if runs[0] == runs[1]:
        blocked = Flag("M", "identical results", blocks=True)
    elif queries < MIN_TEST_QUERIES or clusters < ENOUGH:
        few = f"{queries} queries in {len(sizes)} clusters, worth {clusters:.1f} of equal size"
        blocked = Flag("L", f"nothing can be concluded from {few}", blocks=True)
    rule = _rule(metric, comparison, len(terms) == len(SUMMED_K), arguments)
    unit = "queries" if len(sizes) == sizes.sum() else "clusters"
    return Pair(comparison=comparison, rule=rule, blocked=blocked), unit, queries, notes


def unlike(first: Result, second: Result) -> UserError | None:
    """Why two results cannot be compared."""
    names, do = f"{first.name}, {second.name}", "choose results that have the same"
    pairs = {"kind": (first.kind, second.kind)}
    pairs |= {head: (first.facts[head].iloc[0], second.facts[head].iloc[0]) for head in SAME}
    for head, both in pairs.items():
        if all(both) and len(set(both)) > 1:
            return UserError(names, f"the same {head}", " and ".join(both), do)
    if not first.facts.index.equals(second.facts.index):
        other = first.facts.index.symmetric_difference(second.facts.index)
        found = f"{len(other)} of one alone, as {other[0][1]!r}"
        return UserError(names, "the same queries", found, do)
    is_torn = first.facts["cluster"] != second.facts["cluster"]
    if is_torn.any():
        found = " and ".join(f"'{of.facts['cluster'][is_torn].iloc[0]}'" for of in (first, second))
        return UserError(f"{names}: {is_torn.idxmax()[1]!r}", "the same cluster", found, do)
    return None


def sampled(result: Result, terms: Sequence[Metric]) -> Sample:
    """The mean of each seed. Raises UserError for a metric beyond the ranks that are known."""
    codes, means = pd.Series(pd.factorize(result.facts["cluster"])[0], result.facts.index), []
    for term in terms:
        of_seed = {}
        for seed, ranks in result.table.loc[[term.ranks]].items():
            ends = (ranks.replace(np.inf, end).to_numpy() for end in (result.depth, NOWHERE))
            nearest_Q, of_seed[seed] = (term.of_queries(Ranks.of_best(end)) for end in ends)
            # The next item may be the one that was not found, and a hit.
            if np.abs(nearest_Q - of_seed[seed]).max() > np.ptp(term.range) / 2:
                found = f"queries not found among the first {result.depth}"
                do, heading = "name a metric of fewer items", term.heading.split(" ", 1)[1]
                raise UserError(f"{result.name}: {heading}", "ranks to its K", found, do)
        means.append((codes.loc[[term.ranks]].to_numpy(), of_seed))
    values = {seed: column.to_numpy() for seed, column in result.table.items()}
    return comparisons.sample_of_queries(means or [(codes.to_numpy(), values)])


def _rule(metric: str, of: Comparison, is_half: bool, arguments: argparse.Namespace) -> Rule:
    """With the margin of a difference that nobody printed, if none is given; 0 without a metric."""
    margin = arguments.margin
    if margin is None and metric:
        is_share = len(sides(metric)) == 1 and quantity(metric).unit == "%"
        level = max(float(np.mean(runs)) for runs in (of.firsts, of.seconds)) if is_share else None
        part = Part(presets=["a", "b"], kind=arguments.kind, metric=metric)
        margin = margin_of(part, None, is_half and "rsum" in metric, level)
    return Rule(kind=arguments.kind, margin=margin or 0.0)


# Telling ------------------------------------------------------------------------------------------


def told(put: Sequence[tuple[Pair, str, int, list[str]]]) -> list[dict]:
    """The verdicts on pairs as data, with Holm's p over them; numbers have DIGITS significant
    digits, as in claims.json."""
    found = []
    judged = verdicts.judge([[pair] for pair, *_ in put])
    for (pair,), (_, unit, queries, notes) in zip(judged, put, strict=True):
        of, doubt, limit = pair.comparison, pair.comparison.doubt, pair.limit
        low, high = of.interval or (None, None)
        numbers = {"difference": of.difference, "low": low, "high": high, "margin": pair.margin}
        numbers |= {"p": pair.p, "adjusted_p": pair.adjusted_p}
        # What other trainings would change on other queries as well counts as theirs.
        parts = [doubt.interaction + doubt.main, doubt.images + doubt.main]
        numbers["share_of_trainings"] = parts[0] / parts[1] if parts[1] else None
        facts = {"first": of.first, "second": of.second, "kind": pair.rule.kind}
        facts |= {"metric": of.metric, "conclusion": pair.conclusion, "reason": pair.reason}
        facts |= {key: n if n is None else float(f"{n:.{DIGITS}g}") for key, n in numbers.items()}
        facts |= {"queries": queries, "unit": unit, "units": doubt.image_count}
        facts |= {"seeds": of.trainings, "is_of_these_trainings": of.is_of_these_trainings}
        facts |= {"on_test_set": pair.on_test_set, "limit": limit and limit._asdict()}
        facts |= {"decides": limit and limited(limit, unit), "pairs": len(put)}
        found.append(facts | {"notes": [note[:LONGEST] for note in notes]})
    return found


def lines(found: dict) -> list[str]:
    """A verdict, and what there is to say of it, as sentences without their full stops."""
    unit, share = found["unit"], found["share_of_trainings"]
    compared = f"{found['first']} {SIGNS[found['kind']]} {found['second']}"
    said = [f"{compared} by {found['metric']}: {found['conclusion']}"]
    numbers = [f"difference {found['difference']:+.4g}", f"margin {found['margin']:.4g}"]
    if found["low"] is not None:
        numbers.insert(1, f"95% interval [{found['low']:.4g}, {found['high']:.4g}]")
    if found["p"] is not None:
        by_holm = f"{found['adjusted_p']:.2g} by Holm" if found["pairs"] > 1 else ""
        numbers += [f"p {found['p']:.2g}", by_holm or "not adjusted for other comparisons"]
    said += [", ".join(numbers), found["reason"]]
    if found["on_test_set"] != found["conclusion"]:
        said.append(f"for other trainings on these {unit}: {found['on_test_set']}")
    if found["decides"]:
        said.append(f"{found['decides']} would decide it, if the difference stays")
    seeds = " and ".join(map(str, found["seeds"]))
    said.append(f"{found['queries']} queries, {found['units']} {unit}, seeds: {seeds}")
    if share is not None and not found["is_of_these_trainings"]:
        said.append(f"limited by {unit} to {1 - share:.0%}, by trainings to {share:.0%}")
    return [*said, *found["notes"]]


def shown(found: dict) -> str:
    """The same for a terminal."""
    return "\n  ".join(map(printable, lines(found)))

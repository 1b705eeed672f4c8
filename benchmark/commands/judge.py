"""Judge a claim on any two results, query by query: verdict, margin, interval and p.

rematch judge a.csv b.csv --claim "A > B" rematch judge a.parquet b.parquet --claim "A
not better than B by rsum" --margin 3 rematch judge a.run b0.run,b1.run,b2.run --qrels
FILE --metric r10 rematch judge flickr8k:scan_t2i_avg flickr8k:vse_official --pair
flickr8k:vse flickr8k:cca

A result is a table, .csv, .tsv, .parquet or .jsonl, with the columns query and value
(hits, 0 and 1 or 0 and 100, or any number), or query and rank (of the best relevant
item, from 0; empty or -1: not found). It may have direction (i2t, t2i, ...), cluster
(what is drawn anew, such as the image of a caption; default: the query), seed (default:
0), layer, dataset and gallery. With --qrels it is a TREC run. Either is one file, or
one per seed with commas between; FILE:PRESET is a row of a table that `export
--queries` wrote, whose other rows tell how far trainings lie apart. Else it is
SEASON:PRESET, with all its seeds.

Claims are "A > B", the default, "A = B", and "A not better than B", and may end with
"by METRIC"; where less is better, claim "B > A". Every further --pair is asked the
same, and p is adjusted for all of them by Holm.

Results that can be read in two ways are refused until an option decides. --first-rank,
--order and --scale take one value for both sides, or two with a comma, the first for A
(and each C), the second for B (and each D): --first-rank 1,0. Judgements (--qrels) are
TREC's lines of query 0 item score, or BEIR's table with the columns query-id, corpus-id
and score.
"""

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.boards import comparisons as of_boards
from benchmark.boards import flags
from benchmark.boards.boards import MIN_TEST_QUERIES, RANKED_BY, Board, read_boards
from benchmark.boards.boards import Row as BoardRow
from benchmark.boards.claim_entries import DIGITS
from benchmark.boards.claims import margin_of
from benchmark.commands import conventions
from benchmark.commands.result_files import (
    ENOUGH,
    ONE_WAY,
    OWN,
    VALUE,
    Kind,
    Order,
    Reading,
    Result,
    parts_of,
    read_table,
    table_of,
)
from benchmark.commands.trec_runs import read_qrels, read_runs
from benchmark.core.command_line import add_season
from benchmark.core.errors import UserError, entry, printable, short, suggested
from benchmark.core.files import is_file, write_json, write_text
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import Ranks
from benchmark.features.embedding_files import NOWHERE, TABLES
from benchmark.papers.printed_tables import Part, quantity, sides
from benchmark.report.markdown import escaped
from benchmark.report.pages.claim_tables import limited
from benchmark.scoring.corrections import GRIDS
from benchmark.scoring.metrics import METRICS, SUMMED_K, Metric, query_terms
from benchmark.season.parameter_files import read_params
from benchmark.season.plugins import presets
from benchmark.stats import comparisons, verdicts
from benchmark.stats.claim_kinds import KINDS, SIGNS
from benchmark.stats.comparisons import Comparison, Sample
from benchmark.stats.significance import ROUNDING, Constant
from benchmark.stats.verdicts import Flag, Rule, Verdict

SIGN = "|".join(map(re.escape, SIGNS))
CLAIM = re.compile(rf"\s*([AB])\s*({SIGN})\s*([AB])(?:\s+by\s+(\S.*?))?\s*")
DECLARED = {
    name.removeprefix(f"{of.direction}_")
    for name, of in METRICS.items()
    if of.direction
}
R1 = "r1"  # what is judged of ranks in one direction
LONGEST = 600  # letters of a note
LEAST_P = 1e-300  # smaller ones are printed as such
Row = tuple[Board, BoardRow]  # of a preset


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "first", metavar="A", help="a table, a TREC run, or SEASON:PRESET"
    )
    parser.add_argument("second", metavar="B")
    parser.add_argument(
        "--pair", nargs=2, action="append", default=[], metavar=("C", "D")
    )
    parser.add_argument(
        "--claim", default="A > B", help="such as 'A not better than B by rsum'"
    )
    parser.add_argument("--metric", help="default: rsum, r1 of one direction, or value")
    parser.add_argument(
        "--margin", type=float, metavar="X", help="differences up to X count as none"
    )
    parser.add_argument("--layer", default=OWN, help="of relevance")
    parser.add_argument(
        "--qrels", type=Path, metavar="FILE", help="judgements, of TREC runs"
    )
    add = parser.add_argument_group("where two readings are possible").add_argument
    add(
        "--first-rank",
        metavar="N",
        help="0 or 1: what the first place is called in tables",
    )
    add(
        "--order",
        metavar="COLUMN",
        help="scores or ranks: what orders the items of a run",
    )
    scale = "multiply values by X; 1: both sides are right as they are"
    add("--scale", metavar="X", help=scale)
    unanswered = "queries to which a run has no answer count as not found, however many"
    add("--count-unanswered", action="store_true", help=unanswered)
    parser.add_argument(
        "--dataset", help="of presets; default: the only one that has them"
    )
    parser.add_argument(
        "--out", type=Path, action="append", default=[], help="a .md or .json file"
    )
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
    is_reversed = read_claim(arguments)
    for cached in (table_of, read_qrels):  # files may have changed
        cached.cache_clear()
    readings = readings_of(asked, arguments)
    given = {name: read(name, arguments, readings[name]) for name in readings}
    kinds = {type(result) for result in given.values()}
    of_presets = {"--season": arguments.season, "--dataset": arguments.dataset}
    unused = [name for name, value in of_presets.items() if value and Result in kinds]
    if len(kinds) > 1 or unused:
        found = unused[0] if unused else "one of each"
        raise UserError(
            "judge", "files, or presets, and options of these", found, "choose"
        )
    others = [read(name, arguments, alike) for name, alike in beside(readings).items()]
    everything = [*given.values(), *others]
    put = []
    for names in asked:
        both = [given[name] for name in names]
        if Result in kinds:
            conventions.check(*both)
        if is_reversed:
            both.reverse()
        if Result in kinds:
            put.append(of_files(*both, everything, arguments))
        else:
            put.append(of_season(*both, arguments))
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
    """Whether the claim names B first; its kind and metric become arguments. Raises
    UserError for what is no claim on A and B."""
    match = CLAIM.fullmatch(arguments.claim)
    first, sign, second, by = match.groups() if match else [None] * 4
    if first == second:  # or no claim at all
        do = f"say one of {', '.join(SIGNS)}"
        raise UserError("--claim", "a claim on A and B", short(arguments.claim), do)
    if by and arguments.metric not in (None, by):
        raise UserError(
            "--metric", f"{by}, as the claim says", arguments.metric, "name one"
        )
    arguments.kind, arguments.metric = SIGNS[sign], by or arguments.metric
    return first == "B"


# Reading ------------------------------------------------------------------------------


def readings_of(
    asked: Sequence[Sequence[str]], arguments: argparse.Namespace
) -> dict[str, Reading]:
    """How each result is to be read, by its name: in each pair the first as A, the
    second as B. Raises UserError for options that say no such thing."""
    first_ranks = per_side("--first-rank", arguments.first_rank, first_rank, "0 or 1")
    orders = per_side("--order", arguments.order, Order, " or ".join(Order))
    scales = per_side("--scale", arguments.scale, factor, "a number above 0")
    readings: dict[str, Reading] = {}
    for pair in asked:
        for side, name in enumerate(pair):
            reading = Reading(
                first_rank=first_ranks[side],
                order=orders[side],
                scale=scales[side],
                count_unanswered=arguments.count_unanswered,
            )
            if readings.setdefault(name, reading) != reading:
                expected = f"one reading of {name}"
                advice = "judge the pairs one by one"
                raise UserError("--pair", expected, "one as A and one as B", advice)
    return readings


def per_side(
    option: str, text: str | None, kind: Callable[[str], Any], expected: str
) -> tuple[Any, Any]:
    """The value of an option for A and for B: one for both, or two with a comma."""
    if text is None:
        return None, None
    parts = text.split(",")
    try:
        values = [kind(part.strip()) for part in parts]
    except ValueError:
        values = []
    if not 1 <= len(values) <= 2:
        advice = "name one for both sides, or two with a comma"
        raise UserError(option, expected, repr(text), advice)
    return values[0], values[-1]


def first_rank(text: str) -> int:
    if text not in ("0", "1"):
        raise ValueError(text)
    return int(text)


def factor(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(text)
    return number


def read(name: str, arguments: argparse.Namespace, reading: Reading) -> Result | Row:
    """What a name stands for. Raises UserError for what cannot be judged."""
    if arguments.qrels and arguments.layer == OWN:
        return read_runs(name, read_qrels(arguments.qrels), reading)
    if arguments.qrels:
        raise UserError(
            "--layer", "a table that has it", "--qrels, which are one", "choose"
        )
    if Path(name).suffix.lower() in TABLES or parts_of(name)[1]:
        return read_table(name, arguments.layer, arguments.metric, reading)
    if is_file(name):
        raise unreadable(name)
    reading.refuse_all_but(name)
    season, _, preset = name.rpartition(":")
    boards = {
        of.dataset: of for of in boards_of(season or arguments.season, arguments.layer)
    }
    if not boards:
        do = "choose another with --layer"
        raise UserError(
            f"{name}: layer", f"judgements as {arguments.layer}", "none", do
        )
    if arguments.dataset:
        boards = {arguments.dataset: entry(boards, arguments.dataset, "dataset")}
    rows = [
        (board, row) for board in boards.values() for row in board.rows if row.played
    ]
    entry({row.preset: row for _, row in rows}, preset, "preset")
    first, *others = [(board, row) for board, row in rows if row.preset == preset]
    if others:
        raise UserError(
            "--dataset", "one dataset", f"{preset} on {len(others) + 1}", "name it"
        )
    return first


def unreadable(name: str) -> UserError:
    """Why a file is none that can be judged, by its ending."""
    ending = Path(name).suffix.lower()
    expected = f"a row per query ({', '.join(TABLES)}), or a TREC run with --qrels"
    advice = f"if it is such a table, name it {', '.join(TABLES)} as what it is; "
    advice += "add --qrels to a TREC run"
    if ending == ".json":
        advice = (
            "means, as in results of MTEB, cannot be judged: write query and value of "
        )
        advice += "each query in a .csv, or one object per line in a .jsonl"
    return UserError(
        name, expected, f"a {ending} file" if ending else "no ending", advice
    )


def is_trained(name: str) -> bool:
    """Whether a result has trainings of its own, as far as its preset tells."""
    preset = parts_of(name)[1]
    if preset.endswith(tuple(f"_{how}" for how in GRIDS)):  # a season's correction
        return False
    _, declared = presets().get(preset, (None, None))
    return (
        declared is None
        or not declared.fuse
        and declared.options.get("trains", True) is True
    )


def beside(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    """The other presets of files that `export --queries` wrote, which tell how far
    trainings lie apart: those with trainings of their own."""
    files = {}
    for name, reading in readings.items():
        if parts_of(name)[1]:
            files.setdefault(name.rpartition(":")[0], reading)
    others = {}
    for file, reading in files.items():
        table = table_of(Path(parts_of(file)[0][0]))
        for preset in table["preset"].unique():
            name = f"{file}:{preset}"
            if name not in readings and is_trained(name):
                others[name] = reading
    return others


@cache
def boards_of(season: str | None, layer: str) -> list[Board]:
    """The boards of a season that have a layer of relevance, by it; read once."""
    boards = read_boards(read_params(season))
    return (
        boards
        if layer == OWN
        else [of.under(layer) for of in boards if layer in of.layers]
    )


# Judging ------------------------------------------------------------------------------


def of_season(
    first: Row, second: Row, arguments: argparse.Namespace
) -> tuple[Verdict, str, int, list[str]]:
    """A pair of presets as their report puts it, what is drawn anew, how many queries
    there are, and what a reader must know. All rows of the board tell how far trainings
    lie apart."""
    (board, row), (other, against) = first, second
    metric, names = (
        arguments.metric or RANKED_BY[row.task],
        [row.preset, against.preset],
    )
    if lacking := [side for side in sides(metric) if side not in METRICS]:
        raise UserError(
            "--metric", "a metric", suggested(lacking[0], METRICS), "correct it"
        )
    comparison = (
        of_boards.compare(board, row, against, metric) if board is other else None
    )
    if comparison is None:
        expected, do = (
            f"{metric} of both on one dataset",
            "choose other presets, or another metric",
        )
        raise UserError(", ".join(names), expected, "none", do)
    rule = _rule(metric, comparison, len(board.ways) == 1, arguments)
    pair = Verdict(
        comparison=comparison, rule=rule, blocked=flags.obstacle(board, comparison)
    )
    notes = map(flags.said, flags.claim_flags(board, names, [pair]))
    return pair, "images", board.test_queries(row.task), list(notes)


def of_files(
    first: Result,
    second: Result,
    given: Sequence[Result],
    arguments: argparse.Namespace,
) -> tuple[Verdict, str, int, list[str]]:
    """The same of results from anywhere, which can be compared. The seeds of all that
    are given on the same queries tell how far trainings lie apart. Raises UserError for
    a metric that they do not have."""
    both, names = (first, second), [first.name, second.name]
    kind = conventions.common_kind(first, second)
    less, terms, shown, metric = False, [], VALUE, ""
    if kind == Kind.HITS:
        metric = f"{ONE_WAY}_{R1}"  # whose unit and margin they have
    if kind == Kind.RANKS:
        metric, shown, terms = metric_of_ranks(first, arguments.metric)
        less = METRICS[metric].less_is_better
        for result in both:
            refuse_heap(result, terms)
    notes = [*first.notes, *second.notes, *conventions.notes(first, second)]
    cut = common_depth(both)
    if cut is not None and any(value_at(cut, term) for term in terms):
        known = f"{shown} of ranks below {cut}, to which both are known"
        notes.append(f"{known}; others count 0")
    samples = {result.name: sampled(result, kind, terms, cut) for result in both}
    for other in given:
        if other not in both and all(is_comparable(result, other) for result in both):
            samples[other.name] = sampled(other, kind, terms, cut)
    spread = comparisons.spread(samples, [*filter(is_trained, samples)])
    queries = int(first.table.index.get_level_values("direction").value_counts().min())
    sizes, blocked = first.facts["cluster"].value_counts(), None
    clusters = sizes.sum() ** 2 / (sizes**2).sum()
    facts = {"less_is_better": less, "metric": shown, "titles": names}
    left_G = np.subtract(*(samples[name].mean_noise for name in names))
    reach = reach_of(both, kind, terms)
    if np.abs(left_G).max() * len(left_G) <= ROUNDING * reach:  # all clusters alike
        facts |= {"reach": reach, "units": int(clusters)}
    comparison = comparisons.compare(
        names, [samples[name] for name in names], spread, **facts
    )
    if comparison.is_of_these_trainings:
        why = "nothing is known of other trainings"
        notes.append(
            f"{why}: the verdict is for these very ones, and for other queries alone"
        )
    if not metric and arguments.margin is None:
        notes.append(
            "margin 0, as the scale of the values is not known: --margin gives another"
        )
    if isinstance(comparison.estimate, Constant):
        alike = "the difference is the same for all"
        notes.append(f"{alike}: p is that of the exact sign test")
    runs = [
        sorted(of.to_numpy().tobytes() for _, of in table.table.items())
        for table in both
    ]
    if runs[0] == runs[1]:
        blocked = Flag("M", "identical results", blocks=True)
    elif queries < MIN_TEST_QUERIES or clusters < ENOUGH:
        few = f"{queries} queries in {len(sizes)} clusters, worth {clusters:.1f} of equal size"
        blocked = Flag("L", f"nothing can be concluded from {few}", blocks=True)
    rule = _rule(metric, comparison, len(terms) == len(SUMMED_K), arguments)
    unit = "queries" if len(sizes) == sizes.sum() else "clusters"
    return (
        Verdict(comparison=comparison, rule=rule, blocked=blocked),
        unit,
        queries,
        notes,
    )


def metric_of_ranks(result: Result, asked: str | None) -> tuple[str, str, list[Metric]]:
    """The key of a metric, its name as it was asked for, and the means over queries
    that add up to it. Raises UserError for one that does not follow from ranks of the
    best."""
    ways = list(result.table.index.unique("direction"))
    shown = asked or (R1 if len(ways) == 1 else "rsum")
    metric = f"{ways[0]}_{shown}" if shown in DECLARED and len(ways) == 1 else shown
    if metric not in METRICS:
        evidence = suggested(shown, {*DECLARED, *METRICS})
        raise UserError("--metric", "a metric of ranks alone", evidence, "correct it")
    terms = query_terms(metric, [f"{RankKey.read(way).direction}_{R1}" for way in ways])
    lacks = not {term.ranks.column for term in terms} <= set(ways)
    if not terms or lacks or any(term.needs_all for term in terms):
        expected = f"a mean over queries of their best ranks of {', '.join(ways)}"
        where, advice = f"{result.name}: {shown}", "name another --metric"
        raise UserError(where, expected, "another", advice)
    return metric, shown, terms


def is_comparable(first: Result, second: Result) -> bool:
    """Whether both are on one convention, as far as that shows."""
    try:
        conventions.check(first, second)
    except UserError:
        return False
    return True


def value_at(rank: float, term: Metric) -> float:
    """What a metric gives a query of this rank."""
    return float(term.of_queries(Ranks.of_best(np.array([rank])))[0])


def refuse_heap(result: Result, terms: Sequence[Metric]) -> None:
    """Raise UserError where so many queries have the last rank that they may be those
    that were not found, and a metric would count them as found."""
    last = conventions.heap_at_end(result)
    if last is None:
        return
    for term in terms:
        if value_at(last, term) > np.ptp(term.range) / 2:
            count = int((result.table == last).sum(axis=None))
            expected = "ranks up to its K of all queries"
            evidence = (
                f"rank {last}, the last one, in {count} rows: a hit, or not found?"
            )
            advice = (
                "leave it empty if not found, or add a column depth: how many items "
            )
            advice += "were listed"
            raise UserError(
                f"{result.name}: {term.heading}", expected, evidence, advice
            )


def common_depth(both: Sequence[Result]) -> int | None:
    """How many places of both sides are known where something was not found; None:
    all."""
    depths = [x.depth for x in both if np.isinf(x.table).any(axis=None)]
    return min(depths, default=None)


def reach_of(both: Sequence[Result], kind: Kind, terms: Sequence[Metric]) -> float:
    """The largest difference that a query can have: of values, which they have here."""
    if kind == Kind.HITS:
        return 100.0
    if kind == Kind.RANKS:
        return float(sum(np.ptp(term.range) for term in terms))
    values = np.concatenate([result.table.to_numpy().ravel() for result in both])
    return float(np.ptp(values))


def sampled(
    result: Result, kind: Kind, terms: Sequence[Metric], cut: int | None = None
) -> Sample:
    """The mean of each seed. Ranks from `cut` count as not found. Raises UserError for
    a metric beyond the ranks that are known."""
    codes = pd.Series(pd.factorize(result.facts["cluster"])[0], result.facts.index)
    table = result.percent if kind == Kind.HITS else result.table
    if not terms:
        values = {seed: column.to_numpy() for seed, column in table.items()}
        return comparisons.sample_of_queries([(codes.to_numpy(), values)])
    end = result.depth
    if cut is not None:
        table, end = table.where(table < cut, np.inf), cut
    means = []
    for term in terms:
        of_seed = {}
        for seed, ranks in table.loc[[term.ranks.column]].items():
            nearest = Ranks.of_best(ranks.replace(np.inf, end).to_numpy())
            farthest = Ranks.of_best(ranks.replace(np.inf, NOWHERE).to_numpy())
            nearest_Q = term.of_queries(nearest)
            of_seed[seed] = term.of_queries(farthest)
            # The next item may be the one that was not evidence, and a hit.
            if np.abs(nearest_Q - of_seed[seed]).max() > np.ptp(term.range) / 2:
                evidence = f"queries not found among the first {end}"
                advice = (
                    "name a metric of fewer items, or add a column depth: how many "
                )
                advice += "items were listed"
                heading = term.heading.split(" ", 1)[1]
                raise UserError(
                    f"{result.name}: {heading}", "ranks to its K", evidence, advice
                )
        means.append((codes.loc[[term.ranks.column]].to_numpy(), of_seed))
    return comparisons.sample_of_queries(means)


def _rule(
    metric: str, of: Comparison, is_half: bool, arguments: argparse.Namespace
) -> Rule:
    """With the margin of a difference that nobody printed, if none is given; 0 without
    a metric."""
    margin = arguments.margin
    if margin is None and metric:
        is_share = len(sides(metric)) == 1 and quantity(metric).unit == "%"
        level = (
            max(float(np.mean(runs)) for runs in (of.firsts, of.seconds))
            if is_share
            else None
        )
        part = Part(presets=["a", "b"], kind=arguments.kind.name, metric=metric)
        margin = margin_of(part, None, is_half and "rsum" in metric, level)
    return Rule(kind=arguments.kind, margin=margin or 0.0)


# Telling ------------------------------------------------------------------------------


def told(put: Sequence[tuple[Verdict, str, int, list[str]]]) -> list[dict]:
    """The verdicts on pairs as data, with Holm's p over them; numbers have DIGITS
    significant digits, as in claims.json."""
    found = []
    judged = verdicts.judge([[pair] for pair, *_ in put])
    for (pair,), (_, unit, queries, notes) in zip(judged, put, strict=True):
        of, doubt, limit = pair.comparison, pair.comparison.doubt, pair.limit
        low, high = of.interval or (None, None)
        numbers = {
            "difference": of.difference,
            "low": low,
            "high": high,
            "margin": pair.margin,
        }
        numbers |= {"p": pair.p, "adjusted_p": pair.adjusted_p}
        # What other trainings would change on other queries as well counts as theirs.
        parts = [doubt.interaction + doubt.main, doubt.images + doubt.main]
        numbers["share_of_trainings"] = parts[0] / parts[1] if parts[1] else None
        facts = {"first": of.first, "second": of.second, "kind": pair.rule.kind.name}
        facts |= {
            "metric": of.metric,
            "conclusion": pair.conclusion,
            "reason": pair.reason,
        }
        facts |= {
            key: n if n is None else float(f"{n:.{DIGITS}g}")
            for key, n in numbers.items()
        }
        facts |= {"queries": queries, "unit": unit, "units": doubt.image_count}
        facts |= {
            "seeds": of.trainings,
            "is_of_these_trainings": of.is_of_these_trainings,
        }
        facts |= {"on_test_set": pair.on_test_set, "limit": limit and limit._asdict()}
        facts |= {"decides": limit and limited(limit, unit), "pairs": len(put)}
        found.append(facts | {"notes": [note[:LONGEST] for note in notes]})
    return found


def lines(found: dict) -> list[str]:
    """A verdict, and what there is to say of it, as sentences without their full
    stops."""
    unit, share = found["unit"], found["share_of_trainings"]
    compared = f"{found['first']} {KINDS[found['kind']].verb} {found['second']}"
    said = [f"{compared} by {found['metric']}: {found['conclusion']}"]
    numbers = [
        f"difference {found['difference']:+.4g}",
        f"margin {found['margin']:.4g}",
    ]
    if found["low"] is not None:
        numbers.insert(1, f"95% interval [{found['low']:.4g}, {found['high']:.4g}]")
    if found["p"] is not None:
        adjusted = "not adjusted for other comparisons"
        if found["pairs"] > 1:
            adjusted = f"{two_digits_of(found['adjusted_p'])} by Holm"
        numbers += [f"p {two_digits_of(found['p'])}", adjusted]
    said += [", ".join(numbers), found["reason"]]
    if found["on_test_set"] != found["conclusion"]:
        said.append(f"for other trainings on these {unit}: {found['on_test_set']}")
    if found["decides"]:
        said.append(f"{found['decides']} would decide it, if the difference stays")
    seeds = " and ".join(map(str, found["seeds"]))
    said.append(f"{found['queries']} queries, {found['units']} {unit}, seeds: {seeds}")
    if share is not None and not found["is_of_these_trainings"]:
        said.append(
            f"limited by {unit} to {1 - share:.0%}, by trainings to {share:.0%}"
        )
    return [*said, *found["notes"]]


def two_digits_of(p: float) -> str:
    return f"{p:.2g}" if p >= LEAST_P else f"< {LEAST_P:g}"


def shown(found: dict) -> str:
    """The same for a terminal."""
    return "\n  ".join(map(printable, lines(found)))

"""Judge a claim on any two results, query by query: verdict, margin, interval and p.

    rematch judge a.csv b.csv --claim "A > B"
    rematch judge a.parquet b.parquet --claim "A not better than B by rsum" --margin 3
    rematch judge a.run b0.run,b1.run,b2.run --qrels FILE --metric r10
    rematch judge flickr8k:vse flickr8k:cca --pair flickr8k:scan_t2i_avg flickr8k:vse
    rematch judge new.csv old.csv --claim "A = B" --check
    rematch judge mine.parquet --printed 77.82
    rematch judge --claims claims.yaml --check

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

--printed asks whether one result is compatible with a number that a paper prints. Below
or above: the result's interval lies wholly beyond what is rounded to the number.
Compatible: the interval contains the number, and lies within --margin of it (default:
a point per recall). Else it is undecided.

--claims judges the claims that a .yaml file states of results beside it, together:
docs/claims.md has its keys, and `pytest --claims FILE` runs each of them as a test.

With --check the exit status is 0 if all pairs hold (or are compatible), 1 if one does
not, 2 if one is undecided and none fails, 3 for an error.

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
from statistics import fmean
from typing import Any

from benchmark.boards.boards import Board
from benchmark.boards.claim_entries import DIGITS
from benchmark.boards.season_boards import read_boards
from benchmark.commands import conventions
from benchmark.commands.against_printed import (
    Against,
    Place,
    against_of_file,
    against_of_season,
    printed_number,
)
from benchmark.commands.judged_results import (
    BoardAndRow,
    Judged,
    Question,
    concluded,
    is_trained,
    of_files,
    of_season,
)
from benchmark.commands.result_files import (
    OWN,
    Order,
    Reading,
    Result,
    parts_of,
    read_table,
    table_of,
)
from benchmark.commands.trec_runs import read_qrels, read_runs
from benchmark.commands.written_claims import ClaimOnFiles, read_claims
from benchmark.core.command_line import CHECK, add_season
from benchmark.core.confidence import PERCENT
from benchmark.core.errors import UserError, entry, printable, short
from benchmark.core.files import is_file, json_text, write_json, write_text
from benchmark.features.embedding_files import TABLES
from benchmark.papers.rounded import Rounded
from benchmark.report.markdown import escaped
from benchmark.report.pages.claim_tables import limited
from benchmark.season.parameter_files import read_params
from benchmark.stats.claim_kinds import ALIKE, FAILED, KINDS, SIGNS, Conclusion

SIGN = "|".join(map(re.escape, SIGNS))
CLAIM = re.compile(rf"\s*([AB])\s*({SIGN})\s*([AB])(?:\s+by\s+(\S.*?))?\s*")
LONGEST = 600  # letters of a note
LEAST_P = 1e-300  # smaller ones are printed as such
# exit statuses of --check
HOLDS, FAILS, UNDECIDED = 0, 1, 2
HOLDING = (Conclusion.HOLDS, Place.COMPATIBLE)
FAILING = (*FAILED, Place.BELOW, Place.ABOVE)
JSON, TEXT = "json", "text"
BEATS = "A > B"  # the claim, if none is made


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "first", metavar="A", nargs="?", help="a table, a TREC run, or SEASON:PRESET"
    )
    parser.add_argument("second", metavar="B", nargs="?")
    parser.add_argument(
        "--pair", nargs=2, action="append", default=[], metavar=("C", "D")
    )
    parser.add_argument(
        "--claim", help=f"such as 'A not better than B by rsum'; default: {BEATS}"
    )
    parser.add_argument(
        "--printed", metavar="NUMBER", help="compare A with a printed number, not B"
    )
    parser.add_argument(
        "--claims", type=Path, metavar="FILE", help="judge the claims of a .yaml file"
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
    parser.add_argument(
        "--format", choices=(TEXT, JSON), default=TEXT, help="of what is printed"
    )
    parser.add_argument(
        CHECK, action="store_true", help="exit with the conclusion: 0, 1, 2, or 3"
    )
    add_season(parser)


def main(arguments: argparse.Namespace) -> int:
    check_options(arguments)
    found = found_of(arguments)
    for path in arguments.out:
        if path.suffix == ".json":
            write_json(path, found)
        else:
            write_text(path, "\n\n".join(map(page, found)) + "\n")
    if arguments.format == JSON:
        print(json_text(found), end="")
    else:
        print("\n\n".join(map(shown, found)))
    return status_of(found) if arguments.check else 0


def found_of(arguments: argparse.Namespace) -> list[dict]:
    """The facts of each pair, of the one result and a printed number, or of each claim
    of a file."""
    if arguments.claims is not None:
        return judge_claims(read_claims(arguments.claims))
    if arguments.printed is not None:
        names = [[arguments.first]]
        ((result,),), others = read_all(names, arguments)
        metric, margin = arguments.metric, arguments.margin
        return [compare_printed(result, arguments.printed, others, metric, margin)]
    names = [[arguments.first, arguments.second], *arguments.pair]
    asked = question_of(arguments)
    pairs, others = read_all(names, arguments)
    return judge_pairs(pairs, others, asked)


def judge_pairs(
    pairs: Sequence[Sequence[Result | BoardAndRow]],
    others: Sequence[Result],
    question: Question,
) -> list[dict]:
    """The facts of each pair, first A and then B. `others` tell with all results of the
    pairs how far trainings lie apart. Raises UserError for what cannot be compared."""
    given = [result for pair in pairs for result in pair]
    judged = []
    for first, second in pairs:
        if isinstance(first, Result):
            conventions.check(first, second)
        if question.is_reversed:
            first, second = second, first
        if isinstance(first, Result):
            judged.append(of_files(first, second, [*given, *others], question))
        else:
            judged.append(of_season(first, second, question))
    return facts_of(judged)


def judge_claims(claims: Sequence[ClaimOnFiles]) -> list[dict]:
    """The facts of each claim of a file, with Holm's p over those that compare two
    results. Those by the same metric tell together how far trainings lie apart."""
    judged, facts = [], {}
    for number, claim in enumerate(claims):
        metric, margin = claim.written.metric, claim.written.margin
        alike = [other for other in claims if other.written.metric == metric]
        results = [result for other in alike for result in other.results]
        if claim.written.printed is not None:
            (result,) = claim.results
            number_here = claim.written.printed
            facts[number] = compare_printed(
                result, number_here, results, metric, margin
            )
        else:
            conventions.check(*claim.results)
            judged.append(of_files(*claim.results, results, claim.question))
    of_pairs = iter(facts_of(judged))
    listed = []
    for number, claim in enumerate(claims):
        of_claim = facts[number] if number in facts else next(of_pairs)
        listed.append({"statement": claim.written.statement} | of_claim)
    return listed


def compare_printed(
    result: Result | BoardAndRow,
    text: str,
    others: Sequence[Result] = (),
    metric: str | None = None,
    margin: float | None = None,
) -> dict:
    """The facts of one result and a printed number. `others` tell with it how far
    trainings lie apart. Raises UserError for what is no number, or one of another
    scale."""
    number = printed_number(text)
    question = Question(kind=ALIKE, metric=metric, margin=margin)
    if isinstance(result, Result):
        against = against_of_file(result, others, number, question)
    else:
        against = against_of_season(result, number, question)
    return facts_against(against)


def status_of(found: Sequence[Mapping]) -> int:
    """The exit status of --check."""
    conclusions = [facts["conclusion"] for facts in found]
    if any(conclusion in FAILING for conclusion in conclusions):
        return FAILS
    is_held = all(conclusion in HOLDING for conclusion in conclusions)
    return HOLDS if is_held else UNDECIDED


def check_options(arguments: argparse.Namespace) -> None:
    for path in arguments.out:
        if path.suffix not in (".md", ".json"):
            raise UserError("--out", "a .md or .json file", path.name, "name it so")
    if arguments.margin is not None and not 0 <= arguments.margin < math.inf:
        raise UserError("--margin", "a number from 0", arguments.margin, "correct it")
    if arguments.claims is not None:
        check_claims_alone(arguments)
        return
    if arguments.first is None:
        advice = "name A and B, or a file of claims with --claims"
        raise UserError("judge", "two results", "none", advice)
    beside = arguments.second or arguments.pair or arguments.claim
    if arguments.printed is not None and beside:
        raise UserError("--printed", "one result alone", "B or a claim", "choose")
    if arguments.printed is not None:
        return
    if arguments.second is None:
        advice = "name B, or add --printed NUMBER"
        raise UserError("judge", "two results", arguments.first, advice)
    for first, second in [(arguments.first, arguments.second), *arguments.pair]:
        if first == second:
            found = f"{first} twice"
            raise UserError("judge", "two results", found, "name another one")


def check_claims_alone(arguments: argparse.Namespace) -> None:
    """Raises UserError for what a file of claims says by itself."""
    others = {
        "A": arguments.first,
        "--claim": arguments.claim,
        "--printed": arguments.printed,
        "--metric": arguments.metric,
        "--margin": arguments.margin,
        "--qrels": arguments.qrels,
        "--first-rank": arguments.first_rank,
        "--scale": arguments.scale,
        "--order": arguments.order,
    }
    given = [name for name, value in others.items() if value is not None]
    if given:
        advice = f"leave {given[0]} out, or write it into the file"
        raise UserError("--claims", "a file of claims alone", given[0], advice)


def question_of(arguments: argparse.Namespace) -> Question:
    """Raises UserError for what is no claim on A and B."""
    return question_of_claim(
        arguments.claim or BEATS, arguments.metric, arguments.margin
    )


def question_of_claim(claim: str, metric: str | None, margin: float | None) -> Question:
    """What a claim asks. Raises UserError for what is no claim on A and B."""
    match = CLAIM.fullmatch(claim)
    first, sign, second, by = match.groups() if match else [None] * 4
    if first == second:  # or no claim at all
        advice = f"say one of {', '.join(SIGNS)}"
        found = short(claim)
        raise UserError("--claim", "a claim on A and B", found, advice)
    if by and metric not in (None, by):
        expected = f"{by}, as the claim says"
        raise UserError("--metric", expected, metric, "name one")
    return Question(
        kind=SIGNS[sign],
        metric=by or metric,
        margin=margin,
        is_reversed=first == "B",
    )


# Reading ------------------------------------------------------------------------------


def read_all(
    pairs: Sequence[Sequence[str]], arguments: argparse.Namespace
) -> tuple[list[list[Result | BoardAndRow]], list[Result]]:
    """What the names of all pairs stand for, and the other presets of their files.
    Raises UserError for files beside presets, and for options that neither takes."""
    given, others = read_each(readings_of(pairs, arguments), arguments)
    return [[given[name] for name in names] for names in pairs], others


def read_each(
    readings: Mapping[str, Reading], arguments: argparse.Namespace
) -> tuple[dict[str, Result | BoardAndRow], list[Result]]:
    """The same by name, of names with their readings."""
    for cached in (table_of, read_qrels):  # files may have changed
        cached.cache_clear()
    given = {name: read(name, arguments, readings[name]) for name in readings}
    are_files = {isinstance(result, Result) for result in given.values()}
    found = "one of each" if len(are_files) > 1 else ""
    for option, value in (
        ("--season", arguments.season),
        ("--dataset", arguments.dataset),
    ):
        if value and True in are_files:
            found = found or option
    if found:
        expected = "files, or presets, and options of these"
        raise UserError("judge", expected, found, "choose")
    others = beside(readings)
    return given, [read(name, arguments, others[name]) for name in others]


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


def read(
    name: str, arguments: argparse.Namespace, reading: Reading
) -> Result | BoardAndRow:
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


# Telling ------------------------------------------------------------------------------


def facts_of(judged: Sequence[Judged]) -> list[dict]:
    """The verdicts on pairs as data, with Holm's p over them; numbers have DIGITS
    significant digits, as in claims.json."""
    facts = []
    for each, verdict in zip(judged, concluded(judged), strict=True):
        comparison, limit = verdict.comparison, verdict.limit
        low, high = comparison.interval or (None, None)
        runs = comparison.firsts, comparison.seconds
        facts.append(
            {
                "first": comparison.first,
                "second": comparison.second,
                "kind": verdict.rule.kind.name,
                "metric": comparison.metric,
                "conclusion": str(verdict.conclusion),
                "reason": verdict.reason,
                "levels": [_rounded(fmean(values)) for values in runs],
                "difference": _rounded(comparison.difference),
                "low": _rounded(low),
                "high": _rounded(high),
                "margin": _rounded(verdict.margin),
                "p": _rounded(verdict.p),
                "adjusted_p": _rounded(verdict.adjusted_p),
                "share_of_trainings": _rounded(comparison.doubt.share_of_trainings),
                "queries": each.queries,
                "unit": each.unit,
                "units": comparison.doubt.image_count,
                "seeds": list(comparison.trainings),
                "is_of_these_trainings": comparison.is_of_these_trainings,
                "on_test_set": str(verdict.on_test_set),
                "limit": limit and limit._asdict(),
                "decides": limit
                and limited(limit, f"times as many further {each.unit}"),
                "pairs": len(judged),
                "notes": [note[:LONGEST] for note in each.notes],
            }
        )
    return facts


def facts_against(against: Against) -> dict:
    """The same of one result and a printed number."""
    interval, here = against.interval, against.on_test_set
    if here:
        ends = [_rounded(end) for end in here.interval]
        here = {"conclusion": str(here.conclusion), "interval": ends}
    return {
        "result": against.name,
        "metric": against.metric,
        "printed": against.printed.value,
        "decimals": against.printed.decimals,
        "conclusion": str(against.conclusion),
        "reason": against.reason,
        "level": _rounded(against.level),
        "low": _rounded(interval[0]),
        "high": _rounded(interval[1]),
        "margin": _rounded(against.margin),
        "on_test_set": here,
        "queries": against.queries,
        "unit": against.unit,
        "units": against.units,
        "seeds": against.seeds,
        "is_of_these_trainings": against.is_of_these_trainings,
        "notes": [note[:LONGEST] for note in against.notes],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def lines(facts: dict) -> list[str]:
    """A verdict, and what there is to say of it, as sentences without their full
    stops."""
    of_statement = [facts["statement"]] if facts.get("statement") else []
    if "printed" in facts:
        return [*of_statement, *lines_against(facts)]
    unit, share = facts["unit"], facts["share_of_trainings"]
    claimed = f"{facts['first']} {KINDS[facts['kind']].verb} {facts['second']}"
    sentences = of_statement
    sentences.append(f"{claimed} by {facts['metric']}: {facts['conclusion']}")
    first, second = facts["levels"]
    numbers = [f"levels {first:.4g} and {second:.4g}"]
    numbers.append(f"difference {facts['difference']:+.4g}")
    if facts["low"] is not None:
        numbers.append(f"{PERCENT} interval [{facts['low']:.4g}, {facts['high']:.4g}]")
    numbers.append(f"margin {facts['margin']:.4g}")
    if facts["p"] is not None:
        numbers.append(f"p {two_digits_of(facts['p'])}")
        if facts["pairs"] > 1:
            numbers.append(f"{two_digits_of(facts['adjusted_p'])} by Holm")
        else:
            numbers.append("not adjusted for other comparisons")
    sentences += [", ".join(numbers), facts["reason"]]
    if facts["on_test_set"] != facts["conclusion"]:
        here = f"for other trainings on these {unit}"
        sentences.append(f"{here}: {facts['on_test_set']}")
    if facts["decides"]:
        decides = f"{facts['decides']} would decide it, if the difference stays"
        sentences.append(decides)
    seeds = " and ".join(map(str, facts["seeds"]))
    counts = f"{facts['queries']} queries, {facts['units']} {unit}, seeds: {seeds}"
    sentences.append(counts)
    if share is not None and not facts["is_of_these_trainings"]:
        of_units = f"limited by {unit} to {1 - share:.0%}"
        sentences.append(f"{of_units}, by trainings to {share:.0%}")
    return [*sentences, *facts["notes"]]


def lines_against(facts: dict) -> list[str]:
    """The same of one result and a printed number."""
    number = Rounded(facts["printed"], facts["decimals"])
    asked = f"{facts['result']} beside the printed {number}"
    asked += f" by {facts['metric']}"
    ends = f"[{facts['low']:.4g}, {facts['high']:.4g}]"
    numbers = f"level {facts['level']:.4g}, {PERCENT} interval {ends}"
    numbers += f", margin {facts['margin']:.4g}"
    sentences = [f"{asked}: {facts['conclusion']}", numbers, facts["reason"]]
    here, unit = facts["on_test_set"], facts["unit"]
    if here and here["conclusion"] != facts["conclusion"]:
        low, high = here["interval"]
        which = f"for other trainings on these {unit} [{low:.4g}, {high:.4g}]"
        sentences.append(f"{which}: {here['conclusion']}")
    counts = f"{facts['queries']} queries, {facts['units']} {unit}"
    sentences.append(f"{counts}, seeds: {facts['seeds']}")
    return [*sentences, *facts["notes"]]


def two_digits_of(p: float) -> str:
    return f"{p:.2g}" if p >= LEAST_P else f"< {LEAST_P:g}"


def shown(facts: dict) -> str:
    """The same for a terminal."""
    return "\n  ".join(map(printable, lines(facts)))


def page(facts: dict) -> str:
    """The same as Markdown."""
    head, *others = map(escaped, lines(facts))
    return "\n- ".join([f"## {head}\n", *others])

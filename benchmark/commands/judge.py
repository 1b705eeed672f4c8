"""Judge a claim on any two results, query by query: verdict, margin, interval and p.

    rematch judge a.csv b.csv --claim "A > B"
    rematch judge a.parquet b.parquet --claim "A not better than B by rsum" --margin 3
    rematch judge a.run b0.run,b1.run,b2.run --qrels FILE --metric r10
    rematch judge flickr8k:vse flickr8k:cca --pair flickr8k:scan_t2i_avg flickr8k:vse
    rematch judge new.csv old.csv --claim "A = B" --check
    rematch judge mine.parquet --printed 77.82 --metric i2t_r1
    rematch judge --claims claims.yaml --check

A result is a table, .csv, .tsv, .parquet or .jsonl, with the columns query and value
(hits, 0 and 1 or 0 and 100, or any number), or query and rank (of the best relevant
item, from 0; empty or -1: not found). It may have direction (i2t, t2i, ...), cluster
(what is drawn anew, such as the image of a caption; default: the query), seed (default:
0), layer, dataset and gallery. Samples that lm_eval, Inspect (.eval, .json) or Every
Eval Ever log are tables, too; FILE:METRIC is one of their metrics. With --qrels it is a
TREC run. A table or a run is one file, or one file per seed with commas between.
FILE:PRESET is one row of a table that `export --queries` wrote; its other rows tell how
far trainings lie apart. SEASON:PRESET is a preset of a season, with all its seeds.

A claim is "A > B" (the default), "A = B" or "A not better than B", and may end with
"by METRIC"; where less is better, claim "B > A". Every further --pair is judged by the
same claim, and p is adjusted over all pairs by Holm.

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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmark.boards.boards import Board
from benchmark.boards.season_boards import read_boards
from benchmark.commands import conventions, inspect_logs
from benchmark.commands.against_printed import (
    against_of_file,
    against_of_season,
    printed_number,
)
from benchmark.commands.judged_results import (
    BoardAndRow,
    Question,
    check_margin,
    of_files,
    of_season,
    trains,
)
from benchmark.commands.result_files import (
    OWN,
    Order,
    Reading,
    Result,
    is_table,
    parts_of,
    read_table,
    table_of,
    texts_in,
)
from benchmark.commands.trec_runs import read_qrels, read_runs
from benchmark.commands.verdict_facts import (
    facts_against,
    facts_of,
    page,
    shown,
    status_of,
)
from benchmark.commands.written_claims import ClaimOnFiles, corrected_in, read_claims
from benchmark.core.command_line import CHECK, JSON, add_format, add_season
from benchmark.core.errors import UserError, entry, short
from benchmark.core.files import is_file, json_text, write_json, write_text
from benchmark.features.embedding_files import TABLES
from benchmark.season.parameter_files import read_declaration, season_names
from benchmark.stats.claim_kinds import ALIKE, SIGNS

SIGN = "|".join(map(re.escape, SIGNS))
CLAIM = re.compile(rf"\s*([AB])\s*({SIGN})\s*([AB])(?:\s+by\s+(\S.*?))?\s*")
NAMED = re.compile(rf"\s*(\S+?)\s*({SIGN})\s*(\S+)(.*)")
BEATS = "A > B"  # the claim, if none is made


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where names are looked up, and what of it is read."""

    metric: str | None = None
    layer: str = OWN  # of relevance
    qrels: Path | None = None  # judgements, of TREC runs
    # of presets; None: the active season, and the only dataset that has them
    season: str | None = None
    dataset: str | None = None

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> "Source":
        names = (field.name for field in fields(cls))
        return cls(**{name: getattr(arguments, name) for name in names})


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
    parser.add_argument("--layer", default=OWN, help="layer of relevance")
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
        "--dataset", help="dataset of the presets; default: the only one with them"
    )
    parser.add_argument(
        "--out", type=Path, action="append", default=[], help="a .md or .json file"
    )
    add_format(parser)
    parser.add_argument(
        CHECK, action="store_true", help="exit with the conclusion: 0, 1, 2, or 3"
    )
    add_season(parser)


def main(arguments: argparse.Namespace) -> int:
    check_options(arguments)
    facts = facts_asked(arguments)
    for path in arguments.out:
        if path.suffix == ".json":
            write_json(path, facts)
        else:
            write_text(path, "\n\n".join(map(page, facts)) + "\n")
    if arguments.format == JSON:
        print(json_text(facts), end="")
    else:
        print("\n\n".join(map(shown, facts)))
    return status_of(facts) if arguments.check else 0


def facts_asked(arguments: argparse.Namespace) -> list[dict]:
    """The facts of each pair, of the one result and a printed number, or of each claim
    of a file."""
    if arguments.claims is not None:
        return judge_claims(read_claims(arguments.claims))
    if arguments.printed is not None:
        names = [[arguments.first]]
        readings = readings_of(names, arguments)
        known, others = read_each(readings, Source.of(arguments))
        result = known[arguments.first]
        metric, margin = arguments.metric, arguments.margin
        return [compare_printed(result, arguments.printed, others, metric, margin)]
    names = [[arguments.first, arguments.second], *arguments.pair]
    claim = arguments.claim or BEATS
    if not arguments.pair:
        claim = on_a_and_b(claim, *names[0])
    question = question_of_claim(claim, arguments.metric, arguments.margin)
    readings = readings_of(names, arguments)
    source = replace(Source.of(arguments), metric=question.metric)
    known, others = read_each(readings, source)
    pairs = [(known[first], known[second]) for first, second in names]
    return judge_pairs(pairs, others, question)


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
    facts = {}
    judged = {}
    for number, claim in enumerate(claims):
        metric, margin = claim.written.metric, claim.written.margin
        alike = [other for other in claims if other.written.metric == metric]
        results = [result for other in alike for result in other.results]
        with corrected_in(claim.place):
            if claim.written.printed is not None:
                (result,) = claim.results
                asked = claim.written.printed, results, metric, margin
                facts[number] = compare_printed(result, *asked)
            else:
                conventions.check(*claim.results)
                judged[number] = of_files(*claim.results, results, claim.question)
    of_pairs = facts_of(list(judged.values()))
    facts |= dict(zip(judged, of_pairs, strict=True))
    listed = []
    for number, claim in enumerate(claims):
        listed.append({"statement": claim.written.statement} | facts[number])
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


def check_options(arguments: argparse.Namespace) -> None:
    for path in arguments.out:
        if path.suffix not in (".md", ".json"):
            raise UserError("--out", "a .md or .json file", path.name, "name it so")
    check_margin(arguments.margin)
    if arguments.claims is not None:
        check_claims_alone(arguments)
        return
    if arguments.first is None:
        advice = "name A and B, or a file of claims with --claims"
        raise UserError("judge", "two results", "none", advice)
    other_words = arguments.second or arguments.pair or arguments.claim
    if arguments.printed is not None and other_words:
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
        "--pair": arguments.pair or None,
        "--claim": arguments.claim,
        "--printed": arguments.printed,
        "--metric": arguments.metric,
        "--margin": arguments.margin,
        "--qrels": arguments.qrels,
        "--first-rank": arguments.first_rank,
        "--scale": arguments.scale,
        "--order": arguments.order,
        "--count-unanswered": arguments.count_unanswered or None,
        "--layer": None if arguments.layer == OWN else arguments.layer,
        "--season": arguments.season,
        "--dataset": arguments.dataset,
    }
    given = [name for name, value in others.items() if value is not None]
    if given:
        advice = f"leave {given[0]} out, or write it into the file"
        raise UserError("--claims", "a file of claims alone", given[0], advice)


def on_a_and_b(claim: str, first: str, second: str) -> str:
    """The claim on A and B where it names the files, without their endings, or the
    presets. Any other stays as it is, also one by a name that both sides have."""
    names_of_sides = []
    for given in (first, second):
        names_of_sides.append({given, Path(given).stem, given.rpartition(":")[2]})
    names, other_names = names_of_sides
    sides = dict.fromkeys(names - other_names, "A")
    sides |= dict.fromkeys(other_names - names, "B")
    # letters stand for the sides, whatever files are called
    sides |= {"A": "A", "B": "B"}
    match = NAMED.fullmatch(claim)
    if match is None or match[1] not in sides or match[3] not in sides:
        return claim
    left, sign, right, rest = match.groups()
    return f"{sides[left]} {sign} {sides[right]}{rest}"


def question_of_claim(claim: str, metric: str | None, margin: float | None) -> Question:
    """What a claim asks. Raises UserError for what is no claim on A and B."""
    match = CLAIM.fullmatch(claim)
    if match is None or match[1] == match[3]:
        advice = f'run it with --claim "{BEATS}": A is the first side, B the second; '
        advice += f"signs: {', '.join(SIGNS)}"
        expected = f"a claim on A and B, as in {BEATS!r}"
        raise UserError("--claim", expected, short(claim), advice)
    first, sign, _, by = match.groups()
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


def read_each(
    readings: Mapping[str, Reading], source: Source
) -> tuple[dict[str, Result | BoardAndRow], list[Result]]:
    """The result of each name, and the other presets of their files. Raises UserError
    for files beside presets, and for options of presets beside files."""
    for cached in (table_of, read_qrels):  # files may have changed
        cached.cache_clear()
    given = {name: read(name, source, readings[name]) for name in readings}
    refuse_mixed(given.values())
    has_files = any(isinstance(result, Result) for result in given.values())
    options = {"--season": source.season, "--dataset": source.dataset}
    for option, value in options.items():
        if has_files and value:
            expected = "files, or presets, and options of these"
            raise UserError("judge", expected, option, "choose")
    others = beside(readings)
    return given, [read(name, source, others[name]) for name in others]


def refuse_mixed(results: Collection[Result | BoardAndRow]) -> None:
    """Raise UserError for presets of a season beside other results."""
    count = sum(isinstance(result, Result) for result in results)
    if 0 < count < len(results):
        expected = "presets of a season, or other results"
        advice = "write the season's ranks, and name FILE.parquet:PRESET: "
        advice += "rematch export --season NAME --queries FILE.parquet"
        raise UserError("judge", expected, "one of each", advice)


def readings_of(
    asked: Sequence[Sequence[str]], arguments: argparse.Namespace
) -> dict[str, Reading]:
    """How each result is to be read, by its name: in each pair the first as A, the
    second as B. Raises UserError for options that say no such thing."""
    rank = arguments.first_rank
    first_ranks = per_result("--first-rank", rank, first_rank, "0 or 1")
    orders = per_result("--order", arguments.order, Order, " or ".join(Order))
    scales = per_result("--scale", arguments.scale, factor, "a number above 0")
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


def per_result(
    option: str,
    text: str | None,
    kind: Callable[[str], Any],
    expected: str,
    count: int = 2,
) -> list[Any]:
    """The value of an option for each result, A and B first: one for all, or one for
    each with commas."""
    if text is None:
        return [None] * count
    parts = text.split(",")
    try:
        values = [kind(part.strip()) for part in parts]
    except ValueError:
        values = []
    if len(values) not in (1, count):
        advice = f"give one value for all, or {count} with commas between"
        raise UserError(option, expected, repr(text), advice)
    return values * count if len(values) == 1 else values


def first_rank(text: str) -> int:
    if text not in ("0", "1"):
        raise ValueError(text)
    return int(text)


def factor(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(text)
    return number


def read(name: str, source: Source, reading: Reading) -> Result | BoardAndRow:
    """What a name stands for. Raises UserError for what cannot be judged."""
    if source.qrels and source.layer == OWN:
        return read_runs(name, read_qrels(source.qrels), reading)
    if source.qrels:
        raise UserError(
            "--layer", "a table that has it", "--qrels, which are one", "choose"
        )
    if is_table(name):
        return read_table(name, source.layer, source.metric, reading)
    if is_file(name):
        ending = Path(name).suffix.lower()
        expected = f"a row per query ({', '.join(TABLES)}), a log of Inspect "
        expected += f"({', '.join(inspect_logs.ENDINGS)}), or a TREC run with --qrels"
        advice = f"if it is such a table, name it {', '.join(TABLES)} as what it is; "
        advice += "add --qrels to a TREC run"
        found = f"a {ending} file" if ending else "no ending"
        raise UserError(name, expected, found, advice)
    reading.refuse_all_but(name)
    return row_of_preset(name, source)


def row_of_preset(name: str, source: Source) -> BoardAndRow:
    """The row of a PRESET or SEASON:PRESET. Raises UserError unless there is one."""
    season, _, preset = name.rpartition(":")
    if not season and preset in season_names():
        advice = f"name a row of it: {preset}:PRESET"
        raise UserError(name, "a table, or SEASON:PRESET", "a season alone", advice)
    known = boards_of(season or source.season, source.layer)
    boards = {board.dataset: board for board in known}
    if not boards:
        do = "choose another with --layer"
        raise UserError(f"{name}: layer", f"judgements as {source.layer}", "none", do)
    if source.dataset:
        boards = {source.dataset: entry(boards, source.dataset, "dataset")}
    rows = [
        (board, row) for board in boards.values() for row in board.rows if row.played
    ]
    entry({row.preset: row for _, row in rows}, preset, "preset", "correct the name")
    found = [(board, row) for board, row in rows if row.preset == preset]
    if len(found) > 1:
        several = f"{preset} on {len(found)}"
        raise UserError("--dataset", "one dataset", several, "name it")
    return found[0]


def beside(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    """The other presets of files that `export --queries` wrote, which tell how far
    trainings lie apart: those with trainings of their own."""
    files = {}
    for name, reading in readings.items():
        preset = parts_of(name)[1]
        if preset:
            files.setdefault(name.removesuffix(f":{preset}"), reading)
    others = {}
    for file, reading in files.items():
        first, *further = [presets_in(Path(each)) for each in parts_of(file)[0]]
        for preset in first:
            name = f"{file}:{preset}"
            has_all_seeds = all(preset in presets for presets in further)
            if name not in readings and has_all_seeds and trains(preset):
                others[name] = reading
    return others


def presets_in(path: Path) -> list[str]:
    """The presets that rows of a table name."""
    table = table_of(path)
    if "preset" not in table:
        return []
    return [preset for preset in texts_in(table, "preset").unique() if preset]


@cache
def boards_of(season: str | None, layer: str) -> list[Board]:
    """The boards of a season under a layer of relevance that they have; read once."""
    boards = read_boards(read_declaration(season))
    if layer == OWN:
        return boards
    return [board.under(layer) for board in boards if layer in board.layers]

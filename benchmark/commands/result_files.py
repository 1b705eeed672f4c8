"""Results of single queries that were made elsewhere: tables with a value or a rank.

Where a file fits two readings, it is refused, and the error names the option that
decides.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pandas as pd

from benchmark.commands import eee_samples, inspect_logs, lm_eval_samples
from benchmark.core.errors import LONGEST, UserError
from benchmark.core.files import is_file, readable
from benchmark.data.rank_keys import OWN, OWN_KEYS, RankKey
from benchmark.features import embedding_files
from benchmark.features.embedding_files import TABLES
from benchmark.scoring import rank_conventions
from benchmark.scoring.metrics import FOLDED, METRICS, SUMMED_DIRECTIONS

ONE_WAY = "i2t"  # the direction of results that name none, and of the layer own
DIRECTIONS = [key.column for key in OWN_KEYS]
DATASET = "dataset"
SAME = {"layer": OWN, DATASET: "", "gallery": ""}  # in which two results must agree
COLUMNS = ("query", "value", "rank", "direction", "cluster", "seed", "season", "preset")
COLUMNS += ("depth", *SAME)
# columns by which FILE:NAME chooses rows: of a table of several presets, or metrics
METRIC = "metric"
CHOSEN_BY = ("preset", METRIC)
COLUMNS += (METRIC,)
KEY = ["direction", "query"]
VALUE, RANK = "value", "rank"
RESULTS = (*TABLES, *inspect_logs.ENDINGS)  # endings of files of results
CORRECT = "correct the file"
BOOLEANS = {"true": "1", "false": "0"}

LARGEST = 1e60  # value, whose fourth power is a number, too
ENOUGH = 20  # clusters of equal size: intervals of fewer cover less than 94%
ENDINGS = r"(?<=.)\.(jpe?g|png|gif|bmp|webp|tiff?|txt)$"  # of ids


class Kind(StrEnum):
    """What a result has for each query."""

    HITS = "hits"  # 0 and 1, or 0 and 100
    VALUES = "values"  # any number
    RANKS = "ranks"  # of the best relevant item, from 0; infinite: not found


class Order(StrEnum):
    """What orders the items of a run."""

    SCORES = "scores"  # the greatest first
    RANKS = "ranks"  # the smallest first


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a result is to be read, by the options; None or False: as it shows itself."""

    first_rank: int | None = None  # of the best place, 0 or 1
    order: Order | None = None
    scale: float | None = None  # what values are multiplied by
    count_unanswered: bool = False  # as not found, however many queries these are

    def refuse_all_but(self, name: str, *options: str) -> None:
        """Raise UserError for an option that this result has no use for."""
        for option, value in vars(self).items():
            # a first rank of 0 is no reason to refuse: other results count from 0, too
            if option not in options and value:
                what = {"first_rank": "a table of ranks", "scale": "a table of values"}
                expected = what.get(option, "TREC runs, with --qrels")
                shown = f"--{option.replace('_', '-')}"
                raise UserError(shown, expected, name, "leave it out")


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """What is known of each query. Q = queries, S = seeds."""

    name: str  # as it was given
    kind: Kind
    table: pd.DataFrame  # (Q, S) by direction and query
    facts: pd.DataFrame  # of each query: cluster, and the columns of SAME
    depth: int  # ranks below it are known, where something was not found; 0: not known
    notes: list[str] = field(default_factory=list)  # left out, or taken for granted
    is_scaled: bool = False  # an option says on which scale the values are
    is_first_rank_open: bool = False  # nothing says where the ranks of a table begin
    items: frozenset[str] = frozenset()  # of a run: all that it lists
    lists_all: bool = False  # every query has every item
    preset: str = ""  # of FILE:PRESET, whatever the result is called

    @property
    def is_constant(self) -> bool:
        """Whether all queries have the same value."""
        return bool((self.table == self.table.iloc[0, 0]).all(axis=None))

    @property
    def percent(self) -> pd.DataFrame:
        """Hits as 0 and 100, whatever each seed has."""
        return self.table * np.where(self.table.max() == 1, 100, 1)


# Names of queries and items -----------------------------------------------------------


def spelled_alike(name: str) -> str:
    """An id without case, Unicode form, leading zeros, and the .0 that pandas adds."""
    text = re.sub(r"(?<=\d)\.0$", "", normalize("NFC", name.strip()).casefold())
    return re.sub(r"(?<!\d)0+(?=\d)", "", text)


def stem(name: str) -> str:
    """The same without folder and ending, too."""
    text = name.replace("\\", "/").rpartition("/")[2]
    return spelled_alike(re.sub(ENDINGS, "", text, flags=re.IGNORECASE))


def respelled(
    names: Iterable[str],
    others: Iterable[str],
    form: Callable[[str], str] = spelled_alike,
) -> list[tuple[str, str]]:
    """Names of the first that the second has in another spelling, with that. Names that
    both have are to be left out before."""
    other_of = {form(other): other for other in others}
    pairs = [(name, other_of.get(form(name))) for name in sorted(names)]
    return [(name, other) for name, other in pairs if other is not None]


# Tables -------------------------------------------------------------------------------


@cache
def table_of(path: Path) -> pd.DataFrame:
    """A table of results; of samples that other tools log, their metrics."""
    if path.suffix.lower() in inspect_logs.ENDINGS:
        return inspect_logs.as_results(path)
    if eee_samples.are_samples(path):
        return eee_samples.as_results(path)
    table = embedding_files.table_of(path)
    if lm_eval_samples.are_samples(table):
        return lm_eval_samples.as_results(table, str(path))
    return table


def parts_of(name: str) -> tuple[list[str], str]:
    """The files of a name, one per seed, and the preset of FILE:PRESET, or ""."""
    file, preset = file_and_preset(name)
    if is_file(file):  # its name may have commas
        return [file], preset
    return file.split(","), preset


def file_and_preset(name: str) -> tuple[str, str]:
    """The file of FILE:PRESET, and the preset; a name without one, and "". Raises
    UserError for FILE: alone."""
    for colon in re.finditer(":", name):  # a metric may have one, too
        start = name[: colon.start()]
        if Path(start).suffix.lower() in RESULTS:
            preset = name[colon.end() :]
            if not preset:
                found = "nothing behind the colon"
                raise UserError(name, "FILE:PRESET, or FILE", found, "correct the name")
            return start, preset
    return name, ""


def is_table(name: str) -> bool:
    """Whether a name is that of tables, or of a preset in one."""
    return Path(name).suffix.lower() in RESULTS or bool(parts_of(name)[1])


def read_table(name: str, layer: str, metric: str | None, reading: Reading) -> Result:
    """A table with a value or a rank for each query, in the direction of the metric.
    Raises UserError for what cannot be read, or can be read in two ways."""
    files, preset = parts_of(name)
    return read_files(name, files, preset, layer, metric, reading)


def read_files(
    name: str,
    files: Sequence[str],
    preset: str,
    layer: str,
    metric: str | None,
    reading: Reading,
) -> Result:
    """The same for files, one per seed; only the rows of `preset`, unless it is
    ""."""
    table = _table_of_seeds(name, files, preset)
    result = of_frame(name, table, layer, metric, reading)
    return replace(result, preset=preset)


def read_datasets(
    name: str, layer: str, metric: str | None, reading: Reading
) -> dict[str, Result]:
    """The same of a table with a column dataset: a result for each of them."""
    files, preset = parts_of(name)
    table = _table_of_seeds(name, files, preset)
    if DATASET not in table:
        found = ", ".join(map(str, table))
        raise UserError(name, f"a column {DATASET}", found, "add it")
    with readable(name, "columns of numbers and texts", "correct them"):
        datasets = table[DATASET].map(embedding_files.text_of)
    if (datasets == "").any():
        count = int((datasets == "").sum())
        raise UserError(name, "a dataset in each row", f"none in {count}", "name it")
    results = {}
    for dataset, rows in table.groupby(datasets):
        frame = rows.drop(columns=DATASET)
        result = of_frame(name, frame, layer, metric, reading)
        results[dataset] = replace(result, preset=preset)
    return results


def of_frame(
    name: str,
    table: pd.DataFrame,
    layer: str,
    metric: str | None,
    reading: Reading,
) -> Result:
    """The same of a table in memory."""
    columns = list(table)
    numbers = [column for column in (VALUE, RANK) if column in columns]
    is_once = len(set(columns)) == len(columns)
    if "query" not in columns or len(numbers) != 1 or not is_once:
        expected = "the columns query and value, or query and rank, each once"
        raise UserError(name, expected, ", ".join(columns), "name them so")
    (number,) = numbers
    with readable(name, "columns of numbers and texts", "correct them"):
        if METRIC in columns and table[METRIC].nunique() > 1:
            found = ", ".join(map(str, table[METRIC].unique()))
            raise UserError(name, "one metric, as FILE:METRIC", found, "name one")
        known = [column for column in COLUMNS if column in columns]
        rows = table[known].astype(object).map(embedding_files.text_of)
    reading.refuse_all_but(name, "first_rank" if number == RANK else "scale")
    notes = []
    if others := sorted(set(columns) - set(COLUMNS)):
        notes.append(f"{name}: not used: the columns {', '.join(others)}")
    layers = sorted(set(rows.get("layer", [OWN])))
    if layer not in layers:
        advice = "choose another with --layer"
        raise UserError(f"{name}: layer", f"rows of {layer}", ", ".join(layers), advice)
    if len(layers) > 1:
        rows = rows[rows["layer"] == layer]
        others = ", ".join(other for other in layers if other != layer)
        notes.append(f"{name}: using layer {layer} (also there: {others})")
    if number == VALUE and metric not in (None, VALUE):
        advice = "if these are ranks, name the column rank"
        raise UserError("--metric", f"{VALUE}, of {name}", metric, advice)
    if "direction" in rows:
        _check_directions(name, rows)  # those of others are left out
        is_asked = rows["direction"].isin(_directions(metric))
        if is_asked.any():
            rows = rows[is_asked]
    return result_of(name, rows, number == RANK, notes, reading)


def refuse_repeated(name: str, files: Sequence[str]) -> None:
    """Raise UserError for a file that is named twice: it would count as two equal
    trainings, so that trainings would seem not to vary."""
    seen: set[str] = set()
    for file in files:
        path = os.path.realpath(file)  # one file may have several paths
        if path in seen:
            raise UserError(
                name,
                expected="another file for each seed",
                found=f"{file} twice",
                do="name the file of each training once",
            )
        seen.add(path)


def _table_of_seeds(name: str, files: Sequence[str], preset: str) -> pd.DataFrame:
    """The rows of all files, or those of `preset` in each; of several files each is a
    seed."""
    ending = Path(files[0]).suffix or ".parquet or .csv"
    with readable(name, f"a table as {ending}", "save it again, or correct the path"):
        refuse_repeated(name, files)
        tables = [table_of(Path(file)) for file in files]
        if len(tables) > 1:
            tables = [table.assign(seed=n) for n, table in enumerate(tables)]
            _refuse_other_columns(files, tables)
        if preset:
            pairs = zip(files, tables, strict=True)
            tables = [rows_chosen(file, preset, table) for file, table in pairs]
        return pd.concat(tables)


def _refuse_other_columns(files: Sequence[str], tables: Sequence[pd.DataFrame]) -> None:
    """Raise UserError for a file that lacks a column of another one: its rows would
    count as those of another layer, preset or metric, and be left out."""
    columns = {column for table in tables for column in table} & set(COLUMNS)
    for file, table in zip(files, tables, strict=True):
        if lacking := sorted(columns - set(table)):
            expected = f"the column {lacking[0]}, as the file of another seed has"
            found = ", ".join(map(str, table))
            raise UserError(file, expected, found, "write the same columns into all")


def texts_in(table: pd.DataFrame, column: str) -> pd.Series:
    """The cells of a column as texts: names may be numbers."""
    return table[column].astype(object).map(embedding_files.text_of)


def rows_chosen(file: str, chosen: str, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the preset, or of the metric, of FILE:NAME. Raises UserError where
    there is none."""
    known: list[str] = []
    for column in CHOSEN_BY:
        if column in table:
            texts = texts_in(table, column)
            if (texts == chosen).any():
                return table[texts == chosen]
            known += texts.unique().tolist()
    found = f"none, but {', '.join(known)}" if known else "none"
    expected = f"rows of {chosen}"
    raise UserError(f"{file}:{chosen}", expected, found, "name one that is there")


def _directions(metric: str | None) -> Sequence[str]:
    """The directions that a metric is about."""
    declared = METRICS.get(metric)
    if declared and declared.direction:
        return [declared.rank_key.column]
    if declared and declared.is_of_folds:
        return [RankKey(way, is_of_folds=True).column for way in FOLDED]
    return SUMMED_DIRECTIONS


# Rows ---------------------------------------------------------------------------------


def result_of(
    name: str,
    rows: pd.DataFrame,
    is_ranks: bool,
    notes: Sequence[str],
    reading: Reading,
    depth: int = 0,
) -> Result:
    """A result of rows of text.

    `depth` is how many items were listed for each query; 0: not known, so that the last
    rank tells it. Raises UserError for the first row that is wrong, and for ranks that
    may count from 0 or from 1.
    """
    if not len(rows):
        raise UserError(name, "a row for each query", "none", CORRECT)
    notes = list(notes)
    if "cluster" not in rows:
        related = "the interval is too narrow if queries are related, as captions of "
        related += "one image are"
        notes.append(f"no clusters, so each query is its own; {related}")
    defaults = {"direction": ONE_WAY, "seed": "0", "cluster": rows["query"], **SAME}
    lacking = {head: value for head, value in defaults.items() if head not in rows}
    rows = rows.assign(**lacking)
    _check_columns(name, rows)
    if is_ranks:
        rows, depth = _ranked(name, rows, depth, reading, notes)
        kind = Kind.RANKS
    else:
        rows = _valued(name, rows, reading, notes)
        # Each seed has no other values than 0 and 1, or 0 and 100.
        seeds = [numbers for _, numbers in rows.groupby("seed")["number"]]
        are_hits = all(x.isin([0, 1]).all() or x.isin([0, 100]).all() for x in seeds)
        kind = Kind.HITS if are_hits and reading.scale is None else Kind.VALUES
    rows = rows.assign(seed=rows["seed"].astype(int))
    _check_seeds(name, rows)
    return Result(
        name=name,
        kind=kind,
        table=rows.pivot(index=KEY, columns="seed", values="number"),
        facts=rows.groupby(KEY)[["cluster", *SAME]].first(),
        depth=depth,
        notes=notes,
        is_scaled=reading.scale is not None,
        is_first_rank_open=is_ranks and reading.first_rank is None and not depth,
    )


def _require(
    name: str,
    rows: pd.DataFrame,
    is_right: pd.Series,
    column: str,
    expected: str,
    advice: str,
) -> None:
    """Raise UserError for the first row that is not right."""
    if is_right.all():
        return
    wrong = rows[~is_right].iloc[0]
    count = int((~is_right).sum())
    evidence = f"'{str(wrong[column]):.{LONGEST}}' ({count} such rows)"
    where = f"{name}: {column} of query {wrong['query']!r}"
    raise UserError(where, expected, evidence, advice)


def _check_columns(name: str, rows: pd.DataFrame) -> None:
    for column in ("season", "preset", *SAME):
        if column in rows:
            first = rows[column].iloc[0]
            is_first = rows[column] == first
            _require(name, rows, is_first, column, f"{first!r} in all rows", CORRECT)
    for column in ("query", "cluster"):
        _require(name, rows, rows[column] != "", column, "a name", CORRECT)
    _check_directions(name, rows)
    is_number = rows["seed"].str.fullmatch(r"[0-9]{1,10}")
    _require(name, rows, is_number, "seed", "a whole number from 0", CORRECT)


def _check_directions(name: str, rows: pd.DataFrame) -> None:
    is_known = rows["direction"].isin(DIRECTIONS)
    expected = f"one of {', '.join(DIRECTIONS)}"
    _require(name, rows, is_known, "direction", expected, CORRECT)


def _check_seeds(name: str, rows: pd.DataFrame) -> None:
    """Each query has a row of each seed, and one cluster."""
    seeds, queries = rows["seed"].nunique(), rows.groupby(KEY)
    is_once = queries["seed"].transform("size") == seeds
    is_once &= ~rows.duplicated([*KEY, "seed"])
    expected = f"one row for each query and each of {seeds} seeds"
    _require(name, rows, is_once, "seed", expected, CORRECT)
    is_same = queries["cluster"].transform("first") == rows["cluster"]
    _require(name, rows, is_same, "cluster", "the same cluster for each seed", CORRECT)


def _valued(
    name: str,
    rows: pd.DataFrame,
    reading: Reading,
    notes: list[str],
) -> pd.DataFrame:
    """With finite numbers. True and false, in any case of letters, become 1 and 0."""
    text = rows[VALUE].str.casefold()
    if text.isin(BOOLEANS).all():
        text = text.map(BOOLEANS)
    number = pd.to_numeric(text, errors="coerce").astype(float)
    advice = CORRECT
    if text.str.endswith("%").any():
        advice = "leave the % out, on both sides"
    _require(name, rows, np.isfinite(number), VALUE, "a number", advice)
    if reading.scale is None:
        _check_stand_in(name, number)
    else:
        number = number * reading.scale
        if reading.scale != 1:
            notes.append(f"{name}: values times {reading.scale:g} (--scale)")
    is_small = number.abs() <= LARGEST
    expected = f"a number of at most {LARGEST:g}"
    if reading.scale not in (None, 1):
        expected += f" when multiplied by {reading.scale:g}"
    _require(name, rows, is_small, VALUE, expected, "write all in a larger unit")
    return rows.assign(number=number)


def _check_stand_in(name: str, number: pd.Series) -> None:
    """Raise UserError for a negative whole number that several rows have, beside none
    but positive ones: -1 often stands for "no value"."""
    negative = number[number < 0]
    others = number[number >= 0]
    if negative.nunique() != 1 or len(negative) == 1 or others.nunique() < 2:
        return
    stand_in = negative.iloc[0]
    if stand_in % 1:
        return
    evidence = f"{stand_in:g} in {len(negative)} of {len(number)} rows, "
    evidence += f"{others.min():.4g} to {others.max():.4g} in the others"
    raise UserError(
        f"{name}: value",
        expected="a value of every query",
        found=evidence,
        do=f"if {stand_in:g} means 'no value', leave these queries out on both sides; "
        "else add --scale 1",
    )


def _ranked(
    name: str, rows: pd.DataFrame, depth: int, reading: Reading, notes: list[str]
) -> tuple[pd.DataFrame, int]:
    """With ranks from 0, and the depth to which these are known."""
    number = embedding_files.ranks_of(rows[RANK])
    expected = "a whole rank from 0, or an empty cell if not found"
    _require(name, rows, number.notna(), RANK, expected, CORRECT)
    if reading.first_rank is None:
        check_first_rank(name, rows.assign(number=number), notes)
    elif reading.first_rank == 1:
        advice = "leave empty what was not found; --first-rank 1,0 reads A from 1 and "
        advice += "B from 0"
        expected = "a rank from 1, as --first-rank says"
        _require(name, rows, number != 0, RANK, expected, advice)
        number -= 1
        notes.append(f"{name}: ranks are read from 1 (--first-rank)")
    is_lost = np.isinf(number)
    if is_lost.any() and not depth:
        # of the lists that lack something, the shortest up to its last rank
        lists = [rows["direction"], rows["seed"]]
        lengths = number.mask(is_lost, -1.0).groupby(lists).max() + 1
        lacks_some = is_lost.groupby(lists).any()
        depth = int(lengths[lacks_some].min())
    if "depth" in rows:  # of the lists, as `score --depth` writes it
        listed = pd.to_numeric(rows["depth"], errors="coerce")
        is_depth = (listed >= 1) & (listed % 1 == 0)
        _require(name, rows, is_depth, "depth", "a whole number from 1", CORRECT)
        is_in_list = is_lost | (number < listed)
        _require(name, rows, is_in_list, RANK, "a rank below its depth", CORRECT)
        depth = int(listed.min())
    if is_lost.any():
        first = rows["query"][is_lost].iloc[0]
        few = f"{is_lost.sum()} of {len(rows)} not found, as {first!r}"
        notes.append(f"{name}: {few}; ranks are known below {depth}")
    return rows.assign(number=number), depth


def check_first_rank(name: str, rows: pd.DataFrame, notes: list[str]) -> None:
    """Raise UserError for ranks that seem to count from 1: there is no 0, or it may
    stand for "not found". A note where there is no 0, and 1 is rare."""
    ranked = rows[np.isfinite(rows["number"])]
    if not len(ranked):
        return
    lists = {}
    for key, numbers in ranked.groupby(["direction", "seed"])["number"]:
        lists[key] = numbers.to_numpy()
    odd = rank_conventions.list_without_first(list(lists.values()))
    if odd is not None:
        lacking = f"none, and 1 in {int((odd == 1).sum())} of {len(odd)} rows"
        advice = "add --first-rank 1 if they count from 1, --first-rank 0 if from 0 "
        advice += "(1,0: A from 1, B from 0)"
        raise UserError(
            f"{name}: rank", "ranks from 0, some of them 0", lacking, advice
        )
    odd = rank_conventions.list_with_rare_zeros(list(lists.values()))
    if odd is not None:
        zeros, ones = int((odd == 0).sum()), int((odd == 1).sum())
        raise zero_for_nothing(name, f"0 in {zeros} rows, 1 in {ones}")
    number = ranked["number"]
    marks_lost = len(ranked) < len(rows)
    if not marks_lost and rank_conventions.zero_may_mean_lost(lists):
        cut = f"no rank beyond {number.max():g}, many close to it, and none empty"
        raise zero_for_nothing(name, cut)
    if number.min() > 0:
        from_1 = "if they count from 1, add --first-rank 1"
        notes.append(f"{name}: no rank is 0; {from_1}")


def zero_for_nothing(name: str, evidence: str) -> UserError:
    """The error for ranks of which 0 may stand for "not found"."""
    advice = "if they count from 1 and 0 means 'not found', leave these empty and add "
    advice += "--first-rank 1; else add --first-rank 0"
    expected = "ranks from 0 of all queries"
    return UserError(f"{name}: rank", expected, evidence, advice)

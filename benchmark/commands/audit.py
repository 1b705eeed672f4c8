"""Look for numbers in a table of recalls that no ranks can give.

    rematch audit table.csv --queries 1000,5000     of images, and of captions
    rematch audit table.csv --queries 1000          of each direction
    rematch audit --papers                          the tables of the papers here
    rematch audit run.log                           what SCAN's or VSE++'s code printed

A table is .csv or .tsv, with a row for each method and columns such as i2t_r1, "t2i
R@5", "R@10" (of a single direction), MedR, MRR, rsum, mean and i2t_mean; the other
columns are its label. Numbers are percentages, with the decimals that are printed: 43.0
is not the same as 43. In a .log or .txt, lines such as "Image to text: ..." and
"rsum: ..." are read, as VSE++, SCAN and the code built on them print them.

Impossible are recalls that this many queries cannot give at the printed decimals, R@1
above R@5 or R@5 above R@10, a MedR or MRR that the recalls do not allow, and sums and
means that do not follow from their recalls. Improbable are recalls by which later ranks
are more frequent than earlier ones. --folds is the number of folds that the numbers are
means of. With --check the exit status is 1 if something is impossible.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from numbers import Integral
from pathlib import Path

import pandas as pd

from benchmark.core.command_line import CHECK, JSON, add_format
from benchmark.core.errors import UserError, printable
from benchmark.core.files import content, json_text, readable
from benchmark.papers.printed_numbers import (
    CUTS,
    WAYS,
    Audited,
    Finding,
    Rounded,
    Rule,
    findings,
)
from benchmark.papers.printed_tables import papers

MOST_TEXT = 1 << 27  # bytes of a table or a log
SEPARATORS = {".csv": ",", ".tsv": "\t"}
LOGS = (".log", ".txt")
LOG_HEADS = {  # of the lines that the evaluation of VSE++ and SCAN prints
    "Image to text": ("i2t_r1", "i2t_r5", "i2t_r10", "i2t_medr"),
    "Text to image": ("t2i_r1", "t2i_r5", "t2i_r10", "t2i_medr"),
    "rsum": ("rsum",),
    "ar": ("i2t_mean",),
    "ari": ("t2i_mean",),
    "Average i2t Recall": ("i2t_mean",),
    "Average t2i Recall": ("t2i_mean",),
}
LOG_ENTRY = re.compile(rf"\b({'|'.join(LOG_HEADS)}):((?:[ ,]+\d+\.\d+)+)")
QUERIES = {  # of the papers' places, by direction
    "flickr30k/test": {"i2t": 1000, "t2i": 5000},
    "mscoco_1k/test": {"i2t": 1000, "t2i": 5000},
    "mscoco_5k/test": {"i2t": 5000, "t2i": 25000},
}
FOLDS = {"mscoco_1k/test": 5}  # or a single set: papers differ
SUMS = {"rsum": "rsum", "sum": "rsum", "mr": "mean", "mean": "mean", "avg": "mean"}
OF_WAYS = ("medr", "mrr", "mean")
RECALLS = [f"r{cut}" for cut in CUTS]
MOST_FOLDS = 1_000_000
SINGLE = 4  # bytes of a number of single precision


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("table", nargs="?", type=Path, metavar="TABLE", help="a .csv, .tsv or .log")
    add("--queries", metavar="N", help="how many, or of i2t and t2i with a comma")
    add("--folds", type=int, default=1, metavar="N", help="that numbers are means of")
    add("--papers", action="store_true", help="the tables of the papers here")
    add_format(parser)
    add(CHECK, action="store_true", help="exit with 1 if something is impossible")


def main(arguments: argparse.Namespace) -> int:
    if arguments.papers == (arguments.table is not None):
        raise UserError(
            "audit",
            expected="a table, or --papers",
            found="both" if arguments.papers else "neither",
            do="name a table, or add --papers",
        )
    if arguments.papers:
        is_asked = {
            "--queries": arguments.queries is not None,
            "--folds": arguments.folds != 1,
        }
        for option, is_given in is_asked.items():
            if is_given:
                raise UserError(
                    option,
                    expected="a table of your own",
                    found="--papers, whose tables have numbers of their own",
                    do=f"leave {option} out",
                )
        rows = list(rows_of_papers())
    else:
        frame = read_printed(arguments.table)
        queries = queries_of(arguments.queries)
        rows = rows_of(frame, queries, arguments.folds, str(arguments.table))
    suspicious = findings(rows)
    if arguments.format == JSON:
        print(json_text([facts_of(finding) for finding in suspicious]), end="")
    else:
        print(shown(suspicious, rows, "" if arguments.papers else " (--queries)"))
    is_wrong = any(finding.is_impossible for finding in suspicious)
    return int(arguments.check and is_wrong)


def facts_of(finding: Finding) -> dict:
    return {
        "rule": str(finding.rule),
        "row": finding.row,
        "numbers": dict(finding.numbers),
        "because": finding.because,
        "is_impossible": finding.is_impossible,
    }


def shown(
    suspicious: Sequence[Finding],
    rows: Sequence[Audited],
    hint: str = " (--queries)",
) -> str:
    """A line for each finding, and what was looked at; `hint` says how to tell the
    numbers of queries."""
    impossible = sum(finding.is_impossible for finding in suspicious)
    lines = [printable(finding.sentence) for finding in suspicious]
    counts = f"{impossible} impossible, {len(suspicious) - impossible} improbable"
    rows_counted = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    lines.append(f"{rows_counted}: {counts}")
    uncounted = sum(not row.queries for row in rows)
    of_one = [row for row in rows if len(set(row.queries.values())) == 1]
    if any(finding.rule == Rule.COUNT for finding in suspicious) and of_one:
        several = "if images have five captions each, run: --queries N,5N"
        lines.append(f"each direction was taken to have as many queries; {several}")
    recalls = []
    for row in rows:
        for metric, number in row.numbers.items():
            if metric.partition("_")[2] in RECALLS:
                recalls.append(number)
    # below 1, with decimals enough to be shares
    if recalls and all(number.in_percent for number in recalls):
        lines.append("these recalls look like fractions: give them in per cent")
    if uncounted:
        what = "whether their queries can give these recalls was not checked"
        lines.append(f"{uncounted} rows without a number of queries{hint}: {what}")
    return "\n".join(lines)


def queries_of(text: str | None) -> dict[str, int]:
    """How many each direction has. Raises UserError for what is no number of them."""
    if text is None:
        return {}
    parts = text.split(",")
    are_numbers = all(re.fullmatch(r"[1-9]\d{0,8}", part) for part in parts)
    if len(parts) > 2 or not are_numbers:
        raise UserError(
            "--queries",
            expected="1000, or 1000,5000",
            found=text,
            do="correct it",
        )
    counts = [int(part) for part in parts]
    if len(counts) == 1:
        return dict.fromkeys(WAYS, counts[0])
    return dict(zip(WAYS[:2], counts, strict=True))


def read_printed(path: Path) -> pd.DataFrame:
    """A table as texts. Raises UserError for what is none."""
    if path.suffix.lower() in LOGS:
        return _read_log(path)
    separator = SEPARATORS.get(path.suffix.lower())
    if separator is None:
        raise UserError(
            path,
            expected="a .csv, .tsv or .log",
            found=path.suffix or "no ending",
            do="save it so",
        )
    # heads as a row: pandas would rename those that are there twice, and take the first
    # column for an index where rows are longer
    with readable(path, f"a table as {path.suffix}", "correct it, or its path"):
        text = content(path, MOST_TEXT).decode("utf-8-sig")
        frame = pd.read_csv(
            StringIO(text),
            sep=separator,
            dtype=str,
            keep_default_na=False,
            header=None,
        )
    return frame[1:].set_axis(frame.iloc[0].tolist(), axis=1)


def _read_log(path: Path) -> pd.DataFrame:
    """A row for each evaluation that a program printed. A new row begins where a metric
    is printed again."""
    with readable(path, "text", "correct its path"):
        text = content(path, MOST_TEXT).decode("utf-8-sig")
    rows: list[dict[str, str]] = [{}]
    for head, printed in LOG_ENTRY.findall(text):
        numbers = re.findall(r"\d+\.\d+", printed)
        # no rule here looks at what follows these, such as the mean rank
        entry = dict(zip(LOG_HEADS[head], numbers, strict=False))
        if rows[-1].keys() & entry.keys():
            rows.append({})
        rows[-1] |= entry
    if not rows[0]:
        raise UserError(
            path,
            expected='lines such as "rsum: 510.0" and "Image to text: 70.1 ..."',
            found="none",
            do="name the file to which the evaluation was printed",
        )
    return pd.DataFrame(rows)


def rows_of(
    frame: pd.DataFrame, queries: dict[str, int], folds: int, where: str
) -> list[Audited]:
    """The rows of a table. Raises UserError for one without recalls, and for what is
    no number in their columns."""
    if not isinstance(folds, Integral) or not 1 <= folds <= MOST_FOLDS:
        raise UserError(
            "--folds",
            expected=f"a whole number, 1 or more, and at most {MOST_FOLDS}",
            found=folds,
            do="correct it",
        )
    if not len(frame):
        raise UserError(
            where, expected="a row for each method", found="none", do="add the rows"
        )
    metrics = [metric_of(str(head)) for head in frame]
    names = list(filter(None, metrics))
    if not names or len(set(names)) < len(names):
        raise UserError(
            where,
            expected="columns such as i2t_r1 or R@1, each metric once",
            found=", ".join(map(str, frame)) or "no columns",
            do="name them so",
        )
    rows = []
    columns = []
    for place, metric in enumerate(metrics):
        column = frame.iloc[:, place]
        columns.append(_as_written(column, f"{where}: {metric}") if metric else column)
    for place, row in enumerate(zip(*columns, strict=True)):
        cells = list(zip(frame, metrics, row, strict=True))
        texts = [str(cell) for _, metric, cell in cells if not metric]
        label = " ".join(filter(None, texts)) or f"row {place + 1}"
        numbers = {}
        for head, metric, cell in cells:
            if not metric:
                continue
            number = _number(f"{where}: {label}: {head}", cell)
            if number is not None:
                numbers[metric] = number
        rows.append(Audited(label=label, numbers=numbers, queries=queries, folds=folds))
    return rows


def _as_written(column: pd.Series, where: str) -> pd.Series:
    """Numbers in single precision, rounded to the six digits that it holds: 43.1, not
    43.099998. Raises UserError for half precision, which holds three."""
    kind = column.dtype
    if getattr(kind, "kind", "") != "f" or kind.itemsize > SINGLE:
        return column
    if kind.itemsize < SINGLE:
        raise UserError(
            where,
            expected="texts, or numbers of single or double precision",
            found=kind,
            do="give the numbers as they are printed",
        )
    return column.astype(object).map(lambda x: float(f"{x:.6g}"), na_action="ignore")


def metric_of(head: str) -> str:
    """The metric of a column: "t2i R@5" is t2i_r5, "R@5" i2t_r5; "": of none."""
    text = re.sub(r"[^a-z0-9]", "", head.casefold())
    if text in SUMS:
        return SUMS[text]
    way = text[:3]
    if way in WAYS:
        text = text.removeprefix(way)
    else:
        way = WAYS[0]
    if text in (*OF_WAYS, *RECALLS):
        return f"{way}_{text}"
    return ""


def _number(where: str, cell: object) -> Rounded | None:
    if isinstance(cell, float):  # without the digits that adding up leaves behind
        cell = round(cell, 6)
    is_empty = cell is None or cell is pd.NA or cell != cell
    text = "" if is_empty else str(cell).strip()
    if text in ("", "-", "\N{EN DASH}", "\N{EM DASH}"):
        return None
    number = Rounded.of(text)
    if number is None:
        raise UserError(
            where,
            expected="a number as it is printed",
            found=text,
            do="correct it",
        )
    return number


def rows_of_papers() -> Iterator[Audited]:
    """All rows of the papers' tables, at every place. Numbers are as exact as their
    column: 43 beside 43.2 may be 43.0."""
    for name, paper in papers().items():
        for number, table in paper.tables.items():
            for row in table.rows:
                for place, values in row.numbers.items():
                    numbers = {}
                    for metric, value in zip(table.metrics, values, strict=True):
                        if value is not None:
                            numbers[metric] = Rounded(value, table.decimals(metric))
                    yield Audited(
                        label=f"{name}/{number}, {place}, {row.label}",
                        numbers=numbers,
                        queries=QUERIES.get(place, {}),
                        folds=FOLDS.get(place, 1),
                    )

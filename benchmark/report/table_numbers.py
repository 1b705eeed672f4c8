"""A table for programs, as CSV and JSON: numbers alone in their columns, and the ids of the rows.

What a page shows as one entry, such as "5.0 ± 1.7" or "[3.1, 6.9]", becomes a column each for the
number, its deviation and the ends of its interval.
"""

import json
import re
from typing import NamedTuple

import pandas as pd

from benchmark.report.markdown import one_line
from benchmark.report.table_formats import Table

NOTE = "note"
PARTS = ("", "sd", "low", "high", "against", "against sd", NOTE)  # behind a heading
MISSING = ("", "-")
AMOUNT = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"

_SD = rf"(?: \N{{PLUS-MINUS SIGN}} ?({AMOUNT}))?"
_NOTE = r"(?: (\*|\N{DAGGER}|of \d+))?"
SHAPES = (  # what an entry may look like, and the parts that its groups are
    (rf"({AMOUNT}){_SD}{_NOTE}", ("", "sd", NOTE)),
    (rf"({AMOUNT}){_SD} against ({AMOUNT}){_SD}", ("", "sd", "against", "against sd")),
    (rf"\[({AMOUNT}), ({AMOUNT})\]{_NOTE}", ("low", "high", NOTE)),
    (rf"({AMOUNT}) to ({AMOUNT})", ("low", "high")),
)


def as_csv(table: Table) -> str:
    r"""Headings and rows (RFC 4180, but lines end with \n); title and bold type are left out, and a
    number that is missing is an empty entry.

    Spreadsheets run an entry that begins like a formula. Such an entry gets an apostrophe in
    front, unless it is a dash or a number.
    """
    shown = columns(table)
    by_head = {place: list(map(_harmless, column.texts)) for place, column in enumerate(shown)}
    frame = pd.DataFrame(by_head)
    frame.columns = [_harmless(column.head) for column in shown]
    return frame.to_csv(index=False, lineterminator="\n")


def as_json(table: Table) -> str:
    """An object with title, heads and rows, whose entries are texts, numbers and null."""
    shown = columns(table)
    values = [list(map(_value, c.texts)) if c.is_of_numbers else c.texts for c in shown]
    rows = list(zip(*values, strict=True))
    content = {"title": table.title, "heads": [column.head for column in shown], "rows": rows}
    return json.dumps(content, indent=2) + "\n"


class Column(NamedTuple):
    """A column for programs, a text per row."""

    head: str
    texts: list[str]
    is_of_numbers: bool  # all texts are numbers, or empty


def columns(table: Table) -> list[Column]:
    """The ids, the words, and the parts of the numbers. What is no number in a column of numbers is
    its part "note"."""
    parts = [Column("id", list(table.ids), is_of_numbers=False)] if table.ids else []
    numbers = range(table.names, len(table.heads) - table.has_remarks)
    for place, head in enumerate(table.heads):
        texts = [row[place].text for row in table.entries]
        parts += _parts(head, texts) if place in numbers else [Column(head, texts, False)]
    return parts


def _value(text: str) -> float | int | None:
    if not text:
        return None
    return int(text) if text.isdecimal() else float(text)


def _parts(head: str, texts: list[str]) -> list[Column]:
    """The parts that some entry of a column has; a column of words stays as it is."""
    split = [_split(" ".join(text.split())) for text in texts]
    if not any(of_entry.keys() - {NOTE} for of_entry in split):
        return [Column(head, texts, is_of_numbers=False)]
    return [
        Column(
            head=f"{head} {part}" if part else head,
            texts=[of_entry.get(part, "") for of_entry in split],
            is_of_numbers=part != NOTE,
        )
        for part in PARTS
        if any(part in of_entry for of_entry in split)
    ]


def _split(text: str) -> dict[str, str]:
    if text in MISSING:
        return {}
    for shape, names in SHAPES:
        match = re.fullmatch(shape, text)
        if match:
            parts = zip(names, match.groups(), strict=True)
            return {name: value for name, value in parts if value is not None}
    return {NOTE: text}


# What begins a formula in a spreadsheet; the wide forms do where the keyboard is Japanese.
FORMULA = re.compile(
    "[=+@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}"
    "\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}-]"
)


# What a spreadsheet takes for a number and never for a formula; in words, a deviation may follow.
BLANK = r"[ \N{NO-BREAK SPACE}]?"
NUMBER = re.compile(rf"{AMOUNT}({BLANK}\N{{PLUS-MINUS SIGN}}{BLANK}{AMOUNT})?|-")


# What spreadsheets pass over at the beginning of a cell, beside white space.
HIDDEN = re.compile("[\\s\u00ad\u200b-\u200d\u2060\ufeff]*")


def _harmless(text: str) -> str:
    # Where the comma is the decimal sign, spreadsheets separate cells by semicolons.
    return ";".join(map(_no_formula, one_line(text).split(";")))


def _no_formula(text: str) -> str:
    start = HIDDEN.match(text).end()
    is_formula = FORMULA.match(text, start) and not NUMBER.fullmatch(text[start:].strip())
    return f"'{text}" if is_formula else text

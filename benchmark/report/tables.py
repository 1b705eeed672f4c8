"""A table whose cells hold numbers, and its renderings: Markdown, CSV, JSON and LaTeX.

A cell of a table's frame is text, a `Number`, an int, or None for what is missing. Text
is plain and comes from anywhere; each rendering escapes it. Imports no torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import floor, log10
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from benchmark.report.markdown import code, inside, one_line, pipe_table

if TYPE_CHECKING:
    import pandas as pd

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"  # narrow cells break before a sign, never after it
ARROW = "\N{RIGHTWARDS ARROW}"
DAGGER = "\N{DAGGER}"  # marks an interval over the test images only
NONE = "\N{EM DASH}"  # a hyphen looks like a minus sign
WHOLE = "d"  # the form of whole numbers, whose intervals are "[1-4]"
# significant ones of numbers for programs: what adding up leaves behind is cut off
DIGITS = 9
# significant ones that claims.json keeps (boards.claims_file): what is shown is rounded
# from these, so that a page from the file and a page from results say the same
KEPT_DIGITS = 6


class Code(str):
    """Text in characters of equal width."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number with what stands beside it: "67.9 -> 27.1 +- 0.4 [24.4, 29.8] *".

    What is None or empty is left out; without a value, `note` stands alone.
    """

    value: float | None = None
    sd: float | None = None
    low: float | None = None  # ends of its interval
    high: float | None = None
    printed: Number | None = None  # what a paper prints for it
    note: str = ""
    form: str = ".1f"  # of all of them, as `format` takes it
    is_best: bool = False  # of its column

    def __str__(self) -> str:
        parts = [] if self.value is None else [_shown(self.value, self.form)]
        if self.sd is not None:
            deviation = _shown(self.sd, self.form.lstrip("+"))
            parts.append(f"{PLUS_MINUS}{NO_BREAK}{deviation}")
        if self.low is not None:
            between = "-" if self.form == WHOLE else f",{NO_BREAK}"
            low, high = _shown(self.low, self.form), _shown(self.high, self.form)
            parts.append(f"[{low}{between}{high}]")
        text = NO_BREAK.join(filter(None, (" ".join(parts), self.note))) or NONE
        if self.printed:
            return f"{self.printed}{NO_BREAK}{ARROW} {text}"
        return text

    def parts(self) -> dict[str, float | str | None]:
        """What a program reads, by the end of its heading."""
        printed = self.printed.value if self.printed else None
        return {
            "": number_for_programs(self.value),
            "sd": number_for_programs(self.sd),
            "low": number_for_programs(self.low),
            "high": number_for_programs(self.high),
            "printed": number_for_programs(printed),
            "note": self.note or None,
        }


def _shown(value: float, form: str) -> str:
    """Without a sign before what is rounded to zero."""
    if form == WHOLE:
        return format(value, form)
    text = format(float(f"{value:.{KEPT_DIGITS}g}"), form)
    is_zero = not text.strip("+-0.")
    return text.lstrip("+-") if is_zero else text


def mean(values: Sequence[float], decimals: int, note: str = "") -> Number | None:
    """Mean and sample standard deviation of `values`; one value stands alone, of none
    there is no number."""
    if not values:
        return None
    form = f".{decimals}f"
    if len(values) == 1:
        form = "d" if isinstance(values[0], int) else form
        return Number(value=values[0], form=form, note=note)
    return Number(value=fmean(values), sd=stdev(values), form=form, note=note)


def signed(
    value: float | None,
    decimals: int,
    ends: Sequence[float] | None = None,
    note: str = "",
) -> Number | None:
    """A difference with its sign, and with an interval where it has one; the note is of
    the interval."""
    if value is None:
        return None
    number = Number(value=value, form=f"+.{decimals}f")
    if ends:
        return replace(number, low=ends[0], high=ends[1], note=note)
    return number


def three_digits(value: float) -> Number:
    """A number that is not negative with three significant digits and no exponent."""
    decimals = 0
    if value > 0:
        decimals = max(0, 2 - floor(log10(value)))
    return Number(value=value, form=f".{decimals}f")


def number_for_programs(value: float | None) -> float | int | None:
    """Without the digits that adding up leaves behind: 120.6, not
    120.60000000000001."""
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class Table:
    """A table with its title. An index of the frame with a name, such as id, is for
    programs."""

    title: str
    frame: pd.DataFrame = field(repr=False)

    @classmethod
    def of(
        cls,
        title: str,
        cells: Sequence[dict] | dict[str, Sequence],
        ids: Sequence | None = None,
    ) -> Table:
        """A table from rows or columns by heading; `ids` name its rows for programs."""
        import pandas as pd

        index = None if ids is None else pd.Index(list(ids), name="id", dtype=object)
        frame = pd.DataFrame(cells, index=index, dtype=object)
        return cls(title, frame.where(frame.notna(), None))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def rows(self) -> list[list[object]]:
        return self.frame.to_numpy(dtype=object).tolist()

    def is_of_numbers(self, head: str) -> bool:
        """Whether a column has numbers, which are aligned at the right."""
        return any(isinstance(cell, Number | int) for cell in self.frame[head])

    def for_programs(self) -> pd.DataFrame:
        """The frame with a column of its own for each part of a number that some cell
        has."""
        import pandas as pd

        columns: dict[str, list] = {}
        if self.frame.index.name:
            columns[self.frame.index.name] = list(self.frame.index)
        for head, cells in self.frame.items():
            split = [_parts_of_cell(cell) for cell in cells]
            if not self.is_of_numbers(head):
                columns[head] = [parts["note"] for parts in split]
                continue
            for part in Number().parts():
                values = [parts.get(part) for parts in split]
                if any(value is not None for value in values):
                    columns[f"{head} {part}".strip()] = values
        return pd.DataFrame(columns, dtype=object)


def _parts_of_cell(cell: object) -> dict[str, object]:
    if isinstance(cell, Number):
        return cell.parts()
    if isinstance(cell, int):
        return {"": cell}
    return {"note": None if cell is None else str(cell)}


def text_of(cell: object) -> str:
    """A cell as a reader sees it, in plain text."""
    return NONE if cell is None else str(cell)


def as_markdown(table: Table) -> str:
    """The table, whose title is left to the heading of the page."""
    heads = []
    aligned = ""
    for head in table.frame:
        heads.append(inside(head))
        aligned += "r" if table.is_of_numbers(head) else "l"
    rows = table.frame.map(_markdown).to_numpy(dtype=object).tolist()
    return f"{pipe_table(heads, rows, aligned)}\n"


def _markdown(cell: object) -> str:
    if isinstance(cell, Code):
        return code(cell)
    text = inside(text_of(cell))
    return f"**{text}**" if isinstance(cell, Number) and cell.is_best else text


def as_csv(table: Table) -> str:
    r"""Headings and rows (RFC 4180, but lines end with \n): numbers alone in their
    columns, those that are missing as empty entries.

    Spreadsheets run text that begins like a formula. Such text gets an apostrophe in
    front.
    """
    import pandas as pd

    columns = {}
    for head, cells in table.for_programs().items():
        columns[no_formula(head)] = [_no_formula(cell) for cell in cells]
    return pd.DataFrame(columns, dtype=object).to_csv(index=False, lineterminator="\n")


def as_json(table: Table) -> str:
    """An object with title, heads and rows, whose entries are texts, numbers and
    null."""
    frame = table.for_programs().astype(object)
    rows = frame.where(frame.notna(), None).to_numpy(dtype=object).tolist()
    content = {"title": table.title, "heads": list(frame), "rows": rows}
    return json.dumps(content, indent=2) + "\n"


def as_latex(table: Table) -> str:
    """A tabular in UTF-8 as readers see it; the document has to load booktabs."""
    frame = table.frame.map(lambda cell: one_line(text_of(cell)))
    return frame.rename(columns=one_line).to_latex(index=False, escape=True)


FORMATS = {"markdown": as_markdown, "csv": as_csv, "json": as_json, "latex": as_latex}

# What begins a formula in a spreadsheet; the wide forms do where the keyboard is
# Japanese. Hidden characters before it are passed over. Where the comma is the decimal
# sign, a semicolon separates.
FORMULA = re.compile(
    "(^|;)(?=[\\s\u00ad\u200b-\u200d\u2060\ufeff]*[=+@\N{FULLWIDTH EQUALS SIGN}"
    "\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}-])"
)


def no_formula(text: str) -> str:
    """`text` on one line that no spreadsheet takes for a formula; a lone hyphen, which
    papers print for what they did not measure, stays one."""
    line = one_line(text)
    return line if line == "-" else FORMULA.sub(r"\1'", line)


def _no_formula(cell: object) -> object:
    return no_formula(cell) if isinstance(cell, str) else cell

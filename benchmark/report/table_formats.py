"""A table, and its renderings for readers: Markdown for pages, LaTeX for papers. Those for programs
are in table_numbers.

Entries are plain text from anywhere; each rendering escapes the characters that are special in its
language.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from benchmark.report.markdown import bold, code, escaped, inside, one_line, pipe_table


class Entry(NamedTuple):
    """An entry of a table that is not plain type."""

    text: str
    is_bold: bool = False
    is_code: bool = False  # on pages: characters of equal width


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table whose first `names` columns hold words and the others numbers.

    With `has_remarks`, the last column holds remarks. Markdown lists them below the table, since a
    sentence between numbers makes a row as tall as a page.
    """

    title: str
    heads: list[str]
    rows: list[list[str | Entry]]
    names: int = 1
    has_remarks: bool = False
    ids: Sequence[str] = ()  # of the rows, for programs; empty: they have none

    def __post_init__(self) -> None:
        words, columns = self.names + self.has_remarks, len(self.heads)
        if self.names < 0 or words > columns:
            raise ValueError(f"{self.title}: {words} columns of words of {columns}")
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.heads):
                raise ValueError(
                    f"{self.title}: row {number}: expected {len(self.heads)} entries, one per "
                    f"heading, found {len(row)}"
                )
        if self.ids and len(self.ids) != len(self.rows):
            raise ValueError(f"{self.title}: {len(self.ids)} ids of {len(self.rows)} rows")

    @property
    def aligned(self) -> str:
        """One letter per column: l for words, r for numbers."""
        numbers = len(self.heads) - self.names - self.has_remarks
        return "l" * self.names + "r" * numbers + "l" * self.has_remarks

    @property
    def entries(self) -> list[list[Entry]]:
        """The rows, with every text as an Entry."""
        return [[x if isinstance(x, Entry) else Entry(x) for x in row] for row in self.rows]


def as_markdown(table: Table) -> str:
    """The table and its remarks, numbered; the title is left to the heading of the page."""
    rows = [[_markdown(entry) for entry in row] for row in table.entries]
    by_row = [escaped(row[-1].text) for row in table.entries] if table.has_remarks else []
    remarks = list(dict.fromkeys(filter(None, by_row)))
    for row, remark in zip(rows, by_row, strict=False):
        row[-1] = str(remarks.index(remark) + 1) if remark else ""
    heads = [inside(head) for head in table.heads]
    numbered = [f"{number}. {remark}" for number, remark in enumerate(remarks, start=1)]
    lines = [pipe_table(heads, rows, table.aligned), *([""] * bool(numbered)), *numbered]
    return "\n".join(lines) + "\n"


def as_latex(table: Table) -> str:
    """A `table` in UTF-8 with its title as caption; the document has to load booktabs."""
    heads = [latex_escaped(head) for head in table.heads]
    rows = [[_latex(entry) for entry in row] for row in table.entries]
    return (
        pd.DataFrame(rows, columns=heads)
        .style.hide(axis="index")
        .to_latex(
            column_format=table.aligned,
            position_float="centering",
            hrules=True,
            caption=latex_escaped(table.title),
        )
    )


def _markdown(entry: Entry) -> str:
    if entry.is_code:
        return code(entry.text)
    text = inside(entry.text)
    return bold(text) if entry.is_bold and text else text


def _latex(entry: Entry) -> str:
    text = latex_escaped(entry.text)
    return rf"\textbf{{{text}}}" if entry.is_bold else text


LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "[": "{[}",  # behind \\\\ it would begin a length
        "]": "{]}",
        "*": "{*}",
        "\N{NO-BREAK SPACE}": "~",
    }
)


def latex_escaped(text: str) -> str:
    """`text` as one line of LaTeX (UTF-8) that shows just these characters."""
    return one_line(text).translate(LATEX)

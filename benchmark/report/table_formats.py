"""A table as data, and its three renderings: Markdown for pages, LaTeX and CSV for export.

Cells are plain text from anywhere; each rendering escapes what means something to its readers.
"""

import csv
import io
import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from benchmark.report.markdown import bold, escaped, inside, table


class Cell(NamedTuple):
    """The text of a cell that is more than text."""

    text: str
    is_bold: bool = False


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table; its first `names` columns hold words and the others numbers.

    Where it has remarks, they are the last column. Markdown tells them below the table, since a
    sentence between numbers makes a row as tall as a page.
    """

    title: str
    heads: list[str]
    rows: list[list[str | Cell]]
    names: int = 1
    has_remarks: bool = False

    def __post_init__(self) -> None:
        words, columns = self.names + self.has_remarks, len(self.heads)
        if self.names < 0 or words > columns:
            raise ValueError(f"{self.title}: {words} columns of words of {columns}")
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.heads):
                raise ValueError(
                    f"{self.title}: row {number}: expected {len(self.heads)} cells, one a head, "
                    f"found {len(row)}"
                )

    @property
    def aligned(self) -> str:
        """A letter a column: l for words, r for numbers."""
        numbers = len(self.heads) - self.names - self.has_remarks
        return "l" * self.names + "r" * numbers + "l" * self.has_remarks

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, every cell a Cell."""
        return [[x if isinstance(x, Cell) else Cell(x) for x in row] for row in self.rows]


def as_markdown(grid: Grid) -> str:
    """The table and its remarks, numbered; pages set its title as their own heading."""
    rows = [[_markdown(cell) for cell in row] for row in grid.cells]
    told = [escaped(row[-1].text) for row in grid.cells] if grid.has_remarks else []
    remarks = list(dict.fromkeys(filter(None, told)))
    for row, remark in zip(rows, told, strict=False):
        row[-1] = str(remarks.index(remark) + 1) if remark else ""
    heads = [inside(head) for head in grid.heads]
    listed = [f"{number}. {remark}" for number, remark in enumerate(remarks, start=1)]
    lines = [table(heads, rows, grid.aligned), *([""] * bool(listed)), *listed]
    return "\n".join(lines) + "\n"


def as_latex(grid: Grid) -> str:
    """A `table` in UTF-8 with its title as caption; the document has to load booktabs."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_escaped(grid.title)}}}",
        rf"\begin{{tabular}}{{{grid.aligned}}}",
        r"\toprule",
        _latex_row([latex_escaped(head) for head in grid.heads]),
        r"\midrule",
        *(_latex_row([_latex(cell) for cell in row]) for row in grid.cells),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def as_csv(grid: Grid) -> str:
    """Heads and rows (RFC 4180, but lines end with \\n); title and bold type are left out.

    Spreadsheets run a cell that begins like a formula. Such a cell gets an apostrophe in front,
    unless it is a number ("-1.5", "-1.5 \N{PLUS-MINUS SIGN} 0.3") or a dash.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_harmless(head) for head in grid.heads])
    writer.writerows([_harmless(cell.text) for cell in row] for row in grid.cells)
    return file.getvalue()


def _markdown(cell: Cell) -> str:
    text = inside(cell.text)
    return bold(text) if cell.is_bold and text else text


def _latex(cell: Cell) -> str:
    text = latex_escaped(cell.text)
    return rf"\textbf{{{text}}}" if cell.is_bold else text


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


# What begins a formula in a spreadsheet; the wide forms do where the keyboard is Japanese.
FORMULA = re.compile(
    "[=+@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}"
    "\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}-]"
)


# To a spreadsheet no function, no file and no other cell: a number, with its deviation or not.
AMOUNT, BLANK = r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", r"[ \N{NO-BREAK SPACE}]?"
NUMBER = re.compile(rf"{AMOUNT}({BLANK}\N{{PLUS-MINUS SIGN}}{BLANK}{AMOUNT})?|-")


def _harmless(text: str) -> str:
    line = _line(text)
    return f"'{line}" if FORMULA.match(line) and not NUMBER.fullmatch(line) else line


# Control characters, line and paragraph separators, and lone surrogates, which no file can hold.
UNSEEN = {"Cc", "Cs", "Zl", "Zp"}


def _line(text: str) -> str:
    """`text` without control characters and line breaks; a no-break space stays one."""
    seen = (" " if unicodedata.category(x) in UNSEEN else x for x in text)
    return re.sub(" +", " ", "".join(seen)).strip(" ")


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
    return _line(text).translate(LATEX)

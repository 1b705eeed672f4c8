"""Tables as text: a first line that names the columns, then rows.

Quotation marks are read in one of two ways:

    enclosing  a field in quotation marks may hold separators, line breaks and doubled
               quotation marks (RFC 4180). Tables with commas or semicolons are so.
    letters    every line is a row, and quotation marks belong to its text. Tables with
               tabs or | are so, if every line is a whole row and no field shows that
               quotation marks enclose it.

A field that encloses a row of the table is refused: its quotation mark was not closed.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from benchmark.core.errors import UserError
from benchmark.core.files import readable

CORRECT = "correct the annotation file"
CLOSE = (
    "close the quotation mark; one that belongs to the text is doubled, in a field in "
    'quotation marks: "A ""quoted"" word"'
)
IMAGE_ENDINGS = ("jpg", "jpeg", "png", "gif", "bmp", "webp", "tif", "tiff", "ppm")
IMAGE_NAME = re.compile(rf".*[^/\\]\.(?:{'|'.join(IMAGE_ENDINGS)})", re.IGNORECASE)
ENCLOSED = re.compile(r'"(?:[^"]|"")*"')  # a field in quotation marks
LINE_BREAK = re.compile(r"\r\n|\r|\n")
SHORTEST = 3  # letters and digits of a name that is known by its pattern


@dataclass(frozen=True)
class Row:
    """The cells of a row, and the line in which it begins, from 1."""

    line: int
    cells: list[str]


@dataclass
class Table:
    """The names of the columns, and the rows that are not empty, up to the first
    fault."""

    columns: list[str]
    rows: list[Row] = field(default_factory=list)
    fault: UserError | None = None
    fault_line: int = 0


@dataclass(frozen=True)
class Layout:
    """How a file separates its columns, and which of them name what a row is about."""

    name: str
    separator: str
    is_padded: bool  # with blanks after the separators
    keys: tuple[int, ...]  # places of the columns

    def error(self, line: int, expected: str, found: object, do: str) -> UserError:
        return UserError(
            f"{self.name}:{line}",
            expected=expected,
            found=found,
            do=do,
        )


def lines_of(text: str) -> list[str]:
    """The lines of a text without their ends. Other characters at which
    `str.splitlines` splits may stand in a caption."""
    lines = LINE_BREAK.split(text)
    return lines if lines[-1] else lines[:-1]


def read(text: str, name: str, separator: str, is_key: Callable[[str], bool]) -> Table:
    """The table in the text of the file `name`.

    is_key  whether a column of this name says what a row is about, for example an image

    Raises UserError, with the line in which a row begins, for a row whose cells are not
    as many as the columns, for a quotation mark that is not closed, for a field that
    encloses a row, for a second line of names, and for columns of one name.
    """
    lines = list(io.StringIO(text, newline="")) or [""]
    with readable(f"{name}:1", "the names of columns", CORRECT):
        heads = next(csv.reader(lines[:1], delimiter=separator), [])
    columns = [head.strip() for head in heads]
    named = [column for column in columns if column]
    if len(set(named)) < len(named):
        raise UserError(
            f"{name}:1",
            expected="every column once",
            found=columns,
            do=CORRECT,
        )
    layout = Layout(
        name=name,
        separator=separator,
        is_padded=lines[0].partition(separator)[2].startswith(" "),
        keys=tuple(place for place, column in enumerate(columns) if is_key(column)),
    )
    if separator in ",;":
        return _without_fault(_enclosing(lines, columns, layout))
    letters = _letters(lines, columns, layout)
    if letters.fault is None and not _shows_enclosing(lines[0], letters, layout):
        return letters
    enclosing = _enclosing(lines, columns, layout)
    # the reading that gets further
    if enclosing.fault and letters.fault_line > enclosing.fault_line:
        return _without_fault(letters)
    return _without_fault(enclosing)


def _without_fault(table: Table) -> Table:
    if table.fault:
        raise table.fault
    return table


# Quotation marks as letters -----------------------------------------------------------


def _letters(lines: list[str], columns: list[str], layout: Layout) -> Table:
    """The table if every line is a row."""
    table = Table(columns)
    for number, line in enumerate(lines[1:], start=2):
        cells = line.rstrip("\r\n").split(layout.separator)
        if layout.is_padded:
            cells = [cell.strip() for cell in cells]
        if not any(cells):
            continue
        if fault := _fault_of(number, cells, columns, layout):
            table.fault = fault
            table.fault_line = number
            return table
        table.rows.append(Row(number, cells))
    return table


def _shows_enclosing(first: str, table: Table, layout: Layout) -> bool:
    """Whether quotation marks enclose fields: those of a column name, of a field with
    doubled marks inside, or of every field in a column. In padded tables only the first
    counts."""
    heads = first.strip().split(layout.separator)
    if any(ENCLOSED.fullmatch(head.strip()) for head in heads):
        return True
    if layout.is_padded:
        return False
    for place in range(len(table.columns)):
        cells = [row.cells[place] for row in table.rows if row.cells[place]]
        enclosed = [cell for cell in cells if ENCLOSED.fullmatch(cell)]
        if enclosed and len(enclosed) == len(cells):
            return True
        if any('""' in cell[1:-1] for cell in enclosed):
            return True
    return False


def _fault_of(
    line: int,
    cells: list[str],
    columns: list[str],
    layout: Layout,
) -> UserError | None:
    """The error for a row with other cells than the columns, or with their names."""
    if len(cells) == len(columns):
        if sorted(map(str.strip, cells)) != sorted(columns):
            return None
        repeated = "a second line with the names of the columns"
        advice = "remove it; if its order differs, save the tables as two files"
        return layout.error(line, "a row", repeated, advice)
    mark = repr(layout.separator)
    expected = f"one entry per column ({len(columns)}), separated by {mark}"
    advice = f"put quotation marks around captions with {mark}, or correct the line"
    if layout.is_padded and layout.separator == "|":
        advice = "correct the line, or save the table with commas and quotation marks"
    return layout.error(line, expected, len(cells), advice)


# Enclosing quotation marks ------------------------------------------------------------


def _enclosing(lines: list[str], columns: list[str], layout: Layout) -> Table:
    """The table if fields may be enclosed in quotation marks. A field that encloses a
    row, which then takes several lines, is its fault."""
    table = Table(columns)
    multiline_rows = []
    text = lines
    if layout.is_padded:
        # csv skips blanks before an opening quotation mark, but not after a closing one
        closing = re.compile(rf'" +(?={re.escape(layout.separator)}|[\r\n]|$)')
        text = [closing.sub('"', line) for line in lines]
    rows = csv.reader(
        text,
        delimiter=layout.separator,
        skipinitialspace=layout.is_padded,
        strict=True,
    )
    start = 1
    try:
        for number, cells in enumerate(rows):
            first = start
            start = rows.line_num + 1
            if number == 0 or not any(cells):
                continue
            if fault := _fault_of(first, cells, columns, layout):
                table.fault = fault
                table.fault_line = first
                break
            table.rows.append(Row(first, cells))
            if start - first > 1:
                multiline_rows.append(table.rows[-1])
    except csv.Error as error:
        table.fault_line = start
        reason = f"something else ({error}) in line {rows.line_num}"
        expected = f"CSV, separated by {layout.separator!r}"
        table.fault = layout.error(start, expected, reason, CLOSE)
    if not multiline_rows:
        return table
    starts = {row.line for row in multiline_rows}
    known: set[str] = set()
    for row in table.rows:
        if row.line not in starts:
            known.update(row.cells[key].strip() for key in layout.keys)
    names = Names(known)
    for row in multiline_rows:
        # the line that has the name of what the row is about
        own = row.line + _breaks(row.cells[: min(layout.keys, default=0)])
        last = row.line + _breaks(row.cells)
        for number in range(row.line, last + 1):
            line = lines[number - 1].strip()
            if number != own and _is_row(line, len(table.columns), names, layout):
                evidence = f"lines {row.line} to {last} in one, of which line {number} "
                evidence += f"is a row of its own ({line!r:.60})"
                expected = "a row that ends before the next one begins"
                table.fault = layout.error(row.line, expected, evidence, CLOSE)
                table.fault_line = row.line
                return table
    return table


def _breaks(cells: Iterable[str]) -> int:
    """How many line breaks there are."""
    return sum(len(LINE_BREAK.findall(cell)) for cell in cells)


def _is_row(line: str, columns: int, names: "Names", layout: Layout) -> bool:
    """Whether it has enough separators, and an image in the place of one."""
    # without blanks, and without a quotation mark that opens or closes a field
    cells = [cell.strip().strip('"').strip() for cell in line.split(layout.separator)]
    if len(cells) < columns:
        return False
    # a key counts from either end: a caption may hold separators
    for key in layout.keys:
        if cells[key] in names or cells[key - columns] in names:
            return True
    return False


class Names:
    """Names of images or other items, and what is likely to be one: a file name of
    an image, one with an ending that they have, or a text of the same letters and
    digits."""

    def __init__(self, names: Iterable[str]) -> None:
        self.known = set(names)
        self.endings = {_ending(name) for name in self.known} - {""}
        self.patterns = {_pattern(name) for name in self.known if _has_pattern(name)}

    def __contains__(self, text: str) -> bool:
        if text in self.known or IMAGE_NAME.fullmatch(text):
            return True
        if _ending(text) in self.endings:
            return True
        return _has_pattern(text) and _pattern(text) in self.patterns


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix.casefold()


def _has_pattern(name: str) -> bool:
    return len(name) >= SHORTEST and any(character.isdigit() for character in name)


def _pattern(name: str) -> str:
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", name))

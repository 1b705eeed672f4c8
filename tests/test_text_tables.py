"""Tables as text: columns by their names, quotation marks as fields or as letters, and
rows that are swallowed by a quotation mark."""

import csv
import io
import itertools

import pytest
from refusals import refused

from benchmark.readers import text_tables
from benchmark.readers.text_tables import Names

FILES = [f"p{number}.jpg" for number in range(6)]
SEPARATORS = (",", ";", "\t", "|")


def is_key(column: str) -> bool:
    return column == "image"


def read(text: str, separator: str = ",") -> list[dict[str, str]]:
    table = text_tables.read(text, "c.csv", separator, is_key)
    return [dict(zip(table.columns, row.cells, strict=True)) for row in table.rows]


def written(
    columns: list[str], captions: list[str], separator: str, **options: object
) -> str:
    """A table as the csv module writes it."""
    facts = {"image": FILES, "caption": captions, "split": ["test"] * len(FILES)}
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator, lineterminator="\n", **options)
    writer.writerow(columns)
    writer.writerows(zip(*(facts[column] for column in columns), strict=True))
    return file.getvalue()


ORDERS = [
    list(order) for order in itertools.permutations(("image", "caption", "split"))
]
ORDERS += [["image", "caption"], ["caption", "image"]]


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("columns", ORDERS, ids="-".join)
def test_columns_go_by_their_names(separator, columns):
    captions = [f"Thing {number}." for number in range(6)]
    rows = read(written(columns, captions, separator), separator)
    assert [row["image"] for row in rows] == FILES
    assert [row["caption"] for row in rows] == captions


# Honest captions ----------------------------------------------------------------------

HONEST = {
    "a poem": "Roses are red,\nviolets; are | blue,\tdear,\n1, 2, buckle my shoe",
    "a quoted word": 'A sign says "fish", twice.',
    "a list": "Shown are:\n- a dog, brown, old\n- a cat, black, young",
    "Windows line breaks": "One,\r\ntwo,\r\nthree,",
    "rare line breaks": "One\u2028two\x0bthree\x85four",
    "prices": "Fish: 3.50, 4.20, or 5\nMeat: 6.10, 7, or 8",
}


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("columns", ORDERS, ids="-".join)
@pytest.mark.parametrize("name", HONEST)
def test_captions_that_are_quoted_are_read(separator, columns, name):
    captions = [HONEST[name] if n % 3 == 1 else f"Thing {n}." for n in range(6)]
    rows = read(written(columns, captions, separator), separator)
    assert [row["caption"] for row in rows] == captions
    assert [row["image"] for row in rows] == FILES


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_table_in_which_all_fields_are_quoted(separator):
    captions = [f"Thing {number}." for number in range(6)]
    text = written(["image", "caption"], captions, separator, quoting=csv.QUOTE_ALL)
    assert [row["caption"] for row in read(text, separator)] == captions


@pytest.mark.parametrize("separator", ["\t", "|"])
@pytest.mark.parametrize(
    "caption", ['"Fish" says a sign', '"Fish', 'wheels of 20"', '"Fish"']
)
def test_between_tabs_and_bars_quotation_marks_are_letters(separator, caption):
    captions = [caption if number == 3 else f"Thing {number}." for number in range(6)]
    lines = [
        "image@caption",
        *(f"{f}@{c}" for f, c in zip(FILES, captions, strict=True)),
    ]
    rows = read("\n".join(lines).replace("@", separator), separator)
    assert [row["caption"] for row in rows] == captions


def test_in_a_padded_table_quotation_marks_are_letters():
    captions = [
        '" Fish " says a sign .',
        '"Fish"',
        'Wheels of 20 "',
        '""',
        "A dog .",
        "A cat .",
    ]
    lines = ["image| number | caption"]
    lines += [f"{f}| 0 | {c}" for f, c in zip(FILES, captions, strict=True)]
    rows = read("\n".join(lines), "|")
    assert [row["caption"] for row in rows] == captions
    assert [row["image"] for row in rows] == FILES


def test_a_padded_table_with_line_breaks_in_quotation_marks():
    lines = [
        "image | caption | split",
        *(f'{f} | "One,\ntwo | three" | test' for f in FILES),
    ]
    rows = read("\n".join(lines), "|")
    assert {row["caption"] for row in rows} == {"One,\ntwo | three"}
    assert {row["split"] for row in rows} == {"test"}


# Swallowed rows -----------------------------------------------------------------------


def swallowing(
    columns: list[str], first: int, last: int, files: list[str], end: str = "\n"
) -> str:
    """A table that nobody quoted: one caption begins with a quotation mark, a later one
    ends with one."""
    captions = [f"Thing {number}." for number in range(len(files))]
    captions[first], captions[last] = '"Fresh fish', 'Wheels of 20"'
    facts = {"image": files, "caption": captions, "split": ["test"] * len(files)}
    rows = zip(*(facts[column] for column in columns), strict=True)
    return end.join([",".join(columns), *map(",".join, rows)])


NAMES = {
    "file names": FILES,
    "paths": [f"images/p{number}.PNG" for number in range(6)],
    "numbers": [f"00000{number}" for number in range(6)],
    "other endings": [f"{word}.jfif" for word in ("a", "bee", "c", "dog", "e", "f")],
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [2, 4])
@pytest.mark.parametrize("columns", ORDERS, ids="-".join)
@pytest.mark.parametrize("files", NAMES.values(), ids=NAMES)
def test_a_field_that_encloses_rows_is_refused_where_it_begins(
    columns, last, files, end
):
    with refused("c.csv:3", "ends before", f"lines 3 to {last + 2}", "close"):
        read(swallowing(columns, 1, last, files, end))


@pytest.mark.parametrize("separator", ["\t", "|"])
def test_where_rows_hold_enclosed_fields_a_swallowed_row_is_refused(separator):
    lines = [
        "image@caption",
        "p0.jpg@One.",
        'p1.jpg@"A ""word""."',
        'p2.jpg@"Fresh',
        'p3.jpg@20"',
    ]
    with refused("c.csv:4", found="line 5 is a row of its own"):
        read("\n".join(lines).replace("@", separator), separator)


@pytest.mark.parametrize(
    ("lines", "where", "found"),
    [
        (["p0.jpg,One.", 'p1.jpg,"Two.', "p2.jpg,Three."], "c.csv:3", "in line 4"),
        (["p0.jpg,One.", 'p1.jpg,"Two', 'p2.jpg,A "big" dog'], "c.csv:3", "in line 4"),
        (["p0.jpg,One.", 'p1.jpg,"Fish" says'], "c.csv:3", "in line 3"),
        (["p0.jpg,One.", "p1.jpg,One, two"], "c.csv:3", "3"),
        (
            ["p0.jpg,One.", "image,caption", "p1.jpg,Two"],
            "c.csv:3",
            "second line",
        ),
        (
            ["p0.jpg,One.", "caption,image", "Two,p1.jpg"],
            "c.csv:3",
            "second line",
        ),
    ],
)
def test_what_is_no_table_is_refused_in_its_line(lines, where, found):
    with refused(where, found=found):
        read("\n".join(["image,caption", *lines]))


def test_an_enclosed_row_is_known_by_its_last_cell():
    lines = ["caption,image", '"A dog, it runs,a.jpg', "B, and c,b.jpg", 'C",c.jpg']
    with refused("c.csv:2", "before the next", "lines 2 to 4"):
        text_tables.read("\n".join(lines), "c.csv", ",", "image".__eq__)


def test_of_two_readings_the_one_that_gets_further_says_what_is_wrong():
    """Letters: the row that lacks a separator; enclosing: the quotation mark before
    it."""
    lines = ["image| number| caption", 'p0.jpg| 0| "Fish" says', "p1.jpg| 0   A dog"]
    with refused("c.csv:3", "(3)", "2", "correct the line"):
        read("\n".join(lines), "|")


def test_columns_of_one_name_are_refused():
    with refused("c.csv:1", "every column once", "caption"):
        read("image,caption,caption\np0.jpg,A.,B.")


def test_likely_names_are_told_from_texts():
    names = Names({"p7.jpg", "000123", "dog"})
    for name in ("p7.jpg", "other.JPEG", "000777", "dog"):
        assert name in names, name
    for text in ("7", "123", "cat", "Roses are red", "e.g.", "3.50", ""):
        assert text not in names, text

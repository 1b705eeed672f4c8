"""Hostile text in exports: LaTeX, CSV, Markdown, JSON and TREC show it, and nothing
runs."""

import csv
import io
import json
import re

import pytest

from benchmark.report.markdown import code, escaped, inside
from benchmark.report.tables import (
    Number,
    Table,
    as_csv,
    as_json,
    as_latex,
    as_markdown,
)

FORMULA = '=HYPERLINK("http://evil.example")'
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
CONTROL = "".join(map(chr, [*range(32), *range(0x7F, 0xA0)])) + "\u2028\u2029"
HOSTILE = {
    "pipe": "a | b **fat** \n\n# top",
    "specials": r"\ { } $ & # ^ _ ~ %",
    "file": r"\input{/etc/passwd}",
    "formula": FORMULA,
    "call": "@SUM(1+1)*cmd|' /C calc'!A0",
    "return": "\r\n+1+1",
    "minus": "-2+3+cmd|' /C calc'!A0",
    "tab": "\t=1+1",
    "separator": "x;=1+1",
    "wide": "\u00a0=1+1",
    "control": f"a{CONTROL}b",
    "turning": f"a{TURNING}b",
    "surrogate": "a\ud800b\udfff",
    "link": "[x](javascript:alert(1)) <javascript:alert(1)> javascript:alert(1)",
    "picture": "![x](file:///etc/passwd) <img src=x onerror=alert(1)>",
    "details": "</details><details open><summary>a</summary><script>alert(1)</script>",
    "fence": "```\n`x` ~~~",
    "math": "$`x`$ $$x$$ :dog: @me #1",
    "empty": "",
}
RUNS = re.compile(r"[=+@\t\r\uff0b\uff1d\uff0d\uff20-]")
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?|-")


def table_of(*texts: str) -> Table:
    cells = {str(number): text for number, text in enumerate(texts)}
    return Table.of("\n".join(("T", *texts)), [cells | {"n": Number(value=-1.5)}])


def assert_latex(latex: str) -> None:
    commands = set(re.findall(r"\\([A-Za-z]+)", latex))
    signs = {"textbackslash", "textasciicircum", "textasciitilde", "space"}
    assert commands <= {"begin", "end", "toprule", "midrule", "bottomrule"} | signs
    assert not re.search(r"(?<!\\)[#$%_]", latex)
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    assert not re.search(f"[{TURNING}]", latex)


def assert_csv(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in rows}) == 1
    assert text.count("\n") == len(rows)  # a cell has no line breaks
    for cell in (cell for row in rows for cell in row):
        for part in re.split(r"[;\t]", cell):  # what spreadsheets may take for cells
            start = re.sub(r"^[\s\u200b\ufeff\u2060]+", "", part)
            assert not RUNS.match(start) or NUMBER.fullmatch(start.strip()), cell
        assert not re.search(f"[{TURNING}{re.escape(CONTROL)}\ud800-\udfff]", cell)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_rendering_runs_it_or_breaks(name):
    assert_latex(as_latex(table_of(HOSTILE[name])))
    text = as_csv(table_of(HOSTILE[name], f"x {HOSTILE[name]}"))
    assert_csv(text)
    assert text.splitlines()[1].endswith(",-1.5")
    lines = as_markdown(table_of(HOSTILE[name])).splitlines()
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in lines] == [3] * 3
    assert not re.search(r"[<>\[\]`$&*]", re.sub(r"\\[!-/:-@\[-`{-~]", "", lines[2]))
    assert as_json(table_of(HOSTILE[name])).isascii()
    assert json.loads(as_json(table_of(HOSTILE[name])))["rows"] == [
        [HOSTILE[name], -1.5]
    ]


@pytest.mark.parametrize("render", [escaped, inside, code])
@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_is_one_line_without_a_construct(render, name):
    shown = render(HOSTILE[name])
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert not re.search(f"[{TURNING}{re.escape(CONTROL)}]", shown)
    if render is code:
        assert shown.count("`") == 2 and "|" not in shown
    else:
        assert not re.search(
            r"(?<!\\)(?:\\\\)*[<>|`\[\]]", re.sub(r"\\[^\w\s]", "", shown)
        )

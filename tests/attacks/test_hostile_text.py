"""Hostile text in exports: LaTeX, CSV, Markdown, JSON and TREC show it, and nothing
runs. Hostile names, which become folders, shell words and links, and options outside of
their ranges are refused."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
import yaml

from benchmark.__main__ import main
from benchmark.core.errors import UserError
from benchmark.core.names import LONGEST, checked_name
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
NAMES = [
    *(
        "a; touch x #",
        "a b",
        "$(touch x)",
        "`touch x`",
        "a|b",
        "a&b",
        "a>b",
        "a'b",
        'a"b',
        "a\nb",
    ),
    *(
        "/tmp/x",
        "../x",
        "..",
        ".",
        "",
        "~",
        "-rf",
        "--help",
        "_drawing",
        "a/b",
        "a\\b",
        "a:b",
    ),
    *(
        "a.b",
        "${x}",
        "%s",
        "ä",
        "a\0b",
        "\ud800",
        "x" * (LONGEST + 1),
        "x" * 5000,
        "a](http://b)",
    ),
]
SEASON = {"title": "T", "datasets": {"shapes": {}}, "presets": ["cca"], "seeds": [0]}


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


# Names and options --------------------------------------------------------------------


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def refused_line(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    """The line of the error; nothing but the season file is written."""
    before = everything()
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1 and said.err.startswith("rematch: "), (
        said.err
    )
    assert "expected" in said.err and len(said.err) < 2000
    assert everything() == before
    return said.err


def everything() -> list[str]:
    return sorted(str(path) for path in Path.cwd().parent.rglob("*"))


def write(name: str = "mine.yaml", **changes: object) -> str:
    Path(name).write_text(yaml.safe_dump(SEASON | changes))
    return name


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_is_no_path_and_no_command(name, capsys):
    line = refused_line(
        capsys, "season", write(datasets={name: {"reader": "shapes"}}, presets=[name])
    )
    assert "mine.yaml" in line
    with pytest.raises(UserError):
        checked_name(name, "x")
    settings = {"image": {"network": name}, "sentence": {name: {}}}
    refused_line(capsys, "season", write(datasets={"shapes": settings}))


@pytest.mark.parametrize(
    "name", ["...yaml", "..yaml", "a b.yaml", "shared.yaml", "run.yaml"]
)
def test_a_season_file_gives_no_other_folder(name, capsys):
    refused_line(capsys, "season", write(name))


@pytest.mark.parametrize("verb", ["report", "verify"])
@pytest.mark.parametrize("name", ["../x", "/tmp", "a;b", ".."])
def test_a_season_on_the_command_line_is_a_name(verb, name, capsys):
    refused_line(
        capsys, *([verb, "--season", name] if verb == "report" else [verb, name])
    )

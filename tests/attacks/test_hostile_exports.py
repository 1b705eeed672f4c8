"""Hostile text in exports: LaTeX, CSV, Markdown, JSON and TREC show it, and nothing runs."""

import csv
import io
import json
import re
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
import report_seasons as seasons
from builders import outcome, write_arrays
from refusals import refused
from report_readers import assert_contained, links, markdown_pages, seen

from benchmark.__main__ import main
from benchmark.analysis import boards
from benchmark.analysis.trec_export import write_trec
from benchmark.core.files import read_json, write_json
from benchmark.data.prepared_tables import Prepared
from benchmark.report.__main__ import FORMATS
from benchmark.report.markdown import code, escaped, inside
from benchmark.report.table_formats import Table, as_latex
from benchmark.report.table_numbers import as_csv, as_json
from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import DatasetSettings
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season

FORMULA = '=HYPERLINK("http://evil.example")'
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
CONTROL = "".join(map(chr, [*range(32), *range(0x7F, 0xA0)])) + "\u2028\u2029"
HOSTILE = {
    "specials": r"\ { } $ & # ^ _ ~ %",
    "file": r"\input{/etc/passwd}",
    "shell": r"\immediate\write18{rm -rf ~}",
    "end": r"\end{tabular}\end{table}\end{document}",
    "row": r"a \\ b & c \\[9cm] \hline",
    "caret": "^^5cinput{x} ^^M",
    "comment": "100 % of it",
    "macro": r"\def\x{\x}\x \csname end\endcsname",
    "formula": FORMULA,
    "call": "@SUM(1+1)*cmd|' /C calc'!A0",
    "tab": "\t=1+1",
    "return": "\r\n+1+1",
    "minus": "-2+3+cmd|' /C calc'!A0",
    "separator": "x;=1+1",
    "quote": 'a","=1+1',
    "hidden": "\u200b\ufeff=1+1",
    "wide": "\u00a0=1+1",
    "control": f"a{CONTROL}b",
    "turning": f"a{TURNING}b",
    "surrogate": "a\ud800b\udfff",
    "newlines": "a\n\n# top\n\n- b\r\n1. c",
    "link": "[x](javascript:alert(1)) <javascript:alert(1)> javascript:alert(1)",
    "picture": "![x](file:///etc/passwd) <img src=x onerror=alert(1)>",
    "details": "</details><details open><summary>a</summary><script>alert(1)</script>",
    "comment out": "<!-- --> <![CDATA[ ]]> <?php ?>",
    "reference": "[a]: http://evil.example 'b'\n\n[a] [^1]",
    "fence": "```\n`x` ~~~",
    "target": 'a](b) "c" (d) <e>',
    "mail": "www.evil.example http://evil.example evil@evil.example",
    "math": "$`x`$ $$x$$ :dog: @me #1",
    "empty": "",
    "blank": " \t ",
}
TABLE_COMMANDS = {
    *("begin", "end", "centering", "caption", "toprule", "midrule", "bottomrule", "textbf"),
}
SHOWING = {
    *("textbackslash", "textasciicircum", "textasciitilde", "textless", "textgreater", "textbar"),
}
RUNS = re.compile(r"[=+@\t\r\uff0b\uff1d\uff0d\uff20-]")
AMOUNT = r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?"
NUMBER = re.compile(rf"{AMOUNT}(\s?\N{{PLUS-MINUS SIGN}}\s?{AMOUNT})?|-")

# Of papers and their code, written by hand in benchmark/papers; and paths with a heading.
SITES = r"https://(arxiv\.org|github\.com|hdl\.handle\.net)/"
INSIDE = r"[\w./-]+(#[\w-]+)?"


def table_of(*texts: str) -> Table:
    return Table(
        title="\n".join(("T", *texts)), heads=[*texts, "n"], rows=[[*texts, "-1.5"]], names=0
    )


def commands(latex: str) -> set[str]:
    """The commands of a text, as TeX reads them."""
    return {x[1:] for x in re.findall(r"\\[A-Za-z]+|\\.", latex) if x[1:].isalpha()}


def starts(cell: str) -> list[str]:
    """What spreadsheets may take for cells: of all separators, without what they do not show."""
    parts = re.split(r"[;\t]", cell)
    return [re.sub(r"^[\s\u200b\ufeff\u2060]+", "", part) for part in parts]


def assert_latex(latex: str) -> None:
    assert commands(latex) <= TABLE_COMMANDS | SHOWING
    bare = re.sub(r"\\[^A-Za-z]", "", latex)
    assert not re.search(r"[#$%^_]", bare)
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}")
    assert not re.search(f"[{TURNING}]", latex)


def assert_csv(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in rows}) == 1
    assert text.count("\n") == len(rows)  # a cell has no line breaks
    for cell in (cell for row in rows for cell in row):
        for start in starts(cell):
            assert not RUNS.match(start) or NUMBER.fullmatch(start.strip()), cell
        assert not re.search(f"[{TURNING}{re.escape(CONTROL)}\ud800-\udfff]", cell)


@pytest.mark.parametrize("name", HOSTILE)
def test_latex_shows_it(name):
    latex = as_latex(table_of(HOSTILE[name]))
    assert_latex(latex)
    assert len(latex.splitlines()) == 11
    latex.encode()


def test_latex_takes_equal_headings():
    latex = as_latex(Table(title="T", heads=["a", "a"], rows=[["1", "2"], ["3", "4"]]))
    assert "a & a" in latex and "3 & 4" in latex


@pytest.mark.parametrize("name", HOSTILE)
def test_a_spreadsheet_runs_nothing(name):
    text = as_csv(table_of(HOSTILE[name], f"x {HOSTILE[name]}"))
    assert_csv(text)
    assert text.splitlines()[1].endswith(",-1.5")
    text.encode()


@pytest.mark.parametrize("name", HOSTILE)
def test_json_holds_the_very_text(name):
    text = as_json(table_of(HOSTILE[name]))
    assert text.isascii()
    assert json.loads(text)["rows"] == [[HOSTILE[name], -1.5]]


@pytest.mark.parametrize("text", ["-1.5", "+0.3", "-", "a; b", "2 seeds; -1.5", "x = y; z-1"])
def test_numbers_and_sentences_stay(text):
    assert as_csv(table_of(text)).splitlines()[1] in (f"{text},-1.5", f'"{text}",-1.5')


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
        assert not re.search(r"(?<!\\)(?:\\\\)*[<>|`\[\]]", re.sub(r"\\[^\w\s]", "", shown))


# A whole report ----------------------------------------------------------------------------------

EVERYTHING = " ".join(text for name, text in HOSTILE.items() if name != "surrogate")


@pytest.fixture(scope="module", autouse=True)
def played(tmp_path_factory) -> None:
    """A season in the working directory whose card and records are hostile wherever they hold
    text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("hostile"))
        seasons.conclude_from_few(patch)
        seasons.draw_nothing(patch)
        patch.setattr(boards, "presets", seasons.presets_once)
        declared = Season(
            title=EVERYTHING.replace("\0", ""),
            datasets={"open": DatasetSettings(reader="folder")},
            presets=["scan_t2i_avg", "scan_i2t_lse"],
            seeds=[0],
        )
        params = resolve("try", declared)
        write_params(params)
        leakage = {
            "notes": [EVERYTHING],
            "pictures": [[EVERYTHING, FORMULA]],
            "near_pictures": [[EVERYTHING, "=1+1", 3]],
            "near_pictures_total": 1,
            "captions": 0,
            "near_captions": 0,
            "items": dict.fromkeys(
                ("pictures", "near_pictures", "captions", "near_captions"),
                {"train": 1, "val": 0, "test": 1},
            ),
        }
        facts = dict.fromkeys(("title", "source", "licence"), EVERYTHING)
        seasons.prepare("open", **facts, notes=[EVERYTHING], leakage=leakage)
        for cell in seasons.cells(params):
            seasons.play(cell, 0.5, machine=EVERYTHING, **hostile_facts())
        seasons.lose("open", "scan_i2t_lse", 0, EVERYTHING)
        yield


def hostile_facts() -> dict:
    weights = {"file": EVERYTHING, "sha256": EVERYTHING}
    return {
        "deviations": [EVERYTHING],
        "image_features": {"encoder": EVERYTHING, "weights": weights},
        "text_features": {"encoder": EVERYTHING, "vectors": EVERYTHING},
        "options": {"epochs": EVERYTHING},
    }


def printed(capsys, *words: str) -> str:
    assert main(["report", *words]) == 0
    return capsys.readouterr().out


def test_every_page_holds_what_others_wrote(capsys):
    printed(capsys)
    pages = markdown_pages()
    assert {path.stem for path in pages} >= {"README", "claims", "open", "scan"}
    for path in pages:
        assert_contained(path)
        for target in links(path):
            assert re.fullmatch(f"({SITES})?{INSIDE}", target), target
        assert "\u202e" not in path.read_text()
    data = seen(seasons.FOLDER / "datasets/open.md")
    assert "javascript:alert(1)" in data and r"\input{/etc/passwd}" in data  # as text


@pytest.mark.parametrize(("form", "check"), [("latex", assert_latex), ("csv", assert_csv)])
def test_every_table_can_be_exported(capsys, form, check):
    names = printed(capsys, "--table", "list").splitlines()
    assert len(names) > 20
    for name in [name for name in names if name.startswith("open/")]:
        check(printed(capsys, "--table", name, "--format", form))


def test_json_is_json_without_text_of_others(capsys):
    text = printed(capsys, "--json")
    assert set(json.loads(text)) == {"open"}
    assert "evil" not in text


def test_an_unknown_name_cannot_break_the_line(capsys):
    assert main(["report", "--table", "a\nb\x1b[2J\u202e"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "\x1b" not in said


def test_a_file_in_the_place_of_the_folder_is_one_line(capsys):
    Path("taken").write_text("mine")
    assert main(["report", "--trec", "taken"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert Path("taken").read_text() == "mine"


# TREC ---------------------------------------------------------------------------------------------

IDS = ["two words", "tab\there", "line\nbreak", "\u2028", "a\u00a0b", "%20", '"q"', "\u202ex", "\0"]


def retrieval(images: list[str], captions: list[str]) -> Prepared:
    """A test split of these ids, one caption per image."""
    tables = {
        "images": pd.DataFrame({"image_id": images, "split": "test", "group": images}),
        "captions": pd.DataFrame({"caption_id": captions, "image_id": images, "split": "test"}),
    }
    regions = pd.DataFrame({"image_id": []})
    return Prepared(**tables, regions=regions, card={}, folder=Path("data/prepared/odd"))


def cell_of(folder: Path, items: np.ndarray):
    write_arrays(folder, "retrieved", i2t=items, t2i=items)
    return outcome(folder=folder, dataset="odd")


def test_ids_shift_no_column(tmp_path):
    data = retrieval(IDS, [f"{text}#0" for text in IDS])
    ring = np.arange(len(IDS))[:, None]
    write_trec([cell_of(tmp_path / "0", ring)], data, tmp_path / "trec")
    for path in sorted((tmp_path / "trec").iterdir()):
        lines = path.read_text().split("\n")[:-1]
        assert len(lines) == len(IDS) and path.read_text().isascii()
        assert {len(line.split()) for line in lines} == {6 if path.suffix == ".run" else 4}
        assert [unquote(line.split()[0]).removesuffix("#0") for line in lines] == IDS


@pytest.mark.parametrize("odd", ["", None, 3, float("nan")])
def test_an_id_that_is_none_is_refused(tmp_path, odd):
    data = retrieval(["a", "b"], ["c", odd])
    with refused("captions.parquet", "text", do="run: "):
        write_trec([], data, tmp_path / "trec")
    assert not list(tmp_path.glob("trec/*.qrels"))


@pytest.mark.parametrize(
    "items",
    [
        np.array([[0], [-1]]),
        np.array([[0.5], [1]]),
        np.array([0, 1]),
        np.zeros((2, 0), int),
        np.array([["a"], ["b"]]),
    ],
)
def test_items_that_are_none_are_refused(tmp_path, items):
    data = retrieval(["a", "b"], ["c", "d"])
    with refused("scores/retrieved.npz: i2t", "2 queries over 2 items", do="run: dvc repro"):
        write_trec([cell_of(tmp_path / "0", items)], data, tmp_path / "trec")


def test_a_name_on_a_card_is_no_path(capsys):
    """Cards and records hold names, too; none of them becomes a path or the target of a link."""
    path = Path("data/prepared/open/card.json")
    before = path.read_text()
    write_json(path, read_json(path) | {"dataset": "../../x](http://evil)", "reader": "../evil"})
    printed(capsys)
    for page in markdown_pages():
        assert "evil" not in " ".join(links(page))
    path.write_text(before)


def test_formats_are_all_tested():
    assert set(FORMATS) == {"markdown", "latex", "csv", "json"}

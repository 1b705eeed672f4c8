"""Tables as data: text from anywhere comes through each rendering whole, and does nothing there."""

import csv
import io
import json
import re
import shutil
import subprocess

import pandas as pd
import pytest

from benchmark.report.table_formats import (
    Entry,
    Table,
    as_latex,
    as_markdown,
    latex_escaped,
)
from benchmark.report.table_numbers import as_csv, as_json

HOSTILE = [
    "a | b",
    "<script>alert(1)</script>",
    "](http://evil.example)",
    "x & y",
    "100 %",
    "two_branch_1",
    "\\input{/etc/passwd} \\\\ \\",
    "one\n\ntwo\r\n\tthree",
    "\"double\" 'single' `back` ''",
    "$x^2$ # ~ {braces} }",
    "[0pt] * a",
    "-- --- ,, << ?`",
    "60.5 \N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}0.7 \N{MICRO SIGN}s",
    "Ho\N{LATIN SMALL LETTER S WITH CARON}ek Gro\N{LATIN SMALL LETTER SHARP S} \u4e2d \U0001f415",
    "\N{LATIN SMALL LETTER E WITH CIRCUMFLEX AND ACUTE} e\N{COMBINING ACUTE ACCENT}",
    "a\x00b\x1b[0m \u2028 \u202e",
    "",
]


def table_of(texts: list[str], is_bold: bool = False) -> Table:
    rows = [[text, Entry(text, is_bold)] for text in texts]
    return Table(title="\n".join(texts), heads=["Method", "R@1 | %"], rows=rows)


def seen(text: str) -> str:
    """`text` with every run of white space, unseen characters and turns of direction as one
    space."""
    return re.sub(r"[\s\x00-\x1f\u2028\u202e]+", " ", text).strip()


class TestTable:
    def test_a_row_of_another_length_is_refused(self):
        with pytest.raises(ValueError, match="Recalls: row 2: expected 2 entries.*found 1"):
            Table(title="Recalls", heads=["a", "b"], rows=[["1", "2"], ["3"]])

    def test_more_columns_of_words_than_columns_are_refused(self):
        with pytest.raises(ValueError, match="3 columns of words of 2"):
            Table(title="Recalls", heads=["a", "b"], rows=[], names=3)


class TestMarkdown:
    def test_a_table_is_what_github_reads_as_one(self):
        table = Table(title="T", heads=["Method", "R@1"], rows=[["SCAN", Entry("67.4", True)]])
        heads, aligned, row = (
            re.split(r" *\| *", line) for line in as_markdown(table).splitlines()
        )
        assert heads[1:3] == ["Method", "R\\@1"]
        assert re.fullmatch(":-+", aligned[1]) and re.fullmatch("-+:", aligned[2])
        assert row[1:3] == ["SCAN", "**67.4**"]

    @pytest.mark.parametrize("is_bold", [False, True])
    def test_hostile_text_stays_in_its_entry(self, is_bold):
        lines = as_markdown(table_of(HOSTILE, is_bold)).splitlines()
        assert len(lines) == 2 + len(HOSTILE)
        for line in lines:
            assert len(re.findall(r"(?<!\\)\|", line)) == 3
            bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", line).replace("**", "")
            assert not re.search(r"[<>\[\]`$&*]", bare)

    @pytest.mark.parametrize(
        "text",
        ["67.4", "-1.5", "-", "60.5 \N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}0.7"],
    )
    def test_numbers_need_no_escapes(self, text):
        assert as_markdown(table_of([text])).splitlines()[2].split("|")[1].strip() == text

    def test_an_empty_bold_entry_is_empty(self):
        assert "*" not in as_markdown(table_of([""], is_bold=True))


def tokens(line: str) -> list[str]:
    """A line of LaTeX as TeX reads it: commands, special characters, others."""
    return re.findall(r"\\[A-Za-z]+|\\.|.", line)


def read_back(latex: str) -> str:
    """What a line of LaTeX shows: an own reading, apart from the table that wrote it."""
    shown = latex.replace("~", "\u00a0")
    for name, sign in {
        "textless": "<",
        "textgreater": ">",
        "textbar": "|",
        "textasciicircum": "^",
        "textasciitilde": "~",
        "textbackslash": "\x02",
    }.items():
        shown = shown.replace(rf"\{name}{{}}", sign)
    shown = re.sub(r"(?<!\\)\{([]*[])\}", r"\1", shown)
    return re.sub(r"\\([{}&%$#_])", r"\1", shown).replace("\x02", "\\")


class TestLatex:
    def test_a_table_in_the_style_of_booktabs(self):
        rows = [["SCAN", Entry("67.4", True)], ["Two_branch", "-"]]
        table = Table(title="R@1 in %", heads=["Method", "R@1"], rows=rows)
        assert as_latex(table).splitlines() == [
            r"\begin{table}",
            r"\centering",
            r"\caption{R@1 in \%}",
            r"\begin{tabular}{lr}",
            r"\toprule",
            r"Method & R@1 \\",
            r"\midrule",
            r"SCAN & \textbf{67.4} \\",
            r"Two\_branch & - \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_shows_as_it_is(self, text):
        assert seen(read_back(latex_escaped(text))) == seen(text)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_holds_no_command_but_known_ones(self, text):
        latex, depth = latex_escaped(text), 0
        assert "\n" not in latex
        known = {"text" + name for name in TEXT_SIGNS}
        for token in tokens(latex):
            assert not re.fullmatch(r"\\[A-Za-z]+", token) or token[1:] in known
            assert token not in {"&", "%", "#", "_", "^", "<", ">", "|", "$"}
            assert token != r"\\"  # would end the row
            depth += {"{": 1, "}": -1}.get(token, 0)
            assert depth >= 0
        assert depth == 0

    @pytest.mark.parametrize("is_bold", [False, True])
    def test_hostile_text_leaves_the_table_as_it_is(self, is_bold):
        lines = as_latex(table_of(HOSTILE, is_bold)).splitlines()
        assert len(lines) == 10 + len(HOSTILE)
        rows = lines[7:-3]
        for row in rows:
            assert row.endswith(r" \\") and tokens(row).count(r"\\") == 1
            assert tokens(row).count("&") == 1
            # \\, \toprule and \midrule would take these for an argument of theirs.
            assert not row.lstrip().startswith(("[", "*"))

    @pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX on this machine")
    @pytest.mark.parametrize("is_bold", [False, True])
    def test_latex_reads_it_without_an_error(self, tmp_path, is_bold):
        head = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
        latin = [
            text for text in HOSTILE if text.encode("latin-1", "ignore").decode("latin-1") == text
        ]
        page = f"{head}\n{as_latex(table_of(latin, is_bold))}\\end{{document}}\n"
        (tmp_path / "page.tex").write_text(page)
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Missing character" not in (tmp_path / "page.log").read_text()


TEXT_SIGNS = (
    "bf", "backslash", "less", "greater", "bar", "asciicircum", "asciitilde",
)  # fmt: skip


class TestCsv:
    def test_a_reader_finds_the_entries(self):
        rows = [["SCAN, t-i", Entry("67.4", True)], ['say "hi"', "-"]]
        table = Table(title="T", heads=["Method", "R@1"], rows=rows)
        assert as_csv(table) == 'Method,R@1\n"SCAN, t-i",67.4\n"say ""hi""",\n'

    def test_numbers_stand_alone_in_their_columns(self):
        """As a program reads them: mean, deviation, ends, and what is no number beside them."""
        space, sign = "\N{NO-BREAK SPACE}", "\N{PLUS-MINUS SIGN}"
        rows = [
            ["1", "a", "2 of 3", f"5.0 {sign}{space}1.7{space}*", f"[-3.1,{space}6.9]", "2 to 4"],
            ["2", "bc", "3", "4.0", f"[1.0,{space}2.0]{space}\N{DAGGER}", "3"],
            ["3", "-", "0 of 3", "failed", "-", "-"],
        ]
        heads = ["preset", "group", "seeds", "rsum", "ends", "epochs"]
        table = Table(title="T", heads=heads, rows=rows, ids=["x", "y", "z"])
        frame = pd.read_csv(io.StringIO(as_csv(table))).set_index("id")
        assert frame["preset"].tolist() == [1, 2, 3] and frame["group"].tolist() == ["a", "bc", "-"]
        assert frame["seeds"].tolist() == [2, 3, 0]
        assert frame.loc["x", ["rsum", "rsum sd", "rsum note"]].tolist() == [5.0, 1.7, "*"]
        assert frame["rsum"].isna().tolist() == [False, False, True]
        assert frame.loc["z", "rsum note"] == "failed"
        assert frame["ends low"].tolist()[:2] == [-3.1, 1.0] and "ends" not in frame
        assert frame.loc["y", "ends note"] == "\N{DAGGER}"
        assert frame.loc["x", ["epochs low", "epochs high"]].tolist() == [2, 4]
        data = json.loads(as_json(table))
        (first, *_, last) = [dict(zip(data["heads"], row, strict=True)) for row in data["rows"]]
        assert (first["id"], first["preset"], first["rsum"], first["seeds"]) == ("x", "1", 5.0, 2)
        assert (last["rsum"], last["rsum sd"], last["rsum note"]) == (None, None, "failed")

    def test_two_sides_of_a_claim_are_two_numbers(self):
        sign = "\N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}"
        table = Table(title="T", heads=["p", "here"], rows=[["a", f"1.5 {sign}0.5 against 2.5"]])
        assert as_csv(table) == "p,here,here sd,here against\na,1.5,0.5,2.5\n"

    def test_ids_are_of_every_row(self):
        with pytest.raises(ValueError, match="1 ids of 2 rows"):
            Table(title="T", heads=["a"], rows=[["x"], ["y"]], ids=["x"])

    def test_hostile_text_comes_back(self):
        rows = list(csv.reader(io.StringIO(as_csv(table_of(HOSTILE)))))
        assert len(rows) == 1 + len(HOSTILE)
        for (first, second), text in zip(rows[1:], HOSTILE, strict=True):
            assert first == second
            assert seen(first.removeprefix("'")) == seen(text)

    @pytest.mark.parametrize(
        "text",
        [
            '=HYPERLINK("http://evil.example")',
            "+1+cmd|' /C calc'!A0",
            "-2+3+cmd|' /C calc'!A0",
            "@SUM(A1:A9)",
            "-A1",
            "\t=1+1",
            "\n=1+1",
            "-1+E5",
            "-inf",
            "\N{FULLWIDTH EQUALS SIGN}1+1",
        ],
    )
    def test_a_formula_is_shown_and_not_run(self, text):
        (_, (first, _)) = csv.reader(io.StringIO(as_csv(table_of([text]))))
        assert first == f"'{text.strip()}"

    @pytest.mark.parametrize(
        "text",
        [
            "-1.5",
            "+0.3",
            "-",
            "-1e-05",
            "-1.5 \N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}0.2",
            "a = b",
        ],
    )
    def test_numbers_and_words_stay_as_they_are(self, text):
        (_, (first, *_)) = csv.reader(io.StringIO(as_csv(table_of([text]))))
        assert first == text


def test_equal_tables_give_equal_text():
    for render in (as_markdown, as_latex, as_csv):
        assert render(table_of(HOSTILE)) == render(table_of(HOSTILE))

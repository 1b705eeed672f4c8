"""Tables as data: numbers stay numbers, and text from anywhere does nothing in any
rendering."""

import csv
import io
import json
import re
from statistics import fmean, stdev

import pandas as pd
import pytest

from benchmark.report import tables
from benchmark.report.markdown import code, escaped, picture
from benchmark.report.tables import (
    DAGGER,
    NO_BREAK,
    NONE,
    Code,
    Number,
    Table,
    as_csv,
    as_json,
    as_latex,
    as_markdown,
)

SIGN = f"\N{PLUS-MINUS SIGN}{NO_BREAK}"


def table_of(*texts: object) -> Table:
    return Table.of("T", [{"Method": text, "R@1 | %": text} for text in texts])


class TestNumber:
    def test_it_shows_what_stands_beside_it(self):
        printed = Number(value=67.9)
        number = Number(
            value=27.14, sd=0.5, low=24.4, high=29.8, printed=printed, note=DAGGER
        )
        assert str(number) == (
            f"67.9{NO_BREAK}→ 27.1 {SIGN}0.5 [24.4,{NO_BREAK}29.8]{NO_BREAK}{DAGGER}"
        )
        assert str(Number(value=-1.25, low=-3.0, high=0.5, form="+.1f")) == (
            f"-1.2 [-3.0,{NO_BREAK}+0.5]"
        )
        assert str(Number(note="failed")) == "failed" and str(Number()) == NONE
        # a page from a file, which keeps six digits, says the same as one from results
        assert str(Number(value=7.149999999)) == str(Number(value=7.15))
        assert str(Number(printed=printed)) == f"67.9{NO_BREAK}→ {NONE}"

    def test_a_mean_has_the_sample_standard_deviation(self):
        values = [1.0, 3.0, 4.5]
        number = tables.mean(values, 2)
        assert (number.value, number.sd) == (fmean(values), stdev(values))
        assert str(number) == f"2.83 {SIGN}1.76"
        assert str(tables.mean([1.25], 1)) == "1.2" and str(tables.mean([4], 1)) == "4"
        assert tables.mean([], 1) is None

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (1234.5, "1234"),
            (12.345, "12.3"),
            (0.030512, "0.0305"),
            (0.0, "0"),
            (8.7654, "8.77"),
            (0.54321, "0.543"),
        ],
    )
    def test_times_have_three_digits_and_no_exponent(self, value, text):
        assert str(tables.three_digits(value)) == text


class TestPrograms:
    def table(self) -> Table:
        rows = [
            [
                "x",
                "a",
                Number(value=2, form="d", note="of 3"),
                Number(value=5.0, sd=1.7, note="*"),
            ],
            ["y", "-", 3, Number(value=100.10000000000002, low=-3.1, high=6.9)],
            ["z", None, 0, Number(note="failed")],
        ]
        heads = ("preset", "group", "seeds", "rsum")
        cells = [dict(zip(heads, row, strict=True)) for row in rows]
        return Table.of("T", cells, ids=["p1", "p2", "p3"])

    def test_numbers_stand_alone_in_their_columns(self):
        frame = pd.read_csv(io.StringIO(as_csv(self.table()))).set_index("id")
        assert list(frame.index) == ["p1", "p2", "p3"]
        assert (
            frame["seeds"].tolist() == [2, 3, 0]
            and frame.loc["p1", "seeds note"] == "of 3"
        )
        assert frame["rsum"].tolist()[:2] == [5.0, 100.1] and pd.isna(
            frame.loc["p3", "rsum"]
        )
        assert (
            frame.loc["p1", "rsum sd"] == 1.7
            and frame.loc["p3", "rsum note"] == "failed"
        )
        assert frame.loc["p2", ["rsum low", "rsum high"]].tolist() == [-3.1, 6.9]
        assert "seeds sd" not in frame and "rsum printed" not in frame

    def test_json_has_the_same_with_null_for_what_is_missing(self):
        data = json.loads(as_json(self.table()))
        first, _, last = [
            dict(zip(data["heads"], row, strict=True)) for row in data["rows"]
        ]
        assert (first["id"], first["rsum"], first["seeds"]) == ("p1", 5.0, 2)
        assert (last["group"], last["rsum"], last["rsum note"]) == (
            None,
            None,
            "failed",
        )

    def test_a_page_does_not_show_the_ids(self):
        assert "p1" not in as_markdown(self.table())
        heads, aligned, *_ = as_markdown(self.table()).splitlines()
        assert [head.strip() for head in heads.split("|")[1:-1]] == list(
            self.table().frame
        )
        assert [side.strip("-") for side in aligned.split("|")[1:-1]] == [":"] * 4
        is_right = [side.endswith(":") for side in aligned.split("|")[1:-1]]
        assert is_right == [False, False, True, True]

    @pytest.mark.parametrize("text", ["-", "a = b", "2 seeds; x-1", "3 to 4"])
    def test_words_stay_as_they_are(self, text):
        _, (first, _) = csv.reader(io.StringIO(as_csv(table_of(text))))
        assert first == text


class TestLatex:
    def test_it_is_what_readers_see(self):
        lines = as_latex(
            Table.of("T", [{"Method": "two_branch", "R@1": Number(value=67.4)}])
        )
        assert r"\toprule" in lines and r"two\_branch & 67.4 \\" in lines


class TestMarkdown:
    def test_best_cells_are_bold_and_code_is_code(self):
        best = Number(value=1.0, is_best=True)
        rows = [{"m": "a", "n": best}, {"m": Code("x|`y"), "n": ""}]
        lines = as_markdown(Table.of("T", rows)).splitlines()
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
        assert cells == [["a", "**1.0**"], ["`x  y`", ""]]

    def test_only_marks_line_breaks_and_turns_of_direction_change(self):
        text = "A dog, (brown) runs - fast; it's 3 m."
        assert escaped(text) == text
        assert re.sub(r"\\(.)", r"\1", escaped("a | b_c <i>\n\td")) == "a | b_c <i> d"
        assert escaped("a\u202eb\x00c\x1b[0m") == "a b c \\[0m"

    def test_code_and_alt_text_are_held_in(self):
        assert code("a`|b") == "`a  b`"
        assert picture("x](y", "p.png") == "![x\\](y](p.png)"

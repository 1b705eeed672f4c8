"""`audit`: the papers' tables, and the command."""

import json
from pathlib import Path

import pandas as pd
import pytest

from benchmark.__main__ import main
from benchmark.commands.audit import metric_of, rows_of_papers
from benchmark.papers.printed_numbers import findings


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_in_the_papers_three_r5_of_mrnn_and_the_medians_of_dvsa_alone_are_found():
    found = findings(rows_of_papers())
    impossible = {finding.row for finding in found if finding.is_impossible}
    assert impossible == {"instance_loss/1, flickr30k/test, DVSA"}
    others = [finding for finding in found if not finding.is_impossible]
    assert len(others) == 3 and all("m-RNN" in finding.row for finding in others)
    assert all(("t2i_r5", "42.2") in finding.numbers for finding in others)


def test_headings_tell_the_metrics_of_columns():
    heads = ("i2t_r1", "t2i R@5", "R@10", "MedR", "rsum", "mR", "method", "params (M)")
    wanted = ["i2t_r1", "t2i_r5", "i2t_r10", "i2t_medr", "rsum", "mean", "", ""]
    assert [metric_of(head) for head in heads] == wanted


def test_the_command_counts_impossible_rows_and_may_exit_1(capsys):
    table = pd.DataFrame({"method": ["a", "b"], "R@1": ["43.15", "-"]})
    table.assign(**{"R@5": ["60.0", "50.1"]}).to_csv("table.csv", index=False)
    words = ["audit", "table.csv", "--queries", "1000"]
    assert main(words) == 0
    assert "2 rows: 1 impossible" in capsys.readouterr().out
    assert main([*words, "--format", "json", "--check"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["rule"], found["numbers"]) == ("count", {"i2t_r1": "43.15"})
    assert main(["audit", "table.csv", "--check"]) == 0  # of how many is not known


@pytest.mark.parametrize(
    ("words", "where", "found"),
    [
        ((), "audit", "both or none"),
        (("table.csv", "--papers"), "audit", "both or none"),
        (("none.csv",), "none.csv", "nothing"),
        (("table.txt",), "table.txt", ".txt"),
        (("table.csv", "--queries", "many"), "--queries", "many"),
        (("table.csv", "--folds", "0"), "--folds", "0"),
        (("words.csv",), "words.csv", "accuracy"),
        (("texts.csv",), "texts.csv", "much"),
    ],
)
def test_mistakes_are_named_and_exit_2_or_with_check_3(words, where, found, capsys):
    for name in ("table.csv", "table.txt"):
        Path(name).write_text("method,R@1\na,43.1\n")
    Path("words.csv").write_text("method,accuracy\na,43.1\n")
    Path("texts.csv").write_text("method,R@1\na,much\n")
    assert main(["audit", *words]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"rematch: {where}: ") and found in line
    assert main(["audit", *words, "--check"]) == 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("method,R@1,R@5,R@1,R@5\na,43.1,60.2,30.1,20.2\n", "R@1, R@5, R@1, R@5"),
        ("method,R@1,R@5\na,43.1,60.2,\n", "saw 4"),
    ],
)
def test_no_column_is_moved_or_taken_for_a_label(text, found, capsys):
    Path("table.csv").write_text(text)
    assert main(["audit", "table.csv"]) == 2
    assert found in capsys.readouterr().err


def test_labels_of_one_head_are_kept(capsys):
    Path("table.csv").write_text("of,of,R@1,R@5\na,b,43.1,20.2\n")
    assert main(["audit", "table.csv"]) == 0
    assert "a b" in capsys.readouterr().out

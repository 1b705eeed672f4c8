"""`audit`: the papers' tables, and the command."""

import json
import os
from pathlib import Path
from threading import Timer

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


FIVE_FOLDS = """\
Images: 5000, Captions: 25000
Image to text: 74.5, 94.7, 98.0, 1.0, 2.0
Text to image: 61.8, 88.9, 94.4, 1.0, 5.9
rsum: 512.3 ar: 89.1 ari: 81.7
Image to text: 73.0, 93.8, 96.8, 1.0, 2.5
Text to image: 59.9, 87.2, 93.2, 1.0, 6.1
rsum: 503.9 ar: 87.9 ari: 80.1
-----------------------------------
Mean metrics:
rsum: 530.4
Average i2t Recall: 80.9
Image to text: 73.2 94.4 97.6 1.0 2.1
Average t2i Recall: 508.0
Text to image: 60.4 88.3 94.1 1.0 5.6
"""  # two of the folds, and the means over all five: PFAN's issue 5


def test_the_means_that_scans_code_prints_for_five_folds_are_misprinted(capsys):
    Path("run.log").write_text(FIVE_FOLDS)
    assert main(["audit", "run.log", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    numbers = {"rsum": "530.4", "i2t_mean": "80.9", "t2i_mean": "508.0"}
    assert [facts["numbers"] for facts in found] == [
        {name: numbers[name]} for name in ("i2t_mean", "t2i_mean", "rsum")
    ]
    assert {facts["row"] for facts in found} == {"row 3"}
    assert all("SCAN's code" in facts["because"] for facts in found)


def test_a_log_without_results_is_refused(capsys):
    Path("run.log").write_text("Loading dataset\n")
    assert main(["audit", "run.log"]) == 2
    assert "run.log" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--queries", "7"), ("--folds", "3")])
def test_no_option_beside_the_papers_is_dropped(words, capsys):
    assert main(["audit", "--papers", *words]) == 2
    assert f"{words[0]}: " in capsys.readouterr().err
    assert main(["audit", "--papers"]) == 0
    assert "--queries" not in capsys.readouterr().out


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
        ((), "audit", "neither"),
        (("table.csv", "--papers"), "audit", "both"),
        (("none.csv",), "none.csv", "nothing"),
        (("table.xlsx",), "table.xlsx", ".xlsx"),
        (("table.csv", "--queries", "many"), "--queries", "many"),
        (("table.csv", "--folds", "0"), "--folds", "0"),
        (("words.csv",), "words.csv", "accuracy"),
        (("texts.csv",), "texts.csv", "much"),
        (("heads.csv",), "heads.csv", "none"),
    ],
)
def test_mistakes_are_named_and_exit_2_or_with_check_3(words, where, found, capsys):
    for name in ("table.csv", "table.xlsx"):
        Path(name).write_text("method,R@1\na,43.1\n")
    Path("words.csv").write_text("method,accuracy\na,43.1\n")
    Path("texts.csv").write_text("method,R@1\na,much\n")
    Path("heads.csv").write_text("method,R@1\n")
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


@pytest.mark.parametrize("name", ["table.csv", "run.log"])
def test_a_pipe_is_refused_and_not_waited_for(name, capsys):
    os.mkfifo(name)
    # if something waits for the pipe, this ends it
    writer = Timer(30, lambda: Path(name).write_text(""))
    writer.daemon = True
    writer.start()
    assert main(["audit", name]) == 2
    assert writer.is_alive()
    writer.cancel()
    assert "a pipe" in capsys.readouterr().err


def test_labels_of_one_head_are_kept(capsys):
    Path("table.csv").write_text("of,of,R@1,R@5\na,b,43.1,20.2\n")
    assert main(["audit", "table.csv"]) == 0
    assert "a b" in capsys.readouterr().out


def test_fractions_are_told_from_recalls_in_per_cent(capsys):
    for recalls, is_told in (("0.385,0.735", True), ("38.5,0.735", False)):
        Path("table.csv").write_text(f"method,R@1,R@5\na,{recalls}\n")
        assert main(["audit", "table.csv"]) == 0
        assert ("fractions" in capsys.readouterr().out) == is_told

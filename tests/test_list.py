"""`list` names what there is to run, for readers and for scripts."""

import json

import pytest

from benchmark.__main__ import main

pytestmark = pytest.mark.usefixtures("empty_folder")


def test_lists_have_what_is_there(capsys):
    for what, expected in {
        "methods": {"scan", "two_branch_embedding"},
        "presets": {"scan_t2i_avg", "two_branch_constraints", "scan_t2i_avg_i2t_lse"},
        "datasets": {"shapes", "flickr8k", "folder"},
        "seasons": {"demo", "flickr8k"},
    }.items():
        assert main(["list", what, "--format", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert expected <= {row["name"] for row in rows}
        assert main(["list", what]) == 0
        lines = capsys.readouterr().out.splitlines()
        named = [line.split()[0] for line in lines if not line.startswith(" ")]
        assert named == [row["name"] for row in rows]


def test_the_words_are_json_for_scripts_too(capsys):
    assert main(["list", "--json"]) == 0
    words = json.loads(capsys.readouterr().out)
    assert words == ["methods", "presets", "datasets", "seasons"]


def test_presets_have_the_numbers_that_papers_print(capsys):
    assert main(["list", "presets", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    (line,) = rows["cca"]["reported"]
    assert line["table"] == "two_branch/2" and line["place"] == "flickr30k/test"
    assert line["numbers"]["i2t_r1"] == 36.5 and "rsum" not in line["numbers"]


def test_recalls_of_a_direction_stand_together(capsys):
    assert main(["list", "presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if "two_branch/2" in line)
    assert row.endswith("i2t R@1/5/10 36.5/62.2/73.3, t2i R@1/5/10 24.7/53.4/66.8")

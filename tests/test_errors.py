"""Mistakes that a user can correct: their line and its fields, the known name that is
most like a wrong one, and the keys that are valid in a place."""

import pytest
from refusals import refused

from benchmark.__main__ import main
from benchmark.core.errors import (
    UserError,
    checked,
    corrected_by,
    printable,
    redone_by,
    suggested,
)
from benchmark.season.parameters import Season

MINE = {
    "title": "T",
    "datasets": {"pets": {"reader": "folder"}},
    "presets": ["cca"],
    "seeds": [0],
}


def test_the_name_that_is_most_alike():
    known = ["scan_t2i_avg", "scan_i2t_avg", "cca"]
    assert (
        suggested("scan_t2i_avgg", known)
        == "'scan_t2i_avgg' (did you mean scan_t2i_avg?)"
    )
    assert suggested("CCA", known) == "'CCA' (did you mean cca?)"
    assert suggested("x" * 900, known) == "'" + "x" * 199
    assert suggested(7, []) == "7"


def test_commands_tell_which_name_or_verb_may_be_meant(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, meant in {
        "run scan_t2i_agv": "scan_t2i_avg",
        "run --method scn": "scan",
        "run cca --dataset shaps": "shapes",
        "run scan_t2i_avg --option epoch=3": "epochs",
        "season dmo": "demo",
    }.items():
        assert main(words.split()) == 2
        assert f"(did you mean {meant}?)" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["seasn"])
    assert "'seasn': did you mean season?" in capsys.readouterr().err


def test_the_valid_keys_are_those_of_the_place():
    gird, sise = {"image": {"gird": 3}}, {"sentence": {"hglmm": {"sise": 3}}}
    keys = "features, flip, grid, input_size, network"
    for change, *told in (
        ({"preset": []}, "preset", "presets, ", "mean presets?"),
        (
            {"datasets": {"p": {"imge": {}}}},
            "datasets.p.imge",
            "folds, image",
            "image?",
        ),
        (
            {"datasets": {"p": gird}},
            "datasets.p.image.gird",
            keys,
            "mean grid?",
        ),
        (
            {"datasets": {"p": sise}},
            *(
                "datasets.p.sentence.hglmm.sise",
                "centres, hidden",
                "mean size?",
            ),
        ),
        ({"claims": [{"beter": "a"}]}, "claims.0"),
    ):
        with refused(*told):
            checked(Season, MINE | change, "s.yaml")


# Fields -------------------------------------------------------------------------------


def test_the_line_is_made_of_the_fields():
    error = UserError("a.csv", "numbers", "text", "correct it")
    assert str(error) == "a.csv: expected numbers, found text; correct it"
    error = error.but(within="pets", redo="fetch")
    line = "pets: a.csv: expected numbers, found text; correct it and fetch again"
    assert str(error) == line
    assert str(error.but(do="")).endswith("; fetch again")
    assert str(UserError("a", "b", "c")) == "a: expected b, found c"


def test_errors_below_get_other_fields_and_keep_the_rest():
    with refused("pets: a", "b", "c") as caught, redone_by("init", within="pets"):
        raise UserError("a", "b", "c", "do it")
    assert (caught.value.do, caught.value.redo) == ("do it", "init")
    with refused("a", "b", "c", "run: x") as caught, corrected_by("x"):
        raise UserError("a", "b", "c", "do it", redo="fetch")
    assert caught.value.redo == ""


def test_a_line_is_one_line_that_a_terminal_shows():
    assert printable("a\n b\x1b[0m\u202e") == "a b\\x1b[0m\\u202e"
    long = str(UserError("x" * 700, "b", "y" * 700))
    assert "x" * 400 + "... (700" in long and len(long) < 1000

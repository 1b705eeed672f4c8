"""Mistakes that a user can correct: their line and its fields, the known name that is
most like a wrong one, and the keys that are valid in a place."""

from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import Field, TypeAdapter, ValidationError
from refusals import refused

from benchmark.__main__ import main
from benchmark.core.errors import (
    EXPECTED,
    Strict,
    UserError,
    checked,
    corrected_by,
    listed,
    printable,
    redone_by,
    suggested,
    unfit,
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


def test_a_misspelt_key_is_named_and_not_what_is_missing_for_it():
    misspelt = {name: MINE[name] for name in MINE if name != "presets"}
    with refused("s.yaml: prests", found="presets"):
        checked(Season, misspelt | {"prests": ["cca"]}, "s.yaml")
    with refused("s.yaml: presets", "a value", "nothing"):
        checked(Season, misspelt, "s.yaml")


def test_of_many_names_the_first_are_listed():
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert listed([]) == "(none)"


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
    assert main(["seasn"]) == 2
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
        ({"presets": ["a b"]}, "s.yaml: presets.0", "a name", "'a b'"),
    ):
        with refused(*told):
            checked(Season, MINE | change, "s.yaml")


class Kind(StrEnum):
    PLAIN = "plain"
    ODD = "odd"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (str, 3),
        (int, None),
        (int, "x"),
        (int, 1.5),
        (float, None),
        (float, "x"),
        (Annotated[float, Field(allow_inf_nan=False)], float("inf")),
        (bool, None),
        (bool, "x"),
        (list[int], "x"),
        (tuple[int, int], "x"),
        (dict[str, int], "x"),
        (Strict, "x"),
        (None, 3),
        (Kind, "x"),
        (Literal["a", "b"], "c"),
        (Annotated[int, Field(gt=2)], 2),
        (Annotated[float, Field(ge=0)], -1),
        (Annotated[float, Field(lt=0.5)], 1),
        (Annotated[int, Field(le=1_000_000)], 2_000_000),
    ],
)
def test_what_should_be_there_follows_from_the_kind_of_an_error(kind, value):
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    (first,) = caught.value.errors()
    assert first["type"] in EXPECTED
    expected = unfit(caught.value, "s.yaml", []).expected
    assert first["msg"] == f"Input should be {expected}"


def test_of_other_kinds_the_whole_message_is_what_should_be_there():
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Annotated[list[int], Field(min_length=1)]).validate_python([])
    error = unfit(caught.value, "s.yaml", [])
    assert error.expected == caught.value.errors()[0]["msg"]


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


@pytest.mark.parametrize("name", ["mine", "image", "sentence", "options"])
def test_keys_of_a_dataset_are_told_whatever_it_is_called(name):
    season = {"title": "t", "datasets": {name: {"presetz": []}}, "presets": []}
    with refused(expected="fold_presets", found="did you mean presets?"):
        checked(Season, season, "s")

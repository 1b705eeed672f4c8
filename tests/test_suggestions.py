"""Wrong names: the known one that is most like them, and the keys that are valid in
their place."""

import pytest
from refusals import refused

from benchmark.__main__ import main
from benchmark.core.errors import checked, suggested
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
            "features, image",
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

"""Wrong names: the known one that is most like them, and the keys that are valid in their place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refused

from benchmark.__main__ import main
from benchmark.core.command_line import BROKEN_PIPE
from benchmark.core.errors import checked
from benchmark.core.suggestions import suggested
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season, read_season
from seasons import season

MINE = {"title": "T", "datasets": {"pets": {"reader": "folder"}}, "presets": ["cca"], "seeds": [0]}


def test_the_name_that_is_most_alike():
    known = ["scan_t2i_avg", "scan_i2t_avg", "cca"]
    assert suggested("scan_t2i_avgg", known) == "'scan_t2i_avgg' (did you mean scan_t2i_avg?)"
    assert suggested("CCA", known) == "'CCA' (did you mean cca?)"
    assert suggested("x" * 900, known) == "'" + "x" * 199
    assert suggested(7, []) == "7"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("run", "scan_t2i_agv"), "scan_t2i_avg"),
        (("run", "--method", "scn"), "scan"),
        (("run", "cca", "--dataset", "shaps"), "shapes"),
        (("run", "scan_t2i_avg", "--option", "epoch=3"), "epochs"),
        (("season", "dmo"), "demo"),
    ],
)
def test_commands_tell_which_name_may_be_meant(words, meant, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(list(words)) == 2
    assert f"(did you mean {meant}?)" in capsys.readouterr().err


def test_a_verb_that_may_be_meant(capsys):
    with pytest.raises(SystemExit):
        main(["seasn"])
    assert "no verb 'seasn': did you mean season?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "where", "expected", "found"),
    [
        ({"preset": []}, "preset", "presets, ", "did you mean presets?"),
        ({"datasets": {"p": {"imge": {}}}}, "datasets.p.imge", "features, image", "image?"),
        (
            {"datasets": {"p": {"image": {"gird": 3}}}},
            "datasets.p.image.gird",
            "features, flip, grid, input_size, network",
            "did you mean grid?",
        ),
        (
            {"datasets": {"p": {"sentence": {"hglmm": {"sise": 3}}}}},
            "datasets.p.sentence.hglmm.sise",
            "centres, hidden",
            "did you mean size?",
        ),
        ({"claims": [{"beter": "a"}]}, "claims.0", "", ""),
    ],
)
def test_the_valid_keys_are_those_of_the_place(change, where, expected, found):
    with refused(where, expected, found):
        checked(Season, MINE | change, "s.yaml")


def test_a_season_file_that_is_not_there():
    with refused("nowhere/mine.yaml", "a season file", "file not found"):
        read_season("nowhere/mine.yaml")


def test_presets_that_a_fusion_needs_are_added():
    fusion, members = "scan_t2i_avg_i2t_lse", ["scan_t2i_avg", "scan_i2t_lse"]
    params = resolve("s", season(presets=[fusion]))
    played = {cell.preset for cell in params.cells.values()}
    assert played == set(members)
    assert {cell.preset for cell in params.fusions.values()} == {fusion}
    declared = resolve("s", season(presets=[*members, fusion]))
    assert declared.cells.keys() == params.cells.keys()


def test_what_is_added_is_told(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(
        "title: T\ndatasets: {shapes: {}}\npresets: [scan_t2i_avg_i2t_lse]\nseeds: [0]\n"
    )
    assert main(["season", "mine.yaml"]) == 0
    told = capsys.readouterr().out
    assert "added, as other presets are made of them: scan_i2t_lse, scan_t2i_avg" in told


@pytest.mark.slow
def test_a_pipe_that_is_closed_gives_no_traceback():
    """The process boundary is what is tested."""
    work = "lambda given: print(*range(10**5), sep='\\n')"
    code = f"from benchmark.core.command_line import guarded; raise SystemExit(guarded({work}, 0))"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == BROKEN_PIPE


def test_an_environment_without_the_packages_is_told_in_one_line():
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-S", "-m", "benchmark", "list", "seasons"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert told.returncode == 1 and told.stderr.count("\n") == 1
    assert "activate the environment" in told.stderr

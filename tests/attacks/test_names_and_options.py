"""Names become folders, shell words and links; options have ranges. Both are checked."""

import shutil
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
import yaml

import methods
from benchmark.__main__ import main
from benchmark.core.errors import UserError
from benchmark.core.names import LONGEST, checked_name
from benchmark.season.method_options import configured
from benchmark.season.parameter_files import read_params, read_shared

NAMES = [
    *("a; touch x #", "a b", "$(touch x)", "`touch x`", "a|b", "a&b", "a>b", "a'b", 'a"b', "a\nb"),
    *("/tmp/x", "../x", "..", ".", "", "~", "-rf", "--help", "_drawing", "a/b", "a\\b", "a:b"),
    *("a.b", "${x}", "%s", "ä", "a\0b", "\ud800", "x" * (LONGEST + 1), "x" * 5000, "a](http://b)"),
]
SEASON = {"title": "T", "datasets": {"shapes": {}}, "presets": ["cca"], "seeds": [0]}


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def refused(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    """The one line with which a command refuses; nothing but the season file is written."""
    before = everything()
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1 and said.err.startswith("rematch: "), said.err
    assert "expected" in said.err and len(said.err) < 2000
    assert everything() == before
    return said.err


def everything() -> list[str]:
    return sorted(str(path) for path in Path.cwd().parent.rglob("*"))


def write(name: str = "mine.yaml", **changes: object) -> str:
    Path(name).write_text(yaml.safe_dump(SEASON | changes))
    return name


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_is_no_path_and_no_command(name, capsys):
    line = refused(capsys, "season", write(datasets={name: {"reader": "shapes"}}, presets=[name]))
    assert "mine.yaml" in line
    with pytest.raises(UserError):
        checked_name(name, "x")
    settings = {"image": {"network": name}, "sentence": {name: {}}}
    refused(capsys, "season", write(datasets={"shapes": settings}))


@pytest.mark.parametrize("name", ["...yaml", "..yaml", "a b.yaml", "shared.yaml", "run.yaml"])
def test_a_season_file_gives_no_other_folder(name, capsys):
    refused(capsys, "season", write(name))


@pytest.mark.parametrize("verb", ["report", "verify"])
@pytest.mark.parametrize("name", ["../x", "/tmp", "a;b", ".."])
def test_a_season_on_the_command_line_is_a_name(verb, name, capsys):
    refused(capsys, *([verb, "--season", name] if verb == "report" else [verb, name]))


@pytest.mark.parametrize("path", ["/etc", "../other", "a/../../b", "~/x", ""])
@pytest.mark.parametrize("key", ["features", "boxes"])
def test_imported_features_lie_in_the_raw_folder(path, key, capsys):
    settings = {"features": {"image": {"features": path}}, "boxes": {"proposals": {"boxes": path}}}
    refused(capsys, "season", write(datasets={"shapes": settings[key]}))


# Parameters that were edited -------------------------------------------------------------------


@pytest.fixture
def resolved(capsys) -> Path:
    """The files of a season, as `season` wrote them."""
    image = {"network": "drawn_cnn", "input_size": 96}
    assert main(["season", write(datasets={"shapes": {"image": image}})]) == 0
    capsys.readouterr()
    return Path("seasons")


EDITS = {
    "cells/shapes-cca-0": {
        "folder": ["/tmp/x", "results/../x", "results/mine/shapes/cca/1", ".", ""],
        "images": ["/etc", "data/features/../../x", "data/features/other/x"],
        "texts": ["/etc", "../x"],
        "dataset": ["a; touch x", "../x", "other"],
        "preset": ["../../x", "scan"],
        "seed": [-1, 2**70, 0.5, "0; x", None, True],
        "start": ["/etc/passwd", "data/checkpoints/../x.pt"],
        "threads": [0, -1, 10**9],
        "numerics": ["fast", ""],
    },
    "../shared/feature_sets/shapes-drawn_cnn_96_g6_flip": {
        "folder": ["/tmp/x", "data/features/shapes/other", "data/features/shapes/../x", "data"],
        "source": ["/etc", "data/prepared/other", "data/features/shapes/.."],
        "encoder": ["../x", "os; x", "a.b"],
        "reader": ["_drawing", "../x"],
        "dataset": ["../x", "other"],
    },
    "params": {
        "datasets": [["../x"], ["a;b"]],
        "cells": [["../x"], ["a/b"]],
        "feature_sets": [["/x"]],
    },
}
CASES = [(f, k, v) for f, keys in EDITS.items() for k, values in keys.items() for v in values]


@pytest.mark.parametrize("file, key, value", CASES)
def test_edited_parameters_are_refused(file, key, value, resolved):
    path = resolved / f"mine/{file}.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {key: value}))
    with pytest.raises(UserError):
        read_params("mine")
        read_shared()


@pytest.mark.parametrize("name", ["../demo", "a b", 3, None, ["demo"]])
def test_the_active_season_is_a_name(name, resolved, capsys):
    Path("params.yaml").write_text(yaml.safe_dump({"season": name}))
    refused(capsys, "season")


def test_preparing_removes_no_folder_of_a_user(resolved, capsys, tmp_path):
    """An edited parameter file names it."""
    user = tmp_path / "user"
    user.mkdir()
    (user / "precious.txt").touch()
    path = resolved / "shared/datasets/shapes.yaml"
    shutil.copy(path, path.with_name("mine.yaml"))
    assert main(["prepare", str(user)]) == 2
    assert (user / "precious.txt").is_file()


# Ranges of options -----------------------------------------------------------------------------

WRONG = [-3, -1e30, float("nan"), float("inf"), 2**70, "x", [1], None]


@pytest.mark.parametrize("name", methods.names())
def test_every_hyper_parameter_has_a_range(name):
    method = methods.load(name)
    for field in fields(method.Config):
        for value in [value for value in WRONG if value not in get_args(field.type)]:
            if field.type is bool and value == "x" or not can_be_refused(field, value):
                continue
            with pytest.raises(UserError, match=field.name):
                configured(method, {field.name: value}, "preset p")


def can_be_refused(field, value: object) -> bool:
    """A factor may be as large as one likes, as long as it is a number."""
    is_factor = float in get_args(field.type)
    return not (is_factor and value == 2**70)


@pytest.mark.parametrize(
    "option, values",
    {
        "epochs": [0, -3, 1.5, True, "2"],
        "batch_size": [0, -1, 2**70],
        "learning_rate": [0, -0.1, float("nan"), float("inf"), "fast"],
        "margin": [-0.1, float("nan")],
    }.items(),
)
def test_a_season_with_an_option_out_of_range_is_refused(option, values, capsys):
    for value in values:
        options = {"scan": {option: value}}
        line = refused(capsys, "season", write(presets=["scan_t2i_avg"], options=options))
        assert option in line and repr(value) in line


SETTINGS = [
    {"seeds": []},
    {"seeds": [2**70]},
    {"seeds": [-1]},
    {"seeds": [0, 0]},
    {"seeds": [True]},
    {"seeds": ["0"]},
    {"seeds_of": {"cca": []}},
    {"threads": 0},
    {"threads": 10**6},
    {"numerics": "fast"},
    {"precision": "float8"},
    {"validation_images": 0},
    {"datasets": {"mine": {"reader": "_drawing"}}},
    {"datasets": {"mine": {"reader": "shared"}}},
    {"datasets": {"mine": {"reader": "nothing"}}},
    {"datasets": {"shapes": {"options": {"train": -1}}}},
    {"datasets": {"shapes": {"options": {"trian": 10}}}},
    {"datasets": {"shapes": {"image": {"input_size": 10**9}}}},
    {"datasets": {"shapes": {"image": {"grid": 0}}}},
    {"datasets": {"shapes": {"words": {"size": -1}}}},
    {"datasets": {"shapes": {"proposals": {"count": 0}}}},
    {"datasets": ["shapes"]},
    {"title": 3},
    {"presets": "some"},
]


@pytest.mark.parametrize("changes", SETTINGS, ids=map(str, SETTINGS))
def test_settings_out_of_range_are_refused(changes, capsys):
    refused(capsys, "season", write(**changes))


def test_a_seed_on_the_command_line_has_a_range(capsys):
    refused(capsys, "run", "cca", "--seed", str(2**70))
    refused(capsys, "run", "cca", "--dataset", "../x")

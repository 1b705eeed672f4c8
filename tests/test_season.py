"""`season` keeps folders of this machine, and prints the schema of season files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from refusals import refused

from benchmark.__main__ import main
from benchmark.commands import season
from benchmark.data.raw_files import raw_dataset
from benchmark.season import parameter_files as files
from benchmark.season.parameters import Season

ROOT = Path(__file__).parent.parent
DECLARED = {
    "title": "Mine",
    "datasets": {"mine": {"reader": "shapes", "image": {"network": "drawn_cnn"}}},
    "presets": ["vse"],
    "seeds": [0],
}

pytestmark = pytest.mark.usefixtures("empty_folder")


def activate(*words: str) -> int:
    Path("try.yaml").write_text(yaml.safe_dump(DECLARED))
    return main(["season", "try.yaml", *words])


def test_the_schema_has_every_key_of_a_season(capsys):
    assert main(["season", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert set(schema["properties"]) == set(Season.model_fields)


def test_a_season_becomes_the_active_one_and_what_its_methods_take_is_noted():
    assert activate() == 0
    assert files.active_season() == "try"
    assert files.read_remembered()


def test_a_season_that_was_chosen_before_is_so_without_torch_and_pandas():
    assert activate() == activate() == 0
    code = "import sys; from benchmark.__main__ import main\n"
    code += "assert main(['season', 'try']) == 0\n"
    code += (
        "loaded = {'torch', 'pandas'} & sys.modules.keys(); assert not loaded, loaded"
    )
    paths = {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    subprocess.run(command, env=os.environ | paths, check=True)


def test_folders_without_a_name_are_those_of_the_active_season(capsys):
    assert activate() == 0
    Path("a").mkdir()
    assert main(["season", "--weights-dir", "a", "--source", "mine=a"]) == 0
    assert files.read_local().weights_dir == "a"
    assert files.read_local().sources == {"mine": "a"}
    assert main(["season", "--weights-dir", "nowhere"]) == 2
    assert "--weights-dir" in capsys.readouterr().err


def test_a_folder_of_weights_is_forgotten():
    assert activate() == 0
    files.write_local(files.Local(weights_dir="a"))
    assert main(["season", "--weights-dir", ""]) == 0
    assert files.read_local() == files.Local()


def test_folders_are_of_a_dataset_or_a_reader():
    for folder in ("a", "b"):
        Path(folder).mkdir()
    assert activate("--source", "mine=a", "--source", "shapes=b") == 0
    params = files.resolved("try")
    assert files.read_local().sources == {"mine": "a", "shapes": "b"}
    assert files.read_params("try").datasets["mine"].source == "a"
    files.write_local(files.Local(sources={"shapes": "b"}))
    assert files.read_params("try").datasets["mine"].source == "b"
    for word in ("other=/a", "mine=", "mine"):
        with refused("--source", expected="mine, shapes", found=word):
            season.folders_of(params, [word])


def test_a_folder_that_is_not_there_is_refused_before_anything_is_written(capsys):
    for words in (("--source", "mine=nowhere"), ("--weights-dir", "nowhere")):
        assert activate(*words) == 2
        told = capsys.readouterr().err
        assert words[0] in told and "nowhere" in told and told.count("\n") == 1
    assert not files.SEASONS.exists() and not files.LOCAL.exists()


def test_the_weights_may_be_in_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", str(Path("home").absolute()))
    Path("home/w").mkdir(parents=True)
    assert activate("--weights-dir", "~/w") == 0
    assert files.read_params().weights_dir == str(Path("home/w").absolute())


def test_the_folder_of_an_unknown_user_is_no_folder():
    with refused("--source mine", "a folder", "none at ~nobody-of-this-name"):
        season.check_folder("--source mine", "~nobody-of-this-name")


def test_a_link_to_another_folder_is_removed_so_that_it_is_fetched_anew():
    for folder in ("first", "second"):
        Path(folder).mkdir()
    assert activate("--source", "mine=first") == 0
    raw = raw_dataset(files.read_params(), "mine")
    raw.folder.parent.mkdir(parents=True)
    raw.folder.symlink_to(Path("first").resolve())
    season.unlink_other_source(raw)
    assert raw.folder.is_symlink()
    assert activate("--source", "mine=second") == 0
    assert not raw.folder.is_symlink()


def test_no_second_project_begins_inside_of_a_clone(monkeypatch, capsys):
    Path("seasons").mkdir(exist_ok=True)
    Path("params.yaml").write_text("season: demo\n")
    clone = Path.cwd()
    Path("mine").mkdir()
    monkeypatch.chdir("mine")
    assert main(["season", "demo"]) == 2
    assert str(clone) in capsys.readouterr().err
    assert not list(Path().iterdir())
    assert main(["export"]) == 2
    assert f"run it in {clone}" in capsys.readouterr().err

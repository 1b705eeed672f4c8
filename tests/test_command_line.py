"""The command line as its users meet it: help, lists, and mistakes told in one line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import builders
import pytest

from benchmark.__main__ import COMMANDS, VERBS, main
from benchmark.commands import run
from benchmark.core.records import Costs
from benchmark.encode import drawn_pretraining

pytestmark = pytest.mark.usefixtures("empty_folder")

HERE = Path(__file__).parent


def one_line(capsys) -> str:
    text = capsys.readouterr().err.strip()
    assert text.startswith("rematch: ") and "\n" not in text
    return text


def test_every_command_is_a_verb():
    files = (HERE.parent / "benchmark/commands").glob("*.py")
    commands = {
        path.stem for path in files if "\ndef configure(" in path.read_text("utf-8")
    }
    assert commands == set(COMMANDS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_helps(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    assert f"usage: rematch {verb}" in capsys.readouterr().out


def test_lists(capsys):
    for what, expected in {
        "methods": {"scan", "two_branch_embedding"},
        "presets": {"scan_t2i_avg", "two_branch_constraints", "scan_t2i_avg_i2t_lse"},
        "datasets": {"shapes", "flickr8k", "folder"},
        "seasons": {"demo", "flickr8k"},
    }.items():
        assert main(["list", what, "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert expected <= {row["name"] for row in rows}
        assert main(["list", what]) == 0
        lines = capsys.readouterr().out.splitlines()
        named = [line.split()[0] for line in lines if not line.startswith(" ")]
        assert named == [row["name"] for row in rows]


def test_a_stage_without_a_season(capsys):
    assert main(["train", "shapes-scan_t2i_avg-0"]) == 2
    assert (
        "params.yaml: expected the active season, found nothing; choose one"
        in one_line(capsys)
    )


def test_an_option_that_is_no_yaml_is_refused_in_a_line(capsys):
    for value in ("[1", ": b", "2020-13-45", "!!python/name:os.system"):
        words = ["vse", "--dataset", "shapes", "--option", f"epochs={value}"]
        assert main(["run", *words]) == 2
        assert "--option epochs: expected" in one_line(capsys)


MEMBERS = ["scan_t2i_avg", "scan_i2t_lse"]


@pytest.mark.parametrize(
    ("preset", "needs"),
    [
        ("scan_t2i_avg", []),
        ("dual_path_full_2", ["dual_path_instance_1"]),
        ("scan_t2i_avg_i2t_lse", MEMBERS),
    ],
)
def test_run_plays_what_a_preset_needs_and_shows_the_preset(
    preset, needs, capsys, monkeypatch
):
    given, read = [], []
    lost = SimpleNamespace(status="not_applicable", reason="no pixels", metrics={})
    monkeypatch.setattr(run, "run", lambda params, *others: given.append(params))
    monkeypatch.setattr(
        run, "read_record", lambda folder: read.append(str(folder)) or lost
    )
    assert main(["run", preset, "--seed", "2", "--option", "epochs=3"]) == 0
    (params,) = given
    assert list(params.everything) == [f"shapes-{name}-2" for name in (*needs, preset)]
    assert all(cell.options["epochs"] == 3 for cell in params.cells.values())
    (folder,) = read
    assert folder == f"data/cells/run/shapes/{preset}/2"
    assert (
        capsys.readouterr().out == f"{folder}/record.json: not_applicable no pixels\n"
    )


def test_run_prints_the_whole_record_for_scripts(capsys, monkeypatch):
    made = builders.record(metrics={"rsum": 1.5})
    monkeypatch.setattr(run, "run", lambda *given: None)
    monkeypatch.setattr(run, "read_record", lambda folder: made)
    costs = Costs(scoring=builders.cost(per_pair=1.0))
    monkeypatch.setattr(run.results, "read_cell_costs", lambda folder, record: costs)
    assert main(["run", "scan_t2i_avg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == made.model_dump(mode="json") | {
        "cost": costs.model_dump(mode="json")
    }


@pytest.mark.slow
def test_run_plays_a_method_file_from_anywhere(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 128)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 1)
    source = (HERE.parent / "methods" / "two_branch_embedding.py").read_text(
        encoding="utf-8"
    )
    Path("mine.py").write_text(source, encoding="utf-8")
    Path("small.yaml").write_text(
        "title: Small\ndatasets:\n  shapes:\n    options: {train: 40, val: 10, test: 12}\n"
        "    image: {network: drawn_cnn, input_size: 96}\n    words: {size: 8}\n"
        "presets: [scan_t2i_avg]\nseeds: [0]\n",
        encoding="utf-8",
    )
    assert main(["season", "small.yaml"]) == 0
    capsys.readouterr()
    options = ["--option", "epochs=1", "--option", "hidden_size=8"]
    assert main(["run", "--method", "mine.py", "--seed", "3", *options]) == 0
    path = Path("data/cells/run/shapes/mine/3/record.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["preset"], record["seed"], record["status"]) == ("mine", 3, "ok")
    assert record["options"]["hidden_size"] == 8


def ran(words: list[str], path: str) -> subprocess.CompletedProcess:
    settings = os.environ | {"PYTHONPATH": path}
    return subprocess.run(words, env=settings, capture_output=True, text=True)


@pytest.mark.parametrize("missing", ["pandas", "networkx"])
def test_an_environment_that_is_not_activated(missing, tmp_path):
    """A package that is not there is told in one line; here its import fails as it
    would."""
    text = f"raise ModuleNotFoundError('none', name={missing!r})\n"
    (tmp_path / f"{missing}.py").write_text(text, encoding="utf-8")
    path = f"{tmp_path}{os.pathsep}{HERE.parent}"
    done = ran([sys.executable, "-m", "benchmark", "play"], path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"no package {missing}: activate the environment" in done.stderr


@pytest.mark.slow
def test_head_closes_the_pipe():
    command = f"'{sys.executable}' -m benchmark list presets | head -n 1"
    done = ran(["sh", "-c", command], str(HERE.parent))
    assert done.stderr == "" and done.stdout.count("\n") == 1

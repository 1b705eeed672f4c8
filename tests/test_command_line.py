"""The command line as its users meet it: help, lists, and mistakes told in one line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmark.__main__ import COMMANDS, VERBS, main
from benchmark.commands import run
from benchmark.encode import drawn_pretraining
from benchmark.season.presets import PACKAGE_ROOT

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def one_line(capsys) -> str:
    text = capsys.readouterr().err.strip()
    assert text.startswith("rematch: ") and "\n" not in text
    return text


@pytest.mark.parametrize("words", [("nowhere",), ("--season", "nowhere")])
def test_a_site_is_of_a_season_by_name(words, capsys):
    """Alone, as `play` takes it, and with the option that other verbs have."""
    assert main(["site", *words]) == 2
    assert "seasons/nowhere/params.yaml" in one_line(capsys)


def test_every_command_is_a_verb():
    files = (HERE.parent / "benchmark/commands").glob("*.py")
    commands = {path.stem for path in files if "\ndef configure(" in path.read_text("utf-8")}
    assert commands == set(COMMANDS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_helps(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    assert f"usage: python -m benchmark {verb}" in capsys.readouterr().out


def test_an_unknown_verb_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["plan"])
    assert stop.value.code == 2 and "no verb 'plan'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("methods", {"scan", "two_branch_embedding"}),
        ("presets", {"scan_t2i_avg", "two_branch_constraints", "scan_t2i_avg_i2t_lse"}),
        ("datasets", {"shapes", "flickr8k", "folder"}),
        ("seasons", {"demo", "flickr8k"}),
    ],
)
def test_lists(what, expected, capsys):
    assert main(["list", what, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert expected <= {row["name"] for row in rows}
    assert main(["list", what]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert named == [row["name"] for row in rows]


def test_presets_tell_the_papers_numbers(capsys):
    main(["list", "presets", "--json"])
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    reported = {numbers["table"]: numbers for numbers in rows["scan_i2t_avg"]["reported"]}
    first = reported["scan/1"]
    assert first["place"] == "flickr30k/test"
    assert (first["numbers"]["i2t_r1"], first["numbers"]["t2i_r10"]) == (67.9, 82.8)
    assert {"scan/1", "scan/3", "scan/4", "scan/5"} <= set(reported)
    main(["list", "presets"])
    printed = capsys.readouterr().out
    assert "scan/4, flickr30k/test: i2t_r1 67.9 i2t_r5 89.0 i2t_r10 94.4 t2i_r1 43.9" in printed
    assert "instance_loss/2, flickr30k/val: i2t_r1 39.9" in printed


def test_a_stage_without_a_season(capsys):
    assert main(["train", "shapes-scan_t2i_avg-0"]) == 2
    assert "params.yaml: expected the active season, found nothing; choose one" in one_line(capsys)


def test_season_then_an_unknown_cell(capsys):
    assert main(["season", "demo"]) == 0
    capsys.readouterr()
    assert main(["train", "shapes-nothing-0"]) == 2
    assert "cell 'shapes-nothing-0': expected one of shapes-dual_path" in one_line(capsys)


def test_an_unknown_season(capsys):
    assert main(["season", "spring"]) == 2
    assert "season 'spring': expected one of ablations, all, demo, flickr8k" in one_line(capsys)


def test_a_season_file_from_elsewhere_is_kept_with_what_is_made_from_it(capsys):
    text = "title: Small\ndatasets: {shapes: {}}\npresets: [scan_t2i_avg]\nseeds: [0]\n"
    Path("small.yaml").write_text(text, encoding="utf-8")
    assert main(["season", "small.yaml", "--source", "shapes=raw"]) == 0
    assert "season small: 1 training, 0 fusions" in capsys.readouterr().out
    assert Path("seasons/small/season.yaml").read_text(encoding="utf-8") == text
    assert Path("seasons/small/pipelines/shapes/scan_t2i_avg/dvc.yaml").is_file()
    assert "shapes: raw" in Path("local.yaml").read_text(encoding="utf-8")
    assert main(["season"]) == 0
    assert capsys.readouterr().out == "season small: 1 training, 0 fusions\n"
    assert main(["season", "small"]) == 0  # by its name from now on
    capsys.readouterr()
    Path("small.yaml").write_text(text.replace("Small", "Other"), encoding="utf-8")
    assert main(["season", "small.yaml"]) == 0
    before = Path("seasons/small/season.yaml.before")
    assert f"what it was is in {before}" in capsys.readouterr().out
    assert before.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("failed", 1), ("not_applicable", 0)])
def test_run_says_by_its_exit_status_whether_the_cell_failed(status, code, capsys, monkeypatch):
    record = SimpleNamespace(status=status, reason="", metrics={})
    monkeypatch.setattr(run, "play", lambda params, *others: None)
    monkeypatch.setattr(run, "read_record", lambda folder: record)
    assert main(["run", "vse"]) == code


@pytest.mark.parametrize("method", ["cca", "vse", "scan"])
def test_run_plays_a_method_that_is_called_as_one_of_its_presets(method, capsys, monkeypatch):
    given = []
    monkeypatch.setattr(run, "play", lambda params, *others: given.append(params))
    record = SimpleNamespace(status="ok", reason="", metrics={})
    monkeypatch.setattr(run, "read_record", lambda folder: record)
    assert main(["run", "--method", method]) == 0
    assert [cell.method for cell in given[0].cells.values()] == [method]


@pytest.mark.parametrize("value", ["[1", ": b", "2020-13-45", "!!python/name:os.system"])
def test_an_option_that_is_no_yaml_is_refused_in_a_line(capsys, value):
    words = ["vse", "--dataset", "shapes", "--option", f"epochs={value}"]
    assert main(["run", *words]) == 2
    assert "--option epochs: expected" in one_line(capsys)


def test_a_season_has_no_reserved_name(capsys):
    Path("shared.yaml").write_text("title: T\ndatasets: {}\npresets: []\nseeds: [0]\n")
    assert main(["season", "shared.yaml"]) == 2
    assert "season shared: expected another name" in one_line(capsys)
    assert not Path("seasons").exists()


def test_a_source_of_no_dataset(capsys):
    assert main(["season", "demo", "--source", "coco=/data"]) == 2
    assert "expected DATASET=DIR with a dataset of people, shapes, found 'coco=/data'" in one_line(
        capsys
    )


@pytest.mark.slow
def test_doctor_is_content_with_the_demo(capsys):
    main(["season", "demo"])
    capsys.readouterr()
    assert main(["doctor", "--quick", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert findings["datasets"]["shapes"]["present"]
    assert findings["networks"]["shapes drawn_cnn"]["present"]


def test_doctor_tells_what_is_missing_and_where_to_get_it(capsys, tmp_path):
    shutil.copytree(PACKAGE_ROOT / "examples/crossed", "examples/crossed")  # its own methods
    assert main(["season", "flickr8k", "--weights-dir", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["doctor", "--quick"]) == 2
    told = capsys.readouterr()
    assert "missing: flickr8k, flickr8k mobilenet_v2" in told.err
    assert "Flickr8k_Dataset.zip" in told.out
    assert "expected exactly one file mobilenet_v2-*.pth, found none" in told.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected either a preset or --method"),
        (["scan_x"], "preset 'scan_x': expected one of cca, "),
        (["scan_t2i_avg", "--option", "epochs"], "--option: expected KEY=VALUE, found 'epochs'"),
        (["scan_t2i_avg", "--option", "depth=3"], "one of direction, "),
        (["--method", "mine.py"], "method 'mine.py'"),
    ],
)
def test_run_refuses_what_it_does_not_know(arguments, message, capsys):
    assert main(["run", *arguments]) == 2
    assert message in one_line(capsys)
    assert not Path("data/features").exists()


@pytest.mark.parametrize(
    ("preset", "played"),
    [
        ("scan_t2i_avg", ["scan_t2i_avg"]),
        ("dual_path_full_2", ["dual_path_instance_1", "dual_path_full_2"]),
        ("scan_t2i_avg_i2t_lse", ["scan_t2i_avg", "scan_i2t_lse", "scan_t2i_avg_i2t_lse"]),
    ],
)
def test_run_plays_what_a_preset_needs_and_shows_the_preset(preset, played, capsys, monkeypatch):
    given = []
    monkeypatch.setattr(run, "play", lambda params, *others: given.append(params))
    read = {}

    def read_record(folder):
        read["folder"] = str(folder)
        return SimpleNamespace(status="not_applicable", reason="no pixels", metrics={})

    monkeypatch.setattr(run, "read_record", read_record)
    assert main(["run", preset, "--seed", "2", "--option", "epochs=3"]) == 0
    (params,) = given
    cells = {**params.cells, **params.fusions}
    assert list(cells) == [f"shapes-{name}-2" for name in played]
    assert all(cell.options["epochs"] == 3 for cell in params.cells.values())
    folder = f"results/run/shapes/{preset}/2"
    assert read["folder"] == folder
    assert capsys.readouterr().out == f"{folder}/record.json: not_applicable no pixels\n"


@pytest.mark.parametrize(
    ("preset", "dataset", "metrics"),
    [
        ("cca_phrases", "shapes", {"p2r_r1": 50.0, "p2r_bound": 90.5, "rsum": 120.0}),
        ("dual_path_cuhk_1", "people", {"t2i_r1": 2.5, "rsum": 9.0, "overlap_s": 0.5}),
        ("scan_t2i_avg", "people", {"t2i_r1": 2.5}),  # the demo does not play it there
    ],
)
def test_run_shows_the_metrics_that_there_are(preset, dataset, metrics, capsys, monkeypatch):
    record = SimpleNamespace(status="ok", reason="", metrics=metrics | {"other": 1.0})
    monkeypatch.setattr(run, "play", lambda *given: None)
    monkeypatch.setattr(run, "read_record", lambda folder: record)
    assert main(["run", preset, "--dataset", dataset]) == 0
    first, *shown = capsys.readouterr().out.splitlines()
    assert first == f"results/run/{dataset}/{preset}/0/record.json: ok"
    assert {line.split()[0]: float(line.split()[1]) for line in shown} == metrics


@pytest.mark.slow
def test_run_plays_a_method_file_from_anywhere(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 128)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 1)
    source = (HERE.parent / "methods" / "two_branch_embedding.py").read_text(encoding="utf-8")
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
    assert main(["run", "--method", "mine.py", "--seed", "3", *options, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["preset"], record["seed"], record["status"]) == ("mine", 3, "ok")
    assert record["options"]["hidden_size"] == 8


def test_without_a_verb_all_are_told(capsys):
    assert main([]) == 0
    told = capsys.readouterr().out
    lines = [line for line in told.splitlines() if line.startswith("  ") and line.split()]
    named = {line.split()[0]: line.split()[1:] for line in lines}
    assert all(len(named[verb]) > 2 for verb in VERBS)


@pytest.mark.parametrize("missing", ["pandas", "networkx"])
def test_an_environment_that_is_not_activated(missing, tmp_path):
    """A package that is not there is told in one line; here its import fails as it would."""
    (tmp_path / f"{missing}.py").write_text(
        f"raise ModuleNotFoundError('none', name={missing!r})\n", encoding="utf-8"
    )
    settings = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{HERE.parent}"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmark", "play"],
        cwd=tmp_path,
        env=settings,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"no package {missing}: activate the environment" in done.stderr


@pytest.mark.slow
def test_head_closes_the_pipe(tmp_path):
    command = f"'{sys.executable}' -m benchmark list presets | head -n 1"
    settings = os.environ | {"PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=settings, capture_output=True, text=True
    )
    assert done.stderr == "" and done.stdout.count("\n") == 1

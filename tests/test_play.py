"""`play` runs what DVC would, and DVC finds nothing stale afterwards."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from dvc.repo import Repo
from refusals import refused

from benchmark.__main__ import main
from benchmark.commands import play
from benchmark.data import results
from benchmark.encode import drawn_pretraining
from seasons import ROOT, clone

SEASON = {
    "title": "Small",
    "datasets": {
        "tiny": {
            "reader": "shapes",
            "options": {"train": 48, "val": 12, "test": 24},
            "image": {"network": "drawn_cnn", "input_size": 96, "flip": False},
            "words": {"size": 8},
            "sentence": {"hglmm": {"centres": 2, "size": 6}},
            "folds": 3,
            "fold_presets": ["two_branch_single"],
        }
    },
    "presets": ["cyclematch_adaptive", "two_branch_single", "cyclematch"],
    "seeds": [0],
    "device": "cpu",
    "options": {
        "two_branch_embedding": {"hidden_size": 8, "embedding_size": 4, "epochs": 1},
        "cyclematch": {"hidden_size": 8, "embedding_size": 4, "epochs": 1},
    },
    "sentence_of": {"cyclematch*": "hglmm"},
}
FILE = Path("seasons/small/season.yaml")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A repository with a season that was run by `play`."""
    folder = tmp_path_factory.mktemp("play")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        clone()
        FILE.parent.mkdir(parents=True)
        FILE.write_text(yaml.safe_dump(SEASON))
        patch.setattr(drawn_pretraining, "CLOSE_UPS", 64)
        patch.setattr(drawn_pretraining, "EPOCHS", 1)
        drawn_pretraining.main()
        assert main(["season", "small"]) == 0
        with Repo() as repo:
            repo.commit("seasons/shared/dvc.yaml:pretrain", force=True)
        assert main(["play", "small", "--jobs", "1"]) == 0
    return folder


@pytest.fixture
def season(place, monkeypatch) -> Path:
    monkeypatch.chdir(place)
    return place


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_was_run_is_up_to_date_for_dvc_and_runs_again_where_it_was_edited(
    season, capsys
):
    with Repo() as repo:
        assert not repo.status("seasons/small/dvc.yaml", with_deps=True)
    FILE.write_text(yaml.safe_dump(SEASON | {"title": "Another title"}))
    assert main(["play", "--dry"]) == 0
    assert capsys.readouterr().out.split() == ["cells", "report"]
    changed = SEASON["options"] | {
        "two_branch_embedding": {"epochs": 2, "embedding_size": 4}
    }
    FILE.write_text(yaml.safe_dump(SEASON | {"options": changed}))
    assert main(["play", "--only", "*two_branch*", "--jobs", "1"]) == 0
    for dataset in ("tiny", "tiny_fold1", "tiny_fold2"):
        record = results.read_kept("small", dataset)["two_branch_single/0"].record
        assert record.dataset == dataset and record.options["epochs"] == 2
    said = capsys.readouterr()
    assert (
        "train@tiny-two_branch_single-0: done" in said.err
        and "cyclematch" not in said.err
    )
    assert main(["play", "--jobs", "1"]) == 0
    with Repo() as repo:
        assert not repo.status("seasons/small/dvc.yaml", with_deps=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dvc_runs_each_stage_as_a_program(season):
    # other tests call the stages in their own process
    tiny = SEASON["datasets"]["tiny"] | {"options": {"train": 50, "test": 25}}
    for key in ("folds", "fold_presets"):
        del tiny[key]
    changes = {"datasets": {"tiny": tiny}, "presets": ["two_branch_single"]}
    FILE.write_text(yaml.safe_dump(SEASON | changes))
    assert main(["season", "small"]) == 0
    programs = Path(sys.executable).parent
    path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    command = [programs / "dvc", "repro", "-q"]
    subprocess.run(command, env=os.environ | path, check=True)
    assert set(results.read_kept("small", "tiny")) == {"two_branch_single/0"}
    with Repo() as repo:
        assert not repo.status("seasons/small/dvc.yaml", with_deps=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_stage_of_ones_own_is_named_and_left_to_dvc(season, capsys):
    FILE.write_text(yaml.safe_dump(SEASON))
    pipeline = yaml.safe_load(Path("dvc.yaml").read_text())
    pipeline["stages"]["mine"] = {"cmd": "exit 1"}
    Path("dvc.yaml").write_text(yaml.safe_dump(pipeline))
    assert main(["play", "--jobs", "1"]) == 0
    assert "dvc.yaml: mine: " in capsys.readouterr().out


def test_another_folder_wrong_names_and_a_second_one_are_refused(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["play"]) == 2
    assert "expected the project's folder" in capsys.readouterr().err
    monkeypatch.chdir(ROOT)
    assert main(["play", "flicker8k"]) == 2
    assert "flickr8k?" in capsys.readouterr().err
    assert main(["play", "demo", "--only", "shapes-scam_t2i_avg-0"]) == 2
    assert "shapes-scan_t2i_avg-0?" in capsys.readouterr().err


def test_options_of_play_and_verify_are_refused_in_a_line(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    for value in ("a", "0;1", "-1", "0,,0", "99"):
        assert main(["play", "demo", "--gpus", value]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        unknown = "device 'cuda:99': expected a CUDA device"
        assert (
            unknown if value == "99" else "--gpus: expected numbers of GPUs"
        ) in line
    for verb in ("play", "verify"):
        assert main([verb, "demo", "--jobs", "0"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "--jobs: expected 1 or more" in line


def test_a_dry_run_tells_how_long_its_trainings_took(monkeypatch):
    cells = dict.fromkeys(["a-vse-0", "a-vse-1", "a-scan-0"])
    params = SimpleNamespace(cells=cells, season="try")
    seconds = {"a-vse-0": 1800.0, "a-vse-1": 1800.0, "a-scan-0": 9e9}
    monkeypatch.setattr(play.tasks, "training_seconds", lambda _: seconds)
    stale = ["prepare", "train@a-vse-0", "train_on@a-vse-1"]  # one has a start
    told = play.hours_of(params, stale)
    assert "2 of them trainings: took 1.0 hours" in told
    assert "rematch doctor try --estimate" in told
    del seconds["a-vse-1"]
    assert "1 of these took 0.5 hours" in play.hours_of(params, stale)
    seconds.clear()
    assert "none of which" in play.hours_of(params, stale)
    assert play.hours_of(params, ["prepare"]) == "1 stage, 0 of them trainings"


def test_a_signal_waits_until_a_lock_file_is_written():
    happened = []
    before = signal.signal(signal.SIGTERM, lambda *_: happened.append("ended"))
    # a shell has background jobs ignore it
    interrupts = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with play.held_back(signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(signal.SIGTERM)
            happened.append("written")
        assert happened == ["written", "ended"]
        with pytest.raises(KeyboardInterrupt), play.held_back(signal.SIGINT):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, interrupts)


def test_a_gpu_has_no_leading_zero():
    with refused("--gpus", found="'01'"):
        play.gpus_of("01")


@pytest.mark.parametrize(
    ("status", "is_new", "has_failed"),
    [("failed", True, True), ("failed", False, False), ("not_applicable", True, False)],
)
def test_a_play_fails_with_a_cell_that_failed_in_it(
    status, is_new, has_failed, monkeypatch, capsys
):
    cell = SimpleNamespace(dataset="a", kept_as="vse/0")
    params = SimpleNamespace(season="s", everything={"a-vse-0": cell})
    kept = {"vse/0": SimpleNamespace(status=status, reason="why")}
    monkeypatch.setattr(play, "read_all", lambda kind, path: kept)
    monkeypatch.setattr(play.pipeline, "evaluation_of", lambda params, key: key)
    run = {"a-vse-0"} if is_new else set()
    assert play.tell_cells(params, ["a-vse-0"], run) == has_failed
    told = capsys.readouterr().out
    assert f"a-vse-0: {status}: why" in told and ("earlier" in told) != is_new

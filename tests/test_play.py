"""`play`: what is stale is played, several stages at once, and DVC agrees that nothing is left."""

import contextlib
import os
import re
import shutil
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import pytest
from dvc_repository import ROOT, copy_code, repository, stale, start
from report_seasons import leave_figures_empty
from zc.lockfile import LockFile

from benchmark.__main__ import main
from benchmark.commands import local_workers, play
from benchmark.commands.local_workers import Processes
from benchmark.commands.task_queue import Task
from benchmark.core.files import read_json
from benchmark.encode import drawn_pretraining
from benchmark.season.parameter_files import activate, read_params

SEASON = """
title: Small
datasets:
  shapes:
    options: {train: 24, val: 6, test: 10}
    image: {network: drawn_cnn, input_size: 96, flip: false}
    words: {size: 8}
presets: [scan_t2i_avg, scan_i2t_lse, scan_t2i_avg_i2t_lse]
seeds: [0]
device: cpu
options:
  scan: {embedding_size: 8, word_size: 8, epochs: 1, decay_after: 1}
"""
CELLS = ["scan_t2i_avg", "scan_i2t_lse"]


class InThisProcess(Processes):
    """Processes whose tasks are played at once, here."""

    def submit(self, name: str, task: Task) -> Future:
        future = Future()
        future.set_result(local_workers.played(name, task))
        return future

    def reason(self, future: Future, task: Task) -> str:
        return future.result()


@pytest.fixture
def season(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 64)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 1)
    monkeypatch.setattr(play, "Processes", InThisProcess)
    leave_figures_empty(monkeypatch)
    copy_code()
    Path("small.yaml").write_text(SEASON)
    assert main(["season", "small.yaml"]) == 0
    start()
    return tmp_path


def played(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, list[str]]:
    capsys.readouterr()
    with repository():
        status = main(["play", *arguments])
    return status, capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_what_is_stale_is_played_and_nothing_else(season, capsys):
    status, said = played(capsys, "--only", "shapes-scan_t2i_avg-0")
    assert (status, said) == (0, ["7 stages played, 0 up to date, 0 failed"])
    assert read_json(Path("results/small/shapes/scan_t2i_avg/0/record.json"))["status"] == "ok"
    assert not Path("results/small/shapes/scan_i2t_lse").exists()
    status, said = played(capsys)
    assert (status, said[0]) == (0, "6 stages played, 7 up to date, 0 failed")
    assert said[1].startswith("shapes, retrieval, highest rsum of 3: ")
    where = "report: reports/small/README.md; to explore: python -m benchmark site"
    assert said[2:] == [where]
    assert stale() == []
    assert played(capsys, "--dry") == (0, ["everything is up to date"])
    Path("results/small/shapes/scan_i2t_lse/0/record.json").unlink()
    again = ["evaluate shapes/scan_i2t_lse 0", "evaluate shapes/scan_t2i_avg_i2t_lse 0"]
    assert played(capsys, "--dry")[1] == [*again, "report small"]
    # The costs of the evaluation, which hold times, are another input of the report.
    assert played(capsys)[1][0] == "2 stages played, 11 up to date, 0 failed"


@pytest.mark.slow
def test_a_stage_that_fails_stops_those_that_need_it_alone(season, capsys, monkeypatch):
    path = Path("seasons/small/cells/shapes-scan_i2t_lse-0.yaml")
    path.write_text(path.read_text().replace("epochs: 1", "epochs: -1"))
    status, said = played(capsys)
    assert status == 1 and said[0].endswith(" 1 failed")
    assert said[1].startswith("train shapes/scan_i2t_lse 0: ") and "epochs" in said[1]
    assert "Error" not in said[1] and "(see .scratch/log/train-shapes-" in said[1]
    assert said[2:] == ["5 stages wait for it"]


@pytest.mark.slow
def test_a_preset_that_comes_back_is_not_trained_again(season, capsys):
    only = ("--only", "shapes-scan_t2i_avg-0")
    assert played(capsys, *only)[0] == 0
    file = Path("seasons/small/season.yaml")
    whole = file.read_text()
    pipeline = Path("seasons/small/pipelines/shapes/scan_t2i_avg/dvc.yaml")
    for preset in ("scan_i2t_lse", "scan_t2i_avg"):
        file.write_text(re.sub("presets: .*", f"presets: [{preset}]", whole))
        assert main(["season", "small"]) == 0
        assert pipeline.is_file() == (preset == "scan_t2i_avg")
        ended, said = played(capsys, "--dry")  # DVC does not mind a lock alone
        assert ended == 0 and ("train shapes/scan_i2t_lse 0" in said) == (preset == "scan_i2t_lse")
    assert played(capsys, *only, "--dry") == (0, ["everything is up to date"])


@pytest.mark.slow
def test_a_cell_that_failed_is_told_each_time(season, capsys):
    """The exit status is that of what was played now."""
    shutil.copy(ROOT / "tests/own_methods/breaks.py", "breaks.py")
    own = "presets: [breaks]\nmethods: {breaks: breaks.py}"
    Path("small.yaml").write_text(re.sub("presets: .*", own, SEASON))
    assert main(["season", "small.yaml"]) == 0
    for status, counts in ((1, "12 stages played, 0"), (0, "0 stages played, 12")):
        ended, said = played(capsys)
        assert (ended, said[0]) == (status, f"{counts} up to date, 0 failed")
        assert stale() == []
        assert said[1].startswith("1 cell without a result: shapes/breaks 0: the loss ")
        assert said[2].startswith("report: reports/small/README.md")


@pytest.mark.slow
def test_what_an_edit_overtook_is_not_up_to_date(season, capsys, monkeypatch):
    """The training is of the file as it was when it began."""
    edited = Path("seasons/small/cells/shapes-scan_t2i_avg-0.yaml")
    whole = edited.read_text()

    class Editing(InThisProcess):
        def submit(self, name: str, task: Task) -> Future:
            future = super().submit(name, task)
            if name.startswith("train "):
                edited.write_text(f"{whole}# edited\n")
            return future

    monkeypatch.setattr(play, "Processes", Editing)
    status, said = played(capsys, "--only", "shapes-scan_t2i_avg-0")
    assert status == 1 and f"{edited} changed while it ran; play again" in said[1]
    monkeypatch.setattr(play, "Processes", InThisProcess)
    assert "train shapes/scan_t2i_avg 0" in played(capsys, "--dry")[1]
    status, said = played(capsys, "--only", "shapes-scan_t2i_avg-0")
    assert (status, said) == (0, ["2 stages played, 5 up to date, 0 failed"])


def test_the_active_season_is_played_as_far_as_dvc_status_looks(season):
    small = read_params("small")
    assert play._targets(small, "*") == ["dvc.yaml:season"]
    activate("other")
    assert play._targets(small, "*") == ["seasons/small/dvc.yaml:metrics"]


def test_another_folder_and_a_wrong_name_are_told_with_what_to_do(season, capsys):
    Path("below").mkdir()
    for folder, name, told in (
        (".", "smal", "found 'smal' (did you mean small?)"),
        ("below", "small", f"run it in {season}\n"),
    ):
        with contextlib.chdir(folder):
            assert main(["play", name]) == 2
        assert told in capsys.readouterr().err


def test_cells_that_are_not_there_are_named(season, capsys):
    assert main(["play", "--only", "nothing"]) == 2
    assert "shapes-scan_t2i_avg-0" in capsys.readouterr().err
    assert main(["play", "--jobs", "0"]) == 2


def test_a_second_one_in_the_same_folder_is_refused(season, capsys):
    play.PLAYING.parent.mkdir(exist_ok=True)
    with closing(LockFile(str(play.PLAYING))), repository():
        assert main(["play"]) == 2
        assert f"process {os.getpid()}" in capsys.readouterr().err
        assert main(["play", "--dry"]) == 0


def test_a_lock_that_dvc_cannot_read_is_told_in_one_line(season, capsys):
    Path("seasons/shared/dvc.lock").write_text("<<<<<<< HEAD\n: [")
    with repository():
        assert main(["play"]) == 2
    told = capsys.readouterr().err
    assert "dvc.lock" in told and "run: dvc status" in told and "Traceback" not in told

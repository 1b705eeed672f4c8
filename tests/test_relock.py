"""`relock`: locks follow a change of code that a replay shows to change nothing, and no other."""

from pathlib import Path

import pytest
import yaml
from dvc_repository import copy_code, repository, stale, start
from report_seasons import leave_figures_empty
from test_play import InThisProcess

from benchmark.__main__ import main
from benchmark.analysis.relocks import Relock, Shown, note_relock, read_relocks
from benchmark.commands import play, relock, verify
from benchmark.encode import drawn_pretraining
from benchmark.report.pages.replay_lines import replay_lines
from benchmark.season.code_digests import write_digests

SEASON = """
title: Small
datasets:
  shapes:
    options: {train: 24, val: 6, test: 10}
    image: {network: drawn_cnn, input_size: 96, flip: false}
    words: {size: 8}
presets: [scan_t2i_avg, vse]
seeds: [0]
device: cpu
options:
  scan: {embedding_size: 8, word_size: 8, epochs: 1, decay_after: 1}
  vse: {embedding_size: 8, word_size: 8, epochs: 1, decay_after: 1}
"""
LOCK = "seasons/small/pipelines/shapes/{}/dvc.lock"
pytestmark = pytest.mark.slow


@pytest.fixture
def season(tmp_path, monkeypatch) -> None:
    """A played season, and code that has changed since: of SCAN and of the yardstick."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 64)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 1)
    monkeypatch.setattr(play, "Processes", InThisProcess)
    monkeypatch.setattr(verify, "Processes", InThisProcess)
    monkeypatch.setattr(relock, "PACKAGE_ROOT", tmp_path)
    leave_figures_empty(monkeypatch)
    copy_code()
    Path("small.yaml").write_text(SEASON)
    assert main(["season", "small.yaml"]) == 0
    start()
    with repository():
        assert main(["play"]) == 0
    for method in ("scan", "vse"):
        path = Path(f"methods/{method}.py")
        path.write_text(path.read_text() + "\nNOTHING = 0\n")
    write_digests(tmp_path)


def stale_cells() -> set[tuple[str, str]]:
    """Presets, and their stages that DVC would play."""
    return {(preset, stage) for preset, stage in stale() if preset in ("scan_t2i_avg", "vse")}


def relocked(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    with repository():
        status = main(["relock", "small", *arguments])
    told = capsys.readouterr()
    return status, told.out + told.err


def test_locks_follow_the_code_of_what_was_played_again(season, capsys):
    assert len(stale_cells()) == 4
    status, said = relocked(capsys, "--cells", "*scan*")
    assert status == 0 and "small: 2 of 4 stages with former code follow" in said
    assert stale_cells() == {("vse", "train-0"), ("vse", "evaluate-0")}
    (noted,) = read_relocks("small")
    assert (noted.stages, [shown[:2] for shown in noted.replays]) == (2, [("small", 1)])
    files = [change.file for change in noted.code]
    assert files == ["data/code/evaluate-scan.txt", "data/code/train-scan.txt"]
    (line,) = replay_lines("small", [])
    assert line.startswith("Stages that were not played anew when code changed: 2. With the later ")
    assert (
        "1 cell of the season small (fingerprint " in line and "evaluate-scan, train-scan" in line
    )
    assert relocked(capsys)[0] == 0
    assert stale_cells() == set()
    assert [noted.stages for noted in read_relocks("small")] == [2, 2]
    assert "small: 0 of 0 stages" in relocked(capsys)[1]
    assert len(read_relocks("small")) == 2


def test_what_an_earlier_replay_showed_counts_and_is_named(season, capsys):
    earlier = Shown("other", 3, "f")
    with repository():
        of_vse = {stage: of for stage, of in relock._changes("small").items() if "vse" in stage}
    code = sorted(set().union(*of_vse.values()))
    note_relock("small", Relock(stages=2, code=code, replays=[earlier]))
    assert relocked(capsys, "--cells", "*scan*")[0] == 0
    assert stale_cells() == set()
    noted = read_relocks("small")[-1]
    assert noted.stages == 4 and [shown[:2] for shown in noted.replays] == [
        ("other", 3),
        ("small", 1),
    ]
    assert (
        "3 cells of the season other (fingerprint f) and 1 cell of" in replay_lines("small", [])[-1]
    )


def test_a_replay_shows_nothing_of_other_former_code(season, capsys):
    """One cell is stale for its code, the other for a yet earlier one; and for its command."""
    locks = {preset: LOCK.format(preset) for preset in ("scan_t2i_avg", "vse")}
    data = {preset: yaml.safe_load(Path(lock).read_text()) for preset, lock in locks.items()}
    for stage in data["vse"]["stages"].values():
        for dep in stage["deps"]:
            if dep["path"] in ("data/code/train-vse.txt", "data/code/evaluate-vse.txt"):
                dep["md5"] = "0" * 32
    data["scan_t2i_avg"]["stages"]["evaluate-0"]["cmd"] += " --former"
    for preset, lock in locks.items():
        Path(lock).write_text(yaml.safe_dump(data[preset]))
    Path(locks["vse"]).rename("vse.lock")
    with repository():
        assert main(["play", "--only", "*vse*"]) == 0  # now of the present code
    Path("vse.lock").rename(locks["vse"])
    assert relocked(capsys, "--cells", "*scan*")[0] == 0
    assert stale_cells() == {
        ("scan_t2i_avg", "evaluate-0"),
        ("vse", "train-0"),
        ("vse", "evaluate-0"),
    }


def test_code_that_is_edited_meanwhile_is_not_locked(season, capsys, monkeypatch):
    replayed = verify.replayed

    def edited(arguments):
        played = replayed(arguments)
        path = Path("methods/scan.py")
        path.write_text(path.read_text() + "\nMORE = 0\n")
        return played

    monkeypatch.setattr(verify, "replayed", edited)
    status, said = relocked(capsys, "--cells", "*scan*")
    assert status == 2 and "expected code that stays while cells are played" in said
    assert len(stale_cells()) == 4


def test_nothing_follows_what_leaves_other_bytes(season, capsys):
    history = Path("results/small/shapes/scan_t2i_avg/0/training/history.csv")
    history.write_text(history.read_text().replace("1,", "2,"))
    before = stale_cells()
    status, said = relocked(capsys, "--cells", "*scan*")
    assert status == 2 and "found other bytes of training/history.csv" in said
    assert stale_cells() == before
    assert read_relocks("small") == []

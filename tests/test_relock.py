"""`relock`: locks follow a change of code that a replay shows to change nothing, and no other."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from dvc_repository import copy_code, repository, stale, start
from report_seasons import leave_figures_empty
from test_play import InThisProcess

from benchmark.__main__ import main
from benchmark.analysis.relocks import Change, Relock, Shown, note_relock, read_relocks
from benchmark.commands import play, relock, verify
from benchmark.commands.stage_records import StageRecords, opened
from benchmark.encode import drawn_pretraining
from benchmark.evaluate import __main__ as evaluate
from benchmark.evaluate import figure_samples
from benchmark.prepare import __main__ as prepare
from benchmark.report.pages.replay_lines import replay_lines
from benchmark.season.code_digests import write_digests
from benchmark.season.parameter_files import read_params

SEASON = """
title: Small
datasets:
  shapes:
    options: {train: 24, val: 6, test: 10}
    image: {network: drawn_cnn, input_size: 96, flip: false}
    words: {size: 8}
presets: [scan_t2i_avg, scan_i2t_lse, scan_t2i_avg_i2t_lse, vse, vse_official]
seeds: [0]
device: cpu
options:
  scan: {embedding_size: 8, word_size: 8, epochs: 1, decay_after: 1}
  vse: {embedding_size: 8, word_size: 8, epochs: 1, decay_after: 1}
  vse_official: {embedding_size: 8, word_size: 8, epochs: 1, learning_rate: 1.0e+30}
"""
LOCK = "seasons/small/pipelines/shapes/{}/dvc.lock"
SHARED = Path("seasons/shared/pipelines/shapes/dvc.lock")
PRESETS = ("scan_t2i_avg", "scan_i2t_lse", "scan_t2i_avg_i2t_lse", "vse")
PORTABLE = "portable, 1 thread"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Path:
    """A project with a played season. VSE's official row failed: its loss was not finite."""
    folder = tmp_path_factory.mktemp("played")
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        copy_code()
        Path("small.yaml").write_text(SEASON)
        assert main(["season", "small.yaml"]) == 0
        start()
        with repository():
            main(["play"])
    return folder


@pytest.fixture
def season(played, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "project"
    shutil.copytree(played, folder, symlinks=True)
    enter(folder, monkeypatch)


def enter(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.chdir(folder)
    patch.setattr(drawn_pretraining, "CLOSE_UPS", 64)
    patch.setattr(drawn_pretraining, "EPOCHS", 1)
    patch.setattr(play, "Processes", InThisProcess)
    patch.setattr(verify, "Processes", InThisProcess)
    patch.setattr(relock, "PACKAGE_ROOT", folder)
    leave_figures_empty(patch)


def edit(*files: str) -> None:
    """Let their code be another one."""
    for file in files:
        Path(file).write_text(Path(file).read_text() + "\nNOTHING = 0\n")
    write_digests(Path.cwd())


def edit_methods() -> None:
    edit("methods/scan.py", "methods/vse.py")


def edit_lock(path: Path | str, stage: str, change: Callable[[list[dict]], object]) -> None:
    """Change the inputs of a stage in a lock."""
    lock = yaml.safe_load(Path(path).read_text())
    change(lock["stages"][stage]["deps"])
    Path(path).write_text(yaml.safe_dump(lock))


def stale_cells() -> set[tuple[str, str]]:
    """Presets, and their stages that DVC would play."""
    return {(preset, stage) for preset, stage in stale() if preset in PRESETS}


def relocked(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    with repository():
        status = main(["relock", "small", *arguments])
    told = capsys.readouterr()
    return status, told.out + told.err


def test_locks_follow_the_code_of_what_was_played_again(season, capsys):
    edit_methods()
    of_vse = {("vse", "train-0"), ("vse", "evaluate-0")}
    assert len(stale_cells()) == 6
    status, said = relocked(capsys, "--cells", "*scan_t2i_avg-0")
    assert status == 0 and "small: 4 of 8 stages with former code follow" in said
    assert stale_cells() == of_vse
    (noted,) = read_relocks("small")
    (shown,) = noted.shown
    assert (noted.stages, shown.season, shown.cells) == (4, "small", 1)
    assert [(change.file, change.numerics) for change in shown.code] == [
        ("data/code/evaluate-scan.txt", PORTABLE),
        ("data/code/train-scan.txt", PORTABLE),
    ]
    (line,) = replay_lines("small", [])
    assert line.startswith("Stages that were not played anew when code changed: 4. With the later ")
    assert "1 cell of the season small (fingerprint " in line
    assert "; portable, 1 thread: evaluate-scan, train-scan)" in line
    assert relocked(capsys, "--cells", "*vse-0")[0] == 0
    assert stale_cells() == set()
    assert [noted.stages for noted in read_relocks("small")] == [4, 4]
    assert "small: 0 of 0 stages" in relocked(capsys, "--cells", "*vse-0")[1]
    assert len(read_relocks("small")) == 2


def test_locks_follow_what_an_own_method_imports(season, capsys):
    """A module that is edited, and one that is not imported."""
    Path("own").mkdir()
    offered = "Config, Model, inputs, recipe"
    Path("own/mine.py").write_text(f"from methods.vse import {offered}\n\n__all__ = {offered!r}\n")
    small = yaml.safe_load(SEASON) | {"presets": ["mine"], "methods": {"mine": "own/mine.py"}}
    small["options"] = {"mine": small["options"]["vse"]}
    Path("own.yaml").write_text(yaml.safe_dump(small))
    with repository():
        assert main(["season", "own.yaml"]) == 0 and main(["play", "own"]) == 0
        edit("methods/vse.py")
        stages = {("mine", "train-0"), ("mine", "evaluate-0")}
        assert stages <= set(stale())
        assert main(["relock", "own"]) == 0
        assert not stages & set(stale())
    (noted,) = read_relocks("own")
    assert {change.file for change in noted.shown[0].code} == {"methods/vse.py"}


def test_what_an_earlier_replay_showed_counts_and_is_named(season, capsys):
    edit_methods()
    with repository(), opened(["seasons/small/dvc.yaml:metrics"]) as records:
        changed = records.changed_code({})
    of_vse = set().union(*(code for stage, code in changed.items() if "vse" in stage))
    other = Change("data/code/other.txt", "1", "2", PORTABLE)
    earlier = Shown(season="other", cells=3, fingerprint="f", code=[other, *sorted(of_vse)])
    note_relock("small", Relock(stages=2, shown=[earlier]))
    assert relocked(capsys, "--cells", "*scan_t2i_avg-0")[0] == 0
    assert stale_cells() == set()
    noted = read_relocks("small")[-1]
    assert {(shown.season, shown.cells) for shown in noted.shown} == {("other", 3), ("small", 1)}
    by_season = {shown.season: [change.file for change in shown.code] for shown in noted.shown}
    assert by_season["other"] == ["data/code/evaluate-vse.txt", "data/code/train-vse.txt"]
    assert by_season["small"] == ["data/code/evaluate-scan.txt", "data/code/train-scan.txt"]
    assert " by 3 cells of the season other (fingerprint f; " in replay_lines("small", [])[-1]


@pytest.mark.parametrize("field, value", [("former", "0" * 32), ("numerics", "intel, 1 thread")])
def test_a_replay_of_other_former_code_or_numerics_shows_nothing(season, capsys, field, value):
    edit_methods()
    with repository(), opened(["seasons/small/dvc.yaml:metrics"]) as records:
        changed = records.changed_code({})
    code = [change._replace(**{field: value}) for change in set().union(*changed.values())]
    earlier = Shown(season="other", cells=3, fingerprint="f", code=code)
    note_relock("small", Relock(stages=2, shown=[earlier]))
    assert relocked(capsys, "--cells", "*scan_t2i_avg-0")[0] == 0
    assert stale_cells() == {("vse", "train-0"), ("vse", "evaluate-0")}


def test_stages_of_another_command_do_not_follow(season, capsys):
    edit_methods()
    path = Path(LOCK.format("scan_i2t_lse"))
    path.write_text(path.read_text().replace("evaluate shapes-", "evaluate --former shapes-"))
    assert relocked(capsys, "--cells", "*scan_t2i_avg-0")[0] == 0
    assert ("scan_i2t_lse", "evaluate-0") in stale_cells()
    assert ("scan_i2t_lse", "train-0") not in stale_cells()


def test_a_lock_that_changes_meanwhile_does_not_follow(season, capsys, monkeypatch):
    edit("benchmark/evaluate/figure_samples.py")
    replayed = verify.replayed

    def former(deps: list[dict]) -> None:
        for dep in deps:
            dep["md5"] = "0" * 32 if dep["path"].startswith("data/code") else dep["md5"]

    def and_pulled(arguments):
        edit_lock(LOCK.format("scan_i2t_lse"), "evaluate-0", former)
        return replayed(arguments)

    monkeypatch.setattr(verify, "replayed", and_pulled)
    assert relocked(capsys, "--cells", "*scan_t2i_avg-0")[0] == 0
    assert ("scan_t2i_avg", "evaluate-0") not in stale_cells()
    assert ("scan_i2t_lse", "evaluate-0") in stale_cells()


def test_an_input_that_a_lock_lacks_was_not_shown(season, capsys):
    stage = next(name for name in yaml.safe_load(SHARED.read_text())["stages"] if "drawn" in name)
    edit("benchmark/encode/pictures.py")
    edit_lock(
        SHARED, stage, lambda deps: deps.remove(next(d for d in deps if "dataset-" in d["path"]))
    )
    assert ("shapes", stage) in stale()
    assert relocked(capsys, "--cells", "*scan_t2i_avg-0")[0] == 0
    assert ("shapes", stage) in stale()


def test_code_that_is_edited_meanwhile_is_not_locked(season, capsys, monkeypatch):
    edit_methods()
    replayed = verify.replayed

    def edited(arguments):
        played = replayed(arguments)
        edit("methods/scan.py")
        return played

    monkeypatch.setattr(verify, "replayed", edited)
    status, said = relocked(capsys, "--cells", "*scan_t2i_avg-0")
    assert status == 2 and "expected code that stays while cells are played" in said
    assert len(stale_cells()) == 6


def other_samples(patch: pytest.MonkeyPatch) -> None:
    """Evaluations of a model leave other bytes; those of fusions do not."""
    edit("benchmark/evaluate/figure_samples.py")
    patch.setattr(figure_samples, "of_model", lambda on_split: {})


@pytest.mark.parametrize("cells", ["*scan_t2i_avg-0", "*scan_t2i_avg_i2t_lse-0"])
def test_nothing_follows_other_bytes_of_a_cell_or_of_one_that_it_needs(
    season, capsys, monkeypatch, cells
):
    other_samples(monkeypatch)
    before = stale_cells()
    status, said = relocked(capsys, "--cells", cells)
    assert status == 2 and "found other bytes of record.json, scores/samples.npz" in said
    assert stale_cells() == before and read_relocks("small") == []


def test_nothing_follows_other_bytes_of_prepared_tables(season, capsys, monkeypatch):
    edit("benchmark/prepare/leakage.py")
    monkeypatch.setattr(prepare, "leakage", lambda *tables: {"changed": 1})
    before = set(stale())
    status, said = relocked(capsys, "--cells", "*scan_t2i_avg-0")
    assert status == 2 and "data/prepared/shapes, found other bytes of card.json" in said
    assert set(stale()) == before


def test_a_cell_without_a_result_shows_nothing(season, capsys, monkeypatch):
    other_samples(monkeypatch)
    status, said = relocked(capsys, "--cells", "*vse_official*")
    assert status == 2 and "shapes-vse_official-0: expected a result, found failed" in said
    shutil.rmtree("results/small/shapes/vse")
    assert "expected a result, found nothing" in relocked(capsys, "--cells", "*vse-0")[1]


def test_results_that_are_not_those_of_the_locks_are_no_measure(season, capsys, monkeypatch):
    """As a kill leaves them between an evaluation and its lock."""
    other_samples(monkeypatch)
    params = read_params("small")
    evaluate.evaluate_cell(params, params.cells["shapes-scan_t2i_avg-0"])
    before = stale_cells()
    status, said = relocked(capsys, "--cells", "*scan_t2i_avg-0")
    assert status == 2 and "expected outputs as in the locks" in said
    assert "results/small/shapes/scan_t2i_avg/0" in said
    assert stale_cells() == before


def test_what_is_cut_off_before_the_locks_is_not_noted(season, capsys, monkeypatch):
    edit_methods()

    def killed(self, names) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StageRecords, "relock", killed)
        relocked(capsys, "--cells", "*scan_t2i_avg-0")
    assert read_relocks("small") == [] and len(stale_cells()) == 6

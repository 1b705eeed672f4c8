"""`play` and `verify` on a small season, and the tasks that they run side by side."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from dvc.repo import Repo

from benchmark.__main__ import main
from benchmark.commands import tasks, verify
from benchmark.commands.tasks import Failure, Task
from benchmark.commands.verify import Compared
from benchmark.core.errors import UserError
from benchmark.core.numerics import Numerics
from benchmark.data import results
from benchmark.data.rank_keys import I2T
from benchmark.data.results import CellResult, Ranks, Scores
from benchmark.encode import drawn_pretraining
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Params
from benchmark.season.stages import Kind, Stage
from seasons import ROOT, clone

MODULE = """\
import os, signal, sys
from pathlib import Path
from benchmark.core import numerics
from benchmark.core.errors import UserError

def configure(parser):
    parser.add_argument("words", nargs="*")

def main(arguments):
    what, *names = arguments.words
    if what == "touch":
        assert all(Path(name).is_file() for name in names[1:])
        Path(names[0]).touch()
    if what == "refuse":
        raise UserError("here", "this", "that")
    if what == "die" or (what == "die_once" and not Path("died").is_file()):
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "say":
        names = ("CUDA_VISIBLE_DEVICES", numerics.JOBS)
        raise ValueError(" ".join([str(numerics.current()), *map(os.environ.get, names)]))
    return 3 if what == "status" else 0
"""


# Tasks --------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The working folder, with a module whose commands tasks run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    Path("small_stage.py").write_text(MODULE)
    return tmp_path


def task(words: str, *needs: str, **facts: object) -> Task:
    return Task("small_stage", tuple(words.split()), needs, **facts)


@pytest.mark.slow
def test_tasks_run_after_their_needs_and_a_failure_stops_only_those_that_need_it(
    folder, capsys
):
    named = {
        "last": task("touch last b a", "b", "a"),
        "b": task("touch b a", "a"),
        "a": task("touch a"),
        "odd": task("refuse"),
        "after odd": task("touch never", "odd"),
        "after that": task("touch never", "after odd"),
        "status": task("status"),
    }
    failed = tasks.run_all(named, 2)
    assert {path.name for path in folder.iterdir() if path.is_file()} >= {
        "a",
        "b",
        "last",
    }
    assert not Path("never").exists()
    line = str(UserError("here", "this", "that"))
    assert failed["odd"] == Failure(f"{line} (see {tasks.LOGS}/odd.log)")
    skipped = {name for name, failure in failed.items() if failure.is_skipped}
    assert skipped == {"after odd", "after that"}
    assert failed.keys() - skipped == {"odd", "status"}
    assert "exit status" in failed["status"].reason
    assert "odd: failed: here" in capsys.readouterr().err


@pytest.mark.slow
def test_tasks_compute_in_their_own_way_and_outlive_a_dead_process(folder):
    named = {
        "dies": task("die"),
        "dies once": task("die_once"),
        "apart": task("say", numerics=Numerics("native", 2), is_apart=True),
        "native": task("say", numerics=Numerics("native", 2)),
        "portable": task("say"),
        "apart again": task("say", numerics=Numerics("native", 2), is_apart=True),
    }
    before = dict(os.environ)
    failed = tasks.run_all(named, 1, ("5",))
    assert failed["dies"].reason == tasks.DIED and "dies once" not in failed
    for name in ("native", "apart", "apart again"):
        assert f"ValueError: {Numerics('native', 2)} 5 1" in failed[name].reason
    assert f"ValueError: {Numerics('portable', 1)} 5 1" in failed["portable"].reason
    assert dict(os.environ) == before


def test_what_is_up_to_date_is_not_run_and_what_does_not_count_has_failed(
    folder, monkeypatch
):
    named = {"a": task("touch a"), "b": task("touch b", "a")}
    assert tasks.run_all(named, 1, is_stale=lambda name: False) == {}
    assert not Path("a").exists()
    failed = tasks.run_all(
        named, 1, is_stale=lambda name: name == "b", ended=lambda name: "edited"
    )
    assert failed == {"b": Failure("edited")} and Path("b").exists()


def test_trainings_that_were_never_timed_begin_first_and_then_the_longest(folder):
    cell = read_params("demo").cells["shapes-scan_t2i_avg-0"]
    params = Params(season="s", title="s", device="cpu", datasets={}, feature_sets={})
    params = params.model_copy(update={"cells": {cell.key: cell}})
    stage = Stage(name=f"train@{cell.key}", kind=Kind.TRAIN, item=cell.key)
    never = tasks.of_stage(params, stage, (), {})
    known = {"short": task("", seconds=2), "long": task("", seconds=9), "never": never}
    asked = []
    assert tasks.run_all(known, 1, is_stale=lambda name: bool(asked.append(name))) == {}
    assert asked == ["never", "long", "short"]


# A season -----------------------------------------------------------------------------

SEASON = {
    "title": "Small",
    "datasets": {
        "tiny": {
            "reader": "shapes",
            "options": {"train": 48, "val": 12, "test": 20},
            "image": {"network": "drawn_cnn", "input_size": 96, "flip": False},
            "words": {"size": 8},
            "sentence": {"hglmm": {"centres": 2, "size": 6}},
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
    record = results.read_kept("small", "tiny")["two_branch_single/0"].record
    assert record.options["epochs"] == 2
    said = capsys.readouterr()
    assert (
        "train@tiny-two_branch_single-0: done" in said.err
        and "cyclematch" not in said.err
    )
    assert main(["play", "--jobs", "1"]) == 0
    with Repo() as repo:
        assert not repo.status("seasons/small/dvc.yaml", with_deps=True)


def test_verify_compares_all_that_counts(monkeypatch):
    monkeypatch.chdir(ROOT)
    old = results.read_kept("demo", "shapes")["scan_t2i_avg/0"]
    record = old.record
    rsum = f"{record.metrics['rsum']:.2f}"
    assert verify.comparison(old, old, None).is_identical
    failed = verify.comparison(old, old, Failure("why"))
    assert failed == Compared(rsum, rsum, problem="why")
    assert verify.comparison(old, None, None) == Compared(rsum, "-", problem="not run")
    new = verify.comparison(None, old, None)
    assert new == Compared("-", rsum, problem="not committed")
    metrics = record.metrics | {"rsum": record.metrics["rsum"] + 1e-13}
    history = {name: values[:-1] for name, values in record.history.items()}
    changed = record.model_copy(update={"metrics": metrics, "history": history})
    new = replace(old, record=changed)
    assert verify.comparison(old, new, None).different == ("metrics", "history")
    # The ranks of all relevant items; where one side knows the best ranks alone, these.
    first = Ranks(np.array([0, 2, 5]), np.array([2, 1]))
    for kept, different in (
        (first, ()),
        (Ranks.of_best(np.array([0, 5])), ()),
        (Ranks(np.array([0, 3, 5]), np.array([2, 1])), ("ranks",)),
        (Ranks(np.array([0, 2, 5, 7]), np.array([2, 2])), ("ranks",)),
    ):
        both = [with_ranks(old, ranks) for ranks in (first, kept)]
        assert verify.comparison(*both, None).different == different


def with_ranks(result: CellResult, ranks: Ranks) -> CellResult:
    """The result with other ranks, whatever its record says of them."""
    record = result.record.model_copy(update={"files": {}})
    npz = results.scores_npz(Scores(ranks={I2T: ranks}))
    return replace(result, record=record, arrays={results.RANKS: npz})


def test_verify_runs_what_cells_need_and_nothing_that_was_made(monkeypatch):
    monkeypatch.chdir(ROOT)
    params = read_params("demo")
    named = verify.tasks_of(params, ["shapes-cyclematch_adaptive-0"])
    assert list(named)[-1] == "evaluate@shapes-cyclematch_adaptive-0"
    assert {re.split("[-@]", name)[0] for name in named} == {
        *("fetch", "prepare", "pretrain", "encode", "train", "evaluate")
    }
    done = set()
    for name, each in named.items():
        assert done.issuperset(each.needs)
        done.add(name)
    everything = verify.tasks_of(params, list(params.everything))
    assert {f"evaluate@{key}" for key in params.everything} < everything.keys()
    assert "report" not in everything and "cells" not in everything


def test_another_folder_wrong_names_and_a_second_one_are_refused(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["play"]) == 2
    assert "expected the project's folder" in capsys.readouterr().err
    monkeypatch.chdir(ROOT)
    assert main(["play", "flicker8k"]) == 2
    assert "did you mean flickr8k?" in capsys.readouterr().err
    assert main(["play", "demo", "--only", "shapes-scam_t2i_avg-0"]) == 2
    assert "did you mean shapes-scan_t2i_avg-0?" in capsys.readouterr().err


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


@pytest.mark.slow
def test_ctrl_c_ends_what_runs(folder):
    """The processes of tasks end with the one that began them."""
    program = (
        "import signal; from benchmark.commands import tasks\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs of a shell ignore it\n"
        "if __name__ == '__main__':\n"
        "    tasks.run_all({'s': tasks.Task('slow_stage')}, 1)\n"
    )
    slow = "import time\nfrom pathlib import Path\ndef configure(parser): pass\n"
    slow += "def main(a):\n    Path('begun').touch()\n    time.sleep(120)\n"
    slow += "    Path('ended').touch()\n"
    Path("slow_stage.py").write_text(slow)
    Path("program.py").write_text(program)
    process = subprocess.Popen([sys.executable, "program.py"], start_new_session=True)
    while not Path("begun").exists():
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(60) != 0
    session = ["pgrep", "-s", str(process.pid)]
    deadline = time.monotonic() + 30
    while (
        subprocess.run(session, capture_output=True).stdout
        and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    assert not subprocess.run(session, capture_output=True).stdout
    assert not Path("ended").exists()

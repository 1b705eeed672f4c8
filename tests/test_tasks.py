"""Tasks that need each other run side by side, each in its own way."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmark.commands import tasks
from benchmark.commands.tasks import Failure, Task
from benchmark.core.errors import UserError
from benchmark.core.numerics import Numerics
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Params
from benchmark.season.stages import Kind, Stage
from seasons import ROOT

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
    told = capsys.readouterr().err
    assert "odd: failed: here" in told and "which failed" not in told


def test_failures_and_what_they_skip_are_counted_apart():
    skipped = Failure("needs a, which failed", is_skipped=True)
    failures = {"a": Failure("why"), "b": skipped, "c": skipped}
    assert tasks.counted({}) == "0 failed"
    assert tasks.counted({"a": Failure("why")}) == "1 failed"
    assert tasks.counted(failures) == "1 failed, 2 skipped because of it"


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


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ctrl_c_and_a_kill_end_the_processes_of_tasks(folder, end):
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
    os.kill(process.pid, end)
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

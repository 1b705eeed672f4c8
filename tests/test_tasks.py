"""Tasks side by side: their order, failures, dead workers, Ctrl-C, and what people see of them."""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_tasks import (
    die,
    die_once,
    fail,
    keep,
    leave,
    rest,
    say_gpu,
    say_numerics,
    touch,
    write_down,
)

from benchmark.commands import task_display, task_queue, verify
from benchmark.commands.local_workers import Processes, StageError, run_command
from benchmark.commands.ray_workers import Cluster
from benchmark.commands.task_order import longest_first, seconds_of
from benchmark.commands.task_queue import Task
from benchmark.core import progress_bars
from benchmark.core.errors import UserError
from benchmark.core.numerics import Numerics
from benchmark.core.progress_bars import ProgressBar
from benchmark.core.provenance import read_provenance
from benchmark.season.parameter_files import read_params


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(tasks: dict[str, Task], jobs: int, gpus: tuple[str, ...] = ()) -> dict[str, str]:
    with Processes(jobs, gpus) as workers:
        return task_queue.play(tasks, workers)


ORDERED = {
    "last": Task(touch, ("last", "b", "a"), ("b", "a")),
    "b": Task(touch, ("b", "a"), ("a",)),
    "a": Task(touch, ("a",)),
    "odd": Task(fail, ("two\nlines",)),
    "after odd": Task(touch, ("never",), ("odd",)),
    "after that": Task(touch, ("never",), ("after odd",)),
}
FAILED = {
    "odd": "ValueError: two lines",
    "after odd": "needs odd, which failed",
    "after that": "needs odd, which failed",
}


def test_tasks_are_played_after_what_they_need(folder, capsys):
    assert play(ORDERED, 2) == FAILED
    assert {path.name for path in folder.iterdir()} - {".scratch"} == {"a", "b", "last"}
    said = capsys.readouterr().err
    assert "odd: failed: ValueError: two lines\n2 stages wait for it\n" in said
    assert said.count("odd") == 1
    assert task_queue.causes(FAILED, ORDERED) == {"odd": "ValueError: two lines"}
    assert re.search(r"last: done in \d+ s; [3-6] of 6", said)


@pytest.mark.slow
def test_tasks_compute_in_their_own_way_and_outlive_a_dead_process(folder):
    tasks = {
        "dies": Task(die, ()),
        "dies once": Task(die_once, ()),
        "native": Task(say_numerics, (), (), Numerics("native", 2)),
        "after": Task(touch, ("never",), ("dies",)),
        "again": Task(say_numerics, (), ("native",)),
        "portable": Task(say_numerics, ()),
    }
    before = dict(os.environ)
    assert play(tasks, 1) == {
        "dies": task_queue.DIED,
        "native": "ValueError: native 2",
        "after": "needs dies, which failed",
        "again": "needs native, which failed",
        "portable": "ValueError: portable 1",
    }
    assert Path("resumed").is_file()
    assert os.environ == before


@pytest.mark.slow
def test_a_process_that_dies_leaves_the_others_alone(folder):
    tasks = {"rests": Task(rest, ("r", 3.0)), "dies": Task(die, ())}
    assert play(tasks, 2) == {"dies": task_queue.DIED}
    assert Path("played").read_text() == "r"  # begun once


def test_a_process_that_dies_while_it_waits_is_replaced(folder):
    with Processes(1) as workers:
        assert task_queue.play({"a": Task(touch, ("a",))}, workers) == {}
        (pool,) = workers.processes.values()
        for process in list(pool._processes.values()):
            process.kill()
        _until(lambda: pool._broken)
        assert task_queue.play({"b": Task(touch, ("b",))}, workers) == {}
    assert Path("b").is_file()


class FullDisk(task_queue.Everything):
    def ended(self, name: str) -> str:
        raise OSError("no space left")


@pytest.mark.slow
def test_what_cannot_be_noted_ends_what_runs(folder):
    tasks = {"a": Task(touch, ("a",)), "rests": Task(rest, ("r", 600.0))}
    begun = time.monotonic()
    with pytest.raises(OSError, match="no space left"), Processes(2) as workers:
        task_queue.play(tasks, workers, FullDisk())
    assert time.monotonic() - begun < 120


class Refusing(task_queue.Everything):
    def ended(self, name: str) -> str:
        return "input changed"


def test_what_a_watcher_does_not_count_failed(folder):
    tasks = {"a": Task(touch, ("a",)), "b": Task(touch, ("b",), ("a",))}
    with Processes(1) as workers:
        failed = task_queue.play(tasks, workers, Refusing())
    assert failed == {"a": "input changed", "b": "needs a, which failed"}


def test_a_task_that_ends_its_process_failed(folder):
    assert play({"leaves": Task(leave, ("boom",))}, 1) == {"leaves": "SystemExit: boom"}


def test_a_stage_that_breaks_leaves_its_traceback_in_its_log(folder, monkeypatch):
    Path("breaking.py").write_text(
        "'A stage.'\ndef configure(parser): pass\ndef main(arguments): {}['no such key']\n"
    )
    monkeypatch.syspath_prepend(folder)
    reason = "KeyError: 'no such key' \\(see .scratch/log/encode-x.log\\)"
    with pytest.raises(StageError, match=reason):
        run_command("python -m breaking", "encode x")
    log = Path(".scratch/log/encode-x.log").read_text()
    assert "Traceback" in log and "breaking.py" in log


def test_trainings_that_take_longest_begin_first(folder):
    """b takes less than c, but d, which takes longest, needs it; nobody has timed a and e."""
    needs = {"a": (), "b": ("a",), "c": ("a",), "d": ("b",), "e": ("d",), "f": ("a",)}
    tasks = {name: Task(write_down, (name,), names) for name, names in needs.items()}
    ordered = longest_first(tasks, {"b": 2.0, "c": 9.0, "d": 10.0, "f": 1.0})
    assert list(ordered) == ["a", "e", "b", "d", "c", "f"]
    assert ordered == tasks
    assert play(ordered, 1) == {}
    assert Path("played").read_text() == "abdecf"


def test_trainings_that_were_never_played_are_not_timed(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[1])
    cells = read_params("demo").cells
    known = seconds_of(cells)
    key = "shapes-scan_t2i_avg-0"
    cost = read_provenance(Path(cells[key].folder, "training/cost.json"))
    assert known[key] == cost.seconds["training"]
    new = {"new": cells[key].model_copy(update={"folder": "results/none"})}
    assert seconds_of(new) == {}


def test_a_training_whose_cost_cannot_be_read_is_not_timed(folder):
    Path("a/training").mkdir(parents=True)
    Path("a/training/cost.json").write_text("<<<<<<< HEAD")
    assert seconds_of({"a": SimpleNamespace(folder="a")}) == {}


def test_make_repro_has_as_many_jobs_as_cores():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    assert re.search(r"^repro:.*\n\t.* -m benchmark verify demo$", makefile, re.MULTILINE)
    parser = argparse.ArgumentParser()
    verify.configure(parser)
    assert parser.parse_args(["demo"]).jobs == os.cpu_count()


def test_jobs_share_the_gpus(folder):
    tasks = {name: Task(say_gpu, (name,)) for name in ("gpu a", "gpu b")}
    assert sorted(play(tasks, 2, ("3", "5")).values()) == ["ValueError: 3", "ValueError: 5"]


def test_workers_end_without_a_word_of_libraries(folder):
    assert play({"keep": Task(keep, ())}, 1) == {}
    assert [path.name for path in folder.iterdir()] == [".scratch"]


INTERRUPTED = """
import signal
import time
from pathlib import Path
from benchmark.commands import task_queue
from benchmark.commands.task_queue import Task
from benchmark.commands.local_workers import Processes

def wait():
    Path("begun").touch()
    time.sleep(600)
    Path("late").touch()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    with Processes(1) as workers:
        task_queue.play({"waits": Task(wait, ())}, workers)
"""


@pytest.mark.slow
def test_ctrl_c_ends_what_runs(folder):
    Path("interrupted.py").write_text(INTERRUPTED)
    root = str(Path(__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "interrupted.py"],
        env=os.environ | {"PYTHONPATH": root},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _until(Path("begun").is_file)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal sends it: to all of them
    assert child.wait(120) != 0  # much, for a busy machine; the task would take longer
    assert not Path("late").is_file()
    _until(lambda: not _is_alive(child.pid))


def _until(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class TestProgress:
    def test_a_waiting_process_reads_how_far_a_task_is(self, folder, monkeypatch):
        monkeypatch.setattr(progress_bars, "FILE_EVERY", 0)
        file = Path("progress/task.json")
        with progress_bars.told_to(file), ProgressBar(total=4, desc="train", unit="epoch") as bar:
            bar.update(1)
            line, seconds = progress_bars.read(file)
            assert "train:  25%" in line and "1/4" in line
            elapsed = bar.format_dict["elapsed"]
            assert 0 < seconds <= 3 * elapsed
        assert progress_bars.read(file) == ("", None)

    def test_without_a_terminal_a_line_now_and_then(self, monkeypatch, capsys):
        monkeypatch.setattr(progress_bars, "FILE_EVERY", 0)
        with ProgressBar(total=3, desc="short"):
            pass
        assert capsys.readouterr() == ("", "")
        monkeypatch.setattr(progress_bars, "LINE_EVERY", 0)
        for _ in ProgressBar(range(3), desc="long"):
            pass
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) >= 2 and all(line.startswith("long: ") for line in lines)
        assert "\r" not in "".join(lines)

    def test_the_time_left_is_that_of_tasks_of_the_same_kind(self, folder, monkeypatch):
        times = iter([0.0, 0.0, 60.0, 60.0])
        monkeypatch.setattr(task_display.time, "monotonic", lambda: next(times))
        names = [f"train {i}" for i in range(5)] + ["evaluate 0"]
        display = task_display.Display(names, jobs=2)
        display.begun("train 0")
        display.ended("train 0", "")
        assert display._how_far() == "1 of 6"  # nobody knows how long an evaluation takes
        display.ended("evaluate 0", "")  # up to date
        assert display._how_far() == "2 of 6, about 2 min left"

    @pytest.mark.parametrize(("seconds", "said"), [(89, "89 s"), (120, "2 min"), (7200, "2.0 h")])
    def test_durations_are_in_the_unit_that_fits(self, seconds, said):
        assert task_display._duration(seconds) == said


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is an extra: pip install -e '.[cluster]'")
def test_a_cluster_that_is_not_there_is_one_line():
    with pytest.raises(UserError) as error:
        Cluster("127.0.0.1:1")
    assert error.value.where == "--address"

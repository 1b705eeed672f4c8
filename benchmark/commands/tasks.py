"""Tasks that need each other, run side by side in processes of this machine.

A task whose needs failed is not begun; the others go on. A task whose process died is
run again, and resumes what it had saved. What a task prints goes to .scratch/log/.
"""

import argparse
import atexit
import math
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tqdm import tqdm

from benchmark.core import numerics
from benchmark.core.errors import UserError
from benchmark.core.numerics import Numerics
from benchmark.data.results import RESULTS, read_costs
from benchmark.season.parameters import Fusion, Params
from benchmark.season.pipeline import TRAIN

LOGS = Path(".scratch/log")
ATTEMPTS = 3  # of a task whose process dies; it may have died of another task's memory
DIED = "its process died: killed, or out of memory"


@dataclass(frozen=True)
class Task:
    """A command, `python -m MODULE ARGUMENTS`, that computes in a certain way."""

    command: str
    needs: tuple[str, ...] = ()  # names of other tasks
    numerics: Numerics = Numerics(numerics.PORTABLE, threads=1)
    seconds: float = 0.0  # that it took before, of a training; infinity: not known
    # in a process that ends with it: what it imports may change torch
    is_apart: bool = False


def of_stage(
    params: Params,
    name: str,
    command: str,
    needs: tuple[str, ...],
    seconds: Mapping[str, float],
) -> Task:
    """The task of a stage: computed as its cell asks for, if it is of one; of a
    method file of the user's, or of all of them as the report is, in a process of
    its own. `seconds` of trainings by the keys of their cells, as `training_seconds`
    has them."""
    key = name.partition("@")[2]
    if key not in params.everything:
        reads_all = name in ("cells", "report") or name.startswith("collect")
        return Task(command, needs, is_apart=bool(params.methods) and reads_all)
    cell = params.everything[key]
    took = seconds.get(key, math.inf) if name.startswith(TRAIN) else 0.0
    members = cell.members if isinstance(cell, Fusion) else [cell.folder]
    methods = [each.method for each in params.cells.values() if each.folder in members]
    is_own = any(method.endswith(".py") for method in methods)
    return Task(command, needs, Numerics(cell.numerics, cell.threads), took, is_own)


def training_seconds(params: Params) -> dict[str, float]:
    """What the trainings of a season took by their kept costs, by the keys of their
    cells."""
    seconds = {}
    for dataset in params.datasets:
        costs = read_costs(RESULTS / params.season / dataset)
        for cell in params.on(dataset):
            if cell.name in costs and (training := costs[cell.name].training):
                seconds[cell.key] = sum(training.seconds.values())
    return seconds


def jobs_of(given: int | None, gpus: tuple[str, ...] = ()) -> int:
    """How many tasks run at once: by default one for each GPU that is named, or for
    each core. Raises UserError for none."""
    jobs = (len(gpus) or os.cpu_count()) if given is None else given
    if jobs < 1:
        raise UserError("--jobs", "1 or more", jobs, "name how many stages may run")
    return jobs


def run_all(
    tasks: dict[str, Task],
    jobs: int,
    gpus: tuple[str, ...] = (),
    is_stale: Callable[[str], bool] = lambda name: True,
    ended: Callable[[str], str] = lambda name: "",
) -> dict[str, str]:
    """Run tasks, `jobs` at once, which share the GPUs that are named, the longest
    first; the reasons of those that failed or were not begun. `is_stale` says, once its
    needs are there, whether a task is run at all. `ended` hears of its end, and says
    why what it made does not count; "" if it does. Ctrl-C ends what runs."""
    ahead = sorted(tasks, key=lambda name: -tasks[name].seconds)
    places = _Places(min(jobs, len(tasks)), gpus)
    running: dict[Future, str] = {}
    over: dict[str, str] = {}  # task -> why it failed; "" if it did not
    attempts = dict.fromkeys(tasks, 0)
    with tqdm(total=len(tasks), unit="stage", disable=None) as bar:

        def end(name: str, reason: str) -> None:
            over[name] = reason
            bar.update()
            if reason:
                bar.write(f"{name}: failed: {reason}", file=sys.stderr)

        try:
            while ahead or running:
                ready = (
                    name for name in ahead if over.keys() >= set(tasks[name].needs)
                )
                if name := next(ready, "") if len(running) < jobs else "":
                    ahead.remove(name)
                    if lost := [need for need in tasks[name].needs if over[need]]:
                        end(name, f"needs {lost[0]}, which failed")
                    elif is_stale(name):
                        running[places.submit(name, tasks[name])] = name
                    else:
                        end(name, "")
                    continue
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(future)
                    reason, seconds = places.result(future, tasks[name])
                    attempts[name] += 1
                    if reason == DIED and attempts[name] < ATTEMPTS:
                        running[places.submit(name, tasks[name])] = name
                        continue
                    end(name, reason or ended(name))
                    if not over[name]:
                        how_far = f"{len(over)} of {len(tasks)}"
                        bar.write(
                            f"{name}: done in {seconds:.0f} s; {how_far}",
                            file=sys.stderr,
                        )
        finally:
            places.stop()
    return {name: reason for name, reason in over.items() if reason}


class _Places:
    """Places for `jobs` tasks at once. At each is a process for each way of computing,
    since libraries read theirs once, when they are loaded; one that dies takes no other
    along. A task that is apart has a new one."""

    def __init__(self, jobs: int, gpus: tuple[str, ...]) -> None:
        self.jobs = jobs
        self.free = list(reversed(range(jobs)))
        self.place_of: dict[Future, int] = {}
        self.processes: dict[tuple[int, Numerics, bool], ProcessPoolExecutor] = {}
        self.gpus = gpus

    def submit(self, name: str, task: Task) -> Future:
        place = self.free.pop()
        key = place, task.numerics, task.is_apart
        with numerics.of_children(task.numerics):
            os.environ[numerics.JOBS] = str(self.jobs)
            if self.gpus:
                os.environ["CUDA_VISIBLE_DEVICES"] = self.gpus[place % len(self.gpus)]
            if key not in self.processes:
                # threads of torch survive no fork
                spawn = multiprocessing.get_context("spawn")
                self.processes[key] = ProcessPoolExecutor(1, spawn, initializer=_begin)
            future = self.processes[key].submit(run_task, name, task.command)
        self.place_of[future] = place
        return future

    def result(self, future: Future, task: Task) -> tuple[str, float]:
        """Why the task failed ("" if it did not), and its seconds."""
        place, is_over = self.place_of.pop(future), task.is_apart
        self.free.append(place)
        try:
            result = future.result()
        except BrokenProcessPool:
            result, is_over = (DIED, 0.0), True
        if is_over:  # the next one begins inside `submit`, where the environment is set
            self.processes.pop((place, task.numerics, task.is_apart)).shutdown()
        return result

    def stop(self) -> None:
        """End all processes at once: after Ctrl-C some still work."""
        for process in multiprocessing.active_children() if self.place_of else ():
            process.terminate()
        for process in self.processes.values():
            process.shutdown()


def _begin() -> None:
    """Ctrl-C reaches the parent, which ends its workers. One that ends does not take
    Python apart: triton, which torch imports, would list what it leaked in 30 lines."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(os._exit, 0)


def run_task(name: str, command: str) -> tuple[str, float]:
    """Run a stage or a verb in this process, where its errors stay: not all of them can
    be sent to another. The reason why it failed ("" if it did not), and its seconds."""
    path = LOGS / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with path.open("w") as log, redirect_stdout(log), redirect_stderr(log):
        try:
            _run(command)
        except UserError as error:
            reason = " ".join(str(error).split())
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        else:
            return "", time.monotonic() - began
    return f"{reason} (see {path})", 0.0


def _run(command: str) -> None:
    module, *arguments = command.removeprefix("python -m ").split()
    if module == "benchmark":
        module = f"benchmark.commands.{arguments.pop(0)}"
    stage = import_module(module)
    if hasattr(stage, "__path__"):
        stage = import_module(f"{module}.__main__")
    parser = argparse.ArgumentParser()
    stage.configure(parser)
    if status := stage.main(parser.parse_args(arguments)):
        raise UserError(command, "exit status 0", status)

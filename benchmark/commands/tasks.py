"""Tasks that need each other, run side by side in processes of this machine.

A task whose needs failed is skipped; the others go on. A task whose process died is run
again, and resumes what it had saved. What a task prints goes to .scratch/log/.
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
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Thread

from tqdm import tqdm

from benchmark.core import numerics
from benchmark.core.errors import UserError
from benchmark.core.numerics import Numerics
from benchmark.core.records import Costs, read_all
from benchmark.data.results import COSTS, RESULTS
from benchmark.season.parameters import Fusion, Params
from benchmark.season.stages import Kind, Stage, program_of

READ_ALL_METHODS = (Kind.CELLS, Kind.COLLECT, Kind.REPORT)
LOGS = Path(".scratch/log")
ATTEMPTS = 3  # of a task whose process dies; it may have died of another task's memory
DIED = "its process died: killed, or out of memory"


@dataclass(frozen=True)
class Task:
    """A module with `configure` and `main`, called in a certain way."""

    module: str
    arguments: tuple[str, ...] = ()  # of its command line
    needs: tuple[str, ...] = ()  # names of other tasks
    numerics: Numerics = Numerics(numerics.PORTABLE, threads=1)
    seconds: float = 0.0  # that it took before, of a training; infinity: not known
    # in a process that ends with it: what it imports may change torch
    is_apart: bool = False


@dataclass(frozen=True)
class Failure:
    """Why a task has no result."""

    reason: str
    is_skipped: bool = False  # it was not started, since one that it needs failed


def of_stage(
    params: Params,
    stage: Stage,
    needs: tuple[str, ...],
    seconds: Mapping[str, float],
) -> Task:
    """The task of a stage: computed as its cell asks for, if it is of one; of a
    method file of the user's, or of all of them as the report is, in a process of
    its own. `seconds` of trainings by the keys of their cells, as `training_seconds`
    has them."""
    task = Task(program_of(stage.kind).module, stage.arguments, needs)
    if stage.kind in READ_ALL_METHODS:
        return replace(task, is_apart=bool(params.methods))
    if stage.kind not in (Kind.TRAIN, Kind.EVALUATE):
        return task
    cell = params.everything[stage.item]
    is_training = stage.kind == Kind.TRAIN
    members = cell.members if isinstance(cell, Fusion) else [cell.folder]
    methods = [each.method for each in params.cells.values() if each.folder in members]
    return replace(
        task,
        numerics=Numerics(cell.numerics, cell.threads),
        seconds=seconds.get(stage.item, math.inf) if is_training else 0.0,
        is_apart=any(method.endswith(".py") for method in methods),
    )


def training_seconds(params: Params) -> dict[str, float]:
    """What the trainings of a season took by their kept costs, by the keys of their
    cells."""
    seconds = {}
    for folder in params.folders:
        costs = read_all(Costs, RESULTS / params.season / folder / COSTS)
        for cell in params.kept_in(folder):
            name = cell.kept_as
            if name in costs and (training := costs[name].training):
                seconds[cell.key] = sum(training.seconds.values())
    return seconds


def jobs_of(given: int | None, gpus: tuple[str, ...] = ()) -> int:
    """How many tasks run at once: by default one for each GPU that is named, or for
    each core. Raises UserError for none."""
    jobs = (len(gpus) or os.cpu_count()) if given is None else given
    if jobs < 1:
        raise UserError(
            "--jobs",
            expected="1 or more",
            found=jobs,
            do="name how many stages may run",
        )
    return jobs


def counted(failures: Mapping[str, Failure]) -> str:
    """How many tasks failed, and how many were skipped because of them."""
    skipped = sum(failure.is_skipped for failure in failures.values())
    failed = len(failures) - skipped
    if not skipped:
        return f"{failed} failed"
    return f"{failed} failed, {skipped} skipped because of {'them' if failed > 1 else 'it'}"


def run_all(
    tasks: dict[str, Task],
    jobs: int,
    gpus: tuple[str, ...] = (),
    is_stale: Callable[[str], bool] = lambda name: True,
    ended: Callable[[str], str] = lambda name: "",
) -> dict[str, Failure]:
    """Run tasks, `jobs` at once, which share the GPUs that are named, the longest
    first; those that failed or were skipped. `is_stale` says, once its needs are there,
    whether a task is run at all. `ended` hears of its end, and says why what it made
    does not count; "" if it does. Ctrl-C ends what runs."""
    ahead = sorted(tasks, key=lambda name: -tasks[name].seconds)
    places = _Places(min(jobs, len(tasks)), gpus)
    running: dict[Future, str] = {}
    over: dict[str, Failure | None] = {}  # None: it did not fail
    attempts = dict.fromkeys(tasks, 0)
    with tqdm(total=len(tasks), unit="stage", disable=None) as bar:

        def end(name: str, failure: Failure | None) -> None:
            over[name] = failure
            bar.update()
            if failure and not failure.is_skipped:  # the caller counts those
                bar.write(f"{name}: failed: {failure.reason}", file=sys.stderr)

        def start(name: str) -> None:
            lost = [need for need in tasks[name].needs if over[need]]
            if lost:
                end(name, Failure(f"needs {lost[0]}, which failed", is_skipped=True))
            elif is_stale(name):
                running[places.submit(name, tasks[name])] = name
            else:
                end(name, None)

        try:
            while ahead or running:
                ready = [name for name in ahead if over.keys() >= {*tasks[name].needs}]
                if ready and len(running) < jobs:
                    ahead.remove(ready[0])
                    start(ready[0])
                    continue
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(future)
                    reason, seconds = places.result(future, tasks[name])
                    attempts[name] += 1
                    if reason == DIED and attempts[name] < ATTEMPTS:
                        running[places.submit(name, tasks[name])] = name
                        continue
                    reason = reason or ended(name)
                    end(name, Failure(reason) if reason else None)
                    if not reason:
                        progress = f"{len(over)} of {len(tasks)}"
                        line = f"{name}: done in {seconds:.0f} s; {progress}"
                        bar.write(line, file=sys.stderr)
        finally:
            places.stop()
    return {name: failure for name, failure in over.items() if failure}


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
            future = self.processes[key].submit(run_task, name, task)
        self.place_of[future] = place
        return future

    def result(self, future: Future, task: Task) -> tuple[str, float]:
        """Why the task failed ("" if it did not), and its seconds."""
        place = self.place_of.pop(future)
        is_over = task.is_apart
        self.free.append(place)
        try:
            result = future.result()
        except BrokenProcessPool:
            result = (DIED, 0.0)
            is_over = True
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
    """Ctrl-C reaches the parent, which ends its workers; where it is killed, they end by
    themselves. One that ends does not take Python apart: triton, which torch imports,
    would list what it leaked in 30 lines."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(os._exit, 0)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)


def run_task(name: str, task: Task) -> tuple[str, float]:
    """Run a stage or a verb in this process, where its errors stay: not all of them can
    be sent to another. The reason why it failed ("" if it did not), and its seconds."""
    path = LOGS / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with path.open("w") as log, redirect_stdout(log), redirect_stderr(log):
        try:
            call(task)
        except UserError as error:
            reason = " ".join(str(error).split())
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        else:
            return "", time.monotonic() - began
    return f"{reason} (see {path})", 0.0


def call(task: Task) -> None:
    """Do a task. Raises UserError, besides what the task raises, for an exit status
    other than 0."""
    module = import_module(task.module)
    parser = argparse.ArgumentParser()
    module.configure(parser)
    status = module.main(parser.parse_args(task.arguments))
    if status:
        raise UserError(
            " ".join([task.module, *task.arguments]),
            expected="exit status 0",
            found=status,
        )

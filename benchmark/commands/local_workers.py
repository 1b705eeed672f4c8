"""Processes of this machine that play tasks. Each keeps what it has imported, and plays only tasks
that compute in its way, on its GPU."""

import atexit
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from benchmark.commands.task_display import file_of, slug
from benchmark.commands.task_queue import DIED, Task
from benchmark.core import numerics, progress_bars
from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError
from benchmark.core.numerics import Numerics
from datasets import DataError

LOGS = Path(".scratch/log")
VISIBLE = "CUDA_VISIBLE_DEVICES"


class StageError(Exception):
    """A stage ended with a line that says why."""


def check_jobs(jobs: int | None) -> None:
    """Raises UserError for a --jobs that plays nothing; None is the default."""
    if jobs is not None and jobs < 1:
        raise UserError("--jobs", "1 or more", jobs, "name how many stages may run")


class Processes(ExitStack):
    """`jobs` processes at once, which share the GPUs that are named, if any."""

    def __init__(self, jobs: int, gpus: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.jobs = jobs
        self.gpu_at = [gpus[place % len(gpus)] if gpus else "" for place in range(jobs)]
        self.free = list(reversed(range(jobs)))  # places at which nothing is played
        self.place_of: dict[Future, int] = {}
        self.processes: dict[tuple[Numerics, int], ProcessPoolExecutor] = {}

    def submit(self, name: str, task: Task) -> Future:
        place = self.free.pop()
        with _environment(task.numerics, self.gpu_at[place]):
            try:
                future = self._process(task.numerics, place).submit(played, name, task)
            except BrokenProcessPool:  # it died while it waited
                del self.processes[task.numerics, place]
                future = self._process(task.numerics, place).submit(played, name, task)
        self.place_of[future] = place
        return future

    def _process(self, wanted: Numerics, place: int) -> ProcessPoolExecutor:
        """The one that computes so at this place: alone in its pool, since a process that dies
        takes all others of its pool along."""
        if (wanted, place) not in self.processes:
            context = multiprocessing.get_context("spawn")  # threads of torch do not survive a fork
            pool = ProcessPoolExecutor(
                1, mp_context=context, initializer=_begin, initargs=(os.getpid(),)
            )
            self.processes[wanted, place] = self.enter_context(pool)
        return self.processes[wanted, place]

    def reason(self, future: Future, task: Task) -> str:
        """Why the task failed. A process that died is given up for a new one."""
        place = self.place_of.pop(future)
        self.free.append(place)
        try:
            return future.result()
        except BrokenProcessPool:
            self.processes.pop((task.numerics, place), None)
            return DIED

    def stop(self) -> None:
        for process in multiprocessing.active_children():
            process.terminate()


@contextmanager
def _environment(wanted: Numerics, gpu: str) -> Iterator[None]:
    """Processes that begin inside compute in this way, and see this GPU alone."""
    with numerics.of_children(wanted):
        if gpu:
            os.environ[VISIBLE] = gpu
        yield


def _begin(parent: int) -> None:
    """A killed parent would leave this process waiting, or training on, for ever. Ctrl-C reaches
    the parent, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(_leave)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _leave() -> None:
    """End without taking Python apart: triton, which the optimisers of torch import, would then
    list what it leaked, in 30 lines of the terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def played(name: str, task: Task) -> str:
    """The reason why a task failed; empty if it did not. Errors stay in the process that has
    them: not all of them can be sent to another."""
    try:
        with progress_bars.told_to(file_of(name)):
            task.function(*task.arguments)
    except (DataError, StageError) as error:
        return " ".join(str(error).split())
    except (Exception, SystemExit) as error:
        return _named(error)
    return ""


def _named(error: BaseException) -> str:
    """An error that nobody foresaw, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def run_command(command: str, name: str) -> None:
    """Run `python -m MODULE ARGUMENTS` in this process; what it says goes to a file of LOGS."""
    module, *arguments = command.removeprefix("python -m ").split()
    path = LOGS / f"{slug(name)}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as log, redirect_stdout(log), redirect_stderr(log):
        try:
            status = _status_of(module, arguments)
        except Exception as error:
            traceback.print_exc()
            raise StageError(f"{_named(error)} (see {path})") from error
    if status:
        lines = path.read_text().splitlines() or [f"exit status {status}"]
        raise StageError(f"{lines[-1].removeprefix('rematch: ')} (see {path})")


def _status_of(module: str, arguments: list[str]) -> int:
    """The exit status of a verb, `benchmark VERB`, or of the module of a stage."""
    if module == "benchmark":
        return import_module("benchmark.__main__").main(arguments)
    is_package = find_spec(module).submodule_search_locations is not None
    stage = import_module(f"{module}.__main__" if is_package else module)
    return run_stage(stage.__doc__, stage.configure, stage.main, arguments)

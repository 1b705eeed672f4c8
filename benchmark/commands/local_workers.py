"""Processes of this machine that play tasks. Each keeps what it has imported, and plays only tasks
that compute in its way, on its GPU."""

import atexit
import multiprocessing
import os
import signal
import sys
import threading
import time
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
        self.free = [gpus[i % len(gpus)] if gpus else "" for i in reversed(range(jobs))]
        self.gpu_of: dict[Future, str] = {}
        self.pools: dict[tuple[Numerics, str], ProcessPoolExecutor] = {}

    def submit(self, name: str, task: Task) -> Future:
        gpu = self.free.pop()
        if (task.numerics, gpu) not in self.pools:
            context = multiprocessing.get_context("spawn")  # threads of torch do not survive a fork
            pool = ProcessPoolExecutor(
                self.jobs, mp_context=context, initializer=_begin, initargs=(os.getpid(),)
            )
            self.pools[task.numerics, gpu] = self.enter_context(pool)
        with _environment(task.numerics, gpu):
            future = self.pools[task.numerics, gpu].submit(played, name, task)
        self.gpu_of[future] = gpu
        return future

    def reason(self, future: Future, task: Task) -> str:
        """Why the task failed. A pool whose process died is given up for a new one."""
        gpu = self.gpu_of.pop(future)
        self.free.append(gpu)
        try:
            return future.result()
        except BrokenProcessPool:
            self.pools.pop((task.numerics, gpu), None)
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
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


def run_command(command: str, name: str) -> None:
    """Run `python -m MODULE ARGUMENTS` in this process; what it says goes to a file of LOGS."""
    module, *arguments = command.removeprefix("python -m ").split()
    path = LOGS / f"{slug(name)}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as log, redirect_stdout(log), redirect_stderr(log):
        status = _status_of(module, arguments)
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

"""Tasks that need each other, played by several processes at once.

A task whose needs failed is not begun; the others go on. Each process keeps what it has imported,
and plays only tasks that compute in its way.
"""

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from benchmark.core import numerics
from benchmark.core.command_line import run_stage
from benchmark.core.numerics import Numerics
from benchmark.season.parameters import Cell, Fusion
from datasets import DataError

LOGS = Path(".scratch/log")
SHARED_NUMERICS = Numerics(numerics.PORTABLE, threads=1)  # of what no cell decides
DIED = "its process died: killed, or out of memory"


@dataclass(frozen=True)
class Task:
    """A function of a module and its arguments, which can be sent to another process."""

    function: Callable
    arguments: tuple
    needs: tuple[str, ...] = ()  # names of other tasks
    numerics: Numerics = SHARED_NUMERICS


class Watcher(Protocol):
    """What decides whether a task is played once its needs are there, and hears of its end."""

    def is_stale(self, name: str) -> bool: ...

    def ended(self, name: str) -> None: ...


class Everything:
    """A watcher that has every task played."""

    def is_stale(self, name: str) -> bool:
        return True

    def ended(self, name: str) -> None:
        pass


def play(tasks: dict[str, Task], jobs: int, watcher: Watcher | None = None) -> dict[str, str]:
    """Play all tasks, `jobs` at once; the reasons of those that failed, in one line each."""
    with _Game(tasks, jobs, watcher or Everything()) as game:
        while game.ahead or game.running:
            game.begin_what_can()
            game.hear_of_ends()
    return game.failed


class _Game(ExitStack):
    """Tasks that are ahead, that run, that are done and that failed."""

    def __init__(self, tasks: dict[str, Task], jobs: int, watcher: Watcher) -> None:
        super().__init__()
        self.tasks, self.jobs, self.watcher = tasks, jobs, watcher
        self.ahead = dict(tasks)
        self.running: dict[Future, str] = {}
        self.done: set[str] = set()
        self.failed: dict[str, str] = {}
        self.began: dict[str, float] = {}
        self.processes = self.enter_context(_Processes(jobs))
        self.bar = self.enter_context(tqdm(total=len(tasks), unit="task", disable=None))

    def begin_what_can(self) -> None:
        """Until nothing changes: what is up to date lets others begin."""
        before = None
        while before != len(self.ahead):
            before = len(self.ahead)
            for name, task in list(self.ahead.items()):
                lost = [need for need in task.needs if need in self.failed]
                if lost:
                    self._end(name, f"needs {lost[0]}, which failed")
                elif len(self.running) < self.jobs and self.done.issuperset(task.needs):
                    self._begin(name, task)

    def hear_of_ends(self) -> None:
        ended, _ = wait(self.running, return_when=FIRST_COMPLETED)
        for future in ended:
            name = self.running.pop(future)
            reason = self.processes.result(future, self.tasks[name])
            if not reason:
                self.watcher.ended(name)
            self._end(name, reason)

    def _begin(self, name: str, task: Task) -> None:
        if self.watcher.is_stale(name):
            del self.ahead[name]
            self.began[name] = time.monotonic()
            self.running[self.processes.submit(task)] = name
            self.bar.set_postfix_str(", ".join(self.running.values()))
        else:
            self._end(name, "")

    def _end(self, name: str, reason: str) -> None:
        self.ahead.pop(name, None)
        self.done.add(name)
        if reason:
            self.failed[name] = reason
        if reason or name in self.began:
            self.bar.write(f"{name}: {self._how_it_ended(name)}", file=sys.stderr)
        self.bar.update()

    def _how_it_ended(self, name: str) -> str:
        if name in self.failed:
            return f"failed: {self.failed[name]}"
        seconds = time.monotonic() - self.began[name]
        return f"done in {seconds:.0f} s; {len(self.done)} of {len(self.tasks)}"


class _Processes(ExitStack):
    """Processes in pools, one pool for each way to compute."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.jobs = jobs
        self.pools: dict[Numerics, ProcessPoolExecutor] = {}

    def submit(self, task: Task) -> Future:
        if task.numerics not in self.pools:
            context = multiprocessing.get_context("spawn")  # threads of torch do not survive a fork
            pool = ProcessPoolExecutor(
                self.jobs, mp_context=context, initializer=_end_with_parent, initargs=(os.getpid(),)
            )
            self.pools[task.numerics] = self.enter_context(pool)
        with numerics.of_children(task.numerics):
            return self.pools[task.numerics].submit(_played, task)

    def result(self, future: Future, task: Task) -> str:
        """The reason why the task failed. A pool whose process died is given up for a new one."""
        try:
            return future.result()
        except BrokenProcessPool:
            self.pools.pop(task.numerics, None)
            return DIED


def _end_with_parent(parent: int) -> None:
    """A killed parent would leave this process waiting, or training on, for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def numerics_of(cell: Cell | Fusion) -> Numerics:
    """How a cell asks to be computed."""
    return Numerics(cell.numerics, cell.threads)


def run_command(command: str, name: str) -> None:
    """Run `python -m MODULE ARGUMENTS` in this process; what it says goes to a file of LOGS."""
    module, *arguments = command.removeprefix("python -m ").split()
    path = LOGS / f"{name.replace('/', '-').replace(' ', '-')}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as log, redirect_stdout(log), redirect_stderr(log):
        status = _status_of(module, arguments)
    if status:
        lines = path.read_text().splitlines() or [f"exit status {status}"]
        raise RuntimeError(f"{lines[-1].removeprefix('rematch: ')} (see {path})")


def _status_of(module: str, arguments: list[str]) -> int:
    """The exit status of a verb, `benchmark VERB`, or of the module of a stage."""
    if module == "benchmark":
        return import_module("benchmark.__main__").main(arguments)
    is_package = find_spec(module).submodule_search_locations is not None
    stage = import_module(f"{module}.__main__" if is_package else module)
    return run_stage(stage.__doc__, stage.configure, stage.main, arguments)


def _played(task: Task) -> str:
    """The reason why a task failed; empty if it did not. Errors stay in the process that has
    them: not all of them can be sent to another."""
    try:
        task.function(*task.arguments)
    except DataError as error:
        return " ".join(str(error).split())
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""

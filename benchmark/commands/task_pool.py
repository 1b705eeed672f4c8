"""Tasks that need each other, played by several processes at once.

A task whose needs failed is not begun; the others go on. Each process keeps what it has imported,
and plays only tasks that compute in its way.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass

from tqdm import tqdm

from benchmark.core import numerics
from benchmark.core.numerics import Numerics
from datasets import DataError

DIED = "its process died: killed, or out of memory"


@dataclass(frozen=True)
class Task:
    """A function of a module and its arguments, which can be sent to another process."""

    function: Callable
    arguments: tuple
    needs: tuple[str, ...] = ()  # names of other tasks
    numerics: Numerics = Numerics(numerics.PORTABLE, threads=1)


def play(tasks: dict[str, Task], jobs: int) -> dict[str, str]:
    """Play all tasks, `jobs` at once; the reasons of those that failed, in one line each."""
    failed: dict[str, str] = {}
    done: set[str] = set()
    running: dict[Future, str] = {}
    ahead = dict(tasks)
    with _Processes(jobs) as processes, tqdm(total=len(tasks), unit="task", disable=None) as bar:
        while ahead or running:
            for name, task in list(ahead.items()):
                lost = [need for need in task.needs if need in failed]
                if lost:
                    del ahead[name]
                    failed[name] = f"needs {lost[0]}, which failed"
                    bar.update()
                elif len(running) < jobs and done.issuperset(task.needs):
                    del ahead[name]
                    running[processes.submit(task)] = name
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                name = running.pop(future)
                reason = processes.result(future, tasks[name])
                done.add(name)
                if reason:
                    failed[name] = reason
                bar.update()
    return failed


class _Processes(ExitStack):
    """Processes in pools, one pool for each way to compute."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.jobs = jobs
        self.pools: dict[Numerics, ProcessPoolExecutor] = {}

    def submit(self, task: Task) -> Future:
        if task.numerics not in self.pools:
            context = multiprocessing.get_context("spawn")  # threads of torch do not survive a fork
            pool = ProcessPoolExecutor(self.jobs, mp_context=context)
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

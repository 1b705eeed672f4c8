"""Tasks that need each other, played by several processes at once.

A task whose needs failed is not begun; the others go on. Each process keeps what it has imported.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from tqdm import tqdm

from datasets import DataError


@dataclass(frozen=True)
class Task:
    """A function of a module and its arguments, which can be sent to another process."""

    function: Callable
    arguments: tuple
    needs: tuple[str, ...] = ()  # names of other tasks


def play(tasks: dict[str, Task], jobs: int) -> dict[str, str]:
    """Play all tasks, `jobs` at once; the reasons of those that failed, in one line each."""
    failed: dict[str, str] = {}
    done: set[str] = set()
    running: dict[Future, str] = {}
    ahead = dict(tasks)
    context = multiprocessing.get_context("spawn")  # threads of torch do not survive a fork
    with (
        ProcessPoolExecutor(jobs, mp_context=context) as pool,
        tqdm(total=len(tasks), unit="task", disable=None) as bar,
    ):
        while ahead or running:
            for name, task in list(ahead.items()):
                lost = [need for need in task.needs if need in failed]
                if lost:
                    del ahead[name]
                    failed[name] = f"needs {lost[0]}, which failed"
                    bar.update()
                elif len(running) < jobs and done.issuperset(task.needs):
                    del ahead[name]
                    running[pool.submit(_played, task)] = name
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                name, reason = running.pop(future), future.result()
                done.add(name)
                if reason:
                    failed[name] = reason
                bar.update()
    return failed


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

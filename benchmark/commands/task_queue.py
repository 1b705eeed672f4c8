"""Tasks that need each other, played by several workers at once.

A task whose needs failed is not begun; the others go on. A task whose worker died is played again,
and resumes what it had saved.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Protocol

from benchmark.commands.task_display import Display
from benchmark.core import numerics
from benchmark.core.numerics import Numerics
from benchmark.season.parameters import Cell, Fusion, Params

SHARED_NUMERICS = Numerics(numerics.PORTABLE, threads=1)  # of what no cell decides
ATTEMPTS = 3  # of a task whose worker dies; it may have died of another task's memory
DIED = "its process died: killed, or out of memory"


@dataclass(frozen=True)
class Task:
    """A function of a module and its arguments, which can be sent to another process."""

    function: Callable
    arguments: tuple
    needs: tuple[str, ...] = ()  # names of other tasks
    numerics: Numerics = SHARED_NUMERICS


class Workers(Protocol):
    """What plays tasks, `jobs` at once: processes of this machine, or of a cluster."""

    jobs: int

    def submit(self, name: str, task: Task) -> Future: ...

    def reason(self, future: Future, task: Task) -> str:
        """Why a task that ended failed, DIED among the reasons; empty if it did not."""

    def stop(self) -> None:
        """End the tasks that run, at once."""


class Watcher(Protocol):
    """What decides whether a task is played once its needs are there, and hears of its end."""

    def is_stale(self, name: str) -> bool: ...

    def ended(self, name: str) -> str:
        """Why what a task made does not count; empty if it does."""


class Everything:
    """A watcher that has every task played."""

    def is_stale(self, name: str) -> bool:
        return True

    def ended(self, name: str) -> str:
        return ""


def play(
    tasks: dict[str, Task], workers: Workers, watcher: Watcher | None = None
) -> dict[str, str]:
    """Play all tasks; the reasons of those that failed in one line each, and of those that were not
    begun because another failed.

    Ctrl-C ends what runs, as does an error of the watcher; played again, trainings resume.
    """
    game = _Game(tasks, workers, watcher or Everything())
    with game.display:
        try:
            while game.ahead or game.running:
                game.begin_what_can()
                game.hear_of_ends()
        except BaseException:  # Ctrl-C, or what ended cannot be noted
            workers.stop()
            raise
    return game.failed


class _Game:
    """Tasks that are ahead, that run, that are done and that failed."""

    def __init__(self, tasks: dict[str, Task], workers: Workers, watcher: Watcher) -> None:
        self.tasks, self.workers, self.watcher = tasks, workers, watcher
        self.ahead = dict(tasks)
        self.running: dict[Future, str] = {}
        self.done: set[str] = set()
        self.failed: dict[str, str] = {}
        self.attempts = dict.fromkeys(tasks, 0)
        self.display = Display(tasks, workers.jobs)

    def begin_what_can(self) -> None:
        """Until nothing changes: what is up to date lets others begin."""
        before = None
        while before != len(self.ahead):
            before = len(self.ahead)
            for name, task in list(self.ahead.items()):
                if len(self.running) < self.workers.jobs and self.done.issuperset(task.needs):
                    self._begin(name, task)

    def hear_of_ends(self) -> None:
        ended, _ = wait(self.running, self.display.pause, FIRST_COMPLETED)
        self.display.show(list(self.running.values()))
        for future in ended:
            name = self.running.pop(future)
            reason = self.workers.reason(future, self.tasks[name])
            if reason == DIED and self.attempts[name] < ATTEMPTS:
                self.display.say(f"{name}: {DIED}; it is played again")
                self._submit(name)
                continue
            self._end(name, reason or self.watcher.ended(name))

    def _begin(self, name: str, task: Task) -> None:
        if self.watcher.is_stale(name):
            del self.ahead[name]
            self.display.begun(name)
            self._submit(name)
        else:
            self._end(name, "")

    def _submit(self, name: str) -> None:
        self.attempts[name] += 1
        self.running[self.workers.submit(name, self.tasks[name])] = name

    def _end(self, name: str, reason: str) -> None:
        self.ahead.pop(name, None)
        if not reason:
            self.done.add(name)
        self.display.ended(name, reason)
        if reason:
            self.failed[name] = reason
            self._give_up(name)

    def _give_up(self, failed: str) -> None:
        """Tasks that need the failed one, or others that do, are not begun."""
        lost = {failed}
        while more := {name for name in self.ahead if self._needs_any(name, lost)} - lost:
            lost |= more
        waiting = [name for name in self.ahead if name in lost]
        for name in waiting:
            del self.ahead[name]
            self.failed[name] = f"needs {failed}, which failed"
        self.display.given_up(waiting)

    def _needs_any(self, name: str, others: set[str]) -> bool:
        return not others.isdisjoint(self.tasks[name].needs)


def causes(failed: dict[str, str], tasks: dict[str, Task]) -> dict[str, str]:
    """Of the tasks that `play` says failed, those that were begun, with their reasons."""
    return {
        name: reason
        for name, reason in failed.items()
        if failed.keys().isdisjoint(tasks[name].needs)
    }


def numerics_by_cell(params: Params) -> dict[str, Numerics]:
    """How cells and fusions ask to be computed, by their keys."""
    return {key: numerics_of(cell) for key, cell in {**params.cells, **params.fusions}.items()}


def numerics_of(cell: Cell | Fusion) -> Numerics:
    """How a cell asks to be computed."""
    return Numerics(cell.numerics, cell.threads)

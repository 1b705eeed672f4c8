"""Which tasks begin first: those that take longest, so that no core waits for the last one."""

from contextlib import suppress
from math import inf
from pathlib import Path

from benchmark.commands.task_queue import Task
from benchmark.core.provenance import read_provenance
from benchmark.season.parameters import Cell
from datasets import DataError

Tasks = dict[str, Task]


def longest_first(tasks: Tasks, seconds: dict[str, float]) -> Tasks:
    """The tasks in another order: first those that nobody has timed, as they stand; then those of
    known `seconds`, the longest first, each with the longest chain of timed ones that needs it."""
    needed_by: dict[str, list[str]] = {name: [] for name in tasks}
    for name, task in tasks.items():
        for need in task.needs:
            needed_by[need].append(name)
    chains: dict[str, float] = {}

    def chain(name: str) -> float:
        if name not in chains:
            after = max((chain(other) for other in needed_by[name]), default=0.0)
            chains[name] = seconds.get(name, 0.0) + after
        return chains[name]

    order = sorted(tasks, key=lambda name: -(chain(name) if name in seconds else inf))
    return {name: tasks[name] for name in order}


def seconds_of(cells: dict[str, Cell]) -> dict[str, float]:
    """How long each training took when it was last played, by the key of its cell. What cannot be
    read counts as not timed: it only decides the order."""
    paths = {key: Path(cell.folder, "training/cost.json") for key, cell in cells.items()}
    seconds = {}
    for key, path in paths.items():
        if path.is_file():
            with suppress(DataError):
                seconds[key] = sum(read_provenance(path).seconds.values())
    return seconds

"""Workers of one cell: they compute tiles of its scores side by side, a few tiles ahead.

A worker is a thread, since torch lets others go on while it computes. On CUDA each has a GPU of its
own, as long as there are enough. A tile is computed by one worker alone and tiles keep their order,
so that on GPUs of one kind, or on a CPU, no bit depends on how many workers there are.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import TypeVar

import torch
from pydantic import PositiveInt, TypeAdapter, ValidationError

from benchmark.core.errors import UserError

WORKERS = "REMATCH_WORKERS"  # of the machine: threads or GPUs that score one cell
AHEAD = 2  # tiles of each worker that are computed or wait to be looked at

Item = TypeVar("Item")
Result = TypeVar("Result")


def allowed_workers() -> int:
    """How many, of the environment; 1 by default. Raises UserError for what is no such number."""
    given = os.environ.get(WORKERS, "1")
    try:
        return TypeAdapter(PositiveInt).validate_python(given)
    except ValidationError as error:
        raise UserError(WORKERS, "a whole number from 1", repr(given), "correct it") from error


def devices_of(workers: int, first: torch.device) -> list[torch.device]:
    """Where each worker computes: on `first`, then on the GPUs after it, in a circle."""
    if first.type != "cuda":
        return [first] * workers
    start, count = first.index or 0, torch.cuda.device_count()
    return [torch.device("cuda", (start + worker) % count) for worker in range(workers)]


def in_order(
    computers: Sequence[Callable[[Item], Result]], items: Sequence[Item]
) -> Iterator[Result]:
    """What the workers make of the items, which they take in turn; one function for each worker.
    A single worker is the calling thread."""
    if len(computers) == 1:
        yield from map(computers[0], items)
        return
    pools = [ThreadPoolExecutor(1) for _ in computers]
    begun = deque()
    try:
        for item, pool, compute in zip(items, cycle(pools), cycle(computers), strict=False):
            if len(begun) == AHEAD * len(pools):
                yield begun.popleft().result()
            begun.append(pool.submit(compute, item))
        while begun:
            yield begun.popleft().result()
    finally:
        for pool in pools:
            pool.shutdown(cancel_futures=True)


def cast_as_here(
    compute: Callable[[Item], Result], device: torch.device
) -> Callable[[Item], Result]:
    """`compute` in the precision of the present thread, whichever thread calls it."""
    dtype = torch.get_autocast_dtype(device.type)
    is_cast = torch.is_autocast_enabled(device.type)

    def computed(item: Item) -> Result:
        with torch.autocast(device.type, dtype, enabled=is_cast):
            return compute(item)

    return computed

"""Workers of one cell: they compute tiles of its scores side by side, a few tiles ahead.

A worker is a thread, since torch lets others go on while it computes. Workers take GPUs of one
kind in turn; those on one device share the model. A tile is computed by one worker alone and tiles
keep their order, so that no bit depends on how many workers there are.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import TypeVar

import torch
from pydantic import PositiveInt, TypeAdapter, ValidationError

from benchmark.core import devices
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
    """Where each worker computes: on `first`, or on all GPUs of its kind in turn, from it on."""
    if first.type != "cuda":
        return [first] * workers
    start, count = first.index or 0, torch.cuda.device_count()
    gpus = [torch.device("cuda", (start + step) % count) for step in range(count)]
    alike = [gpu for gpu in gpus if devices.kind(gpu) == devices.kind(first)]
    return list(islice(cycle(alike), workers))


def results_in_order(
    computers: Sequence[Callable[[Item], Result]], items: Sequence[Item]
) -> Iterator[Result]:
    """What the workers make of the items, which they take in turn; one function for each worker.
    A single worker is the calling thread."""
    if len(computers) == 1:
        for item in items:
            yield computers[0](item)
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
        for pool in pools:  # all of them before any is waited for: no tile is begun any more
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in pools:
            pool.shutdown()


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

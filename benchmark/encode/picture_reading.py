"""Pictures that threads open and resize while the network computes."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Opened = TypeVar("Opened")


@contextmanager
def reading(open_one: Callable[[str], Opened], files: list[str]) -> Iterator[Callable]:
    """A function from a slice of `files` to what `open_one` makes of each. Meanwhile as many of
    those that follow are opened."""
    coming: dict[int, Future] = {}

    def read(rows: slice) -> list[Opened]:
        following = min(len(files), 2 * rows.stop - rows.start)
        for row in range(rows.start, following):
            if row not in coming:
                coming[row] = workers.submit(open_one, files[row])
        return [coming.pop(row).result() for row in range(rows.start, rows.stop)]

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        try:
            yield read
        finally:
            workers.shutdown(wait=True, cancel_futures=True)

"""How long functions take beside each other: the fastest of interleaved runs.

Absolute times differ from machine to machine and from minute to minute; the ratio of the fastest
runs of two functions does not. Time is the processor's, of one thread, so that what other processes
do counts only as far as they slow down caches and clocks, and that holds for all functions alike.
"""

from collections.abc import Callable
from time import perf_counter, thread_time

SETTLED = 0.01  # share by which no fastest run got faster ...
LAST = 10  # ... in this many rounds: then the fastest runs are those of an idle machine


def fastest(*functions: Callable[[], object], seconds: float = 60.0) -> list[float]:
    """Seconds of the fastest run of each function. Rounds, one run of each, are added until they
    change nothing any more; what they show has no part in that. `seconds` is when to stop at the
    latest, by the clock, after two rounds."""
    rounds: list[list[float]] = []
    started = perf_counter()
    while len(rounds) < 2 or (not is_settled(rounds) and perf_counter() - started < seconds):
        rounds.append([timed(function) for function in functions])
    return minima(rounds)


def is_settled(rounds: list[list[float]]) -> bool:
    """Whether the last rounds made no function's fastest run faster."""
    if len(rounds) <= LAST:
        return False
    before, after = minima(rounds[:-LAST]), minima(rounds)
    return all(now > (1 - SETTLED) * then for then, now in zip(before, after, strict=True))


def minima(rounds: list[list[float]]) -> list[float]:
    return [min(runs) for runs in zip(*rounds, strict=True)]


def timed(function: Callable[[], object]) -> float:
    """Seconds of one run."""
    started = thread_time()
    function()
    return thread_time() - started

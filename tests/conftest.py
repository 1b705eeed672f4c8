"""Tests compute as the stages do: portable, with one thread, so that runs agree."""

import gc

from benchmark.core import numerics

assert numerics.current().mode == numerics.PORTABLE, "numpy was imported before this package"


def pytest_collection_finish() -> None:
    """What the libraries and tests have brought stays: no collection of garbage looks at it."""
    gc.collect()
    gc.freeze()

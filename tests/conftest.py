"""Tests compute as the stages do: portable, with one thread, so that runs agree."""

import gc

import pytest

from benchmark.core import numerics

assert numerics.current().mode == numerics.PORTABLE, "numpy was imported before this package"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Libraries stay until the end: without them a collection of garbage takes a tenth."""
    gc.collect()
    gc.freeze()

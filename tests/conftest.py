"""Tests compute as the stages do: portable, with one thread, so that runs agree."""

from benchmark.core import numerics

assert numerics.current().mode == numerics.PORTABLE, "numpy was imported before this package"

"""Rematch: the stages of the pipeline, the commands, and the rooms that they share."""

from benchmark.core import numerics

numerics.pin()  # before numpy and torch are imported

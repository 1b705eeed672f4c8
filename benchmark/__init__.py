"""Rematch: the stages of the pipeline, the commands, and the rooms that they share."""

import sys
from importlib.metadata import PackageNotFoundError

from benchmark.core import numerics

try:
    numerics.pin()  # before numpy and torch are imported
except PackageNotFoundError as error:
    sys.exit(
        f"rematch: no package {error.name}: activate the environment (. .venv/bin/activate)"
    )

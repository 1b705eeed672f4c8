"""Which folders a wheel holds; all else is in pyproject.toml.

Methods, datasets, seasons and examples lie beside the package in a checkout and inside
of it in a wheel: so nothing named `datasets` or `methods` comes to be on anybody's
import path.
"""

from setuptools import find_packages, setup

INSIDE = {
    f"benchmark.{name}": name for name in ("methods", "datasets", "seasons", "examples")
}

setup(
    py_modules=["rematch_pytest"],
    packages=[*find_packages(include=["benchmark*", "rematch"]), *INSIDE],
    package_dir=INSIDE,
)

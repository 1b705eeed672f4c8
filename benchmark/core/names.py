"""Names of seasons, datasets, presets, encoders and methods: one pattern for all.

They become folders, file names, stages of DVC, words of shell commands and links in reports. So a
name has letters, digits, `_` and `-` alone, and begins with a letter or a digit.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from benchmark.core.errors import UserError, short
from datasets.shared.name_checks import fault_of, leads_outside

LONGEST = 64  # characters: a file name holds several names
PATTERN = rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST - 1}}}"
EXPECTED = f"a name of 1 to {LONGEST} letters, digits, _ and -, the first a letter or a digit"


def checked_name(name: object, where: str) -> str:
    """The name itself. Raises UserError for what is none."""
    if not _is_name(name):
        raise UserError(where, EXPECTED, short(name), "give it another name")
    return name


def _is_name(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(PATTERN, name) is not None


def _named(name: str) -> str:
    if not _is_name(name):
        raise ValueError(EXPECTED)
    return name


def _inside(path: str) -> str:
    """A path that stays in the folder that it is relative to."""
    if leads_outside(path) or fault_of(path) or path.startswith("~"):
        raise ValueError("a path inside of the folder, without ..")
    return path


def _file_named(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,240}", name):
        raise ValueError("names joined by - and _")
    return name


Name = Annotated[str, AfterValidator(_named)]
FileName = Annotated[str, AfterValidator(_file_named)]  # of several names: a cell, a feature set
PathInside = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_inside)]

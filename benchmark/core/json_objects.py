"""JSON files that stages leave behind, read without trust: one object of plain, finite values."""

from math import isfinite
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmark.core.errors import UserError
from benchmark.core.files import read_json

DEEPEST = 100  # levels of nesting
LARGEST = 2**63  # of whole numbers: tables hold no larger ones


class Facts(BaseModel):
    """What is read of an object in a JSON file, which may hold more."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


def read_object(path: Path) -> dict:
    """The object in a JSON file.

    Raises UserError for anything else, and for what no table or page can hold: numbers that are not
    finite or too large, halves of characters, nesting without an end.
    """
    data = read_json(path)
    if not isinstance(data, dict):
        raise _unfit(path, "a JSON object", type(data).__name__)
    ahead = [(data, 1)]
    while ahead:
        value, depth = ahead.pop()
        if depth > DEEPEST:
            raise _unfit(path, f"at most {DEEPEST} levels of nesting", "more")
        _check_plain(path, value)
        if isinstance(value, dict):
            ahead += [(inner, depth + 1) for pair in value.items() for inner in pair]
        elif isinstance(value, list):
            ahead += [(inner, depth + 1) for inner in value]
    return data


def _check_plain(path: Path, value: object) -> None:
    is_odd = isinstance(value, float) and not isfinite(value)
    if is_odd or isinstance(value, int) and not -LARGEST < value < LARGEST:
        raise _unfit(path, "finite numbers", repr(value)[:40])
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise _unfit(path, "whole characters", ascii(value)[:40])


def _unfit(path: Path, expected: str, found: str) -> UserError:
    return UserError(path, expected, found, "run the stage that writes it")

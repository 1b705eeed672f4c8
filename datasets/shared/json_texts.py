"""Foreign JSON: one value, whose objects have every key once and whose numbers are numbers."""

import json
from collections import Counter
from typing import Any

from datasets import DataError


def parse(text: str, where: object, do: str) -> Any:
    """The value of a JSON text.

    Raises DataError for anything else, for nesting that is too deep, for NaN and infinity, and for
    a key that occurs twice in an object, where other readers would take other values.
    """
    try:
        return DECODER.decode(text)
    except RecursionError as error:
        raise DataError(where, "JSON", "nesting that is too deep", do) from error
    except ValueError as error:
        raise DataError(where, "JSON", f"something else ({error})", do) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {twice!r:.60} twice in one object")
    return made


def _no_number(name: str) -> float:
    raise ValueError(f"{name}, which is no number")


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)

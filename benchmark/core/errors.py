"""Mistakes that a user can correct: each is one line, and says what to do."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

MOST_NAMES = 12  # that a message lists
LONGEST = 200  # characters of a value or name in a message
LONGEST_PART, KEPT = 600, 400  # characters of a part of the line; of a longer one
EXPECTED = {  # pydantic's kind of an error -> what should be there, from its context
    "string_type": "a valid string",
    "int_type": "a valid integer",
    "int_parsing": "a valid integer, unable to parse string as an integer",
    "int_from_float": "a valid integer, got a number with a fractional part",
    "float_type": "a valid number",
    "float_parsing": "a valid number, unable to parse string as a number",
    "finite_number": "a finite number",
    "bool_type": "a valid boolean",
    "bool_parsing": "a valid boolean, unable to interpret input",
    "list_type": "a valid list",
    "tuple_type": "a valid tuple",
    "dict_type": "a valid dictionary",
    "model_type": "a valid dictionary or instance of {class_name}",
    "none_required": "None",
    "enum": "{expected}",
    "literal_error": "{expected}",
    "greater_than": "greater than {gt:.15g}",
    "greater_than_equal": "greater than or equal to {ge:.15g}",
    "less_than": "less than {lt:.15g}",
    "less_than_equal": "less than or equal to {le:.15g}",
}
TAG = re.compile(r"(list|dict|literal|function-after)\[.*\]")  # of a union, no key
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class Strict(BaseModel):
    """What a file holds: an unknown key is an error, and nothing changes it
    afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class UserError(ValueError):
    """One line: `within`: `where`: expected ..., found ...; `do` and `redo` again. The
    command line exits with 2, and with 3 after `--check`.

    where     file and item, for example "captions.csv: line 3"
    expected  what should be there
    found     what is there instead; "nothing" where something is missing
    do        the next step, as an imperative; "" where the caller adds it
    within    the dataset or folder that `where` is part of; "" where that says it
    redo      the verb to run again after `do`, for example "fetch"; "" for none
    """

    def __init__(
        self,
        where: object,
        expected: str,
        found: object,
        do: str = "",
        *,
        within: object = "",
        redo: str = "",
    ) -> None:
        self.where = str(where)
        self.expected = expected
        self.found = str(found)
        self.do = do
        self.within = str(within)
        self.redo = redo
        place = _clipped(self.where)
        if self.within:
            place = f"{self.within}: {place}"
        line = f"{place}: expected {expected}, found {_clipped(self.found)}"
        steps = [do] if do else []
        if redo:
            steps.append(f"{redo} again")
        if steps:
            line += f"; {' and '.join(steps)}"
        super().__init__(printable(line))

    def but(self, **changes: Any) -> Self:
        """The same error with other values of some fields, to be raised from it."""
        fields = {"within": self.within, "where": self.where, "redo": self.redo}
        fields |= {"expected": self.expected, "found": self.found, "do": self.do}
        return type(self)(**fields | changes)


def printable(text: str) -> str:
    """`text` as one line that a terminal shows as it is: other characters become
    escapes, as names from foreign files may hold any."""
    line = " ".join(text.split())
    return "".join(map(_visible, line))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def _clipped(text: str) -> str:
    """The beginning of a text that is too long for one line, and how long it is."""
    if len(text) <= LONGEST_PART:
        return text
    return f"{text[:KEPT]}... ({len(text)} characters)"


def short(value: object) -> str:
    """What a value looks like, on one line that can be read."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def suggested(name: object, known: Iterable[str]) -> str:
    """The wrong name as errors show it, with the known one that is most like it, if
    there is any: "'scan_t2i_avgg' (did you mean scan_t2i_avg?)". Case does not
    count."""
    by_fold = {other.casefold(): other for other in known if other}
    near = get_close_matches(str(name)[:LONGEST].casefold(), by_fold, n=1)
    shown = f"{name!r:.{LONGEST}}"
    return f"{shown} (did you mean {by_fold[near[0]]}?)" if near else shown


def listed(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Names as a message lists them, of many the first."""
    shown = ", ".join(names[:most]) or "(none)"
    if len(names) > most:
        shown += f" and {len(names) - most} more"
    return shown


def entry(
    group: Mapping[str, T],
    key: str,
    what: str,
    do: str = "see the season, or choose another: rematch season NAME",
) -> T:
    """`group[key]`. Raises UserError that lists what a season has, of many the
    first."""
    if key not in group:
        raise UserError(
            f"{what} {key!r}",
            expected=f"one of {listed(list(group))}",
            found=f"no such key: {suggested(key, group)}",
            do=do,
        )
    return group[key]


@contextmanager
def corrected_by(command: str) -> Iterator[None]:
    """Errors in files that a command writes advise to run it: nobody corrects these by
    hand."""
    try:
        yield
    except UserError as error:
        raise error.but(do=f"run: {command}", redo="") from error


@contextmanager
def redone_by(verb: str, within: object) -> Iterator[None]:
    """Errors in files of a user: of which dataset or folder they are, and which verb
    reads them again."""
    try:
        yield
    except UserError as error:
        raise error.but(within=within, redo=verb) from error


def checked(model: type[M], data: object, where: str) -> M:
    """`data` as `model`; the first thing wrong is a UserError that starts with
    `where`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        place = telling(error)["loc"][:-1]
        raise unfit(error, where, keys_at(model, place)) from error


def keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The valid keys of the place that a path leads to, from a model downwards."""
    kinds: list[object] = [model]
    for part in path:
        inner: list[object] = []
        for kind in kinds:
            inner += _inside(kind, part)
        kinds = inner or kinds  # tags of unions lead nowhere
    keys: set[str] = set()
    for kind in kinds:
        for each in _models_in(kind):
            keys.update(each.model_fields)
    return sorted(keys)


def _inside(kind: object, part: str | int) -> list[object]:
    """The annotations of what a field, a key of a mapping or a number leads to."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(str(part))
        return [field.annotation] if field else []
    origin = get_origin(kind)
    if origin in (dict, Mapping):
        return [get_args(kind)[1]]
    if origin in (list, tuple) and isinstance(part, int):
        return list(get_args(kind))
    inner: list[object] = []
    for each in get_args(kind):
        inner += _inside(each, part)
    return inner


def _models_in(kind: object) -> list[type[BaseModel]]:
    """Among the parts of an annotation such as dict[str, Cell | None]."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    models = []
    for part in get_args(kind):
        models += _models_in(part)
    return models


def telling(error: ValidationError) -> ErrorDetails:
    """The first thing that pydantic found wrong; beside a missing key an unknown one of
    the same place, which may be it."""
    first, *others = error.errors()
    if first["type"] == "missing":
        for other in others:
            is_beside = other["loc"][:-1] == first["loc"][:-1]
            if other["type"] == "extra_forbidden" and is_beside:
                return other
    return first


def unfit(error: ValidationError, where: str, known: list[str]) -> UserError:
    """What pydantic found wrong; `known` are the valid keys of its place."""
    first = telling(error)
    parts = [str(part)[:LONGEST] for part in first["loc"]]
    key = ".".join(part for part in parts if not TAG.fullmatch(part)) or "(top level)"
    place = f"{where}: {key}"
    if first["type"] == "extra_forbidden":
        near = suggested(first["loc"][-1], known)
        return UserError(
            place,
            expected=f"one of {', '.join(known)}" if known else "a known key",
            found=f"an unknown key: {near}",
            do="correct or remove it",
        )
    if first["type"] == "missing":
        return UserError(
            place,
            expected="a value",
            found="nothing",
            do="add the key",
        )
    context = first.get("ctx", {})
    expected = first["msg"]
    if first["type"] == "value_error":  # of a validator of ours
        expected = str(context["error"])
    elif first["type"] in EXPECTED:
        expected = EXPECTED[first["type"]].format(**context)
    return UserError(
        place,
        expected=expected,
        found=short(first["input"]),
        do="correct it",
    )

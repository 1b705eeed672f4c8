"""Mistakes that a user can correct: each is one line, and says what to do."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

LONGEST = 200  # characters of a value or name in a message
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class Strict(BaseModel):
    """What a file holds: an unknown key is an error, and nothing changes it
    afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class UserError(ValueError):
    """One line: `where`: expected ..., found ...; `do`. The command line exits with 2.

    where     file and item, for example "captions.csv: line 3"
    expected  what should be there
    found     what is there instead; "nothing" where something is missing
    do        the next step, as an imperative; "" where the caller adds it
    """

    def __init__(
        self, where: object, expected: str, found: object, do: str = ""
    ) -> None:
        self.where, self.expected, self.found, self.do = (
            str(where),
            expected,
            str(found),
            do,
        )
        line = (
            f"{_clipped(self.where)}: expected {expected}, found {_clipped(self.found)}"
        )
        super().__init__(printable(line + (f"; {do}" if do else "")))


def printable(text: str) -> str:
    """`text` as one line that a terminal shows as it is: other characters become
    escapes, as names from foreign files may hold any."""
    line = " ".join(text.split())
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in line
    )


def _clipped(text: str) -> str:
    """The beginning of a text that is too long for one line, and how long it is."""
    return text if len(text) <= 600 else f"{text[:400]}... ({len(text)} characters)"


def short(value: object) -> str:
    """What a value looks like, on one line that can be read."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def suggested(name: object, known: Iterable[str]) -> str:
    """The wrong name as errors show it, with the known one that is most like it, if
    there is any: "'scan_t2i_avgg' (did you mean scan_t2i_avg?)". Case does not
    count."""
    by_fold = {other.casefold(): other for other in known}
    near = get_close_matches(str(name)[:LONGEST].casefold(), by_fold, n=1)
    return f"{name!r:.{LONGEST}}" + (
        f" (did you mean {by_fold[near[0]]}?)" if near else ""
    )


def entry(group: Mapping[str, T], key: str, what: str) -> T:
    """`group[key]`. Raises UserError that lists what a season has."""
    if key not in group:
        expected = f"one of {', '.join(group) or '(none)'}"
        do = "see the season, or choose another: rematch season NAME"
        raise UserError(
            f"{what} {key!r}", expected, f"no such key: {suggested(key, group)}", do
        )
    return group[key]


@contextmanager
def corrected_by(command: str) -> Iterator[None]:
    """Errors in files that a command writes tell to run it: nobody corrects these by
    hand."""
    try:
        yield
    except UserError as error:
        raise UserError(
            error.where, error.expected, error.found, f"run: {command}"
        ) from error


def checked(model: type[M], data: object, where: str) -> M:
    """`data` as `model`; the first thing wrong is a UserError that starts with
    `where`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise unfit(
            error, where, keys_at(model, error.errors()[0]["loc"][:-1])
        ) from error


def keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The valid keys of the place that a path leads to, from a model downwards."""

    def models_in(kind: object) -> list[type[BaseModel]]:
        """Among the parts of an annotation such as dict[str, Cell | None]."""
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return [kind]
        return [model for part in get_args(kind) for model in models_in(part)]

    models = [model]
    for part in path:
        fields = [
            outer.model_fields[part] for outer in models if part in outer.model_fields
        ]
        # Keys of mappings, numbers of items and tags of unions are no fields.
        models = [m for field in fields for m in models_in(field.annotation)] or models
    return sorted({key for inner in models for key in inner.model_fields})


def unfit(error: ValidationError, where: str, known: list[str]) -> UserError:
    """The first thing that pydantic found wrong; `known` are the valid keys of its
    place."""
    first = error.errors()[0]
    key = ".".join(str(part)[:LONGEST] for part in first["loc"]) or "(top level)"
    place = f"{where}: {key}"
    if first["type"] == "extra_forbidden":
        expected = f"one of {', '.join(known)}" if known else "a known key"
        found = f"an unknown key: {suggested(first['loc'][-1], known)}"
        return UserError(place, expected, found, "correct or remove it")
    if first["type"] == "missing":
        return UserError(place, "a value", "nothing", "add the key")
    # Pydantic's "Input should be an integer" says what is expected: "an integer".
    expected = (
        first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    )
    return UserError(place, expected, short(first["input"]), "correct it")

"""Image-text datasets: one module per dataset, loaded by file name.

A dataset module imports neither torch nor methods nor the benchmark. It declares its options once,
as a frozen dataclass `Options` with defaults, and offers four functions that take one:

    card       what the dataset is: source, licence, files, expected counts, directions retrieved
    inventory  the raw files that make it up, so that `fetch` can verify them
    read       raw files -> `Tables`
    pictures   raw files -> a function that opens one image

`Options` refuses values that cannot be used with a `DataError`; a season sets its fields by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from PIL import Image

SPLITS = ("train", "val", "test", "unused")

OpenPicture = Callable[[str], Image.Image]  # file name as in Tables.images -> RGB picture


class DataError(ValueError):
    """Data that cannot be used, as one line: `where`: expected ..., found ...; `do`.

    where     file and item, for example "captions.csv: line 3"
    expected  what should be there
    found     what is there instead; "nothing" where something is missing
    do        the next step, as an imperative; "" where the caller adds it
    """

    def __init__(self, where: object, expected: str, found: object, do: str = "") -> None:
        self.where, self.expected, self.found, self.do = str(where), expected, str(found), do
        line = f"{_clipped(self.where)}: expected {expected}, found {_clipped(self.found)}"
        super().__init__(printable(line + (f"; {do}" if do else "")))


def printable(text: str) -> str:
    """`text` as one line that a terminal shows as it is: other characters become escapes, as names
    from foreign files may hold any."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return "".join(shown)


def _clipped(text: str) -> str:
    """The beginning of a text that is too long for one line, and how long it is."""
    return text if len(text) <= 600 else f"{text[:400]}... ({len(text)} characters)"


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file that `fetch` may download. `sha256` is None where its bytes were never hashed."""

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class Needed:
    """Raw files of one purpose, as a line of a checklist.

    what  what they are
    ways  any one of these suffices; each is the names below the raw folder that must all be
          there. A name may be a glob; that of a folder ends with a slash.
    """

    what: str
    ways: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> str:
        """For example "a.zip, or b.txt and c.txt"."""
        joint = ", or " if any(len(way) > 1 for way in self.ways) else " or "
        return joint.join(_listed(way) for way in self.ways)

    def __str__(self) -> str:
        return f"{self.names}: {self.what}"


def _listed(names: tuple[str, ...]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known of a dataset before any byte of it is read."""

    title: str
    source: str  # citation
    licence: str
    split: str  # name of the partition; part of a result's identity
    may_publish: bool  # whether committed pages may show its pictures and captions
    remote: tuple[RemoteFile, ...] = ()
    obtain: str = ""  # what to place where if nothing can be downloaded; "" if all is drawn
    form: str = ""  # address where a gated dataset is requested; "" if it is not gated
    checklist: tuple[Needed, ...] = ()  # what belongs in the raw folder
    raw_gib: float = 0.0  # approximate size of the raw files on disk
    expected_images: Mapping[str, int] = field(default_factory=dict)  # split -> images
    expected_captions: Mapping[str, int] = field(default_factory=dict)  # split -> captions
    ways: tuple[str, ...] = ("i2t", "t2i")  # directions of retrieval
    folds: int = 1  # consecutive parts of the test split that are also evaluated separately


@dataclass(frozen=True, kw_only=True)
class Tables:
    """A dataset as three tables.

    images    one row per image: image_id (unique str), file (str; "" for an image that has
              features but no picture), split (one of SPLITS), group (str)
    captions  one row per caption: caption_id (unique str), image_id, text (not blank)
    regions   one row per phrase, with the box that the phrase names: image_id, caption_id, phrase,
              x0, y0, x1, y1 (pixels, half-open), chain (str; phrases of one chain name the same
              things of the same image, in the same box); may be empty
    notes     irregularities and how they were handled, as sentences for the report
    """

    images: pd.DataFrame
    captions: pd.DataFrame
    regions: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(
            columns=["image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
        )
    )
    notes: tuple[str, ...] = ()


class Dataset(Protocol):
    """What every module in this folder offers. `options` is an instance of its `Options`."""

    Options: type  # frozen dataclass; every field has a default

    def card(self, options: Any = ...) -> Card: ...
    def inventory(self, raw: Path, options: Any = ...) -> list[Path]: ...
    def read(self, raw: Path, options: Any = ...) -> Tables: ...
    def pictures(self, raw: Path, options: Any = ...) -> OpenPicture: ...


def names() -> list[str]:
    """The names of all datasets in this folder, in alphabetical order."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def load(name: str) -> Dataset:
    """The module of one dataset, for example `load("flickr8k")`.

    Raises DataError for a name that is no module of this folder.
    """
    if name not in names():
        near = get_close_matches(name, names(), n=1)
        found = f"{name!r}" + (f" (did you mean {near[0]}?)" if near else "")
        expected = f"one of {', '.join(names())}"
        raise DataError("dataset", expected, found, "correct the name of the dataset")
    return import_module(f"datasets.{name}")

"""Image-text datasets. One module per dataset, loaded by file name.

A dataset module offers four functions and knows nothing of torch, methods or the benchmark:

    card       what the dataset is: source, licence, files, expected counts, how it is judged
    inventory  the raw files that make it up, so that `fetch` can verify them
    read       raw files -> `Tables`
    pictures   raw files -> a function that opens one image

Every option of a module is a keyword of all four, so that a season can set it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol

import pandas as pd
from PIL import Image

SPLITS = ("train", "val", "test", "unused")

OpenPicture = Callable[[str], Image.Image]  # file name as in Tables.images -> RGB picture


class DataError(ValueError):
    """Data that cannot be used, as one line: `where`: expected ..., found ...; `do`.

    where     file and item, for example "captions.csv: line 3"
    expected  what should be there
    found     what is there instead; "nothing" where something is missing
    do        the next step, as an imperative
    """

    def __init__(self, where: object, expected: str = "", found: object = "", do: str = "") -> None:
        self.where, self.expected, self.found, self.do = str(where), expected, str(found), do
        line = f"{where}: expected {expected}, found {found}" if expected else str(where)
        super().__init__(" ".join(f"{line}; {do}".split()) if do else line)


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file `fetch` may download. `sha256` is None where no real bytes were ever hashed."""

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known of a dataset before any byte of it is read."""

    title: str
    source: str  # citation
    licence: str
    split: str  # name of the partition; part of a result's identity
    may_publish: bool  # whether committed pages may show its pictures and captions
    remote: tuple[RemoteFile, ...] = ()
    obtain: str = ""  # what to place where when nothing can be downloaded
    form: str = ""  # of a gated dataset: the address where one asks for it
    checklist: tuple[str, ...] = ()  # "path in the raw folder: what it is", a line a file or folder
    raw_gib: float = 0.0  # disk that the raw files take, roughly
    expected_images: Mapping[str, int] = field(default_factory=dict)  # split -> images
    expected_captions: Mapping[str, int] = field(default_factory=dict)  # split -> captions
    ways: tuple[str, ...] = ("i2t", "t2i")  # directions that are retrieved
    folds: int = 1  # consecutive parts of the test split that are judged on their own as well


@dataclass(frozen=True, kw_only=True)
class Tables:
    """A dataset as three tables.

    images    one row an image: image_id (unique str), file (str; "" where there are features but
              no pictures), split (of SPLITS), group (str)
    captions  one row a caption: caption_id (unique str), image_id, text (not blank)
    regions   one row a phrase and the box it names: image_id, caption_id, phrase,
              x0, y0, x1, y1 (pixels, half-open), chain (str: what it names; phrases of one chain
              name the same thing of the same image, in the same box); may be empty
    notes     irregularities that were found and handled, as sentences for the report
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
    """What a module in this folder looks like from outside."""

    def card(self, **options: object) -> Card: ...
    def inventory(self, raw: Path, **options: object) -> list[Path]: ...
    def read(self, raw: Path, **options: object) -> Tables: ...
    def pictures(self, raw: Path, **options: object) -> OpenPicture: ...


def names() -> list[str]:
    """Every dataset of this folder, in alphabetical order."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def load(name: str) -> Dataset:
    """The module of one dataset, for example `load("flickr8k")`."""
    if name not in names():
        raise DataError(f"no dataset {name!r}; expected one of {', '.join(names())}")
    return import_module(f"datasets.{name}")

"""Image-text datasets: one module per dataset, loaded by file name.

A dataset module imports from the benchmark only its contract and readers. It declares
its options once, as a frozen dataclass `Options` with defaults, and offers four
functions that take one:

    card       what the dataset is: source, licence, files, expected counts, directions retrieved
    inventory  the raw files that make it up, so that `fetch` can verify them
    read       raw files -> `Tables`
    pictures   raw files -> a function that opens one image

One that people judged further pairs of offers a fifth one:

    layers     raw files, tables -> those pairs, as a list of `Layer`; empty without their files

`Options` refuses values that cannot be used with a `UserError`; a season sets its
fields by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchmark.contracts import HOME
from benchmark.core.errors import UserError as UserError
from benchmark.core.errors import printable as printable
from benchmark.core.errors import suggested

if TYPE_CHECKING:  # lists and help need not wait for them
    import pandas as pd
    from PIL import Image

FOLDER = HOME / "datasets"
# its files are submodules of this module: plug-ins, loaded by name
__path__ = [str(FOLDER)]

SPLITS = ("train", "val", "test", "unused")
# columns
REGIONS = ["image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
QUERY_OF = {"i2t": "image_id", "t2i": "caption_id"}  # way -> what asks

# file name as in Tables.images -> RGB picture
OpenPicture = Callable[[str], "Image.Image"]


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file that `fetch` may download. `sha256` is None where its bytes were never
    hashed."""

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
        texts = []
        joint = " or "
        for *others, last in self.ways:
            text = last
            if others:
                text = f"{', '.join(others)} and {last}"
                joint = ", or "
            texts.append(text)
        return joint.join(texts)

    def __str__(self) -> str:
        return f"{self.names}: {self.what}"


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known of a dataset before any byte of it is read."""

    title: str
    source: str  # citation
    licence: str
    split: str  # name of the partition; part of a result's identity
    may_publish: bool  # whether committed pages may show its pictures and captions
    remote: tuple[RemoteFile, ...] = ()
    # what to place where if nothing can be downloaded; "" if all is drawn
    obtain: str = ""
    form: str = ""  # address where a gated dataset is requested; "" if it is not gated
    checklist: tuple[Needed, ...] = ()  # what belongs in the raw folder
    raw_gib: float = 0.0  # approximate size of the raw files on disk
    expected_images: Mapping[str, int] = field(default_factory=dict)  # split -> images
    # split -> captions
    expected_captions: Mapping[str, int] = field(default_factory=dict)
    ways: tuple[str, ...] = ("i2t", "t2i")  # directions of retrieval
    # consecutive parts of the test split that are also evaluated separately
    folds: int = 1


def _no_regions() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns=REGIONS)


@dataclass(frozen=True, kw_only=True)
class Tables:
    """A dataset as three tables.

    images    one row per image: image_id (unique str), file (str; "" for an image that has
              features but no picture), split (one of SPLITS), group (str)
              its index may be what else the files call each image, under the name imgid
    captions  one row per caption: caption_id (unique str), image_id, text (not blank); its index
              may be what else the files call each caption, under the name sentid
    regions   one row per phrase, with the box that the phrase names: image_id, caption_id, phrase,
              x0, y0, x1, y1 (pixels, half-open), chain (str; phrases of one chain name the same
              things of the same image, in the same box); may be empty
    notes     irregularities and how they were handled, as sentences for the report
    """

    images: pd.DataFrame
    captions: pd.DataFrame
    regions: pd.DataFrame = field(default_factory=_no_regions)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of relevance: what counts as right on the test split, beside or instead
    of `own`.

    pairs    one row per judged pair, those of `own` among them if they count: way (i2t: the image
             is the query; t2i: the caption is), image_id, caption_id, score (what people said,
             greater for better; infinite for a pair that is right at any cut), right (bool). The
             queries of a way are those that it names; their other pairs are unjudged
    partial  whether unjudged pairs may be right: numbers then have bounds
    cuts     other least scores of right pairs, to show what they change
    named    way -> how many queries the layer's files name, where `pairs` is without those of other
             images and captions; empty: those of `pairs`
    """

    name: str
    rule: str  # which pairs are right, as a sentence without its full stop
    pairs: pd.DataFrame
    partial: bool = False
    cuts: tuple[float, ...] = ()
    named: Mapping[str, int] = field(default_factory=dict)

    @property
    def covered(self) -> dict[str, int]:
        """Way -> how many queries have a pair."""
        return {
            way: of_way[QUERY_OF[way]].nunique()
            for way, of_way in self.pairs.groupby("way")
        }


class Dataset(Protocol):
    """What every module in this folder offers. `options` is an instance of its
    `Options`."""

    Options: type  # frozen dataclass; every field has a default

    def card(self, options: Any = ...) -> Card: ...
    def inventory(self, raw: Path, options: Any = ...) -> list[Path]: ...
    def read(self, raw: Path, options: Any = ...) -> Tables: ...
    def pictures(self, raw: Path, options: Any = ...) -> OpenPicture: ...


def names() -> list[str]:
    """The names of all datasets in this folder, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("[!_]*.py"))


def check_name(name: str) -> None:
    """Raise UserError for a name that is no module of this folder."""
    if name not in names():
        raise UserError(
            "dataset",
            expected=f"one of {', '.join(names())}",
            found=suggested(name, names()),
            do="correct the name",
        )


def load(name: str) -> Dataset:
    """The module of one dataset, for example `load("flickr8k")`. Raises UserError as
    `check_name`."""
    check_name(name)
    return import_module(f"{__name__}.{name}")

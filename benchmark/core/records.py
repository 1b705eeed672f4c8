"""What a cell leaves behind: its record, and what it cost.

A record holds what was run and how it ended: two runs of a cell on one machine have
equal records. Costs hold where and when it ran: times, memory, machine, commit.

Where the data of a cell departs from what its paper feeds the method, records hold the
facts. A page or an export puts them into words with `sentence`, and nothing reads these
words. Imports no torch.
"""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import field_serializer

from benchmark.core.errors import Strict, checked
from benchmark.core.files import json_text, read_object, write_text

if TYPE_CHECKING:
    import pandas as pd

M = TypeVar("M", bound=Strict)
SCHEMA_VERSION = 3
RECORD = "record.json"
# a list of them, in JSON, where no text has a line break
NUMBERS = re.compile(r"\[\n\s*([^]\[{}\"]+?)\s*\n\s*\]")
# of vectors; contextual: of tokens
TextKind = Literal["sentence", "contextual", "phrase"]


class Aspect(StrEnum):
    """What departs."""

    IMAGE_NETWORK = "image_network"
    # with the training split's mean and deviation
    IMAGES_STANDARDISED = "images_standardised"
    GRID_REGIONS = "grid_regions"  # instead of a detector's boxes
    PROPOSALS = "proposals"  # other than EdgeBoxes
    WORD_VECTORS = "word_vectors"  # that a method reads
    # what a text encoder computes with: word vectors, or weights
    TEXT_VECTORS = "text_vectors"
    # of an encoder that the paper has trained
    RANDOM_TEXT_WEIGHTS = "random_text_weights"
    TEXTS_STANDARDISED = "texts_standardised"


class Departure(Strict):
    """One fact: what the cell was fed, and what the paper has where that is known."""

    aspect: Aspect
    here: str = ""
    in_paper: str = ""
    texts: TextKind | None = None  # of aspects of texts
    reads_words: bool = False  # of TEXT_VECTORS: `here` names word vectors


def sentence(departure: Departure) -> str:
    """A departure in words."""
    aspect = departure.aspect
    setting = departure.here
    texts = f"{departure.texts} vectors"
    match aspect:
        case Aspect.IMAGE_NETWORK if departure.in_paper:
            return f"image features: {setting}, in the paper {departure.in_paper}"
        case Aspect.IMAGE_NETWORK:
            return f"image features: {setting}"
        case Aspect.IMAGES_STANDARDISED:
            return "image features standardised with training statistics"
        case Aspect.GRID_REGIONS:
            grid = f"{setting} x {setting}"
            return f"regions: a {grid} grid instead of a detector's boxes"
        case Aspect.PROPOSALS:
            return f"proposals: {setting.replace('_', ' ')} instead of EdgeBoxes"
        case Aspect.WORD_VECTORS:
            return f"word vectors: {setting}"
        case Aspect.TEXT_VECTORS if departure.reads_words:
            return f"{texts}: word vectors {setting}"
        case Aspect.TEXT_VECTORS:
            return f"{texts}: {setting}"
        case Aspect.RANDOM_TEXT_WEIGHTS:
            return f"{texts}: random LSTM weights instead of published ones"
        case Aspect.TEXTS_STANDARDISED:
            return f"{texts} standardised with training statistics"


class Provenance(Strict):
    """Where and when a training or a scoring ran, and what it cost."""

    git_commit: str
    packages: dict[str, str]
    machine: str
    device: str
    driver: str | None = None  # of a GPU, as cudnn
    cudnn: str | None = None
    precision: str | None = None  # of the season; None in files of before it was kept
    threads: int
    # stages at once, with this one; None in files of before it was kept
    jobs: int | None = None
    workers: int = 1  # threads or GPUs that scored one cell; today it is always one
    seconds: dict[str, float]  # what -> wall time
    peak_memory_mib: float
    peak_device_memory_mib: float | None = None
    peak_device_reserved_mib: float | None = None  # with what the allocator held back


class Costs(Strict):
    """What a cell cost."""

    # None of a fusion and of an external row, which have none, and of weights that were
    # trained elsewhere
    training: Provenance | None = None
    scoring: Provenance


class Record(Strict):
    """One cell: identity, what it was fed, how it ended, its metrics and history."""

    schema_version: int = SCHEMA_VERSION
    protocol_version: int
    season: str
    dataset: str
    split: str  # "<partition>/<split>", for example "official/test"
    images: int
    captions: int
    task: Literal["retrieval", "localisation"] = "retrieval"
    phrases: int = 0  # queries of localisation
    manifest_sha256: str
    preset: str
    method: str
    family: str
    seed: int
    options: dict  # every hyper-parameter, resolved
    scaled: list[str]  # options that the season set to fit its budget
    image_features: dict  # the feature card's encoder, settings and weights
    text_features: dict
    departures: list[Departure] = []  # from what the paper feeds the method
    starts_alike: bool = False  # every seed of the method starts from the same weights
    parameters: int
    # whose weights were evaluated: the best on validation, or the last
    selected_epoch: int | None
    status: Literal["ok", "failed", "not_applicable"]
    reason: str = ""
    metrics: dict
    # of images: correlation_before, _after; of fusions: weights_
    sampled: dict[str, float] = {}
    trainings: dict[str, dict] = {}  # preset -> digests of its inputs, numerics
    numerics: dict = {}  # of the evaluation: mode, threads, fingerprint
    files: dict[str, str] = {}  # beside this one: name -> sha256
    history: dict[str, list[int | float | None]] = {}  # column -> value of each epoch

    @field_serializer("departures")
    def _with_what_is_known(self, departures: list[Departure]) -> list[dict]:
        return [
            each.model_dump(mode="json", exclude_defaults=True) for each in departures
        ]

    @property
    def epochs(self) -> "pd.DataFrame | None":
        """The history, one row per epoch; None without epochs of its own."""
        import pandas as pd

        return pd.DataFrame(self.history) if self.history else None


def read_all(kind: type[M], path: Path) -> dict[str, M]:
    """The records, or the costs, of all cells in a file that git keeps, by PRESET/SEED;
    none where there is no such file."""
    content = read_object(path) if path.is_file() else {}
    return {
        name: checked(kind, facts, f"{path}: {name}") for name, facts in content.items()
    }


def text_of(content: object) -> str:
    """Records as JSON: equal ones give equal bytes. A list of numbers, as a column of
    the history, is one line."""

    def on_one_line(numbers: re.Match) -> str:
        return f"[{' '.join(numbers[1].split())}]"

    return NUMBERS.sub(on_one_line, json_text(content))


def write_record(folder: Path, record: Record) -> None:
    """Write record.json of a cell."""
    write_text(folder / RECORD, text_of(record.model_dump(mode="json")))


def read_record(folder: Path) -> Record:
    """The record of a cell. Raises UserError for a missing or damaged one."""
    path = folder / RECORD
    return checked(Record, read_object(path), str(path))

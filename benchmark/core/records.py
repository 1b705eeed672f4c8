"""What a cell leaves behind, in one JSON file: identity, metrics, history and cost.

record.json holds what was run and how it ended. Two runs of a cell on one machine agree in all of
it but `cost`, which has times, dates and the commit. Knows no torch.
"""

import re
from pathlib import Path
from typing import Literal

import pandas as pd

from benchmark.core.departures import Departure
from benchmark.core.errors import Strict, checked
from benchmark.core.files import json_text, read_object, write_text

SCHEMA_VERSION = 3
RECORD = "record.json"


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
    jobs: int | None = None  # stages at once, with this one; None in files of before it was kept
    workers: int = 1  # threads or GPUs that scored one cell; today it is always one
    seconds: dict[str, float]  # what -> wall time
    peak_memory_mib: float
    peak_device_memory_mib: float | None = None
    peak_device_reserved_mib: float | None = None  # with what the allocator held back


class Costs(Strict):
    """What a cell cost. A fusion has no training of its own, an external row neither."""

    training: Provenance | None = None
    scoring: Provenance


class Record(Strict):
    """One cell: identity, what it was fed, how it ended, its metrics, history and cost."""

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
    selected_epoch: int | None  # whose weights were evaluated: the best on validation, or the last
    status: Literal["ok", "failed", "not_applicable"]
    reason: str = ""
    metrics: dict
    sampled: dict[str, float] = {}  # of images: correlation_before, _after; of fusions: weights_
    trainings: dict[str, dict] = {}  # preset -> digests of its inputs, numerics
    numerics: dict = {}  # of the evaluation: mode, threads, fingerprint
    files: dict[str, str] = {}  # beside this one: name -> sha256
    history: dict[str, list[int | float | None]] = {}  # column -> value of each epoch
    cost: Costs

    @property
    def epochs(self) -> pd.DataFrame | None:
        """The history, one row per epoch; None without epochs of its own."""
        return pd.DataFrame(self.history) if self.history else None


def write_record(folder: Path, record: Record) -> None:
    """Write record.json: equal records give equal bytes. A column of the history is one line."""
    lists = re.compile(r"\[\s+([^]\[{}\"]+?)\s+\]")  # of numbers
    text = json_text(record.model_dump(mode="json"))
    write_text(folder / RECORD, lists.sub(lambda found: f"[{' '.join(found[1].split())}]", text))


def read_record(folder: Path) -> Record:
    """The record of a cell. Raises UserError for a missing or damaged one."""
    path = folder / RECORD
    return checked(Record, read_object(path), str(path))

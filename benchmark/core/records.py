"""What a cell leaves behind, and where.

record.json holds what was played and how it ended, and nothing that a second run on the same
machine would change: no time, no date, no commit. Those are in training/cost.json and
scores/cost.json.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from benchmark.core.errors import checked
from benchmark.core.files import write_json
from benchmark.core.json_objects import read_object

SCHEMA_VERSION = 1


class Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Record(Frozen):
    """One cell: identity, what it was fed, how it ended, and its metrics."""

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
    deviations: list[str]  # sentences: where this cell departs from the paper by its data
    parameters: int
    selected_epoch: int | None  # whose weights were evaluated: the best on validation, or the last
    status: Literal["ok", "failed", "not_applicable"]
    reason: str = ""
    metrics: dict
    # Records of before these were kept have none.
    trainings: dict[str, dict] = {}  # preset -> digests of inputs and code, numerics
    numerics: dict = {}  # of the evaluation: mode, threads, fingerprint
    files: dict[str, str] = {}  # of the folder, without costs -> sha256


def write_record(folder: Path, record: Record) -> None:
    write_json(folder / "record.json", record.model_dump(mode="json"))


def read_record(folder: Path) -> Record:
    """The record of a cell, checked against this version's schema."""
    path = folder / "record.json"
    return checked(Record, read_object(path), str(path))

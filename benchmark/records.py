"""What a cell leaves behind, and where.

record.json holds what was played and how it ended, and nothing that a second run on the same
machine would change: no time, no date, no commit. Those are in training.json and scoring.json.
"""

import os
import platform
import resource
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict

from benchmark.errors import checked
from benchmark.files import read_json, write_json

SCHEMA_VERSION = 1
PACKAGES = ("torch", "torchvision", "numpy", "pandas", "gensim", "scikit-learn")


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
    selected_epoch: int | None  # chosen by validation rsum
    status: Literal["ok", "failed", "not_applicable"]
    reason: str = ""
    metrics: dict


class Provenance(Frozen):
    """Where and when something ran, and what it cost."""

    git_commit: str
    packages: dict[str, str]
    machine: str
    device: str
    threads: int
    seconds: dict[str, float]  # what -> wall time
    peak_memory_mib: float
    peak_device_memory_mib: float | None


def provenance(device: torch.device, seconds: dict[str, float]) -> Provenance:
    """The present process on the present machine."""
    on_cuda = device.type == "cuda"
    return Provenance(
        git_commit=_commit(),
        packages={name: version(name) for name in PACKAGES},
        machine=f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        device=torch.cuda.get_device_name(device) if on_cuda else "cpu",
        threads=torch.get_num_threads(),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        peak_memory_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        peak_device_memory_mib=(
            round(torch.cuda.max_memory_allocated(device) / 2**20, 1) if on_cuda else None
        ),
    )


def write_record(folder: Path, record: Record) -> None:
    write_json(folder / "record.json", record.model_dump(mode="json"))


def read_record(folder: Path) -> Record:
    """The record of a cell, checked against this version's schema."""
    path = folder / "record.json"
    return checked(Record, read_json(path), str(path))


def write_provenance(path: Path, facts: Provenance) -> None:
    write_json(path, facts.model_dump(mode="json"))


def read_provenance(path: Path) -> Provenance:
    return checked(Provenance, read_json(path), str(path))


def _commit() -> str:
    """HEAD, marked `+` when the code differs from it; "unknown" outside of a repository."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--", "benchmark", "methods", "datasets")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

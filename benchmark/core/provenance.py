"""What a training or a scoring cost, and where it ran: training/cost.json and scores/cost.json.

Apart from records.py, so that a change to the record makes no training stale. Knows no torch.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmark.core.errors import checked
from benchmark.core.files import write_json
from benchmark.core.json_objects import read_object


class Provenance(BaseModel):
    """Where and when something ran, and what it cost."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    git_commit: str
    packages: dict[str, str]
    machine: str
    device: str
    driver: str | None = None  # of a GPU, as cudnn
    cudnn: str | None = None
    precision: str | None = None  # of the season; None in files of before it was kept
    threads: int
    workers: int = 1  # that were allowed to score it (matching/tile_workers.py)
    seconds: dict[str, float]  # what -> wall time
    peak_memory_mib: float
    peak_device_memory_mib: float | None
    peak_device_reserved_mib: float | None = None  # with what the allocator held back


def write_provenance(path: Path, facts: Provenance) -> None:
    write_json(path, facts.model_dump(mode="json"))


def read_provenance(path: Path) -> Provenance:
    return checked(Provenance, read_object(path), str(path))

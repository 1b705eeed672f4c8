"""Records of cells that were played again, compared with the committed ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from pathlib import Path
from statistics import variance

import pandas as pd
from pydantic import BaseModel, ConfigDict
from scipy import special

from benchmark.core.errors import UserError, checked, corrected_by
from benchmark.core.files import write_json
from benchmark.core.json_objects import read_object
from benchmark.core.records import Record

FILE = "replays.json"  # in results/<season>/
CONFIDENCE = 0.95


class Agreement(StrEnum):
    """How far the numbers of a replay are from the committed ones."""

    IDENTICAL = "identical"  # every metric and every rank
    WITHIN = "within the spread of seeds"
    OUTSIDE = "outside the spread of seeds"
    UNKNOWN = "different; the spread of seeds is not known"
    FAILED = "could not be played"
    NEW = "no committed record"


@dataclass(frozen=True, kw_only=True)
class Played:
    """A record with its ranks."""

    record: Record
    ranks: pd.DataFrame


class Replay(BaseModel):
    """A season played again on some machine: results/<season>/replays.json holds a list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machine: str
    fingerprint: str
    cells: int
    agreements: dict[str, int]  # Agreement -> cells


def agreement(before: Played | None, after: Played | None, spread: float | None) -> Agreement:
    """`spread`: how far two trainings of a preset lie apart at most, in rsum; None: not known."""
    if before is None:
        return Agreement.NEW
    if after is None or after.record.status != before.record.status:
        return Agreement.FAILED
    old, new = before.record.metrics, after.record.metrics
    if old == new and before.ranks.equals(after.ranks):
        return Agreement.IDENTICAL
    if spread is None:
        return Agreement.UNKNOWN
    difference = abs(new["rsum"] - old["rsum"])
    return Agreement.WITHIN if difference <= spread else Agreement.OUTSIDE


def spreads(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    """By dataset and task: how far the rsum of two trainings of a preset, with different seeds, lie
    apart in 95 of 100 cases. From the variance over seeds, pooled over the presets that have two
    or more; boards without one are left out."""
    rsums: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for record in records:
        if "rsum" in record.metrics:
            rsums[record.dataset, record.task, record.preset].append(record.metrics["rsum"])
    sums: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for (dataset, task, _), values in rsums.items():
        if len(values) > 1:
            sums[dataset, task].append((len(values) - 1, variance(values)))
    return {board: _spread(parts) for board, parts in sums.items()}


def _spread(parts: list[tuple[int, float]]) -> float:
    """Of degrees of freedom and variances."""
    freedom = sum(count for count, _ in parts)
    pooled = sum(count * value for count, value in parts) / freedom
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * sqrt(2 * pooled)


def counted(agreements: Mapping[str, Agreement]) -> dict[str, int]:
    """How many cells agree how far, best first; what does not occur is left out."""
    counts = Counter(agreements.values())
    return {str(kind): counts[kind] for kind in Agreement if counts[kind]}


def read_replays(season: str) -> list[Replay]:
    """The replays of a season that were noted; none without a file."""
    path = _path(season)
    with corrected_by(f"python -m benchmark verify {season}, without the file"):
        rows = read_object(path).get("replays") if path.exists() else []
        if not isinstance(rows, list):
            raise UserError(f"{path}: replays", "a list", type(rows).__name__)
        return [checked(Replay, row, str(path)) for row in rows]


def note_replay(season: str, replay: Replay) -> None:
    """Add a replay to those of a season; it takes the place of an earlier one on such a machine."""
    others = [
        other
        for other in read_replays(season)
        if (other.machine, other.fingerprint) != (replay.machine, replay.fingerprint)
    ]
    rows = [row.model_dump() for row in (*others, replay)]
    write_json(_path(season), {"replays": rows})


def _path(season: str) -> Path:
    return Path("results") / season / FILE

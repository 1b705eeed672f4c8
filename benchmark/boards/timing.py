"""In which settings the times of a row were measured. Times of different settings
cannot be compared."""

from dataclasses import dataclass

from benchmark.boards.boards import Board, Outcome, Row
from benchmark.core.records import Provenance


@dataclass(frozen=True, kw_only=True)
class TimeSetting:
    """Where and beside what something was timed."""

    machine: str
    device: str
    threads: int | None  # None: on a GPU
    fingerprint: str  # how the processor computes; "": on a GPU
    stages_at_once: int
    torch: str

    def __str__(self) -> str:
        device = self.device
        if self.threads is not None:
            device = f"threads: {self.threads}, fingerprint {self.fingerprint}"
        beside = ""
        if self.stages_at_once > 1:
            beside = f", {self.stages_at_once} stages at once"
        return f"{self.machine}, {device}{beside}, torch {self.torch}"


def time_settings(row: Row) -> list[TimeSetting]:
    """Of all trainings and scorings; several where seeds were run in different
    ones."""
    settings = set()
    for outcome in row.played:
        for costs in (*outcome.trainings, outcome.scoring):
            settings.add(_setting(outcome, costs))
    return sorted(settings, key=str)


def settings_of(board: Board) -> list[TimeSetting]:
    """Those in which times of its rows were measured; external rows have none."""
    settings = set()
    for row in board.rows:
        if not row.is_external:
            settings |= set(time_settings(row))
    return sorted(settings, key=str)


def _setting(outcome: Outcome, costs: Provenance) -> TimeSetting:
    is_on_cpu = costs.device == "cpu"
    fingerprint = outcome.record.numerics.get("fingerprint", "unknown")
    return TimeSetting(
        machine=costs.machine,
        device=costs.device,
        threads=costs.threads if is_on_cpu else None,
        fingerprint=fingerprint if is_on_cpu else "",
        stages_at_once=costs.jobs or 1,
        torch=costs.packages.get("torch", "unknown"),
    )

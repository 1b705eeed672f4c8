"""What the times of a preset hang on: times of different settings cannot be compared."""

from benchmark.analysis.boards import Standing
from benchmark.core.provenance import Provenance


def time_settings(standing: Standing) -> list[str]:
    """Machine, how its processor computes, device, threads, workers and versions, of all trainings
    and scorings; several where seeds were played on different ones."""
    texts = {
        _of(facts, outcome.record.numerics.get("fingerprint", "unknown"))
        for outcome in standing.played
        for facts in (*outcome.trainings, outcome.scoring)
    }
    return sorted(texts)


def _of(facts: Provenance, fingerprint: str) -> str:
    on_cpu = f"threads: {facts.threads}, fingerprint {fingerprint}"
    device = on_cpu if facts.device == "cpu" else facts.device
    workers = f", workers: {facts.workers}" if facts.workers > 1 else ""
    return f"{facts.machine}, {device}{workers}, torch {facts.packages.get('torch', 'unknown')}"

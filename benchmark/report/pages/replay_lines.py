"""Whether the numbers of a season were got again, and how the machine computed that made them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmark.analysis.boards import Board
from benchmark.analysis.relocks import Relock, read_relocks
from benchmark.analysis.replays import read_replays
from benchmark.report.markdown import escaped


def replay_lines(season: str, boards: Sequence[Board]) -> list[str]:
    """One sentence per way in which the records were computed, per replay, and per change of code
    that stages followed without being played."""
    ways = Counter(
        _way(outcome.record.numerics)
        for board in boards
        for standing in board.standings
        for outcome in standing.outcomes
    )
    lines = [f"{count} of {ways.total()} records: {way}" for way, count in sorted(ways.items())]
    for replay in read_replays(season):
        counts = ", ".join(f"{count} {kind}" for kind, count in replay.agreements.items())
        where = f"Replayed on {replay.machine}, fingerprint {replay.fingerprint}"
        lines.append(f"{where}: of {replay.cells} cells {counts}")
    lines += [_relocked(relock) for relock in read_relocks(season)]
    return [escaped(line) for line in lines]


def _relocked(relock: Relock) -> str:
    cells = [
        f"{replay.cells} cell{'s' * (replay.cells > 1)} of the season {replay.season} (fingerprint "
        f"{replay.fingerprint})"
        for replay in relock.replays
    ]
    files = sorted({Path(change.file).stem for change in relock.code})
    return (
        f"Stages that were not played anew when code changed: {relock.stages}. With the later code "
        f"{' and '.join(cells)} left the same bytes. Changed: {', '.join(files)}"
    )


def _way(numerics: dict) -> str:
    if not numerics:
        return "made before numerics were pinned: a replay gives other numbers"
    threads = f"{numerics['threads']} thread{'s' * (numerics['threads'] > 1)}"
    return f"{numerics['mode']} numerics, {threads}, fingerprint {numerics['fingerprint']}"

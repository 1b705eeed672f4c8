"""Whether the numbers of a season were got again, and how the machine computed that made them."""

from collections import Counter
from collections.abc import Sequence

from benchmark.analysis.boards import Board
from benchmark.analysis.relocks import Change, Relock, read_relocks
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
    shown = [
        f"{replay.cells} cell{'s' * (replay.cells > 1)} of the season {replay.season} (fingerprint "
        f"{replay.fingerprint}; {_files(replay.code)})"
        for replay in relock.shown
    ]
    return (
        f"Stages that were not played anew when code changed: {relock.stages}. With the later code "
        f"the same bytes were left by {' and by '.join(shown)}"
    )


def _files(code: Sequence[Change]) -> str:
    """By how they computed."""
    files: dict[str, set[str]] = {}
    for change in code:
        name = change.file.removeprefix("data/code/").removesuffix(".txt")
        files.setdefault(change.numerics, set()).add(name)
    return "; ".join(f"{how}: {', '.join(sorted(names))}" for how, names in sorted(files.items()))


def _way(numerics: dict) -> str:
    if not numerics:
        return "made before numerics were pinned: a replay gives other numbers"
    threads = f"{numerics['threads']} thread{'s' * (numerics['threads'] > 1)}"
    return f"{numerics['mode']} numerics, {threads}, fingerprint {numerics['fingerprint']}"

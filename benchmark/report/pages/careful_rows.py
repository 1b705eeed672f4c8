"""The rows of a board to read with care, and why, from the validity strip. Knows no torch."""

from collections import Counter

from benchmark.analysis import validity
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.departures import departures
from benchmark.report.markdown import bold, escaped


def careful_rows(board: Board) -> list[str]:
    """Markdown: what all rows lack, then each row with what it lacks beside, those that lack most
    first, and last the rows that lack nothing else. Empty where no row lacks anything."""
    lacking = {standing.row.title: _lacks(board, standing) for standing in board.ranked}
    counts = Counter(lack for lacks in lacking.values() for lack in lacks)
    if not counts:
        return []
    common = [lack for lack, count in counts.items() if count == len(lacking) > 1]
    own = {
        title: [text for lack, text in lacks.items() if lack not in common]
        for title, lacks in lacking.items()
    }
    task = board.ranked[0].task
    lines = [f"All {len(lacking)} rows of {task}: {escaped('; '.join(common))}."] * bool(common)
    worst = sorted((title for title in own if own[title]), key=lambda title: -len(own[title]))
    lines += [f"{bold(escaped(title))}: {escaped('; '.join(own[title]))}." for title in worst]
    free = ", ".join(title for title, texts in own.items() if not texts)
    beside = " beside what all rows lack" * bool(common)
    return lines + [f"Nothing at {task}{beside}: {escaped(free)}."] * bool(free)


def _lacks(board: Board, standing: Standing) -> dict[str, str]:
    """What the marks of a row say -> the same with its numbers."""
    found = departures(board, standing)
    texts = {}
    for mark in validity.MARKS:
        said = [found[kind] for kind in mark.departures if kind in found]
        if said:
            texts[mark.lack] = f"{mark.lack} ({'; '.join(said)})"
    return texts

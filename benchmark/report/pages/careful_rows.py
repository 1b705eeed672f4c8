"""The rows of a board to read with care, and why, from the validity strip. Knows no torch."""

from collections import Counter

from benchmark.analysis import twin_queries, validity
from benchmark.analysis.boards import Board
from benchmark.report.markdown import bold, escaped


def careful_rows(board: Board) -> list[str]:
    """Markdown: what all rows lack, then the rows by what else they lack, the most first, and last
    those that lack nothing else. Empty where no row lacks anything."""
    lacking = {
        standing.row.title: validity.lacks(validity.marks(board, standing))
        for standing in board.ranked
    }
    counts = Counter(lack for lacks in lacking.values() for lack in lacks)
    if not counts:
        return []
    common = [lack for lack, count in counts.items() if count == len(lacking) > 1]
    by_lacks: dict[tuple[str, ...], list[str]] = {}
    for title, lacks in lacking.items():
        own = tuple(lack for lack in lacks if lack not in common)
        by_lacks.setdefault(own, []).append(title)
    task = board.ranked[0].task
    lines = [f"All {len(lacking)} rows of {task}: {escaped('; '.join(common))}."] * bool(common)
    for own, titles in sorted(by_lacks.items(), key=lambda item: -len(item[0])):
        what = "; ".join(own) or f"nothing{' else' * bool(common)} to note"
        lines.append(f"{bold(escaped(what))}: {escaped('; '.join(titles))}.")
    return lines


def twins_line(board: Board) -> str:
    """How many test pictures have a twin in another split, and what rsum is without the queries of
    those that the card names; empty where none is named."""
    named = len(twin_queries.named_twins(board.card))
    pairs = [(s, twin_queries.without_twins(board, s, "rsum")) for s in board.ranked if named]
    changes = [left - standing.mean("rsum") for standing, left in pairs if left is not None]
    if not changes:
        return ""
    images, twins = board.card["counts"]["test"]["images"], twin_queries.twins_in_all(board.card)
    return (
        f"{twins} of {images:,} test pictures have a twin in training or validation; without the "
        f"queries of {_which(named, twins)}, rsum changes by {min(changes):+.1f} to "
        f"{max(changes):+.1f}."
    )


def _which(named: int, twins: int) -> str:
    """The twins that are known by name: the card of a dataset lists no more than so many."""
    return f"these {named}" if named == twins else f"{named} of these"

"""What the best row of a board is the best of.

The best of many rows lies above what it would reach on other images, the more so the
more rows there are. Rows of validation, and rows without a correction of scores, are
chosen from fewer.
"""

from dataclasses import dataclass
from statistics import fmean

from benchmark.boards.boards import RANKED_BY, Board, Row


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The rows of a task that the best one was chosen from."""

    rows: int
    corrected: int  # rows of corrected scores
    bases: int  # rows that have such a row beside them
    tried: int  # rows whose own settings were tried on validation
    is_tried: bool  # whether the best row, or what it is made of, is one of these
    best: Row
    uncorrected: Row | None  # the best without a correction
    validated: int  # rows with epochs that were validated
    on_validation: Row | None  # the best of these there, by its mean over the seeds


def choice_of(board: Board) -> Choice | None:
    """Of a board of one task, by the metric that ranks; None without a result."""
    ranked = board.ranked
    if not ranked:
        return None
    corrected = [row for row in ranked if is_corrected(row)]
    plain = [row for row in ranked if row not in corrected]
    bases = {preset for row in corrected for preset in _members(row)}
    validated = [row for row in ranked if row.validation]
    return Choice(
        rows=len(ranked),
        corrected=len(corrected),
        bases=len(bases),
        tried=sum(row.preset in board.tried for row in ranked),
        is_tried=any(name in board.tried for name in _members(ranked[0])),
        best=ranked[0],
        uncorrected=plain[0] if plain else None,
        validated=len(validated),
        on_validation=max(validated, key=validation_of, default=None),
    )


def _members(row: Row) -> list[str]:
    """The presets whose scores it is made of, itself where it has its own."""
    fuse = row.declared.fuse
    return [member for member, _ in fuse.members] if fuse else [row.preset]


def is_corrected(row: Row) -> bool:
    """Whether its scores are corrected for hubs."""
    return "correction" in row.played[0].record.metrics


def validation_of(row: Row) -> float:
    """The best validation rsum, mean over the seeds that have one."""
    return fmean(row.validation.values())


def level_of(row: Row) -> float:
    """The metric that ranks."""
    return row.mean(RANKED_BY[row.task])

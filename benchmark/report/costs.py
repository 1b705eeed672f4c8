"""What a preset costs: seconds of training and of a query. Knows no torch."""

from statistics import median

from benchmark.boards.boards import Board, Row
from benchmark.boards.flags import time_settings


def has_costs(row: Row) -> bool:
    """Whether times were measured here: not of external scores."""
    return not row.is_external


def by_setting(board: Board) -> dict[str, list[Row]]:
    """The ranked rows of a board that have costs, by the settings that their times hang on."""
    settings: dict[str, list[Row]] = {}
    for row in filter(has_costs, board.ranked):
        settings.setdefault("; ".join(time_settings(row)), []).append(row)
    return settings


def training_seconds(board: Board, row: Row) -> float:
    """Median over the seeds, with the training that it goes on from; of a fusion, of all trainings
    of its members together."""
    own = median(outcome.training_seconds for outcome in row.played)
    start = board.row(row.declared.start) if row.declared.start else None
    return own + (training_seconds(board, start) if start and start.played else 0.0)


def query_seconds(row: Row) -> float:
    """Time to encode a query once and to score it with every item of the gallery.

    The query is an image among all captions or, on datasets without image queries, a caption among
    all images. Median over the seeds.
    """
    record = row.played[0].record
    is_image = "i2t_r1" in record.metrics
    encoding = "per_image" if is_image else "per_caption"
    items = record.captions if is_image else record.images
    return median(
        outcome.scoring.seconds[encoding] + items * outcome.scoring.seconds["per_pair"]
        for outcome in row.played
    )

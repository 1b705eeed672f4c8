"""What a preset costs: seconds of training and of a query."""

from statistics import median

from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.time_settings import time_settings


def has_costs(standing: Standing) -> bool:
    """Whether times were measured here: not of what was brought along."""
    return not standing.is_brought


def by_setting(board: Board) -> dict[str, list[Standing]]:
    """The ranked presets of a board that have costs, by the settings that their times hang on."""
    settings: dict[str, list[Standing]] = {}
    for standing in board.ranked:
        if has_costs(standing):
            settings.setdefault("; ".join(time_settings(standing)), []).append(standing)
    return settings


def training_seconds(board: Board, standing: Standing) -> float:
    """Median over the seeds, with the training that it goes on from; of a fusion, of all trainings
    of its members together."""
    own = median(outcome.training_seconds for outcome in standing.played)
    start = board.standing(standing.row.start) if standing.row.start else None
    return own + (training_seconds(board, start) if start and start.played else 0.0)


def query_seconds(standing: Standing) -> float:
    """Time to encode a query once and to score it with every item of the gallery.

    The query is an image among all captions or, on datasets without image queries, a caption among
    all images. Median over the seeds.
    """
    record = standing.played[0].record
    is_image = "i2t_r1" in record.metrics
    encoding = "per_image" if is_image else "per_caption"
    items = record.captions if is_image else record.images
    return median(
        outcome.scoring.seconds[encoding] + items * outcome.scoring.seconds["per_pair"]
        for outcome in standing.played
    )

"""What a preset costs: seconds of training and of a query."""

from statistics import fmean

from benchmark.analysis.boards import Standing
from benchmark.season.parameters import BROUGHT


def has_costs(standing: Standing) -> bool:
    """Whether times were measured here: not of what was brought along."""
    return standing.played[0].record.family != BROUGHT


def training_seconds(standing: Standing) -> float:
    """Mean over the seeds; of a fusion, of all trainings of its members together."""
    return fmean(outcome.training_seconds for outcome in standing.played)


def query_seconds(standing: Standing) -> float:
    """Time to encode a query once and to score it with every item of the gallery.

    The query is an image among all captions or, on datasets without image queries, a caption among
    all images. Mean over the seeds.
    """
    record = standing.played[0].record
    is_image = "i2t_r1" in record.metrics
    encoding = "per_image" if is_image else "per_caption"
    items = record.captions if is_image else record.images
    return fmean(
        outcome.scoring.seconds[encoding] + items * outcome.scoring.seconds["per_pair"]
        for outcome in standing.played
    )

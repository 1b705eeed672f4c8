"""Made-up cells with ranks, for tests of comparisons, and naive loops over their
queries."""

import builders
import numpy as np
from builders import standing

from benchmark.boards.boards import Outcome, Row
from benchmark.stats import significance

CUTOFFS = (1, 5, 10)
EACH = [1, 3, 2, 5, 1, 2, 4, 2, 3, 2] * 4  # captions of each image
IMAGES, CAPTIONS = len(EACH), sum(EACH)
OWNER = np.repeat(np.arange(IMAGES), EACH)
WITH_SIBLING = np.flatnonzero(np.array(EACH)[OWNER] > 1)


def prepare() -> None:
    """A prepared dataset whose test split comes after two training images."""
    builders.prepare("made", OWNER, trained=2)


def ranks_of(rng: np.random.Generator, quality: float) -> dict[str, np.ndarray]:
    # an image that is hard is so for all its queries
    hard = rng.exponential(4, IMAGES) / quality
    owners = {"i2t": np.arange(IMAGES), "t2i": OWNER, "s2s": OWNER[WITH_SIBLING]}
    return {way: rng.poisson(hard[owner]) for way, owner in owners.items()}


def any_ranks() -> dict[str, np.ndarray]:
    return ranks_of(np.random.default_rng(0), 1.0)


def outcome(
    preset: str, seed: int, ranks: dict[str, np.ndarray], **changes: object
) -> Outcome:
    """A cell with these ranks; metrics and seconds may be changed, or its status."""
    return builders.outcome(preset, seed, ranks=ranks, **changes)


def played(preset: str, quality: float, seeds: tuple[int, ...] = (0, 1, 2)) -> Row:
    # seeds share what is hard, as presets do
    ranks = {seed: ranks_of(np.random.default_rng(seed), quality) for seed in seeds}
    return standing(
        preset, [outcome(preset, seed, drawn) for seed, drawn in ranks.items()]
    )


def varied(preset: str, qualities: list[float]) -> Row:
    cells = []
    # one generator: the same images
    for seed, quality in enumerate(qualities):
        ranks = ranks_of(np.random.default_rng(0), quality)
        cells.append(outcome(preset, seed, {way: r + seed for way, r in ranks.items()}))
    return standing(preset, cells)


def timed(preset: str, seconds: list[float], name: str = "per_pair") -> Row:
    ranks = any_ranks()
    return standing(
        preset,
        [
            outcome(preset, seed, ranks, seconds={name: s})
            for seed, s in enumerate(seconds)
        ],
    )


def queries_of(cell: Outcome, metric: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per recall: images, and values in percent."""
    images = {"i2t": np.arange(IMAGES), "t2i": OWNER, "s2s": OWNER[WITH_SIBLING]}
    recalls = [(way, k) for way in ("i2t", "t2i") for k in CUTOFFS]
    if metric != "rsum":
        recalls = [metric.split("_r")]
    return [(images[way], 100.0 * (cell.ranks(way) < int(k))) for way, k in recalls]


def noise_of_images(
    preset: Row, metric: str, seeds: tuple[int, ...] | None = None
) -> np.ndarray:
    """What each image does to the mean of the trainings, by a loop."""
    cells = [
        cell for cell in preset.played if seeds is None or cell.record.seed in seeds
    ]
    return np.mean([of_training(cell, metric) for cell in cells], axis=0)


def of_training(cell: Outcome, metric: str) -> np.ndarray:
    """A sum over recalls of (hits - queries x recall) / all queries, (IMAGES,)."""
    left = np.zeros(IMAGES)
    for owner, hits in queries_of(cell, metric):
        for image, value in zip(owner, hits, strict=True):
            left[image] += (value - hits.mean()) / len(hits)
    asked = len(np.unique(owner))
    return left * np.sqrt(asked / (asked - 1))


def interaction_of(preset: Row, metric: str) -> float:
    mean = noise_of_images(preset, metric)
    squares = [
        ((of_training(cell, metric) - mean) ** 2).sum() for cell in preset.played
    ]
    return sum(squares) / (len(squares) - 1)


def expected_interval(
    owner: np.ndarray, values: np.ndarray, span: float
) -> tuple[float, float]:
    """Wilson's of a mean over queries, with the variance over their owners."""
    owners = np.unique(owner)
    left = [(values[owner == o] - values.mean()).sum() / len(values) for o in owners]
    square = sum(x * x for x in left) * len(owners) / (len(owners) - 1)
    return significance.score_interval(values.mean(), square, span, len(owners))

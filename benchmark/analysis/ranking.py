"""Which presets of a board can be told apart by the metric that ranks them, and how probable it is
that each is the best.

Knows no torch.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np

from benchmark.analysis import comparisons, significance
from benchmark.analysis.boards import RANKED_BY, Board, Standing
from benchmark.analysis.significance import SeedPart


@lru_cache(maxsize=64)
def rank_letters(board: Board) -> list[str]:
    """Compact letters of each of `board.ranked`, of one task: presets that share none differ.

    All pairs are compared for other images and other trainings, with Holm's adjustment over all of
    them. Two differ only in the order in which they stand; not where nothing is known of other
    trainings, and not where the test queries are too few for any conclusion.
    """
    ranked = board.ranked
    if not ranked or board.is_small(ranked[0].task):
        return ["a"] * len(ranked)
    pairs = combinations(ranked, 2)
    return letters_of(len(ranked), [_p(board, first, second) for first, second in pairs])


def is_compared(board: Board) -> bool:
    """Whether any two of `board.ranked`, of one task, could be told apart: the test queries are
    enough, and something is known of other trainings."""
    ranked = board.ranked
    if len(ranked) < 2 or board.is_small(ranked[0].task):
        return False
    parts = (comparisons.seed_part(board, s, RANKED_BY[s.task]) for s in ranked)
    return sum(part is not None for part in parts) > 1


def letters_of(size: int, p_values: Sequence[float]) -> list[str]:
    """Of presets that are sorted best first, given the p of every pair in the order of
    `combinations`."""
    apart_PP = np.zeros((size, size), dtype=bool)
    pairs = combinations(range(size), 2)
    for pair, p in zip(pairs, significance.holm(p_values), strict=True):
        apart_PP[pair] = apart_PP[pair[::-1]] = p <= significance.ALPHA
    return significance.letters(apart_PP)


@lru_cache(maxsize=64)
def chances_to_be_best(board: Board) -> list[float] | None:
    """The probability that each of `board.ranked`, of one task, has the highest metric on other
    images and with other trainings; None where that is not known of one of them."""
    ranked = board.ranked
    parts = {s.preset: comparisons.seed_part(board, s, RANKED_BY[s.task]) for s in ranked}
    samples = [comparisons.sample_of(board, s, RANKED_BY[s.task]) for s in ranked]
    if not ranked or None in parts.values() or any(sample.noise is None for sample in samples):
        return None
    effects_PR, freedom_R = _effects(board, ranked, parts)
    means_P = np.array([sample.mean for sample in samples])
    noise_PG = np.stack([sample.mean_noise for sample in samples])
    return significance.chances_to_be_best(means_P, noise_PG, effects_PR, freedom_R).tolist()


def _p(board: Board, first: Standing, second: Standing) -> float:
    comparison = comparisons.compare(board, first, second, RANKED_BY[first.task])
    if comparison is None or comparison.is_of_these_trainings or comparison.estimate is None:
        return 1.0
    return comparison.estimate.p() if comparison.difference > 0 else 1.0


def _effects(
    board: Board, ranked: list[Standing], parts: dict[str, SeedPart]
) -> tuple[np.ndarray, np.ndarray]:
    """What each training that varies alone does to each preset, (P, R), as standard deviations, and
    their degrees of freedom, (R,). What a fusion varies by comes from its members alike."""
    trainings = {s.preset: comparisons.trainings_of(board, s) for s in ranked}
    columns = sorted({training for of_preset in trainings.values() for training in of_preset})
    effects_PR, freedom_R = np.zeros((len(ranked), len(columns))), np.ones(len(columns))
    for row, standing in enumerate(ranked):
        part, own = parts[standing.preset], trainings[standing.preset]
        here = [columns.index(training) for training in own]
        effects_PR[row, here] = np.sqrt(part.weight() * part.main / len(own))
        freedom_R[here] = part.freedom
    return effects_PR, freedom_R

"""How sure a mean over queries is, and whether two presets differ: arrays in, numbers out.

Queries of one image are alike, so images are resampled and exchanged, never single queries. Array
names end in their axes: G = images, P = comparisons, T = resamples, S = seeds. Knows no torch.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy import stats

RESAMPLES = 2000
PERMUTATIONS = 10_000  # the smallest p, 1 / 10,001, survives Holm over a few hundred comparisons
LEVEL = 0.95
ALPHA = 0.05
SEED = 0
CHUNK = 500  # permutations held in memory at once
ROUNDING = 1e-10  # of the largest possible statistic: closer than this is a tie


@lru_cache(maxsize=2)
def weights(images: int, resamples: int = RESAMPLES) -> np.ndarray:
    """How often each image is drawn in each resample, (T, G); every caller gets the same array."""
    generator = np.random.default_rng(SEED)
    even = np.full(images, 1 / images)
    drawn_TG = generator.multinomial(images, even, size=resamples).astype(np.float64)
    drawn_TG.flags.writeable = False  # it is shared
    return drawn_TG


def replicates(sums_G: np.ndarray, counts_G: np.ndarray, resamples: int = RESAMPLES) -> np.ndarray:
    """Mean over queries in every resample of the images, (T,).

    `sums_G` adds up the values of each image's queries, `counts_G` counts them. An image without a
    query is left out. All calls for the same images share their resamples, so the difference of
    two results is paired.
    """
    has_query_G = counts_G > 0
    drawn_TG = weights(int(has_query_G.sum()), resamples)
    return drawn_TG @ sums_G[has_query_G] / (drawn_TG @ counts_G[has_query_G])


def percentiles(replicates_T: np.ndarray) -> tuple[float, float]:
    """The percentile interval at LEVEL: its lower and its upper end."""
    low, high = np.quantile(replicates_T, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def difference_interval(
    differences_S: np.ndarray, replicates_T: np.ndarray | None
) -> tuple[float, float] | None:
    """Interval of the mean of the seeds' differences, for other images and other seeds.

    `replicates_T` are this mean over resampled images. Its variance is that of the replicates
    (None: zero) plus the seeds' variance of the mean, s^2 / S. Student's t has Welch and
    Satterthwaite's degrees of freedom: S - 1 where only seeds vary, more the larger the images'
    part is. A single seed says nothing about others: the interval is then for other images only,
    and None without replicates. A seed's luck with single images is in both parts, so the interval
    is rather too wide than too narrow.
    """
    seeds = len(differences_S)
    if seeds == 1 and replicates_T is None:
        return None
    of_images = 0.0 if replicates_T is None else np.var(replicates_T, ddof=1)
    of_seeds = np.var(differences_S, ddof=1) / seeds if seeds > 1 else 0.0
    variance = of_images + of_seeds
    freedom = (seeds - 1) * (variance / of_seeds) ** 2 if of_seeds else np.inf
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(variance)
    mean = np.mean(differences_S)
    return float(mean - half), float(mean + half)


def with_seeds(over_images: tuple[float, float], values: Sequence[float]) -> tuple[float, float]:
    """An interval of the seeds' mean for other images, widened so that it is for other seeds, too.

    `values` has the metric of every seed, two or more. From their mean each end lies as far as the
    hypotenuse of what it was away and of Student's t for the seeds (Zou and Donner's MOVER), so
    ends that are not symmetric stay so. A seed's luck with single images is in both: the interval
    is rather too wide than too narrow.
    """
    n, mean = len(values), float(np.mean(values))
    reach = stats.t.ppf((1 + LEVEL) / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    low, high = over_images
    return mean - float(np.hypot(mean - low, reach)), mean + float(np.hypot(high - mean, reach))


def prediction_interval(values: Sequence[float]) -> tuple[float, float]:
    """Where another value from the same distribution lies at LEVEL: mean -+ t s sqrt(1 + 1/n).

    Needs n >= 2 values.
    """
    n, mean = len(values), float(np.mean(values))
    reach = stats.t.ppf((1 + LEVEL) / 2, n - 1) * np.std(values, ddof=1) * np.sqrt(1 + 1 / n)
    return mean - float(reach), mean + float(reach)


def permutation_p(differences_GP: np.ndarray, permutations: int = PERMUTATIONS) -> np.ndarray:
    """Two-sided p (P,) of paired differences, one column per comparison.

    `differences_GP` is what each image adds to the difference of two means. If the two presets
    were alike, exchanging their results on an image, with all its queries, would only change the
    sign of its entry: the statistic is the absolute sum. Ties count, and so does the observed
    arrangement (+1).
    """
    observed_P = differences_GP.sum(0)
    reached_P = np.abs(observed_P) - ROUNDING * np.abs(differences_GP).sum(0)
    generator = np.random.default_rng(SEED)
    extreme_P = np.zeros(differences_GP.shape[1], dtype=np.int64)
    for start in range(0, permutations, CHUNK):
        shape = (min(CHUNK, permutations - start), len(differences_GP))
        exchanged = generator.integers(0, 2, shape, dtype=bool).astype(np.float64)
        statistics = np.abs(observed_P - 2 * (exchanged @ differences_GP))
        extreme_P += (statistics >= reached_P).sum(0)
    return (extreme_P + 1) / (permutations + 1)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p: the k-th smallest of n is multiplied by n - k + 1, at most 1, and is never
    below the adjusted p of a smaller one."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p_values[order] * factors))
    return adjusted


def rank_groups(size: int, p_behind: Callable[[int], np.ndarray]) -> list[int]:
    """Group number, from 1, of each of `size` presets that are sorted best first.

    The best preset leads the first group, which reaches down to the last preset that is not
    distinguishable from it; the next preset leads the next group. `p_behind(leader)` is the p of
    the leader against each preset behind it, adjusted here as one family.
    """
    groups: list[int] = []
    while len(groups) < size:
        leader = len(groups)
        level = np.flatnonzero(holm(p_behind(leader)) > ALPHA)
        joined = int(level[-1]) + 1 if len(level) else 0
        groups += [groups[-1] + 1 if groups else 1] * (1 + joined)
    return groups

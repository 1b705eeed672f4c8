"""How sure a mean over queries is, and whether two presets differ; whether one quantity
falls or rises with another over rows: arrays in, numbers out.

Images are the units, never single queries. The spread of trainings on the same images
is partly the luck of a training with single images (the interaction); other images
would change that, too, so it is in the spread over images and is counted once:

    variance for other images and trainings   images + sum of w max(0, spread - interaction)
    variance for other trainings, these images         sum of w spread

with w = 1/S for the mean of S trainings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special  # stats takes a second to import

from benchmark.stats import ALPHA, LEVEL, TAILS

MOST_FREEDOM = 1e6  # as good as normal
ROUNDING = 1e-12  # of the largest number involved: closer than this is equal
Z = float(special.ndtri((1 + LEVEL) / 2))
FEWEST = 10  # pairs of a rank correlation
RESAMPLES, SEED = 2000, 0  # of its interval


class SeedPart(NamedTuple):
    """The spread of trainings that a mean or a difference inherits."""

    counts: tuple[int, ...]  # trainings of each mean that has this spread
    variance: float  # between trainings, on the same images
    interaction: float  # the part of it that other images would change
    freedom: float  # degrees of freedom of the variance
    is_own: bool  # further trainings of these presets add to the freedom

    @property
    def main(self) -> float:
        """The variance without the interaction."""
        return max(0.0, self.variance - self.interaction)

    def weight(self, more: int = 0) -> float:
        """w, with so many more trainings."""
        return sum(1 / (count + more) for count in self.counts)


class Doubt(NamedTuple):
    """Why a mean or a difference is uncertain."""

    # variance over images of the mean of these very trainings; 0: not known
    images: float
    interaction: float  # the part of it that other trainings would change
    image_count: int
    seeds: tuple[SeedPart, ...]

    @property
    def main(self) -> float:
        """The variance that trainings add to that over images."""
        return sum(part.weight() * part.main for part in self.seeds)

    @property
    def trainings(self) -> int:
        """How many it is known from."""
        return sum(sum(part.counts) for part in self.seeds)

    @property
    def share_of_trainings(self) -> float | None:
        """What other trainings would change of the variance; None without one."""
        whole = self.images + self.main
        return (self.interaction + self.main) / whole if whole else None

    @property
    def least_freedom(self) -> float:
        """Of the spreads of trainings, else of the images: a sum of variances is known
        at least as well as the worst of them."""
        of_seeds = [part.freedom for part in self.seeds if part.variance]
        if of_seeds:
            return float(min(of_seeds))
        return float(max(self.image_count - 1, 1))


@dataclass(frozen=True, kw_only=True)
class Known:
    """How sure a value is: p_above is that of a difference of at most a bound, times
    two, so that it is comparable with two-sided ones."""

    value: float

    def p(self, beyond: float = 0.0) -> float:
        """Two-sided p of a difference of at most `beyond`: of none, or of one on the
        margin. It is at most 1 - LEVEL if and only if the interval lies wholly
        beyond."""
        return replace(self, value=abs(self.value)).p_above(beyond)


@dataclass(frozen=True, kw_only=True)
class Estimate(Known):
    """A mean or a difference with its standard error, above zero."""

    error: float
    freedom: float

    @property
    def interval(self) -> tuple[float, float]:
        """Student's interval at LEVEL."""
        half = t_of(self.freedom) * self.error
        return self.value - half, self.value + half

    def p_above(self, bound: float) -> float:
        t = (self.value - bound) / self.error
        return min(1.0, 2 * float(special.stdtr(self.freedom, -t)))


@dataclass(frozen=True, kw_only=True)
class Constant(Known):
    """A difference that `units` independent images have alike, so that no variance
    tells its error. By the exact binomial test at most a share of the others differs at
    LEVEL, and none by more than `reach` (above zero) to either side. p of a difference
    of zero is that of the sign test where the value is the reach itself."""

    units: int
    reach: float

    @property
    def interval(self) -> tuple[float, float]:
        share = 1 - ((1 - LEVEL) / 2) ** (1 / self.units)
        low = self.value - share * (self.value + self.reach)
        return low, self.value + share * (self.reach - self.value)

    def p_above(self, bound: float) -> float:
        if self.value <= bound:
            return 1.0
        rest = (self.reach + bound) / (self.reach + self.value)
        return min(1.0, 2 * rest**self.units)


def t_of(freedom: float) -> float:
    """Student's t at LEVEL, two-sided."""
    return float(special.stdtrit(freedom, (1 + LEVEL) / 2))


def deviations(
    values_Q: np.ndarray, cluster_Q: np.ndarray, clusters: int
) -> np.ndarray:
    """What each of `clusters` images does to a mean over queries, (G,): the squares add
    up to the variance of the mean, what a bootstrap over images tends to: that of a
    ratio of sums over clusters, linearised, with n / (n - 1). `cluster_Q` is the image
    of each query, in [0, clusters); one without a query does nothing."""
    sums_G = np.bincount(cluster_Q, values_Q, minlength=clusters)
    counts_G = np.bincount(cluster_Q, minlength=clusters)
    has_query_G = counts_G > 0
    images, total = int(has_query_G.sum()), counts_G.sum()
    left_G = (sums_G - sums_G.sum() / total * counts_G) / total
    return np.where(has_query_G, left_G, 0.0) * np.sqrt(images / max(images - 1, 1))


def on_test_set(value: float, doubt: Doubt, scale: float = 0.0) -> Estimate | None:
    """For other trainings on the same images; None where these are not known, or do not
    vary. Where equal seeds make two presets alike, their interaction shows it. Never
    less sure than for other images. `scale`: see on_other_images."""
    if not doubt.seeds:
        return None
    variance = sum(part.weight() * part.variance for part in doubt.seeds)
    if doubt.images:
        variance = min(variance, doubt.interaction + doubt.main)
    of_seeds = _estimate(value, variance, doubt.least_freedom, scale)
    if of_seeds is None or not doubt.images:
        return of_seeds
    in_general = on_other_images(value, doubt, scale)
    return min(of_seeds, in_general, key=lambda e: e.interval[1])


def on_other_images(value: float, doubt: Doubt, scale: float = 0.0) -> Estimate | None:
    """For other images and other trainings; None where there is no spread, beyond the
    rounding of numbers as large as `scale`. Satterthwaite's freedom: a spread without
    the interaction is as uncertain as all of it."""
    variance = doubt.images + doubt.main
    doubts = [doubt.images**2 / max(doubt.image_count - 1, 1)]
    for part in doubt.seeds:
        doubts.append((part.weight() * part.variance) ** 2 / part.freedom)
    freedom = variance**2 / sum(doubts) if any(doubts) else np.inf
    return _estimate(value, variance, max(freedom, doubt.least_freedom), scale)


def _estimate(
    value: float, variance: float, freedom: float, scale: float
) -> Estimate | None:
    if variance <= (ROUNDING * max(scale, abs(value))) ** 2:
        return None
    return Estimate(value=value, error=float(np.sqrt(variance)), freedom=freedom)


def score_interval(
    value: float, variance: float, span: float, units: int
) -> tuple[float, float]:
    """Wilson's interval of a mean of queries in [0, span], for other images: n is the
    number of independent queries that would have this variance or, where it is zero, of
    images."""
    share = min(1.0, max(0.0, value / span))  # a sum of means may leave it by rounding
    n = share * (1 - share) * span**2 / variance if variance > 0 else 0
    n = n if n > 0 else units
    centre = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return span * float(max(0.0, centre - half)), span * float(min(1.0, centre + half))


def with_seeds(
    value: float, over_images: tuple[float, float], part: SeedPart
) -> tuple[float, float]:
    """An interval for other images, widened by Student's interval of trainings, without
    the interaction, which is in that of the images."""
    reach = t_of(part.freedom) * float(np.sqrt(part.weight() * part.main))
    return summed([value, 0.0], [over_images, (-reach, reach)])


def summed(
    values: Sequence[float], intervals: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Interval of a sum of independent estimates: each end lies as far from it as the
    root of the sum of squares of their reaches (Zou and Donner's MOVER)."""
    reaches = np.abs(np.subtract(intervals, np.reshape(values, (-1, 1))))
    below, above = np.hypot.reduce(reaches).tolist()
    return sum(values) - below, sum(values) + above


def holm_products(p_values: Sequence[float]) -> np.ndarray:
    """Holm's adjusted p of one family, in its order, not capped at 1: divided by its p,
    each gives the factor."""
    p_H = np.asarray(p_values, dtype=float)
    order_H = np.argsort(p_H)
    products_H = np.sort(p_H) * np.arange(len(p_H), 0, -1)
    products_H[order_H] = np.maximum.accumulate(products_H)
    return products_H


def apart(p_values: Sequence[float], size: int) -> np.ndarray:
    """Which of `size` things differ, (size, size), symmetric: `p_values` are those of
    every pair, in the order of itertools.combinations, to be adjusted by Holm."""
    apart_PP = np.zeros((size, size), dtype=bool)
    apart_PP[np.triu_indices(size, 1)] = holm_products(p_values) <= ALPHA
    return apart_PP | apart_PP.T


def rank_intervals(apart_RR: np.ndarray) -> list[tuple[int, int]]:
    """The best and the worst rank, from 1, that each of ranked things could have:
    `apart_RR` says which differ, and these keep their order. All intervals contain the
    true ranks at once, at LEVEL (Mogstad, Romano, Shaikh and Wilhelm, Review of
    Economic Studies 91, 2024)."""
    intervals = []
    for index, apart_R in enumerate(apart_RR):
        before, behind = apart_R[:index].sum(), apart_R[index:].sum()
        intervals.append((1 + int(before), len(apart_RR) - int(behind)))
    return intervals


# Rank correlation ---------------------------------------------------------------------


@dataclass(frozen=True)
class RankCorrelation:
    """From -1, one falls as the other rises, to 1."""

    count: int  # of pairs
    groups: int
    value: float
    low: float  # ends of the interval
    high: float


def rank_correlation(
    first: Sequence[float], second: Sequence[float], groups: Sequence[str]
) -> RankCorrelation | None:
    """Of pairs, with the interval of groups of pairs drawn again, since those of one
    group are alike. None for fewer than FEWEST pairs, a single group, and where nothing
    varies."""
    names = sorted(set(groups))
    is_constant = len(set(first)) == 1 or len(set(second)) == 1
    if len(first) < FEWEST or len(names) == 1 or is_constant:
        return None
    group_of_row = np.searchsorted(names, groups)
    rng = np.random.default_rng(SEED)
    drawn_RG = rng.integers(len(names), size=(RESAMPLES, len(names)))
    # how often each group was drawn
    counts_RG = (drawn_RG[:, :, None] == np.arange(len(names))).sum(1)
    values_R = spearman(first, second, counts_RG[:, group_of_row])
    low, high = np.quantile(values_R, TAILS).tolist()
    (value,) = spearman(first, second, np.ones((1, len(first)))).tolist()
    return RankCorrelation(len(first), len(names), value, low, high)


def spearman(
    first: Sequence[float], second: Sequence[float], counts_RN: np.ndarray
) -> np.ndarray:
    """(R,) Spearman's rank correlations of N pairs, of which each takes part so many
    times; 0 where one side does not vary."""
    x_RN = _centred_ranks(first, counts_RN)
    y_RN = _centred_ranks(second, counts_RN)
    products_R = (counts_RN * x_RN * y_RN).sum(1)
    squares_R = (counts_RN * x_RN**2).sum(1) * (counts_RN * y_RN**2).sum(1)
    varies_R = squares_R > 0
    values_R = np.zeros(len(counts_RN))
    values_R[varies_R] = products_R[varies_R] / np.sqrt(squares_R[varies_R])
    return values_R


def _centred_ranks(values: Sequence[float], counts_RN: np.ndarray) -> np.ndarray:
    """(R, N) ranks less their mean; equal values share the mean of their ranks."""
    values_N = np.asarray(values)
    below_NN = values_N < values_N[:, None]  # whether a column's value is less
    equal_NN = values_N == values_N[:, None]
    ranks_RN = counts_RN @ (below_NN + equal_NN / 2).T
    return ranks_RN - counts_RN.sum(1, keepdims=True) / 2

"""How far trainings with different seeds lie apart, from all presets of a dataset together.

Three trainings tell a variance badly (two degrees of freedom), the trainings of all presets tell
it well, if they vary alike. So presets with a training of their own are pooled, and as far as they
do not vary alike, each is shrunk toward it only in part: the variances of presets are
taken to be s0^2 d0 / chi^2(d0), and a preset with d degrees of freedom and variance s^2 has
(d0 s0^2 + d s^2) / (d0 + d) with d0 + d degrees of freedom (G. K. Smyth, Statistical Applications
in Genetics and Molecular Biology 3(1), 2004). d0 is infinite where the variances differ by no more
than chance makes them. Where it is not, a preset that varies more than that keeps its own variance:
the common one would call it steadier than it is (tests/test_seed_spread.py has how often).

A preset that varies far more than the others (Cochran's test, step by step) keeps its own variance;
so do fusions, which have no training of their own, and presets whose trainings are all the same,
such as CCA.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from benchmark.stats.significance import SeedPart

OWN = 3  # trainings from which a preset's own variance is used, where it is not of the pool
CARRIES = 6  # degrees of freedom of a pool that speaks for presets with a single training:
# three presets with three, so that it shows whether presets vary alike
TELLS = 8  # degrees of freedom of a pool that shows how unlike presets vary: four with three;
# of fewer, d0 is so unsure that prediction intervals cover 93% (tests/simulated_trainings.py)
OUTLIER = 0.01  # p below which a preset varies more than the others


@dataclass(frozen=True)
class Sample:
    """A metric of the runs of one thing, by seed, and what is known of its noise over images."""

    values: dict[int, float]
    noise: dict[int, np.ndarray] | None  # (G,) as significance.deviations; None: images not known
    units: int = 0  # images that have a query

    def of(self, seeds: Collection[int]) -> "Sample":
        """These seeds only."""
        noise = None if self.noise is None else {seed: self.noise[seed] for seed in seeds}
        return Sample({seed: self.values[seed] for seed in seeds}, noise, self.units)

    @cached_property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values())))

    @cached_property
    def mean_noise(self) -> np.ndarray | None:
        return None if self.noise is None else np.mean(list(self.noise.values()), axis=0)


class Variance(NamedTuple):
    """Between trainings, on the same images."""

    variance: float
    interaction: float  # the part that other images would change; 0: not known
    freedom: float


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The variances of a metric on a dataset."""

    pooled: Variance | None  # None: no preset has two trainings that differ
    own: dict[str, Variance]  # by preset: outliers, fusions, and what never varies
    pool: dict[str, Variance] = field(default_factory=dict)  # of each preset that is pooled
    outliers: frozenset[str] = frozenset()  # presets that vary far more than the pooled ones

    @cached_property
    def prior(self) -> Variance | None:
        """The variance that presets have in common; its freedom is d0, infinite where they vary
        alike, and where they are too few to tell. None without a pool."""
        if self.pooled is None:
            return None
        variance, freedom = common_variance(list(self.pool.values()))
        if np.isinf(freedom) or self.pooled.freedom < TELLS:
            return self.pooled._replace(freedom=np.inf)
        return Variance(variance, self.pooled.interaction, freedom)

    def part(self, preset: str, trainings: int) -> SeedPart | None:
        """What the mean of so many trainings inherits; None where their spread is not known."""
        if preset in self.own:
            return SeedPart((trainings,), *self.own[preset], is_own=True)
        if self.pooled is None or trainings == 1 and self.pooled.freedom < CARRIES:
            return None
        if np.isinf(self.prior.freedom):
            return SeedPart((trainings,), *self.pooled, is_own=False)
        if preset not in self.pool:
            return SeedPart((trainings,), *self._no_surer(self.prior), is_own=False)
        own, moderated = self.pool[preset], _pooled([self.prior, self.pool[preset]])
        wider = max(own, self._no_surer(moderated), key=lambda v: v.variance)
        return SeedPart((trainings,), *wider, is_own=True)

    def _no_surer(self, variance: Variance) -> Variance:
        """No variance is known better than by all trainings together."""
        return variance._replace(freedom=min(variance.freedom, self.pooled.freedom))


def spread(samples: Mapping[str, Sample], trained: Collection[str]) -> Spread:
    """`trained` are the presets with a training of their own."""
    own, pool = {}, {}
    for preset, sample in samples.items():
        if len(sample.values) < 2:
            continue
        variance, first = variance_of(sample), next(iter(sample.values))
        is_same = len(set(sample.values.values())) == 1
        if is_same and sample.noise is not None:  # on every image, too?
            noise = sample.noise
            is_same = all(np.array_equal(noise[first], other) for other in noise.values())
        if is_same:
            if sample.noise is not None:
                own[preset] = variance
        elif preset in trained:
            pool[preset] = variance
        elif len(sample.values) >= OWN:
            own[preset] = variance
    outliers = _outliers(pool)
    left = {preset: variance for preset, variance in pool.items() if preset not in outliers}
    return Spread(
        pooled=_pooled(left.values()), own=own | outliers, pool=left, outliers=frozenset(outliers)
    )


def variance_of(sample: Sample) -> Variance:
    """Of two trainings or more."""
    freedom = len(sample.values) - 1
    interaction = 0.0
    if sample.noise is not None:
        left_SG = np.stack(list(sample.noise.values())) - sample.mean_noise
        interaction = float((left_SG**2).sum() / freedom)
    return Variance(float(np.var(list(sample.values.values()), ddof=1)), interaction, freedom)


def differences(first: Sample, second: Sample) -> Sample:
    """Seed by seed, of two presets with the same seeds."""
    values = {seed: first.values[seed] - second.values[seed] for seed in first.values}
    if first.noise is None or second.noise is None:
        return Sample(values, None)
    return Sample(values, {seed: first.noise[seed] - second.noise[seed] for seed in values})


def _pooled(variances: Collection[Variance]) -> Variance | None:
    if not variances:
        return None
    freedom = sum(v.freedom for v in variances)
    return Variance(
        variance=sum(v.freedom * v.variance for v in variances) / freedom,
        interaction=sum(v.freedom * v.interaction for v in variances) / freedom,
        freedom=freedom,
    )


def common_variance(variances: Sequence[Variance]) -> tuple[float, float]:
    """s0^2 and d0 of Smyth (2004), Section 6.2: from the mean and the variance of the logarithms.

    d0 is infinite where these vary no more than those of equal variances would, and where fewer
    than two variances are above zero.
    """
    known = [v for v in variances if v.variance > 0]
    if len(known) < 2:
        return 0.0, np.inf
    half_P = np.array([v.freedom for v in known]) / 2
    logs_P = np.log([v.variance for v in known]) - special.digamma(half_P) + np.log(half_P)
    excess = float(np.var(logs_P, ddof=1) - special.polygamma(1, half_P).mean())
    if excess <= 0:
        return float(np.exp(logs_P.mean())), np.inf
    from scipy import optimize  # which takes a third of a second to import

    # The x above zero whose trigamma is the excess lies between 1 / excess and 1 / x + 1 / x^2.
    ends = 1 / excess, (1 + np.sqrt(1 + 4 * excess)) / (2 * excess)
    half = float(optimize.brentq(lambda x: special.polygamma(1, x) - excess, *ends))
    return float(np.exp(logs_P.mean() + special.digamma(half) - np.log(half))), 2 * half


def _outliers(pool: Mapping[str, Variance]) -> dict[str, Variance]:
    """Presets that vary more than the rest, the largest variance first."""
    rest, outliers = dict(pool), {}
    while len(rest) > 1:
        widest = max(rest, key=lambda preset: rest[preset].variance)
        own = rest.pop(widest)
        others = _pooled(rest.values())
        ratio = own.variance / others.variance if others.variance else np.inf
        if special.fdtrc(own.freedom, others.freedom, ratio) >= OUTLIER / (len(rest) + 1):
            break
        outliers[widest] = own
    return outliers

"""How far trainings with different seeds lie apart, from all presets of a dataset together.

Three trainings tell a variance badly (two degrees of freedom), the trainings of all presets tell
it well, if they vary alike. So presets with a training of their own are pooled, and as far as they
do not vary alike, each is drawn to the common variance only in part: the variances of presets are
taken to be s0^2 d0 / chi^2(d0), and a preset with d degrees of freedom and variance s^2 has
(d0 s0^2 + d s^2) / (d0 + d) with d0 + d degrees of freedom (G. K. Smyth, Statistical Applications
in Genetics and Molecular Biology 3(1), 2004). d0 is infinite where the variances differ by no more
than chance makes them. Where it is not, a preset that varies more than that keeps its own variance:
the common one would call it steadier than it is (tests/test_seed_spread.py has how often).

A preset that varies far more than the others (Cochran's test, step by step) keeps its own variance;
so do fusions, which have no training of their own, and presets whose trainings are all the same,
such as CCA. Knows no torch.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from benchmark.analysis.significance import Doubt, SeedPart

OWN = 3  # trainings from which a preset's own variance is used, where it is not of the pool
CARRIES = 6  # degrees of freedom of a pool that speaks for presets with a single training:
# three presets with three, so that it shows whether presets vary alike
TELLS = 8  # degrees of freedom of a pool that shows how unlike presets vary: four with three;
# of fewer, d0 is so unsure that prediction intervals cover 93% (tests/simulated_trainings.py)
OUTLIER = 0.01  # p below which a preset varies more than the others


@dataclass(frozen=True)
class Sample:
    """A metric of the trainings of a preset, by seed."""

    values: dict[int, float]
    noise: dict[int, np.ndarray] | None  # (G,) as significance.deviations; None: images not known

    def of(self, seeds: Collection[int]) -> "Sample":
        """These seeds only."""
        noise = None if self.noise is None else {seed: self.noise[seed] for seed in seeds}
        return Sample({seed: self.values[seed] for seed in seeds}, noise)

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
        variance = variance_of(sample)
        if is_constant(sample):
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


def own_spread(samples: Mapping[str, Sample]) -> Spread:
    """Each preset its own, and none for a single training: nothing is pooled."""
    several = {p: s for p, s in samples.items() if len(s.values) > 1}
    return Spread(pooled=None, own={p: variance_of(s) for p, s in several.items()})


def variance_of(sample: Sample) -> Variance:
    """Of two trainings or more."""
    freedom = len(sample.values) - 1
    interaction = 0.0
    if sample.noise is not None:
        left_SG = np.stack(list(sample.noise.values())) - sample.mean_noise
        interaction = float((left_SG**2).sum() / freedom)
    return Variance(float(np.var(list(sample.values.values()), ddof=1)), interaction, freedom)


def is_constant(sample: Sample) -> bool:
    """Whether all trainings gave the same, on every image as far as images are known."""
    is_same = len(set(sample.values.values())) == 1
    if not is_same or sample.noise is None:
        return is_same
    first, *others = sample.noise.values()
    return all(np.array_equal(first, other) for other in others)


def differences(first: Sample, second: Sample) -> Sample:
    """Seed by seed, of two presets with the same seeds."""
    values = {seed: first.values[seed] - second.values[seed] for seed in first.values}
    if first.noise is None or second.noise is None:
        return Sample(values, None)
    return Sample(values, {seed: first.noise[seed] - second.noise[seed] for seed in values})


def parts(
    spread: Spread, presets: Sequence[str], samples: Sequence[Sample | None], is_paired: bool
) -> list[SeedPart | None]:
    """What a mean, or the difference of two, inherits from the trainings; None for a spread that is
    not known. Paired presets have the same seeds, and the spread of their differences."""
    if is_paired:
        gaps = differences(*samples)
        return [SeedPart((len(gaps.values),), *variance_of(gaps), is_own=True)]
    return [spread.part(p, len(s.values)) for p, s in zip(presets, samples, strict=False)]


def doubt(
    first: Sample, second: Sample | None, parts: Sequence[SeedPart | None], image_count: int
) -> Doubt:
    """Why the mean of the first, or the difference of both, is uncertain. Without the trainings'
    part if one of `parts` is not known."""
    seeds = () if None in parts else _merged(parts)
    left = first.mean_noise
    if left is not None and second:
        left = None if second.mean_noise is None else left - second.mean_noise
    if left is None:  # then the interaction is nowhere else, and all of the spread counts
        whole = tuple(part._replace(interaction=0.0) for part in seeds)
        return Doubt(images=0.0, interaction=0.0, image_count=0, seeds=whole)
    images = float(left @ left)
    interaction = min(images, _interaction(first, second, parts))
    return Doubt(images=images, interaction=interaction, image_count=image_count, seeds=seeds)


def _interaction(first: Sample, second: Sample | None, parts: Sequence[SeedPart | None]) -> float:
    """The part of the variance over images that other trainings would change. Between presets with
    the same seeds it is measured on their difference, since equal seeds may make them alike."""
    if len(first.values) > 1 and (second is None or set(first.values) == set(second.values)):
        gaps = differences(first, second) if second else first
        return variance_of(gaps).interaction / len(gaps.values)
    return sum(part.weight() * part.interaction for part in parts if part)


def _merged(parts: Sequence[SeedPart]) -> tuple[SeedPart, ...]:
    """One part for all that share the pooled variance."""
    pooled = [part for part in parts if not part.is_own]
    counts = tuple(count for part in pooled for count in part.counts)
    own = tuple(part for part in parts if part.is_own)
    return own + tuple(part._replace(counts=counts) for part in pooled[:1])


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
    half = _trigamma_inverse(excess)
    return float(np.exp(logs_P.mean() + special.digamma(half) - np.log(half))), 2 * half


def _trigamma_inverse(value: float) -> float:
    """The x above zero whose trigamma is `value`: it lies between 1 / x and 1 / x + 1 / x^2."""
    low, high = 1 / value, (1 + np.sqrt(1 + 4 * value)) / (2 * value)
    return float(optimize.brentq(lambda x: special.polygamma(1, x) - value, low, high))


def alike_p(variances: Sequence[Variance]) -> float | None:
    """p of Bartlett's test that presets vary alike; None for fewer than two, or one that does not
    vary."""
    if len(variances) < 2 or not all(v.variance for v in variances):
        return None
    freedom_P = np.array([v.freedom for v in variances])
    logs_P = np.log([v.variance for v in variances])
    whole, others = freedom_P.sum(), len(variances) - 1
    statistic = whole * np.log(_pooled(variances).variance) - freedom_P @ logs_P
    correction = 1 + ((1 / freedom_P).sum() - 1 / whole) / (3 * others)
    return float(special.chdtrc(others, statistic / correction))


def _outliers(pool: Mapping[str, Variance]) -> dict[str, Variance]:
    """Presets that vary more than the rest, the largest variance first."""
    outliers: dict[str, Variance] = {}
    while True:
        rest = {preset: v for preset, v in pool.items() if preset not in outliers}
        if len(rest) < 2:
            return outliers
        widest = max(rest, key=lambda preset: rest[preset].variance)
        others = _pooled([v for preset, v in rest.items() if preset != widest])
        ratio = rest[widest].variance / others.variance if others.variance else np.inf
        p = special.fdtrc(rest[widest].freedom, others.freedom, ratio)
        if p >= OUTLIER / len(rest):
            return outliers
        outliers[widest] = rest[widest]

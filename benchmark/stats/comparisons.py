"""The variance between runs, and the difference of two samples with its uncertainty.

A sample is a metric of the runs (trainings, seeds) of one thing, with the part of each
cluster of queries, such as an image, in its error. Two things are compared in pairs of
runs if they share runs, as a fusion does with its members; equal seeds alone make no
pairs.

The variances of presets with trainings of their own are pooled, and each is shrunk
toward the common variance s0^2, the less the more they differ: a preset with d degrees
of freedom and variance s^2 has (d0 s0^2 + d s^2) / (d0 + d) with d0 + d (G. K. Smyth,
Statistical Applications in Genetics and Molecular Biology 3(1), 2004). A preset with a
larger variance than this keeps its own; so do one that varies far more than the others
(Cochran's test, step by step), fusions, which have no training of their own, and
presets whose trainings are all the same, such as CCA. docs/statistics.md says why.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

import numpy as np
from scipy import special

from benchmark.stats import significance
from benchmark.stats.significance import Constant, Doubt, Estimate, SeedPart

# fewest trainings of a preset outside the pool, or runs in common, from which a
# variance is estimated
FEWEST_RUNS = 3
# fewest degrees of freedom of a pool that is used for presets with a single training:
# those of three presets with three trainings each
FREEDOM_FOR_SINGLES = 6
# fewest degrees of freedom of a pool from which d0 is estimated: those of four presets
# with three trainings each. With fewer, d0 is so uncertain that prediction intervals
# cover 93% (tests/simulated_trainings.py).
FREEDOM_FOR_PRIOR = 8
OUTLIER = 0.01  # p below which a preset varies more than the others


@dataclass(frozen=True)
class Sample:
    """A metric of the runs of one thing, by seed, with its noise over images."""

    values: dict[int, float]
    # (G,) as significance.deviations; None: images not known
    noise: dict[int, np.ndarray] | None
    units: int = 0  # images that have a query

    def of(self, seeds: Collection[int]) -> "Sample":
        """These seeds only."""
        noise = None
        if self.noise is not None:
            noise = {seed: self.noise[seed] for seed in seeds}
        return Sample({seed: self.values[seed] for seed in seeds}, noise, self.units)

    @cached_property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values())))

    @cached_property
    def mean_noise(self) -> np.ndarray | None:
        if self.noise is None:
            return None
        return np.mean(list(self.noise.values()), axis=0)

    @property
    def is_constant(self) -> bool:
        """Whether all runs have the same value and noise."""
        noises = {each.tobytes() for each in (self.noise or {}).values()}
        return len({*self.values.values()}) == 1 and len(noises) < 2


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
    # of each preset that is pooled
    pool: dict[str, Variance] = field(default_factory=dict)
    # of results that were brought: shrunk toward the pool, and not in it
    guests: dict[str, Variance] = field(default_factory=dict)
    # presets that vary far more than the pooled ones
    outliers: frozenset[str] = frozenset()

    @cached_property
    def prior(self) -> Variance | None:
        """The common variance; its freedom is d0, infinite where presets vary alike or
        are too few to tell. None without a pool."""
        if self.pooled is None:
            return None
        variance, freedom = common_variance(list(self.pool.values()))
        if np.isinf(freedom) or self.pooled.freedom < FREEDOM_FOR_PRIOR:
            return self.pooled._replace(freedom=np.inf)
        return Variance(variance, self.pooled.interaction, freedom)

    def part(self, preset: str, trainings: int) -> SeedPart | None:
        """What so many trainings add to the error of their mean; None: not known."""
        if preset in self.own:
            return SeedPart((trainings,), *self.own[preset], is_own=True)
        if self.pooled is None:
            return None
        # one training alone rests on what the others tell of the spread
        if trainings == 1 and self.pooled.freedom < FREEDOM_FOR_SINGLES:
            return None
        if np.isinf(self.prior.freedom):
            return SeedPart((trainings,), *self.pooled, is_own=False)
        known = self.pool | self.guests
        if preset not in known:
            prior = self._capped_freedom(self.prior)
            return SeedPart((trainings,), *prior, is_own=False)
        own = known[preset]
        moderated = self._capped_freedom(_pooled([self.prior, own]))
        wider = own if own.variance >= moderated.variance else moderated
        return SeedPart((trainings,), *wider, is_own=True)

    def _capped_freedom(self, variance: Variance) -> Variance:
        """The variance with no more degrees of freedom than the pool has."""
        return variance._replace(freedom=min(variance.freedom, self.pooled.freedom))


def spread(
    samples: Mapping[str, Sample],
    trained: Collection[str],
    guests: Collection[str] = (),
) -> Spread:
    """`trained` are the presets with a training of their own; of these `guests` change
    nothing for others."""
    own, pool, brought = {}, {}, {}
    for preset, sample in samples.items():
        if len(sample.values) < 2:
            continue
        if sample.is_constant:
            if sample.noise is not None:
                own[preset] = variance_of(sample)
        elif preset in trained:
            group = brought if preset in guests else pool
            group[preset] = variance_of(sample)
        elif len(sample.values) >= FEWEST_RUNS:
            own[preset] = variance_of(sample)
    outliers = _outliers(pool)
    left = {preset: pool[preset] for preset in pool if preset not in outliers}
    pooled = _pooled(left.values())
    for preset, variance in brought.items():
        if pooled is None or _is_wider(variance, pooled, len(left) + 1):
            outliers[preset] = variance
    return Spread(
        pooled=pooled,
        own=own | outliers,
        pool=left,
        guests={name: brought[name] for name in brought if name not in outliers},
        outliers=frozenset(outliers),
    )


def sample_of_queries(
    means: Sequence[tuple[np.ndarray, Mapping[int, np.ndarray]]],
) -> Sample:
    """The sum of several means over queries. `means` has, for each, the clusters of its
    queries, (Q,) whole numbers from 0 in the same numbering for all, and their values
    by seed, (Q,) each, in the unit of the sample."""
    clusters = np.unique(np.concatenate([cluster_Q for cluster_Q, _ in means]))
    count = 1 + int(clusters.max())
    values, noise = {}, {}
    for seed in means[0][1]:
        values[seed] = float(sum(of_seed[seed].mean() for _, of_seed in means))
        terms = []
        for cluster_Q, of_seed in means:
            terms.append(significance.deviations(of_seed[seed], cluster_Q, count))
        noise[seed] = sum(terms)
    return Sample(values, noise, len(clusters))


def sample_of_folds(folds: Mapping[int, Sample]) -> Sample:
    """The mean of each fold, by its number, as one run. No image is in two folds, so
    each has terms of its own in the noise. A fold without runs is left out."""
    folds = {number: fold for number, fold in folds.items() if fold.values}
    values = {number: fold.mean for number, fold in folds.items()}
    if not folds or any(fold.noise is None for fold in folds.values()):
        return Sample(values, None)
    from scipy.linalg import block_diag  # takes a tenth of a second to import

    noises = block_diag(*(fold.mean_noise for fold in folds.values()))
    units = sum(fold.units for fold in folds.values())
    return Sample(values, dict(zip(folds, noises, strict=True)), units)


def variance_of(sample: Sample) -> Variance:
    """Of two trainings or more."""
    freedom, interaction = len(sample.values) - 1, 0.0
    if sample.noise is not None:
        left_SG = np.stack(list(sample.noise.values())) - sample.mean_noise
        interaction = float((left_SG**2).sum() / freedom)
    variance = float(np.var(list(sample.values.values()), ddof=1))
    return Variance(variance, interaction, freedom)


def differences(first: Sample, second: Sample) -> Sample:
    """Seed by seed, of two presets with the same seeds."""
    values = {seed: first.values[seed] - second.values[seed] for seed in first.values}
    if first.noise is None or second.noise is None:
        return Sample(values, None)
    noise = {seed: first.noise[seed] - second.noise[seed] for seed in values}
    return Sample(values, noise, first.units)


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
    """s0^2 and d0 of Smyth (2004), Section 6.2: from the mean and the variance of the
    logarithms. d0 is infinite where these vary by chance alone, and where fewer than
    two variances are above zero."""
    known = [v for v in variances if v.variance > 0]
    if len(known) < 2:
        return 0.0, np.inf
    half_P = np.array([v.freedom for v in known]) / 2
    logs_P = np.log([v.variance for v in known])
    logs_P = logs_P - special.digamma(half_P) + np.log(half_P)
    excess = float(np.var(logs_P, ddof=1) - special.polygamma(1, half_P).mean())
    if excess <= 0:
        return float(np.exp(logs_P.mean())), np.inf
    from scipy import optimize  # which takes a third of a second to import

    # The x above zero whose trigamma is the excess lies between 1 / excess and 1 / x +
    # 1 / x^2.
    ends = 1 / excess, (1 + np.sqrt(1 + 4 * excess)) / (2 * excess)
    half = float(optimize.brentq(lambda x: special.polygamma(1, x) - excess, *ends))
    return float(np.exp(logs_P.mean() + special.digamma(half) - np.log(half))), 2 * half


def _outliers(pool: Mapping[str, Variance]) -> dict[str, Variance]:
    """Presets that vary more than the rest, the largest variance first."""
    rest, outliers = dict(pool), {}
    while len(rest) > 1:
        widest = max(rest, key=lambda preset: rest[preset].variance)
        own = rest.pop(widest)
        if not _is_wider(own, _pooled(rest.values()), len(rest) + 1):
            break
        outliers[widest] = own
    return outliers


def _is_wider(own: Variance, others: Variance, presets: int) -> bool:
    """Whether one of so many presets varies far more than the others together."""
    ratio = own.variance / others.variance if others.variance else np.inf
    return special.fdtrc(own.freedom, others.freedom, ratio) < OUTLIER / presets


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much better one thing is than another, or the value of one than zero, in the
    metric's unit."""

    first: str
    second: str  # "": the first alone, compared with zero
    metric: str = ""
    # for readers: of both things, and of the metric, with how many decimals it is shown
    titles: tuple[str, str] = ("", "")
    heading: str = ""
    decimals: int = 1
    # the first's metric, one value per run
    firsts: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    difference: float  # of the means
    doubt: Doubt
    # (G,) what each image does to the difference; None: images are not known
    noise: np.ndarray | None = field(default=None, compare=False, repr=False)
    # which images in which order, and which features both have; equal texts: the same
    images: str = ""
    features: str = ""
    is_paired: bool = False  # by shared runs
    is_of_these_trainings: bool = False  # nothing is known of other runs
    reach: float = 0.0  # the largest difference that an image can have; 0: not known
    units: int = 0  # effective number of images; 0: not known
    # the interval as a file has it, rounded; None: it is that of the estimate
    written: tuple[float, float] | None = None

    @property
    def scale(self) -> float:
        """The largest number that it is the difference of; 0: not known."""
        return max(self.reach, *map(abs, [0.0, *self.firsts, *self.seconds]))

    @cached_property
    def estimate(self) -> Estimate | Constant | None:
        """For other images and other runs, as far as these are known; None without a
        spread or a reach."""
        of_all = self.difference, self.doubt, self.scale
        estimate = significance.on_other_images(*of_all)
        if estimate is None and self.reach and self.units:
            return Constant(value=self.difference, units=self.units, reach=self.reach)
        return estimate

    @cached_property
    def on_test_set(self) -> Estimate | None:
        """For other runs on the same images; None where these are not known, or do not
        vary."""
        return significance.on_test_set(self.difference, self.doubt, self.scale)

    @property
    def interval(self) -> tuple[float, float] | None:
        if self.written:
            return self.written
        return self.estimate.interval if self.estimate else None

    @property
    def inputs(self) -> tuple[str, str] | None:
        """Images and features; None where one is not known."""
        is_known = self.images and self.features
        return (self.images, self.features) if is_known else None

    @property
    def level(self) -> float | None:
        """The better mean; None of one thing alone."""
        return max(fmean(self.firsts), fmean(self.seconds)) if self.second else None

    @property
    def names(self) -> str:
        """Of what is compared, for readers."""
        return " over ".join(filter(None, self.titles))

    @property
    def trainings(self) -> tuple[int, int]:
        return len(self.firsts), len(self.seconds)


def compare(
    names: Sequence[str],
    samples: Sequence[Sample],
    spread: Spread,
    *,
    varies_as: Sequence[str] = (),
    is_shared: bool = False,
    less_is_better: bool = False,
    **shown: object,
) -> Comparison:
    """The difference of two samples, or one sample against zero. `varies_as` are their
    names in `spread`, if others than `names`; `is_shared` says whether they have runs
    in common, paired from FEWEST_RUNS on; `shown` are metric, titles, heading and
    decimals of the Comparison."""
    common = samples[0].values.keys() & samples[-1].values.keys()
    is_paired = is_shared and len(samples) == 2 and len(common) >= FEWEST_RUNS
    if is_paired:
        samples = [sample.of(sorted(common)) for sample in samples]
        gaps = differences(*samples)
        parts = [SeedPart((len(gaps.values),), *variance_of(gaps), is_own=True)]
    else:
        pairs = zip(varies_as or names, samples, strict=True)
        parts = [spread.part(name, len(sample.values)) for name, sample in pairs]
    sign = -1 if less_is_better else 1
    first, *others = samples
    noise = noise_of(samples)
    return Comparison(
        first=names[0],
        second=names[1] if len(names) > 1 else "",
        firsts=list(first.values.values()),
        seconds=list(others[0].values.values()) if others else [],
        difference=sign * (first.mean - (others[0].mean if others else 0.0)),
        doubt=doubt(samples, parts),
        noise=None if noise is None else sign * noise,
        is_paired=is_paired,
        is_of_these_trainings=None in parts,
        **shown,
    )


def noise_of(samples: Sequence[Sample]) -> np.ndarray | None:
    """What each image does to a mean, or to the difference of two, (G,), if known."""
    noises = [sample.mean_noise for sample in samples]
    if any(noise is None for noise in noises):
        return None
    return noises[0] - noises[1] if len(noises) > 1 else noises[0]


def doubt(samples: Sequence[Sample], parts: Sequence[SeedPart | None]) -> Doubt:
    """Why a mean, or the difference of two, is uncertain: without the runs' part if one
    of `parts` is not known."""
    known = [] if None in parts else parts
    # one part for all that share a variance
    pooled = [part for part in known if not part.is_own]
    counts = tuple(count for part in pooled for count in part.counts)
    seeds = tuple(part for part in known if part.is_own)
    seeds += tuple(part._replace(counts=counts) for part in pooled[:1])
    left_G = noise_of(samples)
    if left_G is None:  # then no interaction is anywhere else
        whole = tuple(part._replace(interaction=0.0) for part in seeds)
        return Doubt(images=0.0, interaction=0.0, image_count=0, seeds=whole)
    images, units = float(left_G @ left_G), samples[0].units
    # Between things with the same seeds the part that other runs would change is
    # measured on their difference, since equal seeds may make them alike.
    runs = samples[0].values.keys()
    if len(runs) > 1 and runs == samples[-1].values.keys():
        gaps = differences(*samples) if len(samples) > 1 else samples[0]
        interaction = variance_of(gaps).interaction / len(gaps.values)
    else:
        interaction = sum(part.weight() * part.interaction for part in parts if part)
    interaction = min(images, interaction)
    return Doubt(images=images, interaction=interaction, image_count=units, seeds=seeds)

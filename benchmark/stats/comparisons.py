"""The difference of two samples, and why it is uncertain.

Runs of two things are paired if they are shared, as those of a fusion and of its members; equal
seed numbers pair nothing else. Units of resampling are clusters of queries, such as images.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from benchmark.stats import significance
from benchmark.stats.seed_spread import OWN, Sample, Spread, differences, variance_of
from benchmark.stats.significance import Doubt, Estimate, SeedPart


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much better one thing is than another, or the value of one than zero.

    A difference is in the metric's unit, and positive where the first is better.
    """

    first: str
    second: str  # "": the first alone, compared with zero
    metric: str = ""
    titles: tuple[str, str] = ("", "")  # of both, for readers
    firsts: list[float] = field(default_factory=list)  # the first's metric, one value per run
    seconds: list[float] = field(default_factory=list)
    difference: float  # of the means
    doubt: Doubt
    is_paired: bool = False  # by shared runs
    is_of_these_trainings: bool = False  # nothing is known of other runs

    @cached_property
    def estimate(self) -> Estimate | None:
        """For other images and other runs; None where there is no spread.

        For other images only if nothing is known of other runs, and for other runs only if nothing
        is known of images.
        """
        return significance.on_other_images(self.difference, self.doubt)

    @cached_property
    def on_test_set(self) -> Estimate | None:
        """For other runs on the same images; None where these are not known, or do not vary."""
        return significance.on_test_set(self.difference, self.doubt)

    @property
    def interval(self) -> tuple[float, float] | None:
        return self.estimate and self.estimate.interval

    @property
    def trainings(self) -> tuple[int, int]:
        """Runs of the first and of the second."""
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
    """The difference of two samples, or one sample against zero.

    Parameters
    ----------
    names : of one or two things
    samples : of these
    spread : how far runs lie apart
    varies_as : the names under which `spread` knows the things; default: `names`
    is_shared : whether both have runs in common; with OWN common seeds or more these are paired
    less_is_better : whether the smaller mean is the better one
    shown : `metric` and `titles` of the Comparison
    """
    common = set.intersection(*(set(sample.values) for sample in samples))
    is_paired = is_shared and len(samples) == 2 and len(common) >= OWN
    if is_paired:
        samples = [sample.of(sorted(common)) for sample in samples]
        gaps = differences(*samples)
        parts = [SeedPart((len(gaps.values),), *variance_of(gaps), is_own=True)]
    else:
        known_as = varies_as or names
        parts = [spread.part(n, len(s.values)) for n, s in zip(known_as, samples, strict=True)]
    sign = -1 if less_is_better else 1
    means = [sample.mean for sample in samples]
    runs = [list(sample.values.values()) for sample in samples]
    return Comparison(
        first=names[0],
        second=names[1] if len(names) > 1 else "",
        firsts=runs[0],
        seconds=runs[1] if len(runs) > 1 else [],
        difference=sign * (means[0] - (means[1] if len(means) > 1 else 0.0)),
        doubt=doubt(samples, parts),
        is_paired=is_paired,
        is_of_these_trainings=None in parts,
        **shown,
    )


def doubt(samples: Sequence[Sample], parts: Sequence[SeedPart | None]) -> Doubt:
    """Why the mean of a sample, or the difference of two, is uncertain. Without the runs' part if
    one of `parts` is not known."""
    known = [] if None in parts else parts
    pooled = [part for part in known if not part.is_own]  # one part for all that share a variance
    counts = tuple(count for part in pooled for count in part.counts)
    seeds = tuple(part for part in known if part.is_own)
    seeds += tuple(part._replace(counts=counts) for part in pooled[:1])
    noises = [sample.mean_noise for sample in samples]
    if any(noise is None for noise in noises):  # then no interaction is anywhere else
        whole = tuple(part._replace(interaction=0.0) for part in seeds)
        return Doubt(images=0.0, interaction=0.0, image_count=0, seeds=whole)
    left_G = noises[0] - noises[1] if len(noises) > 1 else noises[0]
    images, units = float(left_G @ left_G), samples[0].units
    # Between things with the same seeds the part that other runs would change is measured on their
    # difference, since equal seeds may make them alike.
    if len(samples[0].values) > 1 and samples[0].values.keys() == samples[-1].values.keys():
        gaps = differences(*samples) if len(samples) > 1 else samples[0]
        interaction = variance_of(gaps).interaction / len(gaps.values)
    else:
        interaction = sum(part.weight() * part.interaction for part in parts if part)
    interaction = min(images, interaction)
    return Doubt(images=images, interaction=interaction, image_count=units, seeds=seeds)

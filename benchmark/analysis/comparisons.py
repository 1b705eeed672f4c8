"""What a board's records say about a metric: intervals of presets and differences of two.

Recalls, rsum and whatever else is declared with `of_queries` are means over queries: their images
are the units, each with all its captions and phrases; images of one group, such as those of a
person, together. S has resamples of its own. Every other metric, times among them, varies with its
trainings only.

Every training counts. Trainings of two presets are paired if they are shared, as those of a fusion
and of its members; equal seed numbers pair nothing else. What a training adds to the spread comes
from all presets of the dataset (seed_spread); of times, mean scores and correlations, which do not
vary alike, from the preset itself.
"""

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmark.analysis import image_noise, seed_spread, significance
from benchmark.analysis.boards import Board, Outcome, Standing
from benchmark.analysis.seed_spread import Sample, Spread
from benchmark.analysis.significance import Doubt, Estimate, SeedPart
from benchmark.core.array_files import read_arrays
from benchmark.papers.claimed_quantities import PER_EPOCH, SAMPLED, is_time, quantity, sides
from benchmark.protocol import distribution_overlap
from benchmark.protocol.metrics import METRICS, TIMES

SLACK = 0.01  # by which S may exceed its bound before its bins are called too coarse
OF_ITS_OWN = ("score", "correlation")  # units: presets of other scales do not vary alike
BIN_GAP = 0.02  # S at half and at double the bins, farther apart: S hangs on its bins


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much better one preset is than another, or a difference of two metrics of one preset
    than none.

    A difference is in the metric's unit, and positive where the first preset is better.
    """

    first: str
    second: str  # "": the metric is a difference, compared with zero
    titles: tuple[str, str]  # of both
    metric: str
    firsts: list[float]  # the first preset's metric, one value per training
    seconds: list[float]  # the second preset's
    difference: float  # of the means
    doubt: Doubt
    is_paired: bool = False  # by shared trainings
    is_of_these_trainings: bool = False  # nothing is known of other trainings

    @property
    def estimate(self) -> Estimate | None:
        """For other images and other trainings; None where there is no spread.

        For other images only if nothing is known of other trainings, and for other trainings only
        if nothing is known of images.
        """
        return significance.on_other_images(self.difference, self.doubt)

    @property
    def on_test_set(self) -> Estimate | None:
        """For other trainings on this test set; None where these are not known, or do not vary."""
        return significance.on_test_set(self.difference, self.doubt)

    @property
    def interval(self) -> tuple[float, float] | None:
        return self.estimate and self.estimate.interval

    @property
    def trainings(self) -> tuple[int, int]:
        """Of the first and of the second preset."""
        return len(self.firsts), len(self.seconds)


def measure(outcome: Outcome, metric: str) -> float | None:
    """A metric or a difference of two, of one cell; None where it was not measured."""
    values = [_measure(outcome, side) for side in sides(metric)]
    if None in values:
        return None
    return values[0] if len(values) == 1 else values[0] - values[1]


def _measure(outcome: Outcome, metric: str) -> float | None:
    if metric in SAMPLED:
        return _sampled(outcome, metric)
    if metric == PER_EPOCH.name:
        return _per_epoch(outcome)
    if METRICS[metric] in TIMES:
        of_training = outcome.trainings[0].seconds if outcome.trainings else {}
        seconds = of_training | outcome.scoring.seconds
        return METRICS[metric].compute(seconds[metric]) if metric in seconds else None
    return outcome.record.metrics.get(metric)


def _per_epoch(outcome: Outcome) -> float | None:
    """None where nothing was trained for this cell alone."""
    if outcome.history is None or outcome.history.empty:
        return None
    return PER_EPOCH.compute(outcome.training_seconds, outcome.history["epoch"].max())


def _sampled(outcome: Outcome, metric: str) -> float | None:
    """None where the image features were standardised: that takes away the correlation that they
    have before training."""
    settings = outcome.record.image_features.get("settings", {})
    if not outcome.is_ok or settings.get("standardise"):
        return None
    path = (outcome.folder / "scores/samples.npz").absolute()
    return _of_samples(path, path.stat().st_mtime_ns, metric)


@lru_cache(maxsize=4096)
def _of_samples(path: Path, written: int, metric: str) -> float | None:
    """None, too, where a vector of equal numbers has no correlation."""
    samples = read_arrays(path)
    value = SAMPLED[metric].compute(samples[metric]) if metric in samples else math.nan
    return value if math.isfinite(value) else None


def values(standing: Standing, metric: str) -> list[float]:
    """The metric of every seed that has it."""
    measured = [measure(outcome, metric) for outcome in standing.played]
    return [value for value in measured if value is not None]


def is_coarse(standing: Standing) -> bool:
    """Whether the bins of S cannot be trusted: it lies above 1 - KS, which bounds the true
    overlap, or half and double the bins give another S."""
    if not standing.has_scores:
        return False
    if standing.mean("overlap_s") > standing.mean("one_minus_ks") + SLACK:
        return True
    ends = [standing.mean(f"overlap_s_{bins}_bins") for bins in ("half", "double")]
    return None not in ends and abs(ends[0] - ends[1]) > BIN_GAP


def interval(board: Board, standing: Standing, metric: str) -> tuple[float, float] | None:
    """95% interval of a preset: of the mean of its trainings, for other images and trainings.

    None where nothing is known of other trainings, and where there is no `interval_over_images`.
    """
    sample = sample_of(board, standing, metric)
    part = seed_part(board, standing, metric)
    over_images = interval_over_images(board, standing, metric)
    if over_images is None or part is None:
        return None
    low, high = significance.with_seeds(sample.mean, over_images, part)
    lowest, highest = METRICS[metric].range
    return max(low, lowest), min(high, highest)


def interval_over_images(
    board: Board, standing: Standing, metric: str
) -> tuple[float, float] | None:
    """95% interval of the mean of these very trainings, had other images been drawn.

    None where the metric was not measured, or varies with its trainings only.
    """
    outcomes = usable(standing, metric)
    sample = sample_of(board, standing, metric)
    if not outcomes or sample.noise is None:
        return None
    if metric == "overlap_s":
        replicates = [image_noise.overlap_replicates(outcome) for outcome in outcomes.values()]
        return distribution_overlap.interval(sample.mean, np.mean(replicates, axis=0))
    units = units_of(board, standing, metric)
    span = image_noise.largest(next(iter(outcomes.values())), metric)
    variance = float(np.square(sample.mean_noise).sum())
    return significance.score_interval(sample.mean, variance, span, units)


def seed_part(board: Board, standing: Standing, metric: str) -> SeedPart | None:
    """The spread that the mean of the preset's trainings inherits; None: it is not known."""
    count = len(usable(standing, metric))
    if not count:
        return None
    spread = spread_of(board, standing.task, metric)
    return spread.part(_varies_as(board, standing, metric), count)


def compare(
    board: Board, first: Standing, second: Standing | None, metric: str
) -> Comparison | None:
    """The difference of two presets; of one preset, its difference of two metrics against zero.

    None where a preset does not have the metric.
    """
    firsts = sample_of(board, first, metric)
    seconds = sample_of(board, second, metric) if second else None
    if not firsts.values or (seconds and not seconds.values):
        return None
    if second and is_shared(board, first, second):
        common = sorted(set(firsts.values) & set(seconds.values))
        if len(common) >= seed_spread.OWN:
            paired = firsts.of(common), seconds.of(common)
            return _compared(board, (first, second), metric, paired, is_paired=True)
    return _compared(board, (first, second), metric, (firsts, seconds), is_paired=False)


def level(comparison: Comparison) -> float | None:
    """The better mean, where both are of recalls; None for another unit and for differences."""
    metric = comparison.metric
    if not comparison.second or len(sides(metric)) > 1 or quantity(metric).unit != "%":
        return None
    return max(float(np.mean(of)) for of in (comparison.firsts, comparison.seconds))


@lru_cache(maxsize=4096)
def usable(standing: Standing, metric: str) -> dict[int, Outcome]:
    """The outcomes with the metric, by seed; with its ranks, too, if it is a mean over queries."""
    return {
        outcome.record.seed: outcome
        for outcome in standing.played
        if measure(outcome, metric) is not None and image_noise.has_ranks(outcome, metric)
    }


@lru_cache(maxsize=4096)  # of each pair of presets that is compared
def sample_of(board: Board, standing: Standing, metric: str) -> Sample:
    """The metric of every training that can be used. Its noise is None where one lacks it."""
    outcomes = usable(standing, metric)
    noise = {
        s: image_noise.noise(outcome, board.dataset, metric) for s, outcome in outcomes.items()
    }
    is_known = bool(noise) and all(of_training is not None for of_training in noise.values())
    measured = {seed: float(measure(outcome, metric)) for seed, outcome in outcomes.items()}
    return Sample(measured, noise if is_known else None)


@lru_cache(maxsize=4096)
def units_of(board: Board, standing: Standing, metric: str) -> int:
    """Number of groups of images that have a query of the metric, of which there is a sample."""
    first = next(iter(usable(standing, metric).values()))
    return image_noise.units(first, board.dataset, metric)


@lru_cache(maxsize=512)
def spread_of(board: Board, task: str, metric: str) -> Spread:
    """The spread of trainings of a metric, over all presets of the task; of those whose trainings
    are the same, one counts."""
    standings = [s for s in board.standings if s.task == task and s.played]
    standings = [s for s in standings if _varies_as(board, s, metric) == s.preset]
    samples = {s.preset: sample_of(board, s, metric) for s in standings}
    if _is_of_its_own(metric):
        return seed_spread.own_spread(samples)
    trained = {s.preset for s in standings if trainings_of(board, s) == {s.preset}}
    return seed_spread.spread(samples, trained)


def _is_of_its_own(metric: str) -> bool:
    """Whether the spread of a preset says nothing of that of another: other work beside a
    training slows that training alone, and scores have the scale of their method."""
    return is_time(metric) or quantity(metric).unit in OF_ITS_OWN


def _varies_as(board: Board, standing: Standing, metric: str) -> str:
    """The preset whose spread counts for a preset: of those whose trainings are the same, one."""
    return standing.preset if _is_of_its_own(metric) else _alike(board, standing)


def trainings_of(board: Board, standing: Standing) -> set[str]:
    """The presets whose trainings gave the scores: itself, of a fusion its members, and of one
    that only scores differently the one that it starts from. Of presets whose trainings are the
    same, as where papers differ in what is equal here, one of them."""
    if standing.row.fuse:
        members = {member.partition(":")[0] for member in standing.row.fuse.of}
    elif standing.row.options.get("trains", True) is False and standing.row.start:
        members = {standing.row.start}
    else:
        return {_alike(board, standing)}
    standings = {member: known(board, member) for member in members}
    return {t for m, s in standings.items() for t in (trainings_of(board, s) if s else {m})}


def known(board: Board, preset: str) -> Standing | None:
    """The standing of a start or of a member, which may be of another task than the board."""
    return (board.whole or board).standing(preset)


def _alike(board: Board, standing: Standing) -> str:
    """Of the presets whose trainings are the same the one with the most of them, the first on
    ties."""
    training = _training(standing)
    same_task = [s for s in board.standings if s.task == standing.task and s.played]
    alike = [s for s in same_task if training and _training(s) == training]
    return max(alike, key=lambda s: len(s.played)).preset if alike else standing.preset


@lru_cache(maxsize=1024)
def _training(standing: Standing) -> tuple[str, str] | None:
    """What decided the preset's own trainings, but for the seed; None: the records do not say."""
    record = standing.outcomes[0].record
    identity = record.trainings.get(standing.preset)
    settings = {"options": record.options, "start": standing.row.start, "identity": identity}
    return (record.method, json.dumps(settings, sort_keys=True)) if identity else None


def is_shared(board: Board, first: Standing, second: Standing) -> bool:
    """Whether two presets have a training in common."""
    return bool(trainings_of(board, first) & trainings_of(board, second))


def _compared(
    board: Board,
    standings: tuple[Standing, Standing | None],
    metric: str,
    samples: tuple[Sample, Sample | None],
    is_paired: bool,
) -> Comparison:
    (first, second), (firsts, seconds) = standings, samples
    sign = -1 if quantity(metric).less_is_better else 1
    spread = spread_of(board, first.task, metric)
    presets = [_varies_as(board, standing, metric) for standing in standings if standing]
    parts = seed_spread.parts(spread, presets, samples, is_paired)
    units = 0
    if all(sample.noise is not None for sample in samples if sample):
        units = units_of(board, first, metric)
    return Comparison(
        first=first.preset,
        second=second.preset if second else "",
        titles=(first.row.title, second.row.title if second else ""),
        metric=metric,
        firsts=list(firsts.values.values()),
        seconds=list(seconds.values.values()) if seconds else [],
        difference=sign * (firsts.mean - (seconds.mean if seconds else 0.0)),
        doubt=seed_spread.doubt(*samples, parts, units),
        is_paired=is_paired,
        is_of_these_trainings=None in parts,
    )

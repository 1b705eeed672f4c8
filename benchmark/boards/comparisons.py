"""Intervals of the metrics of a board's rows, and differences between two rows.

Metrics that are declared with `of_queries`, such as recalls, are means over queries.
Their units are groups of images, such as those of one person; an image counts with all
its captions and phrases. S has resamples of its own. Every other metric, such as a
time, varies only with the training. How trainings vary: docs/statistics.md.
"""

import hashlib
import json
from functools import lru_cache
from itertools import combinations

import numpy as np

from benchmark.boards.boards import RANKED_BY, Board, Outcome, Row
from benchmark.core.errors import UserError
from benchmark.core.files import json_text
from benchmark.data.rank_keys import RankKey
from benchmark.papers.printed_tables import PER_EPOCH, SAMPLED, is_time, quantity, sides
from benchmark.scoring import distribution_overlap
from benchmark.scoring.metrics import METRICS, TIMES, Metric, query_terms
from benchmark.stats import comparisons, significance
from benchmark.stats.comparisons import Comparison, Sample, Spread
from benchmark.stats.significance import SeedPart

# bins are too coarse where S exceeds its bound by more, or differs by more between half
# and double the bins
SLACK, BIN_GAP = 0.01, 0.02
# units of metrics whose scale, and so whose variance, differs between rows
UNITS_OF_OWN_SCALE = ("score", "correlation")


def measure(outcome: Outcome, metric: str) -> float | None:
    """A metric or a difference of two, of one cell; None where it was not measured."""
    record, (first, *second) = outcome.record, sides(metric)
    if second:
        both = measure(outcome, first), measure(outcome, *second)
        return None if None in both else both[0] - both[1]
    if metric in SAMPLED:
        # Standardised image features have lost the correlation that they have before
        # training.
        is_standardised = record.image_features.get("settings", {}).get("standardise")
        is_lost = is_standardised and metric.startswith("correlation")
        return None if is_lost else record.sampled.get(metric)
    if metric == PER_EPOCH.name:  # not where nothing was trained for this cell alone
        epochs, seconds = record.history.get("epoch"), outcome.training_seconds
        return PER_EPOCH.compute(seconds, max(epochs)) if epochs else None
    declared = METRICS[metric]
    if declared in TIMES:
        of_training = outcome.trainings[0].seconds if outcome.trainings else {}
        seconds = (of_training | outcome.scoring.seconds).get(metric)
        return None if seconds is None else declared.compute(seconds)
    if not declared.in_records:
        ranks = outcome.scores.ranks.get(declared.rank_key)
        is_known = ranks and (ranks.knows_all or not declared.needs_all)
        return declared.compute(ranks) if is_known else None
    return record.metrics.get(metric)


def values(row: Row, metric: str) -> list[float]:
    """The metric of every seed that has it."""
    measured = [measure(outcome, metric) for outcome in row.played]
    return [value for value in measured if value is not None]


def is_coarse(row: Row) -> bool:
    """Whether S cannot be trusted: it lies above 1 - KS, which bounds the true overlap,
    or half and double the bins give another."""
    if not row.has_scores:
        return False
    ends = [row.mean(f"overlap_s_{bins}_bins") for bins in ("half", "double")]
    depends = None not in ends and abs(ends[0] - ends[1]) > BIN_GAP
    return depends or row.mean("overlap_s") > row.mean("one_minus_ks") + SLACK


def interval(board: Board, row: Row, metric: str) -> tuple[float, float] | None:
    """Of the mean of a row's trainings, for other images and trainings; None where
    nothing is known of one of these."""
    part = seed_part(board, row, metric)
    over_images = interval_over_images(board, row, metric)
    if over_images is None or part is None:
        return None
    mean = sample_of(board, row, metric).mean
    low, high = significance.with_seeds(mean, over_images, part)
    lowest, highest = METRICS[metric].range
    return max(low, lowest), min(high, highest)


def interval_over_images(
    board: Board, row: Row, metric: str
) -> tuple[float, float] | None:
    """Of the mean of these very trainings, for other images; None where the metric was
    not measured, or varies with trainings only."""
    outcomes = usable(row, metric)
    sample = sample_of(board, row, metric)
    if not outcomes or sample.noise is None:
        return None
    if metric == "overlap_s":
        replicates = [outcome.scores.replicates for outcome in outcomes.values()]
        return distribution_overlap.interval(sample.mean, np.mean(replicates, axis=0))
    span = sum(term.range[1] for term in _terms(next(iter(outcomes.values())), metric))
    variance = float(np.square(sample.mean_noise).sum())
    return significance.score_interval(sample.mean, variance, span, sample.units)


def known_interval(
    board: Board, row: Row, metric: str
) -> tuple[tuple[float, float] | None, bool]:
    """The interval for other images and trainings or, where nothing is known of other
    trainings, for other images; and whether it is of these trainings only."""
    if ends := interval(board, row, metric):
        return ends, False
    ends = interval_over_images(board, row, metric)
    return ends, ends is not None


def seed_part(board: Board, row: Row, metric: str) -> SeedPart | None:
    """The spread that the mean of the row's trainings inherits, if known."""
    count = len(sample_of(board, row, metric).values)
    spread = spread_of(board, row.task, metric)
    return spread.part(_varies_as(board, row, metric), count) if count else None


def compare(
    board: Board, first: Row, second: Row | None, metric: str
) -> Comparison | None:
    """The difference of two rows, or one row's difference of two metrics against zero;
    None where a row does not have the metric."""
    rows = [row for row in (first, second) if row]
    samples = [sample_of(board, row, metric) for row in rows]
    if not all(sample.values for sample in samples):
        return None
    shown = quantity(metric)
    trainings = [trainings_of(board, row) for row in rows]
    return comparisons.compare(
        [row.preset for row in rows],
        samples,
        spread_of(board, first.task, metric),
        varies_as=[_varies_as(board, row, metric) for row in rows],
        # of folds the images are shared
        is_shared=bool(board.fold_boards or frozenset.intersection(*trainings)),
        less_is_better=shown.less_is_better,
        metric=metric,
        titles=(first.title, second.title if second else ""),
        heading=shown.heading,
        decimals=shown.decimals,
        features=features_of(*rows),
    )


@lru_cache(maxsize=4096)
def features_of(*rows: Row) -> str:
    """A digest of the features, with their weights, that rows read."""
    read = []
    for row in rows:
        read.append([row.record.image_features, row.record.text_features])
    return hashlib.sha256(json_text(read).encode()).hexdigest()[:16]


@lru_cache(maxsize=4096)
def usable(row: Row, metric: str) -> dict[int, Outcome]:
    """By seed, the outcomes that have the metric and, of a mean over queries, ranks."""
    outcomes = {}
    for outcome in row.played:
        terms = []
        for side in sides(metric):
            terms += _terms(outcome, side)
        has_ranks = all(term.rank_key in outcome.scores.ranks for term in terms)
        if has_ranks and measure(outcome, metric) is not None:
            outcomes[outcome.record.seed] = outcome
    return outcomes


@lru_cache(maxsize=4096)  # of each pair of rows that is compared
def sample_of(board: Board, row: Row, metric: str) -> Sample:
    """The metric of every usable training, of folds of each fold. Its noise is
    None where that of one is not known: of times, MedR, means of scores, and S of
    records without resamples."""
    if board.fold_boards:
        of_folds = {}
        for number, fold in enumerate(board.fold_boards, start=1):
            of_folds[number] = sample_of(fold, fold.row(row.preset), metric)
        return comparisons.sample_of_folds(of_folds)
    outcomes, whole = usable(row, metric), board.whole or board
    measured = {seed: float(measure(outcomes[seed], metric)) for seed in outcomes}
    noise, units = {}, 0
    for seed, outcome in outcomes.items():
        parts = [_noise(whole, outcome, side) for side in sides(metric)]
        if any(part is None for part in parts):
            return Sample(measured, None)
        noise[seed] = parts[0] - parts[1] if len(parts) > 1 else parts[0]
    if noise:
        terms = _terms(outcome, sides(metric)[0])
        units = whole.groups.asked[terms[0].direction] if terms else whole.groups.count
    return Sample(measured, noise or None, units)


@lru_cache(maxsize=4096)
def _noise(board: Board, outcome: Outcome, metric: str) -> np.ndarray | None:
    """The part of each group of images in the error of a metric of one cell, (G,):
    significance.deviations. For S, that of each of its resamples, (T,)."""
    if metric == "overlap_s":
        return _noise_of_resamples(outcome.scores.replicates)
    terms_of: dict[RankKey, list[Metric]] = {}
    for term in _terms(outcome, metric):
        terms_of.setdefault(term.rank_key, []).append(term)
    noise = []
    for key, terms in terms_of.items():
        ranks = outcome.scores.ranks[key]
        group_Q = board.groups.of_queries(terms[0].direction)
        if len(ranks) != len(group_Q):
            expected = f"the {len(group_Q)} queries of the test split"
            raise UserError(
                f"{outcome.kept.place}: {key.name}", expected, len(ranks), "dvc repro"
            )
        values_Q = sum(term.of_queries(ranks) for term in terms)
        noise.append(significance.deviations(values_Q, group_Q, board.groups.count))
    return sum(noise) if noise else None


def _noise_of_resamples(replicates_T: np.ndarray | None) -> np.ndarray | None:
    """Deviations (T,) whose squares add up to the variance of the resamples, which all
    cells share. One that is NaN, as of a single group, has a deviation of 0."""
    if replicates_T is None or np.isfinite(replicates_T).sum() < 2:
        return None
    is_finite_T = np.isfinite(replicates_T)
    deviations_T = replicates_T - replicates_T[is_finite_T].mean()
    return np.where(is_finite_T, deviations_T, 0.0) / np.sqrt(is_finite_T.sum() - 1)


def _terms(outcome: Outcome, metric: str) -> list[Metric]:
    """The means over queries that add up to the metric; empty: there are none."""
    return query_terms(metric, outcome.record.metrics) if metric in METRICS else []


@lru_cache(maxsize=512)
def spread_of(board: Board, task: str, metric: str) -> Spread:
    """How far trainings lie apart, over all rows of the task; of those with the same
    trainings, one counts. Beside others, rows that were brought change nothing for
    them: no claim of a paper depends on these."""
    rows = [row for row in board.rows if row.task == task and row.played]
    rows = [row for row in rows if _varies_as(board, row, metric) == row.preset]
    samples = {row.preset: sample_of(board, row, metric) for row in rows}
    if _varies_on_its_own(board, metric):
        known = {name: each for name, each in samples.items() if len(each.values) > 1}
        own = {name: comparisons.variance_of(each) for name, each in known.items()}
        return Spread(pooled=None, own=own)
    trained = {row.preset for row in rows if trainings_of(board, row) == {row.preset}}
    guests = {row.preset for row in rows if row.is_external}
    if len(guests) == len(rows):
        guests = set()
    return comparisons.spread(samples, trained, guests)


def _varies_on_its_own(board: Board, metric: str) -> bool:
    """Whether the spread of one row says nothing about that of another: other work
    slows one training, scores have the scale of their method, a fold is hard for all
    rows at once."""
    has_own_scale = quantity(metric).unit in UNITS_OF_OWN_SCALE
    return bool(board.fold_boards) or is_time(metric) or has_own_scale


def _varies_as(board: Board, row: Row, metric: str) -> str:
    """The preset whose spread is used for a row."""
    is_own = _varies_on_its_own(board, metric)
    return row.preset if is_own else _representative(board, row)


@lru_cache(maxsize=4096)
def trainings_of(board: Board, row: Row) -> frozenset[str]:
    """The presets whose trainings gave the scores: itself, of a fusion its members,
    and of one that only scores differently the one that it starts from. Of presets
    with the same training, one."""
    declared = row.declared
    if declared.fuse:
        members = {member.partition(":")[0] for member in declared.fuse.of}
    elif declared.options.get("trains", True) is False and declared.start:
        members = {declared.start}
    else:
        return frozenset({_representative(board, row)})
    trainings: set[str] = set()
    for member in members:
        member_row = row_of_any_task(board, member)
        trainings |= trainings_of(board, member_row) if member_row else {member}
    return frozenset(trainings)


def row_of_any_task(board: Board, preset: str) -> Row | None:
    """The row of a start or a member, which may be of another task."""
    return (board.whole or board).row(preset)


@lru_cache(maxsize=4096)
def _representative(board: Board, row: Row) -> str:
    """Of the presets with the same training, the one with the most seeds."""
    training, alike = _training_identity(row), []
    for other in board.rows if training else ():
        is_alike = other.task == row.task and _training_identity(other) == training
        if is_alike and other.played:
            alike.append(other)
    return max(alike, key=lambda other: len(other.played), default=row).preset


@lru_cache(maxsize=1024)
def _training_identity(row: Row) -> str:
    """What determines the row's own trainings, apart from the seed; "": not known."""
    identity = row.record.trainings.get(row.preset)
    facts = [row.record.options, row.declared.start, row.method, identity]
    return json.dumps(facts, sort_keys=True) if identity else ""


@lru_cache(maxsize=64)
def _apart(board: Board) -> np.ndarray:
    """Which of `board.ranked` differ, (R, R): one is significantly better than the
    other, for other images and trainings, with Holm's adjustment over all pairs."""
    ranked = board.ranked
    p_values = [_p_apart(board, *pair) for pair in combinations(ranked, 2)]
    return significance.apart(p_values, len(ranked))


def rivals(board: Board) -> list[list[int]]:
    """Of each of `board.ranked`, the ranks, from 1, of those that do not differ."""
    alike_RR = ~_apart(board)
    np.fill_diagonal(alike_RR, False)
    return [(1 + np.flatnonzero(alike_R)).tolist() for alike_R in alike_RR]


def rank_intervals(board: Board) -> list[tuple[int, int]]:
    """Of each of `board.ranked`, the best and the worst rank, from 1, that it could
    have for other images and other trainings."""
    return significance.rank_intervals(_apart(board))


def _p_apart(board: Board, first: Row, second: Row) -> float:
    """p that the first is no better; 1 where nothing is known of other trainings, and
    of too few test queries."""
    comparison = compare(board, first, second, RANKED_BY[first.task])
    if board.is_small(first.task) or not comparison or not comparison.estimate:
        return 1.0
    is_ahead = comparison.difference > 0 and not comparison.is_of_these_trainings
    return comparison.estimate.p() if is_ahead else 1.0


def is_compared(board: Board) -> bool:
    """Whether any two of `board.ranked` could differ significantly."""
    parts = [seed_part(board, row, RANKED_BY[row.task]) for row in board.ranked]
    known = [part for part in parts if part is not None]
    return len(known) > 1 and not board.is_small(board.ranked[0].task)

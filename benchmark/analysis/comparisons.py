"""What a board's records say about its metrics: intervals, paired comparisons, rank groups.

Recalls, rsum and whatever else is declared with `of_queries` are means over queries: their images
are resampled and exchanged, each with all its captions and phrases; images of one group, such as
those of a person, together. S has replicates of its own. Every other metric, times among them,
varies with its seeds only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmark.analysis import significance
from benchmark.analysis.boards import Board, Outcome, Standing
from benchmark.core.array_files import read_arrays, read_parquet
from benchmark.core.errors import UserError
from benchmark.data import prepared_tables
from benchmark.protocol import METRICS, distribution_overlap
from benchmark.protocol.metrics import TIMES, Metric, query_terms

SLACK = 0.01  # by which S may exceed its bound before its bins are called too coarse


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much better one preset is than another, over the seeds that both were played with.

    A difference is in the metric's unit, and positive where the first preset is better.
    """

    first: str
    second: str
    metric: str
    firsts: list[float]  # the first preset's metric, one value per common seed
    seconds: list[float]  # the second preset's
    difference: float  # of the means
    std: float | None  # of the seeds' differences; None: a single seed
    interval: tuple[float, float] | None  # None: a single seed, and no images to resample
    p: float | None  # of exchanged images; None: the metric is not a mean over queries

    @property
    def seeds(self) -> int:
        """Number of common seeds."""
        return len(self.firsts)


class PerImage(NamedTuple):
    """The queries of one direction, added up over each group of images: (G,) each."""

    sums: np.ndarray  # of the metric's values of single queries
    counts: np.ndarray  # of queries


class Paired(NamedTuple):
    """Two presets over their common seeds."""

    first: str
    second: str
    metric: str
    firsts: list[float]  # one value per common seed
    seconds: list[float]
    by_seed: list[float]  # differences; positive: the first is better
    by_image: list[PerImage]  # differences, the mean of the seeds; empty: not a mean over queries
    replicates: np.ndarray | None  # (T,) of the difference of the means; None: there are none


class Owners(NamedTuple):
    """Which group of images every query of the test split belongs to, in [0, G).

    A group is an image, or all images of a person.
    """

    of_image: np.ndarray  # (I,) in the split's order
    of_caption: pd.Series  # (C,) by caption id, in the split's order
    of_phrase: np.ndarray  # (N,) in the order of the regions

    @property
    def groups(self) -> int:
        return int(self.of_image.max()) + 1

    def of(self, direction: str, queries: pd.DataFrame) -> np.ndarray:
        """The groups of the queries of a direction, (Q,). Not every caption is a query of s2s."""
        if direction == "s2s":
            return self.of_caption.loc[queries["query"]].to_numpy()
        groups = {"i2t": self.of_image, "t2i": self.of_caption.to_numpy(), "p2r": self.of_phrase}
        return groups[direction]


def measure(outcome: Outcome, metric: str) -> float | None:
    """The metric of one cell; None where it was not measured."""
    if METRICS[metric] in TIMES:
        of_training = outcome.trainings[0].seconds if outcome.trainings else {}
        seconds = of_training | outcome.scoring.seconds
        return METRICS[metric].compute(seconds[metric]) if metric in seconds else None
    return outcome.record.metrics.get(metric)


def values(standing: Standing, metric: str) -> list[float]:
    """The metric of every seed that has it."""
    measured = [measure(outcome, metric) for outcome in standing.played]
    return [value for value in measured if value is not None]


def is_coarse(standing: Standing) -> bool:
    """Whether S lies above 1 - KS, which bounds the true overlap: its bins are too coarse."""
    if not standing.has_scores:
        return False
    return standing.mean("overlap_s") > standing.mean("one_minus_ks") + SLACK


def interval(board: Board, standing: Standing, metric: str) -> tuple[float, float] | None:
    """95% interval of a preset: of the seeds' mean, for other images and other trainings.

    None for a single seed, which says nothing of another training, and where there is no
    `interval_over_images`.
    """
    seeds = [measure(outcome, metric) for outcome in _usable(standing, metric).values()]
    over_images = interval_over_images(board, standing, metric) if len(seeds) > 1 else None
    if over_images is None:
        return None
    low, high = significance.with_seeds(over_images, seeds)
    lowest, highest = METRICS[metric].range
    return max(low, lowest), min(high, highest)


def interval_over_images(
    board: Board, standing: Standing, metric: str
) -> tuple[float, float] | None:
    """95% interval of the mean of these very trainings, had other images been drawn.

    None where the metric was not measured, or varies with its seeds only.
    """
    outcomes = list(_usable(standing, metric).values())
    if not outcomes:
        return None
    by_image = _per_image(board, outcomes, metric)
    if by_image:
        return significance.percentiles(_resampled(by_image))
    replicates = _own_replicates(outcomes, metric)
    mean = fmean(measure(outcome, metric) for outcome in outcomes)
    return None if replicates is None else distribution_overlap.interval(mean, replicates)


def compare(board: Board, first: Standing, second: Standing, metric: str) -> Comparison | None:
    """The difference over the seeds for which both have the metric; None where there is none."""
    return compare_all(board, [(first, second, metric)])[0]


def compare_all(
    board: Board, pairs: Sequence[tuple[Standing, Standing, str]]
) -> list[Comparison | None]:
    """`compare` of every pair and its metric; images are exchanged for all of them at once."""
    paired = [_paired(board, first, second, metric) for first, second, metric in pairs]
    p_values = _p_values([pair.by_image if pair else [] for pair in paired])
    return [pair and _compared(pair, p) for pair, p in zip(paired, p_values, strict=True)]


def rank_groups(board: Board) -> list[int]:
    """Group number of each of `board.ranked`, by rsum (significance.rank_groups); of one task.

    Two presets are distinguishable by the permutation test over the images; where they share two
    seeds or more, only if the interval over images and seeds does not cover zero either. All
    share a group where the test queries are too few for any conclusion.
    """
    if board.ranked and board.is_small(board.ranked[0].task):
        return [1] * len(board.ranked)
    shares = [
        {o.record.seed: _shares(_per_image(board, [o], "rsum")) for o in standing.played}
        for standing in board.ranked
    ]

    def p_behind(leader: int) -> np.ndarray:
        behind = [_mean_difference(shares[leader], other) for other in shares[leader + 1 :]]
        if not behind:
            return np.array([])
        p = significance.permutation_p(np.stack(behind, axis=1))
        others = board.ranked[leader + 1 :]
        return np.where([_is_luck(board, board.ranked[leader], s) for s in others], 1.0, p)

    return significance.rank_groups(len(shares), p_behind)


def _is_luck(board: Board, first: Standing, second: Standing) -> bool:
    """Whether the interval of the difference of rsum covers zero; False for a single seed, which
    has no such interval."""
    paired = _paired(board, first, second, "rsum")
    if paired is None or len(paired.by_seed) < 2:
        return False
    low, high = significance.difference_interval(np.array(paired.by_seed), paired.replicates)
    return low <= 0 <= high


def _mean_difference(first: dict[int, np.ndarray], second: dict[int, np.ndarray]) -> np.ndarray:
    """Mean difference over the common seeds, (G,); all zeros if they share no seed."""
    firsts, seconds = _common(first, second)
    if not firsts:
        return np.zeros_like(next(iter(first.values())))
    return np.mean(firsts, axis=0) - np.mean(seconds, axis=0)


def _common(first: dict, second: dict) -> tuple[list, list]:
    """The values of the keys that both have, in the first one's order."""
    keys = [key for key in first if key in second]
    return [first[key] for key in keys], [second[key] for key in keys]


def _usable(standing: Standing, metric: str) -> dict[int, Outcome]:
    """The outcomes with the metric, by seed; with its ranks, too, if it is a mean over queries."""
    return {
        outcome.record.seed: outcome
        for outcome in standing.played
        if measure(outcome, metric) is not None
        and all(term.ranks in _ranks(outcome) for term in _terms(outcome, metric))
    }


def _terms(outcome: Outcome, metric: str) -> list[Metric]:
    """The means over queries that add up to the metric; empty: it is not such a mean.

    A mean over folds of the same number of images is a mean over all queries.
    """
    return query_terms(metric, outcome.record.metrics)


def _paired(board: Board, first: Standing, second: Standing, metric: str) -> Paired | None:
    firsts, seconds = _common(_usable(first, metric), _usable(second, metric))
    if not firsts:
        return None
    sign = -1 if METRICS[metric].less_is_better else 1
    first_values = [measure(outcome, metric) for outcome in firsts]
    second_values = [measure(outcome, metric) for outcome in seconds]
    by_image = _differences(_per_image(board, firsts, metric), _per_image(board, seconds, metric))
    return Paired(
        first=first.preset,
        second=second.preset,
        metric=metric,
        firsts=first_values,
        seconds=second_values,
        by_seed=[sign * (a - b) for a, b in zip(first_values, second_values, strict=True)],
        by_image=by_image,
        replicates=_resampled(by_image) if by_image else _own_differences(firsts, seconds, metric),
    )


def _compared(paired: Paired, p: float | None) -> Comparison:
    differences = np.array(paired.by_seed)
    return Comparison(
        first=paired.first,
        second=paired.second,
        metric=paired.metric,
        firsts=paired.firsts,
        seconds=paired.seconds,
        difference=float(differences.mean()),
        std=float(differences.std(ddof=1)) if len(differences) > 1 else None,
        interval=significance.difference_interval(differences, paired.replicates),
        p=p,
    )


def _p_values(by_image: list[list[PerImage]]) -> list[float | None]:
    """p of each comparison; None where the metric is not a mean over queries."""
    columns = [_shares(parts) for parts in by_image if parts]
    p_values = iter(significance.permutation_p(np.stack(columns, axis=1)) if columns else ())
    return [float(next(p_values)) if parts else None for parts in by_image]


def _differences(firsts: list[PerImage], seconds: list[PerImage]) -> list[PerImage]:
    """First minus second in every direction; both have the same queries."""
    pairs = zip(firsts, seconds, strict=True)
    return [PerImage(first.sums - second.sums, first.counts) for first, second in pairs]


def _shares(parts: list[PerImage]) -> np.ndarray:
    """What every group of images adds to the metric, (G,)."""
    return sum(part.sums / part.counts.sum() for part in parts)


def _resampled(parts: list[PerImage]) -> np.ndarray:
    """The metric in every resample of the images, (T,)."""
    return sum(significance.replicates(part.sums, part.counts) for part in parts)


def _own_replicates(outcomes: list[Outcome], metric: str) -> np.ndarray | None:
    """Replicates of S, (200,), the mean over the outcomes; None for every other metric, and where
    an outcome has none."""
    if metric != "overlap_s":
        return None
    replicates = [_overlap_replicates(outcome.folder) for outcome in outcomes]
    return None if any(r is None for r in replicates) else np.mean(replicates, axis=0)


def _own_differences(
    firsts: list[Outcome], seconds: list[Outcome], metric: str
) -> np.ndarray | None:
    """Replicates of the difference of S. All cells share their resamples, so it is paired."""
    first, second = _own_replicates(firsts, metric), _own_replicates(seconds, metric)
    return None if first is None or second is None else first - second


def _per_image(board: Board, outcomes: list[Outcome], metric: str) -> list[PerImage]:
    """The mean of the outcomes, one entry per direction of the metric; empty: it is not a mean
    over queries."""
    terms_of: dict[str, list[Metric]] = {}
    for term in _terms(outcomes[0], metric):
        terms_of.setdefault(term.ranks, []).append(term)
    per_image = []
    for terms in terms_of.values():
        owners = _owners(board.dataset)
        parts = [_of_outcome(outcome, terms, owners) for outcome in outcomes]
        sums = np.mean([part.sums for part in parts], axis=0)
        per_image.append(PerImage(sums, parts[0].counts))
    return per_image


def _of_outcome(outcome: Outcome, terms: list[Metric], owners: Owners) -> PerImage:
    """The values of the queries of one direction, added up over its terms."""
    direction = terms[0].ranks
    queries = _ranks(outcome)[direction]
    owner = owners.of(terms[0].direction, queries)
    if len(owner) != len(queries):
        raise UserError(
            f"{outcome.folder}/scores/ranks.parquet: {direction}",
            f"the {len(owner)} queries of the test split",
            len(queries),
            "run: dvc repro",
        )
    ranks_Q = queries["rank"].to_numpy()
    values_Q = sum(term.of_queries(ranks_Q) for term in terms)
    return PerImage(
        sums=np.bincount(owner, values_Q, minlength=owners.groups),
        counts=np.bincount(owner, minlength=owners.groups),
    )


def _overlap_replicates(folder: Path) -> np.ndarray | None:
    """Replicates of S, (200,); None for records that are older than they."""
    path = folder / "scores/samples.npz"
    if not path.is_file():
        return None
    return read_arrays(path).get("overlap_replicates")


# A report reads the same files many times: they are cached until they are written again.


def _ranks(outcome: Outcome) -> dict[str, pd.DataFrame]:
    """The rows of scores/ranks.parquet, by direction."""
    path = (outcome.folder / "scores/ranks.parquet").absolute()
    return _read_ranks(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2048)
def _read_ranks(path: Path, written: int) -> dict[str, pd.DataFrame]:
    return dict(list(read_parquet(path).groupby("direction", sort=False)))


def _owners(dataset: str) -> Owners:
    path = (prepared_tables.ROOT / dataset / "captions.parquet").absolute()
    written = path.stat().st_mtime_ns if path.is_file() else 0  # reading says what is missing
    return _read_owners(path, written)


@lru_cache(maxsize=8)
def _read_owners(path: Path, written: int) -> Owners:
    data = prepared_tables.read(path.parent.name)
    split = data.split("test")
    captions = data.captions["caption_id"].iloc[split.caption_rows]
    images = pd.Index(data.images["image_id"].iloc[split.image_rows])
    phrases = data.regions["image_id"].iloc[split.region_rows]
    return Owners(
        of_image=split.group_of_image,
        of_caption=pd.Series(split.group_of_caption, index=captions),
        of_phrase=split.group_of_image[images.get_indexer(phrases)],
    )

"""What a board's records say about its metrics: intervals, paired comparisons, rank groups.

Recalls and rsum are means over queries: their images are resampled and exchanged, with all their
captions and phrases; images of one group, such as a person's, together. S brings its own
replicates. Every other metric, times among them, has its seeds and nothing else.
"""

import re
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
from benchmark.core.errors import UserError
from benchmark.data import prepared_tables
from benchmark.papers.printed_tables import METRICS
from benchmark.protocol import overlap
from benchmark.protocol.ranking import CUTOFFS

SLACK = 0.01  # by which S may exceed its bound before its bins are called too coarse
TIMES = {"per_image": 1e6, "per_caption": 1e6, "per_pair": 1e6, "per_batch": 1e3}  # of a second
RECALL = re.compile(r"(fold_)?(i2t|t2i|s2s|p2r)_r(\d+)")
SUMMED = ("i2t", "t2i", "p2r")  # directions whose recalls rsum adds up, those that a record has


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much better one preset is than another, over the seeds that both were played with.

    Positive: the first is better, which is to say less where less is better. In the metric's unit.
    """

    first: str
    second: str
    metric: str
    firsts: list[float]  # the metric of every common seed
    seconds: list[float]
    difference: float  # of the means
    std: float | None  # of the seeds' differences; None of one seed
    interval: tuple[float, float] | None  # None: one seed, and no images to resample
    p: float | None  # of exchanged images; None: the metric is no mean over queries

    @property
    def seeds(self) -> int:
        """How many seeds the two have in common."""
        return len(self.firsts)


class PerImage(NamedTuple):
    """A direction's queries, gathered by the group of their image: (G,) each."""

    sums: np.ndarray  # of the queries' values
    counts: np.ndarray  # of queries


class Paired(NamedTuple):
    """Two presets over their common seeds."""

    first: str
    second: str
    metric: str
    firsts: list[float]  # by seed
    seconds: list[float]
    by_seed: list[float]  # differences; positive: the first is better
    by_image: list[PerImage]  # the same, the seeds' mean; empty: the metric has no queries
    replicates: np.ndarray | None  # (T,) of the difference of the means; None: cannot be known


class Owners(NamedTuple):
    """Which group of images every query of the test split belongs to, in [0, G).

    A group is an image, or all images of a person.
    """

    of_image: np.ndarray  # in the split's order
    of_caption: pd.Series  # by caption id, in the split's order
    of_phrase: np.ndarray  # in the order of the regions

    @property
    def groups(self) -> int:
        return int(self.of_image.max()) + 1

    def of(self, way: str, queries: pd.DataFrame) -> np.ndarray:
        """(Q,) of the queries of a direction. Sentence queries are some captions, not all."""
        if way == "s2s":
            return self.of_caption.loc[queries["query"]].to_numpy()
        of_way = {"i2t": self.of_image, "t2i": self.of_caption.to_numpy(), "p2r": self.of_phrase}
        return of_way[way.removesuffix("_fold")]


def measure(outcome: Outcome, metric: str) -> float | None:
    """The metric of one cell; None where it was not measured."""
    if metric in TIMES:
        seconds = outcome.trainings[0].seconds | outcome.scoring.seconds
        return seconds[metric] * TIMES[metric] if metric in seconds else None
    return outcome.record.metrics.get(metric)


def values(standing: Standing, metric: str) -> list[float]:
    """The metric of every seed that has it."""
    found = [measure(outcome, metric) for outcome in standing.played]
    return [value for value in found if value is not None]


def is_coarse(standing: Standing) -> bool:
    """Whether S lies above 1 - KS, which bounds the true overlap: its bins are too coarse."""
    return standing.mean("overlap_s") > standing.mean("one_minus_ks") + SLACK


def interval(board: Board, standing: Standing, metric: str) -> tuple[float, float] | None:
    """95% interval of the seeds' mean, had other images been drawn; None for seeds-only metrics."""
    outcomes = list(_usable(standing, metric).values())
    if not outcomes:
        return None
    by_image = _per_image(board, outcomes, metric)
    if by_image:
        return significance.percentiles(_resampled(by_image))
    replicates = _own_replicates(outcomes, metric)
    mean = fmean(measure(outcome, metric) for outcome in outcomes)
    return None if replicates is None else overlap.interval(mean, replicates)


def compare(board: Board, first: Standing, second: Standing, metric: str) -> Comparison | None:
    """Paired over the seeds that both have the metric for; None where they share no seed."""
    return compare_all(board, [(first, second, metric)])[0]


def compare_all(
    board: Board, pairs: Sequence[tuple[Standing, Standing, str]]
) -> list[Comparison | None]:
    """`compare` of every pair and its metric; images are exchanged for all of them at once."""
    paired = [_paired(board, first, second, metric) for first, second, metric in pairs]
    p_values = _p_values([one.by_image if one else [] for one in paired])
    return [one and _compared(one, p) for one, p in zip(paired, p_values, strict=True)]


def rank_groups(board: Board) -> list[int]:
    """Group number of each of `board.ranked`, by rsum (significance.rank_groups); of one task.

    Told apart are two presets by the permutation test over the images, and, where they share two
    seeds or more, only if the interval over images and seeds leaves zero out.
    """
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
    """Whether the difference of rsum may be that of the seeds; of one seed nobody knows."""
    paired = _paired(board, first, second, "rsum")
    if paired is None or len(paired.by_seed) < 2:
        return False
    low, high = significance.difference_interval(np.array(paired.by_seed), paired.replicates)
    return low <= 0 <= high


def _mean_difference(first: dict[int, np.ndarray], second: dict[int, np.ndarray]) -> np.ndarray:
    """(G,) over the common seeds; zeros, which nothing can be told from, where there is none."""
    firsts, seconds = _common(first, second)
    if not firsts:
        return np.zeros_like(next(iter(first.values())))
    return np.mean(firsts, axis=0) - np.mean(seconds, axis=0)


def _common(first: dict, second: dict) -> tuple[list, list]:
    """The values of the keys that both have, in the same order."""
    keys = [key for key in first if key in second]
    return [first[key] for key in keys], [second[key] for key in keys]


def _usable(standing: Standing, metric: str) -> dict[int, Outcome]:
    """By seed: those that have the metric and, where it is a mean over queries, its ranks."""
    return {
        outcome.record.seed: outcome
        for outcome in standing.played
        if measure(outcome, metric) is not None
        and all(way in _ranks(outcome) for way in _recalls(outcome, metric))
    }


def _recalls(outcome: Outcome, metric: str) -> dict[str, tuple[int, ...]]:
    """The recalls that a metric adds up: direction -> cutoffs. Empty: no mean over queries.

    Those of the folds are means over folds of the same number of images, so of all queries.
    """
    if metric in ("rsum", "fold_rsum"):
        end = "_fold" if metric == "fold_rsum" else ""
        return {f"{way}{end}": CUTOFFS for way in SUMMED if f"{way}_r1" in outcome.record.metrics}
    found = RECALL.fullmatch(metric)
    return {found[2] + ("_fold" if found[1] else ""): (int(found[3]),)} if found else {}


def _paired(board: Board, first: Standing, second: Standing, metric: str) -> Paired | None:
    firsts, seconds = _common(_usable(first, metric), _usable(second, metric))
    if not firsts:
        return None
    sign = -1 if METRICS[metric].less_is_better else 1
    ours, others = ([measure(outcome, metric) for outcome in one] for one in (firsts, seconds))
    by_image = _differences(_per_image(board, firsts, metric), _per_image(board, seconds, metric))
    return Paired(
        first=first.preset,
        second=second.preset,
        metric=metric,
        firsts=ours,
        seconds=others,
        by_seed=[sign * (a - b) for a, b in zip(ours, others, strict=True)],
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
    """Of each comparison; None of one that has no queries."""
    columns = [_shares(parts) for parts in by_image if parts]
    found = iter(significance.permutation_p(np.stack(columns, axis=1)) if columns else ())
    return [float(next(found)) if parts else None for parts in by_image]


def _differences(firsts: list[PerImage], seconds: list[PerImage]) -> list[PerImage]:
    """First less second, direction by direction. They answered the same queries."""
    both = zip(firsts, seconds, strict=True)
    return [PerImage(first.sums - second.sums, first.counts) for first, second in both]


def _shares(parts: list[PerImage]) -> np.ndarray:
    """(G,) what every image adds to the metric."""
    return sum(part.sums / part.counts.sum() for part in parts)


def _resampled(parts: list[PerImage]) -> np.ndarray:
    """(T,) of the metric, had other images been drawn."""
    return sum(significance.replicates(part.sums, part.counts) for part in parts)


def _own_replicates(outcomes: list[Outcome], metric: str) -> np.ndarray | None:
    """(200,) of S, the mean over the outcomes; None where one has none, and for other metrics."""
    found = [_overlap_replicates(o.folder) for o in outcomes] if metric == "overlap_s" else [None]
    return None if any(one is None for one in found) else np.mean(found, axis=0)


def _own_differences(
    firsts: list[Outcome], seconds: list[Outcome], metric: str
) -> np.ndarray | None:
    """The resamples are the same for every cell, so the difference is a paired one."""
    first, second = _own_replicates(firsts, metric), _own_replicates(seconds, metric)
    return None if first is None or second is None else first - second


def _per_image(board: Board, outcomes: list[Outcome], metric: str) -> list[PerImage]:
    """Of every direction of the metric, the outcomes' mean; empty: it is no mean over queries."""
    found = []
    for way, cutoffs in _recalls(outcomes[0], metric).items():
        owners = _owners(board.dataset)
        parts = [_of_outcome(outcome, way, cutoffs, owners) for outcome in outcomes]
        sums = np.mean([part.sums for part in parts], axis=0)
        found.append(PerImage(sums, parts[0].counts))
    return found


def _of_outcome(outcome: Outcome, way: str, cutoffs: tuple[int, ...], owners: Owners) -> PerImage:
    """Hits of a direction in percent, added up over the cutoffs."""
    queries = _ranks(outcome)[way]
    owner = owners.of(way, queries)
    if len(owner) != len(queries):
        raise UserError(
            f"{outcome.folder}/ranks.parquet: {way}: expected the {len(owner)} queries of the test "
            f"split, found {len(queries)}; run: dvc repro"
        )
    ranks = queries["rank"].to_numpy()
    hits = 100.0 * sum(ranks < cutoff for cutoff in cutoffs)
    return PerImage(
        sums=np.bincount(owner, hits, minlength=owners.groups),
        counts=np.bincount(owner, minlength=owners.groups),
    )


def _overlap_replicates(folder: Path) -> np.ndarray | None:
    """(200,) of S; None in records that are older than samples."""
    path = folder / "scores/samples.npz"
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as stored:
        return stored["overlap_replicates"] if "overlap_replicates" in stored else None


# A report asks for the same files again and again; one that was written anew is read anew.


def _ranks(outcome: Outcome) -> dict[str, pd.DataFrame]:
    """The rows of scores/ranks.parquet by direction."""
    path = (outcome.folder / "scores/ranks.parquet").absolute()
    return _read_ranks(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2048)
def _read_ranks(path: Path, written: int) -> dict[str, pd.DataFrame]:
    return dict(list(pd.read_parquet(path).groupby("direction", sort=False)))


def _owners(dataset: str) -> Owners:
    path = (prepared_tables.ROOT / dataset / "captions.parquet").absolute()
    written = path.stat().st_mtime_ns if path.is_file() else 0  # `read` says what is missing
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

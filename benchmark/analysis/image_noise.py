"""What single images do to a metric of a cell: from the ranks of its queries, or from the
resamples of S that a cell keeps. Knows no torch.

A report reads the same files many times: they are cached until they are written again.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmark.analysis import significance
from benchmark.analysis.boards import Outcome
from benchmark.analysis.rank_files import read_ranks, shown
from benchmark.core.array_files import read_arrays
from benchmark.core.errors import UserError
from benchmark.data import prepared_tables
from benchmark.papers.claimed_quantities import sides
from benchmark.protocol.metrics import METRICS, Metric, query_terms


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


def noise(outcome: Outcome, dataset: str, metric: str) -> np.ndarray | None:
    """What each image does to a metric, or to a difference of two, of one cell.

    (G,) as significance.deviations. For S, (T,) deviations of its resamples, whose squares add up
    to its variance likewise; all cells of a dataset share their resamples. None where images are
    not known to matter: times, MedR, means of scores, and S of records without resamples.
    """
    parts = [_noise_of(outcome, dataset, side) for side in sides(metric)]
    if any(part is None for part in parts):
        return None
    return parts[0] if len(parts) == 1 else parts[0] - parts[1]


def has_ranks(outcome: Outcome, metric: str) -> bool:
    """Whether the cell kept the ranks of all queries that the metric is a mean of."""
    terms = [term for side in sides(metric) for term in _terms(outcome, side)]
    return not terms or {term.ranks for term in terms} <= set(_ranks(outcome))


def units(outcome: Outcome, dataset: str, metric: str) -> int:
    """Number of groups of images that have a query of the metric; of S, of all groups."""
    terms = [term for side in sides(metric) for term in _terms(outcome, side)]
    owners = _owners(dataset)
    groups = [
        len(np.unique(owners.of(term.direction, _ranks(outcome)[term.ranks]))) for term in terms[:1]
    ]
    return groups[0] if groups else owners.groups


def choices(dataset: str) -> float:
    """`choices_of` the test split, from its tables."""
    return choices_of(_owners(dataset).of_image)


def choices_of(group_of_image: np.ndarray) -> float:
    """How many images there are for each relevant one, over captions that search them: all, or
    fewer where several images of a group are relevant."""
    sizes = np.bincount(group_of_image)
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


def largest(outcome: Outcome, metric: str) -> float:
    """The largest value of a mean over queries; of rsum, of all directions that the cell has."""
    return sum(term.range[1] for term in _terms(outcome, metric))


def overlap_replicates(outcome: Outcome) -> np.ndarray | None:
    """S of resamples of the images, (T,); None for records that are older than they."""
    path = (outcome.folder / "scores/samples.npz").absolute()
    return _read_replicates(path, path.stat().st_mtime_ns) if path.is_file() else None


def _noise_of(outcome: Outcome, dataset: str, metric: str) -> np.ndarray | None:
    if metric == "overlap_s":
        replicates_T = overlap_replicates(outcome)
        return None if replicates_T is None else _left(replicates_T)
    terms = _terms(outcome, metric)
    if not terms:
        return None
    path = _ranks_path(outcome)
    names = tuple(term.name for term in terms)
    return _of_queries(path, path.stat().st_mtime_ns, dataset, _written(dataset), names)


def _terms(outcome: Outcome, metric: str) -> list[Metric]:
    """The means over queries that add up to the metric; empty: it is not such a mean.

    A mean over folds of the same number of images is a mean over all queries.
    """
    return query_terms(metric, outcome.record.metrics) if metric in METRICS else []


@lru_cache(maxsize=4096)
def _of_queries(
    path: Path, written: int, dataset: str, prepared: int, names: tuple[str, ...]
) -> np.ndarray:
    terms_of: dict[str, list[Metric]] = {}
    for name in names:
        terms_of.setdefault(METRICS[name].ranks, []).append(METRICS[name])
    owners = _owners(dataset)
    return sum(_of_direction(path, written, terms, owners) for terms in terms_of.values())


def _of_direction(path: Path, written: int, terms: list[Metric], owners: Owners) -> np.ndarray:
    queries = _read_ranks(path, written)[terms[0].ranks]
    owner = owners.of(terms[0].direction, queries)
    if len(owner) != len(queries):
        raise UserError(
            f"{shown(path)}: {terms[0].ranks}",
            f"the {len(owner)} queries of the test split",
            len(queries),
            "run: dvc repro",
        )
    ranks_Q = queries["rank"].to_numpy()
    values_Q = sum(term.of_queries(ranks_Q) for term in terms)
    return significance.deviations(
        sums_G=np.bincount(owner, values_Q, minlength=owners.groups),
        counts_G=np.bincount(owner, minlength=owners.groups),
    )


def _left(replicates_T: np.ndarray) -> np.ndarray | None:
    """Deviations whose squares add up to the variance. A resample that is NaN, as one of a single
    group, is so for every cell of the dataset: it adds nothing."""
    is_finite_T = np.isfinite(replicates_T)
    if is_finite_T.sum() < 2:
        return None
    left_T = replicates_T - replicates_T[is_finite_T].mean()
    return np.where(is_finite_T, left_T, 0.0) / np.sqrt(is_finite_T.sum() - 1)


@lru_cache(maxsize=2048)
def _read_replicates(path: Path, written: int) -> np.ndarray | None:
    return read_arrays(path).get("overlap_replicates")


def _ranks(outcome: Outcome) -> dict[str, pd.DataFrame]:
    """The rows of scores/ranks.parquet, by direction."""
    path = _ranks_path(outcome)
    return _read_ranks(path, path.stat().st_mtime_ns)


def _ranks_path(outcome: Outcome) -> Path:
    return _absolute(outcome.folder, os.getcwd())


@lru_cache(maxsize=4096)  # asked for again and again, by each metric of each comparison
def _absolute(folder: Path, working: str) -> Path:
    return working / folder / "scores/ranks.parquet"


@lru_cache(maxsize=2048)
def _read_ranks(path: Path, written: int) -> dict[str, pd.DataFrame]:
    return dict(list(read_ranks(path).groupby("direction", sort=False)))


def _owners(dataset: str) -> Owners:
    return _read_owners(_captions(dataset), _written(dataset))


def _captions(dataset: str) -> Path:
    return (prepared_tables.ROOT / dataset / "captions.parquet").absolute()


def _written(dataset: str) -> int:
    path = _captions(dataset)
    return path.stat().st_mtime_ns if path.is_file() else 0  # reading says what is missing


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

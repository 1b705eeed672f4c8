"""The files beside a cell's record, in results/<season>/<dataset>/<preset>/<seed>/scores/.

    ranks.npz      of every cell: ranks of all relevant items, histograms of scores, replicates of S
    retrieved.npz  i2t (I, K), t2i (C, K): the first items of every query, best first, as rows of
                   the test split
    samples.npz    arrays that figures draw

Queries are in the order of the test split of the prepared tables, and have no names here.
docs/results.md describes the formats. Knows no torch.
"""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmark.core.errors import UserError
from benchmark.core.files import atomic, read_arrays, sha256, write_arrays
from benchmark.core.records import Record
from benchmark.data.prepared_tables import Prepared, has_sibling

RANKS, RETRIEVED, SAMPLES = "scores/ranks.npz", "scores/retrieved.npz", "scores/samples.npz"
RESULTS, ELSEWHERE = "results", Path("data/samples")  # roots of what git keeps and does not keep
DIRECTIONS = ("i2t", "t2i", "i2t_fold", "t2i_fold", "s2s", "p2r")
LAYER = "@"  # between direction and layer in the names of ranks: t2i@crowd
BEST = "_best"  # end of the name of ranks of which only the best one of a query is known
BINS = 1000  # of the histograms
COUNTS = "_counts"  # end of the name of how many ranks each query has, where it is not one


@dataclass(frozen=True, eq=False)
class Ranks:
    """Zero-based ranks of the relevant items of Q queries: how many items of the gallery stand
    before each. Ties count against the method."""

    values: np.ndarray  # (N,) int64, query by query, in ascending order
    counts: np.ndarray  # (Q,) int64, how many of them each query has, 1 or more
    knows_all: bool = True  # False: the best one of each query is known, and no other

    @classmethod
    def of_best(cls, ranks_Q: np.ndarray) -> "Ranks":
        """Of the best relevant item alone."""
        return cls(ranks_Q.astype(np.int64), np.ones(len(ranks_Q), np.int64), knows_all=False)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def best(self) -> np.ndarray:
        """(Q,) the rank of each query's best relevant item."""
        return self.values[self.counts.cumsum() - self.counts]

    @property
    def queries(self) -> np.ndarray:
        """(N,) the query of each rank."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def at(self, queries: np.ndarray) -> "Ranks":
        """Those of some queries, chosen by a mask (Q,)."""
        return Ranks(self.values[queries[self.queries]], self.counts[queries], self.knows_all)


@dataclass(frozen=True, eq=False)
class Histograms:
    """How many matched and unmatched pairs have scores between two edges, from the least score to
    the greatest one of all."""

    edges: np.ndarray  # (B + 1,) float64, evenly spaced
    matched: np.ndarray  # (B,) whole numbers; of 2,000 evenly spaced order statistics of all
    unmatched: np.ndarray  # (B,) scores where the results are older than these counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """What is kept of the scores of a cell; of a cell without a result, nothing."""

    ranks: dict[str, Ranks] = field(default_factory=dict)  # by direction, one of DIRECTIONS, or
    # direction and layer
    histograms: Histograms | None = None
    replicates: np.ndarray | None = None  # (R,) S of bootstrap resamples of the test images

    def best(self, direction: str) -> np.ndarray:
        """(Q,) rank of the best relevant item of every query."""
        return self.ranks[direction].best

    def all(self, direction: str) -> Ranks | None:
        """The ranks of all relevant items; None where only the best ones are known."""
        ranks = self.ranks[direction]
        return ranks if ranks.knows_all else None


def of_layer(direction: str, layer: str) -> str:
    """The name of ranks by a layer of relevance beside `own`."""
    return f"{direction}{LAYER}{layer}"


def write_scores(path: Path, scores: Scores) -> None:
    """Write a ranks.npz. Equal scores give equal bytes."""
    arrays: dict[str, np.ndarray] = {}
    for direction, ranks in scores.ranks.items():
        arrays[direction if ranks.knows_all else f"{direction}{BEST}"] = packed(ranks.values)
        if (ranks.counts != 1).any():
            arrays[f"{direction}{COUNTS}"] = packed(ranks.counts)
    if scores.histograms:
        arrays["score_range"] = scores.histograms.edges[[0, -1]].astype(np.float64)
        arrays["matched"] = packed(scores.histograms.matched)
        arrays["unmatched"] = packed(scores.histograms.unmatched)
    if scores.replicates is not None:
        arrays["overlap_replicates"] = scores.replicates.astype(np.float32)
    write_arrays(path, arrays)


def read_scores(folder: Path, record: Record | None = None) -> Scores:
    """What ranks.npz of a cell's folder holds; `record` has the digest that its bytes must have.
    Raises UserError for a missing or damaged file."""
    arrays = _read(folder / RANKS, RANKS, record)
    ranks = {}
    layers = [name for name in arrays if LAYER in name and not name.endswith(COUNTS)]
    for direction in (*DIRECTIONS, *layers):
        if f"{direction}{BEST}" in arrays:
            ranks[direction] = Ranks.of_best(unpacked(arrays[f"{direction}{BEST}"]))
        elif direction in arrays:
            values, counts = unpacked(arrays[direction]), arrays.get(f"{direction}{COUNTS}")
            counts = np.ones_like(values) if counts is None else unpacked(counts)
            ranks[direction] = Ranks(values, counts)
    histograms = None
    if "score_range" in arrays:
        counts = (unpacked(arrays[name]) for name in ("matched", "unmatched"))
        histograms = Histograms(np.linspace(*arrays["score_range"], BINS + 1), *counts)
    return Scores(ranks=ranks, histograms=histograms, replicates=arrays.get("overlap_replicates"))


def read_retrieved(folder: Path, record: Record | None = None) -> dict[str, np.ndarray]:
    """The first items of every query, best first: i2t (I, K), t2i (C, K); empty of localisation
    and of a cell without a result. Raises UserError for a missing or damaged file."""
    arrays = _read(kept(folder, RETRIEVED), RETRIEVED, record)
    return {way: rows_QK.astype(np.int32) for way, rows_QK in arrays.items()}


def write_retrieved(path: Path, retrieved: Mapping[str, np.ndarray]) -> None:
    """Write a retrieved.npz, atomically: rows by LZMA, in the smallest type that holds them, take
    three tenths less than by `write_arrays`."""
    with atomic(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_LZMA) as file:
        for way, rows_QK in retrieved.items():
            with file.open(f"{way}.npy", "w") as stored:
                kind = np.min_scalar_type(rows_QK.max(initial=0))
                np.lib.format.write_array(stored, rows_QK.astype(kind), allow_pickle=False)


def read_samples(folder: Path, record: Record | None = None) -> dict[str, np.ndarray]:
    """The arrays that figures draw, by name. Raises as `read_retrieved`."""
    return _read(kept(folder, SAMPLES), SAMPLES, record)


def kept(folder: Path, name: str) -> Path:
    """Where RETRIEVED or SAMPLES of a cell lie: in its folder, or where git does not keep them."""
    path = folder / name
    if path.is_file() or folder.parts[0] != RESULTS:
        return path
    return ELSEWHERE.joinpath(*folder.parts[1:], path.name)


def test_queries(data: Prepared) -> dict[str, np.ndarray]:
    """The ids of the queries of the test split by direction, in the order of the ranks."""
    split = data.split("test")
    captions = data.captions["caption_id"].iloc[split.caption_rows].to_numpy()
    images = data.images["image_id"].iloc[split.image_rows].to_numpy()
    return {
        "i2t": images,
        "t2i": captions,
        "i2t_fold": images,
        "t2i_fold": captions,
        "s2s": captions[has_sibling(split.image_of_caption)],
        "p2r": data.regions["phrase_id"].iloc[split.region_rows].to_numpy(),
    }


def packed(values: np.ndarray) -> np.ndarray:
    """Whole numbers (N,) from 0 as planes of their bytes, (P, N) uint8, least significant first:
    compressed, they take a sixth less than the numbers."""
    planes = values.astype("<u8").view(np.uint8).reshape(-1, 8).T
    return np.ascontiguousarray(planes[: max(1, 1 + max(np.flatnonzero(planes.any(1)), default=0))])


def unpacked(planes: np.ndarray) -> np.ndarray:
    """The numbers (N,) int64 that `packed` made these planes of."""
    return sum(plane.astype(np.int64) << 8 * place for place, plane in enumerate(planes))


def _read(path: Path, name: str, record: Record | None) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise UserError(path, "a file of an evaluation", "nothing", "run: dvc repro, or dvc pull")
    if record is not None and name in record.files and sha256(path) != record.files[name]:
        raise UserError(path, "the bytes that were written", "others", "run: dvc repro --force")
    return read_arrays(path)

"""The results of cells: as an evaluation leaves them, and as git keeps them.

A cell's own files, in data/cells/<season>/<dataset>/<preset>/<seed>/:

    record.json           what was run and how it ended
    scores/ranks.npz      ranks of all relevant items, histograms of scores, replicates of S
    scores/retrieved.npz  i2t (I, K), t2i (C, K): the first items of every query, best first, as
                          rows of the test split
    scores/samples.npz    arrays that figures draw

The last two lie in data/samples/ where git does not keep them. What a cell cost is in
data/costs/<season>/<dataset>/<preset>/<seed>/, in a file for each result.

What git keeps, in results/<season>/<dataset>/, with the cells as PRESET/SEED:

    records.json, costs.json              of all cells
    ranks.zip, answers.zip, samples.zip   PRESET/SEED.npz: the cells' own files, byte by byte

Those of all folds of a dataset lie in results/<season>/<dataset>_folds/ and
data/cells/<season>/<dataset>_folds/, as NUMBER/PRESET/SEED.

In external/ beside them are the same files of the rows that `score` added. Queries are
in the order of the test split of the prepared tables, and have no names here.
docs/results.md describes the formats. Imports no torch.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmark.contracts import committed
from benchmark.core.errors import UserError, checked
from benchmark.core.files import (
    StoredArrays,
    npz_of,
    parse_arrays,
    read_archive,
    read_object,
    remove,
    sha256,
    write_archive,
    write_bytes,
    write_json,
    write_text,
)
from benchmark.core.names import folder_of, prefix_of
from benchmark.core.records import (
    RECORD,
    Costs,
    Provenance,
    Record,
    read_all,
    read_record,
    text_of,
)
from benchmark.data.prepared_tables import Prepared, has_sibling
from benchmark.data.rank_keys import LAYER, OWN_KEYS, RankKey

RANKS, RETRIEVED, SAMPLES = (
    "scores/ranks.npz",
    "scores/retrieved.npz",
    "scores/samples.npz",
)
RECORDS, COSTS = "records.json", "costs.json"
ARCHIVES = {RANKS: "ranks.zip", RETRIEVED: "answers.zip", SAMPLES: "samples.zip"}
KEPT_FILES = (RECORDS, COSTS, *ARCHIVES.values())
# roots of what git keeps, and of more
RESULTS, ELSEWHERE = Path("results"), Path("data/samples")
# folder beside the files of a dataset, of rows that `score` added
EXTERNAL = "external"
DIGITS = 16  # of the sha256 in the name of a file of costs
BINS = 1000  # of the histograms
# ends of names in ranks.npz
BEST = "_best"  # ranks of which only the best one of each query is known
COUNTS = "_counts"  # how many ranks each query has, unless all have one


@dataclass(frozen=True, eq=False)
class Ranks:
    """Zero-based ranks of the relevant items of Q queries: how many items of the
    gallery stand before each. Ties count against the method."""

    values: np.ndarray  # (N,) int64, query by query, in ascending order
    counts: np.ndarray  # (Q,) int64, how many of them each query has, 1 or more
    knows_all: bool = True  # False: the best one of each query is known, and no other

    @classmethod
    def of_best(cls, ranks_Q: np.ndarray) -> "Ranks":
        """Of the best relevant item alone."""
        return cls(
            ranks_Q.astype(np.int64), np.ones(len(ranks_Q), np.int64), knows_all=False
        )

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def best(self) -> np.ndarray:
        """(Q,) the rank of each query's best relevant item."""
        return self.values[self.counts.cumsum() - self.counts]

    @property
    def queries(self) -> np.ndarray:
        """(N,) the query of each rank."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def at(self, queries: np.ndarray) -> "Ranks":
        """Those of some queries, chosen by a mask (Q,)."""
        return Ranks(
            self.values[queries[self.queries]], self.counts[queries], self.knows_all
        )


@dataclass(frozen=True, eq=False)
class Histograms:
    """How many matched and unmatched pairs have scores between two edges, from the
    least score to the greatest one of all."""

    edges: np.ndarray  # (B + 1,) float64, evenly spaced
    # (B,) whole numbers; older results counted 2,000 evenly spaced order statistics of
    # the scores instead of all scores
    matched: np.ndarray
    unmatched: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """What is kept of the scores of a cell; of a cell without a result, nothing."""

    ranks: dict[RankKey, Ranks] = field(default_factory=dict)
    histograms: Histograms | None = None
    # (R,) S of bootstrap resamples of the test images
    replicates: np.ndarray | None = None

    def best(self, direction: str) -> np.ndarray:
        """(Q,) rank of the best relevant item by `own` of every query of the split."""
        return self.ranks[RankKey(direction)].best


def scores_npz(scores: Scores) -> bytes:
    """The bytes of a ranks.npz. Equal scores give equal bytes."""
    arrays: dict[str, np.ndarray] = {}
    for key, ranks in scores.ranks.items():
        end = "" if ranks.knows_all else BEST
        arrays[f"{key.name}{end}"] = packed(ranks.values)
        if (ranks.counts != 1).any():
            arrays[f"{key.name}{COUNTS}"] = packed(ranks.counts)
    if histograms := scores.histograms:
        arrays["score_range"] = histograms.edges[[0, -1]].astype(np.float64)
        arrays["matched"] = packed(histograms.matched)
        arrays["unmatched"] = packed(histograms.unmatched)
    if scores.replicates is not None:
        arrays["overlap_replicates"] = scores.replicates.astype(np.float32)
    return npz_of(arrays)


class StoredRanks(Mapping[RankKey, Ranks]):
    """Ranks among the arrays of a ranks.npz: first those of `own`, then those of
    layers."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.seen: dict[RankKey, Ranks] = {}
        self.known = [key for key in OWN_KEYS if self._is_there(key)]
        for name in arrays:
            if LAYER in name and not name.endswith(COUNTS):
                self.known.append(RankKey.read(name.removesuffix(BEST)))

    def _is_there(self, key: RankKey) -> bool:
        return key.name in self.arrays or f"{key.name}{BEST}" in self.arrays

    def __getitem__(self, key: RankKey) -> Ranks:
        if key not in self.seen:
            self.seen[key] = self._read(key)
        return self.seen[key]

    def _read(self, key: RankKey) -> Ranks:
        if not self._is_there(key):
            raise KeyError(key)
        if f"{key.name}{BEST}" in self.arrays:
            return Ranks.of_best(unpacked(self.arrays[f"{key.name}{BEST}"]))
        values, counts = unpacked(self.arrays[key.name]), f"{key.name}{COUNTS}"
        if counts in self.arrays:
            return Ranks(values, unpacked(self.arrays[counts]))
        return Ranks(values, np.ones_like(values))

    def __contains__(self, key: object) -> bool:
        return key in self.known

    def __iter__(self) -> Iterator[RankKey]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


@dataclass(frozen=True, eq=False)
class StoredScores:
    """The `Scores` in a ranks.npz. Each array is read when it is asked for, since a
    verdict needs only two or three of them."""

    arrays: Mapping[str, np.ndarray]

    @cached_property
    def ranks(self) -> StoredRanks:
        return StoredRanks(self.arrays)

    @cached_property
    def histograms(self) -> Histograms | None:
        if "score_range" not in self.arrays:
            return None
        edges = np.linspace(*self.arrays["score_range"], BINS + 1)
        matched, unmatched = self.arrays["matched"], self.arrays["unmatched"]
        return Histograms(edges, unpacked(matched), unpacked(unmatched))

    @cached_property
    def replicates(self) -> np.ndarray | None:
        return self.arrays.get("overlap_replicates")

    def best(self, direction: str) -> np.ndarray:
        """As `Scores.best`."""
        return self.ranks[RankKey(direction)].best


def scores_of(npz: bytes, where: object = RANKS) -> StoredScores:
    """What the bytes of a ranks.npz hold. Raises UserError for damaged ones, and where
    damaged arrays are asked for."""
    return StoredScores(StoredArrays(npz, where))


def retrieved_npz(retrieved: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a retrieved.npz: rows by LZMA, in the smallest type that holds them,
    take three tenths less than by `npz_of`."""
    npz = io.BytesIO()
    with zipfile.ZipFile(npz, "w", zipfile.ZIP_LZMA) as file:
        for way, rows_QK in retrieved.items():
            with file.open(f"{way}.npy", "w") as stored:
                kind = np.min_scalar_type(rows_QK.max(initial=0))
                np.lib.format.write_array(
                    stored, rows_QK.astype(kind), allow_pickle=False
                )
    return npz.getvalue()


# Results of cells ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class CellResult:
    """What is kept of a cell: its record, what it cost, and the bytes of its arrays."""

    place: str  # <season>/<dataset>/<preset>/<seed>
    record: Record
    costs: Costs | None = None  # None: not read, or not known
    # RANKS, RETRIEVED and SAMPLES, as far as they are kept
    arrays: dict[str, bytes] = field(default_factory=dict)
    file: Path = Path(RECORDS)  # that the record was read from

    def has(self, name: str) -> bool:
        """Whether the arrays are here: kept by git, or in data/samples."""
        return name in self.arrays or self._elsewhere(name).is_file()

    def npz(self, name: str) -> bytes:
        """The bytes of RANKS, RETRIEVED or SAMPLES. Raises UserError where they are not
        here, and for others than the record names."""
        where = f"{self.place}/{name}"
        if not self.has(name):
            raise UserError(
                where,
                expected="a file of an evaluation",
                found="nothing",
                do="run: rematch play; or dvc pull, with a remote (docs/dvc.md)",
            )
        stored = self.arrays.get(name) or self._elsewhere(name).read_bytes()
        digest = self.record.files.get(name)
        if digest and hashlib.sha256(stored).hexdigest() != digest:
            raise UserError(
                where,
                expected=f"sha256 {digest}",
                found="another checksum",
                do="run: dvc repro --force",
            )
        return stored

    @cached_property
    def scores(self) -> Scores | StoredScores:
        """What RANKS holds; nothing where a cell has none. Raises as `npz`."""
        return scores_of(self.npz(RANKS), self.place) if self.has(RANKS) else Scores()

    @cached_property
    def retrieved(self) -> dict[str, np.ndarray]:
        """The first items of every query, best first: i2t (I, K), t2i (C, K); empty of
        localisation and of a cell without a result. Raises as `npz`."""
        arrays = parse_arrays(self.npz(RETRIEVED), self.place)
        return {way: rows_QK.astype(np.int32) for way, rows_QK in arrays.items()}

    @cached_property
    def samples(self) -> dict[str, np.ndarray]:
        """The arrays that figures draw, by name. Raises as `npz`."""
        return parse_arrays(self.npz(SAMPLES), self.place)

    def _elsewhere(self, name: str) -> Path:
        return ELSEWHERE / self.place / Path(name).name


def read_cell(folder: Path, place: str) -> CellResult:
    """The result in a cell's own folder, without costs. Raises UserError where there is
    none."""
    paths = {name: folder / name for name in ARCHIVES}
    arrays = {name: path.read_bytes() for name, path in paths.items() if path.is_file()}
    record = read_record(folder)
    return CellResult(place=place, record=record, arrays=arrays, file=folder / RECORD)


def write_cell_arrays(
    folder: Path,
    place: str,
    paths: Mapping[str, Path],
    scores: Scores,
    retrieved: Mapping[str, np.ndarray],
    samples: Mapping[str, np.ndarray],
) -> None:
    """Write RANKS, RETRIEVED and SAMPLES to these paths, each in the cell's own folder
    or elsewhere. Those of an earlier evaluation in the other place, when git kept
    others, would be taken for these, and are removed."""
    npz = {
        RANKS: scores_npz(scores),
        RETRIEVED: retrieved_npz(retrieved),
        SAMPLES: npz_of(samples),
    }
    elsewhere = ELSEWHERE / place
    elsewhere.mkdir(parents=True, exist_ok=True)  # empty if git keeps all
    for name, path in paths.items():
        write_bytes(path, npz[name])
        for other in (folder / name, elsewhere / Path(name).name):
            if other != path:
                remove(other)


def has_record(folder: Path) -> bool:
    """Whether the evaluation of a cell left a result in its own folder."""
    return (folder / RECORD).is_file()


def read_kept(season: str, dataset: str) -> dict[str, CellResult]:
    """The results that git keeps of a dataset of a season, or of one of its folds, with
    those of external rows, by PRESET/SEED. Raises UserError for damaged files."""
    name = folder_of(dataset)
    prefix = prefix_of(dataset)
    folder = committed(RESULTS / season / name)
    place = f"{season}/{name}"
    kept = {}
    for source in (folder, folder / EXTERNAL):
        kept |= read_folder(source, place)
    cells = {}
    for key, cell in kept.items():
        if key.startswith(prefix):
            cells[key.removeprefix(prefix)] = cell
    return cells


def read_folder(folder: Path, place: str = "") -> dict[str, CellResult]:
    """The results in records.json and the files beside it; none where there are no
    files. `place` is SEASON/DATASET, by default the last parts of the path."""
    records = read_all(Record, folder / RECORDS)
    costs = read_all(Costs, folder / COSTS)
    files = {name: folder / archive for name, archive in ARCHIVES.items()}
    archives = {
        name: read_archive(path) for name, path in files.items() if path.is_file()
    }
    place = place or "/".join(folder.parts[-2:])
    cells = {}
    for name, record in records.items():
        member = f"{name}.npz"
        arrays = {kind: npz[member] for kind, npz in archives.items() if member in npz}
        cells[name] = CellResult(
            place=f"{place}/{name}",
            record=record,
            costs=costs.get(name),
            arrays=arrays,
            file=folder / RECORDS,
        )
    return cells


def write_folder(folder: Path, cells: Mapping[str, CellResult]) -> None:
    """Write the archives and costs.json and, last, records.json, whose checksums the
    archived files must have. Equal results give equal bytes."""
    for kind, archive in ARCHIVES.items():
        members = {}
        for name, cell in cells.items():
            if kind in cell.arrays:
                members[f"{name}.npz"] = cell.arrays[kind]
        write_archive(folder / archive, members)
    costs = {name: cell.costs for name, cell in cells.items() if cell.costs}
    write_text(folder / COSTS, _text_of_costs(costs))
    records = {
        name: cell.record.model_dump(mode="json") for name, cell in cells.items()
    }
    write_text(folder / RECORDS, text_of(records))


def write_external(folder: Path, rows: Mapping[str, CellResult]) -> None:
    """Write the rows that `score` added; without any the folder is removed."""
    if rows:
        write_folder(folder, rows)
    else:
        remove(folder)


def _text_of_costs(costs: Mapping[str, Costs]) -> str:
    """JSON with a line for each training and each scoring."""
    blocks = []
    for name in sorted(costs):
        facts = costs[name].model_dump(mode="json")
        lines = []
        for part in facts:
            lines.append(f'    "{part}": {json.dumps(facts[part], sort_keys=True)}')
        blocks.append(f'  "{name}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n" if blocks else "{}\n"


# Costs --------------------------------------------------------------------------------

# DVC restores an earlier result when its inputs are what they were then. So the name of
# a file of costs contains the digest of what was made, by which each result finds its
# own costs.


def write_training_cost(folder: Path, checkpoint: Path, cost: Provenance) -> None:
    """Write what a checkpoint cost."""
    write_json(_cost_file(folder, "training", checkpoint), cost.model_dump(mode="json"))


def read_training_cost(folder: Path, checkpoint: Path) -> Provenance | None:
    """What a checkpoint cost; None where it was not trained here."""
    path = _cost_file(folder, "training", checkpoint)
    return checked(Provenance, read_object(path), str(path)) if path.is_file() else None


def write_cell_costs(folder: Path, record: Path, costs: Costs) -> None:
    """Write what a result cost, by its record.json."""
    write_json(_cost_file(folder, "result", record), costs.model_dump(mode="json"))


def read_cell_costs(folder: Path, record: Path) -> Costs:
    """What a result cost, by its record.json. Raises UserError where it was not made
    here."""
    path = _cost_file(folder, "result", record)
    return checked(Costs, read_object(path), str(path))


def _cost_file(folder: Path, kind: str, made: Path) -> Path:
    return folder / f"{kind}-{sha256(made)[:DIGITS]}.json"


# Queries and packed numbers -----------------------------------------------------------


def test_queries(data: Prepared) -> dict[str, np.ndarray]:
    """The ids of the queries of the test split by direction, in the order of the
    ranks."""
    split = data.split("test")
    captions = data.captions["caption_id"].iloc[split.caption_rows].to_numpy()
    images = data.images["image_id"].iloc[split.image_rows].to_numpy()
    return {
        "i2t": images,
        "t2i": captions,
        "s2s": captions[has_sibling(split.image_of_caption)],
        "p2r": data.regions["phrase_id"].iloc[split.region_rows].to_numpy(),
    }


def packed(values: np.ndarray) -> np.ndarray:
    """Whole numbers (N,) from 0 as planes of their bytes, (P, N) uint8, least
    significant first: compressed, they take a sixth less than the numbers."""
    planes = values.astype("<u8").view(np.uint8).reshape(-1, 8).T
    used = np.flatnonzero(planes.any(1))
    count = 1 + max(used, default=0)
    return np.ascontiguousarray(planes[:count])


def unpacked(planes: np.ndarray) -> np.ndarray:
    """The numbers (N,) int64 that `packed` made these planes of."""
    values = np.zeros(planes.shape[1], np.int64)
    for place, plane in enumerate(planes):
        values += plane.astype(np.int64) << 8 * place
    return values

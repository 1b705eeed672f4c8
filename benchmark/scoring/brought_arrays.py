"""Embeddings and scores that were made elsewhere, read without trust. Nothing is unpickled.

    .npy          one array
    .npz          one array of numbers; `ids`, or `image_ids` and `caption_ids`, if it has them
    .parquet      one row per item: a column of lists, or one column per number; a column `id`,
                  `image_id` or `caption_id`, if it has one
    .safetensors  one tensor

Ids may also stand in <name>_ids.txt beside the file, one per line.
"""

import json
import zipfile
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.readers import npy_files

IDS = ("id", "image_id", "caption_id", "ids", "image_ids", "caption_ids")  # names of ids in files
KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # numbers in .safetensors
LONGEST_HEADER = 1 << 24  # bytes


@dataclass(frozen=True, kw_only=True)
class Rows:
    """An array (N, F) with what its rows belong to; of scores, its columns, too."""

    path: Path
    values: np.ndarray
    ids: list[str] | None = None  # None: the rows are in the order of the split
    columns: list[str] | None = None


def read_rows(path: Path) -> Rows:
    """The array of a file. Raises UserError for anything else than finite numbers (N, F)."""
    if path.suffix not in READERS:
        raise UserError(path, f"one of {', '.join(READERS)}", path.suffix or "no ending", "save so")
    with files.readable(path, f"a {path.suffix} file", "save it again"):
        rows = READERS[path.suffix](path)
        beside = path.with_name(f"{path.stem}_ids.txt")
        if rows.ids is None and files.is_file(beside):
            rows = replace(rows, ids=files.content(beside).decode().rstrip("\n").split("\n"))
    values = rows.values
    if values.ndim != 2 or 0 in values.shape or values.dtype.kind not in "fiu":
        found = f"{values.dtype} {values.shape}"
        raise UserError(path, "numbers (N, F)", found, "save one row per item")
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(values, np.float32)
    is_bad = ~np.isfinite(values).all(1)
    if is_bad.any():
        number = int(is_bad.argmax())
        name = f"row {number}" if rows.ids is None else f"row {number}, {rows.ids[number]!r}"
        found = f"NaN or infinity in {name} ({int(is_bad.sum())} such rows)"
        raise UserError(path, "finite numbers in single precision", found, "compute it again")
    return replace(rows, values=values)


def in_order(rows: Rows, wanted: list[str], what: str) -> np.ndarray:
    """The rows (N, F) of the wanted ids, in their order. Without ids, the rows are in this order
    already. Raises UserError where a row is missing, or their number is another."""
    return rows.values[_places(rows.path, rows.ids, len(rows.values), wanted, f"{what}s")]


def matrix_in_order(rows: Rows, images: list[str], captions: list[str]) -> np.ndarray:
    """The scores (I, C) of these images and captions, in their orders. Raises as `in_order`."""
    count = rows.values.shape[1]
    chosen = _places(rows.path, rows.columns, count, captions, "captions (columns)")
    return in_order(rows, images, "image")[:, chosen]


def _places(
    path: Path, ids: list[str] | None, count: int, wanted: list[str], what: str
) -> np.ndarray:
    do = "score --items FOLDER writes the ids that are wanted, in order"
    if ids is None:
        if count != len(wanted):
            raise UserError(path, f"the {len(wanted)} {what} of test", count, f"{do}; or give ids")
        return np.arange(count)
    index = pd.Index(ids)
    if len(ids) != count:
        raise UserError(path, f"an id for each of {count} {what}", len(ids), "correct the ids")
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        raise UserError(path, "every id once", f"{twice!r} twice", "correct the ids")
    places = index.get_indexer(wanted)
    if (places < 0).any():
        missing = wanted[int((places < 0).argmax())]
        found = f"none for {missing!r} ({int((places < 0).sum())} such in all)"
        raise UserError(path, f"a row for each of {len(wanted)} {what} of test", found, do)
    return places


# Formats ------------------------------------------------------------------------------------------


def _npy(path: Path) -> Rows:
    return Rows(path=path, values=npy_files.array_of(files.content(path)))


def _npz(path: Path) -> Rows:
    arrays = {}
    with files.opened(path) as file, zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            most = files.allowance(member.compress_size)
            with archive.open(member) as stored:
                content = files.bounded(stored, most, f"{path}: {member.filename}")
            arrays[member.filename.removesuffix(".npy")] = npy_files.array_of(content)
    ids = {name: arrays.pop(name).astype(str).tolist() for name in IDS if name in arrays}
    values = _only(arrays, path)
    columns = ids.pop("caption_ids") if "image_ids" in ids and "caption_ids" in ids else None
    return Rows(path=path, values=values, ids=next(iter(ids.values()), None), columns=columns)


def _parquet(path: Path) -> Rows:
    with files.opened(path) as file:
        facts = pq.ParquetFile(file).metadata
        if facts.num_rows * facts.num_columns * 8 > files.MOST:
            raise files.too_large(path, files.MOST)
        table = pq.read_table(file)
    frame = table.to_pandas()
    ids = next((frame.pop(name).astype(str).tolist() for name in IDS if name in frame), None)
    lists = [name for name in frame if frame[name].dtype == object]
    if len(lists) == 1:
        return Rows(path=path, values=np.stack(frame[lists[0]].tolist()), ids=ids)
    return Rows(path=path, values=frame.to_numpy(), ids=ids, columns=list(map(str, frame)))


def _safetensors(path: Path) -> Rows:
    """The format is a length, a header in JSON, and the bytes of the tensors."""
    content = files.content(path)
    length = int.from_bytes(content[:8], "little")
    if length > min(LONGEST_HEADER, len(content) - 8):
        raise ValueError("a header that is longer than the file")
    header, content = json.loads(content[8 : 8 + length]), content[8 + length :]
    tensors = {}
    for name in header.keys() - {"__metadata__"}:
        kind, shape = header[name]["dtype"], tuple(header[name]["shape"])
        start, end = header[name]["data_offsets"]
        if kind not in KINDS:
            raise ValueError(f"numbers of the kind {kind}")
        size = prod(shape) * np.dtype(KINDS[kind]).itemsize
        is_there = 0 <= start <= end <= len(content) and end - start == size
        if min(shape, default=0) < 0 or not is_there:
            raise ValueError("a tensor that is not in the file")
        flat = np.frombuffer(content[start:end], KINDS[kind])
        if kind == "BF16":  # the upper half of single precision
            flat = (flat.astype("<u4") << 16).view("<f4")
        tensors[name] = flat.reshape(shape)
    return Rows(path=path, values=_only(tensors, path))


def _only(arrays: dict[str, np.ndarray], path: Path) -> np.ndarray:
    if len(arrays) != 1:
        found = ", ".join(arrays) or "none"
        raise UserError(path, "one array of numbers", found, "save it in a file of its own")
    return next(iter(arrays.values()))


READERS = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".safetensors": _safetensors}

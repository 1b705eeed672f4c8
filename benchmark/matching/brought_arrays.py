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
import pyarrow as pa
import pyarrow.parquet as pq

from benchmark.core.array_files import DAMAGED
from benchmark.core.errors import UserError
from datasets import DataError
from datasets.shared import npy_files, plain_files

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
    try:
        rows = READERS[path.suffix](path)
        if rows.ids is None:
            rows = replace(rows, ids=_beside(path))
    except FileNotFoundError as error:
        raise UserError(path, "a file", "nothing", "check the path") from error
    except DataError:
        raise
    except DAMAGED as error:
        text = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(path, f"a {path.suffix} file", text, "save it again") from error
    _check(rows)
    return replace(rows, values=np.ascontiguousarray(rows.values, np.float32))


def in_order(rows: Rows, wanted: list[str], what: str) -> np.ndarray:
    """The rows (N, F) of the wanted ids, in their order. Without ids, the rows are in this order
    already. Raises UserError where a row is missing, or their number is another."""
    return rows.values[_places(rows, rows.ids, len(rows.values), wanted, f"{what}s")]


def matrix_in_order(rows: Rows, images: list[str], captions: list[str]) -> np.ndarray:
    """The scores (I, C) of these images and captions, in their orders. Raises as `in_order`."""
    count = rows.values.shape[1]
    chosen = _places(rows, rows.columns, count, captions, "captions (columns)")
    return in_order(rows, images, "image")[:, chosen]


def _places(
    rows: Rows, ids: list[str] | None, count: int, wanted: list[str], what: str
) -> np.ndarray:
    if ids is None:
        if count != len(wanted):
            do = "score --items FOLDER writes them in order; or give ids"
            raise UserError(rows.path, f"the {len(wanted)} {what} of test", count, do)
        return np.arange(count)
    if len(ids) != count:
        raise UserError(rows.path, f"an id for each of {count} {what}", len(ids), "correct the ids")
    place = {name: number for number, name in enumerate(ids)}
    if len(place) < len(ids):
        twice = next(name for number, name in enumerate(ids) if place[name] != number)
        raise UserError(rows.path, "every id once", f"{twice!r} twice", "correct the ids")
    missing = [name for name in wanted if name not in place]
    if missing:
        found = f"none for {missing[0]!r} ({len(missing)} such in all)"
        do = "score --items FOLDER writes the ids that are wanted"
        raise UserError(rows.path, f"a row for each of {len(wanted)} {what} of test", found, do)
    return np.array([place[name] for name in wanted])


def _check(rows: Rows) -> None:
    values = rows.values
    if values.ndim != 2 or 0 in values.shape or values.dtype.kind not in "fiu":
        found = f"{values.dtype} {values.shape}"
        raise UserError(rows.path, "numbers (N, F)", found, "save one row per item")
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(values.astype(np.float32)).all(1)
    if not is_finite.all():
        number = int(is_finite.argmin())
        name = f"row {number}" if rows.ids is None else f"row {number}, {rows.ids[number]!r}"
        found = f"NaN or infinity in {name} ({int((~is_finite).sum())} such rows)"
        raise UserError(rows.path, "finite numbers in single precision", found, "compute it again")


# Formats ------------------------------------------------------------------------------------------


def _npy(path: Path) -> Rows:
    return Rows(path=path, values=npy_files.array_of(plain_files.content(path)))


def _npz(path: Path) -> Rows:
    arrays = {}
    with plain_files.opened(path) as file, zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            most = plain_files.allowance(member.compress_size)
            with archive.open(member) as stored:
                content = plain_files.bounded(stored, most, f"{path}: {member.filename}")
            arrays[member.filename.removesuffix(".npy")] = npy_files.array_of(content)
    ids = {name: _texts(arrays.pop(name), path) for name in IDS if name in arrays}
    values = _only(arrays, path)
    columns = ids.pop("caption_ids") if "image_ids" in ids and "caption_ids" in ids else None
    return Rows(path=path, values=values, ids=next(iter(ids.values()), None), columns=columns)


def _parquet(path: Path) -> Rows:
    with plain_files.opened(path) as file:
        facts = pq.ParquetFile(file).metadata
        if facts.num_rows * facts.num_columns * 8 > plain_files.MOST:
            raise plain_files.too_large(path, plain_files.MOST)
        table = pq.read_table(file)
    named = [name for name in table.column_names if name in IDS]
    ids = [str(value) for value in table[named[0]].to_pylist()] if named else None
    hidden = [name for name in table.column_names if name.startswith("__index_level_")]  # pandas'
    table = table.drop_columns([*named, *hidden])
    lists = [name for name in table.column_names if _is_list(table.schema.field(name).type)]
    if len(lists) == 1:
        return Rows(path=path, values=_stacked(table[lists[0]], path), ids=ids)
    values = np.column_stack([column.to_numpy() for column in table.columns])
    return Rows(path=path, values=values, ids=ids, columns=list(table.column_names))


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _stacked(column: pa.ChunkedArray, path: Path) -> np.ndarray:
    vectors = [np.asarray(vector, np.float64) for vector in column.to_pylist()]
    lengths = {vector.shape for vector in vectors}
    if len(lengths) != 1:
        found = f"{len(lengths)} lengths"
        raise UserError(path, "vectors of one length", found, "save one vector per row")
    return np.stack(vectors)


def _safetensors(path: Path) -> Rows:
    """The format is a length, a header in JSON, and the bytes of the tensors."""
    content = plain_files.content(path)
    length = int.from_bytes(content[:8], "little")
    if length > min(LONGEST_HEADER, len(content) - 8):
        raise ValueError("a header that is longer than the file")
    header = json.loads(content[8 : 8 + length])
    tensors = {
        name: _tensor(content[8 + length :], facts)
        for name, facts in header.items()
        if name != "__metadata__"
    }
    return Rows(path=path, values=_only(tensors, path))


def _tensor(content: bytes, facts: dict) -> np.ndarray:
    kind, shape = facts["dtype"], tuple(facts["shape"])
    if kind not in KINDS:
        raise ValueError(f"numbers of the kind {kind}")
    start, end = facts["data_offsets"]
    size = prod(shape) * np.dtype(KINDS[kind]).itemsize
    if min(shape, default=0) < 0 or not 0 <= start <= end <= len(content) or end - start != size:
        raise ValueError("a tensor that is not in the file")
    flat = np.frombuffer(content[start:end], KINDS[kind])
    if kind == "BF16":  # the upper half of single precision
        flat = (flat.astype("<u4") << 16).view("<f4")
    return flat.reshape(shape)


def _only(arrays: dict[str, np.ndarray], path: Path) -> np.ndarray:
    if len(arrays) != 1:
        found = ", ".join(arrays) or "none"
        raise UserError(path, "one array of numbers", found, "save it in a file of its own")
    return next(iter(arrays.values()))


def _texts(array: np.ndarray, path: Path) -> list[str]:
    if array.ndim != 1 or array.dtype.kind not in "Uiu":
        raise UserError(path, "ids as text", f"{array.dtype} {array.shape}", "save them as text")
    return [str(name) for name in array.tolist()]


def _beside(path: Path) -> list[str] | None:
    sidecar = path.with_name(f"{path.stem}_ids.txt")
    if not plain_files.is_file(sidecar):
        return None
    return plain_files.content(sidecar).decode().rstrip("\n").split("\n")


READERS = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".safetensors": _safetensors}

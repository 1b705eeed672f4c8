"""Image features as the field shares them, read a block at a time. Knows no torch.

    folder of {train,dev,test,testall}_ims.npy      SCAN's and VSE++'s "precomp" folders
    .tsv, or a folder of .tsv, .tsv.0, .tsv.1 ...   bottom-up attention (Anderson et al. 2018)
    .mat with a variable `feats` (F, N)             Karpathy's vgg_feats.mat
    .npy (N, F) or (N, R, F)                        anyone's own, beside <name>_ids.txt

This module checks that a file is what its format says, `imports` that the features can be used.
A .mat is read as a whole: its compressed variables cannot be read in parts, and hold 2 GB at most.
"""

import binascii
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from scipy.io import loadmat, whosmat
from scipy.io.matlab import MatReadError

from benchmark.core.errors import UserError
from datasets.shared import archives, karpathy, precomp

BLOCK = 1 << 23  # bytes read at once, roughly
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
TSV_NAME = re.compile(r".+\.tsv(\.\d+)?")
TSV_FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
BAD_MAT = (OSError, ValueError, TypeError, LookupError, zlib.error, MatReadError)


class Block(NamedTuple):
    """Features of some images: `values` (n, F) or (n, R, F), of any floating type."""

    path: Path
    keys: Sequence[str]  # what the file calls the images
    values: np.ndarray


@dataclass(frozen=True)
class Source:
    """Features of images; every call of `blocks` reads them from the start."""

    files: list[Path]
    key_of: Callable[[str, str], str]  # image_id and file of an image -> its key
    blocks: Callable[[], Iterator[Block]]


@dataclass(frozen=True)
class _Array:
    """A .npy file whose header is sound: what follows it has the size that it says."""

    path: Path
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int  # of the first value


def open_source(path: Path, raw: Path) -> Source:
    """The features at `path`; `raw` is the dataset's folder, which may tell their order.

    Raises UserError or DataError when there is nothing, or nothing of a known format.
    """
    if not path.exists():
        raise UserError(f"{path}: not found; place it there, or mend `features` in the season")
    if path.is_dir():
        return _folder(path)
    if TSV_NAME.fullmatch(path.name):
        return _tables([path])
    if path.suffix == ".npy":
        return _plain(path)
    if path.suffix == ".mat":
        return _matlab(path, raw)
    raise UserError(
        f"{path}: expected a folder, .tsv, .mat or .npy, found {path.suffix or 'no suffix'}; "
        f"unpack it, or mend `features` in the season"
    )


def _folder(path: Path) -> Source:
    if any(path.glob("*_ims.npy")):
        return _precomputed(path)
    tables = sorted(file for file in path.iterdir() if TSV_NAME.fullmatch(file.name))
    if not tables:
        raise UserError(f"{path}: expected *_ims.npy or *.tsv, found neither; unpack them there")
    return _tables(tables)


# What the files call an image ------------------------------------------------------------------


def _by_id(image_id: str, file: str) -> str:
    return image_id


def _by_stem(image_id: str, file: str) -> str:
    return PurePosixPath(file or image_id).stem


def _by_number(image_id: str, file: str) -> str:
    """COCO_val2014_000000123456.jpg -> 123456, 1000092795.jpg -> 1000092795."""
    stem = _by_stem(image_id, file)
    digits = re.search(r"\d+$", stem)
    return str(int(digits[0])) if digits else stem


def _by_number_of_coco(stem_of: Mapping[str, str], image_id: str, file: str) -> str:
    """Of an image of COCO that has no file here, the stem that it would have."""
    return stem_of.get(image_id) or _by_stem(image_id, file)


# .npy -----------------------------------------------------------------------------------------


def _plain(path: Path) -> Source:
    array, sidecar = _array(path), _sidecar(path)
    ids = _ids(sidecar, array.shape[0], path)
    return Source([path, sidecar], _by_id, partial(_array_blocks, [(array, ids)]))


def _precomputed(folder: Path) -> Source:
    """Rows and ids were counted by `layout`."""
    parts = precomp.layout(folder)
    members = [(_array(part.ims), part.ids) for part in parts]
    return Source([part.ims for part in parts], _by_id, partial(_array_blocks, members))


def _array_blocks(members: list[tuple[_Array, list[str]]]) -> Iterator[Block]:
    """Of each array, with the ids of its images."""
    for array, ids in members:
        each = array.shape[0] // len(ids)
        size = each * math.prod(array.shape[1:])  # values of an image
        step = max(1, BLOCK // (size * array.dtype.itemsize))
        for start in range(0, len(ids), step):
            keys = ids[start : start + step]
            # Not mapped: the pages of a map count as memory of the process.
            flat = np.fromfile(
                array.path,
                array.dtype,
                count=len(keys) * size,
                offset=array.offset + start * size * array.dtype.itemsize,
            )
            values = flat.reshape(len(keys), each, *array.shape[1:])
            _check_repeats(array.path, keys, values)
            yield Block(array.path, keys, values[:, 0])


def _check_repeats(path: Path, keys: list[str], values: np.ndarray) -> None:
    """VSE++ writes an image once for each of its captions."""
    bits = values.view(f"u{values.dtype.itemsize}").reshape(*values.shape[:2], -1)
    differ = (bits[:, 1:] != bits[:, :1]).any(axis=(1, 2))
    if differ.any():
        raise UserError(
            f"{path}: image {keys[differ.argmax()]!r}: expected {values.shape[1]} equal rows in a "
            f"row, one a caption, found others; check the order of the file"
        )


def _array(path: Path) -> _Array:
    try:
        with path.open("rb") as file:
            read_header = HEADERS[np.lib.format.read_magic(file)]
            shape, fortran, dtype = read_header(file)
            offset = file.tell()
    except FileNotFoundError as error:
        raise UserError(f"{path}: not found; get the file") from error
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"{path}: expected a .npy file, found something else "
            f"({' '.join(str(error).split())}); get the file again"
        ) from error
    known = dtype.kind == "f" and dtype.itemsize in (2, 4, 8)
    if not known or len(shape) not in (2, 3) or fortran or 0 in shape:
        order = " in Fortran's order" if fortran else ""
        raise UserError(
            f"{path}: expected floating-point numbers (N, F) or (N, R, F), found {dtype} "
            f"{shape}{order}; save it again as np.ascontiguousarray(x, np.float32)"
        )
    expected, found = math.prod(shape) * dtype.itemsize, path.stat().st_size - offset
    if found != expected:
        raise UserError(
            f"{path}: expected {expected} bytes for {dtype} {shape}, found {found}; "
            f"get the file again"
        )
    return _Array(path, dtype, shape, offset)


def _sidecar(path: Path) -> Path:
    return path.with_name(f"{path.stem}_ids.txt")


def _ids(sidecar: Path, count: int, of: Path) -> list[str]:
    """The `count` image ids of the rows of `of`, a line each."""
    try:
        ids = [line.strip() for line in sidecar.read_text(encoding="utf-8").rstrip().split("\n")]
    except (OSError, ValueError) as error:
        raise UserError(
            f"{sidecar}: expected the image ids of {of.name}, a line each, found none "
            f"({type(error).__name__}); write them in the order of its rows"
        ) from error
    if "" in ids:
        raise UserError(
            f"{sidecar}: line {ids.index('') + 1}: expected an image id, found none; mend the line"
        )
    if len(ids) != count:
        raise UserError(
            f"{sidecar}: expected {count} image ids, as many as {of.name} has images, found "
            f"{len(ids)}; mend the file, or get both again"
        )
    return ids


# .tsv -----------------------------------------------------------------------------------------


def _tables(paths: list[Path]) -> Source:
    return Source(paths, _by_number, partial(_table_blocks, paths))


def _table_blocks(paths: list[Path]) -> Iterator[Block]:
    for path in paths:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield _table_row(line, path, number)


def _table_row(line: bytes, path: Path, number: int) -> Block:
    """One image. Boxes come by falling confidence where their number is fixed."""
    fields = line.rstrip(b"\r\n").split(b"\t")
    if len(fields) != len(TSV_FIELDS):
        raise UserError(
            f"{path}: line {number}: expected the {len(TSV_FIELDS)} fields "
            f"{', '.join(TSV_FIELDS)}, found {len(fields)}; get the file again"
        )
    try:
        key, boxes = str(int(fields[0])), int(fields[3])
        values = np.frombuffer(binascii.a2b_base64(fields[5], strict_mode=True), "<f4")
        return Block(path, [key], values.reshape(1, boxes, -1))
    except ValueError as error:
        raise UserError(
            f"{path}: line {number}: expected numbers, and in `features` float32 values of every "
            f"box as base64, found something else ({error}); get the file again"
        ) from error


# .mat -----------------------------------------------------------------------------------------


def _matlab(path: Path, raw: Path) -> Source:
    """Columns in the order of <name>_ids.txt, or else of the images of Karpathy's JSON."""
    count, sidecar = _columns(path), _sidecar(path)
    annotations = _annotations(path.parent) or _annotations(raw)
    entries = _entries(annotations, count, path) if annotations else []
    names = [_by_stem("", entry.file) for entry in entries]
    if sidecar.is_file():
        ids = _ids(sidecar, count, path)
        _check_agreement(sidecar, ids, annotations, names)
        return Source([path, sidecar], _by_id, partial(_matlab_blocks, path, ids))
    if not annotations:
        raise UserError(
            f"{path}: expected {sidecar.name} or one dataset*.json beside it, which tells the "
            f"order of its columns, found neither; place one there"
        )
    stem_of = {str(entry.cocoid): name for entry, name in zip(entries, names, strict=True)}
    key_of = partial(_by_number_of_coco, stem_of)
    return Source([path, annotations], key_of, partial(_matlab_blocks, path, names))


def _columns(path: Path) -> int:
    """How many images `feats` has."""
    try:
        found = {name: (shape, kind) for name, shape, kind in whosmat(path)}
    except NotImplementedError as error:
        raise UserError(
            f"{path}: expected MATLAB's format 7 or older, found 7.3; save it again in MATLAB "
            f"with -v7, or as .npy (N, F) beside {_sidecar(path).name}"
        ) from error
    except BAD_MAT as error:
        raise _bad_matlab(path, error) from error
    shape, kind = found.get("feats", ((), "none"))
    if kind not in ("single", "double") or len(shape) != 2 or 0 in shape:
        raise UserError(
            f"{path}: expected a variable `feats` of numbers (F, N), found "
            f"{', '.join(f'{name} {kind} {shape}' for name, (shape, kind) in found.items())}; "
            f"get the file again, or save it with this name"
        )
    return shape[1]


def _matlab_blocks(path: Path, keys: list[str]) -> Iterator[Block]:
    try:
        feats = loadmat(path, variable_names=["feats"])["feats"]
    except BAD_MAT as error:
        raise _bad_matlab(path, error) from error
    step = max(1, BLOCK // (len(feats) * feats.itemsize))
    for start in range(0, len(keys), step):
        yield Block(path, keys[start : start + step], feats[:, start : start + step].T)


def _bad_matlab(path: Path, error: Exception) -> UserError:
    return UserError(
        f"{path}: expected a .mat file, found something else or a part of one "
        f"({' '.join(str(error).split())}); get the file again"
    )


def _annotations(folder: Path) -> Path | None:
    """Karpathy's JSON in a folder, where there is one and no other."""
    found = list(folder.glob("dataset*.json"))
    return found[0] if len(found) == 1 else None


def _entries(annotations: Path, count: int, of: Path) -> list[karpathy.Entry]:
    """The images of Karpathy's JSON, in its order."""
    text = archives.text(annotations, annotations.name)
    entries = karpathy.parse(text, str(annotations))
    if len(entries) != count:
        raise UserError(
            f"{of}: expected {len(entries)} columns, one an image of {annotations.name}, found "
            f"{count}; place the JSON that belongs to it beside it"
        )
    return entries


def _check_agreement(
    sidecar: Path, ids: list[str], annotations: Path | None, names: list[str]
) -> None:
    """Two orders of the same names: one of them is wrong."""
    if ids == names or sorted(ids) != sorted(names):
        return
    row = next(row for row, pair in enumerate(zip(ids, names, strict=True)) if len(set(pair)) > 1)
    raise UserError(
        f"{sidecar}: line {row + 1}: expected {names[row]!r} as in {annotations.name}, found "
        f"{ids[row]!r}; remove the file, or mend its order"
    )

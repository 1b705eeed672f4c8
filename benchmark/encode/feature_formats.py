"""File formats of published image features, read a block at a time. Knows no torch.

    folder of {train,dev,test,testall}_ims.npy      SCAN's and VSE++'s "precomp" folders
    .tsv, or a folder of .tsv, .tsv.0, .tsv.1 ...   bottom-up attention (Anderson et al. 2018)
    .mat with a variable `feats` (F, N)             Karpathy's vgg_feats.mat
    .npy (N, F) or (N, R, F)                        any other, with <name>_ids.txt beside it

This module checks that a file follows its format; feature_import checks that the features can be
used. A .mat is read as a whole: its variables are compressed, and hold 2 GB at most.
"""

import binascii
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from benchmark.core.errors import UserError
from benchmark.encode import mat_files
from benchmark.encode.mat_files import BAD_MAT
from datasets import DataError
from datasets.shared import archives, karpathy, npy_files, plain_files, precomp

BLOCK = 1 << 23  # bytes read at once, roughly
LONGEST_ROW = 1 << 26  # bytes of a line of a .tsv
GET_AGAIN = "get the file again"
TSV_NAME = re.compile(r".+\.tsv(\.\d+)?")
TSV_FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")


class Block(NamedTuple):
    """Features of some images: `values` (n, F) or (n, R, F), of any floating type."""

    path: Path
    keys: Sequence[str]  # the names of the images in the file
    values: np.ndarray


@dataclass(frozen=True)
class Source:
    """Features of images; every call of `blocks` reads them from the start."""

    files: list[Path]
    key_of: Callable[[str, str], str]  # image_id and file name of an image -> its key
    blocks: Callable[[], Iterator[Block]]


@dataclass(frozen=True)
class _Array:
    """A .npy file of features whose size is what its header says; the values are not read."""

    path: Path
    header: npy_files.Header


def open_source(path: Path, raw: Path) -> Source:
    """The features at `path`; annotations in `raw`, the dataset's folder, may give their order.

    Raises UserError or DataError if there is nothing, or nothing in a known format.
    """
    if not _is_there(path):
        raise UserError(
            where=path,
            expected="the features that the season names",
            found="nothing",
            do="place them there, or correct `features` in the season",
        )
    if path.is_dir():
        return _folder(path)
    if TSV_NAME.fullmatch(path.name):
        return _tables([path])
    if path.suffix == ".npy":
        return _plain(path)
    if path.suffix == ".mat":
        return _matlab(path, raw)
    raise UserError(
        where=path,
        expected="a folder, .tsv, .mat or .npy",
        found=path.suffix or "no suffix",
        do="unpack it, or correct `features` in the season",
    )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long
        return False


def _folder(path: Path) -> Source:
    if any(path.glob("*_ims.npy")):
        return _precomputed(path)
    tables = sorted(file for file in path.iterdir() if TSV_NAME.fullmatch(file.name))
    if not tables:
        raise UserError(
            where=path, expected="*_ims.npy or *.tsv", found="neither", do="unpack them there"
        )
    return _tables(tables)


# The names of images in the files --------------------------------------------------------------


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
    """The stem that the file of an image of COCO has, or would have."""
    return stem_of.get(image_id) or _by_stem(image_id, file)


# .npy -----------------------------------------------------------------------------------------


def _plain(path: Path) -> Source:
    array, sidecar = _array(path), _sidecar(path)
    ids = _ids(sidecar, array.header.shape[0], path)
    return Source([path, sidecar], _by_id, partial(_array_blocks, [(array, ids)]))


def _precomputed(folder: Path) -> Source:
    parts = precomp.layout(folder)  # checks that rows and ids agree
    members = [(_array(part.ims), part.ids) for part in parts]
    return Source([part.ims for part in parts], _by_id, partial(_array_blocks, members))


def _array_blocks(members: list[tuple[_Array, list[str]]]) -> Iterator[Block]:
    """The rows of each array, with the ids of its images."""
    for array, ids in members:
        header = array.header
        rows_per_image = header.shape[0] // len(ids)
        size = rows_per_image * math.prod(header.shape[1:])  # values per image
        step = max(1, BLOCK // (size * header.dtype.itemsize))
        for start in range(0, len(ids), step):
            keys = ids[start : start + step]
            # Read, not mapped: the pages of a map count as memory of the process.
            flat = np.fromfile(
                array.path,
                header.dtype,
                count=len(keys) * size,
                offset=header.offset + start * size * header.dtype.itemsize,
            )
            values = flat.reshape(len(keys), rows_per_image, *header.shape[1:])
            _check_repeats(array.path, keys, values)
            yield Block(array.path, keys, values[:, 0])


def _check_repeats(path: Path, keys: list[str], values: np.ndarray) -> None:
    """Check that rows of the same image are equal: VSE++ has one row per caption."""
    bits = values.view(f"u{values.dtype.itemsize}").reshape(*values.shape[:2], -1)
    differ = (bits[:, 1:] != bits[:, :1]).any(axis=(1, 2))
    if differ.any():
        raise UserError(
            where=f"{path}: image {keys[differ.argmax()]!r}",
            expected=f"{values.shape[1]} equal rows one after the other, one per caption",
            found="different ones",
            do="check the order of the file",
        )


def _array(path: Path) -> _Array:
    # Not np.load(mmap_mode="r"), which does not say how many bytes a cut file lacks.
    try:
        with plain_files.opened(path) as file:
            header = npy_files.read_header(file)
    except DataError:
        raise
    except FileNotFoundError as error:
        raise UserError(
            where=path, expected="a .npy file", found="nothing", do="get the file"
        ) from error
    except (OSError, ValueError) as error:
        raise UserError(
            where=path, expected="a .npy file", found=f"something else ({error})", do=GET_AGAIN
        ) from error
    dtype, shape = header.dtype, header.shape
    is_float = dtype.kind == "f" and dtype.itemsize in (2, 4, 8)
    if not is_float or len(shape) not in (2, 3) or header.is_fortran or 0 in shape:
        order = " in Fortran's order" if header.is_fortran else ""
        raise UserError(
            where=path,
            expected="floating-point numbers (N, F) or (N, R, F)",
            found=f"{dtype} {shape}{order}",
            do="save it again as np.ascontiguousarray(x, np.float32)",
        )
    size = path.stat().st_size - header.offset
    if size != header.size:
        expected = f"{header.size} bytes for {dtype} {shape}"
        raise UserError(where=path, expected=expected, found=size, do=GET_AGAIN)
    return _Array(path, header)


def _sidecar(path: Path) -> Path:
    return path.with_name(f"{path.stem}_ids.txt")


def _ids(sidecar: Path, count: int, of: Path) -> list[str]:
    """The image ids of the `count` rows of the file `of`, one per line."""
    try:
        text = plain_files.content(sidecar).decode()
    except (OSError, ValueError) as error:
        raise UserError(
            where=sidecar,
            expected=f"the image ids of {of.name}, one per line",
            found=f"none ({type(error).__name__})",
            do="write them in the order of its rows",
        ) from error
    ids = [line.strip() for line in text.rstrip().split("\n")]
    if "" in ids:
        raise UserError(
            where=f"{sidecar}: line {ids.index('') + 1}",
            expected="an image id",
            found="none",
            do="correct the line",
        )
    if len(ids) != count:
        raise UserError(
            where=sidecar,
            expected=f"{count} image ids, as many as {of.name} has images",
            found=len(ids),
            do="correct the file, or get both again",
        )
    return ids


# .tsv -----------------------------------------------------------------------------------------


def _tables(paths: list[Path]) -> Source:
    return Source(paths, _by_number, partial(_table_blocks, paths))


def _table_blocks(paths: list[Path]) -> Iterator[Block]:
    for path in paths:
        with plain_files.opened(path) as file:
            lines = iter(partial(file.readline, LONGEST_ROW + 1), b"")
            for number, line in enumerate(lines, 1):
                if len(line) > LONGEST_ROW:
                    raise plain_files.too_large(f"{path}: line {number}", LONGEST_ROW)
                yield _table_row(line, path, number)


def _table_row(line: bytes, path: Path, number: int) -> Block:
    """The features of one image. Boxes come by falling confidence if their number is fixed."""
    where = f"{path}: line {number}"
    fields = line.rstrip(b"\r\n").split(b"\t")
    if len(fields) != len(TSV_FIELDS):
        raise UserError(
            where=where,
            expected=f"the {len(TSV_FIELDS)} fields {', '.join(TSV_FIELDS)}",
            found=len(fields),
            do=GET_AGAIN,
        )
    try:
        key, boxes = str(int(fields[0])), int(fields[3])
        values = np.frombuffer(binascii.a2b_base64(fields[5], strict_mode=True), "<f4")
        if boxes < 1 or not len(values):
            raise ValueError(f"{boxes} boxes with {len(values)} values")
        return Block(path, [key], values.reshape(1, boxes, -1))
    except ValueError as error:
        raise UserError(
            where=where,
            expected="numbers, and in `features` the float32 values of every box as base64",
            found=f"something else ({error})",
            do=GET_AGAIN,
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
            where=path,
            expected=f"{sidecar.name} or one dataset*.json beside it, for the order of its columns",
            found="neither",
            do="place one there",
        )
    stem_of = {str(entry.cocoid): name for entry, name in zip(entries, names, strict=True)}
    key_of = partial(_by_number_of_coco, stem_of)
    return Source([path, annotations], key_of, partial(_matlab_blocks, path, names))


def _columns(path: Path) -> int:
    """The number of images in `feats`."""
    try:
        variables = mat_files.variables(path)
    except DataError:
        raise
    except NotImplementedError as error:
        raise UserError(
            where=path,
            expected="MATLAB's format 7 or older",
            found="7.3",
            do=f"save it again with -v7, or as .npy (N, F) beside {_sidecar(path).name}",
        ) from error
    except BAD_MAT as error:
        raise _bad_matlab(path, error) from error
    shape, kind = variables.get("feats", ((), "none"))
    if kind not in ("single", "double") or len(shape) != 2 or min(shape) < 1:
        raise UserError(
            where=path,
            expected="a variable `feats` of numbers (F, N)",
            found=mat_files.described(variables),
            do="get the file again, or save it with this name",
        )
    return shape[1]


def _matlab_blocks(path: Path, keys: list[str]) -> Iterator[Block]:
    try:
        feats = mat_files.variable(path, "feats")
    except DataError:
        raise
    except BAD_MAT as error:
        raise _bad_matlab(path, error) from error
    if feats.dtype.kind != "f":
        raise _bad_matlab(path, ValueError(f"`feats` of {feats.dtype}"))
    step = max(1, BLOCK // (len(feats) * feats.itemsize))
    for start in range(0, len(keys), step):
        yield Block(path, keys[start : start + step], feats[:, start : start + step].T)


def _bad_matlab(path: Path, error: Exception) -> UserError:
    return UserError(
        where=path,
        expected="a .mat file",
        found=f"something else or a part of one ({error})",
        do=GET_AGAIN,
    )


def _annotations(folder: Path) -> Path | None:
    """Karpathy's JSON in a folder; None if there is none or more than one."""
    paths = list(folder.glob("dataset*.json"))
    return paths[0] if len(paths) == 1 else None


def _entries(annotations: Path, count: int, of: Path) -> list[karpathy.Entry]:
    """The images of Karpathy's JSON, in its order; as many as the `count` columns of `of`."""
    text = archives.text(annotations, annotations.name)
    entries = karpathy.parse(text, str(annotations))
    if len(entries) != count:
        raise UserError(
            where=of,
            expected=f"{len(entries)} columns, one per image of {annotations.name}",
            found=count,
            do="place the JSON that belongs to it beside it",
        )
    return entries


def _check_agreement(
    sidecar: Path, ids: list[str], annotations: Path | None, names: list[str]
) -> None:
    """Refuse two different orders of the same names, since one of them is wrong."""
    if ids == names or sorted(ids) != sorted(names):
        return
    row = next(row for row, pair in enumerate(zip(ids, names, strict=True)) if len(set(pair)) > 1)
    raise UserError(
        where=f"{sidecar}: line {row + 1}",
        expected=f"{names[row]!r} as in {annotations.name}",
        found=repr(ids[row]),
        do="remove the file, or correct its order",
    )

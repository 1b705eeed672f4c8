"""Published image features, imported as a feature folder, a block at a time.

    folder of {train,dev,test,testall}_ims.npy      SCAN's and VSE++'s "precomp" folders
    .tsv, or a folder of .tsv, .tsv.0, .tsv.1 ...   bottom-up attention (Anderson et al. 2018)
    .mat with a variable `feats` (F, N)             Karpathy's vgg_feats.mat, beside his JSON
    .npy (N, F) or (N, R, F)                        any other, with <name>_ids.txt beside it
    .npz, .parquet, .csv, .safetensors, .mat        with ids in them or beside: embedding_files.py

Of the first two and of .npy, one block is read at a time. A file is read twice if
features are standardised, since mean and deviation of the training images come first.
"""

import binascii
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from benchmark.core.command_line import ProgressBar
from benchmark.core.errors import UserError
from benchmark.core.files import opened, read_json, readable, replaced, too_large
from benchmark.data.feature_folders import (
    array_at,
    as_float16,
    card_of,
    sha256_of_items,
    write_card,
)
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import RawDataset
from benchmark.features import embedding_files
from benchmark.features.mat_files import matrix
from benchmark.features.standardisation import Standardiser
from benchmark.readers import archives, karpathy, precomp
from benchmark.season.parameters import FeatureSet

LARGEST = float(np.finfo(np.float16).max)  # number that a feature folder can hold
BLOCK = 1 << 23  # bytes read at once, roughly
LONGEST_ROW = 1 << 26  # bytes of a line of a .tsv
GET_AGAIN, OF_ALL = "get the file again", "get the features of all splits"
TSV_NAME = re.compile(r".+\.tsv(\.\d+)?")
TSV_FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
# fields, with objects and attributes and their confidences before the number of boxes
LXMERT = 10


@dataclass(frozen=True)
class Block:
    """Some images of a file."""

    path: Path
    names: Sequence[str]
    values: np.ndarray  # their features (n, F) or (n, R, F), of any float type


@dataclass(frozen=True)
class Source:
    """Features of images; every call of `blocks` reads them from the start."""

    files: list[Path]
    blocks: Callable[[], Iterator[Block]]
    # by the number in the name of an image's file, and not by its id
    is_numbered: bool = False


def import_features(
    feature_set: FeatureSet,
    data: Prepared,
    dataset: RawDataset,
) -> None:
    """Write pooled.npy (I, F) and, if the source has regions, regions.npy (I, R, F).

    Images are those of the used splits, in the order of the image table; features of
    others are skipped. `pooled` is the mean of the regions, whose order is kept. Raises
    UserError for features that cannot be used, and then leaves an older folder as it
    was.
    """
    settings = feature_set.image
    used = data.used_images
    source = open_source(dataset.folder / settings.features, dataset.folder, used)
    standardisers: dict[str, Standardiser] = defaultdict(Standardiser)
    if settings.standardise:
        is_train = (used["split"] == "train").to_numpy()
        for rows, values in _aligned(source, used, "measure"):
            for name, part in _arrays(values[is_train[rows]]).items():
                standardisers[name].add(part)
    with replaced(Path(feature_set.folder)) as folder:
        for rows, values in _aligned(source, used, "import"):
            for name, part in _arrays(values).items():
                if settings.standardise:
                    part = standardisers[name](part)
                shape = (len(used), *part.shape[1:])
                array = array_at(folder / f"{name}.npy", shape, np.float16)
                array[rows] = as_float16(part)
        card = card_of(feature_set, used["image_id"], data)
        card["weights"] = {"file": settings.features} | _origin(source, dataset)
        write_card(folder, card)


def _origin(source: Source, dataset: RawDataset) -> dict[str, str | int]:
    """Where the features come from: by checksum, or by size if fetch has made no
    checksum."""
    known = {}
    if dataset.manifest.is_file():
        for file in read_json(dataset.manifest)["files"]:
            known[dataset.folder / file["name"]] = file["sha256"]
    digests = [known[path] for path in source.files if path in known]
    if len(digests) < len(source.files):
        return {"bytes": sum(path.stat().st_size for path in source.files)}
    if len(digests) == 1:
        return {"sha256": digests[0]}
    return {"sha256": sha256_of_items(digests)}


def _arrays(values: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a feature folder, from regions (n, R, F) or from pooled features
    (n, F)."""
    if values.ndim == 2:
        return {"pooled": values}
    return {"pooled": values.mean(1), "regions": values}


def _aligned(
    source: Source,
    used: pd.DataFrame,
    title: str,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of the image table (n,) with their features, float32; every image exactly
    once.

    Raises UserError for an image that comes twice or never, for features of several
    shapes, as methods need the same number of regions in every image, and for what
    float16 cannot hold.
    """
    index = _index_of(source, used)
    seen = np.zeros(len(index), bool)
    shape = None
    others = []  # images that only the source has
    with ProgressBar(total=len(index), unit="image", desc=title) as bar:
        for block in source.blocks():
            rows = index.get_indexer(block.names)
            others += list(compress(block.names, rows < 0))
            is_known = rows >= 0
            if not is_known.any():  # skipped, whatever shape it has
                continue
            rows = rows[is_known]
            values = block.values[is_known]
            is_repeated = seen[rows] | pd.Index(rows).duplicated()
            if is_repeated.any():
                raise UserError(
                    f"{block.path}: image {index[rows[is_repeated.argmax()]]!r}",
                    expected="one row per image",
                    found="two",
                    do="remove one, or get the file again",
                )
            shape = shape or values.shape[1:]
            if values.shape[1:] != shape:
                raise UserError(
                    f"{block.path}: image {block.names[0]!r}",
                    expected=f"features of shape {shape}, as before",
                    found=values.shape[1:],
                    do="get features of one size, as with 36 boxes per image",
                )
            _check_range(block.path, index[rows], values)
            seen[rows] = True
            bar.update(len(rows))
            yield rows, values.astype(np.float32, copy=False)
    if not seen.all():
        missing = used["image_id"][~seen]
        actual = f"those of {seen.sum()} of {len(used)} images"
        advice = OF_ALL
        if others:
            actual += f", and {len(others)} images that the dataset lacks"
            actual += f", first {others[0]!r}"
            advice += ", or annotations that name the images in the same way"
        raise UserError(
            f"{source.files[0].parent}: image {missing.iloc[0]!r}",
            expected=f"features in {', '.join(path.name for path in source.files)}",
            found=actual,
            do=advice,
        )


def _check_range(path: Path, names: pd.Index, values: np.ndarray) -> None:
    """Raise UserError for what float16 cannot hold."""
    # The extremes need no copy; those of NaN are NaN, for which no comparison holds.
    fits = values.min() >= -LARGEST and values.max() <= LARGEST
    if not fits:
        flat = values.reshape(len(values), -1)
        is_bad = ~(np.abs(flat) <= LARGEST)
        row = is_bad.any(1).argmax()
        raise UserError(
            f"{path}: image {names[row]!r}",
            expected=f"numbers up to {LARGEST:g}",
            found=flat[row][is_bad[row].argmax()],
            do=GET_AGAIN,
        )


def _index_of(source: Source, used: pd.DataFrame) -> pd.Index:
    """What a source calls the used images. Raises UserError where it has one name for
    two of them."""
    ids = used["image_id"]
    names = ids
    if source.is_numbered:
        files = used["file"]
        names = files.where(files != "", ids).map(_number)
    index = pd.Index(names.tolist())
    if not index.is_unique:
        name = index[index.duplicated()][0]
        first, second = ids[index == name].iloc[:2]
        raise UserError(
            source.files[0],
            expected=f"one image named {name!r}",
            found=f"{first!r} and {second!r}",
            do="save the features as .npy beside a list of image ids",
        )
    return index


# Formats ------------------------------------------------------------------------------


def open_source(path: Path, raw: Path, used: pd.DataFrame) -> Source:
    """The features of the `used` images at `path`; annotations in `raw`, the dataset's
    folder, may give their order.

    Raises UserError if there is nothing, or nothing in a known format.
    """
    advice = "place them there, or correct `features` in the season"
    with readable(path, "features", advice):
        path.stat()
    if path.is_dir():
        return _source_of_folder(path)
    if TSV_NAME.fullmatch(path.name):
        return Source([path], partial(_table_blocks, [path]), is_numbered=True)
    if path.suffix not in embedding_files.READERS:
        raise UserError(
            path,
            expected=f"a folder, .tsv, {', '.join(embedding_files.READERS)}",
            found=path.suffix or "no suffix",
            do="unpack it, or correct `features` in the season",
        )
    ids = embedding_files.ids_beside(path)
    files = [path, *map(path.with_name, ids)]
    if path.suffix == ".npy":
        rows = _rows_of_npy(path, ids)
    elif path.suffix == ".mat" and not ids:
        rows, order = _in_karpathys_order(path, raw)
        files.append(order)
    else:
        rows = embedding_files.read_rows(path, "images")
    if not rows.ids:
        raise UserError(
            path,
            expected="an image id for each row",
            found="none",
            do=f"write them into {path.stem}_ids.txt beside it, one per line",
        )
    names = np.full(len(rows.values), "", object)  # "": a row of no used image
    forms = embedding_files.forms_of(used)
    places = embedding_files.places(rows, forms, "images", do=OF_ALL, split="")
    names[places] = used["image_id"]
    block = Block(path, names, rows.values)
    return Source(files, partial(_array_blocks, [block]))


def _source_of_folder(path: Path) -> Source:
    if any(path.glob("*_ims.npy")):
        parts = precomp.layout(path)  # checks that rows and ids agree
        arrays = [Block(part.ims, part.ids, _mapped(part.ims)) for part in parts]
        return Source([part.ims for part in parts], partial(_array_blocks, arrays))
    tables = [file for file in path.iterdir() if TSV_NAME.fullmatch(file.name)]
    tables.sort()
    if not tables:
        raise UserError(
            path,
            expected="*_ims.npy or *.tsv",
            found="neither",
            do="unpack them there",
        )
    return Source(tables, partial(_table_blocks, tables), is_numbered=True)


def _rows_of_npy(path: Path, ids: dict[str, list[str]]) -> embedding_files.Rows:
    rows = embedding_files.Rows(path=path, values=_mapped(path), ids=ids)
    sidecar, names = next(iter(ids.items()), (f"{path.stem}_ids.txt", []))
    if len(names) != len(rows.values):
        raise UserError(
            path.with_name(sidecar),
            expected=f"{len(rows.values)} image ids, one per row of {path.name}",
            found=len(names),
            do="write them in the order of the rows",
        )
    return rows


def _number(file: str) -> str:
    """COCO_val2014_000000123456.jpg -> 123456, 1000092795.jpg -> 1000092795."""
    return embedding_files.number_of(PurePosixPath(file).stem)


def _mapped(path: Path) -> np.ndarray:
    """The features in a .npy file, of which nothing is read yet."""
    with readable(path, "a .npy file", GET_AGAIN):
        values = archives.mapped(path)
    is_float = values.dtype.kind == "f" and values.dtype.itemsize in (2, 4, 8)
    is_fortran = not values.flags.c_contiguous
    if not is_float or values.ndim not in (2, 3) or is_fortran or not values.size:
        expected = "floating-point numbers (N, F) or (N, R, F)"
        actual = f"{values.dtype} {values.shape}"
        if is_fortran:
            actual += " in Fortran's order"
        raise UserError(
            path,
            expected=expected,
            found=actual,
            do="save it again as np.ascontiguousarray(x, np.float32)",
        )
    return values


def _array_blocks(arrays: list[Block]) -> Iterator[Block]:
    """The rows of each array, with the ids of its images. Where there are several rows
    for each image, as VSE++ has one per caption, they must be equal."""
    for array in arrays:
        each = len(array.values) // len(array.names)  # rows per image
        step = max(1, BLOCK // (each * array.values[0].nbytes))
        for start in range(0, len(array.names), step):
            names = array.names[start : start + step]
            rows = array.values[each * start : each * (start + step)]
            if each > 1:
                bits = rows.view(np.uint8).reshape(len(names), each, -1)
                differ = (bits != bits[:, :1]).any(axis=(1, 2))
                if differ.any():
                    raise UserError(
                        f"{array.path}: image {names[differ.argmax()]!r}",
                        expected=f"{each} equal rows one after the other, one per caption",
                        found="rows that differ",
                        do="check the order of the file",
                    )
            yield Block(array.path, names, rows[::each])


def _table_blocks(paths: list[Path]) -> Iterator[Block]:
    """The images of .tsv files. Boxes come by falling confidence if their number is
    fixed."""
    for path in paths:
        with opened(path) as file:
            lines = iter(partial(file.readline, LONGEST_ROW + 1), b"")
            for number, line in enumerate(lines, 1):
                name, values = _parsed_line(line, f"{path}: line {number}")
                yield Block(path, [name], values)


def _parsed_line(line: bytes, where: str) -> tuple[str, np.ndarray]:
    """The number of an image, and the features (1, R, F) of its boxes."""
    if len(line) > LONGEST_ROW:
        raise too_large(where, LONGEST_ROW)
    fields = line.rstrip(b"\r\n").split(b"\t")
    if len(fields) not in (len(TSV_FIELDS), LXMERT):
        raise UserError(
            where,
            expected=f"the {len(TSV_FIELDS)} fields {', '.join(TSV_FIELDS)}",
            found=len(fields),
            do=f"keep these columns, or LXMERT's {LXMERT}",
        )
    expected = "numbers, and in `features` float32 values of every box as base64"
    with readable(where, expected, GET_AGAIN):
        name = _number(fields[0].decode())
        boxes = int(fields[-3])
        content = binascii.a2b_base64(fields[-1], strict_mode=True)
        values = np.frombuffer(content, "<f4")
        if boxes < 1 or not len(values):
            raise ValueError(f"{boxes} boxes with {len(values)} values")
        return name, values.reshape(1, boxes, -1)


def _in_karpathys_order(path: Path, raw: Path) -> tuple[embedding_files.Rows, Path]:
    """Columns in the order of the images of Karpathy's JSON, which is beside the file
    or in `raw`; and its path.

    Raises UserError where there is no JSON or more than one.
    """
    feats = matrix(path, "feats", "(F, N)")
    orders = [*path.parent.glob("dataset*.json")] or [*raw.glob("dataset*.json")]
    if len(orders) != 1:
        raise UserError(
            path,
            expected="one dataset*.json beside it, for the order of its columns",
            found=len(orders),
            do=f"place it there, or write the image ids into {path.stem}_ids.txt",
        )
    entries = karpathy.read(orders[0], orders[0].name).entries
    if len(entries) != feats.shape[1] or not feats.size:
        raise UserError(
            path,
            expected=f"{len(entries)} columns, one per image of {orders[0].name}",
            found=feats.shape[1],
            do="place the JSON that belongs to it beside it",
        )
    stems = [PurePosixPath(entry.file).stem for entry in entries]
    ids = {"filename": stems, "cocoid": [str(entry.cocoid) for entry in entries]}
    return embedding_files.Rows(path=path, values=feats.T, ids=ids), orders[0]

"""Rows of numbers that were made elsewhere, with the ids that they bear: embeddings, scores and
features. Files are read without trust; nothing is unpickled.

    .npy            one array
    .npz            one array of numbers; beside it, ids as arrays of one dimension
    .safetensors    the same, as tensors
    .pt, .pth       a tensor that torch saved, or several by name; no other object
    .parquet, .csv  one row per item: a column of lists, or one column per number; columns of ids
    .tsv            the same, with tabs
    .mat            Matlab's variable `feats`, one column per item

Ids stand in such a column or array, in the index that pandas keeps, or in <name>_ids.txt beside the
file, one per line. Whatever is neither a number of a row nor an id is refused by its name: a column
that counts rows would leak their order into the scores.

N = rows, F = numbers of a row.
"""

import csv
import glob
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Number
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmark.core import files
from benchmark.core.errors import UserError, short
from benchmark.core.names import LONGEST_PATH
from benchmark.features import mat_files, weight_files
from benchmark.readers import npy_files, packed_images

# Names that ids have in files, apart from underscores and a plural s. Others may be of either.
NAMES = {
    "images": "imageid imgid cocoid image img filename filepath file path imagename imgname "
    "imagefile imagepath imgpath photo photoid picture pictureid".split(),
    "captions": "captionid capid sentid sentenceid textid txtid annid annotationid".split(),
    "": "id uid uuid key name itemid".split(),
}
COUNTERS = ("index", "indexlevel0", "unnamed:0", "level0", "")  # what pandas calls an index
ARRAYS = {  # how their names begin, where a file has several
    "images": r"image|img|im_|vis|pic|photo",
    "captions": r"cap|text|txt|sent|lang",
    "i2t": r".*i2t",
    "t2i": r".*t2i",
}
MOST = 1 << 27  # bytes of a text file, which takes ten times as much in memory
NOWHERE = 10**9  # the rank of what was not found
VALUE = 8  # bytes that a value of a table takes at most; of a text, its place
ORDER = "score --items FOLDER writes the ids that are wanted, in order"
BESIDE = "_ids.txt"  # end of the name of a file of ids
LISTS = (".txt", ".json", ".jsonl", ".lst")  # endings of files of ids under other names
TABLES = (".csv", ".tsv", ".parquet", ".jsonl")  # endings of tables of ranks or values
SEVERAL = (".npz", ".safetensors", ".pt", ".pth")  # files that may hold several arrays
DECIMAL = re.compile(r"[-+]?\d*\.\d+(e[-+]?\d+)?", re.IGNORECASE)
DO = "name ids image_id or caption_id, numbers x0, x1, ..., and leave out what is neither"


@dataclass(frozen=True)
class Rows:
    """Numbers (N, F), or (N, R, F) of regions, and what their rows belong to. The columns of scores
    have ids, too."""

    path: Path
    values: np.ndarray  # of single or double precision
    ids: dict[str, list[str]] = field(default_factory=dict)  # by the column, array or file of them
    columns: list[str] | None = None  # the names of a table's


def read_rows(path: Path, what: str) -> Rows:
    """The rows of `what`, images or captions, or scores: i2t, t2i. Of several arrays in a file, the
    one whose name tells so. Raises UserError for anything that is not finite numbers and ids."""
    ending = path.suffix.lower()
    if ending not in READERS:
        found, do = ending or "no ending", "save it with numpy.save, or numpy.savez for ids, too"
        raise UserError(path, f"one of {', '.join(READERS)}", found, do)
    with files.readable(path, f"a {ending} file", "save it again, or correct the path"):
        rows = READERS[ending](path, what)
        ids = rows.ids | beside(path)
    values = rows.values
    if values.ndim not in (2, 3) or 0 in values.shape or values.dtype.kind not in "fiu":
        found = f"{values.dtype} {values.shape}"
        raise UserError(path, "numbers (N, F)", found, "save one row per item")
    for where, of_rows in ids.items():
        if len(of_rows) not in (values.shape if what in ("i2t", "t2i") else values.shape[:1]):
            expected = f"an id for each of {len(values)} rows"
            raise UserError(f"{path}: {where}", expected, len(of_rows), "correct the ids")
    is_single = values.dtype.itemsize <= (4 if values.dtype.kind == "f" else 2)
    values = np.ascontiguousarray(values, np.float32 if is_single else np.float64)
    is_bad = ~np.isfinite(values).reshape(len(values), -1).all(1)
    if is_bad.any():
        row = int(is_bad.argmax())
        name = next((f", {x[row]!r}" for x in ids.values() if len(x) == len(values)), "")
        found = f"NaN or infinity in row {row}{name} ({int(is_bad.sum())} such rows)"
        raise UserError(path, "finite numbers", found, "compute it again")
    return Rows(path=path, values=values, ids=ids, columns=rows.columns)


def beside(path: Path) -> dict[str, list[str]]:
    """The ids in <name>_ids.txt, by the file's name; {} without one. Line ends of any system, a
    byte order mark and blanks at ends of lines do not count."""
    file = path.with_name(f"{path.stem}{BESIDE}")
    if not files.is_file(file):
        return {}
    with files.readable(file, "ids in UTF-8, one per line", "save them so"):
        text = files.content(file).decode("utf-8-sig").rstrip()
    return {file.name: [line.strip() for line in text.split("\n")]}


def forms_of(images: pd.DataFrame) -> list[list[str]]:
    """What files may call these images: their ids, their files, and the names of these with and
    without the ending."""
    ids, paths = images["image_id"].tolist(), images["file"].tolist()
    named = [PurePosixPath(file or image) for image, file in zip(ids, paths, strict=True)]
    return [ids, paths, [path.name for path in named], [path.stem for path in named]]


def places(
    rows: Rows,
    forms: Sequence[Sequence[str]],
    what: str,
    axis: int = 0,
    repeats: np.ndarray | None = None,
    do: str = ORDER,
) -> np.ndarray:
    """Which row (axis 1: which column) is that of each wanted item, (n,).

    `forms` are the names that the items may have, each a list in their order. Ids decide where
    there are any; else the rows are in this order already. `repeats` (M,) are the items of the rows
    of a file that has one per caption: the first of each is taken. Raises UserError where a row is
    missing or comes twice with other numbers, where ids disagree, and without ids for another
    number of rows.
    """
    values = np.moveaxis(rows.values, axis, 0)
    wanted = f"{what}{' (columns)' * axis}{' of test' * (do == ORDER)}"
    fit = {where: ids for where, ids in rows.ids.items() if len(ids) == len(values)}
    sources = {where: ids for where, ids in fit.items() if role_of(where) in (what, "")}
    if axis == 1 and rows.columns:  # a series may count them, or be the very ids
        if _odd(rows.columns) is not None or set(forms[0]) <= set(rows.columns):
            sources["the names of the columns"] = rows.columns
    if fit and not sources and axis == 0:
        do = f"add a column {what[:-1]}_id"
        raise UserError(rows.path, f"ids of {what}", f"others alone: {', '.join(fit)}", do)
    if not sources:
        refuse_unread_ids(rows.path, forms)
        if repeats is not None and len(values) == len(repeats) != len(forms[0]):
            first = np.unique(repeats, return_index=True)[1]
            if (values == values[first[repeats]]).all():
                return first
        if len(values) != len(forms[0]):
            expected = f"the {len(forms[0])} {wanted}"
            raise UserError(rows.path, expected, len(values), f"{do}; or give ids")
        return np.arange(len(values))
    found_by = {where: found(ids, where, forms) for where, ids in sources.items()}
    where = max(found_by, key=lambda where: (found_by[where] >= 0).sum())
    ids, at = sources[where], found_by[where]
    first = dict(zip(reversed(ids), reversed(range(len(ids))), strict=True))
    for row, name in enumerate(ids):
        if first[name] != row and (values[row] != values[first[name]]).any():
            raise UserError(rows.path, "every id once", f"{name!r} twice", "correct the ids")
    if (lacks := at < 0).any():
        lacking = f"none for {forms[0][lacks.argmax()]!r} ({lacks.sum()} such in all)"
        lacking += f": {where or 'the index'} has {', '.join(map(repr, ids[:3]))} ..."
        raise UserError(rows.path, f"a row for each of {len(at)} {wanted}", lacking, do)
    for other, of_other in found_by.items():
        if (of_other >= 0).all() and (of_other != at).any():
            expected, do = f"one order in {where} and {other}", "remove the wrong one"
            raise UserError(rows.path, expected, "two", do)
    return at


def refuse_unread_ids(path: Path, forms: Sequence[Sequence[str]]) -> None:
    """Raise UserError if ids of these items stand beside a file, under a name of no meaning here:
    x.txt, x_names.json. Rows would be taken as if there were none."""
    for file in sorted(path.parent.glob(f"{glob.escape(path.stem)}[._-]*")):
        is_other = file.name not in (path.name, path.stem + BESIDE)
        if is_other and file.suffix.lower() in LISTS and files.is_file(file):
            text = files.content(file).decode("utf-8-sig", "replace")
            words = [word.strip() for word in re.split(r'[\n\r",\t\[\]{}]+', text)]
            if (found([*filter(None, words)] or [""], "", forms) >= 0).mean() > 1 / 2:
                do = f"save them as {path.stem}{BESIDE}, one per line, or remove the file"
                raise UserError(file, f"ids in {path.stem}{BESIDE}", "some under this name", do)


def found(ids: Sequence[str], where: str, forms: Sequence[Sequence[str]]) -> np.ndarray:
    """The first row of each item (n,), -1 for none, under the names that most are found by. `where`
    is the name of the column in which the ids stand."""
    is_named = role_of(where) or where.endswith(BESIDE)
    if not is_named and all(map(str.isdecimal, ids)):  # may count rows, and fit by chance
        forms = forms[:1]
    tries = [(ids, wanted) for wanted in forms]
    if len(forms) > 1:  # images, which may bear the path of another machine
        tries.append(([PurePosixPath(x.replace("\\", "/")).name for x in ids], forms[2]))
    if is_named:  # as numbers, too, which lose zeros
        tries.append(([*map(number_of, ids)], [*map(number_of, forms[-1])]))
    every = []
    for given, wanted in tries:
        if len(set(wanted)) == len(wanted) and len(set(given)) == len(set(ids)):
            first = dict(zip(reversed(given), reversed(range(len(given))), strict=True))
            every.append(np.array([first.get(name, -1) for name in wanted]))
    return max(every, key=lambda at: (at >= 0).sum())


def number_of(name: str) -> str:
    """COCO_val2014_000000123456 -> 123456; what does not end with digits stays."""
    digits = re.search(r"\d+$", name)
    return str(int(digits[0])) if digits else name


# Names --------------------------------------------------------------------------------------------


def role_of(name: str) -> str:
    """images or captions, as the name of a column or array tells; "" if it does not."""
    return next((role for role, names in NAMES.items() if _plain(name) in names), "")


def is_id(name: str) -> bool:
    """Whether a column or array of this name has ids."""
    return _plain(name) in {*COUNTERS, *(x for names in NAMES.values() for x in names)}


def _plain(name: str) -> str:
    return re.sub(r"[_\s-]|(?<=.)s$", "", name.casefold())


def _odd(names: Sequence[str]) -> str | None:
    """The first name that does not go on a regular series: x0, x1, ... or 1, 2, ..."""
    parts = [re.fullmatch(r"(.*?)0*(\d+)", name) for name in names]
    for number, (name, part) in enumerate(zip(names, parts, strict=True)):
        first = parts[0]
        if not part or part[1] != first[1] or int(part[2]) != number + (first[2] == "1"):
            return name
    return None


# Formats ------------------------------------------------------------------------------------------


def _tensors(path: Path, what: str) -> Rows:
    found = weight_files.read_tensors(path)
    tensors, arrays = found if isinstance(found, dict) else {"rows": found}, {}
    for name, tensor in tensors.items():
        if tensor.numel() > tensor.untyped_storage().nbytes():  # one number stands for many
            raise ValueError("a tensor that is larger than what it holds")
        is_half = tensor.is_floating_point() and tensor.element_size() < 4
        arrays[name] = (tensor.float() if is_half else tensor).detach().numpy()
    return _chosen(path, arrays, what)


def _chosen(path: Path, arrays: dict[str, np.ndarray], what: str) -> Rows:
    """Arrays of one dimension with text or whole numbers are ids; one other is the rows."""
    ids, values = {}, {}
    for name, array in arrays.items():
        if array.ndim == 1 and array.dtype.kind in "USiu":
            ids[name] = np.strings.decode(array) if array.dtype.kind == "S" else array
            ids[name] = ids[name].astype(str).tolist()
        elif array.ndim in (2, 3) and array.dtype.kind in "fiu":
            values[name] = array
        else:
            found = f"{name!r}, {array.dtype} {array.shape}"
            raise UserError(path, "rows (N, F) and their ids (N,) alone", found, "leave it out")
    found = ", ".join(values) or "none"
    if len(values) > 1:  # the others have ids of their own
        named = re.compile(ARRAYS[what])
        values = {name: array for name, array in values.items() if named.match(name.casefold())}
        if what in NAMES:
            ids = {name: of_rows for name, of_rows in ids.items() if role_of(name) in (what, "")}
    if len(values) != 1:
        raise UserError(path, "one array of numbers", found, "save it in a file of its own")
    return Rows(path=path, values=next(iter(values.values())), ids=ids)


def parquet_table(path: Path) -> pa.Table:
    """The table of a parquet file, of whose texts each is unpacked once. Raises UserError for one
    that is too large."""
    with packed_images.parquet(path) as table:
        kinds = packed_images.leaves(table)
        pages = packed_images.pages(path, table, kinds)
        if sum(page.unpacked + VALUE * page.values for page in pages) > files.MOST:
            raise files.too_large(path, files.MOST)
        texts = [name for name, kind in kinds.items() if kind == "BYTE_ARRAY"]
        return pq.ParquetFile(path, read_dictionary=texts).read()


def table_of(path: Path) -> pd.DataFrame:
    """A table, .parquet, .jsonl, .csv or .tsv, with plain names of its columns. Raises UserError
    for one that is too large, and ValueError for rows that do not fit it."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        table = parquet_table(path).to_pandas(ignore_metadata=True)
    elif ending == ".jsonl":
        lines = enumerate(files.content(path, MOST).decode("utf-8-sig").split("\n"), 1)
        do = "correct the file"
        rows = [files.parse_json(x, f"{path}: row {n}", do) for n, x in lines if x.strip()]
        if any(not isinstance(row, dict) or row.keys() != rows[0].keys() for row in rows):
            raise ValueError("rows that are not objects with the same keys")
        table = pd.DataFrame.from_records(rows)
    else:
        text = files.content(path, MOST).decode("utf-8-sig")
        separator = "\t" if ending == ".tsv" else separator_of(text)
        rows = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
        table = framed(next(rows, []), rows)
    return table.set_axis([str(head).strip().casefold() for head in table], axis=1)


def framed(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> pd.DataFrame:
    """A table of rows, but for empty ones. Raises ValueError for one of another length."""
    rows = [row for row in rows if row]
    if wrong := [row for row in rows if len(row) != len(heads)]:
        raise ValueError(f"{len(wrong[0])} cells in a row, and {len(heads)} columns")
    return pd.DataFrame(rows, columns=list(heads))


def text_of(cell: object) -> str:
    """A cell as text, "" where nothing is. Raises ValueError for other things."""
    if cell is None or cell != cell:
        return ""
    text = str(int(cell) if isinstance(cell, bool | np.bool_) else cell)
    if not isinstance(cell, str | Number | np.bool_) or len(text) > LONGEST_PATH:
        raise ValueError(f"no number, and no text of {LONGEST_PATH} letters: {text}")
    return text.strip()


def ranks_of(texts: pd.Series) -> pd.Series:
    """Whole ranks from 0; infinity where nothing, or -1, says "not found"; NaN for what is none."""
    number = pd.to_numeric(texts, errors="coerce").astype(float)
    is_rank = (number >= 0) & (number < NOWHERE) & (number % 1 == 0)
    return number.where(is_rank).mask((texts == "") | (number == -1), np.inf)


def _parquet(path: Path, what: str) -> Rows:
    table = parquet_table(path)
    columns = zip(table.column_names, table.columns, strict=True)
    return _table(path, {name: _array(column.combine_chunks()) for name, column in columns}, what)


def _array(column: pa.Array) -> np.ndarray:
    """The values (N,) of a column, or (N, F) of lists; of objects where these are no such thing."""
    shape = [len(column)]
    while isinstance(column, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        lengths = pc.unique(pc.list_value_length(column))
        if len(lengths) != 1 or not lengths[0].is_valid:
            return np.full(shape, f"lists of {len(lengths)} lengths", object)
        column, shape = column.flatten(), [*shape, lengths[0].as_py()]
    if isinstance(column, pa.DictionaryArray) and not column.null_count:
        values = np.array([*column.dictionary.to_pylist(), None], object)
        return values[column.indices.to_numpy(zero_copy_only=False)]
    return column.to_numpy(zero_copy_only=False).reshape(shape)


def _csv(path: Path, what: str) -> Rows:
    """Where the first line has numbers instead of names, a column of text is the ids."""
    text = files.content(path).decode("utf-8-sig")
    options = {"sep": separator_of(text), "header": None, "keep_default_na": False}
    table = pd.read_csv(io.StringIO(text), dtype=str, **options)
    names = table.iloc[0].str.strip().tolist()
    if any(map(DECIMAL.fullmatch, names)):
        kinds = [_parsed(table[n]).dtype for n in table]
        at = kinds.index(object) if object in kinds else len(kinds)
        names = [*map(str, range(at)), "id", *map(str, range(at, len(kinds)))][: len(kinds)]
    else:
        table = table.iloc[1:]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(path, "every column once", f"{twice!r} twice", DO)
    columns = {name: table[n] for n, name in enumerate(names)}
    return _table(path, {n: x if is_id(n) else _parsed(x) for n, x in columns.items()}, what)


def separator_of(text: str) -> str:
    """What separates the columns of a table, by its first line."""
    return next((x for x in ",\t;" if x in text.partition("\n")[0]), ",")


def _parsed(texts: pd.Series) -> np.ndarray:
    """As numbers, if all are some; else as they are."""
    try:
        return texts.to_numpy(object).astype(np.float64)
    except ValueError:
        return texts.to_numpy(object)


def _table(path: Path, columns: dict[str, np.ndarray], what: str) -> Rows:
    """One column of lists, or one per number, of one type and named in a series; and ids."""

    def refused(name: str, found: object) -> UserError:
        return UserError(f"{path}: column {name!r}", "an id, or one number of each row", found, DO)

    ids, numbers = {}, {}
    for name, array in columns.items():
        array = np.asarray(array)
        if is_id(name) and array.ndim == 1:
            if array.dtype.kind == "f" and (array % 1 == 0).all():  # pandas has no whole NaN
                array = array.astype(np.int64)
            if array.dtype.kind not in "iuO" or None in array.tolist():
                raise refused(name, "fractions or nothing in some rows")
            texts = (x.decode() if isinstance(x, bytes) else str(x) for x in array.tolist())
            ids[name] = [text.strip() for text in texts]
        elif array.dtype.kind == "f" or (array.ndim > 1 and array.dtype.kind in "iu"):
            numbers[name] = array
        else:
            raise refused(name, short(next(iter(array.tolist()), None)))
    first = next(iter(numbers.values()), np.empty(0))
    for name, array in numbers.items():
        if array.ndim > 1 and len(numbers) > 1:
            raise refused(name, f"lists beside {next(x for x in numbers if x != name)!r}: keep one")
        if array.dtype != first.dtype:
            raise refused(name, f"{array.dtype} {array.shape[1:]} beside {first.dtype}")
    if first.ndim > 1 or not numbers:
        return Rows(path=path, values=first, ids=ids)
    if what in NAMES and (odd := _odd(list(numbers))) is not None:
        raise refused(odd, "a name that goes on no series x0, x1, ...")
    values = np.stack([*numbers.values()], 1)
    return Rows(path=path, values=values, ids=ids, columns=list(numbers))


READERS = {
    ".npy": lambda path, what: Rows(path, npy_files.array_of(files.content(path))),
    ".npz": lambda path, what: _chosen(path, npy_files.arrays_of(path), what),
    ".parquet": _parquet,
    ".csv": _csv,
    ".tsv": _csv,
    ".safetensors": _tensors,
    ".pt": _tensors,
    ".pth": _tensors,
    ".mat": lambda path, what: Rows(path, mat_files.matrix(path, "feats", "(F, N)").T),
}

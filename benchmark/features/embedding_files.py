"""Rows of numbers that were made elsewhere, with the ids that they bear: embeddings, scores and
features. Files are read without trust; nothing is unpickled.

    .npy            one array
    .npz            one array of numbers; beside it, ids as arrays of one dimension
    .safetensors    the same, as tensors
    .pt, .pth       a tensor that torch saved, or several by name; no other object
    .parquet, .csv  one row per item: a column of lists, or one column per number; columns of ids
    .tsv            the same, with tabs; lists are text in brackets, as pandas writes them
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
from dataclasses import dataclass, field, replace
from numbers import Number
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from benchmark.core import files
from benchmark.core.errors import UserError, short
from benchmark.core.names import LONGEST_PATH
from benchmark.features import mat_files, number_formats, weight_files
from benchmark.features.number_formats import WholeNumbers
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
NEARLY_EQUAL = 1e-3  # of the largest number: what another batch or half precision changes
NOWHERE = 10**9  # the rank of what was not found
NUMBERS = "fiubV"  # kinds of NumPy's types; V is of 2 bytes, as bfloat16 is saved
HALF_BYTES = 2
VALUE = 8  # bytes that a value of a table takes at most; of a text, its place
ORDER = "score --items FOLDER writes the ids that are wanted, in order"
ONE_WAY = ("i2t", "t2i")  # what scores are of
BESIDE = "_ids.txt"  # end of the name of a file of ids
LISTS = (".txt", ".json", ".jsonl", ".lst")  # endings of files of ids under other names
TABLES = (".csv", ".tsv", ".parquet", ".jsonl")  # endings of tables of ranks or values
SEVERAL = (".npz", ".safetensors", ".pt", ".pth")  # files that may hold several arrays
INTEGER = re.compile(r"[-+]?\d+")
DECIMAL = r"[-+]?(\d+\.\d*|\.\d+|\d+(?=e))(e[-+]?\d+)?"
SCALAR = r"np\.\w+\(([^()]*)\)"  # a number in a list, as NumPy writes it
LISTED = rf"\[[^\[\]]*\]|\(([-+.,\se\d]|{SCALAR})*\)"  # all numbers of a row
LIST, FRACTIONS = re.compile(LISTED), re.compile(f"{DECIMAL}|{LISTED}", re.IGNORECASE)
FIRST_LINES = 10  # of a table, that tell whether it has names
SAVE_TENSOR = "save one tensor, torch.save(x, path), and its ids as text in NAME_ids.txt"
DO = "name ids image_id or caption_id, numbers x0, x1, ..., and leave out what is neither"


@dataclass(frozen=True)
class Rows:
    """Numbers (N, F), or (N, R, F) of regions, and what their rows belong to. The columns of scores
    have ids, too."""

    path: Path
    values: np.ndarray  # of single or double precision
    ids: dict[str, list[str]] = field(default_factory=dict)  # by the column, array or file of them
    columns: list[str] | None = None  # the names of a table's
    whole: WholeNumbers | None = None  # what the file has, if these are whole numbers


def read_rows(path: Path, what: str) -> Rows:
    """The rows of `what`, images or captions, or scores: i2t, t2i. Of several arrays in a file, the
    one whose name tells so. Raises UserError for anything that is not finite numbers and ids."""
    return _as_floats(_stored_rows(path, what))


def read_embeddings(path: Path, what: str, numbers: str | None = None) -> Rows:
    """The same of embeddings, whose whole numbers may be bits or other numbers; `numbers` says so,
    one of number_formats.FORMATS. Raises UserError where it must be said."""
    rows = _stored_rows(path, what)
    whole = number_formats.whole_numbers(path, rows.values)
    if whole is None:
        return _as_floats(rows)
    values = number_formats.decoded(rows.values, whole, numbers)
    return _as_floats(replace(rows, values=values, whole=whole))


def read_scores(path: Path, way: str, numbers: str | None = None) -> Rows:
    """The same of scores, where -infinity stands for what was not retrieved."""
    rows = _stored_rows(path, way)
    whole = number_formats.whole_numbers(path, rows.values)
    if whole is None:
        return _as_floats(rows, may_lack=True)
    values = number_formats.decoded_scores(rows.values, whole, numbers)
    return _as_floats(replace(rows, values=values, whole=whole))


def _stored_rows(path: Path, what: str) -> Rows:
    """The numbers of a file as it has them, and its ids."""
    ending = path.suffix.lower()
    if ending not in READERS:
        found, do = ending or "no ending", "save it with numpy.save, or numpy.savez for ids, too"
        raise UserError(path, f"one of {', '.join(READERS)}", found, do)
    with files.readable(path, f"a {ending} file", "save it again, or correct the path"):
        rows = READERS[ending](path, what)
        ids = rows.ids | beside(path)
    values = rows.values
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "V" and (values.dtype.names or size != HALF_BYTES):
        actual = f"{values.dtype}, a type that NumPy does not know"
        raise UserError(path, "numbers (N, F)", actual, "save x.astype(numpy.float32)")
    if values.ndim not in (2, 3) or 0 in values.shape or values.dtype.kind not in NUMBERS:
        found = f"{values.dtype} {values.shape}"
        raise UserError(path, "numbers (N, F)", found, "save one row per item")
    for where, of_rows in ids.items():
        if len(of_rows) not in (values.shape if what in ONE_WAY else values.shape[:1]):
            expected = f"an id for each of {len(values)} rows"
            raise UserError(f"{path}: {where}", expected, len(of_rows), "correct the ids")
    return replace(rows, ids=ids)


def _as_floats(rows: Rows, may_lack: bool = False) -> Rows:
    """In single or double precision. Raises UserError for numbers that are not finite,
    but for -infinity if some may lack a score."""
    values = rows.values
    if values.dtype.kind == "V":
        raise UserError(rows.path, "numbers (N, F)", values.dtype, "save them as float32")
    is_single = values.dtype.itemsize <= (4 if values.dtype.kind == "f" else 2)
    values = np.ascontiguousarray(values, np.float32 if is_single else np.float64)
    is_number, expected = np.isfinite(values), "finite numbers"
    if may_lack:
        is_number |= np.isneginf(values)
        expected += ", or -inf for what was not retrieved"
    is_bad = ~is_number.reshape(len(values), -1).all(1)
    if is_bad.any():
        row, ids = int(is_bad.argmax()), rows.ids.values()
        name = next((f", {x[row]!r}" for x in ids if len(x) == len(values)), "")
        count = f"({int(is_bad.sum())} such rows)"
        actual = f"NaN or infinity in row {row}{name} {count}"
        raise UserError(rows.path, expected, actual, "compute it again")
    return replace(rows, values=values)


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
    split: str = "test",
) -> np.ndarray:
    """Which row (axis 1: which column) is that of each wanted item, (n,).

    `forms` are the names that the items may have, each a list in their order. Ids decide where
    there are any; else the rows are in this order already. `repeats` (M,) are the items of the rows
    of a file that has one per caption: the first of each is taken. `do` tells how to get their
    ids, `split` whose they are, "" for those of all. Raises UserError where a row is missing or
    comes twice with other numbers, where ids disagree, and without ids for another number of rows.
    """
    values = np.moveaxis(rows.values, axis, 0)
    wanted = f"{what} (columns)" if axis else what
    if split:
        wanted += f" of {split}"
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
            raise _not_repeated(rows.path, values, repeats, f"the {len(first)} {wanted}", do)
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
            apart = np.abs(values[row] - values[first[name]]).max()
            twice = f"{name!r} twice, with numbers that differ by up to {apart:.2g}"
            advice = "keep one row of each id, or correct the ids"
            raise UserError(rows.path, "every id once", twice, advice)
    if (lacks := at < 0).any():
        lacking = f"none for {forms[0][lacks.argmax()]!r} ({lacks.sum()} such in all)"
        lacking += f": {where or 'the index'} has {', '.join(map(repr, ids[:3]))} ..."
        raise UserError(rows.path, f"a row for each of {len(at)} {wanted}", lacking, do)
    for other, of_other in found_by.items():
        if (of_other >= 0).all() and (of_other != at).any():
            expected, do = f"one order in {where} and {other}", "remove the wrong one"
            raise UserError(rows.path, expected, "two", do)
    return at


def _not_repeated(
    path: Path,
    values: np.ndarray,
    repeats: np.ndarray,
    expected: str,
    order: str,
) -> UserError:
    """The error for rows of images that are as many as the captions, but not equal for
    each image. `order` tells how to get their ids."""
    first, counts = np.unique(repeats, return_index=True, return_counts=True)[1:]
    apart = np.abs(values - values[first[repeats]]).max()
    count = f"{len(values)}, the number of captions"
    if apart > NEARLY_EQUAL * np.abs(values).max():
        actual = f"{count}, and rows of one image differ by up to {apart:.2g}"
        return UserError(path, expected, actual, f"name the file of the images; {order}")
    keep = "keep the first row of each image"
    if counts.min() == counts.max():
        keep += f", x[::{counts[0]}]"
    return UserError(path, expected, f"{count}; rows of one image differ by {apart:.2g}", keep)


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
    tensors, arrays = weight_files.read_tensors(path, SAVE_TENSOR), {}
    if not isinstance(tensors, dict):
        tensors = {"rows": tensors}
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized:
            actual = f"{name!r}, {tensor.layout}, {tensor.dtype}"
            advice = "save x.to_dense(), or x.dequantize()"
            raise UserError(path, "a dense tensor", actual, advice)
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
        elif array.ndim in (2, 3) and array.dtype.kind in NUMBERS:
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


def ranks_of(
    texts: pd.Series,
    first_rank: int = 0,
    not_found: str | None = None,
) -> pd.Series:
    """Whole ranks from 0; infinity where nothing, -1 or `not_found` says "not found"; NaN
    for what is none. `first_rank` is the number of the first rank."""
    number = pd.to_numeric(texts, errors="coerce").astype(float)
    is_lost = (texts == "") | (number == -1)
    if not_found is not None:
        lost_number = pd.to_numeric(not_found, errors="coerce")
        is_lost |= (texts == not_found) | (number == lost_number)
    rank = number - first_rank
    is_rank = (rank >= 0) & (rank < NOWHERE) & (rank % 1 == 0)
    return rank.where(is_rank).mask(is_lost, np.inf)


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
    if _are_numbers(table.iloc[:FIRST_LINES], what):
        columns = _without_names(path, table)
    else:
        columns = _with_names(path, table.iloc[1:], names)
    rows = _table(path, columns, what)
    return replace(rows, values=number_formats.narrowed(rows.values))


def separator_of(text: str) -> str:
    """What separates the columns of a table, by its first line."""
    return next((x for x in ",\t;" if x in text.partition("\n")[0]), ",")


def _are_numbers(table: pd.DataFrame, what: str) -> bool:
    """Whether the first line of a table has numbers of a row. Whole numbers are names of columns
    if they are in a series or above fractions; those of scores may be ids of items."""
    is_fraction = table.map(lambda cell: bool(FRACTIONS.fullmatch(cell.strip())))
    if is_fraction.iloc[0].any():
        return True
    whole = [cell.strip() for cell in table.iloc[0] if INTEGER.fullmatch(cell.strip())]
    if not whole or what not in NAMES or is_fraction.any(axis=None):
        return False
    return _odd(whole) is not None


def _with_names(
    path: Path, table: pd.DataFrame, names: Sequence[str]
) -> dict[str, np.ndarray | pd.Series]:
    """The columns, as numbers where all of them are some."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(path, "every column once", f"{twice!r} twice", DO)
    columns = {name: table[n] for n, name in enumerate(names)}
    numbers = {name: column for name, column in columns.items() if not is_id(name)}
    return columns | _parsed(path, numbers)


def _without_names(path: Path, table: pd.DataFrame) -> dict[str, np.ndarray | pd.Series]:
    """The same of a table without names: the first column of text is the ids."""
    columns = {f"column {n}": table[n] for n in table}
    numbers = _parsed(path, columns)
    _refuse_counter(path, numbers)
    texts = [name for name in columns if name not in numbers]
    ids = {"id": columns.pop(texts[0])} if texts else {}
    others = {name: columns[name] for name in texts[1:]}
    return ids | others | {str(n): column for n, column in enumerate(numbers.values())}


def _refuse_counter(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Raise UserError for a column that counts rows, or has other whole numbers where the others
    have fractions: these are ids, or would leak the order."""
    is_whole = {name: _are_whole(column) for name, column in columns.items()}
    for name, column in columns.items():
        is_counter = len(column) > 2 and column.ndim == 1 and (np.diff(column) == 1).all()
        is_distinct = is_whole[name] and len(np.unique(column)) == len(column) > 2
        if is_counter or (is_distinct and not all(is_whole.values())):
            first = ", ".join(f"{number:g}" for number in column[:3])
            actual = f"{first}, ... without a name"
            advice = "name all columns: image_id or caption_id, x0, x1, ..."
            raise UserError(f"{path}: {name}", "one number of each row", actual, advice)


def _parsed(path: Path, columns: dict[str, pd.Series]) -> dict[str, np.ndarray]:
    """Those columns of text that are numbers: (N,), or (N, F) of lists. They are integers if all
    are written so."""
    cells, numbers = {}, {}
    for name, column in columns.items():
        texts = column.str.strip()
        are_lists = texts.map(LIST.fullmatch).notna().all()
        cells[name] = _listed(path, name, texts) if are_lists else texts.to_numpy(object)
        try:
            numbers[name] = cells[name].astype(np.float64)
        except ValueError:
            continue
    if not all(map(_are_whole, numbers.values())):
        return numbers
    for kind in (np.int64, np.uint64):
        try:
            return {name: cells[name].astype(kind) for name in numbers}
        except (ValueError, OverflowError):  # "1.0"; numbers that are too large
            continue
    return numbers


def _are_whole(values: np.ndarray) -> bool:
    return bool((np.floor(values) == values).all())


def _listed(path: Path, name: str, texts: pd.Series) -> np.ndarray:
    """The numbers of lists as text, (N, F) of texts, separated by commas or blanks. Raises
    UserError for lists of several lengths, and for those that NumPy has abbreviated."""
    texts = texts.str.replace(SCALAR, r"\1", regex=True)
    rows = [text[1:-1].replace(",", " ").split() for text in texts]
    lengths = {len(row) for row in rows}
    actual = ""
    if any("..." in row for row in rows):
        actual = "lists that are abbreviated with ..."
    elif len(lengths) > 1:
        actual = f"lists of {len(lengths)} lengths, as {min(lengths)} and {max(lengths)}"
    if actual:
        where, expected = f"{path}: column {name!r}", "all numbers of each row"
        advice = "save the array with numpy.save, or the column of lists as .parquet"
        raise UserError(where, expected, actual, advice)
    return np.array(rows, object)


def _table(path: Path, columns: dict[str, np.ndarray | pd.Series], what: str) -> Rows:
    """One column of lists, or one per number, of one type and named in a series; and ids."""

    def refused(name: str, found: object) -> UserError:
        return UserError(f"{path}: column {name!r}", "an id, or one number of each row", found, DO)

    ids, numbers, integers = {}, {}, {}
    for name, array in columns.items():
        array = np.asarray(array)
        if is_id(name) and array.ndim == 1:
            if array.dtype.kind == "f" and (array % 1 == 0).all():  # pandas has no whole NaN
                array = array.astype(np.int64)
            if array.dtype.kind not in "iuO" or None in array.tolist():
                raise refused(name, "fractions or nothing in some rows")
            texts = (x.decode() if isinstance(x, bytes) else str(x) for x in array.tolist())
            ids[name] = [text.strip() for text in texts]
        elif array.dtype.kind == "f" or (array.ndim > 1 and array.dtype.kind in "iub"):
            numbers[name] = array
        elif array.dtype.kind in "iu":
            integers[name] = array
        else:
            raise refused(name, short(next(iter(array.tolist()), None)))
    if numbers and integers:
        name, array = next(iter(integers.items()))
        raise refused(name, short(next(iter(array.tolist()), None)))
    numbers |= integers
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


KINDS = (*mat_files.REAL, *mat_files.WHOLE, mat_files.LOGICAL)
READERS = {
    ".npy": lambda path, what: Rows(path, npy_files.array_of(files.content(path))),
    ".npz": lambda path, what: _chosen(path, npy_files.arrays_of(path), what),
    ".parquet": _parquet,
    ".csv": _csv,
    ".tsv": _csv,
    ".safetensors": _tensors,
    ".pt": _tensors,
    ".pth": _tensors,
    ".mat": lambda path, what: Rows(path, mat_files.matrix(path, "feats", "(F, N)", KINDS).T),
}

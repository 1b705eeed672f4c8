"""Rows of numbers that were made elsewhere, with the ids that they bear: embeddings,
scores and features. Files are read without trust; nothing is unpickled.

    .npy            one array
    .npz            one array of numbers; beside it, ids as arrays of one dimension
    .safetensors    the same, as tensors
    .pt, .pth       a tensor that torch saved, or several by name; no other object
    .parquet, .csv  one row per item: a column of lists, or one column per number; columns of ids
    .tsv            the same, with tabs; lists are text in brackets, as pandas writes them
    .mat            Matlab's variable `feats`, one column per item

Ids stand in such a column or array, in the index that pandas keeps, or in
<name>_ids.txt beside the file, one per line. Whatever is neither a number of a row nor
an id is refused by its name: a column that counts rows would leak their order into the
scores.

N = rows, F = numbers of a row.
"""

import csv
import glob
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
from benchmark.features import mat_files, number_formats
from benchmark.features.number_formats import WholeNumbers
from benchmark.readers import archives, packed_images

# Names that ids have in files, apart from underscores and a plural s. Others may be of
# either.
NAMES = {
    "images": "imageid imgid cocoid image img filename filepath file path imagename imgname "
    "imagefile imagepath imgpath photo photoid picture pictureid".split(),
    "captions": "captionid capid sentid sentenceid textid txtid annid annotationid".split(),
    "": "id uid uuid key name itemid".split(),
}
# what pandas calls an index
COUNTERS = ("index", "indexlevel0", "unnamed:0", "level0", "")
ARRAYS = {  # how their names begin, where a file has several
    "images": r"image|img|im_|vis|pic|photo",
    "captions": r"cap|text|txt|sent|lang",
    "i2t": r".*i2t",
    "t2i": r".*t2i",
}
# whose array is refused where it stands alone; one of i2t holds for t2i, too
OTHERS = {"images": "captions", "captions": "images", "i2t": "t2i"}
MOST_TEXT = 1 << 27  # bytes of a text file, which takes ten times as much in memory
# of the largest number: what another batch or half precision changes
NEARLY_EQUAL = 1e-3
NOWHERE = 10**9  # beyond every rank
NUMBERS = "fiubV"  # kinds of NumPy's types; V is of 2 bytes, as bfloat16 is saved
HALF_BYTES = 2
VALUE = 8  # bytes that a value of a table takes at most; of a text, its place
ORDER = "score --items FOLDER writes the ids that are wanted, in order"
WAYS = ("i2t", "t2i")  # what scores are of
BESIDE = "_ids.txt"  # end of the name of a file of ids
LISTS = (".txt", ".json", ".jsonl", ".lst")  # endings of files of ids under other names
TABLES = (".csv", ".tsv", ".parquet", ".jsonl")  # endings of tables of ranks or values
SEVERAL = (".npz", ".safetensors", ".pt", ".pth")  # files that may hold several arrays
INTEGER = re.compile(r"[-+]?\d+")
DECIMAL = r"[-+]?(\d+\.\d*|\.\d+|\d+(?=e))(e[-+]?\d+)?"
SCALAR = r"np\.\w+\(([^()]*)\)"  # a number in a list, as NumPy writes it
LISTED = rf"\[[^\[\]]*\]|\(([-+.,\se\d]|{SCALAR})*\)"  # all numbers of a row
LIST, FRACTIONS = re.compile(LISTED), re.compile(f"{DECIMAL}|{LISTED}", re.IGNORECASE)
SERIES = re.compile(r"(.*?)0*(\d+)")  # a name of a regular series, and its number
FIRST_LINES = 10  # of a table, that tell whether it has names
SAVE_TENSOR = (
    "save one tensor, torch.save(x, path), and its ids as text in NAME_ids.txt"
)
NAME_COLUMNS = (
    "name ids image_id or caption_id, numbers x0, x1, ..., and leave out the rest"
)


@dataclass(frozen=True)
class Rows:
    """Numbers (N, F), or (N, R, F) of regions, and what their rows belong to. The
    columns of scores have ids, too."""

    path: Path
    values: np.ndarray  # of single or double precision
    # by the column, array or file of them
    ids: dict[str, list[str]] = field(default_factory=dict)
    columns: list[str] | None = None  # the names of a table's
    whole: WholeNumbers | None = None  # what the file has, if these are whole numbers


def read_rows(path: Path, what: str) -> Rows:
    """The rows of `what`, images or captions, or scores: i2t, t2i. Of several arrays in
    a file, the one whose name tells so. Raises UserError for anything that is not
    finite numbers and ids."""
    return _as_floats(_stored_rows(path, what))


def read_embeddings(path: Path, what: str, numbers: str | None = None) -> Rows:
    """The same of embeddings, whose whole numbers may be bits or other numbers;
    `numbers` says so, one of number_formats.FORMATS. Raises UserError where it must be
    said."""
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
        raise UserError(
            path,
            expected=f"one of {', '.join(READERS)}",
            found=ending or "no ending",
            do="save it with numpy.save, or with its ids with numpy.savez",
        )
    with files.readable(path, f"a {ending} file", "save it again, or correct the path"):
        rows = READERS[ending](path, what)
        ids = rows.ids | ids_beside(path)
    values = rows.values
    expected = "numbers (N, F)"
    kind = values.dtype
    if kind.kind == "V" and (kind.names or kind.itemsize != HALF_BYTES):
        raise UserError(
            path,
            expected=expected,
            found=f"{kind}, a type that NumPy does not know",
            do="save x.astype(numpy.float32)",
        )
    has_shape = values.ndim in (2, 3) and 0 not in values.shape
    if not has_shape or kind.kind not in NUMBERS:
        raise UserError(
            path,
            expected=expected,
            found=f"{kind} {values.shape}",
            do="save one row per item",
        )
    lengths = values.shape if what in WAYS else values.shape[:1]
    for name, names in ids.items():
        if len(names) not in lengths:
            raise UserError(
                f"{path}: {name}",
                expected=f"an id for each of {len(values)} rows",
                found=len(names),
                do="correct the ids",
            )
    return replace(rows, ids=ids)


def _as_floats(rows: Rows, may_lack: bool = False) -> Rows:
    """In single or double precision. Raises UserError for numbers that are not finite,
    but for -infinity if some may lack a score."""
    values = rows.values
    kind = rows.values.dtype
    if kind.kind == "V":
        raise UserError(
            rows.path,
            expected="numbers (N, F)",
            found=kind,
            do="save them as float32",
        )
    is_single = kind.itemsize <= (4 if kind.kind == "f" else 2)
    values = np.ascontiguousarray(values, np.float32 if is_single else np.float64)
    is_number = np.isfinite(values)
    expected = "finite numbers"
    if may_lack:
        is_number |= np.isneginf(values)
        expected += ", or -inf for what was not retrieved"
    is_bad = ~is_number.reshape(len(values), -1).all(1)
    if is_bad.any():
        row = is_bad.argmax()
        place = f"row {row}"
        for ids in rows.ids.values():
            if len(ids) == len(values):
                place += f", {ids[row]!r}"
                break
        raise UserError(
            rows.path,
            expected=expected,
            found=f"NaN or infinity in {place} ({is_bad.sum()} such rows)",
            do="compute it again",
        )
    return replace(rows, values=values)


def ids_beside(path: Path) -> dict[str, list[str]]:
    """The ids in <name>_ids.txt, by the file's name; {} without one. Line ends of any
    system, a byte order mark and blanks at ends of lines do not count."""
    file = path.with_name(f"{path.stem}{BESIDE}")
    if not files.is_file(file):
        return {}
    with files.readable(file, "ids in UTF-8, one per line", "save them so"):
        text = files.content(file).decode("utf-8-sig").rstrip()
    return {file.name: [line.strip() for line in text.split("\n")]}


def forms_of(images: pd.DataFrame) -> list[list[str]]:
    """What files may call these images: their ids, their files, and the names of these
    with and without the ending."""
    ids = images["image_id"]
    paths = images["file"]
    files_or_ids = paths.where(paths != "", ids).map(PurePosixPath)
    names = [path.name for path in files_or_ids]
    stems = [path.stem for path in files_or_ids]
    return [ids.tolist(), paths.tolist(), names, stems]


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

    `forms` are the names that the items may have, each a list in their order. Ids
    decide where there are any; else the rows are in this order already. `repeats` (M,)
    are the items of the rows of a file that has one per caption: the first of each is
    taken. `do` tells how to get their ids, `split` whose they are, "" for those of all.
    Raises UserError where a row is missing or comes twice with other numbers, where ids
    disagree, and without ids for another number of rows.
    """
    values = np.moveaxis(rows.values, axis, 0)
    wanted = f"{what} (columns)" if axis else what
    if split:
        wanted += f" of {split}"
    sources = _sources_of_ids(rows, forms, what, axis, len(values))
    if not sources:
        refuse_unread_ids(rows.path, forms)
        count = len(forms[0])
        if repeats is not None and len(values) == len(repeats) != count:
            return _first_of_each(rows.path, values, repeats, wanted, do)
        if len(values) != count:
            raise UserError(
                rows.path,
                expected=f"the {count} {wanted}",
                found=len(values),
                do=f"{do}; or give ids",
            )
        return np.arange(len(values))
    rows_by = {name: rows_of_items(ids, name, forms) for name, ids in sources.items()}
    matches = {name: (items >= 0).sum() for name, items in rows_by.items()}
    best = max(matches, key=matches.__getitem__)
    ids = sources[best]
    items = rows_by[best]
    _refuse_repeated(rows.path, values, ids)
    is_lacking = items < 0
    if is_lacking.any():
        first = forms[0][is_lacking.argmax()]
        source = f"{best or 'the index'} has {', '.join(map(repr, ids[:3]))} ..."
        raise UserError(
            rows.path,
            expected=f"a row for each of {len(items)} {wanted}",
            found=f"none for {first!r} ({is_lacking.sum()} such in all): {source}",
            do=do,
        )
    _refuse_other_order(rows.path, rows_by, best)
    return items


def _refuse_other_order(path: Path, rows_by: dict[str, np.ndarray], best: str) -> None:
    """Raise UserError where other ids than the `best` find all items, too, and in other
    rows."""
    for other, items in rows_by.items():
        if (items >= 0).all() and (items != rows_by[best]).any():
            raise UserError(
                path,
                expected=f"one order in {best} and {other}",
                found="two",
                do="remove the wrong one",
            )


def _sources_of_ids(
    rows: Rows,
    forms: Sequence[Sequence[str]],
    what: str,
    axis: int,
    count: int,
) -> dict[str, list[str]]:
    """The ids of an axis of `count` rows or columns, by where they stand. Raises
    UserError for ids of other items alone."""
    fitting = {name: ids for name, ids in rows.ids.items() if len(ids) == count}
    sources = _ids_for(what, fitting)
    if axis == 1 and rows.columns:  # a series may count them, or be the very ids
        is_series = _first_irregular(rows.columns) is None
        if not is_series or set(forms[0]) <= set(rows.columns):
            sources["the names of the columns"] = rows.columns
    if fitting and not sources and axis == 0:
        raise UserError(
            rows.path,
            expected=f"ids of {what}",
            found=f"only {', '.join(fitting)}",
            do=f"add a column {what[:-1]}_id",
        )
    return sources


def _ids_for(what: str, ids: dict[str, list[str]]) -> dict[str, list[str]]:
    """Those that may be ids of these items, by their names."""
    return {name: ids[name] for name in ids if role_of(name) in (what, "")}


def _refuse_repeated(path: Path, values: np.ndarray, ids: list[str]) -> None:
    """Raise UserError for an id that comes twice with other numbers."""
    first = _first_places(ids)
    for row, name in enumerate(ids):
        if first[name] == row:
            continue
        earlier = values[first[name]]
        if (values[row] != earlier).any():
            apart = np.abs(values[row] - earlier).max()
            raise UserError(
                path,
                expected="every id once",
                found=f"{name!r} twice, with numbers that differ by up to {apart:.2g}",
                do="keep one row of each id, or correct the ids",
            )


def _first_places(names: Sequence[str]) -> dict[str, int]:
    """Where each name comes first."""
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        first.setdefault(name, place)
    return first


def _first_of_each(
    path: Path,
    values: np.ndarray,
    repeats: np.ndarray,
    wanted: str,
    do: str,
) -> np.ndarray:
    """The first row of each item, of rows that repeat it once per caption. Raises
    UserError where they are not equal; `do` tells how to get their ids."""
    _, first, counts = np.unique(repeats, return_index=True, return_counts=True)
    if (values == values[first[repeats]]).all():
        return first
    apart = np.abs(values - values[first[repeats]]).max()
    advice = "keep the first row of each image"
    if apart > NEARLY_EQUAL * np.abs(values).max():
        advice = f"name the file of the images; {do}"
    elif counts.min() == counts.max():
        advice += f", x[::{counts[0]}]"
    count = f"{len(values)}, the number of captions"
    raise UserError(
        path,
        expected=f"the {len(first)} {wanted}",
        found=f"{count}; rows of one image differ by up to {apart:.2g}",
        do=advice,
    )


def refuse_unread_ids(path: Path, forms: Sequence[Sequence[str]]) -> None:
    """Raise UserError if ids of these items stand beside a file, under an unrecognised
    file name: x.txt, x_names.json, x_ids.npy. Rows would be taken as if there were
    none."""
    proper = path.stem + BESIDE
    for file in sorted(path.parent.glob(f"{glob.escape(path.stem)}[._-]*")):
        if file.name in (path.name, proper) or not files.is_file(file):
            continue
        has_ids = f"{file.stem}.txt" == proper  # x_ids.npy, x_ids.csv
        if file.suffix.lower() in LISTS:
            text = files.content(file).decode("utf-8-sig", "replace")
            words = map(str.strip, re.split(r'[\n\r",\t\[\]{}]+', text))
            ids = list(filter(None, words)) or [""]
            has_ids = (rows_of_items(ids, "", forms) >= 0).mean() > 1 / 2
        if has_ids:
            raise UserError(
                file,
                expected=f"ids in {proper}",
                found="ids in this file",
                do=f"save them as {proper}, one per line, or remove the file",
            )


def rows_of_items(
    ids: Sequence[str],
    where: str,
    forms: Sequence[Sequence[str]],
) -> np.ndarray:
    """The first row of each item (n,), -1 for none, under the names that most are found
    by. `where` is the name of the column in which the ids stand."""
    is_named = role_of(where) or where.endswith(BESIDE)
    # may count rows, and match by chance
    if not is_named and all(map(str.isdecimal, ids)):
        forms = forms[:1]
    tries = [(ids, wanted) for wanted in forms]
    if len(forms) > 1:  # images, which may bear the path of another machine
        paths = [PurePosixPath(name.replace("\\", "/")) for name in ids]
        names = [path.name for path in paths]
        _, _, file_names, *_ = forms  # as `forms_of` has them
        tries.append((names, file_names))
    if is_named:  # as numbers, too, which lose zeros
        numbers = list(map(number_of, ids))
        wanted_numbers = list(map(number_of, forms[-1]))
        tries.append((numbers, wanted_numbers))
    matches = []
    for given, wanted in tries:
        are_distinct = len(set(wanted)) == len(wanted)
        if are_distinct and len(set(given)) == len(set(ids)):
            first = _first_places(given)
            matches.append(np.array([first.get(name, -1) for name in wanted]))
    return max(matches, key=lambda rows: (rows >= 0).sum())


def number_of(name: str) -> str:
    """COCO_val2014_000000123456 -> 123456; a name stays as it is if it does not end
    with digits, or has more of them than any file name can have."""
    digits = re.search(r"\d+$", name)
    if digits is None or len(digits[0]) > LONGEST_PATH:
        return name
    return str(int(digits[0]))


# Names --------------------------------------------------------------------------------


def role_of(name: str) -> str:
    """images or captions, as the name of a column or array tells; "" if it does not."""
    plain = _plain(name)
    for role, names in NAMES.items():
        if plain in names:
            return role
    return ""


def is_id(name: str) -> bool:
    """Whether a column or array of this name has ids."""
    plain = _plain(name)
    return plain in COUNTERS or any(plain in names for names in NAMES.values())


def _plain(name: str) -> str:
    return re.sub(r"[_\s-]|(?<=.)s$", "", name.casefold())


def _first_irregular(names: Sequence[str]) -> str | None:
    """The first name that breaks a regular series, such as x0, x1, ... or 1, 2, ...;
    None: there is none."""
    first = SERIES.fullmatch(names[0])
    if first is None:
        return names[0]
    stem = first[1]
    start = 1 if first[2] == "1" else 0
    for number, name in enumerate(names, start):
        match = SERIES.fullmatch(name)
        if match is None:
            return name
        if match[1] != stem or int(match[2]) != number:
            return name
    return None


# Formats ------------------------------------------------------------------------------


def _tensors(path: Path, what: str) -> Rows:
    import torch  # which takes seconds, and nothing else here needs

    from benchmark.features import weight_files

    tensors = weight_files.read_tensors(path, SAVE_TENSOR)
    arrays = {}
    if not isinstance(tensors, dict):
        tensors = {"rows": tensors}
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise UserError(
                path,
                expected="a dense tensor",
                found=f"{name!r}, {tensor.layout}, {tensor.dtype}",
                do="save x.to_dense(), or x.dequantize()",
            )
        # one number stands for many
        if tensor.numel() > tensor.untyped_storage().nbytes():
            raise ValueError("a tensor that is larger than what it holds")
        if tensor.is_floating_point() and tensor.element_size() < 4:
            tensor = tensor.float()
        arrays[name] = tensor.detach().numpy()
    return _chosen(path, arrays, what)


def _chosen(path: Path, arrays: dict[str, np.ndarray], what: str) -> Rows:
    """Arrays of one dimension with text or whole numbers are ids; one other is the
    rows."""
    ids = {}
    values = {}
    for name, array in arrays.items():
        kind = array.dtype.kind
        if array.ndim == 1 and kind in "USiu":
            ids[name] = texts_of(array)
        elif array.ndim in (2, 3) and kind in NUMBERS:
            values[name] = array
        else:
            raise UserError(
                path,
                expected="only rows (N, F) and their ids (N,)",
                found=f"{name!r}, {array.dtype} {array.shape}",
                do="leave it out",
            )
    names = list(values)
    if len(names) > 1:  # the others have ids of their own
        names = [name for name in names if _is_of(name, what)]
        if what in NAMES:
            ids = _ids_for(what, ids)
    elif names and what in OTHERS:
        _refuse_other_side(path, names[0], what)
    if len(names) != 1:
        raise UserError(
            path,
            expected="one array of numbers",
            found=", ".join(values) or "none",
            do="save it in a file of its own",
        )
    return Rows(path=path, values=values[names[0]], ids=ids)


def _is_of(name: str, what: str) -> bool:
    """Whether an array has `what`, a key of ARRAYS, as its name says."""
    return re.match(ARRAYS[what], name.casefold()) is not None


def _refuse_other_side(path: Path, name: str, what: str) -> None:
    """Raise UserError for the only array of a file if its name is that of the other
    side: two files in each other's place would be read without a word."""
    if _is_of(name, what) or not _is_of(name, OTHERS[what]):
        return
    advice = f"name the file of {what}, or rename the array if it has them"
    if what in WAYS:
        advice = "save scores (images, captions) as i2t, alone or beside t2i"
    raise UserError(path, f"an array of {what}", f"{name!r} alone", advice)


def texts_of(array: np.ndarray) -> list[str]:
    """Texts, bytes or whole numbers as texts."""
    texts = np.strings.decode(array) if array.dtype.kind == "S" else array
    return texts.astype(str).tolist()


def parquet_table(path: Path) -> pa.Table:
    """The table of a parquet file, of whose texts each is unpacked once. Raises
    UserError for one that is too large."""
    with packed_images.parquet(path) as table:
        kinds = packed_images.leaves(table)
        pages = packed_images.pages(path, table, kinds)
        size = sum(page.unpacked + VALUE * page.values for page in pages)
        if size > files.MOST:
            raise files.too_large(path, files.MOST)
        texts = [name for name, kind in kinds.items() if kind == "BYTE_ARRAY"]
        return pq.ParquetFile(path, read_dictionary=texts).read()


def table_of(path: Path) -> pd.DataFrame:
    """A table, .parquet, .jsonl, .csv or .tsv, with plain names of its columns. Raises
    UserError for one that is too large, and ValueError for rows that do not fit it."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        table = parquet_table(path).to_pandas(ignore_metadata=True)
    elif ending == ".jsonl":
        rows = [row for _, row in json_lines(path)]
        for row in rows:
            if not isinstance(row, dict) or row.keys() != rows[0].keys():
                raise ValueError("rows that are not objects with the same keys")
        table = pd.DataFrame.from_records(rows)
    else:
        text = files.content(path, MOST_TEXT).decode("utf-8-sig")
        separator = "\t" if ending == ".tsv" else separator_of(text)
        rows = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
        table = framed(next(rows, []), rows)
    heads = [str(head).strip().casefold() for head in table]
    return table.set_axis(heads, axis=1)


def json_lines(path: Path) -> Iterator[tuple[str, object]]:
    """The place of each line of a file that is not blank, and what it has."""
    lines = files.content(path, MOST_TEXT).decode("utf-8-sig").split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{path}: row {number}"
            yield where, files.parse_json(line, where, "correct the file")


def framed(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> pd.DataFrame:
    """A table of rows, but for empty ones. Raises ValueError for one of another
    length."""
    kept = [row for row in rows if row]
    for row in kept:
        if len(row) != len(heads):
            raise ValueError(f"{len(row)} cells in a row, and {len(heads)} columns")
    return pd.DataFrame(kept, columns=list(heads))


def text_of(cell: object) -> str:
    """A cell as text, "" where nothing is. Raises ValueError for other things."""
    if cell is None or cell is pd.NA or cell != cell:
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
    """Whole ranks from 0; infinity where nothing, -1 or `not_found` says "not found";
    NaN for what is none. `first_rank` is the number of the first rank."""
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
    _refuse_one_name_twice(path, table.column_names)
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        columns[name] = _array(column.combine_chunks())
    return _table(path, columns, what)


def _array(column: pa.Array) -> np.ndarray:
    """The values (N,) of a column, or (N, F) of lists; of objects where these are no
    such thing."""
    shape = [len(column)]
    while isinstance(column, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        lengths = pc.unique(pc.list_value_length(column))
        if len(lengths) != 1 or not lengths[0].is_valid:
            return np.full(shape, f"lists of {len(lengths)} lengths", object)
        column = column.flatten()
        shape = [*shape, lengths[0].as_py()]
    if isinstance(column, pa.DictionaryArray) and not column.null_count:
        values = np.array([*column.dictionary.to_pylist(), None], object)
        return values[column.indices.to_numpy(zero_copy_only=False)]
    return column.to_numpy(zero_copy_only=False).reshape(shape)


def _csv(path: Path, what: str) -> Rows:
    """Where the first line has numbers instead of names, a column of text is the
    ids."""
    text = files.content(path).decode("utf-8-sig")
    table = pd.read_csv(
        io.StringIO(text),
        dtype=str,
        sep=separator_of(text, "\t,;" if path.suffix.lower() == ".tsv" else ",\t;"),
        header=None,
        keep_default_na=False,
    )
    names = table.iloc[0].str.strip().tolist()
    if _are_numbers(table.iloc[:FIRST_LINES], what):
        columns = _without_names(path, table)
    else:
        _refuse_one_name_twice(path, names)
        columns = {name: table[n].iloc[1:] for n, name in enumerate(names)}
        texts = {name: column for name, column in columns.items() if not is_id(name)}
        columns |= _parsed(path, texts)
    rows = _table(path, columns, what)
    return replace(rows, values=number_formats.narrowed(rows.values))


def separator_of(text: str, known: str = ",\t;") -> str:
    """What separates the columns of a table, by its first line: the first of those
    that are known."""
    first_line, _, _ = text.partition("\n")
    for separator in known:
        if separator in first_line:
            return separator
    return ","


def _are_numbers(table: pd.DataFrame, what: str) -> bool:
    """Whether the first line of a table has numbers of a row. Whole numbers are names
    of columns if they are in a series or above fractions; those of scores may be ids of
    items."""
    is_fraction = table.map(lambda cell: bool(FRACTIONS.fullmatch(cell.strip())))
    if is_fraction.iloc[0].any():
        return True
    first_line = [cell.strip() for cell in table.iloc[0]]
    whole = [cell for cell in first_line if INTEGER.fullmatch(cell)]
    if not whole or what not in NAMES or is_fraction.any(axis=None):
        return False
    return _first_irregular(whole) is not None


def _refuse_one_name_twice(path: Path, names: Sequence[str]) -> None:
    """Raise UserError for columns of one name."""
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise UserError(
            path,
            expected="every column once",
            found=f"{repeated!r} twice",
            do=NAME_COLUMNS,
        )


def _without_names(path: Path, table: pd.DataFrame) -> dict[str, pd.Series]:
    """The columns of a table without names: the first one of text is the ids. Raises
    UserError for a column that counts rows, or has other whole numbers where the others
    have fractions."""
    columns = {f"column {n}": table[n] for n in table}
    numbers = _parsed(path, columns)
    have_fractions = not all(map(_are_whole, numbers.values()))
    for name, column in numbers.items():
        if len(column) <= 2:
            continue
        is_counter = column.ndim == 1 and (np.diff(column) == 1).all()
        is_distinct = _are_whole(column) and len(np.unique(column)) == len(column)
        # these are ids, or would leak the order
        if is_counter or (is_distinct and have_fractions):
            first = ", ".join(f"{number:g}" for number in column[:3])
            raise UserError(
                f"{path}: {name}",
                expected="one number per row",
                found=f"{first}, ... without a name",
                do="name all columns: image_id or caption_id, x0, x1, ...",
            )
    texts = [name for name in columns if name not in numbers]
    kept = {"id": columns[texts[0]]} if texts else {}
    for name in texts[1:]:
        kept[name] = columns[name]
    for number, column in enumerate(numbers.values()):
        kept[str(number)] = column
    return kept


def _parsed(path: Path, columns: dict[str, pd.Series]) -> dict[str, np.ndarray]:
    """Those columns of text that are numbers: (N,), or (N, F) of lists. They are
    integers if all are written so."""
    cells = {}
    numbers = {}
    for name, column in columns.items():
        texts = column.str.strip()
        cells[name] = texts.to_numpy(object)
        if texts.map(LIST.fullmatch).notna().all():
            cells[name] = _listed(path, name, texts)
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
    """The numbers of lists as text, (N, F) of texts, separated by commas or blanks.
    Raises UserError for lists of several lengths, and for those that NumPy has
    abbreviated."""
    texts = texts.str.replace(SCALAR, r"\1", regex=True)
    rows = [text[1:-1].replace(",", " ").split() for text in texts]
    lengths = {len(row) for row in rows}
    actual = ""
    if any("..." in row for row in rows):
        actual = "lists that are abbreviated with ..."
    elif len(lengths) > 1:
        actual = f"lists of {min(lengths)} to {max(lengths)} numbers"
    if actual:
        raise UserError(
            f"{path}: column {name!r}",
            expected="all numbers of each row",
            found=actual,
            do="save the array with numpy.save, or the column of lists as .parquet",
        )
    return np.array(rows, object)


def _table(path: Path, columns: dict[str, np.ndarray | pd.Series], what: str) -> Rows:
    """One column of lists, or one per number, of one type and named in a series; and
    ids."""
    ids = {}
    numbers = {}
    integers = {}
    for name, column in columns.items():
        array = np.asarray(column)
        kind = array.dtype.kind
        if is_id(name) and array.ndim == 1:
            ids[name] = _id_texts(path, name, array)
        elif kind == "f" or (array.ndim > 1 and kind in "iub"):
            numbers[name] = array
        elif kind in "iu":
            integers[name] = array
        else:
            raise _wrong_column(path, name, _first_cell(array))
    if numbers and integers:
        name, array = next(iter(integers.items()))
        raise _wrong_column(path, name, _first_cell(array))
    numbers = numbers or integers
    if not numbers:
        return Rows(path=path, values=np.empty(0), ids=ids)
    names = list(numbers)
    first, *others = names
    kind = numbers[first].dtype
    for name, array in numbers.items():
        if array.ndim > 1 and others:
            other = others[0] if name == first else first
            raise _wrong_column(path, name, f"lists beside {other!r}: keep one")
        if array.dtype != kind:
            actual = f"{array.dtype} {array.shape[1:]} beside {kind}"
            raise _wrong_column(path, name, actual)
    arrays = list(numbers.values())
    if arrays[0].ndim > 1:
        return Rows(path=path, values=arrays[0], ids=ids)
    odd = _first_irregular(names) if what in NAMES else None
    if odd is not None:
        raise _wrong_column(path, odd, "a name outside the series x0, x1, ...")
    return Rows(path=path, values=np.stack(arrays, 1), ids=ids, columns=names)


def _wrong_column(path: Path, name: str, actual: object) -> UserError:
    return UserError(
        f"{path}: column {name!r}",
        expected="an id, or one number per row",
        found=actual,
        do=NAME_COLUMNS,
    )


def _first_cell(array: np.ndarray) -> str:
    return short(next(iter(array.tolist()), None))


def _id_texts(path: Path, name: str, array: np.ndarray) -> list[str]:
    """A column (N,) of ids as texts."""
    # pandas has no whole NaN
    if array.dtype.kind == "f" and (array % 1 == 0).all():
        array = array.astype(np.int64)
    cells = array.tolist()
    if array.dtype.kind not in "iuO" or None in cells:
        raise _wrong_column(path, name, "fractions or nothing in some rows")
    texts = []
    for cell in cells:
        text = cell.decode() if isinstance(cell, bytes) else str(cell)
        texts.append(text.strip())
    return texts


def _npy(path: Path, what: str) -> Rows:
    return Rows(path, archives.array_of(files.content(path)))


def _npz(path: Path, what: str) -> Rows:
    return _chosen(path, archives.arrays_of(path), what)


def _mat(path: Path, what: str) -> Rows:
    kinds = (*mat_files.REAL, *mat_files.WHOLE, mat_files.LOGICAL)
    return Rows(path, mat_files.matrix(path, "feats", "(F, N)", kinds).T)


READERS = {
    ".npy": _npy,
    ".npz": _npz,
    ".parquet": _parquet,
    ".csv": _csv,
    ".tsv": _csv,
    ".safetensors": _tensors,
    ".pt": _tensors,
    ".pth": _tensors,
    ".mat": _mat,
}

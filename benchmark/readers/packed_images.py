"""Images in tar and parquet files, which are read in place, and the other columns of
the latter.

Hugging Face stores images in a column of parquet files: structs of `bytes` and `path`,
or the bytes alone. Both kinds of files may come from anyone, so nothing in them is
trusted. Members of a tar are found by its headers. The size that a parquet file unpacks
to is bounded before and while it is unpacked, one row group at a time.
"""

import io
import os
import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.readers.archives import AGAIN, REFUSE, Extent, tar_members
from benchmark.readers.image_files import LARGEST, WHOLE, Folder, upright_rgb

TARS, PARQUETS = (".tar", ".tar.gz", ".tgz"), (".parquet",)
# end of the path of a file, or of a folder of such a name, that may hold an image
HOLDER_END = re.compile(r".\.(?:tar|parquet)/(?=.)", re.DOTALL | re.IGNORECASE)
# least bytes of an honest table for each row, and for each value of a column
ROW = 8
PAGE_HEADER = 1 << 16  # most bytes; it may hold the least and the greatest value
# ids of the fields of a page header (parquet.thrift)
UNPACKED, PACKED = 2, 3  # sizes in bytes
PAGE_KINDS = (5, 7, 8)  # the header of a data, a dictionary, and a second data page
VALUES_OF_PAGE = 1  # the number of values, in the header of each kind
NAMED = 9  # columns that a message lists
FOOTER = 1 << 26  # bytes of what a table says of its columns and row groups
VALUES = 1 << 26  # bytes of values that are unpacked at once
# types of fields in Thrift's compact protocol
INTEGERS = (4, 5, 6)
BYTES = 8
STRUCT = 12
SIZES = {1: 0, 2: 0, 3: 1, 7: 8}  # bytes of true, of false, of a byte, of a double
REPEATED = 10  # times that an image may stand in a row group: once per caption
SMALLER = "write it with row_group_size=100"


class Packed(Folder):
    """Images of a folder, also those in its tar and parquet files. Their names begin
    with the path of that file; the name of the member or the number of the row, from 0,
    follows."""

    def __call__(self, file: str) -> Image.Image:
        if self._held(file) is None:
            return super().__call__(file)
        return upright_rgb(io.BytesIO(self.content(file)), f"{self.path}: {file}")

    def _held(self, file: str) -> tuple[str, str] | None:
        """The tar or parquet file that holds an image, and the name of the image in
        it; None without one."""
        for end in HOLDER_END.finditer(file):
            holder = file[: end.end() - 1]
            if files.is_file(self.path / holder):
                return holder, file[end.end() :]
        return None

    def content(self, file: str) -> bytes:
        """The bytes of an image in a tar or parquet file. Raises UserError for one that
        is not there or too large."""
        where = f"{self.path}: {file}"
        with files.readable(where, WHOLE, AGAIN):
            held = self._held(file)
            if held is None:
                raise FileNotFoundError(file)
            holder, name = held
            path = self.path_of(holder)
            if path.suffix.lower() in PARQUETS:
                return _image_of_row(path, int(name), where)
            return member(path, name, LARGEST, where)


# Tars ---------------------------------------------------------------------------------


def members(path: Path) -> dict[str, Extent]:
    """name -> where each file of a tar is. Raises UserError for a tar that is damaged
    or hostile."""
    return _members(path, _state(path))


def member(path: Path, name: str, most: int, where: str) -> bytes:
    """The bytes of a file in a tar. Raises FileNotFoundError; UserError for more than
    `most`."""
    extent = members(path).get(name)
    if extent is None:
        raise FileNotFoundError(name)
    if extent.size > most:
        raise files.too_large(where, most)
    with files.opened(path) as file:  # its size was compared with that of the tar
        file.seek(extent.start)
        return file.read(extent.size)


@lru_cache(maxsize=4096)
def _members(path: Path, state: tuple) -> dict[str, Extent]:
    expected = "a whole tar archive that is not compressed"
    with files.readable(path, expected, AGAIN), files.opened(path) as file:
        return tar_members(file, path)


def _state(path: Path) -> tuple:
    """What changes when a file does; what was found in it is kept until then."""
    facts = os.stat(path)
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


# Parquet ------------------------------------------------------------------------------


def columns(path: Path) -> tuple[list[str], list[str]]:
    """The names of a parquet file's columns of images, and of the others."""
    with parquet(path) as table:
        return _columns(table)


def keys_of_columns(path: Path) -> list[tuple[str, ...]]:
    """The path of names to each value of a parquet file: its column and, in a struct or
    a list of structs, the fields down to it. A column of images is one name."""
    keys: list[tuple[str, ...]] = []
    with parquet(path) as table:
        for column in table.schema_arrow:
            keys += _keys_of(column)
    return keys


def _keys_of(column: pa.Field) -> list[tuple[str, ...]]:
    kind = column.type
    keys = []
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if not pa.types.is_struct(kind):
        return [(column.name,)]
    fields = list(kind)
    if _is_image(kind):
        keys.append((column.name,))
        fields = [inner for inner in fields if inner.name not in ("bytes", "path")]
    for inner in fields:
        keys += [(column.name, *key) for key in _keys_of(inner)]
    return keys


def parquet_records(
    path: Path,
    is_wanted: Callable[[str], bool],
) -> Iterator[tuple[str, dict, str]]:
    """The rows of a parquet file: values of the columns that are wanted, None for the
    others; and the number of the row, from 0, "" where the file has no images. The
    column of images has the path of each, if there is one. Raises UserError for a file
    that is damaged or would unpack to too much, and for several columns of images."""
    with parquet(path) as table:
        images, others = _columns(table)
        wanted = [name for name in others if is_wanted(name)]
        if len(images) > 1:
            raise UserError(
                path.name,
                expected="one column of images",
                found=", ".join(images),
                do="leave the others out",
            )
        if not wanted:
            raise UserError(
                path.name,
                expected="a column of captions",
                found=", ".join([*images, *others][:NAMED]) or "none",
                do="name the columns image and caption",
            )
        # a name may have dots, and so has the path from it to a value
        ends = tuple(f"{name}." for name in wanted)
        read = [leaf for leaf in leaves(table) if f"{leaf}.".startswith(ends)]
        read += [f"{name}.path" for name in images if f"{name}.path" in leaves(table)]
        read_pages = pages(path, table, read)
        _check_sizes(path, table.metadata.num_rows, read_pages)
        batches = table.iter_batches(_rows_at_once(read_pages), columns=read)
        records = chain.from_iterable(batch.to_pylist() for batch in batches)
        for row, record in enumerate(records):
            for name in images:
                record[name] = (record.get(name) or {}).get("path")
            record = dict.fromkeys([*images, *others]) | record
            yield f"{path.name}: row {row}", record, str(row) if images else ""


def _check_sizes(path: Path, rows: int, pages: list["Page"]) -> None:
    """Raise UserError for pages that unpack to too much, and for more rows than an
    honest file of this size has."""
    size = path.stat().st_size
    most = files.allowance(size)
    if sum(page.unpacked for page in pages) > most:
        raise files.too_large(path, most)
    rows = max([rows, *(page.values for page in pages)])
    if rows * ROW > size:
        raise UserError(
            path,
            expected="rows with an image or a caption of their own",
            found=f"{rows} in {size} bytes",
            do=REFUSE,
        )


def _columns(table: pq.ParquetFile) -> tuple[list[str], list[str]]:
    """The names of the columns of images, and of the others."""
    images = []
    others = []
    for column in table.schema_arrow:
        names = images if _is_image(column.type) else others
        names.append(column.name)
    if len({*images, *others}) < len(table.schema_arrow):
        raise ValueError("two columns of one name")
    return images, others


def _is_image(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        place = kind.get_field_index("bytes")
        return place >= 0 and _is_image(kind.field(place).type)
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def leaves(table: pq.ParquetFile) -> dict[str, str]:
    """The columns of numbers or texts, by their paths, and their physical types."""
    columns = map(table.schema.column, range(len(table.schema)))
    return {column.path: column.physical_type for column in columns}


class Page(NamedTuple):
    unpacked: int  # bytes
    packed: int  # bytes
    values: int


def pages(
    path: Path,
    table: pq.ParquetFile,
    names: Container[str],
    group: int | None = None,
) -> list[Page]:
    """The pages of some leaves, of one row group or of all, as their own headers have
    them: what reads them goes by these, and not by the sums in the footer."""
    groups = range(table.num_row_groups) if group is None else [group]
    columns = range(table.metadata.num_columns)
    listed = []
    with files.opened(path) as file:
        for number, column in product(groups, columns):
            chunk = table.metadata.row_group(number).column(column)
            if chunk.path_in_schema in names:
                listed += _pages_of(file, chunk)
    return listed


def _pages_of(file: BinaryIO, chunk: pq.ColumnChunkMetaData) -> Iterator[Page]:
    data = chunk.data_page_offset
    start = min(data, chunk.dictionary_page_offset or data)
    end = start + chunk.total_compressed_size
    while start < end:
        file.seek(start)
        head = io.BytesIO(file.read(PAGE_HEADER))
        fields = _thrift(head)
        kinds = [kind for kind in PAGE_KINDS if kind in fields]
        values = fields[kinds[0]].get(VALUES_OF_PAGE, 0) if kinds else 0
        page = Page(fields[UNPACKED], fields[PACKED], values)
        if min(page) < 0:
            raise ValueError("a page of less than nothing")
        yield page
        start += head.tell() + page.packed


def _rows_at_once(pages: Iterable[Page]) -> int:
    """How many rows may be unpacked at once: no value is longer than its page."""
    longest = max((page.unpacked for page in pages), default=0)
    rows = VALUES // max(1, longest)
    return max(1, min(1024, rows))


def _thrift(data: BinaryIO) -> dict[int, int | dict | None]:
    """The integers and structs of a struct in Thrift's compact protocol, by the ids of
    their fields; None for a field of another type."""
    fields = {}
    number = 0
    while head := data.read(1)[0]:
        step = head >> 4
        kind = head & 15
        number = number + step if step else _varint(data) >> 1
        fields[number] = None
        if kind in INTEGERS:
            zigzag = _varint(data)
            fields[number] = zigzag >> 1 ^ -(zigzag & 1)
        elif kind == STRUCT:
            fields[number] = _thrift(data)
        elif kind == BYTES:
            data.seek(_varint(data), io.SEEK_CUR)
        elif kind in SIZES:
            data.seek(SIZES[kind], io.SEEK_CUR)
        else:
            raise ValueError("a header of a page that is none")
    return fields


def _varint(data: BinaryIO) -> int:
    number = 0
    shift = 0
    while (byte := data.read(1)[0]) & 128:
        number = number | (byte & 127) << shift
        shift = shift + 7
    return number | byte << shift


@contextmanager
def parquet(path: Path) -> Iterator[pq.ParquetFile]:
    advice = f"correct the path, or {AGAIN}"
    with files.readable(path, "a .parquet file", advice), files.opened(path) as file:
        end = file.seek(0, io.SEEK_END)
        file.seek(max(0, end - 8))
        length = int.from_bytes(file.read(4), "little")  # of the footer
        is_parquet = file.read(3) == b"PAR"
        if is_parquet and length > FOOTER:
            raise files.too_large(f"{path}: its footer", FOOTER)
        yield pq.ParquetFile(file)


_alone = threading.Lock()


def _image_of_row(path: Path, row: int, where: str) -> bytes:
    with _alone:  # threads that want the same row group unpack it once
        starts = _starts(path, _state(path))
        group = bisect_right(starts, row) - 1
        content = _row_group(path, _state(path), group)[row - starts[group]]
    if content is None:
        raise UserError(
            where,
            expected="the bytes of an image",
            found="none",
            do="write the images into the file",
        )
    return content


@lru_cache(maxsize=4096)
def _starts(path: Path, state: tuple) -> list[int]:
    """The first row of each row group."""
    starts = []
    end = 0
    with parquet(path) as table:
        for group in range(table.num_row_groups):
            starts.append(end)
            end += table.metadata.row_group(group).num_rows
    return starts


@lru_cache(maxsize=2)
def _row_group(path: Path, state: tuple, group: int) -> list[bytes | None]:
    """The images of a row group. Raises UserError for one that is too large to be
    held."""
    where = f"{path}: row group {group}"
    with parquet(path) as table:
        (name,), _ = _columns(table)
        is_struct = f"{name}.bytes" in leaves(table)
        leaf = f"{name}.bytes" if is_struct else name
        read = pages(path, table, [leaf], group)
        unpacked = sum(page.unpacked for page in read)
        most = files.allowance(sum(page.packed for page in read))
        if unpacked > most:
            raise UserError(
                where,
                expected=f"at most {most} bytes of images",
                found=unpacked,
                do=SMALLER,
            )
        contents = []
        size = 0
        for batch in table.iter_batches(_rows_at_once(read), [group], [leaf]):
            size += batch.nbytes
            if size > files.ALWAYS + REPEATED * unpacked:
                raise UserError(
                    where,
                    expected="images of their own",
                    found="one of them in many rows",
                    do=REFUSE,
                )
            column = batch.column(0)
            images = column.field("bytes") if is_struct else column
            contents += images.to_pylist()
    return contents

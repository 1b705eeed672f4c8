"""Text of a raw folder, loose or in an archive. Archives are read in place, never
extracted.

An archive may come from anyone: its names are checked, and a member is read only as far
as an honest one of its size would unpack.

So are NumPy's .npy and .npz: a header may say anything, and objects are pickles.
"""

import gzip
import io
import math
import mmap
import stat
import tarfile
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.core.files import opened
from benchmark.core.names import inside

HEADER = 1 << 20  # bytes of a header of a tar; a name has at most 1,024
REFUSE, AGAIN = "do not use this archive", "get the file again"
LONGEST = 1 << 16  # bytes of a header; NumPy refuses those of more than 10,000


def text(path: Path, member: str) -> str:
    """A UTF-8 text file, or a member of an archive (.zip, .tar.gz) if `path` is one.

    Raises UserError for a file that is missing, damaged or too large, and without the
    member.
    """
    where = path if path.name == member else f"{path}: {member}"
    with files.readable(where, "UTF-8 text", AGAIN):
        if path.suffix == ".gz":
            content = _tarred(path, member)
        elif path.suffix != ".zip":
            content = files.content(path)
        else:
            with unzipped(path) as zipped:
                content = content_of(zipped, path, member)
        return content.decode("utf-8-sig")  # a mark at the start is no letter


def lines(path: Path, member: str) -> list[str]:
    """The lines of `text` without line ends; the last line may lack one.

    str.splitlines would also split at rarer characters, which a caption may contain.
    """
    pieces = [line.removesuffix("\r") for line in text(path, member).split("\n")]
    return pieces[:-1] if pieces[-1] == "" else pieces


@contextmanager
def unzipped(archive: Path) -> Iterator[ZipFile]:
    """A zip archive.

    Raises UserError for a name outside the archive's own folder or that occurs twice,
    and for a member that is a link.
    """
    with files.opened(archive) as file:
        with files.readable(archive, "a whole zip archive", AGAIN):
            zipped = ZipFile(file)
            for info in zipped.infolist():
                shown = info.filename
                path = PurePosixPath(shown.replace("\\", "/"))
                has_drive = shown[1:2] == ":"
                if path.is_absolute() or ".." in path.parts or has_drive:
                    raise UserError(
                        archive,
                        expected="members inside it",
                        found=f"{shown!r:.200}, outside",
                        do=REFUSE,
                    )
                if stat.S_ISLNK(info.external_attr >> 16):
                    raise UserError(
                        archive,
                        expected="no links",
                        found=f"the link {shown!r:.200}",
                        do=REFUSE,
                    )
            for name, count in Counter(zipped.namelist()).most_common(1):
                if count > 1:
                    raise UserError(
                        archive,
                        expected="every name once",
                        found=f"{name!r:.200} {count} times",
                        do=REFUSE,
                    )
        with zipped:
            yield zipped


def read_member(
    zipped: ZipFile,
    info: ZipInfo,
    where: object,
    most: int | None = None,
) -> bytes:
    """The bytes of a member. Raises UserError for more than `most` or than it can
    honestly be, and errors of zipfile for damaged bytes."""
    allowed = files.allowance(info.compress_size, most)
    if info.file_size > allowed:  # as declared
        raise files.too_large(where, allowed)
    with zipped.open(info) as member:
        content = files.bounded(member, allowed, where)
    if len(content) != info.file_size:
        raise BadZipFile(f"{info.file_size} bytes declared, {len(content)} in it")
    return content


def content_of(zipped: ZipFile, archive: Path, member: str) -> bytes:
    """The bytes of a member by name. Raises FileNotFoundError for a name that is not
    there, and otherwise as `read_member`."""
    if member not in zipped.NameToInfo:
        raise FileNotFoundError(member)
    return read_member(zipped, zipped.getinfo(member), f"{archive}: {member}")


class Extent(NamedTuple):
    """Where a file lies in a tar that is not compressed."""

    start: int
    size: int  # bytes


def tar_members(file: BinaryIO, path: Path) -> dict[str, Extent]:
    """name -> where each file of an open tar is.

    Raises UserError for links, devices and names outside, for a large header and a name
    that occurs twice, and other errors for a tar that is cut or damaged.
    """
    members: dict[str, Extent] = {}
    end = file.seek(0, io.SEEK_END)
    file.seek(0)
    with tarfile.open(fileobj=_Headers(file, path), mode="r:") as archive:
        while (info := archive.next()) is not None:
            archive.members.clear()  # a million would fill the memory
            if info.isdir() and info.name == ".":
                continue
            name = inside(info.name, f"{path}", REFUSE, "members inside it")
            is_plain = info.isfile() or info.isdir()
            if not is_plain or info.issparse() or info.size < 0:
                raise UserError(
                    path,
                    expected="plain files and folders",
                    found=f"{info.name!r:.200}, which is neither",
                    do=REFUSE,
                )
            extent = Extent(info.offset_data, info.size)
            if extent.start + extent.size > end:
                raise tarfile.ReadError(f"{info.name!r:.200} reaches beyond its end")
            if info.isfile() and members.setdefault(name, extent) != extent:
                raise UserError(
                    path,
                    expected="every name once",
                    found=f"{name!r:.200} twice",
                    do=REFUSE,
                )
        file.seek(archive.offset)
        rest = file.read(HEADER)
        # tarfile stops at damage without a word
        if not rest or any(rest) or file.read(1):
            raise tarfile.ReadError(f"no end, but other bytes at {archive.offset}")
    return members


class _Headers:
    """An open file of which no large piece is read, as a header that is none would have
    it."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file = file
        self.path = path
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int) -> bytes:
        if size > HEADER:
            raise files.too_large(f"{self.path}: a header", HEADER)
        return self.file.read(size)


def _tarred(path: Path, member: str) -> bytes:
    """The member of that file name, in any folder of the archive."""
    with files.opened(path) as file, gzip.open(file) as unpacked:
        content = files.bounded(unpacked, files.allowance(path.stat().st_size), path)
    members = tar_members(io.BytesIO(content), path)
    names = [name for name in members if PurePosixPath(name).name == member]
    if len(names) != 1:
        raise UserError(
            path,
            expected=f"one file named {member}",
            found=len(names) or "none",
            do=REFUSE,
        )
    start, size = members[names[0]]
    return content[start : start + size]


# Arrays -------------------------------------------------------------------------------


def array_of(content: bytes | mmap.mmap) -> np.ndarray:
    """The array of a whole .npy file, which it shares. Raises ValueError for anything
    else, and for objects, which are pickles."""
    file = BytesIO(content[:LONGEST])
    try:
        major, minor = np.lib.format.read_magic(file)
        read = getattr(np.lib.format, f"read_array_header_{major}_{minor}", None)
        if read is None:
            raise ValueError(f"version {major}.{minor} of the format")
        shape, is_fortran, dtype = read(file)
    except Exception as error:  # NumPy evaluates headers as Python
        reason = str(error.args[0] if error.args else type(error).__name__)
        # What NumPy could not evaluate follows, with a memory address.
        raise ValueError(reason.partition(": <")[0].partition("\n")[0]) from error
    if dtype.hasobject:
        raise ValueError("pickled objects; save texts as str, numbers as float32")
    size = len(content) - file.tell()
    claimed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != claimed:
        raise ValueError(f"{size} bytes of values, but {dtype} {shape} has {claimed}")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C")


def mapped(path: Path) -> np.ndarray:
    """The array of a .npy file, of which nothing is read yet. Raises as `array_of`."""
    with opened(path) as file:
        return array_of(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def arrays_of(
    path: Path,
    names: Container[str] | None = None,
    most: int | None = None,
) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, or those of some names, each of at most so many
    bytes."""
    arrays = {}
    with unzipped(path) as zipped:
        for info in zipped.infolist():
            name = info.filename.removesuffix(".npy")
            if name in arrays:  # a and a.npy
                raise UserError(
                    path,
                    expected="every array once",
                    found=f"{name!r:.200} twice",
                    do=REFUSE,
                )
            if names is None or name in names:
                member = read_member(zipped, info, f"{path}: {name}", most)
                arrays[name] = array_of(member)
    return arrays

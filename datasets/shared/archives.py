"""Text of a raw folder, loose or in an archive. Archives are read in place, never extracted.

An archive may come from anyone: its names are checked, and a member is read only as far as an
honest one of its size would unpack.
"""

import gzip
import io
import lzma
import stat
import struct
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo

from datasets import DataError
from datasets.shared import plain_files

# What zipfile, tarfile and the decompressors raise for damaged archives.
DAMAGED = (
    *(OSError, EOFError, RuntimeError, ValueError, LookupError, ArithmeticError, struct.error),
    *(BadZipFile, NotImplementedError, tarfile.TarError, zlib.error, lzma.LZMAError),
)
OFFICIAL = "place the official archive"
REFUSE = "do not use this archive"
ENCRYPTED = 0x1  # bit of ZipInfo.flag_bits


def text(path: Path, member: str) -> str:
    """A UTF-8 text file, or a member of an archive (.zip, .tar.gz) if `path` is one.

    Raises DataError for a file that is missing, damaged or too large, and without the member.
    """
    read = {".zip": _zipped, ".gz": _tarred}.get(path.suffix, _loose)
    try:
        return read(path, member).decode("utf-8")
    except DataError:
        raise
    except FileNotFoundError as error:
        beside = "place it beside the other annotations"
        raise DataError(path, "a text file", "nothing", beside) from error
    except DAMAGED as error:
        damage = f"damage ({error})"
        raise DataError(f"{path}: {member}", "UTF-8 text", damage, "fetch it again") from error


def lines(path: Path, member: str) -> list[str]:
    """The lines of `text` without line ends; the last line may lack one.

    str.splitlines would also split at rarer characters, which a caption may contain.
    """
    pieces = [line.removesuffix("\r") for line in text(path, member).split("\n")]
    return pieces[:-1] if pieces[-1] == "" else pieces


def members(archive: Path) -> list[str]:
    """Names in a zip archive.

    Raises DataError for a name outside the archive's own folder or that occurs twice, and for a
    member that is a link or encrypted.
    """
    with unzipped(archive) as file:
        return file.namelist()


@contextmanager
def unzipped(archive: Path) -> Iterator[ZipFile]:
    """A zip archive whose names were checked. Raises as `members`."""
    with plain_files.opened(archive) as file:
        with checked_zip(file, archive) as zipped:
            yield zipped


def checked_zip(file: BinaryIO, archive: Path) -> ZipFile:
    """The zip archive in an open file. Raises as `members`."""
    try:
        zipped = ZipFile(file)
    except DAMAGED as error:
        damage, again = f"damage ({error})", "delete it and fetch again"
        raise DataError(archive, "a whole zip archive", damage, again) from error
    size = file.seek(0, io.SEEK_END)
    for info in zipped.infolist():
        if info.header_offset + info.compress_size > size:
            damage = f"damage ({info.filename!r:.200} reaches beyond its end)"
            raise DataError(archive, "a whole zip archive", damage, "fetch it again")
        _check_name(archive, info.filename)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise DataError(archive, "no links", f"the link {info.filename!r:.200}", REFUSE)
        if info.flag_bits & ENCRYPTED:
            found = f"{info.filename!r:.200}, encrypted"
            raise DataError(archive, "members without a password", found, OFFICIAL)
    for name, count in Counter(zipped.namelist()).most_common(1):
        if count > 1:
            raise DataError(archive, "every name once", f"{name!r:.200} {count} times", REFUSE)
    return zipped


def read_member(zipped: ZipFile, info: ZipInfo, where: object, most: int | None = None) -> bytes:
    """The bytes of a member. Raises DataError for more than `most` or than it can honestly be, and
    what DAMAGED lists."""
    allowed = plain_files.allowance(info.compress_size, most)
    if info.file_size > allowed:  # as declared
        raise plain_files.too_large(where, allowed)
    with zipped.open(info) as member:
        content = plain_files.bounded(member, allowed, where)
    if len(content) != info.file_size:
        raise BadZipFile(f"{info.file_size} bytes declared, {len(content)} in it")
    return content


def content_of(zipped: ZipFile, archive: Path) -> Callable[[str], bytes]:
    """A function that reads the members of an open archive by name. It raises FileNotFoundError for
    a name that is not there, and otherwise as `read_member`."""

    def read(member: str) -> bytes:
        if member not in zipped.NameToInfo:
            raise FileNotFoundError(member)
        return read_member(zipped, zipped.getinfo(member), f"{archive}: {member}")

    return read


def _check_name(archive: Path, name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or name[1:2] == ":":
        raise DataError(archive, "members inside it", f"{name!r:.200}, outside", REFUSE)


def _loose(path: Path, member: str) -> bytes:
    return plain_files.content(path)


def _zipped(path: Path, member: str) -> bytes:
    with unzipped(path) as zipped:
        try:
            return content_of(zipped, path)(member)
        except FileNotFoundError as error:
            raise DataError(path, member, "nothing of this name", OFFICIAL) from error


def _tarred(path: Path, member: str) -> bytes:
    """The member of that file name, in any folder of the archive."""
    found = []
    with plain_files.opened(path) as file, gzip.open(file) as unpacked:
        stream = _Bounded(unpacked, plain_files.allowance(path.stat().st_size), path)
        with tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 16) as archive:
            for info in archive:
                _check_name(path, info.name)
                if not (info.isfile() or info.isdir()) or info.issparse() or info.size < 0:
                    special = f"{info.name!r:.200}, which is none"
                    raise DataError(path, "plain files and folders", special, REFUSE)
                if info.isfile() and PurePosixPath(info.name).name == member:
                    found.append(plain_files.bounded(archive.extractfile(info), stream.left, path))
    if not found:
        raise DataError(path, member, "nothing of this name", OFFICIAL)
    if len(found) > 1:
        raise DataError(path, f"one {member}", f"{len(found)} of this name", REFUSE)
    return found[0]


class _Bounded:
    """An unpacked stream that may be read up to a number of bytes; then it is a DataError."""

    def __init__(self, stream: BinaryIO, most: int, where: object) -> None:
        self.stream, self.most, self.left, self.where = stream, most, most, where

    def read(self, size: int) -> bytes:
        data = self.stream.read(min(size, self.left + 1))
        self.left -= len(data)
        if self.left < 0:
            raise plain_files.too_large(self.where, self.most)
        return data

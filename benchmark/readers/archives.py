"""Text of a raw folder, loose or in an archive. Archives are read in place, never
extracted.

An archive may come from anyone: its names are checked, and a member is read only as far
as an honest one of its size would unpack.
"""

import gzip
import io
import stat
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.core.names import inside

HEADER = 1 << 20  # bytes of a header of a tar; a name has at most 1,024
REFUSE, AGAIN = "do not use this archive", "get the file again"


def text(path: Path, member: str) -> str:
    """A UTF-8 text file, or a member of an archive (.zip, .tar.gz) if `path` is one.

    Raises UserError for a file that is missing, damaged or too large, and without the
    member.
    """
    where = path if path.name == member else f"{path}: {member}"
    with files.readable(where, "UTF-8 text", AGAIN):
        if path.suffix == ".gz":
            return _tarred(path, member).decode("utf-8")
        if path.suffix != ".zip":
            return files.content(path).decode("utf-8")
        with unzipped(path) as zipped:
            return content_of(zipped, path, member).decode("utf-8")


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
                _check_member(info, archive)
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


def _check_member(info: ZipInfo, archive: Path) -> None:
    """Raise UserError for a name that leads outside, and for a link."""
    path = PurePosixPath(info.filename.replace("\\", "/"))
    shown = info.filename
    has_drive = info.filename[1:2] == ":"
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


def read_member(
    zipped: ZipFile,
    info: ZipInfo,
    where: object,
    most: int | None = None,
) -> bytes:
    """The bytes of a member. Raises UserError for more than `most` or than it can
    honestly be, and what files.DAMAGED lists."""
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
    that occurs twice, and what files.DAMAGED lists for one that is cut or damaged.
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

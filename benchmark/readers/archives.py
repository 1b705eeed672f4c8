"""Text of a raw folder, loose or in an archive. Archives are read in place, never extracted.

An archive may come from anyone: its names are checked, and a member is read only as far as an
honest one of its size would unpack.
"""

import gzip
import io
import stat
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.core.files import readable

REFUSE = "do not use this archive"
AGAIN = "fetch it again"


def text(path: Path, member: str) -> str:
    """A UTF-8 text file, or a member of an archive (.zip, .tar.gz) if `path` is one.

    Raises UserError for a file that is missing, damaged or too large, and without the member.
    """
    with readable(path if path.name == member else f"{path}: {member}", "UTF-8 text", AGAIN):
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

    Raises UserError for a name outside the archive's own folder or that occurs twice, and for a
    member that is a link.
    """
    with files.opened(archive) as file:
        with readable(archive, "a whole zip archive", AGAIN):
            zipped = ZipFile(file)
            for info in zipped.infolist():
                _check_name(archive, info.filename)
                if stat.S_ISLNK(info.external_attr >> 16):
                    raise UserError(archive, "no links", f"the link {info.filename!r:.200}", REFUSE)
            for name, count in Counter(zipped.namelist()).most_common(1):
                if count > 1:
                    found = f"{name!r:.200} {count} times"
                    raise UserError(archive, "every name once", found, REFUSE)
        with zipped:
            yield zipped


def read_member(zipped: ZipFile, info: ZipInfo, where: object, most: int | None = None) -> bytes:
    """The bytes of a member. Raises UserError for more than `most` or than it can honestly be, and
    what files.DAMAGED lists."""
    allowed = files.allowance(info.compress_size, most)
    if info.file_size > allowed:  # as declared
        raise files.too_large(where, allowed)
    with zipped.open(info) as member:
        content = files.bounded(member, allowed, where)
    if len(content) != info.file_size:
        raise BadZipFile(f"{info.file_size} bytes declared, {len(content)} in it")
    return content


def content_of(zipped: ZipFile, archive: Path, member: str) -> bytes:
    """The bytes of a member by name. Raises FileNotFoundError for a name that is not there, and
    otherwise as `read_member`."""
    if member not in zipped.NameToInfo:
        raise FileNotFoundError(member)
    return read_member(zipped, zipped.getinfo(member), f"{archive}: {member}")


def _check_name(archive: Path, name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or name[1:2] == ":":
        raise UserError(archive, "members inside it", f"{name!r:.200}, outside", REFUSE)


def _tarred(path: Path, member: str) -> bytes:
    """The member of that file name, in any folder of the archive."""
    with files.opened(path) as file, gzip.open(file) as unpacked:
        content = files.bounded(unpacked, files.allowance(path.stat().st_size), path)
    found = []
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for info in archive:
            _check_name(path, info.name)
            if not (info.isfile() or info.isdir()) or info.issparse() or info.size < 0:
                special = f"{info.name!r:.200}, which is none"
                raise UserError(path, "plain files and folders", special, REFUSE)
            if info.isfile() and PurePosixPath(info.name).name == member:
                found.append(archive.extractfile(info).read())
    if len(found) != 1:
        number = f"{len(found)} of this name" if found else "nothing of this name"
        raise UserError(path, f"one {member}", number, REFUSE)
    return found[0]

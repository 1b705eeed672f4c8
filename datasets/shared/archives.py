"""Text of a raw folder, loose or in an archive. Archives are read in place, never extracted."""

import tarfile
import zlib
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile

from datasets import DataError

DAMAGED = (UnicodeDecodeError, BadZipFile, tarfile.TarError, OSError, EOFError, zlib.error)


def text(path: Path, member: str) -> str:
    """A UTF-8 text file, or a member of an archive (.zip, .tar.gz) if `path` is one.

    Raises DataError for a file that is missing, damaged, or without the member.
    """
    read = {".zip": _zipped, ".gz": _tarred}.get(path.suffix, _loose)
    try:
        return read(path, member).decode("utf-8")
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
    """Names in a zip archive. Raises DataError for a name outside the archive's own folder."""
    try:
        with ZipFile(archive) as file:
            names = file.namelist()
    except BadZipFile as error:
        damage, again = f"damage ({error})", "delete it and fetch again"
        raise DataError(archive, "a whole zip archive", damage, again) from error
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise DataError(
                archive, "members inside it", f"{name!r}, outside", "do not use this archive"
            )
    return names


def _loose(path: Path, member: str) -> bytes:
    return path.read_bytes()


def _zipped(path: Path, member: str) -> bytes:
    if member not in members(path):
        raise DataError(path, member, "nothing of this name", "place the official archive")
    with ZipFile(path) as archive:
        return archive.read(member)


def _tarred(path: Path, member: str) -> bytes:
    """The member of that file name, in any folder of the archive."""
    with tarfile.open(path) as archive:
        for info in archive:
            if info.isfile() and PurePosixPath(info.name).name == member:
                return archive.extractfile(info).read()
    raise DataError(path, member, "nothing of this name", "place the official archive")

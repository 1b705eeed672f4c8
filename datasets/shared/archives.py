"""Text of a raw folder, loose or in an archive. Archives are read in place, never extracted."""

import tarfile
import zlib
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile

from datasets import DataError

DAMAGED = (UnicodeDecodeError, BadZipFile, tarfile.TarError, OSError, EOFError, zlib.error)


def text(path: Path, member: str) -> str:
    """A UTF-8 text file, or a member of an archive (.zip, .tar.gz) when `path` is one.

    `DataError` names the file when it is missing, damaged, or without the member.
    """
    read = {".zip": _zipped, ".gz": _tarred}.get(path.suffix, _loose)
    try:
        return read(path, member).decode("utf-8")
    except FileNotFoundError as error:
        raise DataError(f"{path}: not found; expected beside the other annotations") from error
    except DAMAGED as error:
        raise DataError(f"{path}: {member}: damaged ({error}); fetch it again") from error


def lines(path: Path, member: str) -> list[str]:
    """The lines of `text`, without their ends; the last may or may not have one.

    Not str.splitlines: a caption may hold one of the rarer characters it splits at.
    """
    found = [line.removesuffix("\r") for line in text(path, member).split("\n")]
    return found[:-1] if found[-1] == "" else found


def members(archive: Path) -> list[str]:
    """Names in a zip archive; one that would lie outside the archive's own folder is refused."""
    try:
        with ZipFile(archive) as file:
            names = file.namelist()
    except BadZipFile as error:
        raise DataError(
            f"{archive}: not a whole zip archive ({error}); delete it and fetch again"
        ) from error
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise DataError(f"{archive}: member {name!r} points outside; do not use this archive")
    return names


def _loose(path: Path, member: str) -> bytes:
    return path.read_bytes()


def _zipped(path: Path, member: str) -> bytes:
    if member not in members(path):
        raise DataError(f"{path}: no {member} in it; expected the official archive")
    with ZipFile(path) as archive:
        return archive.read(member)


def _tarred(path: Path, member: str) -> bytes:
    """The member of that file name, in whatever folder of the archive."""
    with tarfile.open(path) as archive:
        for info in archive:
            if info.isfile() and PurePosixPath(info.name).name == member:
                return archive.extractfile(info).read()
    raise DataError(f"{path}: no {member} in it; expected the official archive")

"""Pictures of a folder or of zip archives, which are read in place.

Every kind of store is an `OpenPicture` that threads and processes may share. It also has `names`,
the .jpg files that it holds, and `files`, the paths of the raw folder that it is made of.
"""

import os
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from PIL import Image

from datasets import DataError, OpenPicture
from datasets.shared import archives, name_checks, picture_files, plain_files

WHOLE = "a whole picture"
COPY = "place a copy of the picture there"
LARGEST = 1 << 28  # bytes of a picture as a file


class Folder:
    """Pictures of a folder, by their paths in it. The folder may be a link, but none of its
    pictures may be one that leads out of it."""

    def __init__(self, path: Path):
        self.path = path
        self.real = os.path.realpath(path)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.path.glob("[!.]*.jpg"))

    def files(self) -> list[Path]:
        return [self.path_of(name) for name in self.names()]

    def path_of(self, file: str) -> Path:
        """Where a picture is, or would be. Raises DataError for a path that leaves the folder."""
        name = name_checks.inside(file, f"{self.path}: {file!r:.200}", "correct its name")
        real = os.path.realpath(self.path / name)
        if not real.startswith(f"{self.real.rstrip(os.sep)}{os.sep}"):
            raise DataError(self.path / name, "a picture in this folder", f"a link to {real}", COPY)
        return self.path / name

    def __call__(self, file: str) -> Image.Image:
        path = self.path_of(file)
        try:
            with plain_files.opened(path) as content:
                _check_bytes(os.fstat(content.fileno()).st_size, path)
                return picture_files.upright_rgb(content, path)
        except FileNotFoundError as error:
            found = "one that cannot be decoded (there is no such file)"
            raise DataError(path, WHOLE, found, "place it there and fetch again") from error


class Archive:
    """Pictures of the folder `inside` of a zip archive. The handle is opened on first use and kept
    per process, because a forked child would move the file position of its parent."""

    def __init__(self, path: Path, inside: str):
        self.path = path
        self.inside = inside
        self.handles: dict[int, ZipFile] = {}
        self._names = _pictures_inside(path, inside)

    def __getstate__(self) -> dict:
        return self.__dict__ | {"handles": {}}

    def names(self) -> list[str]:
        return self._names

    def files(self) -> list[Path]:
        return [self.path]

    def __call__(self, file: str) -> Image.Image:
        handle = self.handles.get(os.getpid())
        if handle is None:
            handle = self.handles.setdefault(os.getpid(), ZipFile(self.path))
        name = f"{self.inside}/{file}"
        try:
            info = handle.getinfo(name)
            content = archives.read_member(handle, info, f"{self.path}: {name}", LARGEST)
        except KeyError as error:
            wanted, again = f"a picture {name}", "fetch the complete archive"
            raise DataError(self.path, wanted, "nothing of this name", again) from error
        except DataError:
            raise
        except archives.DAMAGED as error:
            found = f"one that cannot be decoded ({error})"
            again = "fetch the archive again"
            raise DataError(f"{self.path}: {name}", WHOLE, found, again) from error
        return picture_files.upright_rgb(BytesIO(content), f"{self.path}: {name}")


Store = Folder | Archive


class Several:
    """Pictures of several stores: the first part of a file's path is the name of its store."""

    def __init__(self, stores: Mapping[str, Store]):
        self.stores = dict(stores)

    def names(self) -> list[str]:
        return [f"{part}/{name}" for part, store in self.stores.items() for name in store.names()]

    def files(self) -> list[Path]:
        return [path for store in self.stores.values() for path in store.files()]

    def __call__(self, file: str) -> Image.Image:
        part, _, name = file.partition("/")
        if part not in self.stores:
            raise DataError(
                file, f"a picture of {' or '.join(self.stores)}", part, "place the other pictures"
            )
        return self.stores[part](name)


def find(raw: Path, *, archive: str, inside: str, folders: tuple[str, ...]) -> Store | None:
    """The archive of the raw folder, else the first of the folders; None if none of them has a
    picture."""
    archives = [Archive(raw / archive, inside)] if plain_files.is_file(raw / archive) else []
    stores = [*archives, *(Folder(raw / name) for name in folders)]
    return next((store for store in stores if store.names()), None)


def absent(advice: str) -> OpenPicture:
    """Stands in for pictures that are not there: opening one is a `DataError` with `advice`."""
    return partial(_refuse, advice)


def _refuse(advice: str, file: str) -> Image.Image:
    raise DataError(file or "an image without a file", "a picture", "nothing", advice)


def _check_bytes(size: int, where: object) -> None:
    if size > LARGEST:
        raise plain_files.too_large(where, LARGEST)


def _pictures_inside(archive: Path, inside: str) -> list[str]:
    paths = [PurePosixPath(name) for name in archives.members(archive)]
    names = [path.name for path in paths if path.parent == PurePosixPath(inside)]
    return sorted(name for name in names if name.endswith(".jpg") and not name.startswith("."))

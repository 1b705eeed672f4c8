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
from datasets.shared import archives


class Folder:
    """Pictures of a folder, by their paths in it."""

    def __init__(self, path: Path):
        self.path = path

    def names(self) -> list[str]:
        return sorted(path.name for path in self.path.glob("[!.]*.jpg"))

    def files(self) -> list[Path]:
        return [self.path / name for name in self.names()]

    def __call__(self, file: str) -> Image.Image:
        with Image.open(self.path / file) as picture:
            return picture.convert("RGB")


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
        try:
            content = handle.read(f"{self.inside}/{file}")
        except KeyError as error:
            wanted, again = f"a picture {self.inside}/{file}", "fetch the complete archive"
            raise DataError(self.path, wanted, "nothing of this name", again) from error
        with Image.open(BytesIO(content)) as picture:
            return picture.convert("RGB")


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
    archives = [Archive(raw / archive, inside)] if (raw / archive).is_file() else []
    stores = [*archives, *(Folder(raw / name) for name in folders)]
    return next((store for store in stores if store.names()), None)


def absent(advice: str) -> OpenPicture:
    """Stands in for pictures that are not there: opening one is a `DataError` with `advice`."""
    return partial(_refuse, advice)


def _refuse(advice: str, file: str) -> Image.Image:
    raise DataError(file or "an image without a file", "a picture", "nothing", advice)


def _pictures_inside(archive: Path, inside: str) -> list[str]:
    paths = [PurePosixPath(name) for name in archives.members(archive)]
    names = [path.name for path in paths if path.parent == PurePosixPath(inside)]
    return sorted(name for name in names if name.endswith(".jpg") and not name.startswith("."))

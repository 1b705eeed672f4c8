"""The files of someone's own folder, and which of them the name of an image means."""

import os
from pathlib import Path, PurePosixPath
from unicodedata import normalize
from urllib.parse import unquote

from benchmark.core.files import is_file
from benchmark.readers.key_names import folded
from benchmark.readers.text_tables import IMAGE_ENDINGS


def below(raw: Path) -> list[str]:
    """The paths of all files of the folder that are not hidden, folder by folder."""
    paths = []
    for place, folders, names in os.walk(raw):
        folders[:] = _without_hidden(folders)
        base = Path(place).relative_to(raw)
        for name in _without_hidden(names):
            paths.append((base / name).as_posix())
    return paths


def _without_hidden(names: list[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("."))


def ending_in(raw: Path, endings: tuple[str, ...]) -> list[str]:
    """The files whose names have one of these endings, in any case."""
    return [name for name in below(raw) if name.lower().endswith(endings)]


def is_image(name: str) -> bool:
    """Whether a file name has the ending of an image."""
    return PurePosixPath(name).suffix.lower().removeprefix(".") in IMAGE_ENDINGS


def meant(raw: Path, names: list[str]) -> dict[str, str]:
    """The files that the names of absent images can only mean.

    A file has the same name in another Unicode form or case, or percent-encoded, or
    all names are those of files in one folder below. Names that may mean several files
    are not in the result.
    """
    absent = [name for name in names if not is_file(raw / name)]
    if not absent:
        return {}
    index = _Index(below(raw), named=set(names))
    whole = []
    for folder in index.folders:
        moved = index.meant(absent, f"{folder}/")
        if len(moved) == len(names):
            whole.append(moved)
    return whole[0] if len(whole) == 1 else index.meant(absent, "")


class _Index:
    """Paths by their folded names.

    paths  all files of the folder
    named  the images that annotations name
    """

    def __init__(self, paths: list[str], named: set[str]) -> None:
        self.named = named
        self.folders = sorted({path.split("/")[0] for path in paths if "/" in path})
        self.paths_of: dict[str, list[str]] = {}
        for path in paths:
            self.paths_of.setdefault(folded(path), []).append(path)

    def meant(self, names: list[str], folder: str) -> dict[str, str]:
        """The only file in `folder` of each name that has just one."""
        path_of = {}
        for name in names:
            decoded = unquote(name)  # percent signs as in a URL
            paths = self.paths_of.get(folded(folder + name))
            paths = paths or self.paths_of.get(folded(folder + decoded), [])
            if len(paths) != 1:
                continue
            is_same = normalize("NFC", paths[0]) == normalize("NFC", name)
            # an image in another case is not meant where its own name is in use
            if is_same or paths[0] not in self.named:
                path_of[name] = paths[0]
        return path_of

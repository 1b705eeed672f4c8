"""The raw files of a dataset, the module that reads them, and whether they are still
those that `fetch` recorded.

The manifest, data/manifests/<dataset>.json, is the only record of the raw files: the
name, size and sha256 of each and, if datasets/<reader>.yaml lists several releases,
which one they are. Checksums are cached on this machine with the size and times of each
file, so that only changed files are read when a folder is compared with its manifest.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from benchmark.contracts import datasets
from benchmark.core.command_line import ProgressBar
from benchmark.core.errors import Strict, UserError, checked, entry, suggested
from benchmark.core.files import (
    is_file,
    json_text,
    read_json,
    read_yaml,
    sha256,
    write_json,
)
from benchmark.core.names import fault_of

# checksums computed earlier on this machine; never committed
HASHED = Path(".scratch/hashed")
# readers by the sha256 of their text, and whether they read files; never committed
NOTED_READERS = Path(".scratch/readers.json")
SAMPLE = 30  # images that tell a release


class Release(Strict):
    """One of several releases of the same dataset."""

    name: str
    pixels: tuple[int, int] | None = None  # width and height of every image; None: any
    varied: bool = False  # whether the images have several sizes
    # how it differs from the published one, in a sentence; "" if it is that one
    departs: str = ""

    def has(self, sizes: set[tuple[int, int]]) -> bool:
        """Whether images of these sizes may be of this release."""
        if self.pixels:
            return sizes == {self.pixels}
        return len(sizes) > 1 or not self.varied

    def __str__(self) -> str:
        named = f"release {self.name}"
        return f"{named}: {self.departs}" if self.departs else named


class _Releases(Strict):
    releases: list[Release]


@dataclass(frozen=True, kw_only=True)
class RawDataset:
    """A dataset as the season sets it."""

    name: str
    reader: str
    options: dict[str, Any]  # those that the season sets
    source: str | None  # folder the season takes the raw files from

    @cached_property
    def module(self) -> datasets.Dataset:
        """The reader. It imports pandas: half a second that others need not wait for."""
        return datasets.load(self.reader)

    @property
    def folder(self) -> Path:
        """Where the raw files are: a real folder, or a link to the user's own."""
        return Path("data/raw") / self.name

    @property
    def origin(self) -> Path:
        """Where the raw files come from: the folder that fetch links, if the season
        names one."""
        return Path(os.path.expanduser(self.source)) if self.source else self.folder

    @property
    def manifest(self) -> Path:
        """Names, sizes and checksums of the raw files, written by fetch."""
        return Path("data/manifests") / f"{self.name}.json"

    @property
    def manifest_sha256(self) -> str:
        """Of the manifest, but for the name of the release, which follows from the
        files."""
        content = read_json(self.manifest)
        content.pop("release", None)
        return hashlib.sha256(json_text(content).encode()).hexdigest()

    @property
    def releases(self) -> list[Release]:
        """Those that are known; [] where one is all there is."""
        path = datasets.FOLDER / f"{self.reader}.yaml"
        if not path.is_file():
            return []
        return checked(_Releases, read_yaml(path), str(path)).releases

    @property
    def release(self) -> Release | None:
        """The one that the manifest names; None without several."""
        if not self.manifest.is_file():
            return None
        name = read_json(self.manifest).get("release")
        return next((each for each in self.releases if each.name == name), None)

    def release_found(self) -> Release | None:
        """The one in the raw folder, known by the sizes of some of its images; None
        without several."""
        if not self.releases:
            return None
        files = self.read().images["file"]
        open_picture = self.pictures()
        sample = files[:: max(1, len(files) // SAMPLE)]
        sizes = {open_picture(file).size for file in sample}
        return next((each for each in self.releases if each.has(sizes)), None)

    @cached_property
    def reader_options(self) -> object:
        """The module's `Options` with those that the season sets, checked for names and
        types."""
        where = f"dataset {self.name}: options"
        kinds = get_type_hints(self.module.Options)
        advice = "correct the season"
        for key, value in self.options.items():
            if key not in kinds:
                known = ", ".join(kinds) or "(none)"
                raise UserError(
                    where,
                    expected=f"one of the reader's options: {known}",
                    found=suggested(key, kinds),
                    do=advice,
                )
            kind = kinds[key]
            try:
                TypeAdapter(kind).validate_python(value, strict=True)
            except ValidationError as error:
                raise UserError(
                    f"{where}.{key}",
                    expected=kind.__name__ if isinstance(kind, type) else str(kind),
                    found=repr(value),
                    do=advice,
                ) from error
        return self.module.Options(**self.options)

    @property
    def card(self) -> datasets.Card:
        """What is known before any byte is read."""
        return self.module.card(self.reader_options)

    def inventory(self) -> list[Path]:
        return self.module.inventory(self.folder, self.reader_options)

    def read(self) -> datasets.Tables:
        return self.module.read(self.folder, self.reader_options)

    def layers(self, tables: datasets.Tables) -> list[datasets.Layer]:
        """What people judged beside `own`; empty of a reader that knows of nothing."""
        read = getattr(self.module, "layers", None)
        return read(self.folder, tables, self.reader_options) if read else []

    def pictures(self) -> datasets.OpenPicture:
        return self.module.pictures(self.folder, self.reader_options)


def raw_dataset(params: Any, name: str) -> RawDataset:
    """A dataset of a season. Raises UserError for a reader that there is not, and for
    an option that it cannot use."""
    settings = entry(params.datasets, name, "dataset")
    reader = settings.reader or name
    dataset = RawDataset(
        name=name,
        reader=reader,
        options=dict(settings.options),
        source=settings.source,
    )
    datasets.check_name(reader)
    if settings.options:
        _ = dataset.reader_options  # raises UserError for options that the reader lacks
    return dataset


def has_files(reader: str) -> bool:
    """Whether a reader reads raw files, and does not draw all. One that is noted is not
    loaded: pandas takes half a second. Raises UserError for a name of none."""
    datasets.check_name(reader)
    noted = _noted_readers()
    digest = sha256(datasets.FOLDER / f"{reader}.py")
    if digest in noted:
        return noted[digest]
    module = datasets.load(reader)
    return bool(module.card(module.Options()).obtain)


def note_readers(readers: Iterable[str]) -> None:
    """Note whether they read files."""
    noted = _noted_readers()
    found = dict(noted)
    for reader in readers:
        found[sha256(datasets.FOLDER / f"{reader}.py")] = has_files(reader)
    if found != noted:
        write_json(NOTED_READERS, found)


def _noted_readers() -> dict[str, bool]:
    try:
        return read_json(NOTED_READERS)
    except UserError:  # missing or damaged, it is made again
        return {}


# What is there ------------------------------------------------------------------------


def digests(dataset: RawDataset, paths: list[Path]) -> dict[str, str]:
    """The sha256 of each file by its name in the raw folder, sorted by name. Files
    whose size and times have not changed are not read again. Raises UserError for a
    name that is not UTF-8, which no manifest can hold."""
    memory = HASHED / f"{dataset.name}.json"
    known = read_json(memory) if memory.is_file() else {}
    hashed = {}
    title = f"hashing {dataset.name}"
    for path in ProgressBar(sorted(set(paths)), desc=title, unit="file"):
        facts = path.stat()
        name = path.relative_to(dataset.folder).as_posix()
        if fault_of(name):
            raise UserError(
                path,
                expected="a file name in UTF-8",
                found="one with other bytes",
                do="rename the file",
            )
        identity = [facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]
        hashed[name] = known.get(name, {})
        if hashed[name].get("identity") != identity:
            hashed[name] = {"identity": identity, "sha256": sha256(path)}
    if hashed != known:
        write_json(memory, hashed)
    return {name: each["sha256"] for name, each in hashed.items()}


def present(dataset: RawDataset, expected: str, do: str = "") -> list[Path]:
    """The files of the dataset's inventory. Raises UserError unless all are there."""
    files = dataset.inventory()
    missing = [path for path in files if not is_file(path)]
    if missing:
        number = f"{len(missing)} of {len(files)} raw files are missing"
        raise UserError(
            missing[0],
            expected=expected,
            found=f"nothing ({number})",
            do=do,
        )
    return files


def is_changed(dataset: RawDataset, folder: Path) -> bool:
    """Whether `folder` is not the one that fetch linked, or its files are not those of
    the manifest; False if there is no such folder."""
    if not folder.is_dir():
        return False
    try:
        check_manifest(dataset)
    except UserError:
        return True
    return dataset.folder.resolve() != folder.resolve()


def check_manifest(dataset: RawDataset) -> None:
    """Raise UserError unless the raw files are, byte for byte, those of the
    manifest."""
    advice = fetch_advice(dataset)
    if not dataset.manifest.is_file():
        raise UserError(
            dataset.manifest,
            expected="a manifest",
            found="nothing",
            do=advice,
        )
    manifest = read_json(dataset.manifest)
    # drawn datasets have no files
    if manifest["files"] and not dataset.folder.is_dir():
        raise UserError(
            dataset.folder,
            expected="the raw files",
            found="nothing",
            do=advice,
        )
    for key in ("reader", "options"):
        if manifest[key] != getattr(dataset, key):
            raise UserError(
                f"{dataset.manifest}: {key}",
                expected=f"{getattr(dataset, key)!r} as in the season",
                found=repr(manifest[key]),
                do=advice,
            )
    listed = {file["name"]: file["sha256"] for file in manifest["files"]}
    paths = present(dataset, "a file that is in the manifest", advice)
    found = digests(dataset, paths)
    for name in listed:  # the inventory of a folder of images is what is in the folder
        if name not in found:
            raise UserError(
                dataset.folder / name,
                expected="a file that is in the manifest",
                found="nothing",
                do=advice,
            )
    for name, digest in found.items():
        if name not in listed:
            raise UserError(
                dataset.folder / name,
                expected="only files that are in the manifest",
                found=digest,
                do=advice,
            )
        if listed[name] != digest:
            raise UserError(
                dataset.folder / name,
                expected=f"sha256 {listed[name]} as in the manifest",
                found=digest,
                do=advice,
            )


def fetch_advice(dataset: RawDataset) -> str:
    return f"run: rematch fetch {dataset.name}"


def is_met(need: datasets.Needed, raw: Path) -> bool:
    """Whether the folder `raw` has all files of one way to meet the need."""
    for way in need.ways:
        if all(_is_filled(raw, name) for name in way):
            return True
    return False


def _is_filled(raw: Path, name: str) -> bool:
    """Whether there is such a file, or such a folder that is not empty."""
    for path in raw.glob(name.rstrip("/")):
        if not path.is_dir() or any(path.glob("[!.]*")):
            return True
    return False


def checklist(card: datasets.Card, raw: Path) -> list[str]:
    """The needs of a card as lines, each with a box that is ticked or empty."""
    lines = []
    for need in card.checklist:
        tick = "x" if is_met(need, raw) else " "
        lines.append(f"[{tick}] {need}")
    return lines


def downloads(card: datasets.Card, raw: Path) -> list[datasets.RemoteFile]:
    """The files to download: those that are not in the folder, nor anything that can
    take their place."""
    missing = []
    for remote in card.remote:
        needs = [need for need in card.checklist if _can_meet(need, remote.name)]
        are_met = bool(needs) and all(is_met(need, raw) for need in needs)
        if not are_met and not (raw / remote.name).exists():
            missing.append(remote)
    return missing


def _can_meet(need: datasets.Needed, name: str) -> bool:
    """Whether a file of this name is part of a way to meet the need."""
    return any(name in way for way in need.ways)

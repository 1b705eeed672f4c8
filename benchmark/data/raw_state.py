"""Whether raw files are still those that fetch saw, by names, sizes and times: nothing is read.

Fetch keeps the state of the raw folder in .scratch, since times differ between machines. DVC sees
changes by itself: the raw folder is an output of fetch, which DVC neither copies nor deletes.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from benchmark.core.errors import UserError
from benchmark.core.files import read_json, sha256, write_text
from benchmark.core.progress_bars import ProgressBar
from benchmark.data.raw_files import RawDataset
from datasets.shared.plain_files import is_file

STATES = Path(".scratch/raw_state")


def state_of(folder: Path) -> str:
    """A digest of names, sizes and times of all files below a folder."""
    files = sorted((name[len(str(folder)) :], *facts) for name, *facts in _files(folder))
    return hashlib.sha256(repr(files).encode()).hexdigest()


def keep_state(dataset: RawDataset, state: str) -> None:
    write_text(_file(dataset), f"{state}\n")


def is_fetched(dataset: RawDataset) -> bool:
    """Whether fetch saw raw files on this machine."""
    return _file(dataset).is_file()


def is_changed(dataset: RawDataset, folder: Path) -> bool:
    """Whether `folder` holds other files than fetch saw; not if there is no such folder."""
    if not folder.is_dir():
        return False
    return not is_fetched(dataset) or state_of(folder) != _file(dataset).read_text().strip()


def check_unchanged(dataset: RawDataset) -> None:
    """Raise UserError if raw files were edited since fetch; a new time alone is no edit."""
    if is_changed(dataset, dataset.folder):
        check_manifest(dataset)


def check_manifest(dataset: RawDataset) -> None:
    """Raise UserError unless the raw files are, byte for byte, those of the manifest."""
    fetch = fetch_advice(dataset)
    if not dataset.manifest.is_file():
        raise UserError(dataset.manifest, "a manifest", "nothing", fetch)
    manifest = read_json(dataset.manifest)
    if manifest["files"] and not dataset.folder.is_dir():  # drawn datasets have no files
        raise UserError(dataset.folder, "the raw files", "nothing", fetch)
    for key, value in (("reader", dataset.reader), ("options", dataset.options)):
        if manifest[key] != value:
            where, expected = f"{dataset.manifest}: {key}", f"{value!r} as in the season"
            raise UserError(where, expected, repr(manifest[key]), fetch)
    checksums = {dataset.folder / file["name"]: file["sha256"] for file in manifest["files"]}
    for path in ProgressBar(dataset.inventory(), desc=f"verifying {dataset.name}"):
        found = sha256(path) if is_file(path) else "nothing"
        if checksums.get(path) != found:
            expected = (
                f"sha256 {checksums[path]} as in the manifest"
                if path in checksums
                else "only files that are in the manifest"
            )
            raise UserError(path, expected, found, fetch)


def fetch_advice(dataset: RawDataset) -> str:
    return f"run: python -m benchmark.fetch {dataset.name}"


def _file(dataset: RawDataset) -> Path:
    return STATES / f"{dataset.name}.txt"


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of every file. Links are followed; hidden files, which no reader takes
    for data, are left out."""
    ahead, seen = [str(folder)], set()
    while ahead:
        here = ahead.pop()
        facts = os.stat(here)
        if (facts.st_dev, facts.st_ino) in seen:  # a link back
            continue
        seen.add((facts.st_dev, facts.st_ino))
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir():
                    ahead.append(entry.path)
                else:  # a link to nothing has facts of its own
                    facts = entry.stat(follow_symlinks=entry.is_file())
                    yield entry.path, facts.st_size, facts.st_mtime_ns

"""Stage fetch: bring the raw files of a dataset into place and record their checksums.

    python -m benchmark.fetch DATASET [--source DIR]

Writes data/manifests/<dataset>.json: name, size and sha256 of every raw file, no machine path. If
the card has no checksum of a file of the release, the first fetch records it in the manifest, and
later ones must find the same.
"""

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError
from benchmark.core.files import atomic, read_json, sha256, write_json
from benchmark.core.locks import alone, lock_of
from benchmark.core.progress_bars import ProgressBar
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.data.raw_state import keep_state, state_of
from benchmark.fetch.checklist import checklist, downloads, marked
from benchmark.fetch.download import ChecksumError, download
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import Params
from datasets import DataError, RemoteFile
from datasets.shared.plain_files import is_file

HASHED = Path(".scratch/hashed")  # checksums computed earlier on this machine; never committed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="a dataset of any season")
    parser.add_argument("--source", type=Path, help="folder that already holds the raw files")


def main(arguments: argparse.Namespace) -> None:
    fetch(read_shared(), arguments.dataset, arguments.source)


def fetch(params: Params, name: str, source: Path | None = None) -> None:
    """Bring the raw files into place and write their manifest."""
    dataset = raw_dataset(params, name)
    with alone(lock_of(str(dataset.folder)), f"fetch {name}"):
        _fetch(dataset, source)


def _fetch(dataset: RawDataset, source: Path | None) -> None:
    source = source or (Path(dataset.source) if dataset.source else None)
    if source is not None:
        link(dataset.folder, source.expanduser())
    recorded = _recorded(dataset)
    raw_files = _raw_files(dataset, recorded)
    state = state_of(dataset.folder) if raw_files else ""  # before they are read
    files = _fingerprints(dataset, raw_files)
    _check_recorded(dataset, recorded, files)
    manifest = {
        "dataset": dataset.name,
        "reader": dataset.reader,
        "options": dataset.options,
        "files": files,
        "notes": _differences(dataset.card.remote, files),
    }
    write_json(dataset.manifest, manifest)
    if state:
        keep_state(dataset, state)


def link(folder: Path, source: Path) -> None:
    """Make `folder` a link to `source`. A real folder with files in it is never replaced."""
    is_folder, found = _is_folder(source)
    if not is_folder:
        expected = "the folder that holds the raw files"
        raise UserError(source, expected, found, "name another folder with --source")
    if folder.exists() and folder.resolve() == source.resolve():
        return
    if folder.is_dir() and not folder.is_symlink():
        if any(folder.iterdir()):
            raise UserError(
                folder,
                f"no files of its own, to become a link to {source}",
                "some",
                "move them away, or fetch without a source",
            )
        folder.rmdir()
    with atomic(folder) as part:
        part.symlink_to(source.resolve(), target_is_directory=True)


def _is_folder(path: Path) -> tuple[bool, str]:
    """Whether there is a folder, and what is found instead."""
    try:
        return path.is_dir(), "no folder" if path.exists() else "nothing"
    except OSError as error:  # for example a name that is too long
        return False, f"what cannot be opened ({error.strerror})"


def _recorded(dataset: RawDataset) -> dict[str, str]:
    """name -> sha256, of the files whose checksum only the manifest of an earlier fetch knows."""
    unknown = {remote.name for remote in dataset.card.remote if remote.sha256 is None}
    files = read_json(dataset.manifest)["files"] if dataset.manifest.is_file() else []
    return {file["name"]: file["sha256"] for file in files if file["name"] in unknown}


def _check_recorded(dataset: RawDataset, recorded: dict[str, str], files: list[dict]) -> None:
    for file in files:
        expected = recorded.get(file["name"], file["sha256"])
        if file["sha256"] != expected:
            raise ChecksumError(
                dataset.folder / file["name"],
                f"sha256 {expected}, which the first fetch recorded",
                file["sha256"],
                _other_release(dataset),
            )


def _other_release(dataset: RawDataset) -> str:
    return f"to take another release, delete {dataset.manifest}"


def _raw_files(dataset: RawDataset, recorded: dict[str, str]) -> list[Path]:
    """The files of the dataset's inventory; those that are missing are downloaded if possible."""
    if dataset.folder.is_symlink() and not dataset.folder.exists():
        target = os.readlink(dataset.folder)
        expected = f"a link to an existing folder, not to {target}"
        raise UserError(dataset.folder, expected, "nothing", _advice(dataset))
    try:
        return _present(dataset)
    except DataError:
        _download_absent(dataset, recorded)
    try:
        return _present(dataset)
    except DataError as error:
        for line in marked(checklist(dataset.card, dataset.folder)):
            print(line, file=sys.stderr)
        steps = "; ".join(step for step in (error.do, _advice(dataset)) if step)
        raise UserError(error.where, error.expected, error.found, steps) from error


def _present(dataset: RawDataset) -> list[Path]:
    files = dataset.inventory()
    missing = [path for path in files if not is_file(path)]
    if missing:
        found = f"nothing ({len(missing)} of {len(files)} raw files are missing)"
        raise DataError(missing[0], "a raw file", found)
    return files


def _download_absent(dataset: RawDataset, recorded: dict[str, str]) -> None:
    if dataset.folder.is_symlink():  # the user's own folder: nothing is written there
        return
    for remote in downloads(dataset.card, dataset.folder):
        _download(dataset, remote, recorded.get(remote.name))


def _download(dataset: RawDataset, remote: RemoteFile, recorded: str | None) -> None:
    checked = dataclasses.replace(remote, sha256=remote.sha256 or recorded)
    try:
        download(checked, dataset.folder / remote.name)
    except ChecksumError as error:
        if recorded is None:
            raise
        do = f"{error.do}; {_other_release(dataset)}"
        raise ChecksumError(error.where, error.expected, error.found, do) from error


def _advice(dataset: RawDataset) -> str:
    obtain = dataset.card.obtain or "place the raw files in one folder"
    request = f"ask for the data at {dataset.card.form}, " if dataset.card.form else ""
    return f"{request}{obtain}, then run: python -m benchmark.fetch {dataset.name} --source DIR"


def _fingerprints(dataset: RawDataset, paths: list[Path]) -> list[dict]:
    """Name, bytes and sha256 of each file, in the order of their names."""
    memory = HASHED / f"{dataset.name}.json"
    hashed = read_json(memory) if memory.is_file() else {}
    files, seen = [], {}
    for path in _progress(sorted(set(paths)), f"hashing {dataset.name}"):
        name, identity = path.relative_to(dataset.folder).as_posix(), _identity(path)
        old = hashed.get(name, {})
        checksum = old["sha256"] if old.get("identity") == identity else sha256(path)
        seen[name] = {"identity": identity, "sha256": checksum}
        files.append({"name": name, "bytes": path.stat().st_size, "sha256": checksum})
    write_json(memory, seen)
    return files


def _identity(path: Path) -> list[str | int]:
    """Facts that change with a file. They are not part of the manifest, which comes with git and so
    knows nothing of the files on this machine."""
    facts = path.stat()
    return [str(path.resolve()), facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]


def _progress(paths: list[Path], title: str) -> Iterable[Path]:
    return ProgressBar(paths, desc=title, unit="file")


def _differences(remote: tuple[RemoteFile, ...], files: list[dict]) -> list[str]:
    """Notes on files that differ from the release of the card; downloads never do."""
    checksums = {file.name: file.sha256 for file in remote if file.sha256}
    return [
        f"{file['name']}: sha256 differs from the card"
        for file in files
        if checksums.get(file["name"], file["sha256"]) != file["sha256"]
    ]


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))

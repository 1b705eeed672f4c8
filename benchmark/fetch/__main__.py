"""Stage fetch: the raw files of a dataset, at hand and fingerprinted.

    python -m benchmark.fetch DATASET [--source DIR]

Writes data/manifests/<dataset>.json: name, size and sha256 of every raw file, no machine path. For
files of a release whose checksum the card does not know the manifest is the record: what the first
fetch found, later ones must find.
"""

import argparse
import dataclasses
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError
from benchmark.core.files import atomic, read_json, sha256, write_json
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.fetch.download import download
from benchmark.season.parameters import Params
from benchmark.season.parameter_files import read_shared
from datasets import Card, DataError, RemoteFile

HASHED = Path(".scratch/hashed")  # what this machine hashed before; never committed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="a dataset of any season")
    parser.add_argument("--source", type=Path, help="folder that holds the raw files already")


def main(arguments: argparse.Namespace) -> None:
    fetch(read_shared(), arguments.dataset, arguments.source)


def fetch(params: Params, name: str, source: Path | None = None) -> None:
    """Have the raw files at hand and write their manifest."""
    dataset = raw_dataset(params, name)
    source = source or (Path(dataset.source) if dataset.source else None)
    if source is not None:
        link(dataset.folder, source.expanduser())
    known = _recorded(dataset)
    files = _fingerprints(dataset, _raw_files(dataset, known))
    _check_recorded(dataset, known, files)
    manifest = {
        "dataset": dataset.name,
        "reader": dataset.reader,
        "options": dataset.options,
        "files": files,
        "notes": _differences(dataset.card.remote, files),
    }
    write_json(dataset.manifest, manifest)


def link(folder: Path, source: Path) -> None:
    """Make `folder` a link to `source`. A real folder with files in it is never replaced."""
    if not source.is_dir():
        raise UserError(f"{source}: not a folder; expected the folder that holds the raw files")
    if folder.exists() and folder.resolve() == source.resolve():
        return
    if folder.is_dir() and not folder.is_symlink():
        if any(folder.iterdir()):
            raise UserError(
                f"{folder}: holds files of its own, so it cannot become a link to {source}; "
                "move them away, or fetch without a source"
            )
        folder.rmdir()
    with atomic(folder) as part:
        part.symlink_to(source.resolve(), target_is_directory=True)


def checklist(card: Card, raw: Path) -> list[tuple[bool, str]]:
    """Every line of the card's checklist, and whether its files are in the folder `raw`."""
    return [(_is_there(raw, _place(line)), line) for line in card.checklist]


def marked(lines: list[tuple[bool, str]]) -> list[str]:
    """The lines of a checklist, each with a box that is ticked or empty."""
    return [f"[{'x' if there else ' '}] {line}" for there, line in lines]


def downloads(card: Card, raw: Path) -> list[RemoteFile]:
    """The files to be downloaded: neither they nor what stands in for them is in the folder."""
    lines = checklist(card, raw)
    return [one for one in card.remote if not _is_needless(one.name, raw, lines)]


def _is_needless(name: str, raw: Path, lines: list[tuple[bool, str]]) -> bool:
    named = [there for there, line in lines if any(name in way for way in _ways(_place(line)))]
    return (raw / name).exists() or (bool(named) and all(named))


def _place(line: str) -> str:
    return line.partition(": ")[0]


def _is_there(raw: Path, place: str) -> bool:
    return any(all(_is_filled(raw, name) for name in names) for names in _ways(place))


def _ways(place: str) -> list[list[str]]:
    """Of "a.zip or b/" one will do; of "a and b" and of "{a,b}.npy" both are needed."""
    ways = [way.removeprefix("of it ").split(" and ") for way in re.split(r",? or |, ", place)]
    return [[name for part in way for name in _spelt_out(part)] for way in ways]


def _is_filled(raw: Path, name: str) -> bool:
    """Whether there is such a file, or such a folder with anything in it."""
    return any(not path.is_dir() or any(path.glob("[!.]*")) for path in raw.glob(name))


def _spelt_out(names: str) -> list[str]:
    """As a shell reads braces: "{a,b}.npy" is a.npy and b.npy."""
    braces = re.search(r"\{([^{}]*)\}", names)
    if braces is None:
        return [names.rstrip("/")]
    first, last = names[: braces.start()], names[braces.end() :]
    return [name for word in braces[1].split(",") for name in _spelt_out(first + word + last)]


def _recorded(dataset: RawDataset) -> dict[str, str]:
    """name -> sha256 of the files that only the manifest of an earlier fetch vouches for."""
    unknown = {remote.name for remote in dataset.card.remote if remote.sha256 is None}
    files = read_json(dataset.manifest)["files"] if dataset.manifest.is_file() else []
    return {file["name"]: file["sha256"] for file in files if file["name"] in unknown}


def _check_recorded(dataset: RawDataset, known: dict[str, str], files: list[dict]) -> None:
    for file in files:
        expected = known.get(file["name"], file["sha256"])
        if file["sha256"] != expected:
            raise UserError(
                f"{dataset.folder / file['name']}: expected sha256 {expected}, "
                f"found {file['sha256']}; {_newer(dataset)}"
            )


def _newer(dataset: RawDataset) -> str:
    return f"the first fetch recorded it: to take another release, delete {dataset.manifest}"


def _raw_files(dataset: RawDataset, known: dict[str, str]) -> list[Path]:
    """The files of the dataset's inventory, downloaded if they must and can be."""
    if dataset.folder.is_symlink() and not dataset.folder.exists():
        lost = os.readlink(dataset.folder)
        raise UserError(f"{dataset.folder}: leads to {lost}, not found; {_advice(dataset)}")
    try:
        return _present(dataset)
    except DataError:
        _download_absent(dataset, known)
    try:
        return _present(dataset)
    except DataError as error:
        for line in marked(checklist(dataset.card, dataset.folder)):
            print(line, file=sys.stderr)
        raise UserError(f"{error}; {_advice(dataset)}") from error


def _present(dataset: RawDataset) -> list[Path]:
    files = dataset.inventory()
    lost = [path for path in files if not path.is_file()]
    if lost:
        raise DataError(f"{lost[0]}: not found; {len(lost)} of {len(files)} raw files are missing")
    return files


def _download_absent(dataset: RawDataset, known: dict[str, str]) -> None:
    if dataset.folder.is_symlink():  # the user's own folder: nothing is written there
        return
    for remote in downloads(dataset.card, dataset.folder):
        _download(dataset, remote, known.get(remote.name))


def _download(dataset: RawDataset, remote: RemoteFile, recorded: str | None) -> None:
    checked = dataclasses.replace(remote, sha256=remote.sha256 or recorded)
    try:
        download(checked, dataset.folder / remote.name)
    except UserError as error:
        if recorded and "sha256" in str(error):
            raise UserError(f"{error}; {_newer(dataset)}") from error
        raise


def _advice(dataset: RawDataset) -> str:
    obtain = dataset.card.obtain or "place the raw files in one folder"
    asked = f"ask for the data at {dataset.card.form}, " if dataset.card.form else ""
    return f"{asked}{obtain}, then run: python -m benchmark.fetch {dataset.name} --source DIR"


def _fingerprints(dataset: RawDataset, paths: list[Path]) -> list[dict]:
    """Name, bytes and sha256 of each file, in the order of their names."""
    memory = HASHED / f"{dataset.name}.json"
    known = read_json(memory) if memory.is_file() else {}
    files, seen = [], {}
    for path in _progress(sorted(set(paths)), f"hashing {dataset.name}"):
        name, identity = path.relative_to(dataset.folder).as_posix(), _identity(path)
        old = known.get(name, {})
        checksum = old["sha256"] if old.get("identity") == identity else sha256(path)
        seen[name] = {"identity": identity, "sha256": checksum}
        files.append({"name": name, "bytes": path.stat().st_size, "sha256": checksum})
    write_json(memory, seen)
    return files


def _identity(path: Path) -> list[str | int]:
    """What changes when a file does. The manifest cannot stand in for it: it travels with git,
    and would vouch for files of this machine that nobody has read."""
    facts = path.stat()
    return [str(path.resolve()), facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]


def _progress(paths: list[Path], title: str) -> Iterable[Path]:
    return tqdm(paths, desc=title, unit="file", disable=None)


def _differences(remote: tuple[RemoteFile, ...], files: list[dict]) -> list[str]:
    """Notes on files that are not the release the card names. A download never gets here."""
    known = {one.name: one.sha256 for one in remote if one.sha256}
    return [
        f"{file['name']}: sha256 differs from the card"
        for file in files
        if known.get(file["name"], file["sha256"]) != file["sha256"]
    ]


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))

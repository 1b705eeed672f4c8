"""Stage fetch: bring the raw files of a dataset into place and record their checksums.

    rematch fetch DATASET [--source DIR]

Writes data/manifests/<dataset>.json: name, size and sha256 of every raw file, no machine path. If
the card has no checksum of a file of the release, the first fetch records it in the manifest, and
later ones must find the same.
"""

import argparse
import dataclasses
import os
import sys
from pathlib import Path

from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError
from benchmark.core.files import atomic, read_json, write_json
from benchmark.core.locks import alone, lock_of
from benchmark.data.raw_files import (
    RawDataset,
    checklist,
    digests,
    downloads,
    fetch_advice,
    marked,
    present,
    raw_dataset,
)
from benchmark.fetch.download import ChecksumError, download
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import Params


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="a dataset of any season")
    parser.add_argument("--source", type=Path, help="folder that already holds the raw files")


def main(arguments: argparse.Namespace) -> None:
    fetch(read_shared(), arguments.dataset, arguments.source)


def fetch(params: Params, name: str, source: Path | None = None) -> None:
    """Bring the raw files into place and write their manifest."""
    dataset = raw_dataset(params, name)
    with alone(lock_of(str(dataset.folder)), f"fetch {name}"):
        source = source or (Path(dataset.source) if dataset.source else None)
        if source is not None:
            link(dataset.folder, source.expanduser())
        known = {remote.name: remote.sha256 for remote in dataset.card.remote}
        files = read_json(dataset.manifest)["files"] if dataset.manifest.is_file() else []
        recorded = {  # by an earlier fetch, where the card has no checksum
            file["name"]: file["sha256"] for file in files if known.get(file["name"], "") is None
        }
        other = f"to take another release, delete {dataset.manifest}"
        found = digests(dataset, _raw_files(dataset, recorded, other), dataset.folder)
        for file, digest in found.items():
            if digest != recorded.get(file, digest):
                expected = f"sha256 {recorded[file]}, which the first fetch recorded"
                raise ChecksumError(dataset.folder / file, expected, digest, other)
        manifest = {
            "dataset": dataset.name,
            "reader": dataset.reader,
            "options": dataset.options,
            "files": [
                {"name": file, "bytes": (dataset.folder / file).stat().st_size, "sha256": digest}
                for file, digest in found.items()
            ],
            "notes": [
                f"{file}: sha256 differs from the card"  # downloads never do
                for file, digest in found.items()
                if (known.get(file) or digest) != digest
            ],
        }
        write_json(dataset.manifest, manifest)


def link(folder: Path, source: Path) -> None:
    """Make `folder` a link to `source`. A real folder with files in it is never replaced."""
    if not os.path.isdir(source):  # also of a name that no folder can have
        expected, do = "the folder that holds the raw files", "name another folder with --source"
        raise UserError(source, expected, "no folder", do)
    if folder.exists() and folder.resolve() == source.resolve():
        return
    if folder.is_dir() and not folder.is_symlink():
        if any(folder.iterdir()):
            expected = f"no files of its own, to become a link to {source}"
            raise UserError(folder, expected, "some", "move them away, or fetch without a source")
        folder.rmdir()
    with atomic(folder) as part:
        part.symlink_to(source.resolve(), target_is_directory=True)


def _raw_files(dataset: RawDataset, recorded: dict[str, str], other: str) -> list[Path]:
    """The files of the dataset's inventory; those that are missing are downloaded if possible."""
    folder, card = dataset.folder, dataset.card
    request = f"ask for the data at {card.form}, " if card.form else ""
    obtain = card.obtain or "place the raw files in one folder"
    advice = f"{request}{obtain}, then {fetch_advice(dataset)} --source DIR"
    if folder.is_symlink() and not folder.exists():
        expected = f"a link to an existing folder, not to {os.readlink(folder)}"
        raise UserError(folder, expected, "nothing", advice)
    try:
        return present(dataset, "a raw file")
    except UserError:
        if not folder.is_symlink():  # the user's own folder: nothing is written there
            for remote in downloads(card, folder):
                checksum = remote.sha256 or recorded.get(remote.name)
                try:
                    download(dataclasses.replace(remote, sha256=checksum), folder / remote.name)
                except ChecksumError as error:
                    do = f"{error.do}; {other}" if remote.name in recorded else error.do
                    raise ChecksumError(error.where, error.expected, error.found, do) from error
    try:
        return present(dataset, "a raw file")
    except UserError as error:
        for line in marked(checklist(card, folder)):
            print(line, file=sys.stderr)
        steps = "; ".join(step for step in (error.do, advice) if step)
        raise UserError(error.where, error.expected, error.found, steps) from error


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))

"""Stage fetch: bring the raw files of a dataset into place and record their checksums.

    rematch fetch DATASET [--source DIR]

Writes data/manifests/<dataset>.json: name, size and sha256 of every raw file, no
machine path, and the release where several are known. If the card has no checksum of a
file, the first fetch records it in the manifest, and later ones of the same release
must find the same.

Bytes of a download go to `<target>.part`. It goes on from there, also in a later
process, only where a mixture of releases cannot go unnoticed: a checksum is known, or
`<target>.release.part` names the address and the release, as the server did, and the
server then sends the rest of it.
"""

import argparse
import dataclasses
import os
import sys
import time
from pathlib import Path

import requests

from benchmark.contracts.datasets import RemoteFile
from benchmark.core.command_line import ProgressBar, alone, lock_of, run_stage
from benchmark.core.errors import UserError
from benchmark.core.files import atomic, read_json, require_space, sha256, write_json
from benchmark.data import raw_files
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import Params

CHUNK = 1 << 15  # bytes; an interruption loses the chunk in progress
TIMEOUT = (10, 60)  # seconds to connect, seconds without a byte
PASSING = (408, 416, 425, 429)  # statuses below 500 that are worth another attempt


class ChecksumError(UserError):
    """A file whose bytes are not those of the release."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="a dataset of any season")
    parser.add_argument(
        "--source", type=Path, help="folder that already holds the raw files"
    )


def main(arguments: argparse.Namespace) -> None:
    for line in fetch(read_shared(), arguments.dataset, arguments.source):
        print(line)


def fetch(params: Params, name: str, source: Path | None = None) -> list[str]:
    """Bring the raw files into place and write their manifest; lines that tell their
    release."""
    dataset = raw_files.raw_dataset(params, name)
    with alone(lock_of(str(dataset.folder)), f"fetch {name}"):
        if source or dataset.source:
            link(dataset.folder, source.expanduser() if source else dataset.origin)
        before, known = (
            dataset.release,
            {each.name: each.sha256 for each in dataset.card.remote},
        )
        files = (
            read_json(dataset.manifest)["files"] if dataset.manifest.is_file() else []
        )
        recorded = {  # by an earlier fetch, where the card has no checksum
            file["name"]: file["sha256"]
            for file in files
            if known.get(file["name"], "") is None
        }
        other = f"to take another release, delete {dataset.manifest}"
        # The addresses of the card have the published release.
        expected = {} if before and before.departs else recorded
        found = raw_files.digests(dataset, _raw_files(dataset, expected))
        release = dataset.release_found()
        for file, digest in found.items() if before in (None, release) else ():
            if digest != recorded.get(file, digest):
                first = f"sha256 {recorded[file]}, which the first fetch recorded"
                raise ChecksumError(dataset.folder / file, first, digest, other)
        manifest = {
            "dataset": dataset.name,
            "reader": dataset.reader,
            "options": dataset.options,
            "files": [
                {
                    "name": file,
                    "bytes": (dataset.folder / file).stat().st_size,
                    "sha256": digest,
                }
                for file, digest in found.items()
            ],
            "notes": [
                f"{file}: sha256 differs from the card"  # downloads never do
                for file, digest in found.items()
                if (known.get(file) or digest) != digest
            ],
        }
        write_json(
            dataset.manifest, manifest | ({"release": release.name} if release else {})
        )
    told = [f"fetch {name}: {release}"] if release else []
    if before not in (None, release):
        told.append(
            f"The manifest named release {before.name}. Other images give other numbers."
        )
    return told


def link(folder: Path, source: Path) -> None:
    """Make `folder` a link to `source`. A real folder with files in it is never
    replaced."""
    if not os.path.isdir(source):  # also of a name that no folder can have
        expected, do = (
            "the folder that holds the raw files",
            "name another folder with --source",
        )
        raise UserError(source, expected, "no folder", do)
    if folder.exists() and folder.resolve() == source.resolve():
        return
    if folder.is_dir() and not folder.is_symlink():
        if any(folder.iterdir()):
            expected = f"no files of its own, to become a link to {source}"
            raise UserError(
                folder, expected, "some", "move them away, or fetch without a source"
            )
        folder.rmdir()
    with atomic(folder) as part:
        part.symlink_to(source.resolve(), target_is_directory=True)


def _raw_files(dataset: raw_files.RawDataset, recorded: dict[str, str]) -> list[Path]:
    """The files of the dataset's inventory; those that are missing are downloaded if
    possible."""
    folder, card = dataset.folder, dataset.card
    request = f"ask for the data at {card.form}, " if card.form else ""
    obtain = card.obtain or "place the raw files in one folder"
    advice = f"{request}{obtain}, then {raw_files.fetch_advice(dataset)} --source DIR"
    if folder.is_symlink() and not folder.exists():
        expected = f"a link to an existing folder, not to {os.readlink(folder)}"
        raise UserError(folder, expected, "nothing", advice)
    try:
        return raw_files.present(dataset, "a raw file")
    except UserError:
        if not folder.is_symlink():  # the user's own folder: nothing is written there
            for remote in raw_files.downloads(card, folder):
                checksum = remote.sha256 or recorded.get(remote.name)
                download(
                    dataclasses.replace(remote, sha256=checksum), folder / remote.name
                )
    try:
        return raw_files.present(dataset, "a raw file")
    except UserError as error:
        for line in raw_files.checklist(card, folder):
            print(line, file=sys.stderr)
        steps = "; ".join(step for step in (error.do, advice) if step)
        raise error.but(do=steps) from error


# Downloads ----------------------------------------------------------------------------


class _AttemptError(Exception):
    """An attempt that gave no whole file; `is_final` if later ones would not either."""

    def __init__(
        self, reason: str, is_final: bool = False, is_checksum: bool = False
    ) -> None:
        super().__init__(reason)
        self.is_final, self.is_checksum = is_final, is_checksum


def download(
    remote: RemoteFile, target: Path, *, attempts: int = 5, pause: float = 1.0
) -> None:
    """Bring `remote` to `target`, whole and verified.

    Each address is tried until `attempts` tries in a row brought nothing new, waiting
    `pause` seconds, then twice that, and so on. Raises ChecksumError if an address sent
    wrong bytes, and UserError if no address sent the file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    reasons, kind = [], UserError
    for url in remote.urls:
        failures, furthest = 0, 0
        while failures < attempts:
            try:
                _attempt(url, part, remote.sha256)
                _release_file(part).unlink(missing_ok=True)
                return os.replace(part, target)
            except _AttemptError as error:
                last = error
            # its message holds a memory address
            except requests.RequestException as error:
                what = type(error).__name__
                last = _AttemptError(f"no connection, or an interrupted one ({what})")
            failures = 1 if _size(part) > furthest else failures + 1
            furthest = max(furthest, _size(part))
            if last.is_final:
                break
            if failures < attempts:
                time.sleep(pause * 2 ** (failures - 1))
        reasons.append(f"{url}: {last}")
        kind = ChecksumError if last.is_checksum else kind
    if kind is ChecksumError:
        _discard(part)
    expected = "a download" if reasons else "an address to download it from"
    do = f"try again later, or place the file at {target}"
    raise kind(remote.name, expected, "; ".join(reasons) or "nothing", do)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _release_file(part: Path) -> Path:
    return part.with_suffix(".release.part")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _release_file(part).unlink(missing_ok=True)


def _attempt(url: str, part: Path, checksum: str | None) -> None:
    """One request, from where the part ends; raises unless the part is then whole and
    verified."""
    noted = _release_file(part)
    of_url, _, release = (
        noted.read_text().partition("\n") if noted.exists() else ("", "", "")
    )
    release = release if of_url == url else ""
    if not (release or checksum):
        _discard(part)
    offset, headers = _size(part), {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if release:
            headers["If-Range"] = release
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        span, found = (
            response.headers.get(name, "") for name in ("Content-Range", "ETag")
        )
        if not found or found.startswith("W/"):  # a weak tag says nothing of bytes
            found = response.headers.get("Last-Modified", "")
        first, _, total = span.removeprefix("bytes ").partition("/")
        total = int(total) if total.isdecimal() else None
        is_same = not release or found in ("", release)
        # A part that is whole, as a kill before its checksum leaves it, has nothing to
        # be sent.
        is_whole = (
            response.status_code == 416 and offset and total == offset and is_same
        )
        if response.status_code == 206:
            if first != f"{offset}-{(total or 0) - 1}" or not is_same:
                _discard(part)
                expected = f"bytes {offset}- of release {release!r}"
                raise _AttemptError(f"expected {expected}, found {span!r} of {found!r}")
        elif not is_whole:
            total, offset = _start_over(response, part, checksum), 0
            noted.write_text(f"{url}\n{found}")
        if not is_whole:
            require_space(part.parent, (total or 0) - offset)
            title = part.name.removesuffix(".part")
            bar = ProgressBar(
                desc=title, total=total, initial=offset, unit="B", unit_scale=True
            )
            with bar, part.open("ab") as file:
                for chunk in response.iter_content(CHUNK):
                    file.write(chunk)
                    bar.update(len(chunk))
    if total is not None and _size(part) != total:
        raise _AttemptError(f"expected {total} bytes, found {_size(part)}")
    if checksum is not None and (found := sha256(part)) != checksum:
        # In one piece these are the address's bytes; otherwise a mixture may be the
        # reason.
        is_final = offset == 0 and total is not None
        _discard(part)
        raise _AttemptError(
            f"expected sha256 {checksum}, found {found}", is_final, True
        )


def _start_over(
    response: requests.Response, part: Path, checksum: str | None
) -> int | None:
    """Empty the part; how many bytes the server now sends, if it tells. Refuses what
    cannot be the file: an error, a web page, nothing, and content that may be
    incomplete."""
    status, headers = response.status_code, response.headers
    if status in (200, 416):  # others say nothing of the part
        _discard(part)
    if status != 200:
        is_final = 400 <= status < 500 and status not in PASSING
        raise _AttemptError(f"HTTP {status}, expected 200 or 206", is_final)
    if headers.get("Content-Type", "").startswith("text/html"):
        page = "sent a web page instead; open the address in a browser"
        raise _AttemptError(page, is_final=True)
    length = headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    is_chunked = "chunked" in headers.get("Transfer-Encoding", "")  # marks its own end
    if total == 0 or total is None and not is_chunked and checksum is None:
        raise _AttemptError(
            "sent no size, and without a checksum missing bytes would go unnoticed"
        )
    return total


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))

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
MOST_DIGITS = 18  # of the size of a file
OK, PARTIAL, NO_SUCH_RANGE = 200, 206, 416  # statuses of HTTP
# below 500, those that are worth another attempt
PASSING = (408, NO_SUCH_RANGE, 425, 429)


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
            # os.path leaves the ~name of a user that nobody knows as it is
            given = Path(os.path.expanduser(source)) if source else dataset.origin
            link(dataset.folder, given)
        before = dataset.release
        recorded = _recorded(dataset)
        # The addresses of the card have the published release.
        expected = {} if before and before.departs else recorded
        digests = raw_files.digests(dataset, _raw_files(dataset, expected))
        release = dataset.release_found()
        if before in (None, release):
            _check_recorded(dataset, digests, recorded)
        manifest = _manifest(dataset, digests)
        if release:
            manifest["release"] = release.name
        write_json(dataset.manifest, manifest)
    lines = [f"fetch {name}: {release}"] if release else []
    if before not in (None, release):
        note = f"The manifest named release {before.name}."
        lines.append(f"{note} Other images give other numbers.")
    return lines


def _recorded(dataset: raw_files.RawDataset) -> dict[str, str]:
    """file -> checksum of an earlier fetch, where the card knows the file and has no
    checksum."""
    if not dataset.manifest.is_file():
        return {}
    known = {remote.name: remote.sha256 for remote in dataset.card.remote}
    recorded = {}
    for file in read_json(dataset.manifest)["files"]:
        if known.get(file["name"], "") is None:
            recorded[file["name"]] = file["sha256"]
    return recorded


def _check_recorded(
    dataset: raw_files.RawDataset,
    digests: dict[str, str],
    recorded: dict[str, str],
) -> None:
    """Raise ChecksumError for a file of which an earlier fetch had other bytes."""
    for file, digest in digests.items():
        if digest != recorded.get(file, digest):
            raise ChecksumError(
                dataset.folder / file,
                expected=f"sha256 {recorded[file]}, which the first fetch recorded",
                found=digest,
                do=f"to take another release, delete {dataset.manifest}",
            )


def _manifest(dataset: raw_files.RawDataset, digests: dict[str, str]) -> dict:
    """What git keeps of the raw files."""
    known = {remote.name: remote.sha256 for remote in dataset.card.remote}
    files = []
    notes = []
    for name, digest in digests.items():
        size = (dataset.folder / name).stat().st_size
        files.append({"name": name, "bytes": size, "sha256": digest})
        if (known.get(name) or digest) != digest:  # of no download
            notes.append(f"{name}: sha256 differs from the card")
    return {
        "dataset": dataset.name,
        "reader": dataset.reader,
        "options": dataset.options,
        "files": files,
        "notes": notes,
    }


def link(folder: Path, source: Path) -> None:
    """Make `folder` a link to `source`. A file, and a real folder with files in it, are
    never replaced."""
    if not os.path.isdir(source):  # also of a name that no folder can have
        raise UserError(
            source,
            expected="the folder that holds the raw files",
            found="no folder",
            do="name another folder with --source",
        )
    if folder.exists() and folder.resolve() == source.resolve():
        return
    if folder.exists() and not folder.is_symlink():
        is_file = not folder.is_dir()
        if is_file or any(folder.iterdir()):
            what = "the file" if is_file else "its files"
            raise UserError(
                folder,
                expected=f"an empty folder, to become a link to {source}",
                found="a file" if is_file else "files",
                do=f"move {what} away, or fetch without a source",
            )
        folder.rmdir()
    with atomic(folder) as part:
        part.symlink_to(source.resolve(), target_is_directory=True)


def _raw_files(dataset: raw_files.RawDataset, recorded: dict[str, str]) -> list[Path]:
    """The files of the dataset's inventory; those that are missing are downloaded if
    possible."""
    folder = dataset.folder
    card = dataset.card
    request = f"ask for the data at {card.form}, " if card.form else ""
    obtain = card.obtain or "place the raw files in one folder"
    advice = f"{request}{obtain}, then {raw_files.fetch_advice(dataset)} --source DIR"
    if folder.is_symlink() and not folder.exists():
        raise UserError(
            folder,
            expected=f"a link to an existing folder, not to {os.readlink(folder)}",
            found="nothing",
            do=advice,
        )
    try:
        return raw_files.present(dataset, "a raw file")
    except UserError:
        if not folder.is_symlink():  # the user's own folder: nothing is written there
            for remote in raw_files.downloads(card, folder):
                checksum = remote.sha256 or recorded.get(remote.name)
                verified = dataclasses.replace(remote, sha256=checksum)
                download(verified, folder / remote.name)
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
        self,
        reason: str,
        is_final: bool = False,
        is_checksum: bool = False,
    ) -> None:
        super().__init__(reason)
        self.is_final = is_final
        self.is_checksum = is_checksum


def download(
    remote: RemoteFile,
    target: Path,
    *,
    attempts: int = 5,
    pause: float = 1.0,
) -> None:
    """Bring `remote` to `target`, whole and verified.

    Each address is tried until `attempts` tries in a row brought nothing new, waiting
    `pause` seconds, then twice that, and so on. Raises ChecksumError if an address sent
    wrong bytes, and UserError if no address sent the file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    reasons = []
    kind = UserError
    for url in remote.urls:
        failures = 0
        furthest = 0
        while failures < attempts:
            try:
                _attempt(url, part, remote.sha256)
                _release_file(part).unlink(missing_ok=True)
                os.replace(part, target)
                return
            except _AttemptError as error:
                last = error
            except UserError:  # no space on the disk
                raise
            # Its message holds a memory address. ValueError: a server that names an
            # impossible address
            except (requests.RequestException, ValueError) as error:
                what = type(error).__name__
                last = _AttemptError(f"no connection, or an interrupted one ({what})")
            failures = 1 if _size(part) > furthest else failures + 1
            furthest = max(furthest, _size(part))
            if last.is_final:
                break
            if failures < attempts:
                time.sleep(pause * 2 ** (failures - 1))
        reasons.append(f"{url}: {last}")
        if last.is_checksum:
            kind = ChecksumError
    if kind is ChecksumError:
        _discard(part)
    expected = "a download" if reasons else "an address to download it from"
    advice = f"try again later, or place the file at {target}"
    raise kind(remote.name, expected, "; ".join(reasons) or "none", advice)


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
    release = _release_of(part, url)
    if not (release or checksum):
        _discard(part)
    offset = _size(part)
    headers = {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if release:
            headers["If-Range"] = release
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        status = response.status_code
        served = _release_served(response)
        span = response.headers.get("Content-Range", "")
        sent, _, length = span.removeprefix("bytes ").partition("/")
        total = _bytes_of(length)
        is_same = not release or served in ("", release)
        # A part that is whole, as a kill before its checksum leaves it, has nothing to
        # be sent.
        is_whole = status == NO_SUCH_RANGE and offset and total == offset and is_same
        if status == PARTIAL:
            if sent != f"{offset}-{(total or 0) - 1}" or not is_same:
                _discard(part)
                expected = f"bytes {offset}- of release {release!r}"
                actual = f"{span!r} of {served!r}"
                raise _AttemptError(f"expected {expected}, found {actual}")
        elif not is_whole:
            total = _start_over(response, part, checksum)
            offset = 0
            _release_file(part).write_text(f"{url}\n{served}")
        if not is_whole:
            require_space(part.parent, (total or 0) - offset)
            _append(response, part, offset, total)
    if total is not None and _size(part) != total:
        raise _AttemptError(f"expected {total} bytes, found {_size(part)}")
    actual = sha256(part) if checksum else None
    if actual != checksum:
        # In one piece these are the address's bytes; otherwise a mixture may be the
        # reason.
        is_final = offset == 0 and total is not None
        _discard(part)
        wrong = f"expected sha256 {checksum}, found {actual}"
        raise _AttemptError(wrong, is_final, is_checksum=True)


def _release_of(part: Path, url: str) -> str:
    """The release that a part of this address is of; "" where that is unknown."""
    noted = _release_file(part)
    if not noted.exists():
        return ""
    noted_url, _, release = noted.read_text().partition("\n")
    return release if noted_url == url else ""


def _release_served(response: requests.Response) -> str:
    """What tells a release from others: a strong tag, or a date; "" for neither."""
    tag = response.headers.get("ETag", "")
    if tag and not tag.startswith("W/"):  # a weak tag says nothing of bytes
        return tag
    return response.headers.get("Last-Modified", "")


def _bytes_of(length: str) -> int | None:
    """The size that a header tells; None for what can be the size of no file."""
    if len(length) <= MOST_DIGITS and length.isdecimal():
        return int(length)
    return None


def _append(
    response: requests.Response,
    part: Path,
    offset: int,
    total: int | None,
) -> None:
    """Write the bytes of a response behind those of the part."""
    bar = ProgressBar(
        desc=part.name.removesuffix(".part"),
        total=total,
        initial=offset,
        unit="B",
        unit_scale=True,
    )
    with bar, part.open("ab") as file:
        for chunk in response.iter_content(CHUNK):
            file.write(chunk)
            bar.update(len(chunk))


def _start_over(
    response: requests.Response,
    part: Path,
    checksum: str | None,
) -> int | None:
    """Empty the part; how many bytes the server now sends, if it tells. Refuses what
    cannot be the file: an error, a web page, nothing, and content that may be
    incomplete."""
    status = response.status_code
    headers = response.headers
    if status in (OK, NO_SUCH_RANGE):  # others say nothing of the part
        _discard(part)
    if status != OK:
        is_final = 400 <= status < 500 and status not in PASSING
        raise _AttemptError(f"HTTP {status}, expected 200 or 206", is_final)
    if headers.get("Content-Type", "").startswith("text/html"):
        page = "sent a web page instead; open the address in a browser"
        raise _AttemptError(page, is_final=True)
    total = _bytes_of(headers.get("Content-Length", ""))
    is_chunked = "chunked" in headers.get("Transfer-Encoding", "")  # marks its own end
    if total == 0 or total is None and not is_chunked and checksum is None:
        reason = "sent no size, so missing bytes would go unnoticed without a checksum"
        raise _AttemptError(reason)
    return total


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))

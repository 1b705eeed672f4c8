"""Downloads that survive an interrupted connection and never leave a bad file in place.

Bytes go to `<target>.part`; `<target>.part.json` records the address and the release they are from.
A later run resumes only if a mixture of releases cannot go unnoticed: with the same release of the
same address, or with any address if a checksum is known.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import requests

from benchmark.core.errors import UserError
from benchmark.core.files import sha256, write_json
from benchmark.core.progress_bars import ProgressBar
from datasets import RemoteFile

CHUNK = 1 << 15  # bytes; an interruption loses the chunk in progress
TIMEOUT = (10, 60)  # seconds to connect, seconds without a byte
PASSING = (408, 425, 429)  # statuses below 500 that are worth another attempt


class ChecksumError(UserError):
    """A file whose bytes are not those of the release."""


class _AttemptError(Exception):
    """An attempt that gave no whole file."""

    def __init__(self, reason: str, is_checksum: bool = False) -> None:
        super().__init__(reason)
        self.is_checksum = is_checksum  # whether the bytes came, but wrong ones


class _RefusalError(_AttemptError):
    """An address that will not give the file to later attempts either."""


def download(remote: RemoteFile, target: Path, *, attempts: int = 5, pause: float = 1.0) -> None:
    """Bring `remote` to `target`, whole and verified.

    Each address is tried until `attempts` tries in a row brought nothing new, waiting `pause`
    seconds, then twice that, and so on. Raises ChecksumError if an address sent wrong bytes, and
    UserError if no address sent the file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    reasons, kind = [], UserError
    for url in remote.urls:
        try:
            _persist(partial(_attempt, url, part, remote.sha256), part, attempts, pause)
        except _AttemptError as error:
            reasons.append(f"{url}: {error}")
            kind = ChecksumError if error.is_checksum else kind
            continue
        os.replace(part, target)
        _facts(part).unlink(missing_ok=True)
        return
    raise kind(
        remote.name,
        "a download" if reasons else "an address to download it from",
        "; ".join(reasons) or "nothing",
        f"try again later, or place the file at {target}" if reasons else f"place it at {target}",
    )


def _persist(attempt: Callable[[], None], part: Path, attempts: int, pause: float) -> None:
    """Try until the part is whole; only tries that bring nothing new count as failures."""
    failures, furthest = 0, _size(part)
    while True:
        try:
            return attempt()
        except _RefusalError:
            raise
        except (_AttemptError, requests.RequestException) as error:
            failures = 1 if _size(part) > furthest else failures + 1
            furthest = max(furthest, _size(part))
            if failures >= attempts:
                raise _final(error) from error
        time.sleep(pause * 2 ** (failures - 1))


def _attempt(url: str, part: Path, checksum: str | None) -> None:
    """One request, from where the part ends; raises unless the part is then whole and verified."""
    facts = _resumable(url, part, checksum)
    offset = _size(part)
    headers = {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if facts["url"] == url and facts["validator"]:
            headers["If-Range"] = facts["validator"]
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == 416 and _total(response) == offset == facts["bytes"]:
            return _verify(checksum, part, is_final=False)  # the part was whole already
        _check_status(response, part)
        if response.status_code == 206:
            _check_range(response, part, offset, facts, is_same=facts["url"] == url)
        else:
            _check_content(response, part, checksum)
            offset, facts = 0, _start_over(response, url, part)
        _append(response, part, facts["bytes"])
    return _verify(checksum, part, is_final=offset == 0 and facts["bytes"] is not None)


def _resumable(url: str, part: Path, checksum: str | None) -> dict:
    """Facts about the part, which is deleted first if bytes of another release could be added to it
    unnoticed."""
    try:
        facts = json.loads(_facts(part).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        facts = {}
    is_same_release = facts.get("url") == url and facts.get("validator")
    if facts.get("bytes") is None or not (is_same_release or checksum):
        _discard(part)
        return {"url": url, "validator": "", "bytes": None}
    return facts


def _check_status(response: requests.Response, part: Path) -> None:
    status = response.status_code
    if status in (200, 206):
        return
    if status == 416:
        _discard(part)
    final = 400 <= status < 500 and status not in (416, *PASSING)
    raise (_RefusalError if final else _AttemptError)(f"HTTP {status}, expected 200 or 206")


def _check_range(
    response: requests.Response, part: Path, offset: int, facts: dict, is_same: bool
) -> None:
    """Refuse bytes from elsewhere in the file, and those of another release of it."""
    span, tag = response.headers.get("Content-Range", ""), _validator(response)
    is_here = re.match(rf"bytes {offset}-", span) and _total(response) == facts["bytes"]
    if not is_here or (is_same and tag and tag != facts["validator"]):
        _discard(part)
        raise _AttemptError(
            f"expected bytes {offset}- of {facts['bytes']} of release {facts['validator']!r}, "
            f"found {span!r} of {tag!r}"
        )


def _check_content(response: requests.Response, part: Path, checksum: str | None) -> None:
    """Refuse what cannot be the file: a web page, nothing, and content that may be incomplete."""
    kind, size = response.headers.get("Content-Type", ""), _length(response)
    if kind.startswith("text/html") and ".htm" not in part.name:
        raise _RefusalError("sent a web page instead; open the address in a browser")
    if size == 0:
        raise _AttemptError("sent an empty file")
    is_chunked = "chunked" in response.headers.get("Transfer-Encoding", "")  # marks its own end
    if size is None and not is_chunked and checksum is None:
        raise _AttemptError("sent no size, and without a checksum missing bytes would go unnoticed")


def _start_over(response: requests.Response, url: str, part: Path) -> dict:
    """Empty the part and record what the server says about the file it now sends."""
    facts = {"url": url, "validator": _validator(response), "bytes": _length(response)}
    _discard(part)
    write_json(_facts(part), facts)
    return facts


def _length(response: requests.Response) -> int | None:
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _validator(response: requests.Response) -> str:
    """What identifies a release of a file: a strong ETag, else the date of the last change."""
    tag = response.headers.get("ETag", "")
    strong = tag if tag and not tag.startswith("W/") else ""
    return strong or response.headers.get("Last-Modified", "")


def _append(response: requests.Response, part: Path, total: int | None) -> None:
    offset = _size(part)
    _check_space(part, (total or 0) - offset)
    title = part.name.removesuffix(".part")
    bar = ProgressBar(desc=title, total=total, initial=offset, unit="B", unit_scale=True)
    try:
        with bar, part.open("ab") as file:
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    except requests.RequestException:  # also an OSError, but not of this disk
        raise
    except OSError as error:
        do = "make room and run again; what is there is kept"
        found = f"an error of the disk ({error.strerror})"
        raise UserError(part, "to write on", found, do) from error
    if total is not None and _size(part) != total:
        raise _AttemptError(f"expected {total} bytes, found {_size(part)}")


def _check_space(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise UserError(
            part,
            f"{needed / 2**30:.1f} GiB more",
            f"{free / 2**30:.1f} GiB free",
            "free some disk space and run again; what is there is kept",
        )


def _verify(checksum: str | None, part: Path, is_final: bool) -> None:
    """Raise for a part with wrong bytes, and delete it.

    is_final  the part came in one piece, so that the address has no other bytes; otherwise an
              interruption or a mixture may be the reason, and another attempt may help
    """
    if checksum is None:
        return
    found = sha256(part)
    if found != checksum:
        _discard(part)
        kind = _RefusalError if is_final else _AttemptError
        raise kind(f"expected sha256 {checksum}, found {found}", is_checksum=True)


def _total(response: requests.Response) -> int | None:
    match = re.search(r"/(\d+)$", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _facts(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _facts(part).unlink(missing_ok=True)


def _final(error: Exception) -> _AttemptError:
    """The last failure; the messages of requests are left out, as they hold memory addresses."""
    if isinstance(error, _AttemptError):
        return _AttemptError(str(error), error.is_checksum)
    return _AttemptError(f"no connection, or an interrupted one ({type(error).__name__})")

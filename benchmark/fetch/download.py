"""Downloads that survive a cut and never leave a bad file in place.

Bytes go to `<target>.part`; `<target>.part.json` tells which release of which address they belong
to. A later run resumes only where nothing can be spliced unnoticed: the same release of the same
address, or any address where a checksum decides in the end.
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
from tqdm import tqdm

from benchmark.core.errors import UserError
from benchmark.core.files import sha256, write_json
from datasets import RemoteFile

CHUNK = 1 << 15  # bytes; a cut loses the chunk it falls in
TIMEOUT = (10, 60)  # seconds to connect, seconds without a byte
PASSING = (408, 425, 429)  # statuses below 500 that are worth another attempt


class _AttemptError(Exception):
    """This attempt gave no whole file."""


class _RefusalError(_AttemptError):
    """This address will not give the file, however often it is asked."""


def download(remote: RemoteFile, target: Path, *, attempts: int = 5, pause: float = 1.0) -> None:
    """Bring `remote` to `target`, whole and verified, or raise a `UserError`.

    Each address is tried until `attempts` tries in a row brought nothing new, waiting `pause`
    seconds, then twice that, and so on.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    reasons = []
    for url in remote.urls:
        try:
            _persist(partial(_attempt, url, part, remote.sha256), part, attempts, pause)
        except _AttemptError as error:
            reasons.append(f"{url}: {error}")
            continue
        os.replace(part, target)
        _facts(part).unlink(missing_ok=True)
        return
    raise UserError(
        f"{remote.name}: not downloaded: {'; '.join(reasons) or 'no address is known'}; "
        f"try again later, or place the file at {target}"
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
                raise _AttemptError(_reason(error)) from error
        time.sleep(pause * 2 ** (failures - 1))


def _attempt(url: str, part: Path, checksum: str | None) -> None:
    """Ask once, from where the part ends; raise unless the part is whole and right afterwards."""
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
    """Facts about the part; one that might be spliced unnoticed is deleted first."""
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
    found, tag = response.headers.get("Content-Range", ""), _validator(response)
    is_here = re.match(rf"bytes {offset}-", found) and _total(response) == facts["bytes"]
    if not is_here or (is_same and tag and tag != facts["validator"]):
        _discard(part)
        raise _AttemptError(
            f"asked for bytes {offset}- of {facts['bytes']} of release {facts['validator']!r}, "
            f"was sent {found!r} of {tag!r}"
        )


def _check_content(response: requests.Response, part: Path, checksum: str | None) -> None:
    """Refuse what cannot be the file: a page for readers, nothing, and an end that may be a cut."""
    kind, size = response.headers.get("Content-Type", ""), _length(response)
    if kind.startswith("text/html") and ".htm" not in part.name:
        raise _RefusalError("sent a web page instead; open the address in a browser")
    if size == 0:
        raise _AttemptError("sent an empty file")
    is_chunked = "chunked" in response.headers.get("Transfer-Encoding", "")  # marks its own end
    if size is None and not is_chunked and checksum is None:
        raise _AttemptError("tells no size and no checksum is known: a cut would go unnoticed")


def _start_over(response: requests.Response, url: str, part: Path) -> dict:
    """Empty the part and note what the server says of the file it now sends."""
    facts = {"url": url, "validator": _validator(response), "bytes": _length(response)}
    _discard(part)
    write_json(_facts(part), facts)
    return facts


def _length(response: requests.Response) -> int | None:
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _validator(response: requests.Response) -> str:
    """What tells releases of a file apart: a strong ETag, else the date of the last change."""
    tag = response.headers.get("ETag", "")
    strong = tag if tag and not tag.startswith("W/") else ""
    return strong or response.headers.get("Last-Modified", "")


def _append(response: requests.Response, part: Path, total: int | None) -> None:
    offset = _size(part)
    _check_space(part, (total or 0) - offset)
    title = part.name.removesuffix(".part")
    bar = tqdm(desc=title, total=total, initial=offset, unit="B", unit_scale=True, disable=None)
    try:
        with bar, part.open("ab") as file:
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    except requests.RequestException:  # an OSError too, but not of this disk
        raise
    except OSError as error:
        raise UserError(
            f"{part}: cannot be written on ({error.strerror}); make room and run again: what is "
            f"there is kept"
        ) from error
    if total is not None and _size(part) != total:
        raise _AttemptError(f"expected {total} bytes, got {_size(part)}")


def _check_space(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise UserError(
            f"{part}: needs {needed / 2**30:.1f} GiB more, found {free / 2**30:.1f} GiB free; "
            f"free some disk and run again: what is there is kept"
        )


def _verify(checksum: str | None, part: Path, is_final: bool) -> None:
    """Delete a part with wrong bytes. Final: they came in one piece, so that the address has no
    others; else a cut or a splice may be the reason, and another attempt helps."""
    if checksum is None:
        return
    found = sha256(part)
    if found != checksum:
        _discard(part)
        kind = _RefusalError if is_final else _AttemptError
        raise kind(f"expected sha256 {checksum}, found {found}")


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


def _reason(error: Exception) -> str:
    """What to tell of a failure; the words of requests hold memory addresses."""
    if isinstance(error, _AttemptError):
        return str(error)
    return f"no connection, or cut ({type(error).__name__})"

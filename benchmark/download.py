"""Downloads that survive a cut and never leave a bad file in place.

Bytes go to `<target>.part`; `<target>.part.json` tells which release of which address they belong
to, so that a later run resumes only the same file.
"""

import json
import os
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import requests
from tqdm import tqdm

from benchmark.errors import UserError
from benchmark.files import sha256, write_json
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
            _persist(partial(_attempt, url, part, remote.sha256 is None), part, attempts, pause)
            _verify(remote, part)
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


def _attempt(url: str, part: Path, needs_size: bool) -> None:
    """Ask once, from where the part ends; raise unless the part is whole afterwards.

    Without a size a cut looks like the end, so one is needed where no checksum would tell.
    """
    facts = _resumable(url, part)
    offset = _size(part)
    headers = {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if facts["validator"]:
            headers["If-Range"] = facts["validator"]
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == 416 and _total(response) == offset > 0:
            return  # the part was whole already
        _check_status(response, part)
        if response.status_code == 206:
            _check_range(response, part, offset, facts["bytes"])
        else:
            facts = _start_over(response, url, part)
        if needs_size and facts["bytes"] is None:
            raise _RefusalError("tells no size and no checksum is known: a cut would go unnoticed")
        _append(response, part, facts["bytes"])


def _resumable(url: str, part: Path) -> dict:
    """Facts about the part; one that is not surely of `url` is deleted first."""
    try:
        facts = json.loads(_facts(part).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        facts = {}
    if facts.get("url") != url:
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


def _check_range(response: requests.Response, part: Path, offset: int, total: int | None) -> None:
    found = response.headers.get("Content-Range", "")
    if not re.match(rf"bytes {offset}-", found) or _total(response) != total:
        _discard(part)
        raise _AttemptError(f"asked for bytes {offset}- of {total}, was sent {found!r}")


def _start_over(response: requests.Response, url: str, part: Path) -> dict:
    """Empty the part and note what the server says of the file it now sends."""
    length = response.headers.get("Content-Length", "")
    tag = response.headers.get("ETag", "")
    strong = tag if tag and not tag.startswith("W/") else ""
    facts = {
        "url": url,
        "validator": strong or response.headers.get("Last-Modified", ""),
        "bytes": int(length) if length.isdecimal() else None,
    }
    _discard(part)
    write_json(_facts(part), facts)
    return facts


def _append(response: requests.Response, part: Path, total: int | None) -> None:
    offset = _size(part)
    title = part.name.removesuffix(".part")
    bar = tqdm(desc=title, total=total, initial=offset, unit="B", unit_scale=True, disable=None)
    with bar, part.open("ab") as file:
        for chunk in response.iter_content(CHUNK):
            file.write(chunk)
            bar.update(len(chunk))
    if total is not None and _size(part) != total:
        raise _AttemptError(f"expected {total} bytes, got {_size(part)}")


def _verify(remote: RemoteFile, part: Path) -> None:
    if remote.sha256 is None:
        return
    found = sha256(part)
    if found != remote.sha256:
        _discard(part)
        raise _AttemptError(f"expected sha256 {remote.sha256}, found {found}")


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

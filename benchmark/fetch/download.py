"""Downloads that go on after an interruption or a kill, and never leave a bad file in place.

Bytes go to `<target>.part`. A download goes on from there, also in a later process, only where a
mixture of releases cannot go unnoticed: a checksum is known, or `<target>.release.part` names the
address and the release, as the server did, and the server then sends the rest of the same one.
"""

import os
import time
from pathlib import Path

import requests

from benchmark.contracts.datasets import RemoteFile
from benchmark.core.errors import UserError
from benchmark.core.files import require_space, sha256
from benchmark.core.progress_bars import ProgressBar

CHUNK = 1 << 15  # bytes; an interruption loses the chunk in progress
TIMEOUT = (10, 60)  # seconds to connect, seconds without a byte
PASSING = (408, 416, 425, 429)  # statuses below 500 that are worth another attempt


class ChecksumError(UserError):
    """A file whose bytes are not those of the release."""


class _AttemptError(Exception):
    """An attempt that gave no whole file; `is_final` if later ones would not either."""

    def __init__(self, reason: str, is_final: bool = False, is_checksum: bool = False) -> None:
        super().__init__(reason)
        self.is_final, self.is_checksum = is_final, is_checksum


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
        failures, furthest = 0, 0
        while failures < attempts:
            try:
                _attempt(url, part, remote.sha256)
            except (_AttemptError, requests.RequestException) as error:
                last = error
                if not isinstance(error, _AttemptError):  # its message holds a memory address
                    what = type(error).__name__
                    last = _AttemptError(f"no connection, or an interrupted one ({what})")
                failures = 1 if _size(part) > furthest else failures + 1
                furthest = max(furthest, _size(part))
            else:
                _release_file(part).unlink(missing_ok=True)
                os.replace(part, target)
                return
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
    """One request, from where the part ends; raises unless the part is then whole and verified."""
    noted = _release_file(part)
    of_url, _, release = noted.read_text().partition("\n") if noted.exists() else ("", "", "")
    release = release if of_url == url else ""
    if not (release or checksum):
        _discard(part)
    offset, headers = _size(part), {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if release:
            headers["If-Range"] = release
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == 206:
            span, found = response.headers.get("Content-Range", ""), _release(response)
            first, _, total = span.removeprefix("bytes ").partition("/")
            total = int(total) if total.isdecimal() else None
            if first != f"{offset}-{(total or 0) - 1}" or release and found not in ("", release):
                _discard(part)
                expected = f"bytes {offset}- of release {release!r}"
                raise _AttemptError(f"expected {expected}, found {span!r} of {found!r}")
        else:
            total, offset = _start_over(response, part, checksum), 0
            noted.write_text(f"{url}\n{_release(response)}")
        require_space(part.parent, (total or 0) - offset)
        title = part.name.removesuffix(".part")
        bar = ProgressBar(desc=title, total=total, initial=offset, unit="B", unit_scale=True)
        with bar, part.open("ab") as file:
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    if total is not None and _size(part) != total:
        raise _AttemptError(f"expected {total} bytes, found {_size(part)}")
    if checksum is not None and (found := sha256(part)) != checksum:
        # In one piece these are the address's bytes; otherwise a mixture may be the reason.
        is_final = offset == 0 and total is not None
        _discard(part)
        raise _AttemptError(f"expected sha256 {checksum}, found {found}", is_final, True)


def _start_over(response: requests.Response, part: Path, checksum: str | None) -> int | None:
    """Empty the part; how many bytes the server now sends, if it tells. Refuses what cannot be the
    file: an error, a web page, nothing, and content that may be incomplete."""
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
        raise _AttemptError("sent no size, and without a checksum missing bytes would go unnoticed")
    return total


def _release(response: requests.Response) -> str:
    """A strong ETag, else the date of the last change; "" if the server tells neither."""
    tag = response.headers.get("ETag", "")
    strong = tag if not tag.startswith("W/") else ""
    return strong or response.headers.get("Last-Modified", "")

"""The stage fetch: links, downloads, fingerprints, and what it refuses."""

import dataclasses
import hashlib
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from builders import record
from layouts import draw
from refusals import check, holds, refusal, refused

from benchmark.__main__ import main
from benchmark.commands import verify
from benchmark.contracts.datasets import Needed, RemoteFile, flickr8k, folder
from benchmark.core.command_line import alone, lock_of, run_stage
from benchmark.core.errors import UserError
from benchmark.core.files import write_json
from benchmark.fetch import __main__ as fetch
from benchmark.fetch.__main__ import ChecksumError, download
from benchmark.season.parameters import DatasetSettings
from seasons import params_of, write_params

MANIFEST = Path("data/manifests/mine.json")
RAW = Path("data/raw/mine")
CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    activate()


def activate(**settings: object) -> None:
    """A season with one dataset, `mine`, read by the reader `folder`."""
    write_params(
        params_of(datasets={"mine": DatasetSettings(**{"reader": "folder"} | settings)})
    )


def own_folder(place: Path) -> Path:
    """Three "pictures" (fetch does not look inside) and their captions."""
    place.mkdir(parents=True)
    for name in "abc":
        (place / f"{name}.png").write_bytes(name.encode() * 10)
    rows = [
        {"image": f"{name}.png", "caption": f"The letter {name}."} for name in "abc"
    ]
    (place / "captions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return place


def run(*words: object) -> int:
    return run_stage("", fetch.configure, fetch.main, [str(word) for word in words])


OTHER_RELEASE = "delete data/manifests/mine.json"
PLACE = "then run: rematch fetch mine --source DIR"


def manifest() -> dict:
    return json.loads(MANIFEST.read_text())


def test_source_becomes_a_link_and_a_manifest(tmp_path):
    source = own_folder(tmp_path / "own")
    assert run("mine", "--source", source) == 0
    assert RAW.is_symlink() and RAW.resolve() == source
    content = manifest()
    names = ["a.png", "b.png", "c.png", "captions.jsonl"]
    assert [file["name"] for file in content["files"]] == names
    first = {
        "name": "a.png",
        "bytes": 10,
        "sha256": hashlib.sha256(b"a" * 10).hexdigest(),
    }
    assert content["files"][0] == first
    assert (content["reader"], content["options"], content["notes"]) == (
        "folder",
        {},
        [],
    )
    assert str(tmp_path) not in MANIFEST.read_text()


def test_real_folder_is_not_replaced(tmp_path):
    own_folder(RAW)
    error = refusal(fetch, "mine", "--source", own_folder(tmp_path / "own"))
    check(error, "data/raw/mine", "an empty folder", "files")
    assert len(list(RAW.iterdir())) == 4


def test_one_fetch_of_a_dataset_at_a_time(tmp_path):
    with alone(lock_of(str(RAW)), "another fetch"):
        error = refusal(fetch, "mine", "--source", own_folder(tmp_path / "own"))
    check(error, where="fetch mine", expected="no other")
    assert not MANIFEST.exists()


def with_card(monkeypatch, **facts: object) -> None:
    monkeypatch.setattr(folder, "CARD", dataclasses.replace(folder.CARD, **facts))


def test_nothing_is_downloaded_into_a_folder_of_the_user(tmp_path, monkeypatch):
    with_card(monkeypatch, remote=(RemoteFile(name="all.csv", urls=()),))
    monkeypatch.setattr(fetch, "download", None)
    (tmp_path / "own").mkdir()
    error = refusal(fetch, "mine", "--source", tmp_path / "own")
    check(error, RAW, "one annotation file", "none", ".csv")
    assert list((tmp_path / "own").iterdir()) == []


def test_a_gated_dataset_tells_its_form_and_ticks_what_is_there(
    tmp_path, monkeypatch, capsys
):
    checklist = {
        Needed("the captions", (("captions.jsonl",),)): "x",
        Needed("the pictures", (("pictures/",), ("pictures.zip",))): "x",
        Needed("features", (("train.npy", "val.npy"),)): " ",
        Needed("features again", (("train.npy", "test.npy"),)): "x",
        Needed("more", (("all.zip",), ("train.npy", "val.npy"))): " ",
        Needed("more", (("all.zip",), ("train.npy", "test.npy"))): "x",
        Needed("any feature", (("t*.npy",),)): "x",
    }
    with_card(monkeypatch, form="https://example.org/form", checklist=tuple(checklist))
    own = own_folder(tmp_path / "own")
    for name in ("pictures.zip", "train.npy", "test.npy"):
        (own / name).touch()
    (own / "a.png").unlink()
    error = refusal(fetch, "mine", "--source", own)
    ticked = capsys.readouterr().err.splitlines()
    assert ticked == [f"[{mark}] {needed}" for needed, mark in checklist.items()]
    check(error, "a.png", "a raw file", "nothing (1 of 4", PLACE)
    assert "https://example.org/form" in error.do


def test_the_first_fetch_records_the_files_of_a_release_without_checksums(
    tmp_path, monkeypatch
):
    with_card(monkeypatch, remote=(RemoteFile(name="a.png", urls=()),))
    own = own_folder(tmp_path / "own")
    assert run("mine", "--source", own) == 0
    first = MANIFEST.read_bytes()
    (own / "b.png").write_bytes(b"other")
    assert run("mine") == 0
    (own / "a.png").write_bytes(b"other")
    error = refusal(fetch, "mine")
    right, wrong = (
        hashlib.sha256(b"a" * 10).hexdigest(),
        hashlib.sha256(b"other").hexdigest(),
    )
    check(error, "data/raw/mine/a.png", f"sha256 {right}", wrong, OTHER_RELEASE)
    assert MANIFEST.read_bytes() != first and right in MANIFEST.read_text()
    MANIFEST.unlink()
    assert run("mine") == 0
    assert manifest()["files"][0]["sha256"] == wrong


# Releases -----------------------------------------------------------------------------


def flickr8k_files(place: Path, *sizes: tuple[int, int]) -> Path:
    place.mkdir()
    # six photographs of these sizes in turn
    names = [f"{number}_a.jpg" for number in range(6)]
    lines = [f"{name}#0\tA picture called {name} ." for name in names]
    with zipfile.ZipFile(place / flickr8k.TEXT_ZIP, "w") as archive:
        archive.writestr(flickr8k.TOKENS, "\n".join(lines))
        for (_, name), own in zip(
            flickr8k.LISTS.items(), ("012", "3", "45"), strict=True
        ):
            archive.writestr(name, "\n".join(f"{number}_a.jpg" for number in own))
    with zipfile.ZipFile(place / flickr8k.IMAGE_ZIP, "w") as archive:
        for number, name in enumerate(names):
            draw(place / name, number, sizes[number % len(sizes)])
            archive.write(place / name, f"{flickr8k.IMAGE_FOLDER}/{name}")
            (place / name).unlink()
    return place


@pytest.fixture
def squashed_and_public(tmp_path, monkeypatch) -> tuple[Path, Path]:
    activate(reader="flickr8k")
    counts = {"train": 3, "val": 1, "test": 2}
    small = dataclasses.replace(flickr8k.CARD, expected_images=counts)
    monkeypatch.setattr(flickr8k, "CARD", small)
    squashed = flickr8k_files(tmp_path / "squashed", (224, 224))
    return squashed, flickr8k_files(tmp_path / "public", (50, 40), (40, 50))


def card() -> dict:
    assert main(["prepare", "mine"]) == 0
    return json.loads(Path("data/cards/mine/card.json").read_text())


def test_each_release_is_taken_and_named_and_its_departure_told(
    squashed_and_public, capsys
):
    squashed, public = squashed_and_public
    assert run("mine", "--source", squashed) == 0
    told = capsys.readouterr().out
    assert holds(told.splitlines()[0], "mine", "squashed", "224 x 224")
    assert manifest()["release"] == "squashed"
    prepared = card()
    assert set(prepared["release"]) == {"name", "departs"}
    assert prepared["release"]["name"] == "squashed"
    assert prepared["release"]["departs"] == prepared["notes"][0]
    without = manifest() | {}
    del without["release"]  # a name is no part of what features and records are of
    write_json(Path("plain.json"), without)
    assert (
        prepared["manifest"]
        == hashlib.sha256(Path("plain.json").read_bytes()).hexdigest()
    )
    RAW.unlink()
    assert run("mine", "--source", public) == 0  # with other checksums
    *_, told, warning = capsys.readouterr().out.splitlines()
    assert told == "fetch mine: release public" and "squashed" in warning
    assert manifest()["release"] == "public"
    assert "release" not in card()


def test_a_copy_of_one_size_is_not_taken_for_the_public_release(
    squashed_and_public, tmp_path, capsys
):
    copy = flickr8k_files(tmp_path / "copy", (256, 256))
    assert run("mine", "--source", copy) == 0
    assert "release resized: " in capsys.readouterr().out
    assert card()["release"]["name"] == "resized"


def test_other_bytes_of_the_same_release_are_refused(squashed_and_public, tmp_path):
    _, public = squashed_and_public
    assert run("mine", "--source", public) == 0
    flickr8k_files(tmp_path / "again", (60, 40), (40, 60))
    error = refusal(fetch, "mine", "--source", tmp_path / "again")
    check(error, flickr8k.IMAGE_ZIP, "first fetch", "", OTHER_RELEASE)


def test_after_a_copy_that_departs_a_download_is_still_the_published_release(
    squashed_and_public, monkeypatch
):
    squashed, public = squashed_and_public
    assert run("mine", "--source", squashed) == 0
    RAW.unlink()
    asked = {}

    def fake(remote: RemoteFile, target: Path) -> None:
        asked[remote.name] = remote.sha256
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((public / remote.name).read_bytes())

    monkeypatch.setattr(fetch, "download", fake)
    assert run("mine") == 0 and manifest()["release"] == "public"
    assert asked == {flickr8k.IMAGE_ZIP: None, flickr8k.TEXT_ZIP: None}
    RAW.joinpath(flickr8k.TEXT_ZIP).unlink()
    assert run("mine") == 0
    assert asked[flickr8k.TEXT_ZIP] == manifest()["files"][1]["sha256"]


def test_verify_says_that_other_images_give_other_numbers(squashed_and_public):
    squashed, public = squashed_and_public
    assert run("mine", "--source", squashed) == 0
    kept = record(dataset="mine", manifest_sha256=card()["manifest"])
    verify.check_raw_files([kept])
    assert run("mine", "--source", public) == 0
    with refused("data/raw/mine", "committed results", "release public"):
        verify.check_raw_files([kept])


# Downloads ----------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """Answers from `script`, one behaviour per request; the last one is repeated for
    ever."""

    def __init__(self, *script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = list(script)
        self.ranges: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802, the name http.server calls
        script = self.server.script
        self.server.ranges.append(self.headers["Range"])
        behaviour = script.pop(0) if len(script) > 1 else script[0]
        behaviour(self)

    def log_message(self, *words):
        pass

    def answer(self, status: int, body: bytes, **headers: object) -> None:
        self.send_response(status)
        for name, value in ({"Content_Length": len(body)} | headers).items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    @property
    def start(self) -> int:
        asked = self.headers["Range"]
        return int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0


def status(code: int):
    return lambda handler: handler.answer(code, b"")


def whole(content: bytes = CONTENT, **headers: object):
    """Sends everything, and ignores Range."""
    return lambda handler: handler.answer(200, content, **headers)


def cut(share: int, content: bytes = CONTENT, **headers: object):
    def behaviour(handler: Handler) -> None:
        start, total = handler.start, len(content)
        if start >= total:
            return handler.answer(416, b"", Content_Range=f"bytes */{total}")
        span = f"bytes {start}-{total - 1}/{total}" if start else None
        length = {"Content_Length": total - start, "Content_Range": span}
        return handler.answer(
            206 if start else 200, content[start : start + share], **(length | headers)
        )

    return behaviour


def ranged(content: bytes = CONTENT, **headers: object):
    return cut(len(content), content, **headers)


@pytest.fixture
def serve(monkeypatch) -> Iterator:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("benchmark.fetch.__main__.CHUNK", 500)
    servers = []

    def start(*script) -> Server:
        server = Server(*script)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def downloads(tmp_path) -> Path:
    """An empty folder."""
    path = tmp_path / "downloads"
    path.mkdir()
    return path


def fetch_from(
    target: Path, *servers: Server, sha256: str | None = SHA256, attempts: int = 3
) -> None:
    urls = tuple(server.url for server in servers)
    remote = RemoteFile(name="file.bin", urls=urls, sha256=sha256)
    download(remote, target, attempts=attempts, pause=0.0)


def assert_only(target: Path) -> None:
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == [target.name]


OTHER = bytes(reversed(CONTENT))  # another release of the same size
TAG = {"ETag": '"a"'}
RESUMED = [None, *(f"bytes={start}-" for start in range(1500, 10240, 1500))]
ONCE_AGAIN = [None, "bytes=1500-", None]


def wrong(span: str | None):
    return lambda handler: handler.answer(206, CONTENT[1500:], Content_Range=span)


SCRIPTS = {  # what the server does, the checksum, and the ranges that it is asked for
    "whole": ((whole(),), SHA256, [None]),
    # Resumed for as long as each connection brings something.
    "cut, checksum": ((cut(1500, **TAG),), SHA256, RESUMED),
    "cut, release": ((cut(1500, **TAG),), None, RESUMED),
    **{  # a wrong range is not spliced
        f"range {span}": ((cut(1500, **TAG), wrong(span), ranged()), None, ONCE_AGAIN)
        for span in (
            *("bytes 0-10239/10240", "bytes 1500-10239/99999", "bytes 15000-1/10240"),
            None,
        )
    },
    # nor is a release that changes meanwhile; the server heeds Range but not If-Range
    **{
        f"other {tag}": (
            (cut(1500, OTHER, **{tag: '"old"'}), ranged(**{tag: '"new"'})),
            None,
            ONCE_AGAIN,
        )
        for tag in ("ETag", "Last_Modified")
    },
    # a weak tag says nothing of bytes
    "weak tag": (
        (cut(1500, OTHER, ETag='W/"a"'), ranged(ETag='W/"a"')),
        None,
        [None, None],
    ),
}


@pytest.mark.parametrize(("script", "sha256", "ranges"), SCRIPTS.values(), ids=SCRIPTS)
def test_one_process_fetches_the_whole_file(serve, downloads, script, sha256, ranges):
    server = serve(*script)
    fetch_from(downloads / "new" / "file.bin", server, sha256=sha256)
    assert_only(downloads / "new" / "file.bin")
    assert server.ranges == ranges


# a whole part: 416 with its size
ON, WHOLE = [None, "bytes=1500-"], [None, "bytes=10240-"]
# checksum, what is sent before and after, what is left (None: the part), the ranges
KILLED = {
    "goes on, checksum": (SHA256, cut(1500), None, ranged(), ON),
    "goes on, release": (None, cut(1500, **TAG), None, ranged(**TAG), ON),
    "whole part, checksum": (SHA256, cut(1500), CONTENT, ranged(), WHOLE),
    "whole part, release": (None, cut(1500, **TAG), CONTENT, ranged(**TAG), WHOLE),
    "whole, other release": (
        SHA256,
        cut(1500),
        OTHER,
        ranged(),
        [*WHOLE, None],
    ),
    "no checksum, release": (
        None,
        cut(1500, OTHER),
        None,
        ranged(),
        [None, None],
    ),
    "other release": (SHA256, cut(1500, OTHER), None, ranged(), ONCE_AGAIN),
}


@pytest.mark.parametrize("case", KILLED)
def test_a_later_process_fetches_the_rest_after_a_kill(serve, downloads, case):
    sha256, before, left, after, ranges = KILLED[case]
    server, target = serve(before, after), downloads / "file.bin"
    with pytest.raises(UserError):
        fetch_from(target, server, sha256=sha256, attempts=1)
    assert [path.name for path in downloads.glob("*.part")]
    if left:
        (downloads / "file.bin.part").write_bytes(left)
    fetch_from(target, server, sha256=sha256, attempts=1 if len(ranges) == 2 else 3)
    assert_only(target)
    assert server.ranges == ranges


def test_wrong_bytes_are_refused_and_removed(serve, downloads):
    checksum = hashlib.sha256(b"wrong").hexdigest()
    found = f"expected sha256 {SHA256}, found {checksum}"
    do = str(downloads / "file.bin")
    with refused("file.bin", "a download", found, do, kind=ChecksumError):
        fetch_from(downloads / "file.bin", server := serve(whole(b"wrong")))
    assert list(downloads.iterdir()) == [] and server.ranges == [None]


def test_the_next_address_is_tried(serve, downloads):
    wrong, gone, good = serve(whole(b"wrong")), serve(status(404)), serve(whole())
    fetch_from(downloads / "file.bin", wrong, gone, good)
    assert_only(downloads / "file.bin")
    assert len(gone.ranges) == 1


@pytest.mark.parametrize("tag", [{}, TAG])
def test_addresses_are_not_spliced(serve, downloads, tag):
    left = serve(cut(1500, b"y" * 10240, **tag), status(500))
    right = serve(ranged(**tag))
    fetch_from(downloads / "file.bin", left, right, sha256=None)
    assert_only(downloads / "file.bin")
    assert right.ranges == [None]


@pytest.mark.parametrize("digits", [300, 5000])
def test_a_size_that_no_file_has_is_none(serve, downloads, digits):
    server = serve(whole(Content_Length="9" * digits))
    with refused("file.bin", "a download", "sent no size", kind=UserError):
        fetch_from(downloads / "file.bin", server, sha256=None)


def test_an_impossible_address_is_one_line(downloads):
    remote = RemoteFile(name="file.bin", urls=(f"http://{'a' * 300}.de/",))
    with refused("file.bin", "a download", "LocationParseError"):
        download(remote, downloads / "file.bin", attempts=1)


def test_a_file_is_no_folder_to_be_replaced(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "mine").write_text("mine")
    with refused(tmp_path / "mine", "an empty folder", "a file"):
        fetch.link(tmp_path / "mine", tmp_path / "source")
    assert (tmp_path / "mine").read_text() == "mine"


def test_the_folder_of_an_unknown_user_is_one_line(capsys):
    assert run("mine", "--source", "~nobody-of-this-name/raw") == 2
    assert "found no folder" in capsys.readouterr().err


def test_unknown_size_and_no_checksum_is_refused(serve, downloads):
    server = serve(whole(Content_Length=None))
    with refused("file.bin", "a download", "sent no size", kind=UserError):
        fetch_from(downloads / "file.bin", server, sha256=None)
    assert not (downloads / "file.bin").exists()

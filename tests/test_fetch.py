"""The stage fetch: links, downloads, fingerprints, and what it refuses."""

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from refusals import check, refusal

from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError
from benchmark.core.files import HOST
from benchmark.core.locks import alone, lock_of
from benchmark.fetch import __main__ as fetch
from benchmark.fetch.checklist import downloads
from benchmark.fetch.download import ChecksumError
from benchmark.season.parameter_files import Local, write_local, write_params
from benchmark.season.parameters import DatasetSettings
from datasets import Needed, RemoteFile, folder
from seasons import params_of

MANIFEST = Path("data/manifests/mine.json")
RAW = Path("data/raw/mine")


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    activate()


def activate(**settings: object) -> None:
    """A season with one dataset, `mine`, read by the reader `folder`."""
    write_params(params_of(datasets={"mine": DatasetSettings(**{"reader": "folder"} | settings)}))


def own_folder(place: Path) -> Path:
    """Three "pictures" (fetch does not look inside) and their captions."""
    place.mkdir(parents=True)
    for name in "abc":
        (place / f"{name}.png").write_bytes(name.encode() * 10)
    rows = [{"image": f"{name}.png", "caption": f"The letter {name}."} for name in "abc"]
    (place / "captions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return place


def run(*words: object) -> int:
    return run_stage("", fetch.configure, fetch.main, [str(word) for word in words])


OTHER_RELEASE = "to take another release, delete data/manifests/mine.json"
PLACE = "then run: python -m benchmark.fetch mine --source DIR"


def manifest() -> dict:
    return json.loads(MANIFEST.read_text())


def test_source_becomes_a_link_and_a_manifest(tmp_path):
    source = own_folder(tmp_path / "own")
    assert run("mine", "--source", source) == 0
    assert RAW.is_symlink() and RAW.resolve() == source
    content = manifest()
    assert [file["name"] for file in content["files"]] == [
        "a.png",
        "b.png",
        "c.png",
        "captions.jsonl",
    ]
    assert content["files"][0] == {
        "name": "a.png",
        "bytes": 10,
        "sha256": hashlib.sha256(b"a" * 10).hexdigest(),
    }
    assert (content["reader"], content["options"], content["notes"]) == ("folder", {}, [])
    assert str(tmp_path) not in MANIFEST.read_text()


def test_manifest_is_the_same_bytes_wherever_the_files_are(tmp_path):
    run("mine", "--source", own_folder(tmp_path / "one"))
    first = MANIFEST.read_bytes()
    run("mine", "--source", own_folder(tmp_path / "two"))
    assert RAW.resolve() == tmp_path / "two"
    assert MANIFEST.read_bytes() == first


def test_source_of_this_machine_and_relative_paths(tmp_path):
    own_folder(tmp_path / "own")
    write_local(Local(sources={"mine": "../own"}))
    assert run("mine") == 0
    assert RAW.resolve() == tmp_path / "own"


def test_link_of_an_earlier_run_is_kept(tmp_path):
    run("mine", "--source", own_folder(tmp_path / "own"))
    MANIFEST.unlink()
    assert run("mine") == 0
    assert manifest()["files"]


def test_files_placed_by_hand():
    own_folder(RAW)
    assert run("mine") == 0
    assert run("mine", "--source", RAW) == 0
    assert RAW.is_dir() and not RAW.is_symlink()


def test_real_folder_is_not_replaced(tmp_path):
    own_folder(RAW)
    error = refusal(fetch, "mine", "--source", own_folder(tmp_path / "own"))
    check(error, "data/raw/mine", "no files of its own", "some")
    assert len(list(RAW.iterdir())) == 4


def test_empty_real_folder_is_replaced(tmp_path):
    RAW.mkdir(parents=True)
    assert run("mine", "--source", own_folder(tmp_path / "own")) == 0
    assert RAW.is_symlink()


@pytest.mark.parametrize("process", [2**22 + 1, os.getpid()], ids=["ended", "this_number_again"])
def test_a_link_that_a_killed_fetch_left_half_made(process, tmp_path):
    """It is removed, and what it leads to stays."""
    source = own_folder(tmp_path / "own")
    RAW.parent.mkdir(parents=True)
    left = RAW.with_name(f".mine.{HOST}.{process}.part")
    left.symlink_to(source)
    assert run("mine", "--source", source) == 0
    assert RAW.is_symlink() and len(list(source.iterdir())) == 4
    assert not left.is_symlink()


def test_one_fetch_of_a_dataset_at_a_time(tmp_path, capsys):
    """Two downloads would write one file."""
    with alone(lock_of(str(RAW)), "another fetch"):
        assert run("mine", "--source", own_folder(tmp_path / "own")) == 2
    assert "fetch mine: expected one at a time in this folder" in capsys.readouterr().err
    assert not MANIFEST.exists()


def test_source_that_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    for name, found in (("nowhere", "nothing"), ("file", "no folder")):
        error = refusal(fetch, "mine", "--source", tmp_path / name)
        check(error, tmp_path / name, "the folder that holds the raw files", found)
    assert not RAW.is_symlink()


def test_link_that_leads_nowhere(tmp_path):
    own = own_folder(tmp_path / "own")
    run("mine", "--source", own)
    own.rename(tmp_path / "moved")
    expected = f"a link to an existing folder, not to {own}"
    check(refusal(fetch, "mine"), RAW, expected, "nothing", PLACE)


def test_nothing_there_says_what_to_place_and_how(capsys):
    assert run("mine") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rematch: data/raw/mine: expected one annotation file (.jsonl, ")
    assert folder.CARD.obtain in line
    assert line.endswith("python -m benchmark.fetch mine --source DIR")
    assert not MANIFEST.exists()


def test_picture_that_is_named_but_missing(tmp_path):
    own = own_folder(tmp_path / "own")
    (own / "b.png").unlink()
    error = refusal(fetch, "mine", "--source", own)
    check(error, "b.png", "a raw file", "nothing (1 of 4 raw files are missing)", PLACE)
    assert not MANIFEST.exists()


def test_unknown_dataset_and_option():
    check(refusal(fetch, "yours"), "dataset 'yours'", "one of mine")
    activate(options={"caption": "a.csv"})
    check(refusal(fetch, "mine"), "dataset mine: options", "one of captions", "'caption'")
    shutil.rmtree("seasons")
    check(refusal(fetch, "mine"), "dataset 'mine'", "(none)")


def test_interruption_is_a_status(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    assert run_stage("", fetch.configure, interrupted, ["mine"]) == 130
    assert capsys.readouterr().err == "rematch: interrupted\n"


@pytest.fixture
def hashed(monkeypatch) -> list[str]:
    """Names of the files that are hashed from now on."""
    names = []

    def spy(path: Path) -> str:
        names.append(path.name)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(fetch, "sha256", spy)
    return names


def test_files_are_hashed_once(tmp_path, hashed):
    own = own_folder(tmp_path / "own")
    run("mine", "--source", own)
    assert len(hashed) == 4
    before = MANIFEST.read_bytes()
    run("mine")
    assert len(hashed) == 4
    assert MANIFEST.read_bytes() == before


def test_changed_file_is_hashed_again_even_with_size_and_time_as_before(tmp_path, hashed):
    own = own_folder(tmp_path / "own")
    run("mine", "--source", own)
    facts = (own / "b.png").stat()
    (own / "b.png").write_bytes(b"B" * 10)
    os.utime(own / "b.png", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    del hashed[:]
    run("mine")
    assert hashed == ["b.png"]
    assert manifest()["files"][1]["sha256"] == hashlib.sha256(b"B" * 10).hexdigest()


def test_a_manifest_from_elsewhere_vouches_for_nothing(tmp_path, hashed):
    run("mine", "--source", own_folder(tmp_path / "one"))
    other = own_folder(tmp_path / "two")
    (other / "a.png").write_bytes(b"z" * 10)
    for path in other.iterdir():
        os.utime(path, (1, 1))
    run("mine", "--source", other)
    assert len(hashed) == 8
    assert manifest()["files"][0]["sha256"] == hashlib.sha256(b"z" * 10).hexdigest()


def with_remote(monkeypatch, *remote: RemoteFile) -> list[str]:
    """Give the reader files to download; returns the names that are downloaded."""
    monkeypatch.setattr(folder, "CARD", dataclasses.replace(folder.CARD, remote=remote))
    downloaded = []

    def fake(remote: RemoteFile, target: Path) -> None:
        downloaded.append(remote.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = "image,caption\na.png,The letter a.\n" if target.suffix == ".csv" else "a"
        target.write_text(content)

    monkeypatch.setattr(fetch, "download", fake)
    return downloaded


def test_missing_files_are_downloaded(monkeypatch):
    remote = [RemoteFile(name=name, urls=()) for name in ("all.csv", "a.png")]
    downloaded = with_remote(monkeypatch, *remote)
    RAW.mkdir(parents=True)
    (RAW / "a.png").write_text("mine")
    assert run("mine") == 0
    assert downloaded == ["all.csv"]
    assert run("mine") == 0
    assert downloaded == ["all.csv"]


def test_what_stands_in_for_a_file_spares_its_download(monkeypatch, capsys):
    """COCO, with its training pictures extracted and the annotations at hand."""
    downloaded = with_remote(monkeypatch)
    write_params(params_of(datasets={"mine": DatasetSettings(reader="mscoco")}))
    for name in ("train2014", "val2014"):
        (RAW / name).mkdir(parents=True)  # val2014/ stays empty
    (RAW / "train2014" / "a.jpg").touch()
    (RAW / "dataset_coco.json").touch()
    assert run("mine") == 2  # what is downloaded here is no archive
    assert downloaded == ["val2014.zip"]
    assert "val2014.zip" in capsys.readouterr().err


def test_a_file_of_several_of_one_line_is_downloaded(monkeypatch):
    with_remote(monkeypatch)
    remote = tuple(RemoteFile(name=name, urls=()) for name in ("all.csv", "a.png", "b.png"))
    needed = Needed("captions", (("all.csv", "more.csv"), ("one.json",)))
    with_card(monkeypatch, remote=remote, checklist=(needed,))
    RAW.mkdir(parents=True)
    (RAW / "a.png").touch()
    card = folder.CARD
    assert [file.name for file in downloads(card, RAW)] == ["all.csv", "b.png"]
    (RAW / "one.json").touch()
    assert [file.name for file in downloads(card, RAW)] == ["b.png"]


def test_nothing_is_downloaded_into_a_folder_of_the_user(tmp_path, monkeypatch):
    downloaded = with_remote(monkeypatch, RemoteFile(name="all.csv", urls=()))
    (tmp_path / "own").mkdir()
    error = refusal(fetch, "mine", "--source", tmp_path / "own")
    check(error, RAW, "one annotation file", "none", "name it with the option captions")
    assert downloaded == [] and list((tmp_path / "own").iterdir()) == []


def test_downloads_that_do_not_suffice(monkeypatch):
    with_remote(monkeypatch, RemoteFile(name="all.csv", urls=()))
    check(refusal(fetch, "mine"), "a.png", "a raw file", "nothing", PLACE)
    assert not MANIFEST.exists()


def test_other_release_is_noted(tmp_path, monkeypatch):
    own = own_folder(tmp_path / "own")
    right = hashlib.sha256(b"b" * 10).hexdigest()
    with_remote(
        monkeypatch,
        RemoteFile(name="a.png", urls=(), sha256="0" * 64),
        RemoteFile(name="b.png", urls=(), sha256=right),
        RemoteFile(name="c.png", urls=()),
    )
    assert run("mine", "--source", own) == 0
    assert manifest()["notes"] == ["a.png: sha256 differs from the card"]


def with_card(monkeypatch, **facts: object) -> None:
    monkeypatch.setattr(folder, "CARD", dataclasses.replace(folder.CARD, **facts))


def test_a_gated_dataset_tells_its_form_and_ticks_what_is_there(tmp_path, monkeypatch, capsys):
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
    assert "ask for the data at https://example.org/form" in error.do


def test_nothing_of_a_gated_dataset(monkeypatch, capsys):
    needed = Needed("the pictures", (("pictures/",),))
    with_card(monkeypatch, form="https://example.org/form", checklist=(needed,))
    (RAW / "pictures").mkdir(parents=True)  # an empty folder counts as nothing
    assert run("mine") == 2
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "[ ] pictures/: the pictures" and last.startswith("rematch: ")


def test_the_first_fetch_is_the_record_of_a_release(tmp_path, monkeypatch):
    """For files of a release without a checksum in the card; other files may change."""
    with_card(monkeypatch, remote=(RemoteFile(name="a.png", urls=()),))
    own = own_folder(tmp_path / "own")
    assert run("mine", "--source", own) == 0
    first = MANIFEST.read_bytes()
    (own / "b.png").write_bytes(b"other")
    assert run("mine") == 0
    (own / "a.png").write_bytes(b"other")
    error = refusal(fetch, "mine")
    right, wrong = hashlib.sha256(b"a" * 10).hexdigest(), hashlib.sha256(b"other").hexdigest()
    check(error, "data/raw/mine/a.png", f"sha256 {right}", wrong, OTHER_RELEASE)
    assert MANIFEST.read_bytes() != first and right in MANIFEST.read_text()
    MANIFEST.unlink()
    assert run("mine") == 0
    assert manifest()["files"][0]["sha256"] == wrong


def test_a_later_download_has_to_match_the_record(monkeypatch):
    checksums = []

    def fake(remote: RemoteFile, target: Path) -> None:
        checksums.append(remote.sha256)
        if remote.sha256 not in (None, hashlib.sha256(b"release 1").hexdigest()):
            raise ChecksumError(remote.name, f"sha256 {remote.sha256}", "another", "try again")
        target.write_bytes(b"release 1")

    names = ("a.png", "b.png")
    with_card(monkeypatch, remote=tuple(RemoteFile(name=name, urls=()) for name in names))
    monkeypatch.setattr(fetch, "download", fake)
    own_folder(RAW)
    (RAW / "a.png").unlink()
    assert run("mine") == 0
    (RAW / "a.png").unlink()
    assert run("mine") == 0
    assert checksums == [None, hashlib.sha256(b"release 1").hexdigest()]
    (RAW / "b.png").unlink()
    error = refusal(fetch, "mine")
    checksum = hashlib.sha256(b"b" * 10).hexdigest()
    check(error, "b.png", f"sha256 {checksum}", "another", f"try again; {OTHER_RELEASE}")


def test_a_failed_download_of_a_recorded_file_advises_no_other_release(monkeypatch):
    def fake(remote: RemoteFile, target: Path) -> None:
        raise UserError(remote.name, "a download", "HTTP 404, no sha256", "try again")

    with_card(monkeypatch, remote=(RemoteFile(name="a.png", urls=()),))
    own_folder(RAW)
    assert run("mine") == 0
    monkeypatch.setattr(fetch, "download", fake)
    (RAW / "a.png").unlink()
    assert refusal(fetch, "mine").do == "try again"


def test_a_checksum_of_the_card_comes_before_the_record(tmp_path, monkeypatch):
    own = own_folder(tmp_path / "own")
    remote = RemoteFile(name="a.png", urls=(), sha256="0" * 64)
    with_card(monkeypatch, remote=(remote,))
    assert run("mine", "--source", own) == 0
    (own / "a.png").write_bytes(b"other")
    assert run("mine") == 0
    assert manifest()["notes"] == ["a.png: sha256 differs from the card"]

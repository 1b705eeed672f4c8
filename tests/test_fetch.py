"""The stage fetch: links, downloads, fingerprints, and what it refuses."""

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
from refusals import check, refusal

from benchmark.contracts.datasets import Needed, RemoteFile, folder
from benchmark.core.command_line import run_stage
from benchmark.core.locks import alone, lock_of
from benchmark.fetch import __main__ as fetch
from benchmark.season.parameters import DatasetSettings
from seasons import params_of, write_params

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
PLACE = "then run: rematch fetch mine --source DIR"


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


def test_real_folder_is_not_replaced(tmp_path):
    own_folder(RAW)
    error = refusal(fetch, "mine", "--source", own_folder(tmp_path / "own"))
    check(error, "data/raw/mine", "no files of its own", "some")
    assert len(list(RAW.iterdir())) == 4


def test_one_fetch_of_a_dataset_at_a_time(tmp_path, capsys):
    """Two downloads would write one file."""
    with alone(lock_of(str(RAW)), "another fetch"):
        assert run("mine", "--source", own_folder(tmp_path / "own")) == 2
    assert "fetch mine: expected one at a time in this folder" in capsys.readouterr().err
    assert not MANIFEST.exists()


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


def test_nothing_is_downloaded_into_a_folder_of_the_user(tmp_path, monkeypatch):
    downloaded = with_remote(monkeypatch, RemoteFile(name="all.csv", urls=()))
    (tmp_path / "own").mkdir()
    error = refusal(fetch, "mine", "--source", tmp_path / "own")
    check(error, RAW, "one annotation file", "none", "name it with the option captions")
    assert downloaded == [] and list((tmp_path / "own").iterdir()) == []


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

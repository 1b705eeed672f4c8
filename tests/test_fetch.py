"""The stage fetch: links, downloads, fingerprints, and what it refuses."""

import dataclasses
import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from builders import record
from layouts import draw
from refusals import check, holds, refusal, refused

from benchmark.__main__ import main
from benchmark.commands import verify
from benchmark.contracts.datasets import Needed, RemoteFile, flickr8k, folder
from benchmark.core.command_line import alone, lock_of, run_stage
from benchmark.core.files import write_json
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

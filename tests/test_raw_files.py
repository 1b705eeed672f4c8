"""Raw files that change after they were fetched: `run`, `doctor` and the stages
notice."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from layouts import draw
from refusals import check, refusal, refused

from benchmark.__main__ import main
from benchmark.commands import run
from benchmark.contracts import datasets
from benchmark.data import prepared_tables, raw_files
from benchmark.data.raw_files import (
    check_manifest,
    digests,
    downloads,
    raw_dataset,
)
from benchmark.encode import __main__ as encode
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameter_files import Local, read_params, write_local

SEASON = """
title: Mine
datasets:
  mine:
    reader: folder
    image: {network: drawn_cnn, input_size: 96}
    words: {size: 8}
presets: [scan_t2i_avg]
seeds: [0]
"""
PREPARED = Path("data/prepared/mine/captions.parquet")
FETCH = "rematch fetch mine"


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch) -> Path:
    """The user's own folder, named in local.yaml of a season."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    folder = own_folder(tmp_path / "own")
    Path("mine.yaml").write_text(SEASON)
    assert main(["season", "mine.yaml", "--source", f"mine={folder}"]) == 0
    return folder


def own_folder(folder: Path) -> Path:
    (folder / "pictures").mkdir(parents=True)
    for number in range(6):
        draw(folder / f"pictures/{number}.png", number)
    caption(folder, "first")
    return folder


def caption(folder: Path, word: str) -> None:
    """Write captions.csv anew, with `word` in every caption."""
    split = ["train"] * 4 + ["val", "test"]
    rows = [f"pictures/{n}.png,The {word} number {n}.,{split[n]}" for n in range(6)]
    (folder / "captions.csv").write_text("\n".join(["image,caption,split", *rows, ""]))


def replace_by_equal_size(folder: Path) -> None:
    path = folder / "pictures/0.png"
    content = path.read_bytes()
    draw(path, 9)
    while path.stat().st_size < len(content):
        path.write_bytes(path.read_bytes() + b"\0")
    path.write_bytes(path.read_bytes()[: len(content)])
    assert path.stat().st_size == len(content) and path.read_bytes() != content


@pytest.fixture
def played(monkeypatch) -> list[str]:
    """The steps of `run`, by their names; encoding, training and evaluation are left
    out."""
    steps = []

    def fetched(*given: object) -> list[str]:
        steps.append("fetch")
        return fetch.fetch(*given)

    def prepared(*given: object) -> list[str]:
        steps.append("prepare")
        return prepare.prepare(*given)

    def encoded(params: object, features: object) -> None:
        steps.append("encode")
        settings = features.image or features.words
        Path(features.folder).mkdir(parents=True)
        facts = {"settings": settings.model_dump()}
        facts["prepared_sha256"] = prepared_tables.read(features.dataset).sha256
        (Path(features.folder) / "card.json").write_text(json.dumps(facts))

    monkeypatch.setattr(run, "fetch", fetched)
    monkeypatch.setattr(run, "prepare", prepared)
    monkeypatch.setattr(run, "encode", encoded)
    for name in ("train_cell", "evaluate_cell"):
        monkeypatch.setattr(run, name, lambda *given: None)
    monkeypatch.setattr(run.drawn_pretraining, "main", lambda: None)
    record = type("Record", (), {"status": "ok", "reason": "", "metrics": {}})
    monkeypatch.setattr(run, "read_record", lambda folder: record)
    return steps


def run_again(played: list[str], *words: object) -> list[str]:
    played.clear()
    assert main(["run", "scan_t2i_avg", "--dataset", "mine", *map(str, words)]) == 0
    return list(dict.fromkeys(played))


def test_run_reads_edited_raw_files_anew(own, played, tmp_path):
    everything = ["fetch", "prepare", "encode"]
    assert run_again(played) == everything
    assert run_again(played) == []
    caption(own, "second")
    assert run_again(played) == everything
    replace_by_equal_size(own)
    assert run_again(played) == everything
    os.utime(own / "captions.csv", (1, 1))
    assert run_again(played) == []  # the same bytes
    other = own_folder(tmp_path / "other")
    assert run_again(played, "--source", other) == everything
    shutil.rmtree(other)
    write_local(Local())
    assert run_again(played) == []  # what is prepared needs no raw files


def test_doctor_tells_what_changed_since_it_was_fetched(own, capsys, monkeypatch):
    def told() -> str:
        assert main(["doctor"]) == 0
        lines = capsys.readouterr().out.splitlines()
        return next(line for line in lines if line.startswith("mine "))

    assert told() == "mine           not fetched yet; run: rematch fetch mine"
    assert main(["fetch", "mine"]) == 0
    assert told() == "mine           ok"
    caption(own, "second")
    assert (
        told() == "mine           changed since it was fetched; run: rematch fetch mine"
    )


def test_files_that_change_while_they_are_prepared(own, monkeypatch):
    assert main(["fetch", "mine"]) == 0

    def measured(*given: object) -> list:
        caption(own, "second")
        return measure(*given)

    measure = prepare.measure
    monkeypatch.setattr(prepare, "measure", measured)
    check(
        refusal(prepare, "mine"),
        "data/raw/mine/captions.csv",
        "the manifest",
        "",
        FETCH,
    )
    assert not PREPARED.exists()


def test_pictures_that_change_before_they_are_encoded(own):
    assert main(["fetch", "mine"]) == 0 and main(["prepare", "mine"]) == 0
    replace_by_equal_size(own)
    error = refusal(encode, "mine-drawn_cnn_96_g6_flip")
    check(error, "data/raw/mine/pictures/0.png", "the manifest", "", FETCH)
    assert not Path("data/features").exists()


def test_an_edit_that_keeps_size_and_time_is_noticed(own):
    dataset = SimpleNamespace(name="mine", folder=own)
    path = own / "captions.csv"
    facts = path.stat()
    before = digests(dataset, [path])
    caption(own, "other")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert path.stat().st_size == facts.st_size
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digests(dataset, [path]) == {"captions.csv": sha256} != before


def test_a_file_is_got_unless_all_that_it_is_for_is_there(tmp_path):
    needs = [
        SimpleNamespace(ways=[("all.zip",), ("a.json",)]),
        SimpleNamespace(ways=[("all.zip",), ("b.json",)]),
    ]
    remote = SimpleNamespace(name="all.zip")
    card = SimpleNamespace(remote=[remote], checklist=needs)
    raw = tmp_path / "raw"
    raw.mkdir()
    for name, missing in ((None, [remote]), ("a.json", [remote]), ("b.json", [])):
        if name:
            (raw / name).write_text("{}")
        assert downloads(card, raw) == missing


def test_a_lost_file_is_found_though_the_reader_takes_what_is_in_the_folder(own):
    assert main(["fetch", "mine"]) == 0
    dataset = raw_dataset(read_params("mine"), "mine")
    in_folder = SimpleNamespace(
        **{name: getattr(dataset, name) for name in ("name", "reader", "options")},
        folder=dataset.folder,
        manifest=dataset.manifest,
        inventory=lambda: sorted(dataset.folder.glob("**/*.*")),
    )
    check_manifest(in_folder)
    (own / "pictures/3.png").unlink()
    with refused(where="pictures/3.png", expected="in the manifest", found="nothing"):
        check_manifest(in_folder)


def test_readers_that_are_noted_are_not_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = []
    load = datasets.load
    monkeypatch.setattr(
        datasets, "load", lambda name: loaded.append(name) or load(name)
    )
    expected = {"shapes": False, "people": False, "flickr8k": True, "folder": True}
    raw_files.note_readers(expected)
    assert sorted(loaded) == sorted(expected)
    loaded.clear()
    assert {name: raw_files.has_files(name) for name in expected} == expected
    assert not loaded
    raw_files.NOTED_READERS.write_text("{")
    assert raw_files.has_files("flickr8k") and loaded == ["flickr8k"]

"""Raw files that change after they were fetched: `dvc repro`, `run` and the stages notice."""

import json
import os
import shutil
from pathlib import Path

import pytest
from dvc_repository import copy_code, play_in_forks, repository, repro, start
from layouts import draw
from refusals import check, refusal

from benchmark.__main__ import main
from benchmark.commands import run
from benchmark.data import prepared_tables
from benchmark.data.raw_state import state_of
from benchmark.encode import __main__ as encode
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameter_files import Local, write_local

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
PIPELINE = "seasons/shared/pipelines/mine/dvc.yaml"
PLAYED = [("mine", "fetch"), ("mine", "prepare")]
FETCH = "python -m benchmark.fetch mine"


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


def replace_picture(folder: Path) -> None:
    """Another picture of equal size in bytes."""
    path = folder / "pictures/0.png"
    content = path.read_bytes()
    draw(path, 9)
    while path.stat().st_size < len(content):
        path.write_bytes(path.read_bytes() + b"\0")
    path.write_bytes(path.read_bytes()[: len(content)])
    assert path.stat().st_size == len(content) and path.read_bytes() != content


def captions() -> bytes:
    return PREPARED.read_bytes()


# The state ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit",
    [
        lambda own: (own / "captions.csv").write_text("image,caption\n"),
        lambda own: os.utime(own / "pictures/3.png", (1, 1)),
        lambda own: (own / "pictures/3.png").unlink(),
        lambda own: (own / "pictures/3.png").rename(own / "pictures/7.png"),
        lambda own: (own / "more.csv").touch(),
    ],
)
def test_the_state_changes_with_any_file(own, edit):
    before = state_of(own)
    assert state_of(own) == before
    edit(own)
    assert state_of(own) != before


def test_the_state_is_that_of_the_folder_wherever_it_is(own, tmp_path):
    shutil.copytree(own, tmp_path / "copy")  # keeps the times
    (tmp_path / "link").symlink_to(own)
    (own / ".hidden").touch()
    assert {state_of(tmp_path / name) for name in ("copy", "link")} == {state_of(own)}


def test_links_in_the_folder_are_followed(own, tmp_path):
    (own / "pictures").rename(tmp_path / "elsewhere")
    (own / "pictures").symlink_to(tmp_path / "elsewhere")
    (own / "pictures/round").symlink_to(own)
    (own / "nowhere").symlink_to("gone")
    before = state_of(own)
    os.utime(tmp_path / "elsewhere/3.png", (1, 1))
    assert state_of(own) != before


# DVC ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_dvc_fetches_and_prepares_edited_raw_files_anew(own, tmp_path, monkeypatch):
    copy_code()
    play_in_forks(monkeypatch)
    start()
    assert repro(f"{PIPELINE}:prepare") == [("shared", "code"), *PLAYED]
    assert repro(f"{PIPELINE}:prepare") == []
    first = captions()
    caption(own, "second")
    assert repro(f"{PIPELINE}:prepare") == PLAYED
    assert captions() != first
    replace_picture(own)
    assert repro(f"{PIPELINE}:prepare") == PLAYED
    assert repro(f"{PIPELINE}:prepare") == []
    other = own_folder(tmp_path / "other")
    caption(other, "third")
    assert main(["season", "mine", "--source", f"mine={other}"]) == 0
    assert repro(f"{PIPELINE}:prepare") == PLAYED
    lock = Path(PIPELINE).with_suffix(".lock").read_text()
    assert str(tmp_path) not in lock
    shutil.rmtree("data")  # as in a clone
    assert repro(f"{PIPELINE}:prepare", dry=True, allow_missing=True) == []
    assert (other / "captions.csv").is_file()


@pytest.mark.slow
def test_raw_files_placed_by_hand_survive_dvc(own, monkeypatch):
    copy_code()
    play_in_forks(monkeypatch)
    write_local(Local())
    shutil.copytree(own, "data/raw/mine")
    start()
    repro(f"{PIPELINE}:prepare")
    with repository() as opened:
        opened.checkout([f"{PIPELINE}:fetch"], force=True)
    repro(f"{PIPELINE}:fetch", force=True)
    caption(Path("data/raw/mine"), "second")
    assert repro(f"{PIPELINE}:prepare") == PLAYED
    assert state_of(Path("data/raw/mine/pictures")) == state_of(own / "pictures")


# Without DVC ----------------------------------------------------------------------------------


@pytest.fixture
def played(monkeypatch) -> list[str]:
    """The steps of `run`, by their names; encoding, training and evaluation are left out."""
    steps = []

    def fetched(*given: object) -> None:
        steps.append("fetch")
        fetch.fetch(*given)

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
    for name in ("_pretrain_if_needed", "train_cell", "evaluate_cell"):
        monkeypatch.setattr(run, name, lambda *given: None)
    record = type("Record", (), {"status": "ok", "reason": "", "metrics": {}})
    monkeypatch.setattr(run, "read_record", lambda folder: record)
    return steps


def again(played: list[str], *words: object) -> list[str]:
    """What a run plays: without repetitions."""
    played.clear()
    assert main(["run", "scan_t2i_avg", "--dataset", "mine", *map(str, words)]) == 0
    return list(dict.fromkeys(played))


def test_run_plays_edited_raw_files_anew(own, played, tmp_path):
    everything = ["fetch", "prepare", "encode"]
    assert again(played) == everything
    assert again(played) == []
    caption(own, "second")
    assert again(played) == everything
    replace_picture(own)
    assert again(played) == everything
    os.utime(own / "captions.csv", (1, 1))
    assert again(played) == ["fetch"]  # the same bytes
    other = own_folder(tmp_path / "other")
    assert again(played, "--source", other) == everything
    shutil.rmtree(other)
    write_local(Local())
    assert again(played) == []  # what is prepared needs no raw files


def test_run_prepares_what_a_killed_run_only_fetched(own, played):
    again(played)
    caption(own, "second")
    assert main(["fetch", "mine"]) == 0
    assert again(played) == ["fetch", "prepare", "encode"]


def test_doctor_tells_that_raw_files_changed(own, capsys):
    def told() -> str:
        capsys.readouterr()
        assert main(["doctor", "--quick"]) == 0
        return capsys.readouterr().out

    note = f"changed since they were fetched; run: {FETCH}"
    assert note not in told()
    main(["fetch", "mine"])
    assert note not in told()
    caption(own, "second")
    (line,) = [line for line in told().splitlines() if note in line]
    assert line.startswith(f"mine           ok: 7 files in {own}, ")


# Mixtures -------------------------------------------------------------------------------------


def test_files_that_change_while_they_are_prepared(own, monkeypatch):
    assert main(["fetch", "mine"]) == 0

    def measured(*given: object) -> list:
        caption(own, "second")
        return measure(*given)

    measure = prepare.measure
    monkeypatch.setattr(prepare, "measure", measured)
    check(refusal(prepare, "mine"), "data/raw/mine/captions.csv", "as in the manifest", "", FETCH)
    assert not PREPARED.exists()


def test_files_that_change_while_they_are_fetched(own, monkeypatch):
    """They are not taken for those of the manifest."""

    def hashed(path: Path) -> str:
        caption(own, "second")
        return sha256(path)

    sha256 = fetch.sha256
    monkeypatch.setattr(fetch, "sha256", hashed)
    assert main(["fetch", "mine"]) == 0
    recorded = Path(".scratch/raw_state/mine.txt").read_text().strip()
    assert recorded != state_of(own)


def test_pictures_that_change_before_they_are_encoded(own):
    assert main(["fetch", "mine"]) == 0 and main(["prepare", "mine"]) == 0
    replace_picture(own)
    error = refusal(encode, "mine-drawn_cnn_96_g6_flip")
    check(error, "data/raw/mine/pictures/0.png", "as in the manifest", "", FETCH)
    assert not Path("data/features").exists()

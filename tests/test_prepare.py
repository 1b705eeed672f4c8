"""The stage prepare: what it writes, what it refuses, and that it loses nothing."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from refusals import check, refusal, refused

from benchmark.core import files
from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import DatasetSettings
from datasets import Tables, folder
from seasons import params_of

SPLIT_OF = {"a": "test", "b": "train", "c": "val", "d": "train", "e": "test", "f": "unused"}
OUT = Path("data/prepared/mine")


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_params(params_of(datasets={"mine": DatasetSettings(reader="folder")}))


def rows() -> list[dict]:
    """Six images; each but the unused one has two captions."""
    return [
        {
            "image": f"{name}.png",
            "id": name,
            "split": split,
            "captions": [f"This is {name}.", f" The  letter {name} "] if name != "f" else [],
        }
        for name, split in SPLIT_OF.items()
    ]


def place(lines: list[dict]) -> Path:
    """Pictures of different sizes and colours, and the annotations, in data/raw/mine."""
    raw = Path("data/raw/mine")
    raw.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(SPLIT_OF):
        picture = Image.new("RGB", (8 + number, 6), (40 * number, 0, 0))
        picture.save(raw / f"{name}.png")
    (raw / "captions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return raw


def run_fetch() -> int:
    return run_stage("", fetch.configure, fetch.main, ["mine"])


def run() -> int:
    return run_stage("", prepare.configure, prepare.main, ["mine"])


def content(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(place.iterdir())}


def refuses(where: object = "", expected: object = "", found: object = "", do: str = "") -> None:
    """The stage refuses with these fields, and leaves nothing half-written."""
    check(refusal(prepare, "mine"), where, expected, found, do)
    assert not OUT.parent.exists() or {path.name for path in OUT.parent.iterdir()} <= {"mine"}


def prepared_mine(lines: list[dict] | None = None) -> prepared_tables.Prepared:
    place(rows() if lines is None else lines)
    assert run_fetch() == 0 and run() == 0
    return prepared_tables.read("mine")


def test_images_by_split_in_file_order_with_sizes():
    images = prepared_mine().images
    assert images.columns.tolist() == ["image_id", "file", "split", "group", "width", "height"]
    assert images["image_id"].tolist() == ["b", "d", "c", "a", "e", "f"]
    assert images["width"].tolist() == [9, 11, 10, 8, 12, 13]
    assert set(images["height"]) == {6}
    assert images["group"].tolist() == images["image_id"].tolist()


def test_captions_follow_their_images_verbatim():
    captions = prepared_mine().captions
    assert captions.columns.tolist() == ["caption_id", "image_id", "text", "split"]
    assert captions["image_id"].tolist() == list("bbddccaaee")
    assert captions["text"].tolist()[:2] == ["This is b.", " The  letter b "]
    assert captions["split"].tolist() == ["train"] * 4 + ["val"] * 2 + ["test"] * 4


def test_interleaved_annotations_are_brought_together():
    lines = [
        {"image": "b.png", "id": "b", "split": "train", "caption": "One more b."},
        *rows(),
        {"image": "b.png", "caption": "The last b."},
    ]
    captions = prepared_mine(lines).captions
    assert captions["text"].tolist()[:4] == [
        "One more b.",
        "This is b.",
        " The  letter b ",
        "The last b.",
    ]
    assert captions["image_id"].tolist()[:6] == list("bbbbdd")


def test_card():
    card = prepared_mine().card
    assert card["counts"] == {
        "train": {"images": 2, "captions": 4, "phrases": 0},
        "val": {"images": 1, "captions": 2, "phrases": 0},
        "test": {"images": 2, "captions": 4, "phrases": 0},
        "unused": {"images": 1, "captions": 0, "phrases": 0},
    }
    assert (card["ways"], card["folds"], card["pictures"]) == (["i2t", "t2i"], 1, 6)
    assert card["captions_per_image"] == {
        "train": {"2": 2},
        "val": {"2": 1},
        "test": {"2": 2},
        "unused": {"0": 1},
    }
    assert (card["dataset"], card["reader"], card["options"]) == ("mine", "folder", {})
    assert card["may_publish"] is False
    assert card["manifest"] == prepare.sha256(Path("data/manifests/mine.json"))
    assert card["leakage"]["pictures"] == [] and card["leakage"]["captions"] == 0


def test_split_gives_rows_and_owners():
    data = prepared_mine()
    for name in ("train", "val", "test", "unused"):
        split = data.split(name)
        images = data.images.iloc[split.image_rows]
        captions = data.captions.iloc[split.caption_rows]
        assert set(images["split"]) == {name} and set(captions["split"]) <= {name}
        owners = images["image_id"].to_numpy()[split.image_of_caption]
        assert owners.tolist() == captions["image_id"].tolist()
        assert split.image_of_caption.dtype == np.int64
    assert data.split("test").image_of_caption.tolist() == [0, 0, 1, 1]
    assert len(data.split("unused").caption_rows) == 0


def test_split_of_no_such_name():
    with pytest.raises(ValueError, match="expected one of train, val, test, unused"):
        prepared_mine().split("dev")


def test_read_before_prepare():
    with refused(kind=UserError) as caught:
        prepared_tables.read("mine")
    assert "python -m benchmark.prepare mine" in str(caught.value)


def test_same_bytes_twice():
    prepared_mine()
    first = content(OUT)
    assert sorted(first) == ["captions.parquet", "card.json", "images.parquet", "regions.parquet"]
    assert run() == 0
    assert content(OUT) == first


def test_picture_in_two_splits_is_noted():
    raw = place(rows())
    Image.open(raw / "b.png").save(raw / "a.png", compress_level=0)  # same pixels, other bytes
    run_fetch()
    assert run() == 0
    leakage = prepared_tables.read("mine").card["leakage"]
    assert leakage["pictures"] == [["train: b.png", "test: a.png"]]
    assert leakage["notes"][0].startswith("1 pictures occur")


def test_same_picture_or_caption_within_a_split_is_no_leak():
    lines = rows()
    lines[3]["captions"] = lines[1]["captions"]  # both train
    raw = place(lines)
    Image.open(raw / "b.png").save(raw / "d.png")
    run_fetch()
    assert run() == 0
    leakage = prepared_tables.read("mine").card["leakage"]
    assert leakage["pictures"] == [] and leakage["captions"] == 0


def test_caption_in_two_splits_is_noted():
    lines = rows()
    lines[0]["captions"][0] = lines[1]["captions"][0]
    leakage = prepared_mine(lines).card["leakage"]
    assert leakage["captions"] == 1
    assert leakage["notes"][2].startswith("1 captions occur")


def test_a_recompressed_picture_in_another_split_is_listed():
    raw = place(rows())
    blobs = Image.effect_noise((6, 4), 90).resize((90, 60), Image.Resampling.BICUBIC).convert("RGB")
    blobs.save(raw / "b.png")
    blobs.quantize(32).save(raw / "a.png")
    run_fetch()
    assert run() == 0
    leakage = prepared_tables.read("mine").card["leakage"]
    assert [pair[:2] for pair in leakage["near_pictures"]] == [["train: b.png", "test: a.png"]]
    assert leakage["pictures"] == []


def test_picture_modes_are_all_read_as_rgb():
    raw = place(rows())
    for name, mode in (("a", "L"), ("b", "RGBA"), ("c", "1"), ("d", "P")):
        Image.open(raw / f"{name}.png").convert(mode).save(raw / f"{name}.png")
    run_fetch()
    assert run() == 0


def annotate(change: Callable[[list[dict]], None]) -> None:
    lines = rows()
    change(lines)
    place(lines)
    assert run_fetch() == 0


BAD_ANNOTATIONS = {  # case -> change, where, expected, found
    "image id": (
        lambda lines: lines[1].update(id="a"),
        *("image_id 'a'", "an id that occurs once", "a second row (1 such in all)"),
    ),
    "no caption": (
        lambda lines: lines[1].update(captions=[]),
        *("image_id 'b': split 'train'", "at least one caption", "none (1 such in all)"),
    ),
    "unknown split": (
        lambda lines: lines[2].update(split="dev"),
        *("image_id 'c': split", "one of train, val, test, unused", "'dev' (1 such in all)"),
    ),
    "no val": (
        lambda lines: lines[2].update(split="train"),
        *("split val", "at least one image", "none"),
    ),
    "no train": (
        lambda lines: [lines[row].update(split="test") for row in (1, 3)],
        *("split train", "at least one image", "none"),
    ),
    "no test": (
        lambda lines: [lines[row].update(split="train") for row in (0, 4)],
        *("split test", "at least one image", "none"),
    ),
    "torn groups": (
        lambda lines: [line.update(group="g") for line in lines[:3]],
        *("group 'g'", "one split per group", "test and train and val (1 such in all)"),
    ),
}


@pytest.mark.parametrize("case", BAD_ANNOTATIONS)
def test_bad_annotations(case):
    change, *fields = BAD_ANNOTATIONS[case]
    annotate(change)
    refuses(*fields)
    assert not OUT.exists()


def test_group_shared_with_unused_is_no_leak():
    lines = rows()
    lines[5]["group"] = "a"
    prepared_mine(lines)
    assert OUT.exists()


def test_counts_that_differ_from_the_card(monkeypatch):
    card = dataclasses.replace(folder.CARD, expected_images={"train": 2, "test": 3})
    monkeypatch.setattr(folder, "CARD", card)
    annotate(lambda lines: None)
    refuses("split test", "3 images", "2")


def test_captions_that_differ_from_the_card(monkeypatch):
    card = dataclasses.replace(folder.CARD, expected_captions={"train": 4, "test": 5})
    monkeypatch.setattr(folder, "CARD", card)
    annotate(lambda lines: None)
    refuses("split test", "5 captions", "4")


def good_tables() -> Tables:
    splits = ["train", "val", "test"]
    return Tables(
        images=pd.DataFrame({"image_id": splits, "file": splits, "split": splits, "group": splits}),
        captions=pd.DataFrame({"caption_id": list("123"), "image_id": splits, "text": list("xyz")}),
    )


BAD_PICTURES = {
    "zero bytes": (lambda content: b"", "something empty or not a picture"),
    "text": (lambda content: b"<html>not found</html>", "something empty or not a picture"),
    "truncated": (lambda content: content[: len(content) - 40], "cannot be decoded"),
    "header only": (lambda content: content[:33], ""),
}


@pytest.mark.parametrize("kind", ["png", "jpg"])
@pytest.mark.parametrize("case", BAD_PICTURES)
def test_bad_pictures(case, kind):
    spoil, found = BAD_PICTURES[case]
    lines = rows()
    lines[1]["image"], lines[3]["image"] = f"b.{kind}", f"d.{kind}"
    raw = place(lines)
    for name in "bd":
        path = raw / f"{name}.{kind}"
        Image.effect_noise((40, 30), 90).convert("RGB").save(path)
        path.write_bytes(spoil(path.read_bytes()))
    run_fetch()
    error = refusal(prepare, "mine")
    check(error, f"mine: b.{kind}", "a whole picture", found)
    assert error.found.endswith("(2 such in all)") and "0x" not in error.found
    assert not OUT.exists()


def test_raw_files_must_be_those_of_the_manifest():
    raw = place(rows())
    refuses("data/manifests/mine.json", "a manifest", "nothing", "python -m benchmark.fetch mine")
    run_fetch()
    annotations = raw / "captions.jsonl"
    annotations.write_text(annotations.read_text().replace("This is a.", "This is A."))
    checksum = prepare.sha256(annotations)
    refuses(annotations, "as in the manifest", checksum, "python -m benchmark.fetch mine")
    run_fetch()
    (raw / "a.png").unlink()
    refuses(raw / "a.png", "as in the manifest", "nothing")


def test_file_that_is_not_in_the_manifest():
    place(rows()[:5])
    run_fetch()
    manifest = Path("data/manifests/mine.json")
    content = json.loads(manifest.read_text())
    content["files"] = [file for file in content["files"] if file["name"] != "e.png"]
    manifest.write_text(json.dumps(content))
    refuses("data/raw/mine/e.png", "only files that are in the manifest")


def test_raw_folder_that_is_gone(capsys):
    place(rows()).rename("elsewhere")
    own = run_stage("", fetch.configure, fetch.main, ["mine", "--source", "elsewhere"])
    Path("elsewhere").rename("moved")
    assert own == 0
    capsys.readouterr()
    assert run() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "rematch: data/raw/mine: expected the raw files, found nothing; "
        "run: python -m benchmark.fetch mine"
    )


def test_dataset_without_files(monkeypatch):
    """As one that is drawn from a seed: nothing to fetch, no folder data/raw/<dataset>."""
    monkeypatch.setattr(folder, "inventory", lambda raw, options: [])
    monkeypatch.setattr(folder, "read", lambda raw, options: good_tables())
    monkeypatch.setattr(
        folder, "pictures", lambda raw, options: lambda file: Image.new("RGB", (4, 3))
    )
    assert run_fetch() == 0 and run() == 0
    assert prepared_tables.read("mine").images["width"].tolist() == [4, 4, 4]


def read_as(monkeypatch, tables: Tables, size: tuple[int, int] | None) -> None:
    """Make the reader `folder` give these tables, with pictures of this size or with none."""

    def open_picture(file: str) -> Image.Image:
        assert size and file, "a picture that is not there is opened"
        return Image.new("RGB", size)

    monkeypatch.setattr(folder, "inventory", lambda raw, options: [])
    monkeypatch.setattr(folder, "read", lambda raw, options: tables)
    monkeypatch.setattr(folder, "pictures", lambda raw, options: open_picture)
    assert run_fetch() == 0


def test_images_without_pictures_are_not_opened(monkeypatch):
    tables = good_tables()
    tables.images["file"] = ["", "val", ""]
    read_as(monkeypatch, tables, (4, 3))
    assert run() == 0
    data = prepared_tables.read("mine")
    assert data.images["width"].tolist() == [0, 4, 0]
    assert data.images["height"].tolist() == [0, 3, 0]
    assert data.card["pictures"] == 1


def test_features_alone_are_a_dataset(monkeypatch):
    tables = good_tables()
    tables.images["file"] = ""
    read_as(monkeypatch, tables, None)
    assert run() == 0
    assert prepared_tables.read("mine").card["pictures"] == 0
    assert prepared_tables.read("mine").card["leakage"]["near_pictures"] == []


def with_region(**changes: object) -> Tables:
    row = {"image_id": "test", "caption_id": "3", "phrase": "a cat", "chain": "cat"}
    box = {"x0": 0, "y0": 1, "x1": 4, "y1": 3}
    return dataclasses.replace(good_tables(), regions=pd.DataFrame([row | box | changes]))


def test_phrases_are_counted_and_numbered(monkeypatch):
    read_as(monkeypatch, with_region(), (4, 3))
    assert run() == 0
    data = prepared_tables.read("mine")
    assert [data.card["counts"][name]["phrases"] for name in ("train", "val", "test")] == [0, 0, 1]
    assert data.regions["phrase_id"].tolist() == ["3/0"]


def test_a_box_outside_its_picture_stops_the_stage(monkeypatch):
    read_as(monkeypatch, with_region(x1=9), (4, 3))
    where, found = "image_id 'test': phrase 'a cat': box", "[0.0, 1.0, 9.0, 3.0]"
    refuses(where, "a box in its picture of 4 x 3", found)
    assert not OUT.exists()


def test_options_must_be_those_of_the_manifest():
    place(rows())
    run_fetch()
    settings = DatasetSettings(reader="folder", options={"captions": "captions.jsonl"})
    write_params(params_of(datasets={"mine": settings}))
    refuses("data/manifests/mine.json: options", "{'captions': 'captions.jsonl'}", "{}")


def test_failure_keeps_what_was_finished():
    prepared_mine()
    before = content(OUT)
    (Path("data/raw/mine") / "a.png").write_bytes(b"")
    run_fetch()
    refuses("mine: a.png")
    assert content(OUT) == before


def test_failure_while_writing_keeps_what_was_finished(monkeypatch, capsys):
    prepared_mine()
    before = content(OUT)

    def full(path, data):
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr(prepare, "write_json", full)
    assert run() == 2
    assert "disk full" in capsys.readouterr().err
    assert content(OUT) == before
    assert [path.name for path in OUT.parent.iterdir()] == ["mine"]


def test_kill_between_the_two_renames_loses_nothing(tmp_path):
    aside = tmp_path / ".mine.old"
    aside.mkdir()
    (aside / "card.json").write_text("finished")
    with pytest.raises(RuntimeError), files.replaced(tmp_path / "mine"):
        raise RuntimeError
    assert content(tmp_path / "mine") == {"card.json": b"finished"}
    assert not aside.exists()


def test_new_folder_takes_the_place_of_the_old(tmp_path):
    for text in ("old", "new"):
        with files.replaced(tmp_path / "deep" / "mine") as part:
            (part / text).write_text(text)
    assert content(tmp_path / "deep" / "mine") == {"new": b"new"}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["mine"]


def test_a_part_of_an_earlier_process_of_this_number_is_in_nobodys_way(tmp_path):
    """As in a container that was killed and started anew."""
    left = tmp_path / f".mine.{files.HOST}.{os.getpid()}.part"
    left.mkdir()
    (left / "half").write_text("half")
    with files.replaced(tmp_path / "mine") as part:
        (part / "card.json").write_text("new")
    assert content(tmp_path / "mine") == {"card.json": b"new"}
    assert not left.exists()


def test_kill_after_the_two_renames_leaves_nothing_in_the_way(tmp_path):
    for name in (".mine.old", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "card.json").write_text(name)
    with files.replaced(tmp_path / "mine") as part:
        (part / "card.json").write_text("new")
    assert content(tmp_path / "mine") == {"card.json": b"new"}
    assert [path.name for path in tmp_path.glob("*mine*")] == ["mine"]

"""The stage prepare: what it writes, what it refuses, and that it loses nothing."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from refusals import check, refusal

from benchmark.contracts.datasets import Tables, folder
from benchmark.core.command_line import alone, lock_of, run_stage
from benchmark.core.files import sha256
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameters import DatasetSettings
from seasons import params_of, write_params

SPLIT_OF = {
    "a": "test",
    "b": "train",
    "c": "val",
    "d": "train",
    "e": "test",
    "f": "unused",
}
OUT, CARDS = Path("data/prepared/mine"), Path("data/cards/mine")


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
            "captions": [f"This is {name}.", f" The  letter {name} "]
            if name != "f"
            else [],
        }
        for name, split in SPLIT_OF.items()
    ]


def place_images_and(lines: list[dict]) -> Path:
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


def refuses(
    where: object = "", expected: object = "", found: object = "", do: str = ""
) -> None:
    """And nothing half-written is left."""
    check(refusal(prepare, "mine"), where, expected, found, do)
    assert not OUT.parent.exists() or {path.name for path in OUT.parent.iterdir()} <= {
        "mine"
    }


def test_images_are_counted_by_their_captions_also_those_without():
    images = pd.DataFrame({"image_id": list("abcd"), "split": "train"})
    images.loc[3, "split"] = "unused"
    captions = pd.DataFrame({"image_id": list("aabbc")})
    expected = {"train": {"2": 2, "1": 1}, "unused": {"0": 1}}
    assert prepare.captions_per_image(images, captions) == expected


def test_a_note_names_five_items_and_counts_the_others():
    assert prepare.note("are odd", list("abcde")) == "5 are odd: a, b, c, d, e."
    of_seven = "7 are odd: a, b, c, d, e and 2 more."
    assert prepare.note("are odd", list("abcdefg")) == of_seven


def test_file_names_that_are_not_utf_8(capsys):
    raw = place_images_and(rows())
    (raw / "captions.jsonl").rename(raw / "gr\udcfcn.jsonl")
    assert run_fetch() == 2
    assert "gr\\udcfcn.jsonl" in capsys.readouterr().err
    (raw / "gr\udcfcn.jsonl").unlink()
    for name in "bcdefgh":
        draw_letter(raw, name)
    (raw / "a.png").rename(raw / "gr\udcfcn.png")
    assert run_fetch() == 0 and run() == 0
    assert "gr\\udcfcn.png" in "\n".join(prepared_tables.read("mine").card["notes"])


def draw_letter(raw: Path, name: str) -> None:
    """A picture with its caption in a text beside it."""
    Image.new("RGB", (8, 8), (9 * ord(name) % 256, 0, 0)).save(raw / f"{name}.png")
    (raw / f"{name}.txt").write_text(f"The letter {name}")


def prepared_mine() -> prepared_tables.Prepared:
    place_images_and(rows())
    assert run_fetch() == 0 and run() == 0
    return prepared_tables.read("mine")


def test_tables_by_split_in_file_order_captions_verbatim():
    data = prepared_mine()
    images, captions = data.images, data.captions
    assert images.columns.tolist() == [
        "image_id",
        "file",
        "split",
        "group",
        "width",
        "height",
    ]
    assert images["image_id"].tolist() == ["b", "d", "c", "a", "e", "f"]
    assert images["width"].tolist() == [9, 11, 10, 8, 12, 13]
    assert set(images["height"]) == {6}
    assert images["group"].tolist() == images["image_id"].tolist()
    assert captions.columns.tolist() == ["caption_id", "image_id", "text", "split"]
    assert captions["image_id"].tolist() == list("bbddccaaee")
    assert captions["text"].tolist()[:2] == ["This is b.", " The  letter b "]
    assert captions["split"].tolist() == ["train"] * 4 + ["val"] * 2 + ["test"] * 4
    for name in ("train", "val", "test", "unused"):
        split = data.split(name)
        of_split, its = images.iloc[split.image_rows], captions.iloc[split.caption_rows]
        assert set(of_split["split"]) == {name} and set(its["split"]) <= {name}
        owners = of_split["image_id"].to_numpy()[split.image_of_caption]
        assert owners.tolist() == its["image_id"].tolist()
        assert split.image_of_caption.dtype == np.int64
    assert data.split("test").image_of_caption.tolist() == [0, 0, 1, 1]
    assert len(data.split("unused").caption_rows) == 0


def test_same_bytes_twice_and_what_git_keeps():
    prepared_mine()
    first, kept = content(OUT), content(CARDS)
    assert sorted(first) == ["captions.parquet", "images.parquet", "regions.parquet"]
    assert sorted(kept) == ["card.json", "queries.npz"]
    assert run() == 0
    assert (content(OUT), content(CARDS)) == (first, kept)
    # What git keeps: the image and the group of each query.
    data, kept = prepared_tables.read("mine"), prepared_tables.read_queries("mine")
    images, captions = (
        of[of["split"] == "test"] for of in (data.images, data.captions)
    )
    ids = images["image_id"].tolist()
    assert kept.pop("i2t").tolist() == list(range(len(ids)))
    assert kept.pop("t2i").tolist() == [
        ids.index(owner) for owner in captions["image_id"]
    ]
    groups = list(dict.fromkeys(images["group"]))
    assert kept.pop("group").tolist() == [
        groups.index(group) for group in images["group"]
    ]
    twice = captions["image_id"][captions.duplicated("image_id", keep=False)]
    assert kept.pop("s2s").tolist() == [ids.index(owner) for owner in twice]
    assert kept.pop("p2r").tolist() == [] and not kept


def good_tables() -> Tables:
    splits = ["train", "val", "test"]
    return Tables(
        images=pd.DataFrame(
            {"image_id": splits, "file": splits, "split": splits, "group": splits}
        ),
        captions=pd.DataFrame(
            {"caption_id": list("123"), "image_id": splits, "text": list("xyz")}
        ),
    )


def test_one_prepare_of_a_dataset_at_a_time():
    place_images_and(rows())
    assert run_fetch() == 0
    with alone(lock_of(str(OUT)), "another"):
        refuses("prepare mine", "no other")
    assert run() == 0


def test_raw_files_must_be_those_of_the_manifest():
    raw = place_images_and(rows())
    refuses("data/manifests/mine.json", "a manifest", "nothing", "rematch fetch mine")
    run_fetch()
    annotations = raw / "captions.jsonl"
    annotations.write_text(annotations.read_text().replace("This is a.", "This is A."))
    checksum = sha256(annotations)
    refuses(annotations, "the manifest", checksum, "rematch fetch mine")
    run_fetch()
    (raw / "a.png").unlink()
    refuses(raw / "a.png", "in the manifest", "nothing")


def read_as(monkeypatch, tables: Tables, size: tuple[int, int] | None) -> None:
    """Make the reader `folder` give these tables, with pictures of this size or with
    none."""

    def open_picture(file: str) -> Image.Image:
        assert size and file
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

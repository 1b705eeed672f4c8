"""The reader of anyone's own folder: three formats, splits by hash, and what is refused."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from datasets import DataError, folder

ROWS = [
    {"image": "a.png", "captions": ["One a.", " Two  a. "], "split": "train"},
    {"image": "sub/b.png", "caption": "A b.", "split": "val", "group": "pair"},
    {"image": "c.png", "caption": 'A c, "quoted".', "split": "test", "id": "see"},
]


def write(raw: Path, name: str, text: str) -> Path:
    (raw / name).write_bytes(text.encode())
    return raw


def jsonl(*rows: dict) -> str:
    return "\n".join(map(json.dumps, rows))


def test_jsonl(tmp_path):
    tables = folder.read(write(tmp_path, "all.jsonl", jsonl(*ROWS) + "\n\n"))
    assert tables.images.to_dict("list") == {
        "image_id": ["a.png", "sub/b.png", "see"],
        "file": ["a.png", "sub/b.png", "c.png"],
        "split": ["train", "val", "test"],
        "group": ["a.png", "pair", "see"],
    }
    assert tables.captions.to_dict("list") == {
        "caption_id": ["a.png#0", "a.png#1", "sub/b.png#0", "see#0"],
        "image_id": ["a.png", "a.png", "sub/b.png", "see"],
        "text": ["One a.", " Two  a. ", "A b.", 'A c, "quoted".'],
    }
    assert tables.notes == ()


def test_csv(tmp_path):
    text = (
        "\ufeffimage,caption,split,group\r\na.png,One a.,train,\r\n./a.png, Two  a. ,train,\r\n"
        'sub/b.png,A b.,val,pair\r\nc.png,"A c, ""quoted"".",test,\r\n'
    )
    tables = folder.read(write(tmp_path, "all.csv", text))
    assert tables.images["file"].tolist() == ["a.png", "sub/b.png", "c.png"]
    assert tables.images["group"].tolist() == ["a.png", "pair", "c.png"]
    assert tables.captions["text"].tolist() == ["One a.", " Two  a. ", "A b.", 'A c, "quoted".']


def test_karpathy(tmp_path):
    images = [
        {"filename": "a.jpg", "filepath": "val2014", "split": "restval"},
        {"filename": "b.jpg", "split": "val"},
        {"filename": "c.jpg", "split": "test"},
    ]
    images = [image | {"sentences": [{"raw": "One."}, {"raw": "Two."}]} for image in images]
    tables = folder.read(write(tmp_path, "all.json", json.dumps({"images": images})))
    assert tables.images["file"].tolist() == ["val2014/a.jpg", "b.jpg", "c.jpg"]
    assert tables.images["split"].tolist() == ["train", "val", "test"]
    assert tables.captions["text"].tolist() == ["One.", "Two."] * 3
    assert tables.notes == ("1 images of the split restval are used for training.",)


def test_lines_of_one_image_are_taken_together(tmp_path):
    lines = [{"image": "a.png", "caption": "Three a."}, *ROWS]
    tables = folder.read(write(tmp_path, "all.jsonl", jsonl(*lines)))
    assert tables.images["file"].tolist() == ["a.png", "sub/b.png", "c.png"]
    assert tables.images["split"].tolist() == ["train", "val", "test"]
    ids = tables.captions["caption_id"].tolist()
    assert ids[:3] == ["a.png#0", "a.png#1", "a.png#2"]


def test_inventory_and_pictures(tmp_path):
    write(tmp_path, "all.jsonl", jsonl(*ROWS, ROWS[0]))
    found = folder.inventory(tmp_path)
    expected = ["all.jsonl", "a.png", "sub/b.png", "c.png"]
    assert [path.relative_to(tmp_path).as_posix() for path in found] == expected
    (tmp_path / "sub").mkdir()
    Image.new("LA", (3, 2)).save(tmp_path / "sub/b.png")
    picture = folder.pictures(tmp_path)("sub/b.png")
    assert (picture.mode, picture.size) == ("RGB", (3, 2))


def test_annotation_file_is_the_only_one_or_named(tmp_path):
    with pytest.raises(DataError, match="expected one annotation file .* found none"):
        folder.read(tmp_path)
    write(tmp_path, "all.jsonl", jsonl(*ROWS))
    write(tmp_path, ".hidden.json", "")
    folder.read(tmp_path)
    write(tmp_path, "some.csv", "image,caption,split\nx.png,X.,train\n")
    with pytest.raises(DataError, match="found all.jsonl, some.csv; name it with the option capt"):
        folder.read(tmp_path)
    assert folder.read(tmp_path, captions="some.csv").images["file"].tolist() == ["x.png"]
    for wrong in ("none.csv", "all.txt"):
        with pytest.raises(DataError, match=f"{wrong}: expected an annotation file"):
            folder.read(tmp_path, captions=wrong)
    with pytest.raises(DataError, match="option captions: '../all.jsonl': expected a path inside"):
        folder.read(tmp_path, captions="../all.jsonl")


GOOD = json.dumps(ROWS[0])
BAD_JSONL = {
    "{": "not JSON",
    "[1]": "expected an object",
    '{"caption": "A."}': "image: expected a string, found None",
    '{"image": "", "caption": "A."}': "image: expected a string, found ''",
    '{"image": 1.5, "caption": "A."}': "image: expected a string, found 1.5",
    '{"image": "x.png"}': "caption: expected either caption or captions",
    '{"image": "x.png", "caption": "A.", "captions": []}': "caption: expected either",
    '{"image": "x.png", "caption": 3}': "caption: expected text, found 3",
    '{"image": "x.png", "captions": "A."}': "captions: expected text, found 'A.'",
    '{"image": "x.png", "captions": ["A.", null]}': "captions: expected text",
    '{"image": "x.png", "caption": " "}': "caption: blank",
    '{"image": "x.png", "caption": "A.", "split": ["val"]}': "split: expected a string",
    '{"image": "a.png", "caption": "A.", "split": "val"}': "split: 'val', but an earlier line says",
    '{"image": "a.png", "caption": "A.", "group": "g"}': None,
    '{"image": "../x.png", "caption": "A."}': "image: '../x.png': expected a path inside",
    '{"image": "/x.png", "caption": "A."}': "image: '/x.png': expected a path inside",
    '{"image": "s/../../x.png", "caption": "A."}': "expected a path inside the folder",
    '{"image": "..\\\\x.png", "caption": "A."}': "expected a path inside the folder",
    '{"image": ".", "caption": "A."}': "expected a path inside the folder",
}


@pytest.mark.parametrize("line", BAD_JSONL)
def test_bad_jsonl(tmp_path, line):
    write(tmp_path, "all.jsonl", "\n".join([GOOD, "", line]))
    if BAD_JSONL[line] is None:  # said for the first time: no contradiction
        assert folder.read(tmp_path).images["group"].tolist() == ["g"]
        return
    with pytest.raises(DataError, match=f"^all.jsonl:3: .*{re.escape(BAD_JSONL[line])}"):
        folder.read(tmp_path)


BAD_CSV = {
    "picture,caption\na,b\n": "all.csv:1: image: expected this column",
    "": "all.csv:1: image: expected this column",
    "image,text\na,b\n": "all.csv:1: caption: expected this column",
    "image,caption\na.png,A.\nb.png\n": "all.csv:3: expected as many cells as columns",
    "image,caption\na.png,A, or b.\n": "all.csv:2: expected as many cells as columns",
    "image,caption\na.png,\n": "all.csv:2: caption: blank",
    "image,caption\n../a.png,A.\n": "all.csv:2: image: '../a.png': expected a path inside",
    "image,caption\n,A.\n": "all.csv:2: image: '': expected a path inside",
    'image,caption\na.png,"A.\n': "not CSV",
    "image,caption\n": "all.csv: no images",
}


@pytest.mark.parametrize("text", BAD_CSV)
def test_bad_csv(tmp_path, text):
    write(tmp_path, "all.csv", text)
    with pytest.raises(DataError, match=re.escape(BAD_CSV[text])):
        folder.read(tmp_path)


def test_path_outside_in_karpathy(tmp_path):
    image = {"filename": "a.jpg", "filepath": "../..", "split": "val", "sentences": []}
    write(tmp_path, "all.json", json.dumps({"images": [image]}))
    with pytest.raises(DataError, match=re.escape("all.json: images[0]: filename: '../../a.jpg'")):
        folder.inventory(tmp_path)


def test_annotations_that_are_not_utf8(tmp_path):
    (tmp_path / "all.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="all.jsonl: not UTF-8"):
        folder.read(tmp_path)


def test_some_splits_missing(tmp_path):
    write(tmp_path, "all.jsonl", jsonl(*ROWS, {"image": "x.png", "caption": "X."}))
    with pytest.raises(DataError, match="all.jsonl: split: x.png has none, others have"):
        folder.read(tmp_path)


def by_hash(count: int, prefix: str = "") -> dict[str, str]:
    files = [f"{prefix}{number}.png" for number in range(count)]
    return dict(zip(files, folder.split_by_hash(files)[0], strict=True))


def test_split_by_hash_is_80_10_10():
    counts = Counter(by_hash(5000).values())
    assert [counts[split] for split in ("train", "val", "test")] == pytest.approx(
        [4000, 500, 500], abs=80
    )


def test_split_by_hash_does_not_change_when_images_are_added():
    few, many = by_hash(300), by_hash(900)
    assert few == {file: many[file] for file in few}
    assert by_hash(3000)["0.png"] == few["0.png"]


def test_split_by_hash_is_the_same_everywhere():
    """By hand: `printf 5.png | sha256sum` starts with ed93, and 0xed93 / 0x10000 is 0.928."""
    found = by_hash(12)
    assert [file for file in found if found[file] == "test"] == ["5.png"]
    assert [file for file in found if found[file] == "val"] == ["9.png"]  # d387: 0.826


@pytest.mark.parametrize("count", range(3, 30))
def test_split_by_hash_leaves_no_split_empty(count):
    for prefix in "abcde":
        assert set(by_hash(count, prefix).values()) == {"train", "val", "test"}


def test_split_by_hash_keeps_groups_together():
    groups = [f"person {number % 40}" for number in range(400)]
    splits, _ = folder.split_by_hash(groups)
    assert len(set(zip(groups, splits, strict=True))) == 40


def test_split_by_hash_is_told(tmp_path):
    rows = [{"image": f"{number}.png", "caption": "A."} for number in range(3)]
    tables = folder.read(write(tmp_path, "all.jsonl", jsonl(*rows)))
    assert "80/10/10" in tables.notes[0] and "sha256" in tables.notes[0]
    assert "moved to a neighbouring split" in tables.notes[1]
    assert sorted(tables.images["split"]) == ["test", "train", "val"]


def test_too_few_to_split(tmp_path):
    rows = [{"image": f"{number}.png", "caption": "A."} for number in range(2)]
    write(tmp_path, "all.jsonl", jsonl(*rows))
    with pytest.raises(DataError, match="all.jsonl: expected 3 images or groups to split"):
        folder.read(tmp_path)

"""The reader of anyone's own folder: three formats, splits by hash, and what is
refused."""

import json
from collections import Counter
from pathlib import Path

import pytest
from refusals import refused

from benchmark.contracts.datasets import folder
from benchmark.contracts.datasets.folder import Options

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


def test_csv(tmp_path):
    text = (
        "\ufeffimage,caption,split,group\r\na.png,One a.,train,\r\n./a.png, Two  a. ,train,\r\n"
        'sub/b.png,A b.,val,pair\r\nc.png,"A c, ""quoted"".",test,\r\n'
    )
    tables = folder.read(write(tmp_path, "all.csv", text))
    assert tables.images["file"].tolist() == ["a.png", "sub/b.png", "c.png"]
    assert tables.images["group"].tolist() == ["a.png", "pair", "c.png"]
    assert tables.captions["text"].tolist() == [
        "One a.",
        " Two  a. ",
        "A b.",
        'A c, "quoted".',
    ]


def test_karpathy(tmp_path):
    images = [
        {"filename": "a.jpg", "filepath": "val2014", "split": "restval"},
        {"filename": "b.jpg", "split": "val"},
        {"filename": "c.jpg", "split": "test"},
    ]
    images = [
        image | {"sentences": [{"raw": "One."}, {"raw": "Two."}]} for image in images
    ]
    tables = folder.read(write(tmp_path, "all.json", json.dumps({"images": images})))
    assert tables.images["file"].tolist() == ["val2014/a.jpg", "b.jpg", "c.jpg"]
    assert tables.images["split"].tolist() == ["train", "val", "test"]
    assert tables.captions["text"].tolist() == ["One.", "Two."] * 3
    assert tables.notes == ("1 images of the split restval are used for training.",)


GOOD = json.dumps(ROWS[0])
BAD_JSONL = {  # line -> where (after the number), expected, found
    "{": ("", "JSON", "something else"),
    "[1]": ("", "an object", "'[1]'"),
    '{"caption": "A."}': (": image", "a string", "None"),
    '{"image": "x.png"}': (": caption", "caption or captions", "neither"),
    '{"image": "x.png", "caption": "A.", "captions": []}': (
        ": caption",
        "either caption",
        "both",
    ),
    '{"image": "x.png", "caption": 3}': (": caption", "text", "3"),
    '{"image": "x.png", "captions": 3}': (": captions", "text", "3"),
    '{"image": "x.png", "caption": " "}': (": caption", "a sentence", "a blank"),
    '{"image": "x.png", "caption": "A.", "split": ["val"]}': (
        ": split",
        "a string",
        "['val']",
    ),
    '{"image": "a.png", "caption": "A.", "split": "val"}': (
        *(": split", "'train' as in an earlier line with a.png", "'val'"),
    ),
}


@pytest.mark.parametrize("line", BAD_JSONL)
def test_bad_jsonl(tmp_path, line):
    write(tmp_path, "all.jsonl", "\n".join([GOOD, "", line]))
    where, expected, found = BAD_JSONL[line]
    with refused(expected=expected, found=found) as caught:
        folder.read(tmp_path)
    assert caught.value.where == f"all.jsonl:3{where}"


def by_hash(count: int, prefix: str = "") -> dict[str, str]:
    files = [f"{prefix}{number}.png" for number in range(count)]
    return dict(zip(files, folder.split_by_hash(files)[0], strict=True))


def test_split_by_hash_is_80_10_10():
    counts = Counter(by_hash(5000).values())
    assert [counts[split] for split in ("train", "val", "test")] == pytest.approx(
        [4000, 500, 500], abs=80
    )


@pytest.mark.parametrize("count", range(3, 30))
def test_split_by_hash_leaves_no_split_empty(count):
    for prefix in "abcde":
        assert set(by_hash(count, prefix).values()) == {"train", "val", "test"}


def test_a_number_of_images_for_val_and_test(tmp_path):
    rows = [
        {"image": f"{n}.png", "caption": "x", "group": f"g{n // 2}"} for n in range(20)
    ]
    write(tmp_path, "all.jsonl", jsonl(*rows))
    images = folder.read(tmp_path, Options(val=2, test=3)).images
    assert Counter(images["split"]) == {"train": 10, "val": 4, "test": 6}
    assert images.groupby("group")["split"].nunique().max() == 1
    fewer = folder.read(tmp_path, Options(val=1, test=2)).images
    assert set(fewer.loc[fewer["split"] == "test", "group"]) < set(
        images.loc[images["split"] == "test", "group"]
    )
    with refused("val and test", "more than 7 + 3", "10"):
        folder.read(tmp_path, Options(val=7, test=3))
    for options in ({"test": 1}, {"test": 0, "val": 1}, {"val": "2", "test": 1}):
        with refused("folder: option"):
            Options(**options)
    write(tmp_path, "all.jsonl", jsonl(*ROWS))
    with refused("option test", found="splits"):
        folder.read(tmp_path, Options(val=1, test=1))

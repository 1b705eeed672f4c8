"""The reader of anyone's own folder: three formats, splits by hash, and what is refused."""

import json
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image
from refusals import refused

from datasets import folder
from datasets.folder import Options

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
    paths = folder.inventory(tmp_path)
    expected = ["all.jsonl", "a.png", "sub/b.png", "c.png"]
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == expected
    (tmp_path / "sub").mkdir()
    Image.new("LA", (3, 2)).save(tmp_path / "sub/b.png")
    picture = folder.pictures(tmp_path)("sub/b.png")
    assert (picture.mode, picture.size) == ("RGB", (3, 2))


def test_annotation_file_is_the_only_one_or_named(tmp_path):
    with refused(tmp_path, "one annotation file", "none"):
        folder.read(tmp_path)
    write(tmp_path, "all.jsonl", jsonl(*ROWS))
    write(tmp_path, ".hidden.json", "")
    folder.read(tmp_path)
    write(tmp_path, "some.csv", "image,caption,split\nx.png,X.,train\n")
    with refused(tmp_path, "one annotation file", "all.jsonl, some.csv", "the option captions"):
        folder.read(tmp_path)
    assert folder.read(tmp_path, Options(captions="some.csv")).images["file"].tolist() == ["x.png"]
    for wrong in ("none.csv", "all.txt"):
        with refused(tmp_path / wrong, "an annotation file", "nothing", "the option captions"):
            folder.read(tmp_path, Options(captions=wrong))
    (tmp_path / "notes.txt").touch()
    with refused(tmp_path / "notes.txt", "an annotation file", "a .txt file"):
        folder.read(tmp_path, Options(captions="notes.txt"))
    with refused("option captions", "a path inside the folder", "'../all.jsonl'"):
        folder.read(tmp_path, Options(captions="../all.jsonl"))


GOOD = json.dumps(ROWS[0])
BAD_JSONL = {  # line -> where (after the number), expected, found
    "{": ("", "JSON", "something else"),
    "[1]": ("", "an object", "'[1]'"),
    '{"caption": "A."}': (": image", "a string", "None"),
    '{"image": "", "caption": "A."}': (": image", "a string", "''"),
    '{"image": 1.5, "caption": "A."}': (": image", "a string", "1.5"),
    '{"image": "x.png"}': (": caption", "either caption or captions", "neither"),
    '{"image": "x.png", "caption": "A.", "captions": []}': (": caption", "either caption", "both"),
    '{"image": "x.png", "caption": 3}': (": caption", "text", "3"),
    '{"image": "x.png", "captions": "A."}': (": captions", "text", "'A.'"),
    '{"image": "x.png", "captions": ["A.", null]}': (": captions", "text", "['A.', None]"),
    '{"image": "x.png", "caption": " "}': (": caption", "a sentence", "a blank"),
    '{"image": "x.png", "caption": "A.", "split": ["val"]}': (": split", "a string", "['val']"),
    '{"image": "a.png", "caption": "A.", "split": "val"}': (
        *(": split", "'train' as in an earlier line with a.png", "'val'"),
    ),
    '{"image": "../x.png", "caption": "A."}': (": image", "a path inside", "'../x.png'"),
    '{"image": "/x.png", "caption": "A."}': (": image", "a path inside", "'/x.png'"),
    '{"image": "s/../../x.png", "caption": "A."}': (": image", "a path inside", "'s/../../x.png'"),
    '{"image": "..\\\\x.png", "caption": "A."}': (": image", "a path inside the folder", ""),
    '{"image": ".", "caption": "A."}': (": image", "a path inside the folder", "'.'"),
}


@pytest.mark.parametrize("line", BAD_JSONL)
def test_bad_jsonl(tmp_path, line):
    write(tmp_path, "all.jsonl", "\n".join([GOOD, "", line]))
    where, expected, found = BAD_JSONL[line]
    with refused(expected=expected, found=found) as caught:
        folder.read(tmp_path)
    assert caught.value.where == f"all.jsonl:3{where}"


def test_a_group_that_an_earlier_line_does_not_name_is_no_contradiction(tmp_path):
    write(tmp_path, "all.jsonl", f'{GOOD}\n{{"image": "a.png", "caption": "A.", "group": "g"}}')
    assert folder.read(tmp_path).images["group"].tolist() == ["g"]


BAD_CSV = {  # text -> where, expected, found
    "picture,caption\na,b\n": ("all.csv:1", "a column image", "['picture', 'caption']"),
    "": ("all.csv:1", "a column image", "None"),
    "image,words\na,b\n": ("all.csv:1", "a column caption", "['image', 'words']"),
    "image,caption\na.png,A.\nb.png\n": ("all.csv:3", "as many entries as columns", "fewer"),
    "image,caption\na.png,A, or b.\n": ("all.csv:2", "as many entries as columns", "more"),
    "image,caption\na.png,\n": ("all.csv:2: caption", "a sentence", "a blank"),
    "image,caption\n../a.png,A.\n": ("all.csv:2: image", "a path inside", "'../a.png'"),
    "image,caption\n,A.\n": ("all.csv:2: image", "a path inside", "''"),
    'image,caption\na.png,"A.\n': ("all.csv", "CSV", "something else"),
    "image,caption\n": ("all.csv", "at least one image", "none"),
}


@pytest.mark.parametrize("text", BAD_CSV)
def test_bad_csv(tmp_path, text):
    write(tmp_path, "all.csv", text)
    with refused(*BAD_CSV[text]):
        folder.read(tmp_path)


def test_path_outside_in_karpathy(tmp_path):
    image = {"filename": "a.jpg", "filepath": "../..", "split": "val", "sentences": []}
    write(tmp_path, "all.json", json.dumps({"images": [image]}))
    with refused("all.json: images[0]: filename", "a path inside the folder", "'../../a.jpg'"):
        folder.inventory(tmp_path)


def test_annotations_that_are_not_utf8(tmp_path):
    (tmp_path / "all.jsonl").write_bytes(b"\xff\xfe")
    with refused("all.jsonl", "UTF-8", "something else"):
        folder.read(tmp_path)


def test_some_splits_missing(tmp_path):
    write(tmp_path, "all.jsonl", jsonl(*ROWS, {"image": "x.png", "caption": "X."}))
    with refused("all.jsonl: split", "one for all images or for none", "none for x.png"):
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
    split_of = by_hash(12)
    assert [file for file in split_of if split_of[file] == "test"] == ["5.png"]
    assert [file for file in split_of if split_of[file] == "val"] == ["9.png"]  # d387: 0.826


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
    with refused("all.jsonl", "3 images or groups to split", 2):
        folder.read(tmp_path)


def coco(**changes: object) -> str:
    data = {
        "images": [{"id": 7, "file_name": "a.png"}, {"id": 3, "file_name": "b.png"}],
        "annotations": [
            {"image_id": 3, "caption": "A b."},
            {"image_id": 7, "caption": "An a."},
            {"image_id": 3, "caption": "Again b."},
        ],
    }
    return json.dumps(data | changes)


def test_captions_of_coco(tmp_path):
    (entries) = list(folder._entries(write(tmp_path, "captions.json", coco()) / "captions.json"))
    assert [(entry.file, entry.captions) for entry in entries] == [
        ("a.png", ["An a."]),
        ("b.png", ["A b.", "Again b."]),
    ]


@pytest.mark.parametrize(
    ("changes", "where", "found"),
    [
        ({"annotations": [{"image_id": 9, "caption": "x"}]}, "annotations[0]: image_id", "9"),
        ({"annotations": {}}, "annotations", "{}"),
        ({"images": [{"id": 1, "file_name": "a"}] * 2}, "images[1]: id", "1"),
        ({"images": [{"id": 1}]}, "images[0]: file_name", "None"),
        ({"images": [{"id": 1, "file_name": "../a"}], "annotations": []}, "file_name", "../a"),
    ],
)
def test_captions_of_coco_that_do_not_fit_are_refused(tmp_path, changes, where, found):
    with refused(where, found=found):
        folder.read(write(tmp_path, "captions.json", coco(**changes)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metadata.csv", "file_name,text,split\na.png,One.,train\nb.png,Two.,val\nc.png,3.,test\n"),
        (
            "metadata.jsonl",
            jsonl(
                {"file_name": "a.png", "text": "One.", "split": "train"},
                {"file_name": "b.png", "text": "Two.", "split": "val"},
                {"file_name": "c.png", "text": "3.", "split": "test"},
            ),
        ),
    ],
)
def test_metadata_of_hugging_face(tmp_path, name, text):
    tables = folder.read(write(tmp_path, name, text))
    assert tables.images["file"].tolist() == ["a.png", "b.png", "c.png"]
    assert tables.captions["text"].tolist() == ["One.", "Two.", "3."]


def test_a_number_of_images_for_val_and_test(tmp_path):
    rows = [{"image": f"{n}.png", "caption": "x", "group": f"g{n // 2}"} for n in range(20)]
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
    for options in ({"val": 1}, {"test": 0, "val": 1}, {"val": "2", "test": 1}):
        with refused("folder: option"):
            Options(**options)
    write(tmp_path, "all.jsonl", jsonl(*ROWS))
    with refused("option test", found="splits in the annotations"):
        folder.read(tmp_path, Options(val=1, test=1))

"""Annotation files as they should be, and lines that are refused."""

import json
from pathlib import Path

import pytest
from layouts import in_one_note
from refusals import refused

from benchmark.contracts.datasets import folder
from benchmark.readers.annotation_files import decoded


def write(raw: Path, name: str, text: str) -> Path:
    (raw / name).write_bytes(text.encode())
    return raw


def test_the_own_id_of_a_caption_goes_before_one_in_a_list(tmp_path):
    rows = [
        {"image": f"{n}.jpg", "sentids": [n + 7], "captions": [{"raw": "A.", "id": n}]}
        for n in range(3)
    ]
    raw = write(tmp_path, "c.json", json.dumps(rows))
    assert folder.read_for_score(raw).captions.index.tolist() == ["0", "1", "2"]


def test_csv_may_have_a_byte_order_mark_spaces_and_quotes(tmp_path):
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


def test_karpathys_json_gives_folders_splits_and_captions(tmp_path):
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
    assert len(tables.notes) == 1 and in_one_note(
        tables, "1 images", "restval", "training"
    )


def test_only_the_name_of_one_caption_ends_in_its_number(tmp_path):
    rows = [{"image": f"{stem}.jpg#0", "captions": ["A.", "B."]} for stem in "abc"]
    tables = folder.read_for_score(write(tmp_path, "c.json", json.dumps(rows)))
    assert tables.images["file"].tolist() == ["a.jpg#0", "b.jpg#0", "c.jpg#0"]
    assert tables.captions["text"].tolist() == ["A.", "B."] * 3


GOOD = json.dumps({"image": "a.png", "captions": ["One."], "split": "train"})
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
def test_a_malformed_line_of_jsonl_is_refused_by_its_number(tmp_path, line):
    write(tmp_path, "all.jsonl", "\n".join([GOOD, "", line]))
    where, expected, found = BAD_JSONL[line]
    with refused(expected=expected, found=found) as caught:
        folder.read(tmp_path)
    assert caught.value.where == f"all.jsonl:3{where}"


BAD_LISTS = {  # texts that look like lists or objects
    "a list as a key": "['A dog', {[]: 1}]",
    "an object in a set": "{'raw': {{}}}",
    "a key that occurs twice": '{"raw": "A dog.", "raw": "A cat."}',
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_a_text_that_is_no_list_of_captions_is_refused(tmp_path, name):
    row = {"image": "a.png", "caption": BAD_LISTS[name]}
    write(tmp_path, "all.jsonl", json.dumps(row))
    with refused("all.jsonl:1: caption", "a list of sentences"):
        folder.read(tmp_path)


@pytest.mark.parametrize("form", ["utf-16-le", "utf-16-be", "utf-8"])
def test_a_byte_order_mark_tells_the_form_of_a_text(form):
    assert decoded("\ufeffgrößer".encode(form)) == "größer"


def test_a_text_of_many_blanks_takes_no_time(tmp_path):
    row = {"image": "a.png", "caption": "('a'" + " " * 300_000 + "x"}
    write(tmp_path, "all.jsonl", json.dumps(row))
    with refused("all.jsonl:1: caption", "at most 10000 characters"):
        folder.read(tmp_path)


def test_a_folder_that_is_no_text_is_not_read(tmp_path):
    sentences = [{"raw": "One."}]
    images = [
        {"filename": f"{name}.jpg", "filepath": ["x"], "sentences": sentences}
        for name in "abc"
    ]
    tables = folder.read(write(tmp_path, "all.json", json.dumps({"images": images})))
    assert tables.images["file"].tolist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert in_one_note(tables, "not used", "filepath")


def test_an_object_of_splits_is_none_of_images(tmp_path):
    rows = {"train": [{"caption": "A."}], "test": [{"caption": "B."}]}
    with refused(found="the keys train, test", do="one list"):
        folder.read(write(tmp_path, "c.json", json.dumps(rows)))


def test_a_list_of_nothing_is_no_caption(tmp_path):
    raw = write(tmp_path, "c.csv", "image,captions\na.png,[]\nb.png,\"['B.']\"\n")
    assert folder.read_for_score(raw).captions["text"].tolist() == ["B."]


def test_ids_of_another_number_of_captions_name_none(tmp_path):
    rows = [{"image": "a.jpg", "sentids": [1, 2, 3], "captions": ["A.", "B."]}]
    tables = folder.read_for_score(write(tmp_path, "c.json", json.dumps(rows)))
    assert tables.captions["text"].tolist() == ["A.", "B."]
    assert in_one_note(tables, "c.json", "sentids")

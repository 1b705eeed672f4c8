"""Karpathy's JSON: images with their splits, ids and captions, and unread keys."""

import json
from pathlib import Path

import pytest
from refusals import refused

from benchmark.readers import karpathy

SENTENCE = {"raw": "A dog.", "sentid": 7, "tokens": ["a", "dog"], "mood": "happy"}
IMAGE = {"filename": "1.jpg", "split": "train", "sentences": [SENTENCE], "imgid": 3}
OTHER = IMAGE | {
    "filename": "2.jpg",
    "filepath": "val",
    "split": "test",
    "sentences": [],
}


def write(folder: Path, *images: dict) -> Path:
    path = folder / "dataset.json"
    path.write_text(json.dumps({"images": images, "dataset": "pets", "year": 2015}))
    return path


def test_images_come_in_order_with_their_ids(tmp_path):
    read = karpathy.read(write(tmp_path, IMAGE, OTHER), "dataset.json")
    first, second = read.entries
    assert (first.file, first.split, first.captions) == ("1.jpg", "train", ["A dog."])
    assert (first.number, first.sentids, first.cocoid) == (3, (7,), None)
    assert (second.file, second.captions) == ("val/2.jpg", [])
    assert read.unread == [("year",), ("sentences", "mood")]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"filename": "../1.jpg"}, "images[0]: filename"),
        ({"split": "dev"}, "images[0]: split"),
        ({"sentences": [{"raw": " "}]}, "images[0].sentences[0]: raw"),
        ({"sentences": 1}, "images.0.sentences"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(tmp_path, change, where):
    path = write(tmp_path, IMAGE | change)
    with refused(where, do=karpathy.UNCHANGED if "[" in where else ""):
        karpathy.read(path, "dataset.json", ("train", "test"))


def test_ids_are_numbers_that_a_table_holds(tmp_path):
    sentences = [{"raw": "A dog.", "sentid": 10**30}]
    path = write(tmp_path, IMAGE | {"sentences": sentences})
    with refused("sentid", "less than", "1000"):
        karpathy.read(path, "dataset.json", ("train", "test"))


def test_a_file_twice_and_no_images_are_refused(tmp_path):
    with refused("images[1]: filename", found="'1.jpg'"):
        karpathy.read(write(tmp_path, IMAGE, IMAGE), "dataset.json")
    with refused("images", found="none"):
        karpathy.read(write(tmp_path), "dataset.json")


def test_the_loose_file_goes_before_archives(tmp_path):
    assert karpathy.find(tmp_path, "dataset.json") is None
    with refused(tmp_path, "dataset.json", do="get it"):
        karpathy.needed(tmp_path, "dataset.json", "get it")
    (tmp_path / karpathy.ALL).touch()
    assert karpathy.find(tmp_path, "dataset.json").name == karpathy.ALL
    path = write(tmp_path)
    assert karpathy.needed(tmp_path, "dataset.json", "") == path

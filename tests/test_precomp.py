"""Folders of features and captions in SCAN's layout: what is read of them, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from layouts import replace_line, sentences, write_precomp
from refusals import refused

from datasets.shared import precomp

FLICKR = {"train": ["17", "4", "30"], "dev": ["99", "5"], "test": ["0", "71"]}
COCO = FLICKR | {"testall": ["0", "71", "8"]}


@pytest.fixture
def folder(tmp_path) -> Path:
    write_precomp(tmp_path / "f30k_precomp", FLICKR)
    return tmp_path / "f30k_precomp"


def test_parts_keep_the_order_of_the_files(folder):
    parts = precomp.layout(folder)
    assert [part.split for part in parts] == ["train", "val", "test"]
    assert [part.ids for part in parts] == list(FLICKR.values())
    assert [part.ims.name for part in parts] == ["train_ims.npy", "dev_ims.npy", "test_ims.npy"]
    assert parts[0].captions[5:10] == sentences("4")
    assert [part.rows_per_image for part in parts] == [1, 1, 1]


@pytest.mark.parametrize("per_line", [1, 5])
@pytest.mark.parametrize("per_row", [1, 5])
def test_rows_and_ids_may_be_one_per_caption(tmp_path, per_row, per_line):
    write_precomp(tmp_path, FLICKR, per_row=per_row, per_line=per_line)
    parts = precomp.layout(tmp_path)
    assert [part.ids for part in parts] == list(FLICKR.values())
    assert [part.rows_per_image for part in parts] == [per_row] * 3


def test_pooled_features_are_fine(folder):
    np.save(folder / "dev_ims.npy", np.ones((2, 7), np.float32))
    assert precomp.layout(folder)[1].ids == ["99", "5"]


def test_all_test_images_are_used_where_there_are_more_than_the_first_thousand(tmp_path):
    write_precomp(tmp_path, COCO)
    test = precomp.layout(tmp_path)[2]
    assert (test.split, test.ids, test.ims.name) == ("test", COCO["testall"], "testall_ims.npy")
    names = [path.name for path in precomp.files(tmp_path)]
    assert len(names) == 9 and "testall_caps.txt" in names and "test_caps.txt" not in names


def test_some_of_the_files_of_all_test_images_do_not_fall_back_to_the_first_thousand(tmp_path):
    write_precomp(tmp_path, COCO)
    (tmp_path / "testall_caps.txt").unlink()
    with refused("testall_caps.txt", found="nothing"):
        precomp.layout(tmp_path)


def test_tables(folder):
    tables = precomp.tables(precomp.layout(folder), {"4": "four.jpg"}, ["So."])
    assert tables.images.to_dict("list") == {
        "image_id": ["17", "4", "30", "99", "5", "0", "71"],
        "file": ["", "four.jpg", "", "", "", "", ""],
        "split": ["train"] * 3 + ["val"] * 2 + ["test"] * 2,
        "group": ["17", "4", "30", "99", "5", "0", "71"],
    }
    assert len(tables.captions) == 35
    assert tables.captions.iloc[33].tolist() == ["71#3", "71", sentences("71")[3]]
    assert tables.notes == ("So.", "6 of 7 images have features but no picture.")


@pytest.mark.parametrize("name", [f"{s}_{e}" for s in FLICKR for e in precomp.ENDS])
def test_missing_file(folder, name):
    (folder / name).unlink()
    with refused(folder / name, found="nothing"):
        precomp.layout(folder)


NEW = "a number that no line before has"
MALFORMED = {  # file, line and its replacement -> where, expected, found
    ("dev_caps.txt", 7, ""): ("dev_caps.txt:7", "a caption without tabs", "''"),
    ("dev_caps.txt", 7, "  "): ("dev_caps.txt:7", "a caption without tabs", "'  '"),
    ("train_caps.txt", 2, "a\tb"): ("train_caps.txt:2", "a caption", r"'a\tb'"),
    ("dev_caps.txt", 7): ("dev_caps.txt", "5 lines per image", "9 lines"),
    ("dev_ids.txt", 2): ("dev_ids.txt: lines", "2 (one per image) or 10 (one per caption)", "1"),
    ("dev_ids.txt", 2, "5", "6"): ("dev_ids.txt: lines", "2 (one per image)", "3"),
    ("dev_ids.txt", 2, "99"): ("dev_ids.txt:2", NEW, "'99'"),
    ("dev_ids.txt", 2, ""): ("dev_ids.txt:2", NEW, "''"),
    ("dev_ids.txt", 2, "a.jpg"): ("dev_ids.txt:2", NEW, "'a.jpg'"),
    ("dev_ids.txt", 2, "4"): ("f30k_precomp: id '4'", "one split per image", "train and val"),
}


@pytest.mark.parametrize("change", MALFORMED)
def test_malformed_text(folder, change):
    name, *line = change
    replace_line(folder / name, *line)
    with refused(*MALFORMED[change]):
        precomp.layout(folder)


def test_ids_of_captions_in_the_wrong_order(tmp_path):
    write_precomp(tmp_path / "f30k_precomp", FLICKR, per_line=5)
    replace_line(tmp_path / "f30k_precomp/train_ids.txt", 7, "30")
    with refused("f30k_precomp/train_ids.txt:7", "'4'", "'30'"):
        precomp.layout(tmp_path / "f30k_precomp")


def test_empty_captions(folder):
    (folder / "dev_caps.txt").write_text("")
    with refused("dev_caps.txt", "5 lines per image", "0 lines"):
        precomp.layout(folder)


def test_captions_that_are_not_utf8(folder):
    (folder / "dev_caps.txt").write_bytes(b"\xff\xfe\n" * 10)
    with refused("dev_caps.txt", "UTF-8 text", "damage"):
        precomp.layout(folder)


@pytest.mark.parametrize("kept", [0, 5, 60, -1])
def test_cut_features(folder, kept):
    path = folder / "train_ims.npy"
    path.write_bytes(path.read_bytes()[:kept])
    with refused("f30k_precomp/train_ims.npy", "a whole NumPy array", "damage"):
        precomp.layout(folder)


@pytest.mark.parametrize("rows", [1, 3, 9, 20])
def test_features_of_another_number_of_images(folder, rows):
    np.save(folder / "dev_ims.npy", np.ones((rows, 3, 2), np.float32))
    with refused("dev_ims.npy: rows", "2 (one per image) or 10 (one per caption)", rows):
        precomp.layout(folder)


def test_features_that_differ_between_the_captions_of_an_image(tmp_path):
    write_precomp(tmp_path, FLICKR, per_row=5)
    features = np.load(tmp_path / "train_ims.npy")
    features[12] += 1  # of the third image
    np.save(tmp_path / "train_ims.npy", features)
    with refused("train_ims.npy: row 10", "5 equal rows per image", "different rows"):
        precomp.layout(tmp_path)


@pytest.mark.parametrize(
    "wrong", [np.ones(2, np.float32), np.ones((2, 3), np.int64), np.array([["a"], ["b"]])]
)
def test_what_is_no_features(folder, wrong):
    np.save(folder / "dev_ims.npy", wrong)
    with refused("dev_ims.npy", "floating-point features", str(wrong.dtype)):
        precomp.layout(folder)


def test_pickled_features_are_never_loaded(folder):
    np.save(folder / "dev_ims.npy", np.array([[{}], [{}]]), allow_pickle=True)
    with refused("dev_ims.npy", "a whole NumPy array", "damage"):
        precomp.layout(folder)

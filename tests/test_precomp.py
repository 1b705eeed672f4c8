"""Folders of features and captions in SCAN's layout: what is read of them, and what is
refused."""

from pathlib import Path

import numpy as np
import pytest
from layouts import five_captions, replace_line, write_precomp
from refusals import refused

from benchmark.readers import precomp

FLICKR = {"train": ["17", "4", "30"], "dev": ["99", "5"], "test": ["0", "71"]}
COCO = FLICKR | {"testall": ["0", "71", "8"]}


@pytest.fixture
def folder(tmp_path) -> Path:
    write_precomp(tmp_path / "f30k_precomp", FLICKR)
    return tmp_path / "f30k_precomp"


def test_all_test_images_are_used_where_there_are_more_than_the_first_thousand(
    tmp_path,
):
    write_precomp(tmp_path, COCO)
    test = precomp.layout(tmp_path)[2]
    assert (test.split, test.ids, test.ims.name) == (
        "test",
        COCO["testall"],
        "testall_ims.npy",
    )
    names = [path.name for path in precomp.files(tmp_path)]
    assert (
        len(names) == 9 and "testall_caps.txt" in names and "test_caps.txt" not in names
    )


def test_a_missing_file_of_all_test_images_is_refused(tmp_path):
    write_precomp(tmp_path, COCO)
    (tmp_path / "testall_ims.npy").unlink()
    with refused("testall_ims.npy"):
        precomp.layout(tmp_path)


def test_tables_have_the_ids_and_splits_of_the_files(folder):
    tables = precomp.tables(precomp.layout(folder), {"4": "four.jpg"}, ["So."])
    assert tables.images.to_dict("list") == {
        "image_id": ["17", "4", "30", "99", "5", "0", "71"],
        "file": ["", "four.jpg", "", "", "", "", ""],
        "split": ["train"] * 3 + ["val"] * 2 + ["test"] * 2,
        "group": ["17", "4", "30", "99", "5", "0", "71"],
    }
    assert len(tables.captions) == 35
    assert tables.captions.iloc[33].tolist() == ["71#3", "71", five_captions("71")[3]]
    assert tables.notes == ("So.", "6 of 7 images have features but no picture.")


NEW = "a number"
MALFORMED = {  # file, line and its replacement -> where, expected, found
    ("dev_caps.txt", 7, ""): ("dev_caps.txt:7", "without tabs", "''"),
    ("dev_caps.txt", 7, "  "): ("dev_caps.txt:7", "without tabs", "'  '"),
    ("train_caps.txt", 2, "a\tb"): ("train_caps.txt:2", "a caption", r"'a\tb'"),
    ("dev_caps.txt", 7): ("dev_caps.txt", "5 lines per image", "9 lines"),
    ("dev_ids.txt", 2): (
        "dev_ids.txt: lines",
        "2 (one per image) or 10 (one per caption)",
        "1",
    ),
    ("dev_ids.txt", 2, "5", "6"): ("dev_ids.txt: lines", "2 (one per image)", "3"),
    ("dev_ids.txt", 2, "99"): ("dev_ids.txt:2", NEW, "'99'"),
    ("dev_ids.txt", 2, ""): ("dev_ids.txt:2", NEW, "''"),
    ("dev_ids.txt", 2, "a.jpg"): ("dev_ids.txt:2", NEW, "'a.jpg'"),
    ("dev_ids.txt", 2, "4"): (
        "f30k_precomp: id '4'",
        "one split",
        "train and val",
    ),
}


@pytest.mark.parametrize("change", MALFORMED)
def test_malformed_text_is_refused(folder, change):
    name, *line = change
    replace_line(folder / name, *line)
    with refused(*MALFORMED[change]):
        precomp.layout(folder)


@pytest.mark.parametrize("kept", [0, 5, 60, -1])
def test_cut_or_pickled_features_are_never_loaded(folder, kept):
    path = folder / "train_ims.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    with refused("f30k_precomp/train_ims.npy", "a whole NumPy array", "something else"):
        precomp.layout(folder)
    path.write_bytes(whole)
    np.save(folder / "dev_ims.npy", np.array([[{}], [{}]]), allow_pickle=True)
    with refused("dev_ims.npy", "a whole NumPy array", "something else"):
        precomp.layout(folder)


def test_an_id_is_the_same_for_all_captions_of_its_image(folder):
    ids = ["99"] * 5 + ["5"] * 3 + ["99"] + ["5"]
    (folder / "dev_ids.txt").write_text("\n".join([*ids, ""]))
    with refused("dev_ids.txt:9", "'5'", "'99'"):
        precomp.layout(folder)

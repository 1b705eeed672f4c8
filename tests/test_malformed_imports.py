"""Features that cannot be imported are refused in one line, and an older folder stays as it was."""

import base64
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from feature_files import (
    FOLDER,
    IMAGES,
    RAW,
    USED,
    first_of,
    images_of,
    load,
    mat_with_ids,
    mat_with_json,
    npy_pooled,
    npy_regions,
    of_split,
    scan_folder,
    shuffled,
    truth,
    tsv_file,
    tsv_folder,
    tsv_row,
    vsepp_folder,
    write_json_of,
    write_tsv,
)

from benchmark.core.errors import UserError
from datasets import DataError


@pytest.fixture(autouse=True)
def raw_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    RAW.mkdir(parents=True)


class Trap:
    """Unpickling it leaves a file behind."""

    def __reduce__(self):
        return Path.touch, (Path("sprung").absolute(),)


def cut(path: Path, count: int) -> None:
    path.write_bytes(path.read_bytes()[:-count])


def change_npy(path: Path, change) -> None:
    np.save(path, change(np.load(path)))


def with_value(value: float, row: int):
    def change(array: np.ndarray) -> np.ndarray:
        array.reshape(len(array), -1)[row, 1] = value
        return array

    return change


def rewrite(path: Path, change) -> None:
    """Change the lines of a text file."""
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("".join(f"{line}\n" for line in lines))


def set_line(number: int, text: str):
    return lambda lines: lines.__setitem__(number - 1, text)


def set_field(number: int, text: str):
    """Change a field of the third line of a TSV."""

    def change(lines: list[str]) -> None:
        fields = lines[2].split("\t")
        fields[number] = text
        lines[2] = "\t".join(fields)

    return change


def swap_lines(lines: list[str]) -> None:
    lines[1], lines[2] = lines[2], lines[1]


def coded(values: int) -> str:
    return base64.b64encode(np.ones(values, np.float32).tobytes()).decode()


TRAIN = RAW / "f30k_precomp/train_ims.npy"
TSV = RAW / "boxes_36.tsv"
MINE, MINE_IDS = RAW / "mine.npy", RAW / "mine_ids.txt"
MAT, MAT_JSON = RAW / "vgg_feats.mat", RAW / "dataset_flickr30k.json"
SOME = shuffled(USED)
MAT_73 = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n"

# Files of annotations, which the datasets read: the whole line is matched.
ANNOTATIONS = {
    "precomp, a file missing": (
        scan_folder,
        lambda: (RAW / "f30k_precomp/dev_ims.npy").unlink(),
        "f30k_precomp/dev_ims.npy: ",
    ),
    "precomp, cut": (scan_folder, lambda: cut(TRAIN, 4), "train_ims.npy: .*whole NumPy array"),
    "precomp, rows": (
        scan_folder,
        lambda: change_npy(TRAIN, lambda x: x[:-1]),
        "train_ims.npy: rows: expected 6 .*found 5",
    ),
    "precomp, ids": (
        scan_folder,
        lambda: rewrite(RAW / "f30k_precomp/train_ids.txt", lambda lines: lines.pop()),
        "train_ids.txt: lines: expected 6 .*found 5",
    ),
    "precomp, an id twice": (
        scan_folder,
        lambda: rewrite(RAW / "f30k_precomp/train_ids.txt", set_line(2, of_split("train")[0])),
        "train_ids.txt:2: expected a number that no line before has",
    ),
    "precomp, objects": (
        scan_folder,
        lambda: np.save(TRAIN, np.array([Trap()] * 6, dtype=object), allow_pickle=True),
        "train_ims.npy: .*whole NumPy array",
    ),
    "mat, a json of another kind": (
        mat_with_json,
        lambda: MAT_JSON.write_text("{}"),
        "dataset_flickr30k.json: images: expected list, found None",
    ),
}

NUMBERS_OF_BOXES = "numbers, and in `features` the float32 values of every box"
MAT_OR_PART = "something else or a part of one"

# What is wrong -> how to write it, how to spoil it, and where, expected and found of the error.
MALFORMED = {
    "precomp, too long": (
        scan_folder,
        lambda: TRAIN.write_bytes(TRAIN.read_bytes() + bytes(8)),
        ("train_ims.npy", "288 bytes for float32 (6, 4, 3)", "296"),
    ),
    "precomp, an unknown id": (
        scan_folder,
        lambda: rewrite(RAW / "f30k_precomp/train_ids.txt", set_line(2, "77")),
        (
            f"f30k_precomp: image '{of_split('train')[1]}'",
            "features in train_ims.npy, ",
            "those of 11 of 12 images, and 1 images that the dataset does not use, first '77'",
        ),
    ),
    "precomp, another size in one split": (
        scan_folder,
        lambda: change_npy(RAW / "f30k_precomp/dev_ims.npy", lambda x: x[:, :3]),
        (
            f"dev_ims.npy: image '{of_split('val')[0]}'",
            "features (4, 3) as of the first image of train_ims.npy",
            "(3, 3)",
        ),
    ),
    "precomp, NaN": (
        scan_folder,
        lambda: change_npy(TRAIN, with_value(np.nan, 4)),
        (f"train_ims.npy: image '{of_split('train')[4]}'", "numbers up to 65504", "nan"),
    ),
    "precomp, infinity": (
        scan_folder,
        lambda: change_npy(TRAIN, with_value(-np.inf, 0)),
        (f"train_ims.npy: image '{of_split('train')[0]}'", "numbers", "-inf"),
    ),
    "precomp, too large for float16": (
        scan_folder,
        lambda: change_npy(TRAIN, with_value(70000, 1)),
        (f"train_ims.npy: image '{of_split('train')[1]}'", "numbers", "70000.0"),
    ),
    "precomp, rows of captions that differ": (
        vsepp_folder,
        lambda: change_npy(RAW / "coco_precomp/train_ims.npy", with_value(1.5, 7)),
        (f"train_ims.npy: image '{of_split('train')[1]}'", "5 equal rows", "different ones"),
    ),
    "tsv, a field too few": (
        tsv_file,
        lambda: rewrite(TSV, set_line(3, "12\t640\t480\t36")),
        ("boxes_36.tsv: line 3", "the 6 fields image_id, ", "4"),
    ),
    "tsv, cut": (
        tsv_file,
        lambda: cut(TSV, 5),
        ("boxes_36.tsv: line 15", NUMBERS_OF_BOXES, "something else"),
    ),
    "tsv, no number": (
        tsv_file,
        lambda: rewrite(TSV, set_field(0, "a.jpg")),
        ("boxes_36.tsv: line 3", NUMBERS_OF_BOXES, "something else"),
    ),
    "tsv, bytes printed by Python": (
        tsv_file,
        lambda: rewrite(TSV, set_field(5, f"b'{coded(12)}'")),
        ("boxes_36.tsv: line 3", NUMBERS_OF_BOXES, "something else"),
    ),
    "tsv, characters that are not base64's": (
        tsv_file,
        lambda: rewrite(TSV, set_field(5, f"!!!!{coded(12)}")),
        ("boxes_36.tsv: line 3", NUMBERS_OF_BOXES, "something else"),
    ),
    "tsv, length of base64": (
        tsv_file,
        lambda: rewrite(TSV, set_field(5, coded(11))),
        ("boxes_36.tsv: line 3", NUMBERS_OF_BOXES, "something else"),
    ),
    "tsv, boxes": (
        tsv_file,
        lambda: rewrite(TSV, set_field(3, "3")),
        ("boxes_36.tsv: image '", "features (4, 3)", "(3, 4)"),
    ),
    "tsv, no boxes": (
        tsv_file,
        lambda: rewrite(TSV, set_field(3, "0")),
        ("boxes_36.tsv: line 3", NUMBERS_OF_BOXES, "something else"),
    ),
    "tsv, an image twice": (
        tsv_folder,
        lambda: write_tsv(RAW / "trainval/x.tsv", [tsv_row(SOME[0], truth(SOME[0]))]),
        (f"x.tsv: image '{SOME[0]}'", "once", "twice"),
    ),
    "tsv, a file missing": (
        tsv_folder,
        lambda: (RAW / "trainval/karpathy_val.tsv").unlink(),
        (
            "trainval: image '",
            "features in karpathy_train_genome.tsv.0, ",
            "those of 9 of 12 images",
        ),
    ),
    "tsv, empty": (
        tsv_file,
        lambda: TSV.write_text(""),
        ("tiny: image '", "features in boxes_36.tsv", "those of 0 of 12 images"),
    ),
    "folder of others": (
        tsv_folder,
        lambda: [path.unlink() for path in (RAW / "trainval").glob("*tsv*")],
        ("trainval", "*_ims.npy or *.tsv", "neither"),
    ),
    "mat, cut": (
        mat_with_json,
        lambda: cut(MAT, 200),
        ("vgg_feats.mat", "a .mat file", MAT_OR_PART),
    ),
    "mat, compressed and cut": (
        mat_with_ids,
        lambda: cut(RAW / "fc7/feats.mat", 9),
        ("fc7/feats.mat", "a .mat file", MAT_OR_PART),
    ),
    "mat, something else": (
        mat_with_json,
        lambda: MAT.write_bytes(b"<html>"),
        ("vgg_feats.mat", "a .mat file", MAT_OR_PART),
    ),
    "mat, empty": (
        mat_with_json,
        lambda: MAT.write_bytes(b""),
        ("vgg_feats.mat", "a .mat file", MAT_OR_PART),
    ),
    "mat, 7.3": (
        mat_with_json,
        lambda: MAT.write_bytes(MAT_73 * 20),
        ("vgg_feats.mat", "MATLAB's format 7 or older", "7.3"),
    ),
    "mat, another name": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"x": np.ones((3, 14))}),
        ("vgg_feats.mat", "a variable `feats`", "x double (3, 14)"),
    ),
    "mat, integers": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"feats": np.ones((3, 14), np.int32)}),
        ("vgg_feats.mat", "a variable `feats`", "feats int32 (3, 14)"),
    ),
    "mat, cells": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"feats": np.array([["a", 1.0]], dtype=object)}),
        ("vgg_feats.mat", "a variable `feats`", "feats cell (1, 2)"),
    ),
    "mat, columns": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"feats": np.ones((3, 13))}),
        ("vgg_feats.mat", "14 columns, one per image of dataset_flickr30k.json", "13"),
    ),
    "mat, turned": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"feats": np.ones((14, 3))}),
        ("vgg_feats.mat", "14 columns", "3"),
    ),
    "mat, without an order": (
        mat_with_json,
        lambda: MAT_JSON.unlink(),
        ("vgg_feats.mat", "vgg_feats_ids.txt or one dataset*.json beside it", "neither"),
    ),
    "mat, two orders": (
        mat_with_json,
        lambda: write_json_of(USED, RAW / "dataset_coco.json"),
        ("vgg_feats.mat", "vgg_feats_ids.txt or one dataset*.json beside it", "neither"),
    ),
    "mat, a sidecar that disagrees": (
        mat_with_json,
        lambda: (RAW / "vgg_feats_ids.txt").write_text(
            "\n".join(sorted(IMAGES["image_id"], reverse=True))
        ),
        ("vgg_feats_ids.txt: line 1", " as in dataset_flickr30k.json", "'1013'"),
    ),
    "mat, not numbers": (
        mat_with_ids,
        lambda: scipy.io.savemat(
            RAW / "fc7/feats.mat", {"feats": with_value(np.nan, 3)(first_of(SOME)).T}
        ),
        (f"fc7/feats.mat: image '{SOME[3]}'", "numbers up to 65504", "nan"),
    ),
    "npy, no list of ids": (
        npy_pooled,
        lambda: MINE_IDS.unlink(),
        ("mine_ids.txt", "the image ids of mine.npy, one per line", "none"),
    ),
    "npy, fewer ids": (
        npy_pooled,
        lambda: rewrite(MINE_IDS, lambda lines: lines.pop()),
        ("mine_ids.txt", "12 image ids, as many as mine.npy has images", "11"),
    ),
    "npy, a blank id": (
        npy_pooled,
        lambda: rewrite(MINE_IDS, set_line(4, " ")),
        ("mine_ids.txt: line 4", "an image id", "none"),
    ),
    "npy, an id twice": (
        npy_pooled,
        lambda: rewrite(MINE_IDS, set_line(4, SOME[0])),
        (f"mine.npy: image '{SOME[0]}'", "once", "twice"),
    ),
    "npy, an unknown id": (
        npy_pooled,
        lambda: rewrite(MINE_IDS, set_line(4, "nobody")),
        (f"image '{SOME[3]}'", "features in mine.npy, ", "first 'nobody'"),
    ),
    "npy, cut": (
        npy_pooled,
        lambda: cut(MINE, 7),
        ("mine.npy", "72 bytes for float16 (12, 3)", "65"),
    ),
    "npy, empty": (
        npy_pooled,
        lambda: MINE.write_bytes(b""),
        ("mine.npy", "a .npy file", "something else"),
    ),
    "npy, a pickle": (
        npy_pooled,
        lambda: MINE.write_bytes(pickle.dumps(Trap())),
        ("mine.npy", "a .npy file", "something else"),
    ),
    "npy, objects": (
        npy_pooled,
        lambda: np.save(MINE, np.array([Trap()] * 12, dtype=object), allow_pickle=True),
        ("mine.npy", "floating-point numbers (N, F) or (N, R, F)", "object (12,)"),
    ),
    "npy, integers": (
        npy_pooled,
        lambda: change_npy(MINE, lambda x: x.astype(np.int64)),
        ("mine.npy", "floating-point numbers (N, F) or (N, R, F)", "int64 (12, 3)"),
    ),
    "npy, flat": (
        npy_pooled,
        lambda: change_npy(MINE, lambda x: x[:, 0]),
        ("mine.npy", "floating-point numbers (N, F) or (N, R, F)", "float16 (12,)"),
    ),
    "npy, Fortran's order": (
        npy_pooled,
        lambda: change_npy(MINE, np.asfortranarray),
        ("mine.npy", "floating-point numbers", "float16 (12, 3) in Fortran's order"),
    ),
    "npy, no regions": (
        npy_regions,
        lambda: change_npy(MINE, lambda x: x[:, :0]),
        ("mine.npy", "floating-point numbers", "(15, 0, 3)"),
    ),
    "another kind of file": (
        npy_pooled,
        lambda: MINE.rename(RAW / "mine.npz") and MINE.mkdir(),
        ("mine.npy", "*_ims.npy or *.tsv", "neither"),
    ),
    "nothing": (
        npy_pooled,
        lambda: MINE.unlink(),
        ("mine.npy", "the features that the season names", "nothing"),
    ),
}


def refused(write, spoil) -> DataError:
    """The error of an import of spoilt features; an older folder has to stay as it was."""
    features = write()
    FOLDER.mkdir(parents=True)
    (FOLDER / "card.json").write_text("older")
    spoil()
    with pytest.raises(DataError) as caught:
        load(features)
    assert "\n" not in str(caught.value)
    assert [path.name for path in FOLDER.parent.iterdir()] == [FOLDER.name]
    assert [path.read_text() for path in FOLDER.iterdir()] == ["older"]
    assert not Path("sprung").exists()
    return caught.value


@pytest.mark.parametrize("case", ANNOTATIONS)
def test_malformed_annotations_are_refused(case):
    write, spoil, message = ANNOTATIONS[case]
    error = refused(write, spoil)
    assert re.search(message, str(error))


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_features_are_refused(case):
    write, spoil, (where, expected, found) = MALFORMED[case]
    error = refused(write, spoil)
    assert isinstance(error, UserError) and error.do
    assert where in error.where
    assert expected in error.expected
    assert found in error.found


ADVICE = {
    "mat, 7.3": "-v7",
    "npy, an unknown id": "annotations",
    "npy, Fortran's order": "ascontiguousarray",
    "nothing": "place them there",
    "tsv, boxes": "36 boxes",
}


@pytest.mark.parametrize("case", ADVICE)
def test_the_line_ends_with_what_to_do(case):
    write, spoil, _ = MALFORMED[case]
    *_, advice = str(refused(write, spoil)).partition("; ")
    assert ADVICE[case] in advice


def test_other_kinds_of_files_are_refused():
    (RAW / "features.h5").touch()
    with pytest.raises(UserError) as caught:
        load("features.h5")
    assert caught.value.where.endswith("features.h5")
    assert (caught.value.expected, caught.value.found) == ("a folder, .tsv, .mat or .npy", ".h5")


def test_two_images_that_a_tsv_gives_one_name_are_refused():
    images = images_of()
    images.loc[3, "file"] = f"copy/COCO_{images['image_id'][0]}.jpg"
    with pytest.raises(UserError) as caught:
        load(tsv_file(), images)
    assert caught.value.where.endswith("boxes_36.tsv")
    assert caught.value.expected == "one image that it may call '1000'"
    assert caught.value.found.startswith("'1000' and ")

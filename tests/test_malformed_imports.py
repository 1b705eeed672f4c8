"""Features that cannot be imported are refused in one line, and an older folder stays as it was."""

from pathlib import Path

import numpy as np
import pytest
from feature_files import (
    FOLDER,
    RAW,
    USED,
    images_of,
    load,
    mat_with_json,
    npy_pooled,
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


@pytest.fixture(autouse=True)
def raw_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    RAW.mkdir(parents=True)


def change_npy(path: Path, change) -> None:
    np.save(path, change(np.load(path)))


def rewrite(path: Path, change) -> None:
    """Change the lines of a text file."""
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("".join(f"{line}\n" for line in lines))


def set_line(number: int, text: str):
    return lambda lines: lines.__setitem__(number - 1, text)


MINE, MINE_IDS = RAW / "mine.npy", RAW / "mine_ids.txt"
SOME = shuffled(USED)

# What is wrong -> how to write it, how to spoil it, and where, expected and found of the error.
MALFORMED = {
    "precomp, an unknown id": (
        scan_folder,
        lambda: rewrite(RAW / "f30k_precomp/train_ids.txt", set_line(2, "77")),
        (
            f"f30k_precomp: image '{of_split('train')[1]}'",
            "features in train_ims.npy, ",
            "those of 11 of 12 images, and 1 images that the dataset lacks, first '77'",
        ),
    ),
    "precomp, another size in one split": (
        scan_folder,
        lambda: change_npy(RAW / "f30k_precomp/dev_ims.npy", lambda x: x[:, :3]),
        (f"dev_ims.npy: image '{of_split('val')[0]}'", "features (4, 3) as those", "(3, 3)"),
    ),
    "precomp, rows of captions that differ": (
        vsepp_folder,
        lambda: change_npy(
            RAW / "coco_precomp/train_ims.npy", lambda x: x + np.eye(len(x))[7, :, None]
        ),
        (f"train_ims.npy: image '{of_split('train')[1]}'", "5 equal rows", "different ones"),
    ),
    "tsv, an image twice": (
        tsv_folder,
        lambda: write_tsv(RAW / "trainval/x.tsv", [tsv_row(SOME[0], truth(SOME[0]))]),
        (f"x.tsv: image '{SOME[0]}'", "once", "twice"),
    ),
    "mat, two orders": (
        mat_with_json,
        lambda: write_json_of(USED, RAW / "dataset_coco.json"),
        ("vgg_feats.mat", "one dataset*.json beside it", "2"),
    ),
    "npy, fewer ids": (
        npy_pooled,
        lambda: rewrite(MINE_IDS, lambda lines: lines.pop()),
        ("mine_ids.txt", "12 image ids, one per row of mine.npy", "11"),
    ),
    "npy, Fortran's order": (
        npy_pooled,
        lambda: change_npy(MINE, np.asfortranarray),
        ("mine.npy", "floating-point numbers", "float16 (12, 3) in Fortran's order"),
    ),
    "nothing": (npy_pooled, lambda: MINE.unlink(), ("mine.npy", "features", "nothing")),
}


def refused(write, spoil) -> UserError:
    """The error of an import of spoilt features; an older folder has to stay as it was."""
    features = write()
    FOLDER.mkdir(parents=True)
    (FOLDER / "card.json").write_text("older")
    spoil()
    with pytest.raises(UserError) as caught:
        load(features)
    assert "\n" not in str(caught.value)
    assert [path.name for path in FOLDER.parent.iterdir()] == [FOLDER.name]
    assert [path.read_text() for path in FOLDER.iterdir()] == ["older"]
    return caught.value


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_features_are_refused(case):
    write, spoil, (where, expected, found) = MALFORMED[case]
    error = refused(write, spoil)
    assert error.do
    assert where in error.where
    assert expected in error.expected
    assert found in error.found


def test_two_images_that_a_tsv_gives_one_name_are_refused():
    images = images_of()
    images.loc[3, "file"] = f"copy/COCO_{images['image_id'][0]}.jpg"
    with pytest.raises(UserError) as caught:
        load(tsv_file(), images)
    assert caught.value.where.endswith("boxes_36.tsv")
    assert caught.value.expected == "one image that it may call '1000'"
    assert caught.value.found.startswith("'1000' and ")

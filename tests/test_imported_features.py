"""Imported features: every format in its real layout, in the order of the images, in
blocks; what cannot be imported is refused in one line, and an older folder stays as it
was."""

import base64
import json
from pathlib import Path

import feature_files as made
import numpy as np
import pytest
from feature_files import (
    DATASET,
    FOLDER,
    RAW,
    STEMS,
    USED,
    first_of,
    images_of,
    load,
    regions_of,
)
from layouts import replace_line, write_lines, write_tsv
from refusals import refused

from benchmark.core.files import write_json
from benchmark.data.feature_folders import sha256_of_items
from benchmark.features import imported_features

REGIONS = (
    "scan_folder",
    "coco_folder",
    "tsv_file",
    "tsv_folder",
    "npy_regions",
    "npz_regions",
)
POOLED = (
    "vsepp_folder",
    "mat_with_json",
    "mat_with_ids",
    "npy_pooled",
    "parquet_pooled",
)


@pytest.fixture(autouse=True)
def raw_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    RAW.mkdir(parents=True)


@pytest.mark.parametrize("name", [*REGIONS, "lxmert_file", *POOLED])
def test_features_come_in_the_order_of_the_images_whatever_the_blocks(
    name, monkeypatch
):
    given = getattr(made, name)()
    expected = {"pooled": first_of(USED)}
    if name not in POOLED:
        regions = regions_of(USED)
        expected = {"pooled": regions.sum(1) / regions.shape[1], "regions": regions}
    for block in (1, 100, 1 << 24):
        monkeypatch.setattr(imported_features, "BLOCK", block)
        features = load(given)
        assert features.keys() == expected.keys()
        for kind, values in features.items():
            assert values.dtype == np.float16
            np.testing.assert_array_equal(values, expected[kind].astype(np.float16))


@pytest.mark.parametrize("name", ["scan_folder", "tsv_file", "mat_with_json"])
def test_channels_are_standardised_by_the_training_images(name):
    features = load(getattr(made, name)(), standardise=True)
    plain = {"pooled": regions_of(USED).mean(1), "regions": regions_of(USED)}
    if name == "mat_with_json":
        plain = {"pooled": first_of(USED)}
    assert features.keys() == plain.keys()
    for kind, values in features.items():
        raw = plain[kind].astype(np.float64)
        train = raw[:6].reshape(-1, raw.shape[-1])
        np.testing.assert_allclose(
            values, (raw - train.mean(0)) / train.std(0), atol=4e-3
        )


def test_columns_of_a_mat_are_in_the_order_of_the_json_beside_it_and_of_no_other():
    made.mat_with_json()
    (RAW / "fc7").mkdir()
    for name in ("vgg_feats.mat", "dataset_flickr30k.json"):
        (RAW / name).rename(RAW / "fc7" / name)
    made.write_json_of(list(reversed(USED)), RAW / "dataset_flickr30k.json")
    features = load("fc7/vgg_feats.mat", images_of("pictures/{}.jpg"))
    assert features["pooled"].tolist() == first_of(USED).astype(np.float16).tolist()


def test_the_card_tells_what_the_features_were_taken_from():
    load(made.scan_folder())
    card = json.loads((FOLDER / "card.json").read_text())
    ims = [RAW / "f30k_precomp" / f"{stem}_ims.npy" for stem in STEMS.values()]
    size = sum(path.stat().st_size for path in ims)
    assert card["weights"] == {"file": "f30k_precomp", "bytes": size}
    assert card["settings"]["features"] == "f30k_precomp" and card["items"] == 12

    def listed(*names: str) -> dict:
        files = [
            {"name": name, "bytes": 1, "sha256": f"sha of {name}"} for name in names
        ]
        write_json(DATASET.manifest, {"files": files})
        return json.loads((FOLDER / "card.json").read_text())["weights"]

    listed(*(path.relative_to(RAW).as_posix() for path in ims))
    load("f30k_precomp")
    shas = "\n".join(f"sha of f30k_precomp/{path.name}" for path in ims)
    assert listed() == {
        "file": "f30k_precomp",
        "sha256": sha256_of_items(shas.split("\n")),
    }
    listed("boxes_36.tsv", "other")
    load(made.tsv_file())
    assert listed() == {"file": "boxes_36.tsv", "sha256": "sha of boxes_36.tsv"}


# What is refused ----------------------------------------------------------------------


def change_npy(path: Path, change) -> None:
    np.save(path, change(np.load(path)))


MINE, MINE_IDS = RAW / "mine.npy", RAW / "mine_ids.txt"
TRAIN, VAL = (made.of_split(split) for split in ("train", "val"))

# What is wrong -> how to write it, how to spoil it, and where, expected and found of
# the error.
MALFORMED = {
    "precomp, an unknown id": (
        made.scan_folder,
        lambda: replace_line(RAW / "f30k_precomp/train_ids.txt", 2, "77"),
        (
            f"f30k_precomp: image '{TRAIN[1]}'",
            "features in train_ims.npy, ",
            "those of 11 of 12 images, and 1 images that the dataset lacks, first '77'",
        ),
    ),
    "precomp, another size in one split": (
        made.scan_folder,
        lambda: change_npy(RAW / "f30k_precomp/dev_ims.npy", lambda x: x[:, :2]),
        (f"dev_ims.npy: image '{VAL[0]}'", "shape (3, 2)", "(2, 2)"),
    ),
    "precomp, rows of captions that differ": (
        made.vsepp_folder,
        lambda: change_npy(
            RAW / "f30k_precomp/train_ims.npy", lambda x: x + np.eye(len(x))[7, :, None]
        ),
        (f"train_ims.npy: image '{TRAIN[1]}'", "5 equal rows", "differ"),
    ),
    "tsv, an image twice": (
        made.tsv_folder,
        lambda: write_tsv(RAW / "trainval/x.tsv", USED[:1]),
        (f"x.tsv: image '{USED[0]}'", "one row", "two"),
    ),
    "mat, two orders": (
        made.mat_with_json,
        lambda: made.write_json_of(USED, RAW / "dataset_coco.json"),
        ("vgg_feats.mat", "one dataset*.json beside it", "2"),
    ),
    "npy, fewer ids": (
        made.npy_pooled,
        lambda: replace_line(MINE_IDS, 1),
        ("mine_ids.txt", "12 image ids, one per row of mine.npy", "11"),
    ),
    "npy, Fortran's order": (
        made.npy_pooled,
        lambda: change_npy(MINE, np.asfortranarray),
        ("mine.npy", "floating-point numbers", "float16 (12, 2) in Fortran's order"),
    ),
    "nothing": (
        made.npy_pooled,
        lambda: MINE.unlink(),
        ("mine.npy", "features", "nothing"),
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_features_are_refused_and_an_older_folder_stays(case):
    write, spoil, fields = MALFORMED[case]
    features = write()
    FOLDER.mkdir(parents=True)
    (FOLDER / "card.json").write_text("older")
    spoil()
    with refused(*fields) as caught:
        load(features)
    assert caught.value.do
    assert [path.name for path in FOLDER.parent.iterdir()] == [FOLDER.name]
    assert [path.read_text() for path in FOLDER.iterdir()] == ["older"]


def test_an_image_that_is_skipped_may_have_other_boxes():
    """It is first in the file, with a third of the values of every other image."""
    features = made.tsv_file()
    lines = (RAW / features).read_text().splitlines()
    fields = lines[0].split("\t")
    values = np.frombuffer(base64.b64decode(fields[-1]), np.float32)
    one_box = base64.b64encode(values[: len(values) // 3]).decode()
    skipped = ["78", *fields[1:3], "1", fields[4], one_box]
    write_lines(RAW / features, ["\t".join(skipped), *lines])
    assert load(features)["regions"].shape[:2] == (len(USED), 3)


def test_images_of_all_splits_are_wanted():
    used = images_of()
    *ids, last = used["image_id"].tolist()
    np.savez(RAW / "x.npz", x=np.ones((len(ids), 3), np.float32), image_id=ids)
    with refused("x.npz", f"{len(used)} images", repr(last)) as caught:
        imported_features.open_source(RAW / "x.npz", RAW, used)
    assert "test" not in caught.value.expected


def test_two_images_that_a_tsv_gives_one_name_are_refused():
    images = images_of()
    images.loc[3, "file"] = f"copy/COCO_{images['image_id'][0]}.jpg"
    with refused("boxes_36.tsv", "one image named '1000'", "'1000' and "):
        load(made.tsv_file(), images)

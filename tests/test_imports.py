"""Imported features: every format in its real layout, aligned, whole, or refused in one line."""

import base64
import csv
import json
import pickle
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io

from benchmark.core.errors import UserError
from benchmark.core.files import write_json
from benchmark.data.feature_folders import fingerprint, read_array
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import RawDataset
from benchmark.encode import feature_formats, feature_import
from benchmark.encode.standardisation import Moments
from benchmark.season.parameters import FeatureSet, ImageEncoder
from datasets import DataError

RAW, FOLDER = Path("data/raw/tiny"), Path("data/features/tiny/imported")
DATASET = RawDataset(name="tiny", reader="tiny", options={}, source=None, module=None)
SPLITS = ["train"] * 6 + ["val"] * 3 + ["test"] * 3 + ["unused"] * 2
STEMS = {"train": "train", "val": "dev", "test": "test"}
NUMBERS = [1000 + 37 * n % 14 for n in range(14)]  # in no order that sorting would give
R, F = 4, 3


def images_of(file: str = "{}.jpg") -> pd.DataFrame:
    """Images called by their number; `file` is the pattern of their pictures."""
    ids = [str(number) for number in NUMBERS]
    return pd.DataFrame(
        {"image_id": ids, "file": [file.format(number) for number in NUMBERS], "split": SPLITS}
    )


IMAGES = images_of()
USED = IMAGES["image_id"][IMAGES["split"] != "unused"].tolist()


def truth(image_id: str) -> np.ndarray:
    """The regions of an image, (R, F) float32, that its number decides; the last channel is 5."""
    regions = np.random.default_rng(int(image_id)).normal(2, 3, (R, F)).astype(np.float32)
    regions[:, -1] = 5
    return regions


def shuffled(ids: list[str]) -> list[str]:
    return random.Random(0).sample(ids, len(ids))


def regions_of(ids: list[str]) -> np.ndarray:
    return np.stack([truth(image_id) for image_id in ids])


def first_of(ids: list[str]) -> np.ndarray:
    """Pooled features, where a format has no others: the first region stands for the image."""
    return regions_of(ids)[:, 0]


# Writers: the real layouts ---------------------------------------------------------------------


def write_part(folder: Path, stem: str, ids: list[str], features: np.ndarray) -> None:
    folder.mkdir(exist_ok=True)
    captions = [f"image {image_id} says {k} ." for image_id in ids for k in range(5)]
    (folder / f"{stem}_caps.txt").write_text("".join(f"{line}\n" for line in captions))
    (folder / f"{stem}_ids.txt").write_text("".join(f"{image_id}\n" for image_id in ids))
    np.save(folder / f"{stem}_ims.npy", features)


def of_split(split: str) -> list[str]:
    return shuffled(IMAGES["image_id"][IMAGES["split"] == split].tolist())


def scan_folder() -> str:
    for split, stem in STEMS.items():
        write_part(RAW / "f30k_precomp", stem, of_split(split), regions_of(of_split(split)))
    return "f30k_precomp"


def coco_folder() -> str:
    """test_* is the beginning of testall_*."""
    scan_folder()
    ids = of_split("test")
    write_part(RAW / "f30k_precomp", "testall", ids, regions_of(ids))
    write_part(RAW / "f30k_precomp", "test", ids[:2], regions_of(ids[:2]))
    return "f30k_precomp"


def vsepp_folder() -> str:
    """A row a caption."""
    for split, stem in STEMS.items():
        ids = of_split(split)
        write_part(RAW / "coco_precomp", stem, ids, first_of(ids).repeat(5, axis=0))
    return "coco_precomp"


def tsv_row(image_id: str, regions: np.ndarray) -> list[str]:
    boxes = np.zeros((len(regions), 4), np.float32)
    coded = [base64.b64encode(array.tobytes()).decode() for array in (boxes, regions)]
    return [str(int(image_id)), "640", "480", str(len(regions)), *coded]


def write_tsv(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(rows)  # lines end with \r\n, as the real ones


def tsv_file() -> str:
    """With the unused images, and one that the dataset does not have."""
    ids = shuffled([*IMAGES["image_id"], "77"])
    write_tsv(RAW / "boxes_36.tsv", [tsv_row(image_id, truth(image_id)) for image_id in ids])
    return "boxes_36.tsv"


def tsv_folder() -> str:
    (RAW / "trainval").mkdir()
    ids = shuffled(USED)
    names = ["karpathy_train_genome.tsv.0", "karpathy_train_genome.tsv.1", "karpathy_val.tsv"]
    for name, part in zip(names, (ids[:5], ids[5:9], ids[9:]), strict=True):
        write_tsv(RAW / "trainval" / name, [tsv_row(x, truth(x)) for x in part])
    (RAW / "trainval" / "readme.txt").write_text("Read me.")
    return "trainval"


def write_json_of(ids: list[str], path: Path) -> None:
    entries = [
        {"filename": f"{x}.jpg", "imgid": n, "split": "train", "sentids": [], "sentences": []}
        for n, x in enumerate(ids)
    ]
    path.write_text(json.dumps({"images": entries, "dataset": "flickr30k"}))


def mat_with_json() -> str:
    ids = shuffled(IMAGES["image_id"].tolist())
    write_json_of(ids, RAW / "dataset_flickr30k.json")
    scipy.io.savemat(RAW / "vgg_feats.mat", {"feats": first_of(ids).T, "note": "other"})
    return "vgg_feats.mat"


def mat_with_ids() -> str:
    ids = shuffled(USED)
    (RAW / "fc7").mkdir()
    (RAW / "fc7" / "feats_ids.txt").write_text("\n".join(ids))
    features = {"feats": first_of(ids).T.astype(np.float64)}
    scipy.io.savemat(RAW / "fc7" / "feats.mat", features, do_compression=True)
    return "fc7/feats.mat"


def npy_regions() -> str:
    ids = shuffled([*IMAGES["image_id"], "77"])
    np.save(RAW / "mine.npy", regions_of(ids).astype(">f8"))
    (RAW / "mine_ids.txt").write_text("\n".join(ids) + "\n")
    return "mine.npy"


def npy_pooled() -> str:
    ids = shuffled(USED)
    np.save(RAW / "mine.npy", first_of(ids).astype(np.float16))
    (RAW / "mine_ids.txt").write_text("\n".join(ids) + "\n")
    return "mine.npy"


WITH_REGIONS = [scan_folder, coco_folder, tsv_file, tsv_folder, npy_regions]
POOLED_ONLY = [vsepp_folder, mat_with_json, mat_with_ids, npy_pooled]


# The import ------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def raw_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    RAW.mkdir(parents=True)


def load(features: str, images: pd.DataFrame = IMAGES, **settings) -> dict[str, np.ndarray]:
    """Import, and read the arrays back as `train` does."""
    ids = images["image_id"][images["split"] != "unused"].tolist()
    encoding = FeatureSet(
        dataset="tiny",
        reader="tiny",
        kind="pictures",
        encoder="torchvision_cnn",
        folder=str(FOLDER),
        source="data/prepared/tiny",
        image=ImageEncoder(features=features, **settings),
    )
    card = {"dataset": "tiny", "encoder": FOLDER.name, "items": len(ids)}
    card |= {"settings": encoding.image.model_dump(), "items_sha256": fingerprint(ids)}
    data = Prepared(images, pd.DataFrame(), pd.DataFrame(), {}, Path("unused"))
    feature_import.import_features(encoding, data, DATASET, card)
    names = [path.stem for path in FOLDER.glob("*.npy")]
    return {name: np.array(read_array(FOLDER, name, "tiny", ids)) for name in names}


def expected_mean(image_id: str) -> list[float]:
    regions = truth(image_id).astype(np.float64)
    return [sum(regions[r, f] for r in range(R)) / R for f in range(F)]


@pytest.mark.parametrize("block", [1, 100, 1 << 24])
@pytest.mark.parametrize("write", WITH_REGIONS)
def test_regions_and_their_means_come_in_the_order_of_the_images(write, block, monkeypatch):
    monkeypatch.setattr(feature_formats, "BLOCK", block)
    found = load(write())
    assert set(found) == {"pooled", "regions"}
    assert found["regions"].dtype == found["pooled"].dtype == np.float16
    assert found["regions"].tolist() == [truth(x).astype(np.float16).tolist() for x in USED]
    np.testing.assert_allclose(found["pooled"], [expected_mean(x) for x in USED], rtol=1e-3)


@pytest.mark.parametrize("block", [1, 100, 1 << 24])
@pytest.mark.parametrize("write", POOLED_ONLY)
def test_pooled_features_come_in_the_order_of_the_images(write, block, monkeypatch):
    monkeypatch.setattr(feature_formats, "BLOCK", block)
    found = load(write())
    assert set(found) == {"pooled"}
    assert found["pooled"].tolist() == [truth(x)[0].astype(np.float16).tolist() for x in USED]


@pytest.mark.parametrize("write", [scan_folder, tsv_file, mat_with_json])
def test_channels_are_standardised_by_the_training_images(write):
    found = load(write(), standardise=True)
    for name, values in found.items():
        plain = {"pooled": [expected_mean(x) for x in USED], "regions": regions_of(USED)}[name]
        if write is mat_with_json:
            plain = first_of(USED)
        raw = np.asarray(plain, np.float64)
        train = raw[:6].reshape(-1, F)
        scale = np.array([*train.std(0)[:2], 1])  # the last channel never changes
        np.testing.assert_allclose(values, (raw - train.mean(0)) / scale, atol=4e-3)
        assert (values[..., 2] == 0).all()


def test_moments_do_not_depend_on_the_blocks():
    rows = np.random.default_rng(0).normal(3, 2, (50, 4, 3)).astype(np.float32)
    rows[..., 1] = 7
    moments = Moments()
    for start, stop in ((0, 1), (1, 1), (1, 30), (30, 50)):
        moments.add(rows[start:stop])
    flat = rows.reshape(-1, 3).astype(np.float64)
    np.testing.assert_allclose(moments.mean, flat.mean(0), rtol=1e-6)
    np.testing.assert_allclose(moments.deviation, [flat[:, 0].std(), 1, flat[:, 2].std()], 1e-6)
    assert moments.mean.dtype == moments.deviation.dtype == np.float32


@pytest.mark.parametrize("file", ["val2014/COCO_val2014_{:012}.jpg", "flickr30k/{}.jpg", ""])
def test_a_tsv_calls_images_by_the_number_at_the_end_of_their_file(file):
    """Without a picture, of their id."""
    images = images_of(file)
    if file:
        images["image_id"] = [f"image{row}" for row in range(len(images))]
    found = load(tsv_file(), images)
    assert found["regions"].tolist() == [truth(x).astype(np.float16).tolist() for x in USED]


def test_columns_of_a_mat_are_in_the_order_of_the_json_beside_it():
    """Not of another one in the raw folder; and a folder before the name does not matter."""
    path = RAW / mat_with_ids()
    ids = (path.with_name("feats_ids.txt")).read_text().split()
    path.with_name("feats_ids.txt").unlink()
    write_json_of(ids, path.with_name("dataset.json"))
    write_json_of(ids[::-1], RAW / "dataset_flickr30k.json")
    found = load("fc7/feats.mat", images_of("pictures/{}.jpg"))
    assert found["pooled"].tolist() == [truth(x)[0].astype(np.float16).tolist() for x in USED]


def test_the_card_tells_what_the_features_were_taken_from():
    load(scan_folder())
    card = json.loads((FOLDER / "card.json").read_text())
    ims = [RAW / "f30k_precomp" / f"{stem}_ims.npy" for stem in STEMS.values()]
    size = sum(path.stat().st_size for path in ims)
    assert card["weights"] == {"file": "f30k_precomp", "bytes": size}
    assert card["settings"]["features"] == "f30k_precomp" and card["items"] == 12

    def listed(*names: str) -> dict:
        files = [{"name": name, "bytes": 1, "sha256": f"sha of {name}"} for name in names]
        write_json(DATASET.manifest, {"files": files})
        return json.loads((FOLDER / "card.json").read_text())["weights"]

    listed(*(path.relative_to(RAW).as_posix() for path in ims))
    load("f30k_precomp")
    shas = "\n".join(f"sha of f30k_precomp/{path.name}" for path in ims)
    assert listed() == {"file": "f30k_precomp", "sha256": fingerprint(shas.split("\n"))}
    listed("boxes_36.tsv", "other")
    load(tsv_file())
    assert listed() == {"file": "boxes_36.tsv", "sha256": "sha of boxes_36.tsv"}


def test_memory_does_not_hold_the_file(monkeypatch):
    monkeypatch.setattr(feature_formats, "BLOCK", 1 << 16)
    images = pd.DataFrame({"image_id": [str(n) for n in range(300)], "file": "", "split": "train"})
    np.save(RAW / "mine.npy", np.ones((300, 36, 512), np.float32))  # 22 MB
    (RAW / "mine_ids.txt").write_text("\n".join(images["image_id"]))
    tracemalloc.start()
    load("mine.npy", images, standardise=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    arrays = 300 * 37 * 512 * 2  # read back at the end by this test
    assert peak < arrays + 2e6 < (RAW / "mine.npy").stat().st_size


# Refusals --------------------------------------------------------------------------------------


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
    """Of the third line of a TSV."""

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

MALFORMED = {
    "precomp, a file missing": (
        scan_folder,
        lambda: (RAW / "f30k_precomp/dev_ims.npy").unlink(),
        "f30k_precomp/dev_ims.npy: not found",
    ),
    "precomp, cut": (scan_folder, lambda: cut(TRAIN, 4), "train_ims.npy: not a whole NumPy array"),
    "precomp, too long": (
        scan_folder,
        lambda: TRAIN.write_bytes(TRAIN.read_bytes() + bytes(8)),
        r"train_ims.npy: expected 288 bytes for float32 \(6, 4, 3\), found 296",
    ),
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
    "precomp, an unknown id": (
        scan_folder,
        lambda: rewrite(RAW / "f30k_precomp/train_ids.txt", set_line(2, "77")),
        f"f30k_precomp: image '{of_split('train')[1]}': expected features in train_ims.npy, .*"
        "found those of 11 of 12 images, and 1 images that the dataset has not, first '77'",
    ),
    "precomp, objects": (
        scan_folder,
        lambda: np.save(TRAIN, np.array([Trap()] * 6, dtype=object), allow_pickle=True),
        "train_ims.npy: not a whole NumPy array",
    ),
    "precomp, another size in one split": (
        scan_folder,
        lambda: change_npy(RAW / "f30k_precomp/dev_ims.npy", lambda x: x[:, :3]),
        rf"dev_ims.npy: image '{of_split('val')[0]}': expected features \(4, 3\) as of the first "
        r"image of train_ims.npy, found \(3, 3\)",
    ),
    "precomp, NaN": (
        scan_folder,
        lambda: change_npy(TRAIN, with_value(np.nan, 4)),
        f"train_ims.npy: image '{of_split('train')[4]}': expected numbers up to 65504, found nan",
    ),
    "precomp, infinity": (
        scan_folder,
        lambda: change_npy(TRAIN, with_value(-np.inf, 0)),
        f"train_ims.npy: image '{of_split('train')[0]}': expected numbers .*found -inf",
    ),
    "precomp, too large for float16": (
        scan_folder,
        lambda: change_npy(TRAIN, with_value(70000, 1)),
        f"train_ims.npy: image '{of_split('train')[1]}': expected numbers .*found 70000.0",
    ),
    "precomp, rows of captions that differ": (
        vsepp_folder,
        lambda: change_npy(RAW / "coco_precomp/train_ims.npy", with_value(1.5, 7)),
        rf"train_ims.npy: image '{of_split('train')[1]}': expected 5 equal rows",
    ),
    "tsv, a field too few": (
        tsv_file,
        lambda: rewrite(TSV, set_line(3, "12\t640\t480\t36")),
        "boxes_36.tsv: line 3: expected the 6 fields image_id, .*found 4",
    ),
    "tsv, cut": (tsv_file, lambda: cut(TSV, 5), "boxes_36.tsv: line 15: expected numbers"),
    "tsv, no number": (
        tsv_file,
        lambda: rewrite(TSV, set_field(0, "a.jpg")),
        "boxes_36.tsv: line 3: expected numbers",
    ),
    "tsv, bytes printed by Python": (
        tsv_file,
        lambda: rewrite(TSV, set_field(5, f"b'{coded(12)}'")),
        "boxes_36.tsv: line 3: expected numbers, and in `features` float32",
    ),
    "tsv, characters that are not base64's": (
        tsv_file,
        lambda: rewrite(TSV, set_field(5, f"!!!!{coded(12)}")),
        "boxes_36.tsv: line 3: expected numbers, and in `features` float32",
    ),
    "tsv, length of base64": (
        tsv_file,
        lambda: rewrite(TSV, set_field(5, coded(11))),
        "boxes_36.tsv: line 3: expected numbers, and in `features` float32 values of every box",
    ),
    "tsv, boxes": (
        tsv_file,
        lambda: rewrite(TSV, set_field(3, "3")),
        r"boxes_36.tsv: image '\d+': expected features \(4, 3\) .*found \(3, 4\); .*36 boxes",
    ),
    "tsv, no boxes": (
        tsv_file,
        lambda: rewrite(TSV, set_field(3, "0")),
        "boxes_36.tsv: line 3: expected numbers",
    ),
    "tsv, an image twice": (
        tsv_folder,
        lambda: write_tsv(RAW / "trainval/x.tsv", [tsv_row(SOME[0], truth(SOME[0]))]),
        f"x.tsv: image '{SOME[0]}': expected once, found twice",
    ),
    "tsv, a file missing": (
        tsv_folder,
        lambda: (RAW / "trainval/karpathy_val.tsv").unlink(),
        "trainval: image '.*': expected features in karpathy_train_genome.tsv.0, .*"
        "found those of 9 of 12 images; get",
    ),
    "tsv, empty": (tsv_file, lambda: TSV.write_text(""), "found those of 0 of 12 images; get"),
    "folder of others": (
        tsv_folder,
        lambda: [path.unlink() for path in (RAW / "trainval").glob("*tsv*")],
        r"trainval: expected \*_ims.npy or \*.tsv, found neither",
    ),
    "mat, cut": (
        mat_with_json,
        lambda: cut(MAT, 200),
        "vgg_feats.mat: expected a .mat file, found something else or a part of one",
    ),
    "mat, compressed and cut": (
        mat_with_ids,
        lambda: cut(RAW / "fc7/feats.mat", 9),
        "fc7/feats.mat: expected a .mat file, found something else or a part of one",
    ),
    "mat, something else": (
        mat_with_json,
        lambda: MAT.write_bytes(b"<html>"),
        "vgg_feats.mat: expected a .mat file, found something else",
    ),
    "mat, empty": (
        mat_with_json,
        lambda: MAT.write_bytes(b""),
        "vgg_feats.mat: expected a .mat file, found something else",
    ),
    "mat, 7.3": (
        mat_with_json,
        lambda: MAT.write_bytes(MAT_73 * 20),
        "vgg_feats.mat: expected MATLAB's format 7 or older, found 7.3; .* -v7",
    ),
    "mat, another name": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"x": np.ones((3, 14))}),
        r"vgg_feats.mat: expected a variable `feats` .*found x double \(3, 14\)",
    ),
    "mat, integers": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"feats": np.ones((3, 14), np.int32)}),
        r"vgg_feats.mat: expected a variable `feats` .*found feats int32 \(3, 14\)",
    ),
    "mat, cells": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"feats": np.array([["a", 1.0]], dtype=object)}),
        r"vgg_feats.mat: expected a variable `feats` .*found feats cell \(1, 2\)",
    ),
    "mat, columns": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"feats": np.ones((3, 13))}),
        "vgg_feats.mat: expected 14 columns, one an image of dataset_flickr30k.json, found 13",
    ),
    "mat, turned": (
        mat_with_json,
        lambda: scipy.io.savemat(MAT, {"feats": np.ones((14, 3))}),
        "vgg_feats.mat: expected 14 columns, .*found 3",
    ),
    "mat, without an order": (
        mat_with_json,
        lambda: MAT_JSON.unlink(),
        "vgg_feats.mat: expected vgg_feats_ids.txt or one dataset.*json beside it",
    ),
    "mat, two orders": (
        mat_with_json,
        lambda: write_json_of(USED, RAW / "dataset_coco.json"),
        "vgg_feats.mat: expected vgg_feats_ids.txt or one dataset.*json beside it",
    ),
    "mat, a json of another kind": (
        mat_with_json,
        lambda: MAT_JSON.write_text("{}"),
        "dataset_flickr30k.json: images: expected list, found None",
    ),
    "mat, a sidecar that disagrees": (
        mat_with_json,
        lambda: (RAW / "vgg_feats_ids.txt").write_text(
            "\n".join(sorted(IMAGES["image_id"], reverse=True))
        ),
        r"vgg_feats_ids.txt: line 1: expected '\d+' as in dataset_flickr30k.json, found '1013'",
    ),
    "mat, not numbers": (
        mat_with_ids,
        lambda: scipy.io.savemat(
            RAW / "fc7/feats.mat", {"feats": with_value(np.nan, 3)(first_of(SOME)).T}
        ),
        f"fc7/feats.mat: image '{SOME[3]}': expected numbers up to 65504, found nan",
    ),
    "npy, no list of ids": (
        npy_pooled,
        lambda: MINE_IDS.unlink(),
        "mine_ids.txt: expected the image ids of mine.npy, a line each, found none",
    ),
    "npy, fewer ids": (
        npy_pooled,
        lambda: rewrite(MINE_IDS, lambda lines: lines.pop()),
        "mine_ids.txt: expected 12 image ids, as many as mine.npy has images, found 11",
    ),
    "npy, a blank id": (
        npy_pooled,
        lambda: rewrite(MINE_IDS, set_line(4, " ")),
        "mine_ids.txt: line 4: expected an image id, found none",
    ),
    "npy, an id twice": (
        npy_pooled,
        lambda: rewrite(MINE_IDS, set_line(4, SOME[0])),
        f"mine.npy: image '{SOME[0]}': expected once, found twice",
    ),
    "npy, an unknown id": (
        npy_pooled,
        lambda: rewrite(MINE_IDS, set_line(4, "nobody")),
        f"image '{SOME[3]}': expected features in mine.npy, .*first 'nobody'; .*annotations",
    ),
    "npy, cut": (
        npy_pooled,
        lambda: cut(MINE, 7),
        r"mine.npy: expected 72 bytes for float16 \(12, 3\), found 65",
    ),
    "npy, empty": (
        npy_pooled,
        lambda: MINE.write_bytes(b""),
        "mine.npy: expected a .npy file, found something else",
    ),
    "npy, a pickle": (
        npy_pooled,
        lambda: MINE.write_bytes(pickle.dumps(Trap())),
        "mine.npy: expected a .npy file, found something else",
    ),
    "npy, objects": (
        npy_pooled,
        lambda: np.save(MINE, np.array([Trap()] * 12, dtype=object), allow_pickle=True),
        "mine.npy: expected floating-point numbers .*found object",
    ),
    "npy, integers": (
        npy_pooled,
        lambda: change_npy(MINE, lambda x: x.astype(np.int64)),
        r"mine.npy: expected floating-point numbers .*found int64 \(12, 3\)",
    ),
    "npy, flat": (
        npy_pooled,
        lambda: change_npy(MINE, lambda x: x[:, 0]),
        r"mine.npy: expected floating-point numbers .*found float16 \(12,\)",
    ),
    "npy, Fortran's order": (
        npy_pooled,
        lambda: change_npy(MINE, np.asfortranarray),
        r"mine.npy: expected floating-point .*\(12, 3\) in Fortran's order; .*ascontiguousarray",
    ),
    "npy, no regions": (
        npy_regions,
        lambda: change_npy(MINE, lambda x: x[:, :0]),
        r"mine.npy: expected floating-point .*\(15, 0, 3\)",
    ),
    "another kind of file": (
        npy_pooled,
        lambda: MINE.rename(RAW / "mine.npz") and MINE.mkdir(),
        r"mine.npy: expected \*_ims.npy or \*.tsv, found neither",
    ),
    "nothing": (npy_pooled, lambda: MINE.unlink(), "mine.npy: not found; place it there"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_features_are_refused_and_an_older_folder_stays(case):
    write, spoil, message = MALFORMED[case]
    features = write()
    FOLDER.mkdir(parents=True)
    (FOLDER / "card.json").write_text("older")
    spoil()
    with pytest.raises((UserError, DataError), match=message) as caught:
        load(features)
    assert "\n" not in str(caught.value)
    assert [path.name for path in FOLDER.parent.iterdir()] == [FOLDER.name]
    assert [path.read_text() for path in FOLDER.iterdir()] == ["older"]
    assert not Path("sprung").exists()


def test_other_kinds_of_files_are_refused():
    (RAW / "features.h5").touch()
    with pytest.raises(UserError, match="features.h5: expected a folder, .tsv, .mat or .npy"):
        load("features.h5")


def test_two_images_that_a_tsv_cannot_tell_apart_are_refused():
    images = images_of()
    images.loc[3, "file"] = f"copy/COCO_{images['image_id'][0]}.jpg"
    message = "boxes_36.tsv: expected one image that it may call '1000', found '1000' and"
    with pytest.raises(UserError, match=message):
        load(tsv_file(), images)

"""Imported features: every format in its real layout, in the order of the images, in blocks."""

import json

import numpy as np
import pytest
from feature_files import (
    DATASET,
    FOLDER,
    RAW,
    STEMS,
    USED,
    F,
    R,
    coco_folder,
    first_of,
    images_of,
    load,
    lxmert_file,
    mat_with_ids,
    mat_with_json,
    npy_pooled,
    npy_regions,
    npz_regions,
    parquet_pooled,
    regions_of,
    scan_folder,
    truth,
    tsv_file,
    tsv_folder,
    vsepp_folder,
    write_json_of,
)

from benchmark.core.files import write_json
from benchmark.data.feature_folders import sha256_of_items
from benchmark.features import imported_features

WITH_REGIONS = [
    scan_folder,
    coco_folder,
    tsv_file,
    tsv_folder,
    npy_regions,
    npz_regions,
    lxmert_file,
]
POOLED_ONLY = [vsepp_folder, mat_with_json, mat_with_ids, npy_pooled, parquet_pooled]


@pytest.fixture(autouse=True)
def raw_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    RAW.mkdir(parents=True)


def expected_mean(image_id: str) -> list[float]:
    regions = truth(image_id).astype(np.float64)
    return [sum(regions[r, f] for r in range(R)) / R for f in range(F)]


@pytest.mark.parametrize("block", [1, 100, 1 << 24])
@pytest.mark.parametrize("write", WITH_REGIONS)
def test_regions_and_their_means_come_in_the_order_of_the_images(write, block, monkeypatch):
    monkeypatch.setattr(imported_features, "BLOCK", block)
    features = load(write())
    assert set(features) == {"pooled", "regions"}
    assert features["regions"].dtype == features["pooled"].dtype == np.float16
    assert features["regions"].tolist() == [truth(x).astype(np.float16).tolist() for x in USED]
    np.testing.assert_allclose(features["pooled"], [expected_mean(x) for x in USED], rtol=1e-3)


@pytest.mark.parametrize("block", [1, 100, 1 << 24])
@pytest.mark.parametrize("write", POOLED_ONLY)
def test_pooled_features_come_in_the_order_of_the_images(write, block, monkeypatch):
    monkeypatch.setattr(imported_features, "BLOCK", block)
    features = load(write())
    assert set(features) == {"pooled"}
    assert features["pooled"].tolist() == [truth(x)[0].astype(np.float16).tolist() for x in USED]


@pytest.mark.parametrize("write", [scan_folder, tsv_file, mat_with_json])
def test_channels_are_standardised_by_the_training_images(write):
    features = load(write(), standardise=True)
    for name, values in features.items():
        plain = {"pooled": [expected_mean(x) for x in USED], "regions": regions_of(USED)}[name]
        if write is mat_with_json:
            plain = first_of(USED)
        raw = np.asarray(plain, np.float64)
        train = raw[:6].reshape(-1, F)
        scale = np.array([*train.std(0)[:2], 1])  # the last channel never changes
        np.testing.assert_allclose(values, (raw - train.mean(0)) / scale, atol=4e-3)
        assert (values[..., 2] == 0).all()


def test_columns_of_a_mat_are_in_the_order_of_the_json_beside_it():
    """Not of another one in the raw folder; and a folder before the name does not matter."""
    mat_with_json()
    (RAW / "fc7").mkdir()
    for name in ("vgg_feats.mat", "dataset_flickr30k.json"):
        (RAW / name).rename(RAW / "fc7" / name)
    write_json_of(list(reversed(USED)), RAW / "dataset_flickr30k.json")
    features = load("fc7/vgg_feats.mat", images_of("pictures/{}.jpg"))
    assert features["pooled"].tolist() == first_of(USED).astype(np.float16).tolist()


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
    assert listed() == {"file": "f30k_precomp", "sha256": sha256_of_items(shas.split("\n"))}
    listed("boxes_36.tsv", "other")
    load(tsv_file())
    assert listed() == {"file": "boxes_36.tsv", "sha256": "sha of boxes_36.tsv"}

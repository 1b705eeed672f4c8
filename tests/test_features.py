"""Feature folders are read only for the dataset, encoder and items of their card."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmark.core.errors import UserError
from benchmark.data.feature_folders import as_float16, read_array, sha256_of_items

IDS = ["a", "b", "c"]


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "tiny"
    path.mkdir()
    card = {"dataset": "pets", "encoder": "tiny", "items": 3, "items_sha256": sha256_of_items(IDS)}
    (path / "card.json").write_text(json.dumps(card))
    np.save(path / "pooled.npy", np.arange(6, dtype=np.float16).reshape(3, 2))
    return path


def refused(folder: Path, name: str) -> UserError:
    with pytest.raises(UserError) as caught:
        read_array(folder, name, "pets", IDS)
    assert caught.value.do == "delete the folder and run `dvc repro` again"
    return caught.value


def test_features_come_back_as_written(folder):
    array = read_array(folder, "pooled", "pets", IDS)
    assert array.tolist() == [[0, 1], [2, 3], [4, 5]]
    array[0, 0] = 9  # copy-on-write
    assert np.load(folder / "pooled.npy")[0, 0] == 0


@pytest.mark.parametrize(
    ("change", "expected", "found"),
    [
        ({"dataset": "cars"}, "dataset 'pets'", "dataset 'cars'"),
        ({"encoder": "big"}, "encoder 'tiny'", "encoder 'big'"),
        ({"items_sha256": "0"}, f"items_sha256 {sha256_of_items(IDS)!r}", "items_sha256 '0'"),
    ],
)
def test_features_of_something_else_are_refused(folder, change, expected, found):
    card = json.loads((folder / "card.json").read_text()) | change
    (folder / "card.json").write_text(json.dumps(card))
    error = refused(folder, "pooled")
    assert error.where == str(folder / "card.json")
    assert (error.expected, error.found) == (expected, found)


def test_values_beyond_float16_are_clipped():
    clipped = as_float16(np.array([1.5, 7e4, -1e9, np.nan], np.float32))
    assert clipped.dtype == np.float16
    assert clipped[:3].tolist() == [1.5, 65504, -65504] and np.isnan(clipped[3])

"""Feature folders: read for the dataset, encoder and items of their card alone."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refused

from benchmark.data.feature_folders import (
    Words,
    as_float16,
    card_of,
    read_array,
    sha256_of_items,
    verified,
    write_card,
)

IDS = ["a", "b", "c"]


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "tiny"
    path.mkdir()
    card = {
        "dataset": "pets",
        "encoder": "tiny",
        "items": 3,
        "items_sha256": sha256_of_items(IDS),
    }
    (path / "card.json").write_text(json.dumps(card))
    np.save(path / "pooled.npy", np.arange(6, dtype=np.float16).reshape(3, 2))
    return path


def test_features_come_back_as_written(folder):
    array = read_array(folder, "pooled", "pets", IDS)
    assert array.tolist() == [[0, 1], [2, 3], [4, 5]]
    array[0, 0] = 9  # copy-on-write
    assert np.load(folder / "pooled.npy")[0, 0] == 0


@pytest.mark.parametrize(
    ("key", "wrong", "right"),
    [
        ("dataset", "cars", "pets"),
        ("encoder", "big", "tiny"),
        ("items_sha256", "0", sha256_of_items(IDS)),
    ],
)
def test_features_of_something_else_are_refused(folder, key, wrong, right):
    path = folder / "card.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: wrong}))
    with refused(f"{path}: {key}", right, wrong, "dvc repro"):
        read_array(folder, "pooled", "pets", IDS)


@pytest.mark.parametrize("place", ["here", "/elsewhere"])
def test_a_card_names_weights_wherever_their_folder_lies(place):
    class Settings:
        def model_dump(self) -> dict:
            return {"weights": f"{place}/minilm", "size": 3}

    feature_set = SimpleNamespace(
        image=None,
        proposals=None,
        words=None,
        sentence=Settings(),
        folder="data/features/pets/tiny",
        dataset="pets",
    )
    card = card_of(feature_set, IDS, SimpleNamespace(sha256="p"))
    assert card == {
        "dataset": "pets",
        "encoder": "tiny",
        "items": 3,
        "items_sha256": sha256_of_items(IDS),
        "settings": {"weights": "minilm", "size": 3},
        "prepared_sha256": "p",
    }


def test_values_beyond_float16_are_clipped():
    clipped = as_float16(np.array([1.5, 7e4, -1e9, np.nan], np.float32))
    assert clipped.dtype == np.float16
    assert clipped[:3].tolist() == [1.5, 65504, -65504] and np.isnan(clipped[3])


def test_a_changed_file_is_noticed(folder):
    write_card(folder, json.loads((folder / "card.json").read_text()))
    assert len(verified(folder)) == 64
    np.save(folder / "pooled.npy", np.zeros((3, 2), np.float16))
    with refused(folder / "pooled.npy", "sha256"):
        verified(folder)
    (folder / "pooled.npy").unlink()
    with refused(folder / "pooled.npy", found="nothing"):
        verified(folder)


def test_features_of_other_tables_are_refused(folder):
    card = json.loads((folder / "card.json").read_text())
    write_card(folder, card | {"prepared_sha256": "a"})
    assert verified(folder, tables="a") == verified(folder)
    with refused(folder / "card.json", "present data/prepared"):
        verified(folder, tables="b")


def test_words_without_a_vector_are_left_out_and_counted(tmp_path):
    words = Words(("a", "b"), np.array([[1, 2], [3, 4]], np.float32))
    words.save(tmp_path)
    assert Words.read(tmp_path).words == ("a", "b")
    assert words.ids(["b", "x", "a"]).tolist() == [1, 0]
    assert words.rows(["x", "b"]).tolist() == [[3, 4]]
    counts = words.coverage([["a", "x"], ["x"], []])
    assert (counts["tokens"], counts["known_tokens"]) == (3, 1)
    assert counts["captions_without_known_words"] == 2

"""A row of a season from elsewhere: its name, its files, and the row that it
replaces."""

from pathlib import Path

import numpy as np
import pytest
from external_files import embeddings, record, refused_score, result, save_pair, score
from refusals import check

from benchmark.core.files import sha256
from benchmark.data import results

pytestmark = pytest.mark.usefixtures("external_season")


def test_a_record_names_the_digests_of_its_files():
    score(*save_pair(*embeddings()))
    files = record().options["files"]
    assert files == {name: sha256(Path(name)) for name in ("a.npy", "b.npy")}
    assert record().image_features["weights"] == {
        "file": "a.npy",
        "sha256": files["a.npy"],
    }
    assert record().options["given"] == "embeddings"


def test_files_of_one_name_are_told_by_their_folders():
    images, captions = embeddings()
    for folder, rows in (("images", images), ("captions", captions)):
        Path(folder).mkdir()
        np.save(f"{folder}/x.npy", rows)
    score("--images", "images/x.npy", "--captions", "captions/x.npy")
    assert list(record().options["files"]) == ["captions/x.npy", "images/x.npy"]


def test_a_row_of_the_same_name_and_seed_is_replaced():
    images, captions = embeddings()
    score(*save_pair(images, captions))
    before = record().metrics
    score(*save_pair(images, -captions))
    assert record().metrics != before
    score(*save_pair(images, captions), "--seed", 1)
    assert record(seed=1).metrics == before
    rows = results.read_kept("try", "open")
    assert {"clip/0", "clip/1"} <= set(rows)


@pytest.mark.parametrize("name", ["claims", "scan_t2i_avg"])
def test_a_name_that_is_taken_is_refused(name):
    error = refused_score(*save_pair(*embeddings()), name=name)
    check(error, "--name", found=repr(name))
    assert not Path("seasons/try/external.yaml").exists()


def test_what_is_kept_of_a_row_is_read_again():
    score(*save_pair(*embeddings()))
    kept = result()
    assert kept.retrieved.keys() == {"i2t", "t2i"}
    assert kept.costs.scoring.seconds["per_pair"] > 0

"""What embeddings, scores and ranks from elsewhere have in common: how they are read,
and the row of a season that they become, with its name and files."""

from pathlib import Path

import numpy as np
import pytest
from external_files import (
    embeddings,
    record,
    refused_score,
    result,
    save_pair,
    score,
    three_pairs,
)
from refusals import check

from benchmark.commands.external_scores import (
    ReadingOptions,
    _names_of,
    names_of,
    notes_on_equal_captions,
)
from benchmark.core.files import sha256
from benchmark.data import results

pytestmark = pytest.mark.usefixtures("external_season")


def test_a_record_has_the_options_that_differ_from_their_defaults():
    assert ReadingOptions().facts == {} == ReadingOptions(first_rank=0).facts
    given = ReadingOptions(numbers="bits", first_rank=1, not_found="0", depth=5)
    assert given.facts == {
        "numbers": "bits",
        "first_rank": 1,
        "not_found": "0",
        "depth": 5,
    }


def test_images_are_known_by_their_numbers_and_captions_by_those_of_annotations():
    data = three_pairs()
    assert names_of(data)["captions"] == [["x", "y", "z"]]
    data.images["imgid"] = ["5", "6", "7"]
    data.captions["sentid"] = [11, 12, 13]
    names = names_of(data)
    assert names["images"][0] == ["a", "b", "c"] and ["5", "6", "7"] in names["images"]
    assert ["11", "12", "13"] in names["captions"]


@pytest.mark.parametrize(("apart", "count"), [(0.0, 0), (1e-6, 1), (5.0, 1)])
def test_equal_captions_with_other_numbers_are_noted(apart, count):
    data = three_pairs()
    data.captions["text"] = ["x", "y", "x"]
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, apart]])
    notes = notes_on_equal_captions(data, rows, "b.npy")
    assert len(notes) == count
    if notes:
        assert "b.npy: 1 captions" in notes[0] and "'x'" in notes[0]
        assert ("rounding" in notes[0]) == (apart < 1)


def test_equal_captions_of_one_group_may_have_other_numbers():
    data = three_pairs()
    data.captions["text"] = ["x", "y", "x"]
    data.split("test").group_of_caption = np.array([0, 1, 0])
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 5.0]])
    assert notes_on_equal_captions(data, rows, "b.npy") == []


def test_lists_of_what_was_retrieved_are_not_compared():
    data = three_pairs()
    data.captions["text"] = ["x", "y", "x"]
    rows = np.array([[1.0, -np.inf], [0.0, 1.0], [-np.inf, 1.0]])
    assert notes_on_equal_captions(data, rows, "b.npy") == []


# A row of a season --------------------------------------------------------------------


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


def test_each_file_has_a_name_of_its_own_in_a_record():
    apart = [Path("images/clip/x.npy"), Path("captions/clip/x.npy")]
    assert _names_of(apart) == ["images/clip/x.npy", "captions/clip/x.npy"]
    assert _names_of([Path("a/x.npy"), Path("b/x.npy")]) == ["a/x.npy", "b/x.npy"]
    assert _names_of([Path("a/x.npy"), Path("a/y.npy")]) == ["x.npy", "y.npy"]
    assert _names_of([Path("x.npy"), Path("a/x.npy")]) == ["x.npy", "a/x.npy"]


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

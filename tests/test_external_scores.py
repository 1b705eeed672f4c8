"""What embeddings, scores and ranks from elsewhere have in common."""

import numpy as np
import pytest
from external_files import three_pairs

from benchmark.commands.external_scores import (
    ReadingOptions,
    names_of,
    notes_on_equal_captions,
)


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


def test_lists_of_what_was_retrieved_are_not_compared():
    data = three_pairs()
    data.captions["text"] = ["x", "y", "x"]
    rows = np.array([[1.0, -np.inf], [0.0, 1.0], [-np.inf, 1.0]])
    assert notes_on_equal_captions(data, rows, "b.npy") == []

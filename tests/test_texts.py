"""Captions and phrases to encode."""

import pandas as pd
import pytest

from benchmark.data.prepared_tables import Prepared
from benchmark.encode.texts import captions_of, phrases_of


@pytest.fixture
def data(tmp_path) -> Prepared:
    """A training image with one caption, and a test image with two."""
    images = pd.DataFrame({"image_id": ["t0", "i0"], "split": ["train", "test"]})
    images["group"] = images["image_id"]
    captions = pd.DataFrame(
        {
            "caption_id": ["c0", "c1", "c2"],
            "image_id": ["t0", "i0", "i0"],
            "text": ["A dog.", "A cat.", "A dog."],
            "split": ["train", "test", "test"],
        }
    )
    regions = pd.DataFrame(
        {
            "image_id": ["i0", "t0", "i0"],
            "phrase": ["a cat", "a dog", "a dog"],
        }
    )
    return Prepared(images, captions, regions, card={}, folder=tmp_path)


def test_every_caption_is_a_text_of_its_own(data):
    texts = captions_of(data)
    assert texts.ids == ["c0", "c1", "c2"]
    assert texts.texts == ["A dog.", "A cat.", "A dog."]
    assert texts.is_train.tolist() == [True, False, False]


def test_a_phrase_is_a_text_once_and_for_training_where_a_training_image_has_it(data):
    texts = phrases_of(data)
    assert texts.ids == texts.texts == ["a cat", "a dog"]
    assert texts.is_train.tolist() == [False, True]

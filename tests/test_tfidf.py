"""Tf-idf vectors of captions, fitted to the training captions."""

import numpy as np
import pytest
from made_inputs import CAPTIONS, IS_TRAIN, WORDS

from benchmark.features import tfidf
from benchmark.season.parameters import SentenceEncoder


def vectors(captions: list[str], size: int | None = None) -> np.ndarray:
    settings = SentenceEncoder(size=size)
    return tfidf.encode(captions, IS_TRAIN, WORDS, settings)[0]


def test_captions_of_the_same_words_are_equal_and_all_directions_keep_lengths():
    captions = [*CAPTIONS[:-2], "w03 w07 w07", "w07, w03; w07!"]
    whole = vectors(captions, 20)
    assert whole.shape == (50, 20)
    np.testing.assert_allclose(whole[-1], whole[-2], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-5)


def test_other_captions_change_nothing():
    changed = [*CAPTIONS[:40], *["w00"] * 10]
    np.testing.assert_array_equal(vectors(CAPTIONS)[:40], vectors(changed)[:40])


@pytest.mark.parametrize("caption", ["dog", "a dog"])
def test_equal_training_captions_have_vectors_and_a_share(caption):
    captions = [caption, caption, "dog", "cat"]
    is_train = np.array([True, True, False, False])
    found, facts = tfidf.encode(captions, is_train, WORDS, SentenceEncoder())
    assert np.allclose(found[:2] @ found[:2].T, 1) and not found[3].any()
    assert facts["variance_kept"] == 1.0

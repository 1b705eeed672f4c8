"""What every sentence encoder promises."""

import pytest
from made_inputs import CAPTIONS, IS_TRAIN, SMALL, WORDS
from refusals import refused

from benchmark.features import bilstm_max, hglmm, mean_words, tfidf
from benchmark.season.parameters import SentenceEncoder

ENCODERS = {
    "mean_words": mean_words,
    "tfidf": tfidf,
    "hglmm": hglmm,
    "bilstm_max": bilstm_max,
}


@pytest.mark.parametrize("name", ["mean_words", "tfidf", "bilstm_max"])
def test_a_caption_without_known_words_is_zero(name):
    captions = [*CAPTIONS[:-2], "never seen", " ... "]
    vectors, _ = ENCODERS[name].encode(captions, IS_TRAIN, WORDS, SMALL)
    assert (vectors[-2:] == 0).all() and (vectors[:-2] != 0).any(axis=1).all()


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("mean_words", 4, "3, that of the word vectors"),
        ("bilstm_max", 4, "6, two directions"),
        ("tfidf", 21, "at most 20, "),
        ("hglmm", 13, "at most 12, "),
    ],
)
def test_an_impossible_size_is_refused(name, size, expected):
    settings = SentenceEncoder(size=size, centres=2, hidden=3)
    with refused(f"{name}: size", expected, size):
        ENCODERS[name].encode(CAPTIONS, IS_TRAIN, WORDS, settings)

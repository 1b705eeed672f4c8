"""Which text encoders and word vectors a row read, beside those of its paper."""

import pytest
from builders import outcome, record, standing

from benchmark.boards.encoders import (
    is_of_features,
    other_encoder,
    reads_other_words,
)
from benchmark.core.departures import Aspect, Departure

WORDS = Departure(aspect=Aspect.WORD_VECTORS, here="trained")
FROM_WORDS = Departure(
    aspect=Aspect.TEXT_VECTORS, texts="sentence", here="glove", reads_words=True
)
TOKENS = Departure(aspect=Aspect.TEXT_VECTORS, texts="contextual", reads_words=True)
NETWORK = Departure(aspect=Aspect.IMAGE_NETWORK, here="drawn")


@pytest.mark.parametrize(
    ("departure", "is_words"),
    [(WORDS, True), (FROM_WORDS, True), (TOKENS, False), (NETWORK, False)],
)
def test_word_vectors_are_read_as_such_or_below_an_encoder(departure, is_words):
    assert reads_other_words(record(departures=[departure])) == is_words
    assert is_of_features(departure) == (departure is not TOKENS)


@pytest.mark.parametrize(
    ("folder", "of_paper", "other"),
    [
        ("hglmm_1000", "bilstm_max", "hglmm_1000"),
        ("phrases_bilstm_max", "bilstm_max", ""),
        ("bilstm_max_h512", "bilstm_max", ""),
        ("", "bilstm_max", ""),
        ("hglmm_1000", None, ""),
    ],
)
def test_another_encoder_is_known_by_the_folder_of_its_vectors(folder, of_paper, other):
    cell = outcome("a", 0, text_features={"encoder": folder})
    assert other_encoder(standing("a", [cell], sentence=of_paper)) == other

"""Which text encoders and word vectors a row read, beside those of its paper, and which
encoders have read the captions of test before."""

from dataclasses import replace

import pytest
from builders import board, outcome, record, standing

from benchmark.boards.encoders import (
    captions_seen,
    is_of_features,
    other_encoder,
    reads_other_words,
)
from benchmark.core.records import Aspect, Departure

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


MINI, MINE = "all-MiniLM-L6-v2", "mine"


@pytest.mark.parametrize(
    ("weights", "dataset", "reader", "corpus"),
    [
        (MINI, "flickr8k", "flickr8k", "flickr30k"),
        (MINI, "small", "flickr8k", "flickr30k"),
        (MINI, "flickr30k", "flickr30k", "flickr30k"),
        (MINI, "mscoco", "mscoco", None),
        (MINI, "shapes", "shapes", None),
        ("infersent1.pkl", "flickr8k", "flickr8k", "snli"),
        ("random weights", "flickr8k", "flickr8k", None),
        (MINE, "flickr30k", "flickr30k", None),
        (MINE, "flickr8k", "flickr8k", "flickr8k"),
        (MINE, "photos", "folder", "photos"),
        (None, "flickr8k", "flickr8k", None),
    ],
)
def test_an_encoder_has_seen_what_lies_in_its_training_data(
    weights, dataset, reader, corpus
):
    """Of `mine` the season file says so. A larger corpus does not lie in a smaller."""
    text = {"weights": weights} if weights else {"vocabulary": 7}
    row = standing("a", [outcome("a", 0, text_features=text)])
    on = board(row, dataset=dataset, reader=reader)
    on = replace(on, trained_on={MINE: ["flickr8k", "photos"]})
    seen = captions_seen(on, row)
    assert (seen and seen.corpus) == corpus
    if seen:
        assert seen.encoder.weights == weights and seen.encoder.source


def test_an_external_row_goes_by_its_own_name():
    cell = outcome("clip", 0, family="brought", text_features={"encoder": "e"})
    row = standing("clip", [cell])
    on = board(row, reader="flickr8k")
    assert captions_seen(on, row) is None
    on = replace(on, trained_on={"clip": ["flickr30k"]})
    assert captions_seen(on, row).corpus == "flickr30k"

"""What a row was run with: text encoders and word vectors, options beside those of
another row, and settings of its times."""

from dataclasses import replace

import pytest
from builders import board, cost, outcome, record, standing

from benchmark.boards.row_settings import (
    Unequal,
    board_time_settings,
    captions_seen,
    is_of_features,
    other_encoder,
    reads_other_words,
    settings_of_pair,
    time_settings,
)
from benchmark.core.records import Aspect, Departure

WORDS = Departure(aspect=Aspect.WORD_VECTORS, here="trained")
FROM_WORDS = Departure(
    aspect=Aspect.TEXT_VECTORS, texts="sentence", here="glove", reads_words=True
)
TOKENS = Departure(aspect=Aspect.TEXT_VECTORS, texts="contextual", reads_words=True)
NETWORK = Departure(aspect=Aspect.IMAGE_NETWORK, here="drawn")
RATE = {"options": {"rate": 1.0, "epochs": 3}, "scaled": ["rate", "epochs"]}


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


# Options of two rows ------------------------------------------------------------------


def row_at(name: str, rate: float, in_paper: float = 0.1, **facts: object):
    options = {"options": {"rate": rate, "epochs": 3}, "scaled": ["rate", "epochs"]}
    cell = outcome(name, 0, **options, **facts)
    return standing(name, [cell], options={"rate": in_paper})


def test_what_is_scaled_to_two_values_is_unequal():
    settings = settings_of_pair(row_at("a", 1.0), row_at("b", 2.0))
    assert settings.unequal == [Unequal("rate", 1.0, 2.0)] and settings.evened == []
    assert str(settings.unequal[0]) == "rate 1.0 and 2.0"


def test_what_the_paper_has_different_and_the_season_has_not_is_evened():
    settings = settings_of_pair(row_at("a", 1.0, 0.1), row_at("b", 1.0, 0.2))
    assert settings.unequal == [] and settings.evened == ["rate"]
    assert settings_of_pair(row_at("a", 1.0), row_at("b", 1.0)) == ([], [])


def test_rows_that_are_not_trained_alike_have_no_settings_in_common():
    other = row_at("b", 2.0, method="vse")
    assert settings_of_pair(row_at("a", 1.0), other) == ([], [])


# Times --------------------------------------------------------------------------------


def test_settings_are_those_of_trainings_and_scorings():
    row = standing("a", [outcome("a", 0), outcome("a", 1)])
    (setting,) = time_settings(row)
    assert (setting.machine, setting.threads, setting.stages_at_once) == ("m", 1, 1)
    elsewhere = cost(machine="n", training=9.0)
    object.__setattr__(row.outcomes[1], "trainings", (elsewhere,))
    assert [setting.machine for setting in time_settings(row)] == ["m", "n"]


def test_stages_at_once_and_devices_make_settings_of_their_own():
    row = standing("a", [outcome("a", 0)])
    beside = cost(training=9.0).model_copy(update={"jobs": 2, "device": "cuda"})
    object.__setattr__(row.outcomes[0], "trainings", (beside,))
    alone, both = time_settings(row)
    if alone.stages_at_once > 1:
        alone, both = both, alone
    assert both.stages_at_once == 2 and "2 stages at once" in str(both)
    assert (both.threads, both.fingerprint) == (None, "")  # of a GPU


def test_external_rows_have_no_times():
    row = standing("a", [outcome("a", 0)])
    external = standing("b", [outcome("b", 0, family="brought")])
    assert board_time_settings(board(row, external)) == time_settings(row)

"""Vectors of the words of captions: words.json and words.npy."""

from pathlib import Path

from benchmark import encoders
from benchmark.core.files import replaced
from benchmark.data.feature_folders import card_of, write_card
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import tokenise
from benchmark.season.parameters import FeatureSet, Params


def encode(params: Params, feature_set: FeatureSet, data: Prepared) -> None:
    """Write the vectors of the words of all captions; only training captions are fitted to."""
    tokens = [tokenise(text) for text in data.captions["text"]]
    is_train = data.captions["split"] == "train"
    corpus = [row for row, train in zip(tokens, is_train, strict=True) if train]
    keep = {word for row in tokens for word in row}
    words, facts = encoders.load(feature_set.encoder).words(corpus, feature_set.words, keep)
    with replaced(Path(feature_set.folder)) as folder:
        words.save(folder)
        write_card(folder, card_of(feature_set, list(words.words), data) | facts)

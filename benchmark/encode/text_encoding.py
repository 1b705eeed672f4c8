"""Vectors of texts, whether captions or phrases: encode, standardise, write the feature folder."""

from pathlib import Path

import numpy as np

from benchmark import encoders
from benchmark.core.files import read_json, replaced, write_json
from benchmark.data.feature_folders import as_float16, card_of
from benchmark.data.word_vectors import Words
from benchmark.encode.standardisation import Standardiser
from benchmark.season.parameters import FeatureSet


def encode_texts(
    feature_set: FeatureSet, name: str, texts: list[str], is_train: np.ndarray, ids: list[str]
) -> None:
    """Write <name>.npy, one row per text, in their order.

    Encoder and standardisation are fitted to the texts where `is_train`; without any, each vector
    is a single zero, and training reports what it lacks. `ids` identify the texts in the card.
    """
    vectors, facts = np.zeros((len(texts), 1)), {}
    if is_train.any():
        encoder = encoders.load(feature_set.encoder)
        words = Words.read(Path(feature_set.source))
        vectors, facts = encoder.encode(texts, is_train, words, feature_set.sentence)
        if feature_set.sentence.standardise:
            vectors = Standardiser.of(vectors, is_train)(vectors)
    origin = read_json(Path(feature_set.source) / "card.json")["vectors"]
    with replaced(Path(feature_set.folder)) as folder:
        np.save(folder / f"{name}.npy", as_float16(vectors))
        card = card_of(feature_set, ids) | {"vectors": origin} | facts
        write_json(folder / "card.json", card)

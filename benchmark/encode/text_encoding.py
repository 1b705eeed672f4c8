"""Vectors of texts, whether captions or phrases: encode, standardise, write the feature folder."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark import encoders
from benchmark.core.files import read_json, replaced
from benchmark.data.feature_folders import as_float16, card_of, verified, write_card
from benchmark.data.prepared_tables import Prepared
from benchmark.data.word_vectors import Words
from benchmark.encode.standardisation import Standardiser
from benchmark.season.parameters import FeatureSet


@dataclass(frozen=True)
class Texts:
    """What is encoded, in the order of the rows."""

    name: str  # of the array
    texts: list[str]
    ids: list[str]
    is_train: np.ndarray  # bool


def encode_texts(feature_set: FeatureSet, data: Prepared, of: Texts) -> None:
    """Write <name>.npy, one row per text.

    Encoder and standardisation are fitted to the training texts; without any, each vector is a
    single zero, and training reports what it lacks.
    """
    source = Path(feature_set.source)
    facts = {
        "words_sha256": verified(source),
        "vectors": read_json(source / "card.json")["vectors"],
    }
    vectors = np.zeros((len(of.texts), 1))
    if of.is_train.any():
        encoder = encoders.load(feature_set.encoder)
        settings, words = feature_set.sentence, Words.read(source)
        vectors, more = encoder.encode(of.texts, of.is_train, words, settings)
        facts |= more
        if settings.standardise:
            vectors = Standardiser.of(vectors, of.is_train)(vectors)
    with replaced(Path(feature_set.folder)) as folder:
        np.save(folder / f"{of.name}.npy", as_float16(vectors))
        write_card(folder, card_of(feature_set, of.ids, data) | facts)

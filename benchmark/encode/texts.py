"""Vectors of words, of captions and of phrases."""

from pathlib import Path

import numpy as np
import pandas as pd

from benchmark import features
from benchmark.core.files import read_json, replaced
from benchmark.data.feature_folders import as_float16, card_of, verified, write_card
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import tokenise
from benchmark.data.word_vectors import Words
from benchmark.features.standardisation import Standardiser
from benchmark.season.parameters import FeatureSet


def words(feature_set: FeatureSet, data: Prepared) -> None:
    """Write words.json and words.npy: vectors of the words of all captions; only training captions
    are fitted to."""
    tokens = [tokenise(text) for text in data.captions["text"]]
    is_train = data.captions["split"] == "train"
    corpus = [row for row, train in zip(tokens, is_train, strict=True) if train]
    keep = {word for row in tokens for word in row}
    found, facts = features.load(feature_set.encoder).words(corpus, feature_set.words, keep)
    with replaced(Path(feature_set.folder)) as folder:
        found.save(folder)
        write_card(folder, card_of(feature_set, list(found.words), data) | facts)


def sentences(feature_set: FeatureSet, data: Prepared) -> None:
    """Write sentence.npy (C, F) in the order of the caption table."""
    texts, ids = data.captions["text"].tolist(), data.captions["caption_id"].tolist()
    is_train = (data.captions["split"] == "train").to_numpy()
    _encode(feature_set, data, "sentence", texts, ids, is_train)


def phrases(feature_set: FeatureSet, data: Prepared) -> None:
    """Write phrase.npy (V, F): the distinct phrases by first appearance in the region table.

    The phrases of training images are fitted to, each of them once.
    """
    number, distinct = pd.factorize(data.regions["phrase"])
    is_train = np.zeros(len(distinct), bool)
    is_train[number[data.split("train").region_rows]] = True
    texts = distinct.tolist()
    _encode(feature_set, data, "phrase", texts, texts, is_train)


def _encode(
    of: FeatureSet,
    data: Prepared,
    name: str,
    texts: list[str],
    ids: list[str],
    is_train: np.ndarray,
) -> None:
    """Write <name>.npy, one row per text.

    Encoder and standardisation are fitted to the training texts; without any, each vector is a
    single zero, and training reports what it lacks.
    """
    source = Path(of.source)
    made_of = read_json(source / "card.json")["vectors"]
    facts = {"words_sha256": verified(source), "vectors": made_of}
    vectors = np.zeros((len(texts), 1))
    if is_train.any():
        encoder, settings = features.load(of.encoder), of.sentence
        vectors, more = encoder.encode(texts, is_train, Words.read(source), settings)
        facts |= more
        if settings.standardise:
            vectors = Standardiser.of(vectors, is_train)(vectors)
    with replaced(Path(of.folder)) as folder:
        np.save(folder / f"{name}.npy", as_float16(vectors))
        write_card(folder, card_of(of, ids, data) | facts)

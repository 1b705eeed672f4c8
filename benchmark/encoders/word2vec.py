"""Captions as the mean of their words' word2vec vectors (skip-gram, Mikolov et al. 2013)."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors, Word2Vec

from benchmark.errors import UserError
from benchmark.files import sha256
from benchmark.params import SentenceEncoder
from benchmark.text import tokenise

# Assumed: no paper trains its own vectors. Small corpora, so all words, and passes until about
# five million words were seen: with fewer, words that share contexts (red, blue) stay alike.
TRAINING = {"sg": 1, "window": 5, "negative": 5, "min_count": 1}
WORDS_SEEN, MOST_EPOCHS = 5_000_000, 100
SEED = 0  # one fit per dataset: cells of different seeds share their features


def encode(
    captions: Sequence[str], is_train: np.ndarray, settings: SentenceEncoder
) -> tuple[np.ndarray, dict]:
    """Mean vectors (C, size) float32 and the card's facts. A caption of unknown words is zero."""
    words = [tokenise(text) for text in captions]
    if settings.vectors:
        vectors, origin = _loaded(Path(settings.vectors), settings.size)
    else:
        corpus = [row for row, train in zip(words, is_train, strict=True) if train]
        vectors, origin = _trained(corpus, settings.size)
    means = np.stack([_mean(row, vectors) for row in words])
    known = sum(word in vectors for row in words for word in row)
    total = sum(map(len, words))
    facts = {"words": len(vectors), "known_tokens": known, "tokens": total}
    return means, origin | facts


def _mean(words: list[str], vectors: KeyedVectors) -> np.ndarray:
    rows = [vectors[word] for word in words if word in vectors]
    return np.mean(rows, axis=0) if rows else np.zeros(vectors.vector_size, np.float32)


def _trained(corpus: list[list[str]], size: int) -> tuple[KeyedVectors, dict]:
    # One worker: with more, gensim's updates race and two runs differ.
    words = sum(map(len, corpus))
    epochs = min(math.ceil(WORDS_SEEN / max(words, 1)), MOST_EPOCHS)
    model = Word2Vec(corpus, vector_size=size, seed=SEED, workers=1, epochs=epochs, **TRAINING)
    facts = {"vectors": "trained on the training captions", "epochs": epochs, "seed": SEED}
    return model.wv, facts | TRAINING


def _loaded(path: Path, size: int) -> tuple[KeyedVectors, dict]:
    try:
        vectors = KeyedVectors.load_word2vec_format(path, binary=True)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path.name}: expected a word2vec .bin file ({error})") from error
    if vectors.vector_size != size:
        raise UserError(
            f"{path.name}: expected vectors of size {size}, found {vectors.vector_size}"
        )
    return vectors, {"vectors": path.name, "sha256": sha256(path)}

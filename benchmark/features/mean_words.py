"""A caption as the mean of the vectors of its words: paper 003, Table 6.6, row
"word2vec"."""

from collections.abc import Sequence

import numpy as np

from benchmark.core.errors import UserError
from benchmark.data.feature_folders import Words
from benchmark.data.vocabularies import tokenise
from benchmark.season.parameters import SentenceEncoder


def encode(
    captions: Sequence[str],
    is_train: np.ndarray,
    words: Words,
    settings: SentenceEncoder,
) -> tuple[np.ndarray, dict]:
    """Mean vectors (C, E) float32, and facts for the card.

    A caption without known words is zero. Nothing is fitted, so `is_train` is not used.
    Raises UserError if `settings` ask for another size than that of the word vectors.
    """
    size = words.vectors.shape[1]
    if settings.size not in (None, size):
        expected = f"{size}, that of the word vectors"
        advice = "leave it out, or choose other words"
        raise UserError("mean_words: size", expected, settings.size, advice)
    tokens = list(map(tokenise, captions))
    means = np.zeros((len(captions), size), dtype=np.float32)
    for c, row in enumerate(tokens):
        vectors = words.rows(row)
        if len(vectors):
            means[c] = vectors.mean(axis=0)
    return means, words.coverage(tokens)

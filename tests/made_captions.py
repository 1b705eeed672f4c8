"""Captions of made-up words, and vectors of these words.

Helper module, not a test.
"""

import numpy as np

from benchmark.data.feature_folders import Words
from benchmark.season.parameters import SentenceEncoder

SMALL = SentenceEncoder(centres=2, hidden=3)
VOCABULARY = [f"w{n:02}" for n in range(20)]


def words_with_vectors(vocabulary: list[str], size: int = 3) -> Words:
    rows = [
        np.random.default_rng(int(word[1:])).normal(size=size) for word in vocabulary
    ]
    return Words(tuple(vocabulary), np.array(rows, dtype=np.float32))


def captions_of(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(VOCABULARY, rng.integers(2, 8))) for _ in range(count)]


CAPTIONS = captions_of(50)
IS_TRAIN = np.arange(50) < 40
WORDS = words_with_vectors(VOCABULARY)

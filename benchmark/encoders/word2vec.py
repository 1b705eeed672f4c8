"""Vectors of words: skip-gram (Mikolov et al. 2013), trained here or loaded from a file.

The formats of files are in word_vector_files.py.
Captions are in lower case (benchmark.data.vocabularies.tokenise), vector files are not: only their
lower-case entries are used. The papers match case, so names and sentence starts differ.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gensim.models import Word2Vec

from benchmark.core.errors import UserError
from benchmark.core.files import sha256
from benchmark.data.word_vectors import FRAME, Words
from benchmark.encoders.word_vector_files import READERS
from benchmark.season.parameters import WordVectors

# Assumed: no paper trains its own vectors. The corpora are small, so all words are kept, and epochs
# repeat until about five million words were seen: with fewer, words that share contexts (red, blue)
# stay alike.
TRAINING = {"sg": 1, "window": 5, "negative": 5, "min_count": 1}
WORDS_SEEN, MOST_EPOCHS = 5_000_000, 100
SEED = 0  # one fit per dataset: cells of different seeds share their features


def words(
    corpus: Sequence[Sequence[str]], settings: WordVectors, keep: set[str]
) -> tuple[Words, dict]:
    """Words with their vectors, in alphabetical order, and facts for the card.

    `corpus` are the tokenised training captions. Vectors that are trained here are those of their
    words. Vectors of a file are those of `keep`, the words of all captions, and of FRAME: there, a
    word that only test captions have is not fitted to them. Raises UserError for a corpus without
    words, and for a malformed file.
    """
    if settings.vectors is None:
        return _trained(corpus, settings.size)
    return _loaded(Path(settings.vectors), settings.size, keep | set(FRAME))


def _trained(corpus: Sequence[Sequence[str]], size: int) -> tuple[Words, dict]:
    count = sum(map(len, corpus))
    if count == 0:
        raise UserError(
            where="word2vec",
            expected="words in the training captions",
            found="none",
            do="check the captions of the dataset, or name a file of vectors in the season's "
            "`words`",
        )
    epochs = min(math.ceil(WORDS_SEEN / count), MOST_EPOCHS)
    # One worker: with more, gensim's updates race and two runs differ.
    model = Word2Vec(corpus, vector_size=size, seed=SEED, workers=1, epochs=epochs, **TRAINING)
    facts = {"vectors": "trained on the training captions", "epochs": epochs, "seed": SEED}
    vectors = dict(zip(model.wv.index_to_key, model.wv.vectors, strict=True))
    return _sorted(vectors), facts | TRAINING


def _loaded(path: Path, size: int, keep: set[str]) -> tuple[Words, dict]:
    if path.suffix not in READERS:
        raise UserError(
            where=path.name,
            expected="a word2vec .bin or a GloVe .txt",
            found=repr(path.suffix),
            do="unpack the file, or name another one in the season's `words`",
        )
    vectors = READERS[path.suffix](path, size, keep)
    if not vectors.keys() & (keep - set(FRAME)):
        raise UserError(
            where=path.name,
            expected="vectors for words of the captions",
            found="none",
            do="check that the file is of their language",
        )
    if not all(np.isfinite(vector).all() for vector in vectors.values()):
        raise UserError(
            where=path.name, expected="numbers", found="NaN or infinity", do="get the file again"
        )
    return _sorted(vectors), {"vectors": path.name, "sha256": sha256(path), "case": "lower"}


def _sorted(vectors: dict[str, np.ndarray]) -> Words:
    order = sorted(vectors)
    return Words(tuple(order), np.stack([vectors[word] for word in order]).astype(np.float32))

"""A caption as tf-idf weights of its words, made dense: the cheap control.

Paper 002, Section 4.3, finds results close to its Fisher vectors' on top of tf-idf and does not
say which. Here: scikit-learn's (raw counts, smoothed idf, unit length, no stop words), then the
leading singular directions, without subtracting a mean. Assumed.
"""

from collections.abc import Sequence

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmark.core.errors import UserError
from benchmark.data.vocabularies import tokenise
from benchmark.data.word_vectors import Words
from benchmark.season.parameters import SentenceEncoder

SIZE = 1000  # assumed; less where the training captions do not span as much
SEED = 0  # one fit per dataset: cells of different seeds share their features


def encode(
    captions: Sequence[str], is_train: np.ndarray, words: Words, settings: SentenceEncoder
) -> tuple[np.ndarray, dict]:
    """Vectors (C, size) float32 and the card's facts.

    Fitted on the training captions; their words, not those of `words`, are the known ones. A
    caption without any is zero.
    """
    train = [text for text, fitted in zip(captions, is_train, strict=True) if fitted]
    vectorizer = TfidfVectorizer(
        tokenizer=tokenise, token_pattern=None, lowercase=False, dtype=np.float32
    )
    try:
        weights = vectorizer.fit_transform(train)
    except ValueError as error:  # empty vocabulary
        raise UserError(
            "tfidf: expected words in the training captions, found none; "
            "check the captions of the dataset"
        ) from error
    svd = TruncatedSVD(_size(settings.size, min(weights.shape)), random_state=SEED).fit(weights)
    vectors = svd.transform(vectorizer.transform(captions))
    facts = {
        "terms": weights.shape[1],
        "variance_kept": float(svd.explained_variance_ratio_.sum()),
        "seed": SEED,
    }
    return vectors.astype(np.float32), facts


def _size(wanted: int | None, most: int) -> int:
    if wanted is not None and wanted > most:
        raise UserError(
            f"tfidf: size: expected at most {most}, the smaller of training captions and their "
            f"words, found {wanted}; lower it or leave it out"
        )
    return wanted or min(SIZE, most)

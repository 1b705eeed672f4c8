"""A caption as the tf-idf weights of its words, reduced to a dense vector: a cheap
baseline.

Paper 002, Section 4.3, reports that tf-idf comes close to its Fisher vectors, and does
not say which variant. Assumed: that of scikit-learn (raw counts, smoothed idf, unit
length, no stop words), projected on the leading singular directions without subtracting
a mean.
"""

from collections.abc import Sequence
from itertools import compress

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmark.core.errors import UserError
from benchmark.data.feature_folders import Words
from benchmark.data.vocabularies import tokenise
from benchmark.season.parameters import SentenceEncoder

SIZE = 1000  # assumed; less if the training captions do not span as much
SEED = 0  # one fit per dataset: cells of different seeds share their features


def encode(
    captions: Sequence[str],
    is_train: np.ndarray,
    words: Words,
    settings: SentenceEncoder,
) -> tuple[np.ndarray, dict]:
    """Vectors (C, size) float32, and facts for the card.

    Fitted on the training captions. The known words are theirs, and `words` is not
    used; a caption without known words is zero. Raises UserError if there are no words
    to fit to, and if `settings` ask for a larger size than they span.
    """
    train = list(compress(captions, is_train))
    vectorizer = TfidfVectorizer(
        tokenizer=tokenise,
        token_pattern=None,
        lowercase=False,
        dtype=np.float32,
    )
    try:
        weights = vectorizer.fit_transform(train)
    except ValueError as error:  # empty vocabulary
        raise UserError(
            "tfidf",
            expected="words in the training captions",
            found="none",
            do="check the captions of the dataset",
        ) from error
    most = min(weights.shape)
    if settings.size is not None and settings.size > most:
        raise UserError(
            "tfidf: size",
            expected=f"at most {most}, the smaller number of training captions and words",
            found=settings.size,
            do="lower it or leave it out",
        )
    vectors = vectorizer.transform(captions)
    kept = 1.0
    if weights.shape[1] == 1:  # which TruncatedSVD refuses, and nothing is to reduce
        vectors = vectors.toarray()
    else:
        svd = TruncatedSVD(settings.size or min(SIZE, most), random_state=SEED)
        with np.errstate(invalid="ignore", divide="ignore"):  # of equal captions
            svd.fit(weights)
        vectors = svd.transform(vectors)
        ratio = float(svd.explained_variance_ratio_.sum())
        kept = ratio if np.isfinite(ratio) else 1.0
    facts = {"terms": weights.shape[1], "variance_kept": kept, "seed": SEED}
    return vectors.astype(np.float32), facts

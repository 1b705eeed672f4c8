"""A caption as the mean of the vectors of its words."""

import numpy as np

from benchmark.data.feature_folders import Words
from benchmark.features import mean_words
from benchmark.season.parameters import SentenceEncoder


def test_each_known_word_counts_as_often_as_it_occurs():
    words = Words(("cat", "dog"), np.array([[3, 0], [0, 6]], np.float32))
    captions = ["A dog, a dog and a cat", "nothing known"]
    is_train = np.ones(2, bool)
    vectors, facts = mean_words.encode(captions, is_train, words, SentenceEncoder())
    assert vectors.tolist() == [[1, 4], [0, 0]]
    assert (facts["tokens"], facts["known_tokens"]) == (9, 3)

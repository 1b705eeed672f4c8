"""Equal items have equal scores, whatever a product of matrices makes of their
places."""

from itertools import product

import numpy as np
import pytest

from benchmark.scoring.equal_items import EqualScores, first_equal
from benchmark.scoring.ranking import spans

IMAGES, CAPTIONS = 11, 17


def test_first_equal_compares_numbers():
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [2.0, 1e-30], [2.0, 0.0]])
    assert first_equal(rows).tolist() == [0, 1, 0, 3, 1]


def test_first_equal_of_rows_of_unequal_lengths():
    words = [np.array([3, 5]), np.array([3]), np.array([3, 5, 0]), np.array([3])]
    assert first_equal(words).tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (4, 3), (IMAGES, CAPTIONS)])
@pytest.mark.parametrize(
    "kinds", [(IMAGES, CAPTIONS), (4, CAPTIONS), (IMAGES, 3), (2, 2)]
)
def test_equal_items_have_the_scores_of_the_first_one(size, kinds):
    rng = np.random.default_rng(0)
    image_kind = rng.integers(kinds[0], size=IMAGES)
    caption_kind = rng.integers(kinds[1], size=CAPTIONS)
    first_image, first_caption = first_equal(image_kind), first_equal(caption_kind)
    # all of them unequal
    scores = rng.normal(size=(IMAGES, CAPTIONS)).astype(np.float32)
    equals = EqualScores(first_image, first_caption, size)
    levelled = np.full_like(scores, np.nan)
    for _ in range(2):  # passes
        for rows, columns in product(spans(IMAGES, size[0]), spans(CAPTIONS, size[1])):
            before = scores[rows, columns].copy()
            levelled[rows, columns] = equals.level(before, rows, columns)
            assert np.array_equal(before, scores[rows, columns])
        for image, caption in product(range(IMAGES), range(CAPTIONS)):
            expected = scores[first_image[image], first_caption[caption]]
            assert levelled[image, caption] == expected

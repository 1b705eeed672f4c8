"""What random scores reach, and what is near it."""

import numpy as np
import pytest

from benchmark.boards import chance


def test_random_scores_rank_1_5_and_10_of_the_images_first():
    assert chance.rsum_by_chance(2, 100) == pytest.approx(2 * (1 + 5 + 10))
    assert chance.rsum_by_chance(1, 5) == pytest.approx(20 + 100 + 100)


def test_images_of_a_group_are_one_choice():
    """Drawn by captions, which are as many in large groups as these have images."""
    assert chance.choices_of(np.arange(8)) == 8
    assert chance.choices_of(np.repeat(np.arange(4), 2)) == 4
    assert chance.choices_of(np.array([0, 0, 0, 1])) == pytest.approx(16 / 10)


@pytest.mark.parametrize(("images", "rsum"), [(12, 433.3), (5, 520.0), (1, 600.0)])
def test_of_few_images_it_is_nearer_to_random_scores_than_to_perfect_ones(images, rsum):
    # three times the recall of random scores would be more than there is
    assert chance.near_chance(rsum + 0.1, 2, images) == ""
    assert chance.near_chance(rsum - 0.1, 2, images).startswith(
        f"rsum {rsum - 0.1:.1f} is less"
    )

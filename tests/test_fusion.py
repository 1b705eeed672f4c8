"""Late fusion against Eqs. 6.8 to 6.11 of the CycleMatch paper, by hand."""

import numpy as np
import pytest

from benchmark.data.rank_keys import I2T, T2I, RankKey
from benchmark.scoring import RefusedError, fusion
from benchmark.scoring.ranking import Tile
from benchmark.scoring.relevance import Relevance

# Two images and three captions.
FIRST = np.array([[0.5, -0.5, 0.3], [-0.2, 0.4, 0.0]], np.float32)
SECOND = np.array([[0.1, 0.1, -0.9], [0.6, 0.2, 0.2]], np.float32)
THIRD = np.array([[-1.0, 0.1, 0.4], [0.2, -0.3, 0.6]], np.float32)


def tile_of(score: np.ndarray) -> Tile:
    images, captions = score.shape
    return Tile(np.arange(images), np.arange(captions), {I2T: score})


def weights(
    scores: list[np.ndarray], *fold_of: np.ndarray
) -> dict[RankKey, np.ndarray]:
    images, captions = scores[0].shape
    areas = fusion.Areas(
        len(scores), Relevance(np.arange(images), np.arange(captions), *fold_of)
    )
    for number, score in enumerate(scores):
        areas.add(number, tile_of(score))
    return areas.weights()


def adaptive_in_one_tile(
    scores: list[np.ndarray], *fold_of: np.ndarray
) -> dict[RankKey, np.ndarray]:
    tile = tile_of(scores[0])
    return fusion.fused(scores, weights(scores, *fold_of), tile.rows, tile.columns)


def test_weights_are_inverse_positive_areas_normalised():
    # Areas of image 0: 0.5 + 0.3 = 0.8 and 0.1 + 0.1 = 0.2, so 1.25 and 5; of image 1:
    # 0.4 and 1.
    of_images = weights([FIRST, SECOND])[I2T]
    np.testing.assert_allclose(of_images, [[0.2, 1 / 1.4], [0.8, 0.4 / 1.4]], atol=1e-6)
    # With areas 0.5 and 0.8 of the third: 1.25, 5, 2 of 8.25; 2.5, 1, 1.25 of 4.75.
    of_images = weights([FIRST, SECOND, THIRD])[I2T]
    expected = [
        [1.25 / 8.25, 2.5 / 4.75],
        [5 / 8.25, 1 / 4.75],
        [2 / 8.25, 1.25 / 4.75],
    ]
    np.testing.assert_allclose(of_images, expected, atol=1e-6)
    np.testing.assert_allclose(of_images.sum(0), 1)


def test_adaptive_scores_are_those_by_hand():
    fused = adaptive_in_one_tile([FIRST, SECOND])
    expected = [
        [0.2 * 0.5 + 0.8 * 0.1, 0.2 * -0.5 + 0.8 * 0.1, 0.2 * 0.3 + 0.8 * -0.9],
        [(-0.2 + 0.4 * 0.6) / 1.4, (0.4 + 0.4 * 0.2) / 1.4, (0.4 * 0.2) / 1.4],
    ]
    np.testing.assert_allclose(fused[I2T], expected, atol=1e-6)
    # Areas of captions: 0.5, 0.4, 0.3 in the first score, 0.7, 0.3, 0.2 in the second.
    expected = [
        [(0.7 * 0.5 + 0.5 * 0.1) / 1.2, (0.7 * -0.2 + 0.5 * 0.6) / 1.2],
        [(0.3 * -0.5 + 0.4 * 0.1) / 0.7, (0.3 * 0.4 + 0.4 * 0.2) / 0.7],
        [(0.2 * 0.3 + 0.3 * -0.9) / 0.5, (0.2 * 0.0 + 0.3 * 0.2) / 0.5],
    ]
    np.testing.assert_allclose(fused[T2I], np.transpose(expected), atol=1e-6)
    # In a fold image 0 has its captions 0 and 1 alone: areas 0.5 and 0.2.
    of_folds = adaptive_in_one_tile(
        [FIRST, SECOND], np.array([0, 1]), np.array([0, 0, 1])
    )
    share = (1 / 0.5) / (1 / 0.5 + 1 / 0.2)
    expected = [share * 0.5 + (1 - share) * 0.1, share * -0.5 + (1 - share) * 0.1]
    np.testing.assert_allclose(
        of_folds[RankKey("i2t", is_of_folds=True)][0, :2], expected, atol=1e-6
    )
    assert not np.allclose(fused[I2T][0, :2], expected, atol=1e-3)


def test_a_score_that_is_nowhere_positive_takes_all_the_weight():
    """The limit of Eq. 6.10 for a small area; nothing is divided by zero."""
    flat = -np.ones((2, 3), np.float32)
    fused = adaptive_in_one_tile([FIRST, flat])
    np.testing.assert_allclose(fused[I2T], flat, atol=1e-6)
    np.testing.assert_allclose(fused[T2I], flat, atol=1e-6)
    both = adaptive_in_one_tile([flat, 3 * flat])  # of two such scores each takes half
    np.testing.assert_allclose(both[I2T], 2 * flat)
    np.testing.assert_allclose(weights([flat, np.zeros((2, 3))])[I2T], 0.5)


# Whole images and regions (two-branch paper, Eq. 8) ---


def test_the_mean_distance_of_a_captions_phrases_is_added_by_hand():
    whole = np.array([[0.2, 0.4, 0.6], [0.8, 1.0, 1.2]])
    # image 1 has no region for phrase 2
    nearest = np.array([[0.1, 0.3, 0.5], [0.7, 0.9, np.nan]])
    owners = np.array([0, 0, 2])  # caption 1 has no phrase
    regions = fusion.mean_of_phrases(nearest, owners, whole)
    np.testing.assert_allclose(regions, [[0.2, 0.4, 0.5], [0.8, 1.0, 1.2]])
    mixed = fusion.weighted(whole, regions, 0.3)
    np.testing.assert_allclose(mixed, [[-0.2, -0.4, -0.57], [-0.8, -1.0, -1.2]])
    assert (fusion.weighted(whole, regions, 0.0) == -whole).all()


def test_distances_are_those_of_unit_vectors():
    x = np.random.default_rng(0).normal(size=(6, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    expected = np.linalg.norm(x[:, None] - x[None], axis=-1)
    np.testing.assert_allclose(fusion.distance(x @ x.T), expected, atol=1e-7)
    # as bfloat16 rounds
    assert fusion.distance(np.array([1.0000001, 1.004])).tolist() == [0, 0]
    assert np.isnan(fusion.distance(np.array([np.nan, 1.0]))).tolist() == [True, False]
    with pytest.raises(RefusedError, match="need cosines, found scores from -3 to 2"):
        fusion.distance(np.array([2.0, np.nan, -3.0]))
    with pytest.raises(RefusedError, match="need cosines"):
        fusion.distance(np.array([0.5, 1.02]))

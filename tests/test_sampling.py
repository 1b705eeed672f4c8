"""Batches: nothing forgotten, nothing twice, and siblings that are siblings.
Pseudo-classes: as many as requested, without gaps, and the same every time."""

import numpy as np
import pytest

from benchmark.contracts.methods import NotApplicableError
from benchmark.train.sampling import batches, cluster, image_batches

IRREGULAR = np.repeat(np.arange(9), [1, 2, 7, 2, 1, 7, 5, 2, 7])  # captions per image
SHUFFLED = np.random.default_rng(0).permutation(IRREGULAR)


def epoch(
    owners: np.ndarray, size: int, per_image: int = 1, seed: int = 0
) -> list[np.ndarray]:
    return list(batches(owners, size, per_image, np.random.default_rng(seed)))


@pytest.mark.parametrize("owners", [IRREGULAR, SHUFFLED])
@pytest.mark.parametrize("size", [2, 8, 34, 100])
def test_every_caption_is_drawn_once(owners, size):
    minibatches = epoch(owners, size)
    assert sorted(np.concatenate(minibatches).tolist()) == list(range(len(owners)))
    assert [len(rows) for rows in minibatches[:-1]] == [size] * (len(minibatches) - 1)


@pytest.mark.parametrize("owners", [IRREGULAR, SHUFFLED])
@pytest.mark.parametrize("per_image", [2, 3, 5])
def test_siblings_are_of_the_same_image_and_different(owners, per_image):
    minibatches = epoch(owners, 8, per_image)
    assert [len(rows) for rows in minibatches] == [8 * per_image] * 4 + [2 * per_image]
    families = np.concatenate(minibatches).reshape(-1, per_image)
    # drawn once each
    assert sorted(families[:, 0].tolist()) == list(range(len(owners)))
    for drawn, *others in families.tolist():
        assert all(owners[other] == owners[drawn] for other in others)
        enough = min(per_image, (owners == owners[drawn]).sum())
        assert len({drawn, *others}) == enough, (
            "a caption twice, though there were enough"
        )
        if enough > 1:
            assert drawn not in others


def test_siblings_are_uniform():
    owners = np.repeat([0, 1], [6, 2])
    counts = np.zeros((8, 8), dtype=int)
    rng = np.random.default_rng(3)
    draws = 1200
    for _ in range(draws):
        for rows in batches(owners, 8, 2, rng):
            np.add.at(counts, tuple(rows.reshape(-1, 2).T), 1)
    assert counts[6:, 6:].tolist() == [[0, draws], [draws, 0]]
    drawn = counts[:6, :6]
    assert drawn.diagonal().tolist() == [0] * 6
    expected = draws / 5
    chi_square = ((drawn[~np.eye(6, dtype=bool)] - expected) ** 2 / expected).sum()
    # 24 degrees of freedom: above 60 once in 15,000 correct samplers
    assert chi_square < 60


def test_a_last_batch_of_one_drawn_caption_is_dropped_with_its_siblings():
    # its rows would all show one image: no negative, and no batch statistics
    assert [len(rows) for rows in epoch(np.arange(9), 4)] == [4, 4]
    assert [len(rows) for rows in epoch(np.arange(9), 7)] == [7, 2]
    assert [len(rows) for rows in epoch(np.repeat(np.arange(3), 3), 4, 2)] == [8, 8]


# One caption of every image -----------------------------------------------------------


def image_epoch(owners: np.ndarray, size: int, seed: int = 0) -> list[np.ndarray]:
    return list(image_batches(owners, size, np.random.default_rng(seed)))


@pytest.mark.parametrize("owners", [IRREGULAR, SHUFFLED])
@pytest.mark.parametrize("size", [2, 3, 9, 100])
def test_every_image_is_drawn_once_with_a_caption_of_its_own(owners, size):
    minibatches = image_epoch(owners, size)
    drawn = np.concatenate(minibatches)
    last = 9 % size
    assert [len(rows) for rows in minibatches[:-1]] == [min(size, 9)] * (
        len(minibatches) - 1
    )
    if last == 1:
        assert len(set(owners[drawn].tolist())) == len(drawn) == 8
    else:
        assert sorted(owners[drawn].tolist()) == list(range(9))


def test_every_caption_of_an_image_is_as_likely_as_the_others():
    owners = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [5, 1, 2]))
    counts, rng, draws = np.zeros(8, dtype=int), np.random.default_rng(3), 1500
    for _ in range(draws):
        for rows in image_batches(owners, 3, rng):
            counts[rows] += 1
    assert counts[owners == 1].tolist() == [draws]
    for image, captions in ((0, 5), (2, 2)):
        expected = draws / captions
        chi_square = ((counts[owners == image] - expected) ** 2 / expected).sum()
        # 4 degrees of freedom: above 24 once in 10,000 correct samplers
        assert chi_square < 24


# Pseudo-classes -----------------------------------------------------------------------

CENTRES = np.array([[0, 0, 9], [9, 0, 0], [0, 9, 0], [-9, -9, -9]])


def blobs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Float16 features around four centres, and which."""
    rng = np.random.default_rng(seed)
    owners = rng.permutation(np.repeat(np.arange(4), [3, 9, 5, 8]))
    return (CENTRES[owners] + rng.normal(0, 0.5, (25, 3))).astype(np.float16), owners


@pytest.mark.parametrize("count", [26, 0, -1])
def test_more_clusters_than_images_or_none_are_not_applicable(count):
    with pytest.raises(
        NotApplicableError, match=f"expected 1 to 25 clusters, .* found {count}$"
    ):
        cluster(blobs()[0], count, seed=0)


def test_three_distinct_images_leave_none_of_six_clusters_empty():
    features = np.repeat(CENTRES[:3], 4, axis=0).astype(np.float16)
    labels = cluster(features, 6, seed=0)
    assert sorted(set(labels)) == [0, 1, 2]
    assert len(set(zip(labels, np.repeat(range(3), 4), strict=True))) == 3

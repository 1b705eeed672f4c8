"""Pseudo-classes: as many as requested, without gaps, and the same every time."""

import numpy as np
import pytest

from benchmark.contracts.methods import NotApplicableError
from benchmark.train.sampling import cluster

CENTRES = np.array([[0, 0, 9], [9, 0, 0], [0, 9, 0], [-9, -9, -9]])


def blobs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Float16 features around four centres, and which."""
    rng = np.random.default_rng(seed)
    owners = rng.permutation(np.repeat(np.arange(4), [3, 9, 5, 8]))
    return (CENTRES[owners] + rng.normal(0, 0.5, (25, 3))).astype(np.float16), owners


def test_obvious_blobs_are_found():
    features, owners = blobs()
    labels = cluster(features, 4, seed=0)
    assert labels.dtype == np.int64 and sorted(set(labels)) == [0, 1, 2, 3]
    assert len(set(zip(labels, owners, strict=True))) == 4  # each blob one label and back


def test_the_same_seed_gives_the_same_labels():
    features = np.random.default_rng(1).normal(size=(60, 5)).astype(np.float16)
    first, again, other = (cluster(features, 20, seed) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("count", [26, 0, -1])
def test_more_clusters_than_images_or_none_are_not_applicable(count):
    with pytest.raises(NotApplicableError, match=f"expected 1 to 25 clusters, .* found {count}$"):
        cluster(blobs()[0], count, seed=0)


def test_images_that_are_alike_leave_no_gaps():
    """Three distinct pictures cannot fill six clusters, and an empty class would never learn."""
    features = np.repeat(CENTRES[:3], 4, axis=0).astype(np.float16)
    labels = cluster(features, 6, seed=0)
    assert sorted(set(labels)) == [0, 1, 2]
    assert len(set(zip(labels, np.repeat(range(3), 4), strict=True))) == 3

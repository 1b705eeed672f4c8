"""Which captions meet in a batch, and which images are of one class. Batches are arrays
of rows."""

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from benchmark.contracts.methods import NotApplicableError


def batches(
    image_of_caption: np.ndarray,
    batch_size: int,
    captions_per_image: int,
    rng: np.random.Generator,
) -> Iterator[np.ndarray]:
    """One epoch: every caption is drawn once, in random order, `batch_size` at a time.
    With captions_per_image > 1 each is followed by others of its image, so that there
    are captions_per_image rows per draw (two-branch paper, neighbourhood sampling); the
    only caption of an image is repeated."""
    by_image = np.argsort(image_of_caption, kind="stable")
    count = np.bincount(image_of_caption)
    first = np.cumsum(count) - count
    position = np.empty_like(by_image)  # of a caption among those of its image
    position[by_image] = np.arange(len(by_image)) - first[image_of_caption[by_image]]
    for drawn in _cut_into_batches(rng.permutation(len(image_of_caption)), batch_size):
        if captions_per_image == 1:
            yield drawn
            continue
        # A random start and consecutive steps around the ring of siblings: while there
        # are enough, this never gives the caption itself, nor a sibling twice.
        image = image_of_caption[drawn]
        rows = [drawn]
        ring = np.maximum(count[image] - 1, 1)
        offset = rng.integers(0, ring)
        for step in range(captions_per_image - 1):
            place = (position[drawn] + 1 + (offset + step) % ring) % count[image]
            rows.append(by_image[first[image] + place])
        yield np.stack(rows, axis=1).ravel()


def image_batches(
    image_of_caption: np.ndarray, batch_size: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """One epoch: every image is drawn once, in random order, with one of its
    captions."""
    order = np.argsort(image_of_caption, kind="stable")
    count = np.bincount(image_of_caption)
    first = np.cumsum(count) - count
    images = rng.permutation(np.flatnonzero(count))
    captions = order[first[images] + rng.integers(0, count[images])]
    return _cut_into_batches(captions, batch_size)


def _cut_into_batches(drawn: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Batches of `size`. The last one may be smaller; one of a single row is dropped,
    as it has no negative."""
    pieces = (drawn[start : start + size] for start in range(0, len(drawn), size))
    return (piece for piece in pieces if len(piece) > 1)


def cluster(features_IF: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Pseudo-classes: the k-means cluster of each image, numbered from 0 without gaps,
    (I,) int64. The baseline of the instance-loss paper (table 4): 3,000 and 10,000
    clusters of 113,287 images. Empty clusters, as of equal images, get no number.
    Raises NotApplicableError for more clusters than images."""
    if not 1 <= count <= len(features_IF):
        raise NotApplicableError(
            f"k-means: expected 1 to {len(features_IF)} clusters, at most one for each "
            f"training image, found {count}"
        )
    with warnings.catch_warnings():
        # fewer distinct images than clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(count, n_init=1, random_state=seed)
        labels = means.fit_predict(features_IF.astype(np.float32))
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)

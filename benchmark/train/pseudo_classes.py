"""Pseudo-classes: k-means clusters of image features, in place of the groups.

The baseline of the instance-loss paper (table 4): 3,000 and 10,000 clusters of 113,287 images.
"""

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from methods import NotApplicableError


def cluster(features_IF: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Cluster of each image, numbered from 0 without gaps: (I,) int64.

    Equal images can leave clusters empty; these get no number. Raises NotApplicableError for more
    clusters than images.
    """
    if not 1 <= count <= len(features_IF):
        raise NotApplicableError(
            f"k-means: expected 1 to {len(features_IF)} clusters, as many as there are training "
            f"images, found {count}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct images than clusters
        labels = KMeans(count, n_init=1, random_state=seed).fit_predict(
            features_IF.astype(np.float32)
        )
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)

"""Eqs. 6.8 to 6.11 of the CycleMatch paper, pair by pair: loops over whole matrices of
scores.

Scores have one row per image and one column per caption. What is fused has one row per
query.
"""

import numpy as np

ZERO = 1e-12  # the smallest area, so that nothing is divided by zero


def average(scores):
    """Eq. 6.8, the same in both directions."""
    equal = np.full((len(scores), len(scores[0])), 1 / len(scores))
    mean = weighted(scores, equal)
    return {"i2t": mean, "t2i": mean.T}


def adaptive(scores):
    """Eq. 6.11: image queries and caption queries have weights of their own."""
    turned = [score.T for score in scores]
    return {
        "i2t": weighted(scores, weights(scores)),
        "t2i": weighted(turned, weights(turned)),
    }


def weights(scores):
    """Eqs. 6.9 and 6.10: of each score, one weight for each row."""
    shares = np.empty((len(scores), len(scores[0])))
    for q in range(len(scores[0])):
        areas = [sum(max(float(s), 0.0) for s in score[q]) for score in scores]
        inverse = [1 / max(area, ZERO) for area in areas]
        shares[:, q] = [part / sum(inverse) for part in inverse]
    return shares


def weighted(scores, shares):
    """In the precision of `scores`; `shares` (scores, queries)."""
    fused = np.zeros_like(scores[0])
    for score, share in zip(scores, shares, strict=True):
        for q, row in enumerate(score):
            for item, s in enumerate(row):
                fused[q, item] += fused.dtype.type(share[q]) * s
    return fused


def within_folds(scores, fold_of_image, fold_of_caption, fuse=adaptive):
    shape = scores[0].shape
    # pairs of two folds have no score
    fused = {"i2t": np.full(shape, -np.inf), "t2i": np.full(shape[::-1], -np.inf)}
    for fold in sorted(set(fold_of_image)):
        images, captions = np.ix_(fold_of_image == fold, fold_of_caption == fold)
        of_fold = fuse([score[images, captions] for score in scores])
        fused["i2t"][images, captions] = of_fold["i2t"]
        fused["t2i"][captions.T, images.T] = of_fold["t2i"]
    return fused

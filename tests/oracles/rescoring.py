"""Fusion of scores, Eqs. 6.8 to 6.11 of the CycleMatch paper, pair by pair; and
corrections of scores for hubs, query by query: loops over whole matrices.

`scores` to be fused have one row per image and one column per caption; what is fused
has one row per query. `scores` to be corrected have one row per query and one column
per item, `bank` one row per query of the bank.
"""

import math

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


# Corrections --------------------------------------------------------------------------


def nnn(scores, bank, k, alpha):
    """Nearest neighbour normalisation: s minus alpha times the mean of the item's k
    largest."""
    corrected = []
    for row in scores:
        corrected.append([])
        for item, s in enumerate(row):
            nearest = sorted((float(of[item]) for of in bank), reverse=True)[:k]
            corrected[-1].append(float(s) - alpha * sum(nearest) / len(nearest))
    return corrected


def inverted_softmax(scores, bank, beta):
    """P(query | item) among the queries of the bank."""
    corrected = []
    for row in scores:
        corrected.append([])
        for item, s in enumerate(row):
            total = sum(math.exp(beta * float(of[item])) for of in bank)
            corrected[-1].append(math.exp(beta * float(s)) / total)
    return corrected


def best_item(row):
    return max(range(len(row)), key=lambda item: row[item])


def qb_norm(scores, bank, beta):
    # "dynamic": only where the best item is that of a bank's query
    activation_set = {best_item(row) for row in bank}
    corrected = []
    for row in scores:
        if best_item(row) in activation_set:
            corrected += inverted_softmax([row], bank, beta)
        else:
            corrected.append([float(s) for s in row])
    return corrected


def dual_softmax(scores, beta):
    prior = inverted_softmax(scores, scores, beta)
    return [
        [float(s) * p for s, p in zip(row, of, strict=True)]
        for row, of in zip(scores, prior, strict=True)
    ]

"""Corrections of scores for hubs, query by query: loops over whole matrices.

`scores` has one row per query and one column per item, `bank` one row per query of the
bank.
"""

import math


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

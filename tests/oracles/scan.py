"""SCAN, Lee et al. 2018, equations 1-12 and 14-16, one scalar or vector at a time in
float64.

Where the paper leaves room, and what is done here:

- A column (i-t) or row (t-i) of thresholded cosines that is all zero has no norm to
  divide by; its normalised values are 0, so it gets attention like any other zero.
- The cosine with a zero vector is undefined; it is 0 here.
- The words and regions that eq. 2 mixes are taken as given. Whether they are unit
  vectors is not said beside the equation; it is the caller's choice (table 4 has a row
  on that for images). For that row the official code replaces eq. 1 by the product of a
  region as it is and a unit word: `products` in place of `cosines`. Eq. 4 is a cosine
  all the same.
- Eqs. 5 and 7 can be read as a power of the logarithm. The stated limit (the maximum,
  as lambda2 grows) only holds for (1 / lambda2) * log(sum), which is what `lse` does.
  No mean inside.
- Eqs. 11 and 12 are for one pair. How a batch is reduced is not said: the sum, as the
  official code. Two batch rows of the same image are not discussed either (negatives
  are "not I", "not T"): by image id here, or by row as the official code, if every row
  has an id of its own. An image that fills several rows is counted once a row by the
  sum of eq. 11. A pair without any negative adds nothing.
- Eq. 10's text says dot product; with unit vectors that is the cosine. No threshold
  there.
- Eqs. 14 and 15 do not spell the GRU out. This is PyTorch's (gates r, z, n; reset
  applied after the recurrent product, with its own bias), starting from zeros.
- Lambda1 of i-t average is 4 in tables 1 and 2 and 10 in table 3, for the same recalls.
  The appendix refers to the margin by an equation number that is the GRU's; eq. 11 or
  12 is meant.
"""

import math

import numpy as np

from oracles.layers import cosine, dot, gru, unit


def positive(x):
    """[x]_+ of the text under eq. 1 and of eqs. 11 and 12."""
    return max(float(x), 0.0)


def cosines(regions, words):
    """Eq. 1 for all pairs: s[i][j] of region i and word j."""
    return [[cosine(region, word) for word in words] for region in regions]


def products(regions, words):
    """Eq. 1 without its denominator: the first stage of the official code's
    `--no_imgnorm`."""
    return [[dot(region, word) for word in words] for region in regions]


def softmax(values, inverse_temperature):
    """Eq. 3 for one region (or word): weights over the other side that add up to 1."""
    powers = [math.exp(inverse_temperature * value) for value in values]
    return [power / sum(powers) for power in powers]


def combine(weights, vectors):
    """Eq. 2: the weighted sum of vectors."""
    result = np.zeros(len(vectors[0]), dtype=np.float64)
    for j in range(len(vectors)):
        for d in range(len(result)):
            result[d] += weights[j] * float(vectors[j][d])
    return result


def attended_sentence(regions, words, lambda1, first_stage=cosines):
    """Eqs. 1-3, Image-Text: for each of k regions the vector a_i^t, a mix of the n
    words.

    Thresholded cosines of a fixed word j are normalised over the regions i.
    """
    s = np.array(first_stage(regions, words))
    s_bar = np.array([unit([positive(value) for value in column]) for column in s.T]).T
    return [combine(softmax(row, lambda1), words) for row in s_bar]


def attention(regions, words, lambda1, first_stage=cosines):
    """Section 3.1: s, thresholded, is normalised over the words; then a softmax over
    the regions for each word."""
    s = first_stage(regions, words)
    s_bar = np.array([unit([positive(value) for value in row]) for row in s])
    return [softmax(column, lambda1) for column in s_bar.T]


def attended_image(regions, words, lambda1, first_stage=cosines):
    """Text-Image form of eqs. 1-3 (between eqs. 6 and 7): for each of n words the
    vector a_j^v."""
    return [
        combine(alpha, regions)
        for alpha in attention(regions, words, lambda1, first_stage)
    ]


def relevance_i2t(regions, words, lambda1, first_stage=cosines):
    """Eq. 4: the k values R(v_i, a_i^t)."""
    attended = attended_sentence(regions, words, lambda1, first_stage)
    return [cosine(regions[i], attended[i]) for i in range(len(regions))]


def relevance_t2i(regions, words, lambda1, first_stage=cosines):
    """Text-Image form of eq. 4 (just above eq. 7): the n values R'(e_j, a_j^v)."""
    attended = attended_image(regions, words, lambda1, first_stage)
    return [cosine(words[j], attended[j]) for j in range(len(words))]


def lse(relevances, lambda2):
    """Eqs. 5 and 7: LogSumExp pooling."""
    total = 0.0
    for r in relevances:
        total += math.exp(lambda2 * r)
    return math.log(total) / lambda2


def average(relevances):
    """Eqs. 6 and 8: average pooling."""
    return summation(relevances) / len(relevances)


def summation(relevances):
    """SUM of table 4 (no equation number)."""
    return sum(relevances)


def maximum(relevances):
    """MAX of table 4 (no equation number)."""
    return max(relevances)


def sum_max_t2i(regions, words):
    """Eq. 9: for each word its best region by dot product, summed."""
    total = 0.0
    for j in range(len(words)):
        total += maximum([dot(regions[i], words[j]) for i in range(len(regions))])
    return total


def sum_max_i2t(regions, words):
    """Eq. 10: for each region its best word by dot product, summed."""
    total = 0.0
    for i in range(len(regions)):
        total += maximum([dot(regions[i], words[j]) for j in range(len(words))])
    return total


def sum_hinge(scores, group_ids, margin):
    """Eq. 11 summed over the pairs of a batch.

    scores[i][c] is image i with caption c, pair b sits at [b][b]; (i, c) is a negative
    if and only if group_ids[i] != group_ids[c].
    """
    total = 0.0
    for b in range(len(scores)):
        for other in range(len(scores)):
            if group_ids[other] != group_ids[b]:
                # a negative sentence
                total += positive(margin - scores[b][b] + scores[b][other])
                # a negative image
                total += positive(margin - scores[b][b] + scores[other][b])
    return total


def hardest_hinge(scores, group_ids, margin):
    """Eq. 12 summed over the pairs of a batch; negatives as in `sum_hinge`."""
    total = 0.0
    for b in range(len(scores)):
        sentences, images = [], []
        for other in range(len(scores)):
            if group_ids[other] != group_ids[b]:
                sentences.append(scores[b][other])
                images.append(scores[other][b])
        if sentences:
            total += positive(margin - scores[b][b] + maximum(sentences))
            total += positive(margin - scores[b][b] + maximum(images))
    return total


def bi_gru(inputs, forward, backward):
    """Eqs. 14-16: word features (n, D), the mean of both directions' states at each
    word.

    forward and backward are (w_ih, w_hh, b_ih, b_hh) of `gru`; inputs holds the n real
    words of one sentence, no padding, so the backward direction starts at the last
    word.
    """
    ahead, back = gru(inputs, *forward), gru(inputs[::-1], *backward)
    return (ahead + back[::-1]) / 2.0

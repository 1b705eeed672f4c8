"""The losses of `projection` that no other oracle has, by loops over pairs.

s[i][c] is the score of image i and caption c, ids[i] the image that row i shows.
Another caption of the same image is left out: it is neither right nor wrong.
"""

import math


def info_nce(s, ids, scale):
    """(of images, of captions): halves of CLIP's loss, each the mean over the rows of
    minus the log of the probability that a softmax gives to what belongs together."""
    count, halves = len(s), []
    for score in (lambda a, b: s[a][b], lambda a, b: s[b][a]):
        total = 0.0
        for a in range(count):
            powers = 0.0
            for b in range(count):
                if b == a or ids[b] != ids[a]:
                    powers += math.exp(scale * score(a, b))
            total -= math.log(math.exp(scale * score(a, a)) / powers)
        halves.append(total / count / 2)
    return halves


def sigmoid(s, ids, scale, bias):
    """SigLIP: every pair is right or wrong for itself; the sum of all pairs over the
    rows."""
    total = 0.0
    for i in range(len(s)):
        for c in range(len(s)):
            if i == c or ids[i] != ids[c]:
                label = 1 if i == c else -1
                total -= math.log(1 / (1 + math.exp(-label * (scale * s[i][c] + bias))))
    return total / len(s)

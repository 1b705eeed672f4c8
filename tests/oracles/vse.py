"""VSE++: its two losses, and those of `projection` that no other oracle has, by loops
over pairs; VSE-infinity's generalised pooling operator, one number at a time.

s[i][c] is the score of image i and caption c, ids[i] the image that row i shows. In the
losses of `projection`, another caption of the same image is left out: it is neither
right nor wrong.
"""

import math


def losses(s, ids, margin):
    """(hardest, all): of the hardest negative and of all, summed over the rows of a
    batch, each as a pair: of wrong captions for every image, of wrong images for every
    caption."""
    hardest, total = [0.0, 0.0], [0.0, 0.0]
    for row in range(len(s)):
        captions = [0.0]
        images = [0.0]
        for other in range(len(s)):
            if ids[other] != ids[row]:
                captions.append(max(0.0, margin + s[row][other] - s[row][row]))
                images.append(max(0.0, margin + s[other][row] - s[row][row]))
        for side, costs in enumerate((captions, images)):
            hardest[side] += max(costs)
            total[side] += sum(costs)
    return hardest, total


# The losses of `projection` -----------------------------------------------------------


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


# Generalised pooling ------------------------------------------------------------------


def position(place, size):
    """Sine, cosine at `size` / 2 rates, in turn; the first place is 0."""
    numbers = []
    for pair in range(size // 2):
        angle = place / 10000 ** (2 * pair / size)
        numbers += [math.sin(angle), math.cos(angle)]
    return numbers


def weights(states, score, temperature):
    """A softmax over the places, of the product of each one's state with `score`."""
    powers = []
    for state in states:
        product = sum(a * b for a, b in zip(state, score, strict=True))
        powers.append(math.exp(product / temperature))
    return [power / sum(powers) for power in powers]


def pooled(vectors, theta):
    """Sorted values times weights of places, by dimension."""
    result = []
    for d in range(len(vectors[0])):
        values = sorted((vector[d] for vector in vectors), reverse=True)
        result.append(sum(w * v for w, v in zip(theta, values, strict=True)))
    return result

"""VSE-infinity's generalised pooling operator, one number at a time."""

import math


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

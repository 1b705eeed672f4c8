"""Hybrid Gaussian-Laplacian mixture and its Fisher vectors, Klein et al. 2015.

One word, one component, one dimension at a time. A mixture is a list of priors [k] and
three nested lists [k][d]: is it a Laplacian, its location, its scale.

The gradient of the log-likelihood is taken numerically, by central differences in
60-digit decimals with steps of 1e-20, so nothing is derived by hand there. The Fisher
information is the integral of the squared slope of one density, times the share of
words a component expects.

Where the paper leaves room, and what is done here:

- |x - m| has no slope at m: the central difference gives 0.
- A weighted median need not be unique: the least minimiser among the words.
- A component's family is Gaussian where both are equally likely.
"""

import math
from decimal import Decimal, localcontext

from scipy.integrate import quad

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
STEP = Decimal("1e-20")


def log_density(x, laplacian, location, scale):
    """`x` and the parameters are floats or decimals."""
    if isinstance(x, Decimal):
        logarithm, root = Decimal.ln, (2 * PI).sqrt()
    else:
        logarithm, root = math.log, math.sqrt(2 * math.pi)
    if laplacian:
        return -logarithm(2 * scale) - abs(x - location) / scale
    u = (x - location) / scale
    return -logarithm(root * scale) - u * u / 2


def joint(word, mixture):
    """Prior x density, by component."""
    exact = isinstance(word[0], Decimal)
    prior, laplacian, location, scale = mixture
    result = []
    for k in range(len(location)):
        total = 0
        for d in range(len(word)):
            total += log_density(word[d], laplacian[k][d], location[k][d], scale[k][d])
        result.append(
            Decimal(prior[k]) * total.exp() if exact else prior[k] * math.exp(total)
        )
    return result


def log_likelihood(words, mixture):
    total = 0
    for word in words:
        evidence = sum(joint(word, mixture))
        total += evidence.ln() if isinstance(evidence, Decimal) else math.log(evidence)
    return total


def posterior(word, mixture):
    """p(k | x) of each component."""
    parts = joint(word, mixture)
    return [part / sum(parts) for part in parts]


def weighted_median(values, weights):
    """Every value is tried."""
    best, least = None, math.inf
    for candidate in sorted(values):
        distance = 0.0
        for value, weight in zip(values, weights, strict=True):
            distance += weight * abs(value - candidate)
        if distance < least:
            best, least = candidate, distance
    return best


def fitted(values, weights, floor):
    """Most likely (laplacian, location, scale) of one component and dimension.

    The floor is that of a Gaussian's variance and of a Laplacian's scale.
    """
    total = sum(weights)
    mean = sum(w * x for w, x in zip(weights, values, strict=True)) / total
    variance = (
        sum(w * (x - mean) ** 2 for w, x in zip(weights, values, strict=True)) / total
    )
    median = weighted_median(values, weights)
    distance = (
        sum(w * abs(x - median) for w, x in zip(weights, values, strict=True)) / total
    )
    choices = [
        (False, mean, math.sqrt(max(variance, floor))),
        (True, median, max(distance, floor)),
    ]
    likelihoods = []
    for choice in choices:
        likelihood = 0.0
        for x, w in zip(values, weights, strict=True):
            likelihood += w * log_density(x, *choice)
        likelihoods.append(likelihood)
    return choices[likelihoods[1] > likelihoods[0]]


def em_step(words, mixture, floor):
    """One iteration of EM."""
    shares = [posterior(word, mixture) for word in words]
    result = ([], [], [], [])
    for k in range(len(mixture[0])):
        weights = [share[k] for share in shares]
        result[0].append(sum(weights) / len(words))
        row = []
        for d in range(len(words[0])):
            row.append(fitted([word[d] for word in words], weights, floor))
        for part in range(3):
            result[part + 1].append([choice[part] for choice in row])
    return result


def slope(x, laplacian, scale, of_scale):
    """d log f / d location or d scale, of one density around 0."""
    if laplacian:
        return (
            abs(x) / scale**2 - 1 / scale if of_scale else math.copysign(1, x) / scale
        )
    return x**2 / scale**3 - 1 / scale if of_scale else x / scale**2


def fisher_information(laplacian, scale, of_scale):
    """E[slope^2], integrated over one half: it is symmetric."""

    def integrand(x):
        density = math.exp(log_density(x, laplacian, 0.0, scale))
        return density * slope(x, laplacian, scale, of_scale) ** 2

    return 2 * quad(integrand, 0, 60 * scale, epsabs=1e-13, epsrel=1e-13, limit=200)[0]


def gradient(words, mixture, part, k, d):
    """d log-likelihood / d location (part 1) or scale (part 2) of one component and
    dimension."""
    with localcontext() as context:
        context.prec = 60
        exact = [[Decimal(float(x)) for x in word] for word in words]
        values = []
        for step in (STEP, -STEP):
            moved = [
                [[Decimal(float(x)) for x in row] for row in rows]
                for rows in mixture[2:]
            ]
            moved[part - 1][k][d] += step
            values.append(log_likelihood(exact, (*mixture[:2], *moved)))
        return float((values[0] - values[1]) / (2 * STEP))


def fisher_vector(words, mixture):
    """Gradient / sqrt(Fisher information): locations, then scales."""
    prior, laplacian, location, scale = mixture
    result = []
    for part in (1, 2):
        for k in range(len(location)):
            for d in range(len(location[0])):
                per_word = fisher_information(
                    bool(laplacian[k][d]), float(scale[k][d]), part == 2
                )
                information = len(words) * prior[k] * per_word
                result.append(
                    gradient(words, mixture, part, k, d) / math.sqrt(information)
                )
    return result


def normalised(vector):
    """Signed square roots, then unit length; zeros stay."""
    roots = [math.copysign(math.sqrt(abs(value)), value) for value in vector]
    length = math.sqrt(sum(root * root for root in roots))
    return [root / length for root in roots] if length > 0 else roots

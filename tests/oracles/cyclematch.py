"""CycleMatch, Liu 2018, equations 6.1-6.7 and the variants of Table 6.1.

One vector, one pair, one scalar at a time in float64. A batch is B rows, row b an
image, a text and the id of the image.

Where the paper leaves room, and what is done here:

- Eqs. 6.2, 6.4 and 6.5 sum over rows and K negatives: each half is a mean over rows x K
  slots. Slots with a zero hinge, and slots no negative was left for, count as zeros.
- "The top K negative samples": those with the highest hinges, row by row and half by
  half.
- Negatives come from other images only. An image that fills several rows is one
  candidate, its first row; so is all that is computed from it. Every text is a
  candidate.
- T2I2T is I2T2I with images and texts exchanged: its first half keeps f_T2I(t_i) and
  changes v, its second half, the one alpha weighs, keeps v_i and changes t.
"""

import math

from oracles.layers import affine, batch_norm, relu
from oracles.layers import cosine as s  # eq. 6.1
from oracles.two_branch import highest


def common_scale(x, mean, variance, scale, shift, eps):
    deviation = math.sqrt(sum(variance) / len(variance) + eps)
    return [(value - m) / deviation for value, m in zip(x, mean, strict=True)]


def _linear(layer, x):
    weight, bias = layer
    return affine(weight, x, bias)


def third(layers, x):
    """f^(3): fc1 ReLU, fc2 BN ReLU, fc3 BN ReLU. Dropout is off in evaluation mode."""
    h = relu(_linear(layers["fc1"], x))
    h = relu(batch_norm(_linear(layers["fc2"], h), *layers["bn2"]))
    return relu(batch_norm(_linear(layers["fc3"], h), *layers["bn3"]))


def mapping(layers, x):
    """f: f^(3), fc4, BN."""
    return batch_norm(_linear(layers["fc4"], third(layers, x)), *layers["bn4"])


def other_texts(b, ids):
    return [c for c in range(len(ids)) if ids[c] != ids[b]]


def other_images(b, ids):
    rows, seen = [], {ids[b]}
    for c in range(len(ids)):
        if ids[c] not in seen:
            seen.add(ids[c])
            rows.append(c)
    return rows


NEGATIVES = {"image": other_images, "text": other_texts}


def ranking(xs, ys, x_kind, y_kind, ids, m, alpha, k):
    """Eq. 6.2 for any xs and ys: the first half changes y, the second half changes
    x."""
    total = 0.0
    for i in range(len(ids)):
        near = s(xs[i], ys[i])
        first = []
        for n in NEGATIVES[y_kind](i, ids):
            first.append(max(0.0, m - near + s(xs[i], ys[n])))
        second = []
        for n in NEGATIVES[x_kind](i, ids):
            second.append(max(0.0, m - near + s(xs[n], ys[i])))
        total += highest(first, k) + alpha * highest(second, k)
    return total / (len(ids) * k)


def i2t2i_dual(f, g, vs, ts, *rest):
    """Eq. 6.2; f and g are the layers of f_I2T and f_T2I."""
    return ranking([mapping(f, v) for v in vs], ts, "image", "text", *rest)


def i2t2i_reconstructed(f, g, vs, ts, *rest):
    """Eqs. 6.3 and 6.4."""
    tilde = [mapping(g, mapping(f, v)) for v in vs]
    return ranking(tilde, vs, "image", "image", *rest)


def i2t2i_latent(f, g, vs, ts, *rest):
    """Eq. 6.5."""
    here = [third(f, v) for v in vs]
    there = [third(g, mapping(f, v)) for v in vs]
    return ranking(here, there, "image", "image", *rest)


def t2i2t_dual(f, g, vs, ts, *rest):
    return ranking([mapping(g, t) for t in ts], vs, "text", "image", *rest)


def t2i2t_reconstructed(f, g, vs, ts, *rest):
    tilde = [mapping(f, mapping(g, t)) for t in ts]
    return ranking(tilde, ts, "text", "text", *rest)


def t2i2t_latent(f, g, vs, ts, *rest):
    here = [third(g, t) for t in ts]
    there = [third(f, mapping(g, t)) for t in ts]
    return ranking(here, there, "text", "text", *rest)


def latent_match(f, g, vs, ts, *rest):
    """Table 6.1, LatentMatch."""
    here = [third(f, v) for v in vs]
    there = [third(g, t) for t in ts]
    return ranking(here, there, "image", "text", *rest)


def scores(f, g, v, t):
    """Eq. 6.7: visual, textual and latent score of one pair."""
    return s(v, mapping(g, t)), s(mapping(f, v), t), s(third(f, v), third(g, t))

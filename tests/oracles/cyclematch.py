"""CycleMatch, Liu 2018, equations 6.1-6.7 and the variants of Table 6.1.

One vector, one pair, one scalar at a time in float64. A batch is B rows, row b an image, a text
and the id of the image.

Where the paper leaves room, and what is done here:

- Eqs. 6.2, 6.4 and 6.5 sum over rows and K negatives: each half is a mean over rows x K slots.
  Slots with a zero hinge, and slots no negative was left for, count as zeros.
- "The top K negative samples": those with the highest hinges, row by row and half by half.
- Negatives come from other images only. An image that fills several rows is one candidate, its
  first row; so is all that is computed from it. Every text is a candidate.
- T2I2T is I2T2I with images and texts exchanged: its first half keeps f_T2I(t_i) and changes v,
  its second half, the one alpha weighs, keeps v_i and changes t.
"""

import math


def linear(layer, x):
    """(weight (out, in), bias (out,) or None) times x (in,)."""
    weight, bias = layer
    result = []
    for o in range(len(weight)):
        total = 0.0 if bias is None else float(bias[o])
        for i in range(len(x)):
            total += float(weight[o][i]) * float(x[i])
        result.append(total)
    return result


def common_scale(norm, x):
    """Each component minus its mean, all divided by the root of the mean variance."""
    mean, variance, _, _, eps = norm
    deviation = math.sqrt(sum(variance) / len(variance) + eps)
    return [(value - m) / deviation for value, m in zip(x, mean, strict=True)]


def batch_norm(norm, x):
    """(mean, variance, scale or None, shift or None, eps) in evaluation mode."""
    mean, variance, scale, shift, eps = norm
    result = []
    for d in range(len(x)):
        value = (float(x[d]) - float(mean[d])) / math.sqrt(float(variance[d]) + eps)
        if scale is not None:
            value = value * float(scale[d]) + float(shift[d])
        result.append(value)
    return result


def relu(x):
    return [max(0.0, value) for value in x]


def third(layers, x):
    """f^(3): fc1 ReLU, fc2 BN ReLU, fc3 BN ReLU. Dropout is off in evaluation mode."""
    h = relu(linear(layers["fc1"], x))
    h = relu(batch_norm(layers["bn2"], linear(layers["fc2"], h)))
    return relu(batch_norm(layers["bn3"], linear(layers["fc3"], h)))


def mapping(layers, x):
    """f: f^(3), fc4, BN."""
    return batch_norm(layers["bn4"], linear(layers["fc4"], third(layers, x)))


def s(x, y):
    """Eq. 6.1."""
    dot = xx = yy = 0.0
    for d in range(len(x)):
        dot += float(x[d]) * float(y[d])
        xx += float(x[d]) ** 2
        yy += float(y[d]) ** 2
    return dot / (math.sqrt(xx) * math.sqrt(yy))


def hardest(hinges, k):
    """The sum of the at most k highest."""
    total, kept = 0.0, 0
    for value in sorted(hinges, reverse=True):
        if kept < k:
            total += value
            kept += 1
    return total


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
    """Eq. 6.2 for any xs and ys: the first half changes y, the second half changes x."""
    total = 0.0
    for i in range(len(ids)):
        near = s(xs[i], ys[i])
        first = []
        for n in NEGATIVES[y_kind](i, ids):
            first.append(max(0.0, m - near + s(xs[i], ys[n])))
        second = []
        for n in NEGATIVES[x_kind](i, ids):
            second.append(max(0.0, m - near + s(xs[n], ys[i])))
        total += hardest(first, k) + alpha * hardest(second, k)
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


# A batch for pencil and paper: four rows x and y, unit vectors of the plane, so s is a product.
#
# Rows 0 and 1 show image 5, rows 2 and 3 images 7 and 2.
#
#     s(x, y)          y0 (1, 0)  y1 (0.6, 0.8)  y2 (0, 1)  y3 (0.8, -0.6)
#     x0 (0.8, 0.6)      0.8        0.96           0.6        0.28
#     x1 (0.8, 0.6)      0.8        0.96           0.6        0.28
#     x2 (0.6, 0.8)      0.6        1              0.8        0
#     x3 (1, 0)          1          0.6            0          0.8
#
# Margin 0.5. First half, 0.5 - s(x_i, y_i) + s(x_i, y_n), n of other images:
#     row 0 (0.8)    y2 0.3          y3 -0.02 -> 0
#     row 1 (0.96)   y2 0.14         y3 -0.18 -> 0
#     row 2 (0.8)    y0 0.3          y1 0.7          y3 -0.3 -> 0
#     row 3 (0.8)    y0 0.7          y1 0.3          y2 -0.3 -> 0
#   texts:                  K = 1: (0.3 + 0.14 + 0.7 + 0.7) / 4 = 1.84 / 4 = 0.46
#                           K = 2: (0.3 + 0.14 + 1 + 1) / 8 = 2.44 / 8 = 0.305
#   images (5 once, no y1): K = 1: (0.3 + 0.14 + 0.3 + 0.7) / 4 = 1.44 / 4 = 0.36
#                           K = 2: 1.44 / 8 = 0.18
# Second half, 0.5 - s(x_i, y_i) + s(x_n, y_i), n of other images:
#     row 0 (0.8)    x2 0.3          x3 0.7
#     row 1 (0.96)   x2 0.54         x3 0.14
#     row 2 (0.8)    x0 0.3          x1 0.3          x3 -0.3 -> 0
#     row 3 (0.8)    x0 -0.02 -> 0   x1 -0.02 -> 0   x2 -0.3 -> 0
#   texts:                  K = 1: (0.7 + 0.54 + 0.3 + 0) / 4 = 1.54 / 4 = 0.385
#                           K = 2: (1 + 0.68 + 0.6 + 0) / 8 = 2.28 / 8 = 0.285
#   images (5 once, no x1): K = 1: 0.385
#                           K = 2: (1 + 0.68 + 0.3 + 0) / 8 = 1.98 / 8 = 0.2475
# With alpha 2, (kind of x, kind of y), K = 2:
#     image, text   0.305 + 2 * 0.2475 = 0.8      text, image  0.18 + 2 * 0.285 = 0.75
#     image, image  0.18 + 2 * 0.2475 = 0.675     text, text   0.305 + 2 * 0.285 = 0.875
# and K = 1:
#     y texts       0.46 + 2 * 0.385 = 1.23       y images     0.36 + 2 * 0.385 = 1.13

HAND_X = [(0.8, 0.6), (0.8, 0.6), (0.6, 0.8), (1.0, 0.0)]
HAND_Y = [(1.0, 0.0), (0.6, 0.8), (0.0, 1.0), (0.8, -0.6)]
HAND_IDS = [5, 5, 7, 2]
HAND_MARGIN = 0.5
HAND_ALPHA = 2.0
HAND_EXPECTED = {  # (kind of x, kind of y, K)
    ("image", "text", 1): 1.23,
    ("image", "text", 2): 0.8,
    ("image", "image", 1): 1.13,
    ("image", "image", 2): 0.675,
    ("text", "image", 1): 1.13,
    ("text", "image", 2): 0.75,
    ("text", "text", 1): 1.23,
    ("text", "text", 2): 0.875,
}

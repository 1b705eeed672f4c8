"""Dual-path CNN, Zheng et al., equations 2 to 9 and figure 3, with the layout of the
official code.

One sentence, one position, one scalar at a time in float64; evaluation mode. Positions
are lists of channel vectors, so that a 1x2 filter with one zero at the left is "the one
before, then this one".

Where the paper leaves room, and what is done here:

- The stage widths, strides and the padding are those of the official code (fidelity
  notes, A1).
- Eq. 4 and Eqs. 6 and 8 are for one anchor: the mean over anchors is taken.
- A negative of the pool is the caption of another image with the highest cosine; the
  first of equals.
"""

import math

import numpy as np

from oracles.layers import affine, batch_norm, cosine, dot, relu


def place(words, offset, length):
    """`offset` zeros, at most `length` words, zeros."""
    kept = list(words[:length])
    return [0] * offset + kept + [0] * (length - offset - len(kept))


def pointwise(xs, weight, stride=1):
    """1x1 convolution, weight (out, in, 1), of every `stride`-th position."""
    return [affine(weight[:, :, 0], xs[t]) for t in range(0, len(xs), stride)]


def pairwise(xs, weight, stride):
    """1x2 convolution, weight (out, in, 2): the position before and this one, zeros
    before 0."""
    outputs = []
    for t in range(0, len(xs), stride):
        before = xs[t - 1] if t > 0 else np.zeros_like(xs[0])
        outputs.append(affine(weight[:, :, 0], before) + affine(weight[:, :, 1], xs[t]))
    return outputs


def block(xs, weights, norms, stride, project):
    """Fig. 3. weights and norms: of the three convolutions, and of the shortcut if
    `project`."""
    inner = [relu(batch_norm(x, *norms[0])) for x in pointwise(xs, weights[0])]
    inner = [
        relu(batch_norm(x, *norms[1])) for x in pairwise(inner, weights[1], stride)
    ]
    inner = [batch_norm(x, *norms[2]) for x in pointwise(inner, weights[2])]
    if project:
        xs = [batch_norm(x, *norms[3]) for x in pointwise(xs, weights[3], stride)]
    return [relu(x + y) for x, y in zip(inner, xs, strict=True)]


def average(xs):
    return sum(xs) / len(xs)


def maximum(xs):
    return np.array(
        [max(x[d] for x in xs) for d in range(len(xs[0]))], dtype=np.float64
    )


def quadruple(image, text, wrong_image, wrong_text, margin):
    """Eq. 4."""
    matched = cosine(image, text)
    image_anchor = max(0.0, margin - (matched - cosine(image, wrong_text)))
    text_anchor = max(0.0, margin - (matched - cosine(text, wrong_image)))
    return image_anchor + text_anchor


def instance(share, f, c):
    """Eqs. 5 and 6, or 7 and 8: share (classes, D) is the transpose of W_share."""
    powers = [math.exp(dot(w, f)) for w in share]
    return -math.log(powers[c] / sum(powers))


def mean(values):
    return sum(values) / len(values)


def hardest_of_pool(images, group_ids, texts, text_ids):
    chosen = []
    for b in range(len(images)):
        best, best_score = None, -math.inf
        for p in range(len(texts)):
            score = cosine(images[b], texts[p])
            if text_ids[p] != group_ids[b] and score > best_score:
                best, best_score = p, score
        chosen.append(best)
    return chosen


# For pencil and paper. Eq. 4 with margin 1, two quadruples:   I_a (1, 0), T_a (0.6,
# 0.8), I_n (0, -1), T_n (0.8, -0.6): cosines 0.6, image anchor with T_n     0.8 -> 1 -
# 0.6 + 0.8 = 1.2; text anchor with I_n -0.8 -> 1 - 0.6 - 0.8 below 0 -> 0   I_a (0, 2),
# T_a (0, 3), I_n (-5, 0), T_n (3, 4): cosines 1, T_n 0.8 -> 0.8; I_n 0 -> 0   mean (1.2
# + 0.8) / 2 = 1 Eqs. 5 to 8 with three classes and W_share's columns (ln 1, ln 2, ln 5)
# along the first axis:   f = (1, 0): probabilities 1/8, 2/8, 5/8, so -log P(1) = ln 4
# and -log P(2) = ln 1.6   f = (0, 7): 1/3 each, so ln 3
HAND_IMAGES = np.array([(1.0, 0.0), (0.0, 2.0)])
HAND_TEXTS = np.array([(0.6, 0.8), (0.0, 3.0)])
HAND_WRONG_IMAGES = np.array([(0.0, -1.0), (-5.0, 0.0)])
HAND_WRONG_TEXTS = np.array([(0.8, -0.6), (3.0, 4.0)])
HAND_RANK = 1.0
HAND_SHARE = np.array([(0.0, 0.0), (math.log(2), 0.0), (math.log(5), 0.0)])
HAND_FEATURES = np.array([(1.0, 0.0), (1.0, 0.0), (0.0, 7.0)])
HAND_CLASSES = [1, 2, 0]
HAND_INSTANCE = (math.log(4) + math.log(1.6) + math.log(3)) / 3

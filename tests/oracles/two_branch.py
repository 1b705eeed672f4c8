"""Two-branch networks, Wang et al. 2018, equations 1-7 and the sampling of section 5.1.

One pair, one triplet, one scalar at a time in float64. A batch is B rows, row b a
positive pair (images[b], texts[b]) of image group_ids[b]; an image with several
captions fills several rows.

Where the paper leaves room, and what is done here:

- Eqs. 3 and 6 sum over triplets and say nothing of a reduction: each term is a mean
  over rows x K slots. Slots with a zero hinge, and slots no negative was left for,
  count as zeros. So a term does not jump when triplets stop violating the margin.
- Eq. 6 as it reached us has plain brackets; the hinge [t]_+ of eq. 3 is meant.
- "At most K with the highest non-negative loss" allows kept triplets of zero loss,
  which changes nothing here: zeros are in the mean anyway. K is per row and per
  direction.
- "An image in the batch not associated with y": an image that fills two rows is one
  candidate x' (its first row), so it takes one of the K slots at most. As an anchor it
  has one row per positive sentence.
- Row b is never its own negative, and neither is another row of its image.
- Eq. 5 does not say if a sentence is its own neighbour (it is at distance 0), nor how
  the triplets of that term are mined or weighed: each ordered pair of different rows of
  an image has its own K slots, and the mean is over pairs x K. No pair in the batch, no
  term: zero. The official code takes the farthest of the group instead.
- Its negatives are all sentences of other images in the batch, not only those that the
  mining of eq. 3 kept.
- Eq. 4 does not occur in the image-sentence task; no image-side term is written here.
- Batch normalisation follows the last FC layer, without ReLU, and L2 follows it. The
  linear variant keeps the first FC layer and L2 only: no batch normalisation. Dropout
  is not mentioned by section 3.2 and is off in evaluation mode anyway.
- Euclidean distance, not squared, and no epsilon under the root. L2 of a zero vector:
  zeros.
- Eq. 7 sums over pairs: here a mean over positive and negative ones, which are equally
  many.

What the released code (lwwang/Two_branch_network) does otherwise has functions of its
own, whose names begin with "official". Its batch is G draws of n sentences: G images,
and G * n sentences of which those at g * n to g * n + n - 1 go with image g. No draw
knows which image another one shows.
"""

import math

import numpy as np

from oracles.layers import affine, batch_norm, relu, unit


def embed(x, w1, b1, w2, b2, running_mean, running_var, bn_weight, bn_bias, eps):
    """Section 3.2.1, one branch for one vector: FC, ReLU, FC, batch norm (evaluation),
    L2."""
    hidden = relu(affine(w1, x, b1))
    out = affine(w2, hidden, b2)
    return unit(batch_norm(out, running_mean, running_var, bn_weight, bn_bias, eps))


def embed_linear(x, w1, b1):
    """The linear variant (sections 4.2 and 5.2): the first FC layer, then L2."""
    return unit(affine(w1, x, b1))


def official_embed(x, w1, running_mean, running_var, bn_weight, bn_bias, w2, b2, eps):
    """The released code's branch: FC (a bias would cancel), batch norm, ReLU, FC,
    L2."""
    first = affine(w1, x)
    hidden = relu(batch_norm(first, running_mean, running_var, bn_weight, bn_bias, eps))
    return unit(affine(w2, hidden, b2))


def joint_score(x, y, layers):
    """Section 3.3: the score p of a pair of embeddings; layers are pairs (weight,
    bias)."""
    values = np.array([float(x[d]) * float(y[d]) for d in range(len(x))])
    for number, (weight, bias) in enumerate(layers):
        values = affine(weight, relu(values) if number else values, bias)
    return float(values[0])


def logistic(p, z):
    """Eq. 7, one summand, z +1 or -1."""
    return math.log(1.0 + math.exp(-z * p))


def similarity_loss(images, texts, others, layers):
    """Eq. 7: pair b is (images[b], texts[b]), its negative (images[b],
    texts[others[b]]).

    others[b] is None where the batch has no sentence of another image; that counts as
    zero.
    """
    total = 0.0
    for b in range(len(images)):
        total += logistic(joint_score(images[b], texts[b], layers), 1)
        if others[b] is not None:
            total += logistic(joint_score(images[b], texts[others[b]], layers), -1)
    return total / (2 * len(images))


def distance(x, y):
    """d(x, y) of eqs. 1-6: Euclidean."""
    squares = 0.0
    for d in range(len(x)):
        squares += (float(x[d]) - float(y[d])) ** 2
    return math.sqrt(squares)


def hinge(margin, near, far):
    """[m + d(near) - d(far)]_+ of eq. 3."""
    return max(0.0, margin + near - far)


def highest(values, k):
    """Section 5.1: the sum of the at most k highest hinge values."""
    total, kept = 0.0, 0
    for value in sorted(values, reverse=True):
        if kept < k:
            total += value
            kept += 1
    return total


def image_to_text(images, texts, group_ids, margin, k):
    """Eq. 3, first term, unweighted: triplets (x, y, y'), the mean over B x K slots."""
    total = 0.0
    for b in range(len(texts)):
        near = distance(images[b], texts[b])
        hinges = []
        for c in range(len(texts)):
            if group_ids[c] != group_ids[b]:
                hinges.append(hinge(margin, near, distance(images[b], texts[c])))
        total += highest(hinges, k)
    return total / (len(texts) * k)


def text_to_image(images, texts, group_ids, margin, k):
    """Eq. 3, second term, unweighted: triplets (y, x, x'), the mean over B x K
    slots."""
    total = 0.0
    for b in range(len(texts)):
        near = distance(images[b], texts[b])
        hinges, tried = [], {group_ids[b]}
        for c in range(len(images)):
            if group_ids[c] not in tried:
                tried.add(group_ids[c])
                hinges.append(hinge(margin, near, distance(images[c], texts[b])))
        total += highest(hinges, k)
    return total / (len(texts) * k)


def bidirectional(images, texts, group_ids, margin, lambda1, lambda2, k):
    """Eq. 3 with the mining of section 5.1."""
    forth = image_to_text(images, texts, group_ids, margin, k)
    back = text_to_image(images, texts, group_ids, margin, k)
    return lambda1 * forth + lambda2 * back


def text_neighbourhood(texts, group_ids, margin, k):
    """Eq. 5's constraints as the last term of eq. 6, unweighted: the mean over pairs x
    K slots."""
    total, pairs = 0.0, 0
    for b in range(len(texts)):
        for j in range(len(texts)):
            if j != b and group_ids[j] == group_ids[b]:
                near = distance(texts[b], texts[j])
                hinges = []
                for c in range(len(texts)):
                    if group_ids[c] != group_ids[b]:
                        hinges.append(hinge(margin, near, distance(texts[b], texts[c])))
                total += highest(hinges, k)
                pairs += 1
    if pairs == 0:
        return 0.0
    return total / (pairs * k)


def official_distance(x, y):
    """Euclidean with 0.0001 under the root."""
    return math.sqrt(distance(x, y) ** 2 + 1e-4)


def official_terms(images, texts, n, margin, k):
    """The released code's three terms, unweighted: image anchor, sentence anchor,
    sentences.

    Each is a mean over the G * n sentences x K slots; the neighbour of a sentence is
    the farthest of its draw, itself included.
    """
    image_anchor = sentence_anchor = sentences = 0.0
    for s in range(len(texts)):
        own = s // n
        near = official_distance(images[own], texts[s])
        farthest = 0.0
        for c in range(own * n, own * n + n):
            farthest = max(farthest, official_distance(texts[s], texts[c]))
        wrong_texts = [c for c in range(len(texts)) if c // n != own]
        wrong_images = [g for g in range(len(images)) if g != own]
        image_anchor += highest(
            [
                hinge(margin, near, official_distance(images[own], texts[c]))
                for c in wrong_texts
            ],
            k,
        )
        sentence_anchor += highest(
            [
                hinge(margin, near, official_distance(images[g], texts[s]))
                for g in wrong_images
            ],
            k,
        )
        sentences += highest(
            [
                hinge(margin, farthest, official_distance(texts[s], texts[c]))
                for c in wrong_texts
            ],
            k,
        )
    slots = len(texts) * k
    return image_anchor / slots, sentence_anchor / slots, sentences / slots


# A batch for pencil and paper: three images, the first with two captions, so four rows.
#
# Every point is (cos 2t, sin 2t) for an angle t of a right triangle with whole sides, so it has
# length 1, and two of them are 2 |sin t cos u - cos t sin u| apart, a short decimal:
#
#     (cos t, sin t) of A (1, 0), B (4/5, 3/5), C (3/5, 4/5), D (0, 1), E (4/5, -3/5),
#     F (3/5, -4/5), G (24/25, 7/25)
#
# Rows: (A, B) and (A, G) of image 4, (C, D) of image 9, (F, E) of image 2.
#
#     d(image, text)   B      G      D     E          d(text, text)   G      D      E
#     A               1.2    0.56   2     1.2         B              0.704  1.6    1.92
#     C               0.56   1.2    1.2   2           G                     1.92   1.6
#     F               2      1.872  1.2   0.56
#
# Margin 1. Image anchors, 1 + positive - negative (0 if below):
#     A-B  D 1 + 1.2 - 2 = 0.2        E 1 + 1.2 - 1.2 = 1
#     A-G  D 1 + 0.56 - 2 -> 0        E 1 + 0.56 - 1.2 = 0.36
#     C-D  B 1 + 1.2 - 0.56 = 1.64    G 1 + 1.2 - 1.2 = 1         E 1 + 1.2 - 2 = 0.2
#     F-E  B 1 + 0.56 - 2 -> 0        G 1 + 0.56 - 1.872 -> 0     D 1 + 0.56 - 1.2 = 0.36
#   K = 2: (1.2 + 0.36 + 2.64 + 0.36) / 8 = 4.56 / 8 = 0.57
# Text anchors (A fills two rows, but is one candidate):
#     B-A  C 1 + 1.2 - 0.56 = 1.64    F 1 + 1.2 - 2 = 0.2
#     G-A  C 1 + 0.56 - 1.2 = 0.36    F 1 + 0.56 - 1.872 -> 0
#     D-C  A 1 + 1.2 - 2 = 0.2        F 1 + 1.2 - 1.2 = 1
#     E-F  A 1 + 0.56 - 1.2 = 0.36    C 1 + 0.56 - 2 -> 0
#   K = 2: (1.84 + 0.36 + 1.2 + 0.36) / 8 = 3.76 / 8 = 0.47
# Neighbours, the pairs (B, G) and (G, B):
#     B-G  D 1 + 0.704 - 1.6 = 0.104  E 1 + 0.704 - 1.92 -> 0
#     G-B  D 1 + 0.704 - 1.92 -> 0    E 1 + 0.704 - 1.6 = 0.104
#   K = 2: 0.208 / 4 = 0.052

_A, _B, _C, _D = (1.0, 0.0), (0.28, 0.96), (-0.28, 0.96), (-1.0, 0.0)
_E, _F, _G = (0.28, -0.96), (-0.28, -0.96), (0.8432, 0.5376)

HAND_IMAGES = np.array([_A, _A, _C, _F])
HAND_TEXTS = np.array([_B, _G, _D, _E])
HAND_IDS = [4, 4, 9, 2]

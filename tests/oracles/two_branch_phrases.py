"""Two-branch networks for phrases, Wang et al. 2018: Algorithm 1 and equations 3 to 7.

One triplet, one pair, one scalar at a time in float64. Row b of a batch is a phrase of
chain chains[b] in image images[b]; ious[b][p] is the IoU of proposal p of that image
with its true region, NaN where the image has no such proposal. Target t is row
targets[t], and regions[t] are the vectors of its positive regions, the one of step 2
first.

Where the paper leaves room, and what is done here:

- each term is a mean over rows x K slots, those without a triplet count as zeros, as
  for sentences;
- a target region meets the phrases of its draw: rows targets[t] to targets[t] + n - 1;
- y' is any phrase of the batch of another chain, whatever it says;
- x_k of eq. 4 is a region of step 3b, and each region of a phrase is x_i once;
- eq. 7 is a mean over all pairs, positive and negative.
"""

from oracles.two_branch import distance, highest, hinge, joint_score, logistic


def positives(ious):
    """Step 2: the proposals whose IoU with the true region is 0.7 or more."""
    return [p for p, iou in enumerate(ious) if iou == iou and iou >= 0.7]


def negatives(ious):
    """Step 3b: the proposals whose IoU with the true region is less than 0.3."""
    return [p for p, iou in enumerate(ious) if iou == iou and iou < 0.3]


def phrase_anchor(phrases, proposals, images, ious, targets, regions, margin, k):
    """Steps 3b and 3c ii: triplets (y, x, x')."""
    total, rows = 0.0, 0
    for t, row in enumerate(targets):
        for region in regions[t]:
            near = distance(region, phrases[row])
            hinges = []
            for p in negatives(ious[row]):
                far = distance(proposals[images[row]][p], phrases[row])
                hinges.append(hinge(margin, near, far))
            total += highest(hinges, k)
            rows += 1
    return total / (rows * k)


def image_anchor(phrases, chains, targets, regions, n, margin, k):
    """Steps 3a and 3c i: triplets (x, y, y'), the n phrases of each draw as y."""
    total, rows = 0.0, 0
    for t, first in enumerate(targets):
        for row in range(first, first + n):
            near = distance(regions[t][0], phrases[row])
            hinges = []
            for other in range(len(phrases)):
                if chains[other] != chains[row]:
                    far = distance(regions[t][0], phrases[other])
                    hinges.append(hinge(margin, near, far))
            total += highest(hinges, k)
            rows += 1
    return total / (rows * k)


def region_neighbourhood(proposals, images, ious, targets, regions, margin, k):
    """Eq. 4 for the two regions of each target phrase."""
    total, rows = 0.0, 0
    for t, row in enumerate(targets):
        for this, other in ((0, 1), (1, 0)):
            near = distance(regions[t][this], regions[t][other])
            hinges = []
            for p in negatives(ious[row]):
                far = distance(regions[t][this], proposals[images[row]][p])
                hinges.append(hinge(margin, near, far))
            total += highest(hinges, k)
            rows += 1
    return total / (rows * k)


def positive_pairs(ious, augmented):
    """Pairs (row, region) of the similarity network: region -1 is the true one, p a
    proposal."""
    pairs = []
    for row in range(len(ious)):
        if negatives(ious[row]):
            pairs.append((row, -1))
            if augmented:
                pairs += [(row, p) for p in positives(ious[row])]
    return pairs


def similarity_loss(phrases, true, proposals, images, pairs, wrong, layers):
    """Eq. 7 over the pairs (row, region), and for each a pair (row, wrong region)."""
    total = 0.0
    for (row, region), other in zip(pairs, wrong, strict=True):
        matched = true[row] if region == -1 else proposals[images[row]][region]
        mismatched = proposals[images[row]][other]
        total += logistic(joint_score(matched, phrases[row], layers), 1)
        total += logistic(joint_score(mismatched, phrases[row], layers), -1)
    return total / (2 * len(pairs))

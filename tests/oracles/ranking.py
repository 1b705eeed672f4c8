"""Retrieval ranks and the overlap indicator S, by sorting and counting.

Where the papers leave room, and what is done here:

- No paper says how ties are broken. Pessimistically here: an irrelevant item with the
  score of a relevant one goes before it. Other relevant items never push the best one
  back.
- The papers ask for a median and a mean rank without a convention. As VSE++ does: ranks
  count from zero, the median is floored and 1 added to it; 1 is added to the mean,
  which is not floored.
- S (Dual-Path, "Instance loss" section) is an integral over [-1, 1] of the smaller of
  two densities. Nothing is said of how they are estimated, so bins and range are
  arguments; the width of a bin cancels when shares are compared. A value on an inner
  edge belongs to the bin above it. A value outside the range is an error, so that no
  share is lost in silence.
- Not-a-number scores are not handled.
"""

import math


def places(scores, relevant):
    """Zero-based places of the relevant items of one query; higher scores are better.

    scores[item] is a number, relevant a collection of item indices, never empty.
    """
    wanted = {int(item) for item in relevant}
    if not wanted:
        raise ValueError("no relevant item")
    order = sorted(
        range(len(scores)), key=lambda item: (-float(scores[item]), item in wanted)
    )
    return [place for place, item in enumerate(order) if item in wanted]


def best_ranks(scores, relevant):
    return [places(scores[q], relevant[q])[0] for q in range(len(scores))]


def recall_at(ranks, k):
    """In percent."""
    hits = 0
    for rank in ranks:
        if rank < k:
            hits += 1
    return 100.0 * hits / len(ranks)


def median_rank(ranks):
    order = sorted(ranks)
    middle = len(order) // 2
    if len(order) % 2 == 1:
        median = order[middle]
    else:
        median = (order[middle - 1] + order[middle]) / 2
    return math.floor(median) + 1


def mean_rank(ranks):
    """Mean zero-based rank, plus 1."""
    total = 0
    for rank in ranks:
        total += rank
    return total / len(ranks) + 1


def shares(values, bins, low, high):
    """`bins` equal bins; the last one is closed on the right."""
    counts = [0] * bins
    for value in values:
        if not low <= value <= high:
            raise ValueError(f"{value} is not in [{low}, {high}]")
        place = bins - 1
        for b in range(bins - 1):
            left = low + b * (high - low) / bins
            right = low + (b + 1) * (high - low) / bins
            if left <= value < right:
                place = b
        counts[place] += 1
    return [count / len(values) for count in counts]


def overlap(p, q, bins, low, high):
    """S: the sum over bins of the smaller of the two samples' shares."""
    first, second = shares(p, bins, low, high), shares(q, bins, low, high)
    total = 0.0
    for b in range(bins):
        total += min(first[b], second[b])
    return total

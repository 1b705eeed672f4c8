"""One difference in several set-ups: what they say together, and whether they agree.

A set-up is a season's features and encoders, or other images. The estimate is the mean
of the set-ups, each with the same weight: that of the average set-up, whichever is
surest. On the same images the set-ups are averaged image by image, so that an image
which is easy for the first thing in all of them counts once; trainings, and other
images, are independent.

Heterogeneity is tested by Hotelling's T^2 of the differences between set-ups, with the
degrees of freedom of the gap whose variance is known worst.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np
from scipy import special

from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import MOST_FREEDOM, Doubt


def pool(set_ups: Sequence[Comparison]) -> Comparison:
    """The mean over one set-up or more, with the names of the first."""
    share = 1 / len(set_ups)
    images, image_count = 0.0, 0
    by_images: dict[str, list[Comparison]] = {}
    for set_up in set_ups:
        by_images.setdefault(set_up.images, []).append(set_up)
    for alike in by_images.values():
        if _are_aligned(alike):
            noise_G = sum(set_up.noise for set_up in alike)
            images += float(noise_G @ noise_G)
        else:  # as if the same images were easy in all of them
            images += sum(sqrt(set_up.doubt.images) for set_up in alike) ** 2
        image_count += alike[0].doubt.image_count
    interaction = sum(set_up.doubt.interaction for set_up in set_ups)
    seeds = []
    for set_up in set_ups:
        for part in set_up.doubt.seeds:
            variance, luck = share**2 * part.variance, share**2 * part.interaction
            seeds.append(part._replace(variance=variance, interaction=luck))
    doubt = Doubt(
        images=share**2 * images,
        interaction=share**2 * min(interaction, images),
        image_count=image_count,
        seeds=tuple(seeds),
    )
    return replace(
        set_ups[0],
        difference=float(np.mean([set_up.difference for set_up in set_ups])),
        doubt=doubt,
        noise=None,
        written=None,
        is_of_these_trainings=any(set_up.is_of_these_trainings for set_up in set_ups),
    )


def heterogeneity(set_ups: Sequence[Comparison]) -> float:
    """p that chance alone makes the set-ups differ as much; 1 of a single one, and where
    nothing varies."""
    count = len(set_ups)
    if count < 2:
        return 1.0
    covariance_SS = _covariance(set_ups)
    contrasts_CS = np.eye(count)[1:] - np.eye(count)[0]
    gaps_C = contrasts_CS @ [set_up.difference for set_up in set_ups]
    spread_CC = contrasts_CS @ covariance_SS @ contrasts_CS.T
    if np.linalg.matrix_rank(spread_CC) < count - 1:
        return 1.0
    statistic = float(gaps_C @ np.linalg.solve(spread_CC, gaps_C))
    gaps, freedom = count - 1, _least_freedom(set_ups, covariance_SS)
    of_error = max(freedom - gaps + 1, 1.0)  # degrees of freedom
    return float(special.fdtrc(gaps, of_error, statistic * of_error / (freedom * gaps)))


def _covariance(set_ups: Sequence[Comparison]) -> np.ndarray:
    """Of the differences, (S, S): set-ups have the luck of shared images in common."""
    variances_S = [set_up.doubt.images + set_up.doubt.main for set_up in set_ups]
    covariance_SS = np.diag(variances_S)
    for row, column in combinations(range(len(set_ups)), 2):
        first, second = set_ups[row], set_ups[column]
        if first.images == second.images and _are_aligned([first, second]):
            shared = float(first.noise @ second.noise)
            covariance_SS[row, column] = covariance_SS[column, row] = shared
    return covariance_SS


def _least_freedom(set_ups: Sequence[Comparison], covariance_SS: np.ndarray) -> float:
    """Satterthwaite's degrees of freedom of the gap between two set-ups, of those two
    for which it is least. What images share is not in a gap."""
    freedoms = [MOST_FREEDOM]
    for row, column in combinations(range(len(set_ups)), 2):
        pair = [set_ups[row], set_ups[column]]
        shared = float(covariance_SS[row, column])
        images = sum(each.doubt.images for each in pair) - 2 * shared
        count = min(each.doubt.image_count for each in pair)
        variance, doubts = images, images**2 / max(count - 1, 1)
        for part in (*pair[0].doubt.seeds, *pair[1].doubt.seeds):
            variance += part.weight() * part.main
            doubts += (part.weight() * part.main) ** 2 / part.freedom
        if doubts:
            freedoms.append(variance**2 / doubts)
    return min(freedoms)


def _are_aligned(set_ups: Sequence[Comparison]) -> bool:
    """Whether it is known what each image does, of as many images in all."""
    lengths = {None if s.noise is None else len(s.noise) for s in set_ups}
    return len(lengths) == 1 and None not in lengths

"""One difference in several set-ups: what they say together, and whether they agree
(docs/statistics.md, Grades).

Each set-up has the same weight, whichever is surest. On the same images they are
averaged image by image, so that an image which is easy for the first thing in all of
them counts once; trainings, and other images, are independent.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np

from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt, on_other_images


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
    """p that chance alone makes any two set-ups differ as much: Student's t with
    Bonferroni's correction over the pairs; 1 of one, and where nothing varies."""
    pairs = list(combinations(set_ups, 2))
    p_values = [_p_of_gap(first, second) for first, second in pairs]
    return min([1.0, *(len(pairs) * p for p in p_values)])


def _p_of_gap(first: Comparison, second: Comparison) -> float:
    """The luck of images that both share is not in the gap."""
    images = first.doubt.images + second.doubt.images
    if first.images == second.images and _are_aligned([first, second]):
        gap_G = first.noise - second.noise
        images = float(gap_G @ gap_G)
    doubt = Doubt(
        images=images,
        interaction=0.0,
        image_count=min(first.doubt.image_count, second.doubt.image_count),
        seeds=(*first.doubt.seeds, *second.doubt.seeds),
    )
    gap = on_other_images(first.difference - second.difference, doubt)
    return gap.p() if gap else 1.0


def _are_aligned(set_ups: Sequence[Comparison]) -> bool:
    """Whether it is known what each image does, of as many images in all."""
    lengths = {None if s.noise is None else len(s.noise) for s in set_ups}
    return len(lengths) == 1 and None not in lengths

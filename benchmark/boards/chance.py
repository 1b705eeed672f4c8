"""What random scores reach, and whether a result is near it."""

import numpy as np

from benchmark.scoring.metrics import SUMMED_K

TIMES = 3  # times the rsum of random scores: less is near chance


def choices_of(group_of_image: np.ndarray) -> float:
    """How many images there are for each relevant one, over captions that search them:
    all, or fewer where several images of a group are relevant."""
    sizes = np.bincount(group_of_image)
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


def rsum_by_chance(ways: int, images: float) -> float:
    """The rsum of random scores, with these directions and so many images for each
    relevant one."""
    return ways * 100 * sum(min(k, images) for k in SUMMED_K) / images


def is_near_chance(rsum: float, ways: int, images: float) -> bool:
    """Whether an rsum is less than TIMES that of random scores. Of few images many are
    right by chance: there, the rsum must only be nearer to perfect scores than to
    random ones."""
    by_chance = rsum_by_chance(ways, images)
    perfect = ways * 100 * len(SUMMED_K)
    return rsum < min(TIMES * by_chance, (by_chance + perfect) / 2)


def near_chance(rsum: float, ways: int, images: float) -> str:
    """A sentence on an rsum that is near that of random scores; "" of a better one."""
    if not is_near_chance(rsum, ways, images):
        return ""
    by_chance = rsum_by_chance(ways, images)
    return f"rsum {rsum:.1f} is less than {TIMES} times the {by_chance:.1f} of random scores"

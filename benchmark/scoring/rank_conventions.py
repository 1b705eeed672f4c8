"""Whether ranks from elsewhere may follow another convention than ranks from 0:
positions from 1, with 0 for an item that was not found, or a large number for it. Knows
no torch.

One file cannot prove a convention. These are the signs by which an honest full ranking
from 0 is told from others; where both readings are left, somebody must say which holds.

Q = queries. Ranks are those of the best relevant item.
"""

from collections.abc import Mapping

import numpy as np

USUAL_DEPTHS = (5, 10, 15, 20, 25, 30, 50, 100, 200, 500, 1000)  # of lists
DEVIATIONS = 3  # standard ones, that no honest count differs by
LIST_END = 10  # ranks in the upper half of a list, by which its end shows
LONG_LIST = 3  # of a longer list than this part of the gallery, the end does not show
LONGEST_LIST = 0.75  # of the gallery: ranks that reach further are of no list
LEAST_GALLERY = 30  # all ranks in a smaller one may be low
HEAVY_TAIL = 5  # times as many ranks beyond a list as its last ranks let expect
LEAST_SENTINELS, SENTINEL_SHARE = 6, 0.001  # of all queries; twins share a rank, too


def zero_may_mean_lost(
    ranks: Mapping[str, np.ndarray],
    items: Mapping[str, int],
) -> bool:
    """Whether 0 may stand for items that were not found, beside positions from 1.

    `ranks` (Q,) has every query of each direction, `items` is the size of each gallery.
    In ranks from 0, 0 is not rarer than 1, and the largest rank is no length of a list,
    the same in both directions. Beside positions from 1, as many items as there are
    zeros can have stood beyond the list.
    """
    together = np.concatenate([*ranks.values()])
    if any(map(_is_zero_rare, (*ranks.values(), together))):
        return True
    if not all(_zeros_fit_beyond(ranks[way], items[way]) for way in ranks):
        return False
    if any(_ends_as_a_list(ranks[way], items[way]) for way in ranks):
        return True
    depths = {int(ranks_Q.max()) for ranks_Q in ranks.values()}
    is_usual = _is_zero_rare(together, deviations=0) or max(depths) in USUAL_DEPTHS
    return len(depths) == 1 and is_usual


def largest_may_mean_lost(ranks_Q: np.ndarray) -> bool:
    """Whether the largest number is so much more frequent than those below it that it
    may stand for what was not found: 999, the size of the gallery, the length of a
    list."""
    largest = int(ranks_Q.max())
    count = np.count_nonzero(ranks_Q == largest)
    if largest < 2 or count < max(LEAST_SENTINELS, SENTINEL_SHARE * len(ranks_Q)):
        return False
    below = ranks_Q[(ranks_Q > largest // 2) & (ranks_Q < largest)]
    expected = len(below) / max(largest - 1 - largest // 2, 1)
    return bool(count > expected + DEVIATIONS * np.sqrt(expected + 1))


def _is_zero_rare(ranks_Q: np.ndarray, deviations: float = DEVIATIONS) -> bool:
    """Whether there are fewer zeros than ones, by some standard deviations."""
    zeros, ones = np.count_nonzero(ranks_Q == 0), np.count_nonzero(ranks_Q == 1)
    return bool(ones - zeros > deviations * np.sqrt(ones + zeros))


def _last_ranks(ranks_Q: np.ndarray) -> int:
    """How many ranks lie in the upper half of what they reach."""
    return np.count_nonzero(ranks_Q > ranks_Q.max() // 2)


def _zeros_fit_beyond(ranks_Q: np.ndarray, items: int) -> bool:
    """Whether as many ranks as there are zeros can lie beyond the largest one: some times
    as many as expected if their density falls as 1 / rank from that of the last ones."""
    largest, zeros = int(ranks_Q.max()), np.count_nonzero(ranks_Q == 0)
    if not zeros:
        return True
    if not 0 < largest < LONGEST_LIST * items:
        return False
    width = largest - largest // 2
    density, middle = _last_ranks(ranks_Q) / width, largest - (width - 1) / 2
    beyond = density * middle * np.log(items / largest)
    return bool(zeros <= HEAVY_TAIL * beyond + 2 * np.sqrt(beyond))


def _ends_as_a_list(ranks_Q: np.ndarray, items: int) -> bool:
    """Whether many ranks lie near the largest one and none beyond, in a gallery that
    goes on."""
    is_short = LONG_LIST * ranks_Q.max() < items and items >= LEAST_GALLERY
    return bool(is_short and _last_ranks(ranks_Q) >= LIST_END)

"""Whether ranks from elsewhere may follow another convention than ranks from 0:
positions from 1, with 0 for an item that was not found, or a large number for it.
Imports no torch.

One file cannot prove a convention. These are the signs by which an honest table from 0
is told from others; where both readings are left, somebody must say which holds. No
table of ranks in results/ shows any of them, except that of phrases, of which many are
not found.

Q = queries. Ranks are those of the best relevant item, without those that are marked as
not found. A list has the queries of one direction, and of one seed.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

USUAL_DEPTHS = (5, 10, 15, 20, 25, 30, 50, 100, 200, 500, 1000)  # of lists
DEVIATIONS = 3  # standard ones, that no honest count differs by
ONES = 5  # ranks of 1 from which a table without a rank 0 seems to count from 1
RARE = 0.005  # p below which 0 is rarer than 1; failed trainings have 0.006
LIST_END = 10  # ranks in the upper half of a list, by which its end shows
LONG_LIST = 3  # of a longer list than this part of the gallery, the end does not show
LONGEST_LIST = 0.75  # of the gallery: ranks that reach further are of no list
LEAST_GALLERY = 30  # all ranks in a smaller one may be low
HEAVY_TAIL = 5  # times as many ranks beyond a list as its last ranks let expect
LEAST_SENTINELS, SENTINEL_SHARE = 6, 0.001  # of all queries; twins share a rank, too
LATE, FEW_LATE = 0.2, 6  # the last part of a list, and ranks there that show an end
BEYOND = 10  # ranks that a fall like that of the last ones lets expect behind them


def list_without_first(
    lists: Sequence[np.ndarray], ones: int = ONES
) -> np.ndarray | None:
    """A list, or all together, without a rank 0 although 1 is there, in all together at
    least `ones` times: it seems to count from 1."""
    for ranks_Q in lists:
        if not (ranks_Q == 0).any() and (ranks_Q == 1).sum() >= 2 * ONES:
            return ranks_Q
    together = np.concatenate(lists)
    if not (together == 0).any() and (together == 1).sum() >= ones:
        return together
    return None


def list_with_rare_zeros(lists: Sequence[np.ndarray]) -> np.ndarray | None:
    """A list, or all together, with fewer zeros than ones: in ranks from 0 the first
    place is no rarer than the second."""
    for ranks_Q in (*lists, np.concatenate(lists)):
        zeros, ones = np.count_nonzero(ranks_Q == 0), np.count_nonzero(ranks_Q == 1)
        if zeros and special.bdtr(zeros, zeros + ones, 0.5) < RARE:
            return ranks_Q
    return None


def zero_may_mean_lost(
    ranks: Mapping[str, np.ndarray],
    items: Mapping[str, int] | None = None,
) -> bool:
    """Whether 0 may stand for items that were not found, beside positions from 1.

    `ranks` (Q,) has the list of each direction, `items` is the size of each gallery,
    where it is known. In ranks from 0, 0 is not rarer than 1, and the largest rank is no
    length of a list. Beside positions from 1, as many items as there are zeros can have
    stood beyond the list.
    """
    lists = list(ranks.values())
    together = np.concatenate(lists)
    if list_with_rare_zeros(lists) is not None:
        return True
    if not (together == 0).any():
        return False
    if _is_cut(together):
        return True
    if items is None or len(ranks) == 1:  # one gallery alone tells no more
        return False
    if not all(_zeros_fit_beyond(ranks[way], items[way]) for way in ranks):
        return False
    if any(_ends_as_a_list(ranks[way], items[way]) for way in ranks):
        return True
    depths = {int(ranks_Q.max()) for ranks_Q in lists}
    zeros, ones = np.count_nonzero(together == 0), np.count_nonzero(together == 1)
    return len(depths) == 1 and (ones > zeros or max(depths) in USUAL_DEPTHS)


def end_together(lists: Sequence[np.ndarray]) -> bool:
    """Whether two lists or more have a rank 0 each, and the same largest rank, which is
    a usual depth: whole rankings end where chance has it, and lists from 0 one rank
    before their depth."""
    depths = {int(ranks_Q.max()) for ranks_Q in lists}
    have_first = all((ranks_Q == 0).any() for ranks_Q in lists)
    if len(lists) < 2 or len(depths) > 1:
        return False
    return have_first and max(depths) in USUAL_DEPTHS


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


def _is_cut(ranks_Q: np.ndarray) -> bool:
    """Whether ranks end at a usual depth of lists, and would go on: the share of the
    last places is not much smaller than that of as many before."""
    last = ranks_Q.max()
    late = np.count_nonzero(ranks_Q > (1 - LATE) * last)
    before = np.count_nonzero(ranks_Q > (1 - 2 * LATE) * last) - late
    if last not in USUAL_DEPTHS or late < FEW_LATE or largest_may_mean_lost(ranks_Q):
        return False
    return bool(late >= before or late**2 / (before - late) > BEYOND)


def _last_ranks(ranks_Q: np.ndarray) -> int:
    """How many ranks lie in the upper half of what they reach."""
    return np.count_nonzero(ranks_Q > ranks_Q.max() // 2)


def _zeros_fit_beyond(ranks_Q: np.ndarray, items: int) -> bool:
    """Whether as many ranks as there are zeros can lie beyond the largest one: some
    times as many as expected if their density falls as 1 / rank from that of the last
    ones."""
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

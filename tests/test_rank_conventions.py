"""Tables of ranks: an honest one from 0 passes, one of another convention is found."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmark.core.records import Record
from benchmark.data import results
from benchmark.data.rank_keys import I2T, T2I
from benchmark.data.results import ARCHIVES, RANKS, RESULTS, Scores
from benchmark.scoring.rank_conventions import (
    end_together,
    largest_may_mean_lost,
    list_with_rare_zeros,
    list_without_first,
    zero_may_mean_lost,
)

ROOT = Path(__file__).parent.parent
EACH = 5  # captions of an image


def ranks_of(
    images: int, noise: float, seed: int, each: int = EACH
) -> dict[str, np.ndarray]:
    """Ranks from 0 of captions that lie near their images."""
    rng = np.random.default_rng(seed)
    vectors, owner = rng.normal(size=(images, 16)), np.repeat(np.arange(images), each)
    captions = vectors[owner] + noise * rng.normal(size=(len(owner), 16))
    cosines = vectors @ captions.T
    cosines /= np.outer(
        np.linalg.norm(vectors, axis=1), np.linalg.norm(captions, axis=1)
    )
    is_own = np.equal.outer(np.arange(images), owner)
    ranks = {}
    for way, scores, right in (("i2t", cosines, is_own), ("t2i", cosines.T, is_own.T)):
        best = np.where(right, scores, -2).max(1, keepdims=True)
        ranks[way] = ((scores >= best) & ~right).sum(1)
    return ranks


def sizes(images: int) -> dict[str, int]:
    return {"i2t": EACH * images, "t2i": images}


@pytest.mark.parametrize("images", [40, 120, 400])
@pytest.mark.parametrize("noise", [0.5, 1, 2, 4])
def test_full_rankings_from_0_pass(images, noise):
    for seed in range(10):
        ranks = ranks_of(images, noise, seed)
        assert not zero_may_mean_lost(ranks, sizes(images))
        assert not any(map(largest_may_mean_lost, ranks.values()))


@pytest.mark.parametrize("depth", [5, 10, 20])
@pytest.mark.parametrize("images", [40, 120, 400])
@pytest.mark.parametrize("noise", [2, 4])
def test_positions_from_1_with_0_for_what_was_not_found_are_doubted(
    images, noise, depth
):
    ranks = ranks_of(images, noise, seed=0)
    positions = {way: np.where(of < depth, of + 1, 0) for way, of in ranks.items()}
    assert zero_may_mean_lost(positions, sizes(images))


@pytest.mark.parametrize("value", [5, 39, 999])
@pytest.mark.parametrize("images", [40, 400])
def test_a_number_for_what_was_not_found_is_doubted(images, value):
    for of in ranks_of(images, 2.0, seed=0).values():
        lost = np.where(of < 5, of, value)
        if (of >= 5).sum() > 8:
            assert largest_may_mean_lost(lost)


def test_a_few_captions_that_share_a_rank_are_no_sentinel():
    ranks = np.r_[np.zeros(80, int), np.arange(1, 16), [347] * EACH]
    assert not largest_may_mean_lost(ranks)
    assert largest_may_mean_lost(np.r_[ranks, 347, 347])


@pytest.mark.parametrize(("count", "is_doubted"), [(7, False), (8, True)])
def test_a_sentinel_is_more_frequent_than_three_deviations(count, is_doubted):
    # two of each rank below it in the upper half: 2 + 3 sqrt(2 + 1) is 7.2
    below = np.repeat(np.arange(20), 2)
    ranks = np.r_[below, np.full(count, 20)]
    assert largest_may_mean_lost(ranks) == is_doubted


def test_ranks_of_a_tiny_set_are_not_doubted():
    perfect = {"i2t": np.zeros(12, int), "t2i": np.zeros(24, int)}
    assert not zero_may_mean_lost(perfect, {"i2t": 24, "t2i": 12})
    good = {
        "i2t": np.array([0] * 10 + [1, 2]),
        "t2i": np.array([0] * 20 + [1, 1, 2, 3]),
    }
    assert not zero_may_mean_lost(good, {"i2t": 24, "t2i": 12})
    assert not any(map(largest_may_mean_lost, (*perfect.values(), *good.values())))


def test_random_ranks_reach_the_end_of_both_galleries_and_pass():
    for seed in range(40):
        ranks = ranks_of(60, 50.0, seed, each=1)
        if any((of_way == 0).any() for of_way in ranks.values()):
            assert not zero_may_mean_lost(ranks, {"i2t": 60, "t2i": 60})


# What was really ranked ---------------------------------------------------------------


def committed_cells() -> Iterator[tuple[Record, Scores]]:
    for archive in sorted((ROOT / RESULTS).glob(f"*/*/{ARCHIVES[RANKS]}")):
        for cell in results.read_folder(archive.parent).values():
            if cell.record.status == "ok":
                yield cell.record, cell.scores


def test_no_committed_table_is_doubted_whole_or_by_direction():
    count = 0
    for record, scores in committed_cells():
        pair = {
            key.direction: scores.ranks[key].best
            for key in (I2T, T2I)
            if key in scores.ranks
        }
        items = {"i2t": record.captions, "t2i": record.images}
        if pair:
            assert list_without_first(list(pair.values()), ones=1) is None
            assert not zero_may_mean_lost(pair, items)
            assert not zero_may_mean_lost(pair)
        for key, ranks in scores.ranks.items():
            alone = {key.direction: ranks.best}
            assert list_without_first([ranks.best]) is None
            assert not zero_may_mean_lost(alone), (record.preset, record.seed, key)
            if key.direction in items:
                assert not zero_may_mean_lost(alone, items)
                assert not largest_may_mean_lost(ranks.best)
            count += 1
    assert count > 1500


@pytest.mark.parametrize("depth", [5, 10, 30, 100])
def test_committed_tables_in_another_convention_are_doubted(depth):
    """Positions from 1, with 0 or a number for what lies beyond a list."""
    doubted, heaps, count = 0, 0, 0
    for record, scores in list(committed_cells())[::10]:
        if not {I2T, T2I} <= scores.ranks.keys():
            continue
        pair = {key.direction: scores.ranks[key].best for key in (I2T, T2I)}
        items = {"i2t": record.captions, "t2i": record.images}
        lost = {way: np.where(of < depth, of + 1, 0) for way, of in pair.items()}
        doubted += zero_may_mean_lost(lost, items)
        clipped = np.minimum(pair["t2i"], depth)
        heaps += largest_may_mean_lost(clipped)
        assert list_without_first([of + 1 for of in pair.values()]) is not None
        count += 1
    assert count > 20
    assert doubted >= 0.95 * count and heaps >= 0.95 * count


def test_zeros_that_are_rarer_than_ones_are_found_in_one_list_of_several():
    honest = np.repeat([0, 1, 2], [30, 20, 10])
    rare = np.repeat([0, 1, 2], [10, 40, 10])
    assert list_with_rare_zeros([honest, rare]) is rare
    assert list_with_rare_zeros([honest]) is None


@pytest.mark.parametrize(("zeros", "is_doubted"), [(60, True), (61, False)])
def test_zeros_are_as_many_as_can_lie_beyond_the_list(zeros, is_doubted):
    """Of ranks 11 to 20 there are ten, one each, around 15.5. Beyond 20, to 40 items,
    15.5 log 2 = 10.7 are expected, and five times as many may be there, and two
    deviations: 53.7 + 6.6."""
    last = [11, 11, 12, 12, 13, 14, 15, 16, 18, 20]
    ranks = np.r_[np.zeros(zeros, int), np.arange(1, 11), last]
    both = {"i2t": ranks, "t2i": ranks}
    assert zero_may_mean_lost(both, {"i2t": 40, "t2i": 40}) == is_doubted


def test_lists_that_end_together_at_a_usual_depth_are_found():
    lists = [np.array([0, 0, 0, 3, 10]), np.array([0, 1, 10, 10])]
    assert end_together(lists)
    assert not end_together(lists[:1])  # of one alone it is chance
    assert not end_together([*lists, np.array([0, 2, 9])])
    assert not end_together([ranks - 1 for ranks in lists])  # no rank 0
    assert not end_together([np.minimum(ranks, 9) for ranks in lists])

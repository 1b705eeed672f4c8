"""The oracles themselves, against values worked out by hand."""

import math

import numpy as np
import pytest
from oracles import ranking, scan, two_branch

# Two regions, two words; cosines [[0.6, 0.8], [0.8, 0]], so every norm along an axis is
# 1 or 0.8.
REGIONS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
WORDS = np.array([[0.6, 0.8, 0.0], [0.8, 0.0, 0.6]])
# attention weights are powers of two: exp(LAMBDA1 * s) = 2 ** (5 s)
LAMBDA1 = 5 * math.log(2)

# Rows 0 and 1 show the same image.
SCORES = [[0.6, 0.9, 0.5], [0.3, 0.7, 0.65], [0.55, 0.1, 0.4]]
IDS = [1, 1, 2]


class TestScan:
    def test_i2t_normalises_each_word_over_regions(self):
        # s_bar [[0.6, 1], [0.8, 0]]: weights 8 : 32 for region 0, 16 : 1 for region 1
        first, second = scan.attended_sentence(REGIONS, WORDS, LAMBDA1)
        assert first == pytest.approx([0.76, 0.16, 0.48])
        assert second * 17 == pytest.approx([10.4, 12.8, 0.6])
        expected = [0.76 / math.sqrt(0.8336), 12.8 / math.sqrt(272.36)]
        assert scan.relevance_i2t(REGIONS, WORDS, LAMBDA1) == pytest.approx(expected)

    def test_t2i_normalises_each_region_over_words(self):
        # s_bar' [[0.6, 0.8], [1, 0]]: weights 8 : 32 for word 0, 16 : 1 for word 1
        expected = [0.76 / math.sqrt(0.68), 12.8 / math.sqrt(257)]
        assert scan.relevance_t2i(REGIONS, WORDS, LAMBDA1) == pytest.approx(expected)

    def test_negative_cosines_are_cut_at_zero(self):
        # cosines [[1, -0.6], [0, 0.8]] give s_bar [[1, 0], [0, 1]]: weights 32 : 1 and
        # 1 : 32
        regions, words = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [-0.6, 0.8]]
        expected = [31.4 / math.sqrt(986.6), 25.6 / math.sqrt(18.2**2 + 25.6**2)]
        assert scan.relevance_i2t(regions, words, LAMBDA1) == pytest.approx(expected)

    def test_all_zero_axis_stays_zero(self):
        assert scan.relevance_i2t([[1.0, 0.0]], [[-1.0, 0.0]], 4.0) == [-1.0]
        assert scan.relevance_t2i([[1.0, 0.0]], [[-1.0, 0.0]], 4.0) == [-1.0]

    def test_pooling_is_as_by_hand(self):
        assert scan.lse([0.3], 6.0) == pytest.approx(0.3)
        assert scan.lse([0.3, 0.3], 2.0) == pytest.approx(0.3 + math.log(2) / 2)
        assert scan.lse([math.log(2), math.log(3)], 2.0) == pytest.approx(
            math.log(13) / 2
        )
        assert scan.lse([0.1, 0.9], 200.0) == pytest.approx(0.9)
        assert scan.average([0.25, -0.5, 1.0]) == 0.25
        assert scan.summation([0.25, -0.5, 1.0]) == 0.75
        assert scan.maximum([0.25, -0.5, 1.0]) == 1.0

    def test_sum_max_is_as_by_hand(self):
        # dot products [[2, -1, 0], [0, -3, 5]]
        regions, words = (
            [[1.0, 0.0], [0.0, 1.0]],
            [[2.0, 0.0], [-1.0, -3.0], [0.0, 5.0]],
        )
        assert scan.sum_max_t2i(regions, words) == 2 - 1 + 5
        assert scan.sum_max_i2t(regions, words) == 2 + 5

    def test_sum_hinge_is_as_by_hand(self):
        # sentences 0.1 + 0.15 + 0.35, images 0.15 + (0.3 + 0.45)
        assert scan.sum_hinge(SCORES, IDS, 0.2) == pytest.approx(1.5)

    def test_hardest_hinge_is_as_by_hand(self):
        # sentences 0.1 + 0.15 + 0.35, images 0.15 + 0 + 0.45
        assert scan.hardest_hinge(SCORES, IDS, 0.2) == pytest.approx(1.2)
        assert scan.hardest_hinge(SCORES, [1, 1, 1], 0.2) == 0
        # by row: sentences 0.5 + 0.15 + 0.35, images 0.15 + 0.4 + 0.45
        assert scan.hardest_hinge(SCORES, [0, 1, 2], 0.2) == pytest.approx(2.0)


class TestTwoBranch:
    # Every image once: two rows of image 4 are one candidate for the others.
    # K = 1: (1 + 0.36 + 1.64 + 0.36) / 4 twice, 0.208 / 2.
    # K = 3: no row of image 4 has a third negative: 4.76 / 12, 3.76 / 12, 0.208 / 6.
    @pytest.mark.parametrize(
        ("k", "forth", "back", "neighbours"),
        [
            (1, 0.84, 0.84, 0.104),
            (2, 0.57, 0.47, 0.052),
            (3, 4.76 / 12, 3.76 / 12, 0.208 / 6),
        ],
    )
    def test_terms_of_the_hand_example_are_as_by_hand(self, k, forth, back, neighbours):
        images, texts = two_branch.HAND_IMAGES, two_branch.HAND_TEXTS
        batch = (images, texts, two_branch.HAND_IDS)
        assert two_branch.bidirectional(*batch, 1.0, 1.0, 0.0, k) == pytest.approx(
            forth
        )
        assert two_branch.bidirectional(*batch, 1.0, 0.0, 1.0, k) == pytest.approx(back)
        term = two_branch.text_neighbourhood(texts, two_branch.HAND_IDS, 1.0, k)
        assert term == pytest.approx(neighbours)

    def test_no_neighbour_no_term(self):
        assert (
            two_branch.text_neighbourhood(two_branch.HAND_TEXTS, [0, 1, 2, 3], 1.0, 2)
            == 0
        )


class TestRanking:
    def test_ties_count_against_the_query(self):
        scores = [[0.9, 0.5, 0.9, 0.1]] * 4
        # a tie lost; a tie between relevant items; two irrelevant items ahead; the last
        # of all
        assert ranking.best_ranks(scores, [{0}, {0, 2}, [3, 1], (3,)]) == [1, 0, 2, 3]

    def test_recalls_and_median_are_as_by_hand(self):
        assert ranking.recall_at([0, 1, 2, 7], 1) == 25
        assert ranking.recall_at([0, 1, 2, 7], 2) == 50
        assert ranking.recall_at([0, 1, 2, 7], 10) == 100
        assert ranking.median_rank([7, 0, 2, 1]) == 2  # floor(1.5) + 1
        assert ranking.median_rank([7, 0, 2]) == 3
        assert ranking.mean_rank([0, 1, 2, 7]) == 3.5

    def test_overlap_is_as_by_hand(self):
        p, q = [0.1, 0.3, 0.3, 0.9], [0.1, 0.6, 0.9, 1.0]
        # shares 1/4, 1/2, 0, 1/4 and 1/4, 0, 1/4, 1/2
        assert ranking.overlap(p, q, 4, 0.0, 1.0) == 0.5
        assert ranking.overlap(p, p, 4, 0.0, 1.0) == 1
        assert ranking.overlap([-0.9, -0.5], [0.5, 1.0, 0.6], 10, -1.0, 1.0) == 0
        # an inner edge belongs above
        assert ranking.overlap([0.5], [0.75], 2, 0.0, 1.0) == 1
        assert ranking.overlap([0.5], [0.25], 2, 0.0, 1.0) == 0

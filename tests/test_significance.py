"""Intervals, p values and groups against SciPy, enumeration, naive loops and simulation."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from benchmark.analysis import significance


def clustered(seed: int, images: int, each: int) -> np.ndarray:
    """Hits (images, each) in {0, 1}; each image has its own chance, the mean chance is a half."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(0.5, 0.5, images)
    return (rng.random((images, each)) < chances[:, None]).astype(float)


def sums_of(values_GE: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values_GE.sum(1), np.full(len(values_GE), values_GE.shape[1])


def resampled(values_G: np.ndarray) -> np.ndarray:
    """500 replicates of the mean of images with one query each."""
    return significance.replicates(values_G, np.ones(len(values_G)), 500)


def bounds(trials: int, chance: float) -> tuple[float, float]:
    """Counts that a binomial leaves once in a thousand times."""
    return stats.binom.ppf([0.0005, 0.9995], trials, chance)


def every_exchange(differences: list) -> Fraction:
    """Exact two-sided p: every way in which images may change sides, in exact arithmetic."""
    totals = exchanged_totals(differences)
    return Fraction(sum(total >= totals[0] for total in totals), len(totals))


def exchanged_totals(differences: list) -> list:
    """Absolute totals of every choice of signs; the first is the observed one."""
    signs = product((1, -1), repeat=len(differences))
    return [abs(sum(s * d for s, d in zip(each, differences, strict=True))) for each in signs]


def naive_holm(p_values: list[float]) -> list[float]:
    """The definition, word by word: of each p the largest product among the p's up to it."""
    count, ordered = len(p_values), sorted(p_values)
    products = [min(1.0, (count - rank) * p) for rank, p in enumerate(ordered)]
    return [max(products[: ordered.index(p) + 1]) for p in p_values]


class TestBootstrap:
    def test_every_resample_draws_as_many_images_as_there_are(self):
        drawn = significance.weights(7, 50)
        assert drawn.shape == (50, 7)
        assert (drawn.sum(1) == 7).all()
        assert len({tuple(row) for row in drawn}) > 40
        # an image is drawn once on average, with the binomial's variance
        many = significance.weights(7, 20_000)
        assert many.mean(0) == pytest.approx(np.ones(7), abs=0.03)
        assert many.var(0) == pytest.approx(np.full(7, 6 / 7), abs=0.05)

    def test_callers_share_their_resamples_and_cannot_change_them(self):
        first = significance.weights(9, 20).copy()
        significance.weights.cache_clear()
        assert (significance.weights(9, 20) == first).all()
        with pytest.raises(ValueError, match="read-only"):
            significance.weights(9, 20)[0, 0] = 5

    def test_replicates_are_those_of_a_loop(self):
        rng = np.random.default_rng(0)
        queries = [rng.random(rng.integers(1, 5)) for _ in range(8)]  # of each image
        counts = np.array([len(q) for q in queries])
        replicates = significance.replicates(np.array([q.sum() for q in queries]), counts, 40)
        for drawn, replicate in zip(significance.weights(8, 40), replicates, strict=True):
            pooled = [v for times, q in zip(drawn, queries, strict=True) for v in [*q] * int(times)]
            assert replicate == pytest.approx(np.mean(pooled))

    def test_an_image_without_a_query_is_left_out(self):
        sums, counts = np.array([1.0, 0.0, 2.0]), np.array([1, 0, 2])
        replicates = significance.replicates(sums, counts, 30)
        assert (replicates == significance.replicates(sums[[0, 2]], counts[[0, 2]], 30)).all()

    def test_without_clusters_the_interval_is_scipys(self):
        values = np.random.default_rng(1).gamma(2.0, size=150)
        replicates = significance.replicates(values, np.ones(150), 20_000)
        scipys = stats.bootstrap(
            (values,), np.mean, n_resamples=20_000, method="percentile", rng=2
        ).confidence_interval
        width = scipys.high - scipys.low
        assert significance.percentiles(replicates) == pytest.approx(
            tuple(scipys), abs=0.03 * width
        )

    def test_the_interval_covers_as_often_as_it_says_and_needs_the_clusters(self):
        """300 sets of 120 images with 5 captions each; the true mean is a half."""
        trials, whole, single = 300, 0, 0
        for seed in range(trials):
            hits = clustered(seed, 120, 5)
            low, high = significance.percentiles(significance.replicates(*sums_of(hits)))
            whole += low <= 0.5 <= high
            alone = hits.ravel()  # every caption an image of its own
            replicates = significance.replicates(alone, np.ones(len(alone)), 400)
            low, high = significance.percentiles(replicates)
            single += low <= 0.5 <= high
        least, most = bounds(trials, significance.LEVEL)
        assert least <= whole <= most
        assert single < least


class TestDifferenceInterval:
    def test_without_images_it_is_students(self):
        differences = np.array([1.0, 2.5, 1.7])
        expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
        interval = significance.difference_interval(differences, None)
        assert interval == pytest.approx(tuple(expected))

    def test_of_one_seed_it_is_for_other_images_only(self):
        replicates = np.random.default_rng(0).normal(7, 3, 2000)
        low, high = significance.difference_interval(np.array([5.0]), replicates)
        margin = 1.959964 * np.std(replicates, ddof=1)
        assert (low, high) == pytest.approx((5 - margin, 5 + margin))

    def test_one_seed_without_images_has_none(self):
        assert significance.difference_interval(np.array([5.0]), None) is None

    def test_seeds_that_agree_leave_the_images(self):
        replicates = np.random.default_rng(0).normal(0, 2, 2000)
        agree = significance.difference_interval(np.full(3, 1.5), replicates)
        assert agree == significance.difference_interval(np.array([1.5]), replicates)

    def test_both_parts_add_up_with_welchs_degrees_of_freedom(self):
        """Welch's interval for two samples adds two such parts; SciPy has it."""
        rng = np.random.default_rng(3)
        seeds, images = rng.normal(2, 1, 3), rng.normal(0, 2, 100_000)
        expected = stats.ttest_ind(seeds, images, equal_var=False).confidence_interval(0.95)
        spread = np.std(images, ddof=1) / np.sqrt(len(images))
        replicates = rng.normal(size=500)
        replicates *= spread / np.std(replicates, ddof=1)
        low, high = significance.difference_interval(seeds, replicates)
        assert high - low == pytest.approx(expected.high - expected.low, rel=1e-6)

    @pytest.mark.parametrize(
        ("of_seeds", "of_images", "of_both"),
        [(0.0, 1.0, 0.0), (1.0, 1.0, 0.0), (2.0, 1.0, 0.5), (1.0, 0.01, 0.01)],
    )
    def test_three_seeds_are_covered_as_often_as_it_says(self, of_seeds, of_images, of_both):
        """Parts: luck of a seed, of an image, of a seed with an image, as std of the mean."""
        trials, images, covered, without_seeds = 1000, 100, 0, 0
        rng = np.random.default_rng(5)
        for _ in range(trials):
            values_SG = rng.normal(0, of_seeds, (3, 1))
            values_SG = values_SG + rng.normal(0, of_images * np.sqrt(images), images)
            values_SG = values_SG + rng.normal(0, of_both * np.sqrt(images), (3, images))
            replicates = resampled(values_SG.mean(0))
            low, high = significance.difference_interval(values_SG.mean(1), replicates)
            covered += low <= 0 <= high
            low, high = significance.percentiles(replicates)
            without_seeds += low <= 0 <= high
        least, most = bounds(trials, significance.LEVEL)
        assert least <= covered <= most
        assert (without_seeds < least) == (of_seeds > 0)

    def test_luck_of_a_seed_with_single_images_only_widens_it(self):
        rng, trials, covered = np.random.default_rng(6), 300, 0
        for _ in range(trials):
            values_SG = rng.normal(size=(3, 100))
            replicates = resampled(values_SG.mean(0))
            low, high = significance.difference_interval(values_SG.mean(1), replicates)
            covered += low <= 0 <= high
        assert covered >= bounds(trials, significance.LEVEL)[0]


class TestPermutation:
    @pytest.mark.parametrize("seed", range(4))
    def test_it_is_that_of_every_exchange(self, seed):
        """Captions change sides with their image, so an image is one difference."""
        rng = np.random.default_rng(seed)
        first, second = rng.integers(0, 2, (2, 10, 5))
        of_image = (first - second).sum(1) + rng.integers(0, 2, 10)
        exact = every_exchange([int(d) for d in of_image])
        p = significance.permutation_p(of_image[:, None] / 7, 10_000)[0]
        least, most = bounds(10_000, float(exact))
        assert least <= p * 10_001 - 1 <= most

    def test_without_clusters_it_is_scipys(self):
        rng = np.random.default_rng(8)
        first, second = rng.normal(0.4, 1, 12), rng.normal(0, 1, 12)
        exact = stats.permutation_test(
            (first, second),
            lambda a, b, axis: np.mean(a - b, axis=axis),
            permutation_type="samples",
            n_resamples=np.inf,
            vectorized=True,
        ).pvalue
        p = significance.permutation_p((first - second)[:, None] / 12)[0]
        least, most = bounds(10_000, exact)
        assert least <= p * 10_001 - 1 <= most
        assert 0.02 < exact < 0.98

    def test_ties_count_although_their_sums_are_rounded(self):
        tenths = [Fraction(n, 10) for n in (1, 2, 3, -3, 1, 2, -1, 7)]
        p = significance.permutation_p(np.array([[float(d)] for d in tenths]))[0]
        least, most = bounds(10_000, float(every_exchange(tenths)))
        assert least <= p * 10_001 - 1 <= most
        observed, *_ = totals = exchanged_totals(tenths)
        beyond = sum(total > observed for total in totals) / len(totals)
        assert beyond * 10_000 < least  # so many are ties

    def test_no_difference_is_one_and_p_is_never_zero(self):
        differences = np.stack([np.zeros(200), np.ones(200)], axis=1)
        assert significance.permutation_p(differences, 99).tolist() == [1.0, 0.01]

    def test_columns_do_not_touch_each_other_and_signs_do_not_matter(self):
        columns = np.random.default_rng(0).normal(0.1, 1, (50, 3))
        p = significance.permutation_p(columns, 1200)
        for number in range(3):
            alone = significance.permutation_p(-columns[:, [number]], 1200)
            assert alone[0] == p[number]

    def test_presets_that_are_alike_differ_as_often_as_chance_has_it(self):
        """And more often where captions change sides one by one."""
        rng, trials = np.random.default_rng(4), 1000
        of_image = rng.normal(size=(60, 1, trials)).repeat(4, axis=1)
        captions = of_image + 0.5 * rng.normal(size=(60, 4, trials))
        whole = significance.permutation_p(captions.sum(1), 999) <= 0.05
        single = significance.permutation_p(captions.reshape(240, trials), 999) <= 0.05
        least, most = bounds(trials, 0.05)
        assert least <= whole.sum() <= most < single.sum()


class TestHolm:
    def test_worked_by_hand(self):
        adjusted = significance.holm(np.array([0.01, 0.04, 0.03, 0.005]))
        assert adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])

    @pytest.mark.parametrize("seed", range(5))
    def test_it_is_the_definition(self, seed):
        p_values = np.random.default_rng(seed).random(12).round(1) ** 3
        assert significance.holm(p_values) == pytest.approx(naive_holm(p_values.tolist()))

    def test_of_none_and_of_one(self):
        assert significance.holm(np.array([])).tolist() == []
        assert significance.holm(np.array([0.2])).tolist() == [0.2]


class TestRankGroups:
    def groups(self, apart: dict[int, list[float]]) -> list[int]:
        return significance.rank_groups(len(apart), lambda leader: np.array(apart[leader]))

    def test_whoever_is_told_apart_from_the_leader_leads_the_next_group(self):
        p_of = {0: [0.9, 0.001, 0.001], 1: [], 2: [0.5], 3: []}
        assert self.groups(p_of) == [1, 1, 2, 2]

    def test_the_leader_decides_and_not_the_neighbour(self):
        """The third is like the second, but not like the first."""
        p_of = {0: [0.3, 0.01], 1: [0.9], 2: []}
        assert self.groups(p_of) == [1, 1, 2]

    def test_a_group_reaches_to_the_last_one_that_is_like_its_leader(self):
        p_of = {0: [0.001, 0.9], 1: [0.001], 2: []}
        assert self.groups(p_of) == [1, 1, 1]

    def test_p_is_adjusted_over_all_behind_the_leader(self):
        assert self.groups({0: [0.02, 0.03, 0.04], 1: [], 2: [], 3: []}) == [1, 1, 1, 1]
        assert self.groups({0: [0.02], 1: []}) == [1, 2]

    def test_one_and_none(self):
        assert self.groups({0: []}) == [1]
        assert self.groups({}) == []


def test_the_prediction_interval_is_student_s():
    values = [3.0, 5.0, 10.0]  # mean 6, s = sqrt(13)
    reach = stats.t.ppf(0.975, 2) * math.sqrt(13) * math.sqrt(4 / 3)
    assert significance.prediction_interval(values) == pytest.approx((6 - reach, 6 + reach))


def test_the_prediction_interval_covers_the_next_value():
    rng = np.random.default_rng(0)
    draws = rng.normal(50, 2, (2000, 4))
    intervals = [significance.prediction_interval(row[:3]) for row in draws]
    covered = sum(low <= row[3] <= high for (low, high), row in zip(intervals, draws, strict=True))
    assert stats.binom.ppf(0.001, 2000, 0.95) <= covered <= stats.binom.ppf(0.999, 2000, 0.95)


class TestWithSeeds:
    def test_both_sources_of_doubt_reach_at_a_right_angle(self):
        """Seeds 9, 10 and 11: t is 4.302653, the standard error 1 / sqrt(3)."""
        reach = 4.302653 / math.sqrt(3)
        low, high = significance.with_seeds((7.0, 14.0), [9.0, 10.0, 11.0])
        assert low == pytest.approx(10 - math.hypot(3, reach))
        assert high == pytest.approx(10 + math.hypot(4, reach))

    def test_seeds_that_agree_leave_the_interval_as_it_is(self):
        assert significance.with_seeds((7.0, 14.0), [10.0, 10.0]) == (7.0, 14.0)

    @pytest.mark.parametrize("seeds", [2, 3, 5])
    @pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
    def test_it_covers_the_mean_whether_images_or_seeds_dominate(self, seeds, share):
        """`share` is the seeds' part of the variance of the mean."""
        rng, runs = np.random.default_rng(0), 2000
        image, seed = math.sqrt(1 - share), math.sqrt(share * seeds)
        values = image * rng.normal(size=(runs, 1)) + seed * rng.normal(size=(runs, seeds))
        reach = 1.959964 * image
        covered = 0
        for drawn in values:
            low, high = significance.with_seeds((drawn.mean() - reach, drawn.mean() + reach), drawn)
            covered += low <= 0 <= high
        assert covered >= bounds(runs, 0.95)[0]

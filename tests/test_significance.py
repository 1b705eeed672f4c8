"""Significance against SciPy, statsmodels, naive loops and exact enumeration; the spread
of trainings against loops over their values; rank correlation; and the level of
intervals and tests, which is one number."""

import math

import numpy as np
import pytest
from scipy import special, stats
from scipy.stats import spearmanr
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from benchmark.stats import ALPHA, LEVEL, TAILS, comparisons, significance
from benchmark.stats.comparisons import Sample, Variance, spread, variance_of
from benchmark.stats.significance import (
    FEWEST,
    Doubt,
    SeedPart,
    Z,
    deviations,
    rank_correlation,
    spearman,
)


def own_spread(count: int, variance: float, interaction: float = 0.0) -> SeedPart:
    return SeedPart((count,), variance, interaction, count - 1, is_own=True)


def doubt(
    *parts: SeedPart, images: float = 0.0, inside: float = 0.0, count: int = 50
) -> Doubt:
    return Doubt(images=images, interaction=inside, image_count=count, seeds=parts)


class TestDeviations:
    def test_of_one_query_an_image_they_are_those_of_a_mean(self):
        values = np.random.default_rng(0).gamma(2.0, size=40)
        left = deviations(values, np.arange(40), 40)
        assert left.sum() == pytest.approx(0)
        assert math.sqrt((left**2).sum()) == pytest.approx(stats.sem(values))

    def test_of_several_they_are_what_drawing_images_gives(self):
        rng = np.random.default_rng(1)
        queries = [rng.random(rng.integers(1, 6)) + rng.random() for _ in range(60)]
        owner = np.repeat(np.arange(60), [len(q) for q in queries])
        variance = (deviations(np.concatenate(queries), owner, 60) ** 2).sum()
        means = [
            np.concatenate(
                [queries[image] for image in rng.integers(60, size=60)]
            ).mean()
            for _ in range(4000)
        ]
        assert variance == pytest.approx(np.var(means), rel=0.1)


class TestEstimates:
    def test_of_images_alone_it_is_students(self):
        values = np.random.default_rng(2).normal(1, 3, 30)
        left = deviations(values, np.arange(30), 30)
        estimate = significance.on_other_images(
            values.mean(), doubt(images=float(left @ left), count=30)
        )
        test = stats.ttest_1samp(values, 0)
        assert estimate.interval == pytest.approx(tuple(test.confidence_interval(0.95)))
        assert estimate.p() == pytest.approx(test.pvalue)

    def test_of_trainings_alone_it_is_welchs(self):
        first, second = np.array([9.0, 11.0, 10.5]), np.array([6.0, 9.5, 7.0, 8.0])
        parts = [
            own_spread(len(values), values.var(ddof=1)) for values in (first, second)
        ]
        value = first.mean() - second.mean()
        expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(
            0.95
        )
        assert significance.on_other_images(
            value, doubt(*parts)
        ).interval == pytest.approx(tuple(expected))

    def test_a_pooled_spread_is_students_with_two_samples(self):
        first, second = np.array([9.0, 11.0, 10.5]), np.array([6.0, 9.5, 7.0, 8.0])
        pooled = (2 * first.var(ddof=1) + 3 * second.var(ddof=1)) / 5
        part = SeedPart((3, 4), pooled, 0.0, 5, is_own=False)
        test = stats.ttest_ind(first, second)
        for scope in (significance.on_test_set, significance.on_other_images):
            estimate = scope(first.mean() - second.mean(), doubt(part))
            assert estimate.interval == pytest.approx(
                tuple(test.confidence_interval(0.95))
            )
            assert estimate.p() == pytest.approx(test.pvalue)

    def test_the_interaction_is_counted_once_and_a_spread_below_it_adds_nothing(self):
        """Images 4, of which 1 is the interaction of three trainings; the spread leaves
        5 - 3."""
        part = own_spread(3, 5.0, interaction=3.0)
        estimate = significance.on_other_images(
            0.0, doubt(part, images=4.0, inside=1.0)
        )
        assert estimate.error**2 == pytest.approx(4.0 + (5.0 - 3.0) / 3)
        freedom = (4 + 2 / 3) ** 2 / (4**2 / 49 + (5 / 3) ** 2 / 2)
        assert estimate.freedom == pytest.approx(freedom)
        part = own_spread(3, 2.0, interaction=3.0)
        estimate = significance.on_other_images(
            0.0, doubt(part, images=4.0, inside=1.0)
        )
        assert estimate.error == pytest.approx(2.0)
        assert estimate.freedom >= 2

    def test_on_the_test_set_only_trainings_count_and_equal_seeds_vary_less(self):
        part = own_spread(4, 5.0, interaction=3.0)
        estimate = significance.on_test_set(1.0, doubt(part, images=40.0, inside=0.75))
        assert (estimate.error**2, estimate.freedom) == (pytest.approx(5 / 4), 3)
        # The interaction of the difference is 0.1, that of two presets would be 2.
        part = SeedPart((3, 3), 3.0, 3.0, 20, is_own=False)
        here = significance.on_test_set(1.0, doubt(part, images=0.5, inside=0.1))
        assert here.error**2 == pytest.approx(0.1)

    def test_without_spread_there_is_no_estimate_and_of_unknown_trainings_none_on_the_test_set(
        self,
    ):
        assert significance.on_other_images(6.0, doubt(own_spread(3, 0.0))) is None
        assert (
            significance.on_test_set(6.0, doubt(own_spread(3, 0.0), images=2.0)) is None
        )
        assert significance.on_other_images(6.0, doubt()) is None
        assert significance.on_test_set(6.0, doubt(images=2.0)) is None
        assert significance.on_other_images(6.0, doubt(images=4.0)).error == 2.0

    def test_trainings_that_are_all_the_same_take_no_degrees_of_freedom(self):
        # as of a closed form beside a preset whose spread is pooled
        pooled = SeedPart((3,), 6.0, 0.0, 12, is_own=False)
        both = doubt(pooled, own_spread(3, 0.0))
        for part in (both, both._replace(images=1e-12)):
            assert part.least_freedom == 12
        estimate = significance.on_test_set(1.0, both)
        assert (estimate.error**2, estimate.freedom) == (pytest.approx(2.0), 12)

    @pytest.mark.parametrize(("count", "freedom"), [(0, 1), (1, 1), (2, 1), (3, 2)])
    def test_few_images_leave_at_least_one_degree_of_freedom(self, count, freedom):
        assert doubt(images=4.0, count=count).least_freedom == freedom


class TestConstant:
    @pytest.mark.parametrize("units", [20, 150])
    def test_where_the_value_is_the_reach_it_is_the_sign_test(self, units):
        for value in (100.0, -100.0):
            same = significance.Constant(value=value, units=units, reach=100.0)
            assert same.p() == pytest.approx(stats.binomtest(units, units).pvalue)
        ends = stats.binomtest(units, units).proportion_ci(method="exact")
        assert same.interval == pytest.approx((-100, 100 * (1 - 2 * ends.low)))

    @pytest.mark.parametrize("value", [0.0, 30.0, -30.0, 100.0])
    def test_p_is_a_twentieth_where_the_interval_ends(self, value):
        same = significance.Constant(value=value, units=200, reach=100.0)
        low, high = same.interval
        assert -100 <= low <= value <= high <= 100 and low < high
        if value > 0:
            assert same.p_above(low) == pytest.approx(0.05)
            assert same.p(beyond=low) == pytest.approx(0.05)
        if value < 0:
            assert same.p(beyond=-high) == pytest.approx(0.05)
            assert same.p_above(0.0) == 1
        assert same.p(beyond=abs(value)) == 1

    def test_it_covers_where_a_small_share_differs_as_much_as_it_can(self):
        """A share of 2% that nobody of 100 saw lies within the interval."""
        same = significance.Constant(value=100.0, units=100, reach=100.0)
        assert same.interval[0] <= 0.98 * 100 - 0.02 * 100


class TestScoreInterval:
    @pytest.mark.parametrize(
        ("hits", "queries"), [(0, 100), (1, 100), (37, 100), (100, 100)]
    )
    def test_it_is_wilsons_and_twice_the_variance_is_half_the_queries(
        self, hits, queries
    ):
        share = hits / queries
        variance = 100**2 * share * (1 - share) / queries
        ends = significance.score_interval(100 * share, variance, 100.0, queries)
        low, high = proportion_confint(hits, queries, method="wilson")
        assert ends == pytest.approx((100 * low, 100 * high))
        ends = significance.score_interval(
            30.0, 2 * 100**2 * 0.3 * 0.7 / 100, 100.0, 100
        )
        low, high = proportion_confint(15, 50, method="wilson")
        assert ends == pytest.approx((100 * low, 100 * high))

    @pytest.mark.parametrize("mean", [0.0, 100.0])
    def test_a_variance_that_rounding_leaves_is_none(self, mean):
        exact = significance.score_interval(mean, 0.0, 100.0, 50)
        assert significance.score_interval(mean, 1e-25, 100.0, 50) == exact

    def test_rare_hits_are_covered(self):
        """R@1 of 1% and 100 images: every number of hits with its probability."""
        covered = 0.0
        for hits in range(101):
            values = np.array([100.0] * hits + [0.0] * (100 - hits))
            left = deviations(values, np.arange(100), 100)
            low, high = significance.score_interval(
                values.mean(), float(left @ left), 100.0, 100
            )
            covered += stats.binom.pmf(hits, 100, 0.01) * (low <= 1.0 <= high)
        assert 0.9 <= covered <= 0.995  # the percentile interval of a bootstrap: 0.63

    def test_rare_hits_of_clustered_queries_are_covered(self):
        """200 images with five captions; a quarter of the images hit with 4% of their
        captions."""
        rng, trials, covered = np.random.default_rng(0), 1000, 0
        for _ in range(trials):
            chances = np.where(rng.random(200) < 0.25, 0.04, 0.0)
            hits = 100.0 * (rng.random((200, 5)) < chances[:, None]).ravel()
            left = deviations(hits, np.repeat(np.arange(200), 5), 200)
            ends = significance.score_interval(
                hits.mean(), float(left @ left), 100.0, 200
            )
            covered += ends[0] <= 1.0 <= ends[1]
        assert 0.93 <= covered / trials <= 0.99


class TestWithSeeds:
    def test_both_sources_of_doubt_reach_at_a_right_angle(self):
        """Three trainings: t is 4.302653, the standard error sqrt((5 - 2) / 3)."""
        reach = 4.302653
        low, high = significance.with_seeds(10.0, (7.0, 14.0), own_spread(3, 5.0, 2.0))
        assert low == pytest.approx(10 - math.hypot(3, reach))
        assert high == pytest.approx(10 + math.hypot(4, reach))
        assert significance.with_seeds(10.0, (7.0, 14.0), own_spread(3, 2.0, 2.5)) == (
            7.0,
            14.0,
        )


class TestHolm:
    @pytest.mark.parametrize("count", [1, 2, 40])
    def test_it_is_that_of_statsmodels_to_the_last_bit(self, count):
        p_values = np.random.default_rng(count).random(count) ** 3
        theirs = multipletests(p_values, method="holm")[1]
        assert (
            np.minimum(significance.holm_products(p_values), 1.0).tolist()
            == theirs.tolist()
        )


def test_pairs_are_apart_after_holm_over_all_of_them():
    assert not significance.apart([0.02, 0.02, 0.9], 3).any()
    first = significance.apart([0.01, 0.01, 0.9], 3)
    assert first.tolist() == [
        [False, True, True],
        [True, False, False],
        [True, False, False],
    ]
    assert (
        significance.apart([], 1).tolist() == [[False]]
        and not significance.apart([], 0).size
    )


def test_the_ends_of_a_sum_lie_as_far_as_the_root_of_the_sum_of_squares():
    low, high = significance.summed([10.0, 2.0], [(7.0, 11.0), (-2.0, 4.0)])
    assert (low, high) == pytest.approx((12.0 - 5.0, 12.0 + 5.0**0.5))


def test_ranks_are_those_that_keep_the_order_of_what_differs():
    apart_RR = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool)
    assert significance.rank_intervals(apart_RR) == [(1, 2), (1, 3), (2, 3)]


# The spread of trainings --------------------------------------------------------------


def sample_of(values: list[float], noise: list[list[float]] | None = None) -> Sample:
    kept = None if noise is None else {s: np.array(n) for s, n in enumerate(noise)}
    return Sample(dict(enumerate(values)), kept)


def drawn(rng: np.random.Generator, count: int, deviation: float) -> Sample:
    return sample_of(rng.normal(0, deviation, count).tolist())


def test_the_pooled_variance_is_that_within_presets():
    rng = np.random.default_rng(0)
    counts = dict(zip("abcd", (3, 3, 2, 5), strict=True))
    groups = {name: drawn(rng, count, 2.0) for name, count in counts.items()}
    squares = 0.0
    for group in groups.values():
        mean = sum(group.values.values()) / len(group.values)
        squares += sum((value - mean) ** 2 for value in group.values.values())
    assert spread(groups, groups).pooled == Variance(pytest.approx(squares / 9), 0.0, 9)
    groups = {"a": sample_of([4.0] * 3, [[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]])}
    assert spread(groups, groups).pooled.freedom == 2
    same = {name: sample_of([n, n + 1.0, n + 2.0]) for n, name in enumerate("abcd")}
    of_groups = spread(same, same)
    assert np.isinf(of_groups.prior.freedom) and of_groups.part(
        "a", 3
    ) == of_groups.part("new", 3)
    assert of_groups.part("a", 3)[1:] == (1.0, 0.0, 8, False)


def test_the_interaction_is_the_variance_of_a_training_s_luck():
    noise = [[1.0, -1.0, 0.0], [0.0, -1.0, 1.0], [2.0, -2.0, 0.0]]
    mean = np.mean(noise, axis=0)
    expected = (
        sum((x - m) ** 2 for row in noise for x, m in zip(row, mean, strict=True)) / 2
    )
    assert variance_of(sample_of([1.0, 2.0, 4.0], noise)).interaction == pytest.approx(
        expected
    )


def test_single_trainings_fusions_and_constants_do_not_lend_their_spread():
    same = [[1.0, -1.0]] * 3
    groups = {
        "one": sample_of([5.0]),
        "fused": sample_of([1.0, 5.0, 9.0]),
        "constant": sample_of([4.0] * 3, same),
        "unknown": sample_of([4.0] * 3),
        "trained": sample_of([1.0, 2.0, 3.0]),
    }
    of_groups = spread(groups, set(groups) - {"fused"})
    assert of_groups.pooled == Variance(1.0, 0.0, 2)
    assert of_groups.own == {
        "fused": Variance(16.0, 0.0, 2),
        "constant": Variance(0.0, 0.0, 2),
    }
    assert of_groups.part("one", 1) is None
    assert of_groups.part("unknown", 3).variance == 1.0
    assert of_groups.part("constant", 3).variance == 0.0
    assert of_groups.part("fused", 3).is_own


def test_wide_presets_are_set_aside_one_after_the_other():
    rng = np.random.default_rng(1)
    groups = {f"p{n}": drawn(rng, 5, 1.0) for n in range(12)}
    groups |= {
        "wide": sample_of([0.0, 30.0, -30.0, 12.0, 5.0]),
        "wider": sample_of([0, 300, -300, 9, 8]),
    }
    of_groups = spread(groups, groups)
    assert set(of_groups.own) == of_groups.outliers == {"wide", "wider"}
    assert of_groups.pooled.freedom == 48 and of_groups.pooled.variance < 2


def test_of_two_presets_one_is_wide_if_p_is_below_half_of_a_hundredth():
    """Of F with 2 and 2 degrees of freedom p of x is 1 / (1 + x)."""
    for ratio, outliers in ((142.0, set()), (250.0, {"wide"})):
        far = math.sqrt(ratio)
        groups = {
            "steady": sample_of([-1.0, 0.0, 1.0]),
            "wide": sample_of([-far, 0.0, far]),
        }
        assert spread(groups, groups).outliers == outliers


def test_a_steady_preset_is_drawn_to_the_common_variance_in_part():
    """By hand, with s0^2 and d0 as of a search over the equations of Smyth (2004)."""
    variances = [0.2, 0.5, 1.0, 3.0, 9.0, 20.0, 40.0, 0.1]
    deviation = np.sqrt(variances)
    groups = {f"p{n}": sample_of([-d, 0.0, d]) for n, d in enumerate(deviation)}
    logs = np.log(variances) - special.digamma(1) + np.log(1)
    wanted = np.var(logs, ddof=1) - special.polygamma(1, 1.0)
    halves = np.linspace(0.01, 20, 2_000_000)
    half = halves[np.abs(special.polygamma(1, halves) - wanted).argmin()]
    common = np.exp(logs.mean() + special.digamma(half) - np.log(half))
    of_groups = spread(groups, groups)
    assert of_groups.own == {}
    assert of_groups.prior[::2] == pytest.approx((common, 2 * half), rel=1e-4)
    for n, variance in enumerate(variances):
        part = of_groups.part(f"p{n}", 3)
        moderated = (2 * half * common + 2 * variance) / (2 * half + 2)
        expected = (variance, 2) if variance > moderated else (moderated, 2 * half + 2)
        assert (part.variance, part.freedom) == pytest.approx(expected, rel=1e-4)
        assert part.is_own
    single = of_groups.part("new", 1)
    assert (single.variance, single.freedom) == pytest.approx(
        (common, 2 * half), rel=1e-4
    )


def test_four_presets_of_three_trainings_tell_how_unlike_they_are_and_three_do_not():
    deviations_of = dict(zip("abcd", np.sqrt([1.0, 1.0, 20.0, 20.0]), strict=True))
    four = {name: sample_of([-d, 0.0, d]) for name, d in deviations_of.items()}
    three = {name: four[name] for name in "abc"}
    assert not spread(four, four).outliers and not spread(three, three).outliers
    assert np.isfinite(spread(four, four).prior.freedom)
    assert np.isinf(spread(three, three).prior.freedom)


@pytest.mark.parametrize(
    ("freedom", "within"), [(3.0, (2.0, 4.5)), (10.0, (6.0, 20.0))]
)
def test_how_unlike_presets_are_is_found_again(freedom, within):
    """Simulated: variances s0^2 d0 / chi^2(d0) of 400 presets with three trainings."""
    rng, priors = np.random.default_rng(3), []
    for _ in range(20):
        true = 4.0 * freedom / rng.chisquare(freedom, 400)
        drawn = [Variance(variance * rng.chisquare(2) / 2, 0.0, 2) for variance in true]
        priors.append(comparisons.common_variance(drawn))
    assert within[0] < np.median([d0 for _, d0 in priors]) < within[1]
    assert np.median([variance for variance, _ in priors]) == pytest.approx(
        4.0, rel=0.15
    )


def test_two_wide_presets_among_steady_ones_are_seldom_told_apart_by_chance():
    rng, runs = np.random.default_rng(4), 600
    alarms = {"moderated": 0, "one for all": 0}
    for _ in range(runs):
        wide = {f"w{n}": drawn(rng, 3, 12.4**0.5) for n in range(6)}
        steady = {f"s{n}": drawn(rng, 4, 2.7**0.5) for n in range(16)}
        of_groups = spread(wide | steady, wide | steady)
        pair = [wide["w0"], wide["w1"]]
        parts = {
            "moderated": [of_groups.part(name, 3) for name in ("w0", "w1")],
            "one for all": [
                significance.SeedPart((3,), *of_groups.pooled, is_own=False)
            ]
            * 2,
        }
        for name in alarms:
            doubt = comparisons.doubt(pair, parts[name])
            estimate = significance.on_other_images(pair[0].mean - pair[1].mean, doubt)
            alarms[name] += estimate.p() < 0.05
    assert 0.02 < alarms["moderated"] / runs < 0.11
    assert 0.2 < alarms["one for all"] / runs < 0.32


def test_presets_that_vary_alike_are_seldom_set_aside():
    rng, runs = np.random.default_rng(2), 400
    aside = 0
    for _ in range(runs):
        groups = {f"p{n}": drawn(rng, 3, 2.0) for n in range(12)}
        aside += bool(spread(groups, groups).own)
    assert aside <= stats.binom.ppf(0.999, runs, comparisons.OUTLIER)


# Rank correlation ---------------------------------------------------------------------


def groups_of_one(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def test_it_is_that_of_scipy_with_ties_too():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=40), rng.integers(0, 5, 40)
    expected = spearmanr(first, second).statistic
    assert spearman(first, second, np.ones((1, 40))) == pytest.approx(expected)
    found = rank_correlation(first, second, groups_of_one(40))
    assert found.value == pytest.approx(expected)
    assert (found.count, found.groups) == (40, 40)


def test_the_interval_tells_a_connection_from_none():
    rng = np.random.default_rng(1)
    first = rng.normal(size=60)
    falls = rank_correlation(first, rng.normal(size=60) - 2 * first, groups_of_one(60))
    assert -1 <= falls.low < falls.value < falls.high < -0.5
    none = rank_correlation(first, rng.normal(size=60), groups_of_one(60))
    assert none.low < 0 < none.high
    again = rank_correlation(first, -first, groups_of_one(60))
    assert (again.low, again.value, again.high) == pytest.approx((-1, -1, -1))
    assert rank_correlation(first, -first, groups_of_one(60)) == again


def test_the_interval_covers_the_correlation_of_normal_pairs_95_times_of_100(
    monkeypatch,
):
    monkeypatch.setattr(significance, "RESAMPLES", 300)
    rng, hits = np.random.default_rng(2), 0
    rho = 0.7
    truth = 6 / np.pi * np.arcsin(rho / 2)
    for _ in range(60):
        first = rng.normal(size=50)
        second = rho * first + np.sqrt(1 - rho**2) * rng.normal(size=50)
        found = rank_correlation(first, second, groups_of_one(50))
        hits += found.low <= truth <= found.high
    assert hits >= 51  # of 60; 57 are meant


def test_few_pairs_and_those_that_do_not_vary_tell_nothing():
    many = list(map(float, range(FEWEST)))
    apart = groups_of_one(FEWEST)
    assert rank_correlation(many[1:], many[1:], apart[1:]) is None
    assert rank_correlation(many, [1.0] * FEWEST, apart) is None
    assert rank_correlation(many, many, ["a"] * FEWEST) is None
    assert rank_correlation(many, many, apart) is not None


def test_groups_of_alike_pairs_tell_less_than_as_many_pairs_apart():
    rng = np.random.default_rng(3)
    centres = np.repeat(rng.normal(size=(2, 4)), 10, axis=1)
    first, second = centres + 0.1 * rng.normal(size=(2, 40))
    together = rank_correlation(first, second, np.repeat([*"abcd"], 10))
    apart = rank_correlation(first, second, groups_of_one(40))
    assert together.groups == 4
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_a_group_is_drawn_with_all_its_pairs():
    first = np.tile([0.0, 1.0, 2.0, 3.0], 4) + np.repeat(np.arange(4), 4) / 10
    # the first pair of each is the same, and tells nothing
    first[::4] = 0.0
    drawn = rank_correlation(first, first, np.repeat([*"abcd"], 4))
    assert (drawn.low, drawn.high) == pytest.approx((1.0, 1.0))


# The level ----------------------------------------------------------------------------


def test_tests_and_tails_follow_from_the_level():
    assert (LEVEL, ALPHA, TAILS) == (0.95, 0.05, (0.025, 0.975))
    assert pytest.approx(LEVEL) == TAILS[1] - TAILS[0]


def test_a_normal_interval_is_as_wide_as_its_tails_say():
    low, high = stats.norm.ppf(TAILS)
    assert (-Z, Z) == pytest.approx((low, high))

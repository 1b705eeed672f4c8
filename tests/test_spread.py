"""The spread of trainings against loops over their values."""

import numpy as np
import pytest
from scipy import special, stats

from benchmark.stats import comparisons, significance
from benchmark.stats.comparisons import Sample, Variance, spread, variance_of


def sample(values: list[float], noise: list[list[float]] | None = None) -> Sample:
    kept = None if noise is None else {s: np.array(n) for s, n in enumerate(noise)}
    return Sample(dict(enumerate(values)), kept)


def drawn(rng: np.random.Generator, count: int, deviation: float) -> Sample:
    return sample(rng.normal(0, deviation, count).tolist())


def test_the_pooled_variance_is_that_within_presets():
    rng = np.random.default_rng(0)
    counts = dict(zip("abcd", (3, 3, 2, 5), strict=True))
    groups = {name: drawn(rng, count, 2.0) for name, count in counts.items()}
    squares = 0.0
    for group in groups.values():
        mean = sum(group.values.values()) / len(group.values)
        squares += sum((value - mean) ** 2 for value in group.values.values())
    assert spread(groups, groups).pooled == Variance(pytest.approx(squares / 9), 0.0, 9)
    groups = {"a": sample([4.0] * 3, [[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]])}
    assert spread(groups, groups).pooled.freedom == 2
    same = {name: sample([n, n + 1.0, n + 2.0]) for n, name in enumerate("abcd")}
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
    assert variance_of(sample([1.0, 2.0, 4.0], noise)).interaction == pytest.approx(
        expected
    )


def test_single_trainings_fusions_and_constants_do_not_lend_their_spread():
    same = [[1.0, -1.0]] * 3
    groups = {
        "one": sample([5.0]),
        "fused": sample([1.0, 5.0, 9.0]),
        "constant": sample([4.0] * 3, same),
        "unknown": sample([4.0] * 3),
        "trained": sample([1.0, 2.0, 3.0]),
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
        "wide": sample([0.0, 30.0, -30.0, 12.0, 5.0]),
        "wider": sample([0, 300, -300, 9, 8]),
    }
    of_groups = spread(groups, groups)
    assert set(of_groups.own) == of_groups.outliers == {"wide", "wider"}
    assert of_groups.pooled.freedom == 48 and of_groups.pooled.variance < 2


def test_a_steady_preset_is_drawn_to_the_common_variance_in_part():
    """By hand, with s0^2 and d0 as of a search over the equations of Smyth (2004)."""
    variances = [0.2, 0.5, 1.0, 3.0, 9.0, 20.0, 40.0, 0.1]
    deviation = np.sqrt(variances)
    groups = {f"p{n}": sample([-d, 0.0, d]) for n, d in enumerate(deviation)}
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

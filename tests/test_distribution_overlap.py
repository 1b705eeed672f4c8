"""S and its bound: a counting loop, closed forms, and SciPy."""

import numpy as np
import pytest
from oracles import ranking as naive
from oracles import whole_matrices
from oracles.whole_matrices import one_minus_ks, overlap
from scipy.stats import binom, ks_2samp, norm

from benchmark.scoring import distribution_overlap
from benchmark.scoring.metrics import overlap_interval


@pytest.mark.parametrize("bins", [1, 7, 200])
@pytest.mark.parametrize("seed", [0, 1])
def test_overlap_is_that_of_counting(seed, bins):
    rng = np.random.default_rng(seed)
    matched, unmatched = rng.uniform(-0.4, 1, 60), rng.uniform(-1, 0.6, 90)
    expected = naive.overlap(matched, unmatched, bins, -1.0, 1.0)
    assert overlap(matched, unmatched, bins=bins) == pytest.approx(expected, abs=1e-12)


def test_values_on_edges_belong_to_the_bin_above_and_the_last_edge_to_the_last_bin():
    sample = np.array([-1.0, -0.5, 0.0, 0.5, 0.5, 1.0])
    expected = [1 / 6, 1 / 6, 1 / 6, 3 / 6]
    assert distribution_overlap.shares(sample, 4, -1.0, 1.0).tolist() == expected
    assert naive.shares(sample, 4, -1.0, 1.0) == expected


@pytest.mark.parametrize("seed", range(5))
def test_ks_is_scipys_and_bounds_s(seed):
    rng = np.random.default_rng(seed)
    # whole numbers with a bin each: the histogram loses nothing, so the bound is exact
    matched, unmatched = rng.binomial(12, 0.6, 70), rng.binomial(12, 0.4, 130) - 1
    bound = one_minus_ks(matched, unmatched)
    assert bound == pytest.approx(1 - ks_2samp(matched, unmatched).statistic, abs=1e-12)
    s = overlap(matched, unmatched, bins=14, range=(-1.5, 12.5))
    assert 0 < s <= bound + 1e-12
    apart = rng.uniform(-1, 1, 40), rng.uniform(-0.8, 1, 50)
    bound = one_minus_ks(*apart)
    assert bound == pytest.approx(1 - ks_2samp(*apart).statistic, abs=1e-12)


OWNERS = np.array([0, 0, 1, 2, 2, 2, 3])


def some_scores(seed: int) -> np.ndarray:
    """(4, 7) float32, half of them on the edge of a bin."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(-1, 1, (4, len(OWNERS)))
    is_edge = rng.random(scores.shape) < 0.5
    return np.where(is_edge, np.round(2 * scores) / 2, scores).astype(np.float32)


def resampled(scores: np.ndarray, times: list[int], bins: int) -> float:
    """S of one resample, copy by copy: no copy meets the captions of another of its
    image."""
    copies = [image for image, count in enumerate(times) for _ in range(count)]
    captions = [
        [c for c, owner in enumerate(OWNERS) if owner == image] for image in copies
    ]
    matched, unmatched = [], []
    for a, image in enumerate(copies):
        for b, other in enumerate(copies):
            if a == b:
                matched += [scores[image, c] for c in captions[b]]
            elif image != other:
                unmatched += [scores[image, c] for c in captions[b]]
    return naive.overlap(matched, unmatched, bins, -1.0, 1.0)


@pytest.mark.parametrize("bins", [4, 200])
@pytest.mark.parametrize("seed", range(3))
def test_replicates_are_those_of_literal_resampling(seed, bins):
    times = [[1, 1, 1, 1], [3, 0, 1, 0], [2, 1, 0, 1], [0, 3, 1, 0], [0, 0, 2, 2]]
    scores = some_scores(seed)
    replicates = whole_matrices.replicates(
        scores, np.arange(len(scores)), OWNERS, np.array(times), (-1.0, 1.0), bins
    )
    expected = [resampled(scores, row, bins) for row in times]
    assert replicates.tolist() == pytest.approx(expected, abs=1e-12)
    assert max(expected) > 0


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((-0.2, 0.7), (-1.0, 1.0)),
        ((-1.000005, 1.000005), (-1.0, 1.0)),  # by rounding
        ((0.0, 7.0), (0.0, 7.0)),
        ((-3.0, 0.5), (-3.0, 0.5)),
    ],
)
def test_bins_are_of_cosines_only_if_both_ends_are(ends, expected):
    assert distribution_overlap.range_of_bins(*ends) == expected


def test_resamples_are_the_same_for_everyone_and_draw_every_image_alike():
    drawn = distribution_overlap.resamples(50, 2000)
    assert drawn.shape == (2000, 50) and (drawn.sum(1) == 50).all()
    assert (drawn[:200] == distribution_overlap.resamples(50)).all()
    assert drawn.mean(0) == pytest.approx(1, abs=0.1)
    assert drawn.var() == pytest.approx(1 - 1 / 50, rel=0.03)  # multinomial


@pytest.mark.slow
def test_the_interval_covers_the_true_overlap():
    """Two Gaussians: S is 2 Phi(-d / 2), d their distance in deviations."""
    rng, images, captions, runs = np.random.default_rng(0), 200, 5, 40
    owners = np.repeat(np.arange(images), captions)
    matched = np.arange(images)[:, None] == owners
    distance, deviation = 0.23, 0.18
    true = 2 * norm.cdf(-distance / 2 / deviation)
    drawn = distribution_overlap.resamples(images)
    reflected = below = 0
    for _ in range(runs):
        scores = np.clip(rng.normal(distance * matched, deviation), -1, 1)
        estimate = overlap(scores[matched], scores[~matched])
        replicates = whole_matrices.replicates(
            scores,
            np.arange(len(scores)),
            owners,
            drawn,
            distribution_overlap.COSINE_RANGE,
        )
        low, high = distribution_overlap.interval(estimate, replicates)
        reflected += low <= true <= high
        below += replicates.mean() < estimate
    assert reflected >= binom.ppf(0.001, runs, 0.95)
    # resamples are biased downwards: why the interval is reflected
    assert below > 0.9 * runs


LEVEL = np.full(distribution_overlap.RESAMPLES, 0.95)  # replicates without a spread
SPREAD = np.linspace(0.9, 0.99, distribution_overlap.RESAMPLES)


@pytest.mark.parametrize(
    ("estimate", "replicates", "expected"),
    [
        (0.98, SPREAD, (0.9723, 1.0)),
        (0.999, SPREAD, (0.999, 1.0)),  # reflected and cut, it would be [1.0003, 1.0]
        (0.5, SPREAD, (0.0123, 0.5)),  # wholly below S
        (0.1, SPREAD, (0.0, 0.1)),  # wholly below zero
        (0.95, SPREAD, (0.9123, 0.9978)),
        (0.97, 2 * SPREAD - 1, (0.9646, 1.0)),
        # they lie 0.05 too low
        (0.35, np.linspace(0.2, 0.4, 201)[::-1], (0.305, 0.495)),
        # one has no pairs
        (0.35, np.append(np.linspace(0.2, 0.4, 201), np.nan), (0.305, 0.495)),
    ],
)
def test_an_interval_of_s_reflects_its_replicates_in_its_range_and_contains_s(
    estimate, replicates, expected
):
    metrics = overlap_interval(estimate, replicates)
    low, high = metrics["overlap_s_low"], metrics["overlap_s_high"]
    assert (low, high) == pytest.approx(expected, abs=1e-4)
    assert 0 <= low <= estimate <= high <= 1
    assert all(type(bound) is float for bound in metrics.values())  # goes into JSON


@pytest.mark.parametrize(
    "replicates",
    [LEVEL, LEVEL[:1], np.append(LEVEL, np.nan), np.full(5, np.nan), np.array([])],
)
def test_replicates_without_a_spread_give_no_interval(replicates):
    assert distribution_overlap.interval(0.95, replicates) is None
    assert overlap_interval(0.95, replicates) == {}


def test_overlap_metrics_are_of_cosines_or_of_the_support():
    rng = np.random.default_rng(0)
    matched, unmatched = rng.uniform(-0.5, 1, 300), rng.uniform(-1, 0.5, 900)
    metrics = whole_matrices.score_metrics(matched, unmatched)
    assert metrics["overlap_range"] == [-1.0, 1.0] and metrics["overlap_bins"] == 200
    assert metrics["overlap_s"] == overlap(matched, unmatched, bins=200)
    assert metrics["overlap_s_half_bins"] > metrics["overlap_s_double_bins"]
    matched, unmatched = (
        np.array([2.0, 3.0], np.float32),
        np.array([-1.5, 2.5], np.float32),
    )
    wide = whole_matrices.score_metrics(matched, unmatched)
    assert wide["overlap_range"] == [-1.5, 3.0]
    # goes into JSON
    assert all(type(bound) is float for bound in wide["overlap_range"])

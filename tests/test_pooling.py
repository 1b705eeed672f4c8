"""One difference in several set-ups, against variances by hand and against made-up
experiments."""

from dataclasses import replace

import numpy as np
import pytest

from benchmark.stats.comparisons import Comparison
from benchmark.stats.pooling import heterogeneity, pool
from benchmark.stats.significance import Doubt, SeedPart, on_other_images

IMAGES = 400


def set_up(
    difference: float, noise: np.ndarray | None, images: str, main: float = 0.0
) -> Comparison:
    """With three trainings of each side, whose own variance adds `main` to that of the
    difference."""
    part = SeedPart((3, 3), main * 3 / 2, 0.0, 40, is_own=False)
    variance = 0.0 if noise is None else float(noise @ noise)
    doubt = Doubt(images=variance, interaction=0.0, image_count=IMAGES, seeds=(part,))
    return measured(difference=difference, doubt=doubt, noise=noise, images=images)


def measured(**facts: object) -> Comparison:
    return Comparison(first="a", second="b", **facts)


def noise(seed: int, error: float = 1.0) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=IMAGES)
    # squares add up to that of the error
    return error * drawn / np.sqrt(drawn @ drawn)


def variance(pooled) -> float:
    return pooled.doubt.images + pooled.doubt.main


def test_the_mean_counts_every_set_up_alike():
    sure, unsure = set_up(1.0, noise(0, 0.1), "a"), set_up(5.0, noise(1, 3.0), "b")
    assert pool([sure, unsure]).difference == pytest.approx(3.0)
    alone = pool([sure])
    assert alone.difference == 1.0
    assert alone.doubt._replace(seeds=()) == sure.doubt._replace(seeds=())


def test_other_images_are_independent_and_the_same_ones_are_not():
    of_image = noise(0)
    apart = pool([set_up(0, of_image, "a"), set_up(0, of_image, "b")])
    assert variance(apart) == pytest.approx(1 / 2)
    assert apart.doubt.image_count == 2 * IMAGES
    alike = pool([set_up(0, of_image, "a"), set_up(0, of_image, "a")])
    assert variance(alike) == pytest.approx(1.0)
    assert alike.doubt.image_count == IMAGES
    against = pool([set_up(0, of_image, "a"), set_up(0, -of_image, "a")])
    assert variance(against) == pytest.approx(0.0)
    known = set_up(0, of_image, "a")
    for unknown in (replace(known, noise=None), replace(known, noise=of_image[:9])):
        assert variance(pool([known, unknown])) == pytest.approx(1.0)  # as if alike


def test_trainings_are_independent_in_any_case():
    of_image = noise(0, 0.0)
    both = pool([set_up(0, of_image, "a", 1.0), set_up(0, of_image, "a", 3.0)])
    assert variance(both) == pytest.approx((1.0 + 3.0) / 4)
    assert both.doubt.seeds[0].counts == (3, 3)


def test_what_images_share_makes_no_set_ups_unlike():
    """A gap of 2 is two errors of independent set-ups, and many of alike ones."""
    of_image = noise(0)
    apart = heterogeneity([set_up(1, of_image, "a"), set_up(-1, noise(1), "b")])
    assert apart == pytest.approx(0.157, abs=0.002)  # chi^2(1) of 2^2 / 2
    alike = [set_up(1, of_image, "a", 0.01), set_up(-1, of_image, "a", 0.01)]
    assert heterogeneity(alike) < 1e-6
    assert heterogeneity([set_up(9, of_image, "a")]) == 1.0
    assert heterogeneity([set_up(1, None, "a"), set_up(2, None, "b")]) == 1.0


def of_trainings(difference: float, main: float, **facts: object) -> Comparison:
    # with a variance of trainings that is known with two degrees of freedom
    doubt = facts.pop("doubt", Doubt(0.0, 0.0, 0, ()))
    part = SeedPart((1,), main, 0.0, 2, is_own=True)
    return measured(difference=difference, doubt=doubt._replace(seeds=(part,)), **facts)


def test_every_two_of_three_set_ups_are_compared():
    # gaps of 0 and, twice, of the 5% of Student's t with 4 degrees of freedom
    gap = 2.776445 * np.sqrt(2)
    set_ups = [of_trainings(difference, 1.0) for difference in (0.0, 0.0, gap)]
    assert heterogeneity(set_ups) == pytest.approx(3 * 0.05, abs=1e-6)
    assert heterogeneity(set_ups[:2]) == 1.0


def test_two_set_ups_far_apart_show_beside_others_in_the_middle():
    middle = [of_trainings(0.0, 1.0), of_trainings(0.1, 1.0)]
    set_ups = [of_trainings(-50.0, 1.0), *middle, of_trainings(50.0, 1.0)]
    assert heterogeneity(set_ups) < 1e-4


def test_what_images_share_is_not_in_the_degrees_of_freedom_of_a_gap():
    """Trainings alone are in the gap, whose 4 degrees of freedom put the 5% of
    Student's t at 2.776445."""
    of_image = noise(0)
    known = {"doubt": Doubt(1.0, 0.0, IMAGES, ()), "noise": of_image, "images": "a"}
    gap = 2.776445 * np.sqrt(2)
    set_ups = [of_trainings(0.0, 1.0, **known), of_trainings(gap, 1.0, **known)]
    assert heterogeneity(set_ups) == pytest.approx(0.05, abs=1e-6)


def test_the_interaction_of_a_mean_is_a_part_of_its_variance_over_images():
    of_image = noise(0)
    known = set_up(0, of_image, "a")
    known = replace(known, doubt=known.doubt._replace(interaction=0.75))
    opposite = replace(known, noise=-of_image)
    assert pool([known, opposite]).doubt.interaction == pytest.approx(0.0)
    other = replace(known, images="b")
    assert pool([known, other]).doubt.interaction == pytest.approx(2 * 0.75 / 4)


@pytest.mark.parametrize("is_same", [True, False], ids=["same images", "other images"])
@pytest.mark.parametrize("count", [2, 9])
def test_intervals_and_heterogeneity_are_right_in_made_up_experiments(count, is_same):
    rng = np.random.default_rng(7)
    covered = unlike = 0
    experiments = 2000
    # images that set-ups share to a half, and trainings of their own
    for _ in range(experiments):
        shared = rng.normal(size=100) if is_same else None
        set_ups = [made_up(rng, shared, number) for number in range(count)]
        pooled = pool(set_ups)
        low, high = on_other_images(pooled.difference, pooled.doubt).interval
        covered += low <= 0.0 <= high
        unlike += heterogeneity(set_ups) <= 0.05
    assert 0.93 <= covered / experiments <= 0.97
    assert unlike / experiments <= 0.065


def made_up(
    rng: np.random.Generator, shared: np.ndarray | None, number: int
) -> Comparison:
    """The mean of 100 images with a true mean of zero, and of two trainings with an
    error of 0.1 whose variance is known as well as from 12."""
    own = rng.normal(size=100)
    values = own if shared is None else (own + shared) / np.sqrt(2)
    luck = 0.1**2
    estimated = luck * rng.chisquare(12) / 12
    part = SeedPart((1,), estimated, 0.0, 12, is_own=False)
    left = (values - values.mean()) / np.sqrt(100 * 99)
    doubt = Doubt(
        images=float(left @ left), interaction=0.0, image_count=100, seeds=(part,)
    )
    return measured(
        difference=float(values.mean() + np.sqrt(luck) * rng.normal()),
        doubt=doubt,
        noise=left,
        images="all" if shared is not None else str(number),
    )

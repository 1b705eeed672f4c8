"""Fresh short trainings are as good as those of ten seeds were: `pytest benchmark/`.

A method that got a tenth worse is caught, an unlucky seed is not. The distributions are in
short_trainings.json; `python -m benchmark.checks.short_trainings` writes it.
"""

import numpy as np
import pytest

from benchmark.checks import short_trainings
from benchmark.checks.short_trainings import (
    SCORES,
    SEEDS,
    TRAININGS,
    lowest,
    rsum,
    with_shuffled_pairs,
    with_wrong_margin,
)
from benchmark.core.files import read_json

FRESH = range(100, 106)  # seeds that the distributions do not know
DEFECTS = [("two_branch", with_shuffled_pairs), ("vse", with_wrong_margin)]


@pytest.fixture(scope="module")
def ten_seeds() -> dict[str, list[float]]:
    assert SCORES.is_file(), "run python -m benchmark.checks.short_trainings"
    return {name: facts["rsums"] for name, facts in read_json(SCORES).items()}


@pytest.mark.parametrize("name", TRAININGS)
def test_fresh_trainings_are_as_good_as_ten_seeds_were(name, ten_seeds, one_thread, benchmark):
    fresh = benchmark.pedantic(lambda: [rsum(name, seed) for seed in FRESH], rounds=1)
    bound = lowest(ten_seeds[name], len(fresh))
    benchmark.extra_info |= {"rsum": round(np.mean(fresh), 1), "bound": round(bound, 1)}
    assert np.mean(fresh) >= bound


@pytest.mark.parametrize("name", TRAININGS)
def test_a_tenth_less_is_caught_and_an_unlucky_seed_is_not(name, ten_seeds):
    rsums = ten_seeds[name]
    assert len(rsums) == len(SEEDS)
    assert 0.9 * np.mean(rsums) < lowest(rsums, len(FRESH))
    others = (len(FRESH) - 1) * np.mean(rsums)
    assert (min(rsums) + others) / len(FRESH) >= lowest(rsums, len(FRESH))


@pytest.mark.parametrize(("name", "harm"), DEFECTS)
def test_a_planted_defect_is_caught(name, harm, ten_seeds, one_thread):
    harmed = [rsum(name, seed, harm) for seed in FRESH]
    assert np.mean(harmed) < lowest(ten_seeds[name], len(harmed))


def test_the_bound_is_that_of_students_t():
    """Of 0, 2, 4, whose mean is 2 and whose deviation is 2; t of 2 degrees at 0.99 is 6.9646."""
    assert lowest([0.0, 2.0, 4.0], fresh=3) == pytest.approx(
        2 - 6.9646 * 2 * (2 / 3) ** 0.5, rel=1e-4
    )
    assert short_trainings.SURE == 0.99

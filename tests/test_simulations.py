"""How often intervals cover, and verdicts and letters err, in simulations with known truth.

The long ones are run by `python -m pytest -m simulation -s tests/test_simulations.py`, which prints
their table.
"""

import pytest
from scipy import stats
from simulated_trainings import (
    MARGIN,
    SETTINGS,
    coverage,
    holding,
    split_runs,
    verdict_errors,
)

LEVEL = 0.95
QUICK = ("Flickr8k, unrelated", "seeds as large", "seeds dominate", "three presets")
ROBUST = ("unequal spread",)  # where no rule can be exact


def is_plausible(count: int, of: int, low: float, high: float, runs: int | None = None) -> bool:
    """Whether a share between low and high could give the count; `runs` is the number of draws that
    do not hang together."""
    n = runs or of
    share = round(count / of * n)
    return stats.binom.ppf(0.001, n, low) <= share <= stats.binom.ppf(0.999, n, high)


@pytest.mark.parametrize("name", QUICK)
def test_intervals_cover_what_they_say(name):
    setting = SETTINGS[name]
    runs = 40 if setting.presets > 3 else 300
    covered = coverage(setting, runs, seed=1)
    for count in covered[:-1]:
        assert is_plausible(count, covered.of, 0.94, 0.97), covered


@pytest.mark.parametrize("name", ["Flickr8k, unrelated", "seeds dominate"])
def test_of_equal_presets_few_families_have_a_false_verdict(name):
    errors = verdict_errors(SETTINGS[name], effect=0.0, share=0.0, runs=60, seed=2)
    assert is_plausible(errors.families, errors.runs, 0.0, 0.05), errors


def test_half_of_the_claims_true_changes_nothing():
    errors = verdict_errors(SETTINGS["Flickr8k, related"], 12.0, 0.5, runs=40, seed=3)
    assert is_plausible(errors.families, errors.runs, 0.0, 0.05), errors
    assert errors.asserted > 0.95 * errors.of_effect
    assert errors.false_none == 0


def test_a_difference_as_large_as_the_margin_is_seldom_called_none():
    errors = verdict_errors(SETTINGS["seeds dominate"], MARGIN, 1.0, runs=40, seed=4)
    assert is_plausible(errors.false_none, errors.of_effect, 0.0, 0.03, runs=errors.runs), errors


@pytest.mark.parametrize("name", ["Flickr8k, unrelated", "seeds dominate"])
def test_what_lies_on_the_margin_is_seldom_called_far_above(name):
    assert holding(SETTINGS[name], "far", MARGIN, 40, seed=7) <= 0.03
    assert holding(SETTINGS[name], "far", 5 * MARGIN, 10, seed=8) > 0.9


@pytest.mark.parametrize("name", ["Flickr8k, unrelated", "seeds dominate, some single"])
def test_equal_presets_seldom_get_different_letters(name):
    assert is_plausible(split_runs(SETTINGS[name], 25, seed=5), 25, 0.0, 0.05)


@pytest.mark.simulation
def test_the_table_of_all_settings():
    """Prints coverage, family error, power and errors of letters."""
    print()
    heads = ["cover", "test set", "preset", "next", "family", "power 6", "power 12", "none at 6"]
    heads += ["like at 0", "like at 6", "letters"]
    print(" | ".join(["setting", *heads]))
    for name, setting in SETTINGS.items():
        covered = coverage(setting, 400 if setting.presets > 3 else 3000, seed=11)
        shares = [count / covered.of for count in covered[:-1]]
        none = verdict_errors(setting, 0.0, 0.0, 1000, seed=12)
        six = verdict_errors(setting, 6.0, 1.0, 200, seed=13)
        twelve = verdict_errors(setting, 12.0, 1.0, 200, seed=14)
        like = [holding(setting, "alike", effect, 200, seed=15) for effect in (0.0, MARGIN)]
        split = split_runs(setting, 200, seed=16) / 200
        row = [*shares, none.families / none.runs, six.asserted / six.of_effect]
        row += [twelve.asserted / twelve.of_effect, six.false_none / six.of_effect, *like, split]
        print(" | ".join([name, *(f"{100 * share:.1f}" for share in row)]), flush=True)
        assert none.families <= stats.binom.ppf(0.999, none.runs, 0.05), name
        assert split * 200 <= stats.binom.ppf(0.999, 200, 0.05), name
        assert name in ROBUST or min(shares) > 0.935 and max(shares) < 0.975, name

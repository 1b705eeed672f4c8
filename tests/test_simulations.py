"""How often intervals cover, and verdicts and rivals err, in simulations with known
truth.

The long ones are run by `python -m pytest -m simulation -s tests/test_simulations.py`,
which prints their table.
"""

from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special, stats

from benchmark.stats import comparisons, significance
from benchmark.stats.claim_kinds import KINDS, ORDERED, Conclusion
from benchmark.stats.comparisons import Comparison, Sample
from benchmark.stats.verdicts import Rule, Verdict, judge

IMAGES = 100
MARGIN = 6.0
BEATS = Rule(kind=ORDERED, margin=MARGIN)
ASSERTED = (Conclusion.HOLDS, Conclusion.REVERSED)


class Setting(NamedTuple):
    """In rsum, of the mean over all images."""

    images: float  # of a preset with the images, alone
    interaction: float  # of a training with the images
    seeds: float  # of a training, on whatever images
    seeds_of: tuple[int, ...] = (3,)  # trainings of the presets, in turns
    presets: int = 21
    # every other preset varies so many times as much by its trainings
    unequal: float = 1.0


SETTINGS = {
    "Flickr8k, unrelated": Setting(2.0, 2.0, 0.0),
    "Flickr8k, related": Setting(0.35, 2.0, 0.0),
    "Flickr8k, five seeds": Setting(2.0, 2.0, 0.0, (5,)),
    "1 to 3 seeds": Setting(2.0, 2.0, 0.0, (3, 1, 2)),
    "images dominate": Setting(4.0, 0.5, 0.0),
    "seeds as large": Setting(2.0, 2.0, 2.0),
    "seeds dominate": Setting(0.3, 0.3, 3.0),
    "seeds dominate, two seeds": Setting(0.3, 0.3, 3.0, (2,)),
    "seeds dominate, some single": Setting(0.3, 0.3, 3.0, (3, 1)),
    "three presets": Setting(2.0, 2.0, 2.0, (3,), 3),
    "unequal spread": Setting(0.3, 0.3, 2.0, (3,), 21, 1.5),
}


class Drawn(NamedTuple):
    """A season of made-up presets."""

    samples: dict[str, Sample]
    truth: dict[str, float]  # mean over all images and trainings
    on_test_set: dict[str, float]  # mean over all trainings


def draw(setting: Setting, effects: list[float], rng: np.random.Generator) -> Drawn:
    """Presets 00, 01, ... whose true values are `effects`."""
    samples, truth, on_test_set = {}, {}, {}
    for number, effect in enumerate(effects):
        name = f"{number:02}"
        count = setting.seeds_of[number % len(setting.seeds_of)]
        wider = setting.unequal if number % 2 else 1.0
        of_images_G = rng.normal(0, setting.images / IMAGES**0.5, IMAGES)
        shape = (count, IMAGES)
        both_SG = of_images_G + rng.normal(
            0, wider * setting.interaction / IMAGES**0.5, shape
        )
        means_S = effect + both_SG.sum(1) + rng.normal(0, wider * setting.seeds, count)
        noise_SG = (both_SG - both_SG.mean(1, keepdims=True)) * (
            IMAGES / (IMAGES - 1)
        ) ** 0.5
        samples[name] = Sample(
            dict(enumerate(means_S)), dict(enumerate(noise_SG)), IMAGES
        )
        truth[name], on_test_set[name] = effect, effect + of_images_G.sum()
    return Drawn(samples, truth, on_test_set)


def compared(
    drawn: Drawn, spread: comparisons.Spread, first: str, second: str
) -> Comparison:
    both = [drawn.samples[first], drawn.samples[second]]
    comparison = comparisons.compare([first, second], both, spread)
    assert not comparison.is_of_these_trainings
    return comparison


class Covered(NamedTuple):
    """Counts of intervals; `of` is how many there were."""

    on_other_images: int = 0
    on_test_set: int = 0
    of_presets: int = 0  # the leaderboard's
    next_training: int = 0  # the prediction intervals
    of: int = 0


def coverage(setting: Setting, runs: int, seed: int) -> Covered:
    """Of the differences of neighbours, and of the first preset of each pair."""
    rng, counted = np.random.default_rng(seed), np.zeros(5, dtype=int)
    for _ in range(runs):
        drawn = draw(setting, [300.0] * setting.presets, rng)
        spread = comparisons.spread(drawn.samples, drawn.samples)
        for first, second in list(pairwise(drawn.samples))[::2]:
            comparison = compared(drawn, spread, first, second)
            here = drawn.on_test_set[first] - drawn.on_test_set[second]
            counted += (
                is_inside(0.0, comparison.interval),
                is_inside(here, comparison.on_test_set.interval),
                *is_preset_covered(setting, drawn, spread, first, rng),
                1,
            )
    return Covered(*counted.tolist())


def is_preset_covered(setting, drawn, spread, preset, rng) -> tuple[bool, bool]:
    sample, part = (
        drawn.samples[preset],
        spread.part(preset, len(drawn.samples[preset].values)),
    )
    variance = float((sample.mean_noise**2).sum())
    over_images = significance.score_interval(sample.mean, variance, 600.0, IMAGES)
    ends = significance.with_seeds(sample.mean, over_images, part)
    wider = setting.unequal if int(preset) % 2 else 1.0
    another = drawn.on_test_set[preset] + rng.normal(
        0, wider * np.hypot(setting.interaction, setting.seeds)
    )
    reach = special.stdtrit(part.freedom, 0.975) * np.sqrt(
        part.variance * (1 + part.weight())
    )
    is_predicted = abs(another - sample.mean) <= reach
    return is_inside(drawn.truth[preset], ends), bool(is_predicted)


def is_inside(value: float, ends: tuple[float, float]) -> bool:
    return ends[0] <= value <= ends[1]


class Errors(NamedTuple):
    """Counts of runs, and of claims."""

    families: int  # runs with a false assertion of a difference
    false_none: int  # claims on the margin that are called no difference
    asserted: int  # claims whose difference was found
    of_effect: int  # claims with a difference
    runs: int
    claims: int


def verdict_errors(
    setting: Setting, effect: float, share: float, runs: int, seed: int
) -> Errors:
    """`share` of the pairs have an effect, others none."""
    rng = np.random.default_rng(seed)
    families = false_none = asserted = of_effect = count = 0
    for _ in range(runs):
        pairs = setting.presets // 2
        true = [effect if n < round(share * pairs) else 0.0 for n in range(pairs)]
        effects = [v for gap in true for v in (300.0 + gap, 300.0)]
        drawn = draw(setting, effects + [300.0] * (setting.presets % 2), rng)
        conclusions = judged(drawn, pairs)
        is_false = [
            c in ASSERTED for c, gap in zip(conclusions, true, strict=True) if not gap
        ]
        with_effect = [c for c, gap in zip(conclusions, true, strict=True) if gap]
        families += any(is_false) or Conclusion.REVERSED in with_effect
        asserted += with_effect.count(Conclusion.HOLDS)
        of_effect += len(with_effect)
        if effect >= MARGIN:
            false_none += with_effect.count(Conclusion.NO_DIFFERENCE)
        count += pairs
    return Errors(families, false_none, asserted, of_effect, runs, count)


def judged(drawn: Drawn, pairs: int, rule: Rule = BEATS) -> list[Conclusion]:
    """00 beats 01, 02 beats 03 and so on."""
    spread = comparisons.spread(drawn.samples, drawn.samples)
    names = [(f"{2 * pair:02}", f"{2 * pair + 1:02}") for pair in range(pairs)]
    claims = [
        [Verdict(comparison=compared(drawn, spread, *pair), rule=rule)]
        for pair in names
    ]
    return [pair.conclusion for (pair,) in judge(claims)]


def runs_that_split_equals(setting: Setting, runs: int, seed: int) -> int:
    rng, split = np.random.default_rng(seed), 0
    for _ in range(runs):
        drawn = draw(setting, [300.0] * setting.presets, rng)
        spread = comparisons.spread(drawn.samples, drawn.samples)
        order = sorted(drawn.samples, key=lambda name: -drawn.samples[name].mean)
        pairs = combinations(order, 2)
        p_values = [compared(drawn, spread, *pair).estimate.p() for pair in pairs]
        split += significance.apart(p_values, len(order)).any()
    return split


def share_that_holds(
    setting: Setting, kind: str, effect: float, runs: int, seed: int
) -> float:
    rng, holds, count = np.random.default_rng(seed), 0, 0
    rule = Rule(kind=KINDS[kind], margin=MARGIN)
    for _ in range(runs):
        pairs = setting.presets // 2
        drawn = draw(
            setting,
            [300.0 + effect, 300.0] * pairs + [300.0] * (setting.presets % 2),
            rng,
        )
        holds += judged(drawn, pairs, rule).count(Conclusion.HOLDS)
        count += pairs
    return holds / count


LEVEL = 0.95
QUICK = ("Flickr8k, unrelated", "seeds as large", "seeds dominate", "three presets")
ROBUST = ("unequal spread",)  # where no rule can be exact


def is_plausible(
    count: int, of: int, low: float, high: float, runs: int | None = None
) -> bool:
    """`runs` is the number of independent draws."""
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


@pytest.mark.slow
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
    assert is_plausible(
        errors.false_none, errors.of_effect, 0.0, 0.03, runs=errors.runs
    ), errors


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Flickr8k, unrelated", "seeds dominate"])
def test_what_lies_on_the_margin_is_seldom_called_far_above(name):
    assert share_that_holds(SETTINGS[name], "far", MARGIN, 40, seed=7) <= 0.03
    assert share_that_holds(SETTINGS[name], "far", 5 * MARGIN, 10, seed=8) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Flickr8k, unrelated", "seeds dominate, some single"])
def test_equal_presets_are_seldom_apart(name):
    assert is_plausible(
        runs_that_split_equals(SETTINGS[name], 25, seed=5), 25, 0.0, 0.05
    )


@pytest.mark.simulation
def test_the_table_of_all_settings():
    """Prints coverage, family error, power and errors of rivals."""
    print()
    heads = [
        "cover",
        "test set",
        "preset",
        "next",
        "family",
        "power 6",
        "power 12",
        "none at 6",
    ]
    heads += ["like at 0", "like at 6", "rivals"]
    print(" | ".join(["setting", *heads]))
    for name, setting in SETTINGS.items():
        covered = coverage(setting, 400 if setting.presets > 3 else 3000, seed=11)
        shares = [count / covered.of for count in covered[:-1]]
        none = verdict_errors(setting, 0.0, 0.0, 1000, seed=12)
        six = verdict_errors(setting, 6.0, 1.0, 200, seed=13)
        twelve = verdict_errors(setting, 12.0, 1.0, 200, seed=14)
        like = [
            share_that_holds(setting, "alike", effect, 200, seed=15)
            for effect in (0.0, MARGIN)
        ]
        split = runs_that_split_equals(setting, 200, seed=16) / 200
        row = [*shares, none.families / none.runs, six.asserted / six.of_effect]
        row += [
            twelve.asserted / twelve.of_effect,
            six.false_none / six.of_effect,
            *like,
            split,
        ]
        print(" | ".join([name, *(f"{100 * share:.1f}" for share in row)]), flush=True)
        assert none.families <= stats.binom.ppf(0.999, none.runs, 0.05), name
        assert split * 200 <= stats.binom.ppf(0.999, 200, 0.05), name
        assert name in ROBUST or min(shares) > 0.935 and max(shares) < 0.975, name

"""What an interval says, against cases by hand, against contradictions, and against the papers."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from benchmark.analysis.significance import Doubt, Estimate, SeedPart
from benchmark.analysis.verdict_rules import Conclusion, Limit, Rule, Size, size

KINDS = ("ordered", "alike", "not_better")


def estimate(value: float, error: float = 0.1, freedom: float = 1e6) -> Estimate:
    """The interval is the value -+ 1.96 errors."""
    return Estimate(value=value, error=error, freedom=freedom)


CASES = [  # kind, value, error: margin 1
    ("ordered", 1.5, 0.1, "holds", "the interval lies above zero"),
    ("ordered", -1.5, 0.1, "reversed", "the interval lies below zero"),
    ("ordered", 0.9, 0.4, "holds", "the interval lies above zero"),
    ("ordered", 0.5, 0.1, "no difference beyond the margin", "lies within 1 of zero"),
    ("ordered", -0.5, 0.1, "no difference beyond the margin", "lies within 1 of zero"),
    ("ordered", 0.0, 0.1, "no difference beyond the margin", "lies within 1 of zero"),
    ("ordered", 0.5, 0.4, "undecided", "the interval covers zero and reaches beyond 1"),
    ("ordered", 0.0, 2.0, "undecided", "the interval covers zero and reaches beyond 1"),
    ("alike", 0.5, 0.1, "holds", "the interval lies within 1 of zero"),
    ("alike", -0.5, 0.1, "holds", "the interval lies within 1 of zero"),
    ("alike", 1.5, 0.1, "does not hold: better", "the interval lies above 1"),
    ("alike", -1.5, 0.1, "does not hold: worse", "the interval lies below -1"),
    ("alike", 0.9, 0.1, "undecided", "the interval reaches within 1 of zero and beyond"),
    ("alike", -1.1, 0.1, "undecided", "the interval reaches within 1 of zero and beyond"),
    ("not_better", -9.0, 3.0, "holds", "does not reach above the margin of 1"),
    ("not_better", 0.5, 0.1, "holds", "does not reach above the margin of 1"),
    ("not_better", 2.0, 0.1, "does not hold: better", "the interval lies above 1"),
    ("not_better", 1.1, 0.1, "undecided", "the interval covers the margin of 1"),
    ("not_better", 0.9, 0.1, "undecided", "the interval covers the margin of 1"),
]


@pytest.mark.parametrize(("kind", "value", "error", "conclusion", "reason"), CASES)
def test_the_interval_decides(kind, value, error, conclusion, reason):
    rule, made = Rule(kind=kind, margin=1.0), estimate(value, error)
    concluded, why = rule.conclusion(made, rule.p(made))
    assert concluded == conclusion and reason in why


def test_an_adjusted_p_guards_what_asserts_a_difference_and_nothing_else():
    for kind, value, error, conclusion, _ in CASES:
        rule, made = Rule(kind=kind, margin=1.0), estimate(value, error)
        concluded, why = rule.conclusion(made, 0.06)
        starred = ("holds" if kind == "ordered" else "", "reversed")
        if conclusion in starred or conclusion.startswith("does not hold"):
            assert (concluded, why) == ("undecided", "p is 0.06 after Holm's adjustment")
        else:
            assert concluded == conclusion


def test_without_a_margin_no_interval_is_no_difference():
    for value in (-1.0, 0.0, 0.001, 1.0):
        rule, made = Rule(kind="ordered", margin=0.0), estimate(value, 1e-6)
        assert rule.conclusion(made, rule.p(made))[0] != Conclusion.NO_DIFFERENCE


def test_no_two_conclusions_on_one_difference_contradict_each_other():
    """Effects of every size and sign, every width, margin, kind and adjustment, from both sides."""
    margins, widths = (0.0, 0.2, 1.0, 6.0, 12.2), (0.01, 0.1, 0.5, 2.0, 8.0)
    effects = np.concatenate([-np.geomspace(0.01, 60, 25), [0.0], np.geomspace(0.01, 60, 25)])
    seen = set()
    for value, width, freedom in product(effects, widths, (2.0, 30.0)):
        allowed = []
        for kind, margin, factor, side in product(KINDS, margins, (1, 20), (1, -1)):
            rule = Rule(kind=kind, margin=margin)
            made = Estimate(value=side * value, error=width, freedom=freedom)
            conclusion, _ = rule.conclusion(made, min(1.0, factor * rule.p(made)))
            low, high = rule.allowed(conclusion)
            allowed.append((low, high) if side > 0 else (-high, -low))
            seen.add((kind, str(conclusion)))
            assert low <= made.interval[0] and made.interval[1] <= high
        assert max(low for low, _ in allowed) < min(high for _, high in allowed)
    assert len(seen) == 4 + 4 + 3


def test_adaptive_cannot_beat_and_gain_nothing_over_average_beyond_one_margin():
    """On one interval and one margin at most one of the two holds."""
    for value, width in product(np.linspace(-4, 4, 41), (0.05, 0.3, 1.0, 4.0)):
        conclusions = []
        for kind in ("ordered", "alike"):
            rule, made = Rule(kind=kind, margin=1.5), estimate(value, width)
            conclusions.append(rule.conclusion(made, rule.p(made))[0])
        assert conclusions != [Conclusion.HOLDS, Conclusion.HOLDS]
        assert (conclusions[0] == Conclusion.NO_DIFFERENCE) == (conclusions[1] == Conclusion.HOLDS)


@pytest.mark.parametrize(
    ("ends", "printed", "expected"),
    [
        ((-1.7, 8.5), 20.8, Size.SMALLER),
        ((1.0, 8.5), 20.8, Size.SMALLER),
        ((1.0, 30.0), 20.8, Size.AS_PRINTED),
        ((25.0, 30.0), 20.8, Size.LARGER),
        ((-9.0, -1.0), 20.8, Size.OPPOSITE),
        ((-9.0, -1.0), -3.0, Size.AS_PRINTED),
        ((-2.0, -1.0), -3.0, Size.SMALLER),
        ((1.0, 2.0), -3.0, Size.OPPOSITE),
        ((-9.0, -4.0), -3.0, Size.LARGER),
        (None, 3.0, None),
        ((1.0, 2.0), None, None),
        ((1.0, 2.0), 0.0, None),
    ],
)
def test_the_interval_settles_how_large_the_difference_is_beside_the_printed_one(
    ends, printed, expected
):
    assert size(ends, printed) == expected


def made_doubt(images: float, each: float, seeds: int, count: int = 1000, main: float = 0.0):
    """Variances of a difference of two presets: of images, of the interaction of each training, and
    of the trainings beyond it; 40 degrees of freedom."""
    part = SeedPart((seeds, seeds), (each + main) / 2, each / 2, 40, is_own=False)
    inside = each / seeds
    return Doubt(images=images + inside, interaction=inside, image_count=count, seeds=(part,))


def power(doubt: Doubt, gap: float, level: float, seeds: int, share: float = 1.0) -> float:
    """Of finding the gap with so many trainings of each preset, by Student's t, by hand."""
    (part,) = doubt.seeds
    of_images = share * (doubt.images - doubt.interaction)
    variance = of_images + 2 / seeds * (share * part.interaction + part.main)
    freedom = variance**2 / max((2 / seeds * part.main) ** 2 / 40, 1e-12)
    t = stats.t.ppf(1 - level / 2, min(freedom, 1e6))
    return float(stats.norm.cdf(gap / np.sqrt(variance) - t))


class TestLimits:
    """Of Flickr8k: between unrelated presets images have a standard deviation of 2.8, between
    related ones of 0.5, and a training has 2.85 by chance with single images."""

    RULE = Rule(kind="ordered", margin=6.0)

    def test_related_presets_need_more_seeds(self):
        doubt = made_doubt(0.5**2, 2.85**2, 3)
        limit = self.RULE.limit(6.0, doubt, 17)
        assert limit.seeds == 1
        assert power(doubt, 6.0, 0.05 / 17, 4) >= 0.8 > power(doubt, 6.0, 0.05 / 17, 3)

    def test_unrelated_presets_need_more_images(self):
        doubt = made_doubt(2.8**2, 2.85**2, 3)
        limit = self.RULE.limit(6.0, doubt, 17)
        assert limit.seeds is None and limit.seeds_beside == 0
        share = 1000 / limit.images
        assert power(doubt, 6.0, 0.05 / 17, 3, share) >= 0.8
        assert power(doubt, 6.0, 0.05 / 17, 3, 1.05 * share) < 0.8
        assert power(doubt, 6.0, 0.05 / 17, 1000) < 0.8

    def test_a_larger_difference_between_them_needs_seeds_again(self):
        doubt = made_doubt(2.8**2, 2.85**2, 2)
        seeds = 2 + self.RULE.limit(12.0, doubt, 17).seeds
        assert power(doubt, 12.0, 0.05 / 17, seeds) >= 0.8
        assert power(doubt, 12.0, 0.05 / 17, seeds - 1) < 0.8

    def test_where_seeds_dominate_images_alone_do_not_help(self):
        doubt = made_doubt(0.1, 0.1, 3, main=40.0)
        limit = self.RULE.limit(6.0, doubt, 1)
        assert limit.seeds is not None and limit.seeds_beside > 0

    def test_a_difference_within_the_margin_may_be_decided_as_none(self):
        """At 0.2 the sign is out of reach, the margin of 6 is not."""
        doubt = made_doubt(2.0, 6.0, 3)
        assert self.RULE.limit(0.2, doubt, 17).seeds is not None
        assert Rule(kind="ordered", margin=0.0).limit(0.2, doubt, 17).seeds is None

    def test_a_difference_on_the_bound_is_never_decided(self):
        for kind in ("alike", "not_better"):
            rule = Rule(kind=kind, margin=6.0)
            assert rule.limit(6.0, made_doubt(2.0, 6.0, 3), 1) == Limit(None, None)

    def test_without_known_images_seeds_are_all_there_is(self):
        part = SeedPart((3, 3), 20.0, 0.0, 40, is_own=False)
        doubt = Doubt(images=0.0, interaction=0.0, image_count=0, seeds=(part,))
        limit = Rule(kind="ordered", margin=0.0).limit(6.0, doubt, 1)
        assert limit.images is None and limit.seeds is not None

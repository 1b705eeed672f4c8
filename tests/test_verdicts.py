"""What an interval says, against cases by hand and against contradictions; p of claims
that are judged together, against Holm's adjustment by hand; what would decide a claim,
against its power."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from refusals import holds
from scipy import stats

from benchmark.stats.claim_kinds import (
    ALIKE,
    FAR,
    KINDS,
    NOT_BETTER,
    ORDERED,
    Conclusion,
    Side,
)
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt, Estimate, SeedPart
from benchmark.stats.verdicts import (
    Evidence,
    Flag,
    Limit,
    Rule,
    Size,
    Verdict,
    claim_p,
    decisive,
    judge,
    log_odds_per_point,
    size_of,
)

WITHOUT_MARGIN = Rule(kind=ORDERED, margin=0.0)


def estimate(value: float, error: float = 0.1, freedom: float = 1e6) -> Estimate:
    return Estimate(value=value, error=error, freedom=freedom)


NONE, ABOVE_ZERO = Conclusion.NO_DIFFERENCE, "above zero"
NOT_ABOVE = "not reach above"
DENIED = Conclusion.NOT_BETTER
CASES = [  # kind, value, error, conclusion, what the reason holds; margin 1
    ("ordered", 1.5, 0.1, "holds", ABOVE_ZERO),
    ("ordered", -1.5, 0.1, "reversed", "below zero"),
    ("ordered", 0.9, 0.4, "holds", ABOVE_ZERO),
    ("ordered", 0.5, 0.1, NONE, "within 1 of zero"),
    ("ordered", -0.5, 0.1, NONE, "within 1 of zero"),
    ("ordered", 0.5, 0.4, "undecided", "beyond 1"),
    ("ordered", 0.0, 2.0, "undecided", "beyond 1"),
    ("ordered", -0.5, 0.4, DENIED, NOT_ABOVE),
    ("ordered", -3.0, 2.0, DENIED, NOT_ABOVE),
    ("ordered", -2.9, 2.0, "undecided", "beyond 1"),
    ("far", 1.5, 0.1, "holds", "above 1"),
    ("far", 0.5, 0.1, DENIED, NOT_ABOVE),
    ("far", -9.0, 3.0, DENIED, NOT_ABOVE),
    ("far", 1.1, 0.1, "undecided", "margin of 1"),
    ("alike", -0.5, 0.1, "holds", "within 1 of zero"),
    ("alike", 1.5, 0.1, "does not hold: better", "above 1"),
    ("alike", -1.5, 0.1, "does not hold: worse", "below -1"),
    ("alike", 0.9, 0.1, "undecided", "within 1 of zero and beyond"),
    ("alike", -1.1, 0.1, "undecided", "within 1 of zero and beyond"),
    ("not_better", -9.0, 3.0, "holds", NOT_ABOVE),
    ("not_better", 0.5, 0.1, "holds", NOT_ABOVE),
    ("not_better", 2.0, 0.1, "does not hold: better", "above 1"),
    ("not_better", 0.9, 0.1, "undecided", "margin of 1"),
]


@pytest.mark.parametrize(("kind", "value", "error", "conclusion", "place"), CASES)
def test_the_interval_decides(kind, value, error, conclusion, place):
    rule, made = Rule(kind=KINDS[kind], margin=1.0), estimate(value, error)
    concluded, why = rule.conclusion(made, rule.p(made))
    assert concluded == conclusion and holds(why, place)


def allowed_differences(rule: Rule, conclusion: Conclusion) -> tuple[float, float]:
    m, inf = rule.margin, np.inf
    holds = {
        "ordered": (0, inf),
        "far": (m, inf),
        "alike": (-m, m),
        "not_better": (-inf, m),
    }
    return {
        Conclusion.HOLDS: holds[rule.kind.name],
        Conclusion.REVERSED: (-inf, 0),
        Conclusion.NO_DIFFERENCE: (-m, m),
        Conclusion.BETTER: (m, inf),
        Conclusion.WORSE: (-inf, -m),
        Conclusion.NOT_BETTER: (-inf, m),
    }.get(conclusion, (-inf, inf))


def test_no_two_conclusions_on_one_difference_contradict_each_other():
    margins, widths = (0.0, 0.2, 1.0, 6.0, 12.2), (0.01, 0.1, 0.5, 2.0, 8.0)
    effects = np.concatenate(
        [-np.geomspace(0.01, 60, 25), [0.0], np.geomspace(0.01, 60, 25)]
    )
    seen = set()
    for value, width, freedom in product(effects, widths, (2.0, 30.0)):
        ranges = []
        for kind, margin, factor, side in product(KINDS, margins, (1, 20), (1, -1)):
            rule = Rule(kind=KINDS[kind], margin=margin)
            made = Estimate(value=side * value, error=width, freedom=freedom)
            conclusion, _ = rule.conclusion(made, min(1.0, factor * rule.p(made)))
            low, high = allowed_differences(rule, conclusion)
            ranges.append((low, high) if side > 0 else (-high, -low))
            seen.add((kind, str(conclusion)))
            assert low <= made.interval[0] and made.interval[1] <= high
        assert max(low for low, _ in ranges) < min(high for _, high in ranges)
    assert len(seen) == 5 + 3 + 4 + 3


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
    assert size_of(ends, printed) == expected


def at(*p_values: float, kind: str = "ordered", margin: float = 0.0) -> list[Estimate]:
    """Two-sided p; a negative one is below zero."""
    return [
        Estimate(
            value=float(np.sign(p) * (margin + stats.norm.isf(abs(p) / 2))),
            error=1.0,
            freedom=1e9,
        )
        for p in p_values
    ]


def made(estimate: Estimate, here: Estimate | None = None) -> Comparison:
    """A comparison with this estimate for other images, and on the test set."""
    doubt = Doubt(images=estimate.error**2, interaction=0.0, image_count=9, seeds=())
    made = Comparison(first="a", second="b", difference=estimate.value, doubt=doubt)
    made.__dict__.update(estimate=estimate, on_test_set=here or estimate)
    return made


def p_of_claim(estimates: list[Estimate]) -> float:
    return claim_p([Evidence(WITHOUT_MARGIN, each) for each in estimates])


def judged(
    *claims: list[Estimate],
    rules: list[Rule] | None = None,
    blocked: Flag | None = None,
) -> list[list[Verdict]]:
    """A list of estimates per claim; `blocked` is the last of all pairs."""
    rules = rules or [WITHOUT_MARGIN] * len(claims)
    both = zip(rules, claims, strict=True)
    asked = [[Verdict(comparison=made(e), rule=rule) for e in of] for rule, of in both]
    asked[-1][-1] = replace(asked[-1][-1], blocked=blocked)
    return judge(asked)


def biased(value: float, *favours: Side) -> Verdict:
    rule = Rule(kind=ORDERED, margin=1.0)
    flags = [
        Flag("U", f"bias {number}", favours=of) for number, of in enumerate(favours)
    ]
    asked = Verdict(comparison=made(estimate(value)), rule=rule, biases=tuple(flags))
    return judge([[asked]])[0][0]


@pytest.mark.parametrize(
    ("value", "favours", "conclusion"),
    [
        (2.0, [], "holds"),
        (2.0, [Side.SECOND], "holds"),
        (2.0, [Side.SECOND, Side.SECOND], "holds"),
        (2.0, [Side.FIRST], "undecided"),
        (2.0, [Side.UNKNOWN], "undecided"),
        (2.0, [Side.FIRST, Side.SECOND], "undecided"),
        (-2.0, [Side.FIRST], "reversed"),
        (-2.0, [Side.SECOND], "undecided"),
        (0.2, [Side.FIRST], DENIED),
        (0.2, [Side.SECOND], "undecided"),
    ],
)
def test_what_goes_against_the_favoured_side_stands(value, favours, conclusion):
    verdict = biased(value, *favours)
    assert verdict.conclusion == conclusion
    if conclusion == "undecided":
        assert verdict.blocked == Flag("U", "bias 0", favours[0])
        assert (verdict.reason, verdict.limit) == ("bias 0", None)
    else:
        assert verdict.blocked is None


def test_biases_favour_one_side_only_if_all_do():
    assert biased(2.0).favoured is None
    assert biased(2.0, Side.FIRST, Side.FIRST).favoured == Side.FIRST
    assert biased(2.0, Side.FIRST, Side.UNKNOWN).favoured == Side.UNKNOWN


def undecided(difference: float, **facts: object) -> Verdict:
    doubt = Doubt(images=1.0, interaction=0.0, image_count=9, seeds=())
    pair = Comparison(first="a", second="b", difference=difference, doubt=doubt)
    return Verdict(comparison=pair, rule=WITHOUT_MARGIN, **facts)


def test_of_undecided_pairs_the_one_behind_that_takes_the_fewest_seeds_decides():
    ahead, other = (undecided(1.0, limit=Limit(1, 1)) for _ in range(2))
    never = undecided(-1.0, limit=Limit(None, 1))
    late = undecided(-1.0, limit=Limit(5, 1))
    soon = undecided(-1.0, limit=Limit(3, 9))
    sooner = undecided(-1.0, limit=Limit(3, 8))
    blocked = undecided(-1.0, blocked=Flag("Z", "why"))
    assert decisive([ahead, blocked, late, soon, never]) is soon
    assert decisive([soon, sooner]) is sooner
    assert decisive([never, late]) is late
    assert decisive([ahead, blocked]) is blocked
    assert decisive([ahead, other]) is ahead


def test_what_holds_lies_beyond_its_bound_and_not_within_the_margin():
    # with a margin of 2, and intervals of half a point to each side
    inf = np.inf
    cases = {ORDERED: (1.5, inf), FAR: (2.5, inf), ALIKE: (-1.5, 1.5)}
    for kind, expected in (cases | {NOT_BETTER: (-inf, 1.5)}).items():
        assert Rule(kind=kind, margin=2.0).holding(0.5, 0.5) == expected


def test_a_recall_that_is_zero_or_perfect_counts_as_half_a_point_from_it():
    expected = (np.log(99.5 / 0.5) - np.log(90 / 10)) / (99.5 - 90)
    assert log_odds_per_point(100.0, 90.0, 100.0) == pytest.approx(expected)
    expected = (np.log(20 / 80) - np.log(0.5 / 99.5)) / (20 - 0.5)
    assert log_odds_per_point(20.0, 0.0, 100.0) == pytest.approx(expected)


def test_a_size_is_compared_where_a_point_is_worth_as_much():
    """2 points at 20% are as many log odds as 3 at 50%, to a tenth."""
    here = log_odds_per_point(22.0, 20.0, 100.0)
    there = log_odds_per_point(53.0, 50.0, 100.0)
    assert 2 * here == pytest.approx(3 * there, rel=0.05)
    assert size_of((1.7, 2.3), 3.0) == Size.SMALLER
    assert size_of((1.7, 2.3), 3.0, (here, there)) == Size.AS_PRINTED
    equal = log_odds_per_point(20.0, 20.0, 100.0)
    assert log_odds_per_point(20.01, 20.0, 100.0) == pytest.approx(equal, rel=1e-3)
    assert np.isfinite(log_odds_per_point(100.0, 0.0, 100.0))


class TestAdjustment:
    def test_it_is_holms_over_the_claims_each_comparison_once(self):
        """By hand: 0.001 x 3, 0.02 x 2, 0.03 x 1 but no less than 0.04."""
        firsts = [of[0] for of in judged(at(0.02), at(0.03), at(0.001))]
        assert [finding.p for finding in firsts] == pytest.approx([0.02, 0.03, 0.001])
        assert [finding.adjusted_p for finding in firsts] == pytest.approx(
            [0.04, 0.04, 0.003]
        )
        assert {finding.conclusion for finding in firsts} == {"holds"}
        same = at(0.04)
        assert [of[0].adjusted_p for of in judged(same, same)] == pytest.approx(
            [0.04, 0.04]
        )

    def test_what_cannot_be_judged_does_not_count_and_other_pairs_of_its_claim_do(self):
        few = Flag("S", "few")
        (first,), (other,) = judged(at(0.04), at(0.04), blocked=few)
        assert first.adjusted_p == pytest.approx(0.04)
        assert (other.conclusion, other.reason, other.p) == ("undecided", "few", None)
        assert other.blocked == few and other.limit is None
        # Beside three other claims, what one pair denies has p times their number.
        claims = [at(0.2), at(0.3), at(0.4), at(-0.03, 0.001)]
        denied, lost = judged(*claims, blocked=Flag("N", "poor"))[3]
        assert denied.conclusion == DENIED
        assert denied.adjusted_p == pytest.approx(0.12)
        assert (lost.conclusion, lost.p) == ("undecided", None)

    def test_p_of_a_bound_is_of_a_difference_on_the_margin(self):
        rules = [Rule(kind=FAR, margin=1.0)] * 2
        firsts = [
            of[0]
            for of in judged(at(0.01, margin=1.0), at(-0.02, margin=1.0), rules=rules)
        ]
        assert firsts[0].p == pytest.approx(0.01) and firsts[1].p == pytest.approx(1.0)
        assert firsts[0].conclusion == "holds" and firsts[1].conclusion != "holds"
        rules = [Rule(kind=ALIKE, margin=1.0), Rule(kind=NOT_BETTER, margin=1.0)]
        firsts = [
            of[0]
            for of in judged(at(0.01, margin=1.0), at(0.02, margin=1.0), rules=rules)
        ]
        assert [finding.p for finding in firsts] == pytest.approx([0.01, 0.02])
        assert {finding.conclusion for finding in firsts} == {"does not hold: better"}

    def test_a_chain_holds_with_its_largest_p_and_is_reversed_with_its_smallest_times_its_pairs(
        self,
    ):
        assert p_of_claim(at(0.01, 0.04, 0.001)) == pytest.approx(0.04)
        (of_pairs,) = judged(at(0.01, 0.04, 0.001))
        assert {finding.conclusion for finding in of_pairs} == {"holds"}
        assert p_of_claim(at(0.01, -0.02, -0.5)) == pytest.approx(0.06)
        conclusions = [
            finding.conclusion for finding in judged(at(0.01, -0.02, -0.5))[0]
        ]
        assert conclusions[1:] == [DENIED, "undecided"]
        assert judged(at(0.01, -0.01, 0.5))[0][1].conclusion == "reversed"

    def test_equal_presets_in_a_chain_are_seldom_told_apart(self):
        # two pairs that share a preset: p of the claim is at most 0.05 in 5% of the
        # cases
        rng, runs = np.random.default_rng(0), 4000
        drawn = rng.normal(size=(runs, 3)) / 2**0.5
        told = 0
        for a, b, c in drawn:
            estimates = [
                Estimate(value=v, error=1.0, freedom=1e9) for v in (a - b, b - c)
            ]
            told += p_of_claim(estimates) <= 0.05
        assert told <= stats.binom.ppf(0.999, runs, 0.05)

    def test_a_pair_that_is_surer_than_its_claim_has_more_claims_behind_it(self):
        others = [at(0.001), at(0.2), at(0.3)]
        # 0.03 is the second smallest p of four
        unsure, sure = judged(at(0.84, 0.03), *others)[0]
        assert (
            sure.adjusted_p
            == judged(at(0.03), *others)[0][0].adjusted_p
            == pytest.approx(0.09)
        )
        assert (unsure.adjusted_p, sure.conclusion) == (
            pytest.approx(0.84),
            "undecided",
        )

    def test_what_a_p_was_multiplied_with_is_not_cut_off_at_one(self):
        """0.6 has one more behind it, so that the sign has to be as sure as at a level
        of 0.025."""
        *_, (last,) = judged(at(0.001), at(0.002), at(0.7), at(0.6))
        assert last.adjusted_p == 1.0
        assert last.limit == WITHOUT_MARGIN.limit(
            last.difference, last.comparison.doubt, 2
        )


def made_doubt(
    images: float, each: float, seeds: int, count: int = 1000, main: float = 0.0
):
    """Variances: `images`, `each` training's interaction, `main` beyond it."""
    part = SeedPart((seeds, seeds), (each + main) / 2, each / 2, 40, is_own=False)
    inside = each / seeds
    return Doubt(
        images=images + inside, interaction=inside, image_count=count, seeds=(part,)
    )


def power_of(
    doubt: Doubt, gap: float, level: float, seeds: int, folds: int = 0
) -> float:
    (part,) = doubt.seeds
    images = doubt.images - doubt.interaction
    at_hand = images + 2 / seeds * (part.interaction + part.main)
    further = images + 2 * (part.interaction + part.main)
    variance = (at_hand + folds * further) / (folds + 1) ** 2
    luck = (2 / seeds + folds * 2) / (folds + 1) ** 2 * part.main
    freedom = variance**2 / max(luck**2 / 40, 1e-12)
    t = stats.t.ppf(1 - level / 2, min(freedom, 1e6))
    return float(stats.norm.cdf(gap / np.sqrt(variance) - t))


class TestLimits:
    """Of Flickr8k: between unrelated presets images have a standard deviation of
    2.8, between related ones of 0.5, and a training has 2.85 by chance with single
    images."""

    RULE = Rule(kind=ORDERED, margin=6.0)

    def test_related_presets_need_seeds_and_unrelated_ones_folds(self):
        doubt = made_doubt(0.5**2, 2.85**2, 3)
        limit = self.RULE.limit(6.0, doubt, 17)
        assert limit.seeds == 1
        assert (
            power_of(doubt, 6.0, 0.05 / 17, 4)
            >= 0.8
            > power_of(doubt, 6.0, 0.05 / 17, 3)
        )
        doubt = made_doubt(2.8**2, 2.85**2, 3)
        limit = self.RULE.limit(6.0, doubt, 17)
        assert limit.seeds is None and limit.folds > 1
        assert power_of(doubt, 6.0, 0.05 / 17, 3, limit.folds) >= 0.8
        assert power_of(doubt, 6.0, 0.05 / 17, 3, limit.folds - 1) < 0.8
        assert power_of(doubt, 6.0, 0.05 / 17, 1000) < 0.8

    def test_where_images_are_not_known_seeds_are_all_there_is(self):
        part = SeedPart((3, 3), 20.0, 0.0, 40, is_own=False)
        doubt = Doubt(images=0.0, interaction=0.0, image_count=0, seeds=(part,))
        limit = Rule(kind=ORDERED, margin=0.0).limit(6.0, doubt, 1)
        assert limit.folds is None and limit.seeds is not None

    def test_a_difference_below_zero_is_denied_by_the_margin_above_it(self):
        """No interval around -6 need lie within the margin."""
        doubt = made_doubt(2.0, 6.0, 3)
        assert self.RULE.limit(-5.9, doubt, 1) == Limit(1, 1)
        assert Rule(kind=ALIKE, margin=6.0).limit(-5.9, doubt, 1) == Limit(None, None)

    def test_a_difference_within_the_margin_may_be_decided_as_none_and_one_on_it_never(
        self,
    ):
        """At 0.2 the sign is out of reach, the margin of 6 is not."""
        doubt = made_doubt(2.0, 6.0, 3)
        assert self.RULE.limit(0.2, doubt, 17).seeds is not None
        assert Rule(kind=ORDERED, margin=0.0).limit(0.2, doubt, 17).seeds is None
        for kind in ("far", "alike", "not_better"):
            rule = Rule(kind=KINDS[kind], margin=6.0)
            assert rule.limit(6.0, made_doubt(2.0, 6.0, 3), 1) == Limit(None, None)

"""p of claims that are judged together, against Holm's adjustment by hand."""

import numpy as np
import pytest
from scipy import stats

from benchmark.analysis.claims import _surer, claim_p, findings
from benchmark.analysis.grounds import Cause, Ground
from benchmark.analysis.significance import Estimate
from benchmark.analysis.verdict_rules import Rule


def at(*p_values: float, kind: str = "ordered", margin: float = 0.0) -> list[Estimate]:
    """Differences with these two-sided p; a negative p is of a difference below zero."""
    return [
        Estimate(
            value=float(np.sign(p) * (margin + stats.norm.isf(abs(p) / 2))), error=1.0, freedom=1e9
        )
        for p in p_values
    ]


def judged(*estimates: list[Estimate], rules: list[Rule] | None = None) -> list[list]:
    """The findings on claims, one list of estimates each, without margins."""
    rules = rules or [Rule(kind="ordered", margin=0.0)] * len(estimates)
    whole = [[rule] * len(of) for rule, of in zip(rules, estimates, strict=True)]
    return findings(whole, estimates, [[None] * len(of) for of in estimates])


class TestScopes:
    def test_what_is_known_for_other_images_is_known_on_the_test_set(self):
        """On the test set the interval is shorter, but a few degrees of freedom make p larger."""
        ((wide,),), ((narrow,),) = judged(at(-0.001)), judged(at(0.2))
        assert (wide.conclusion, narrow.conclusion) == ("reversed", "undecided")
        assert _surer(narrow, wide) is wide and _surer(wide, narrow) is wide


class TestAdjustment:
    def test_it_is_holms_over_the_claims(self):
        """By hand: 0.001 x 3, 0.02 x 2, 0.03 x 1 but no less than 0.04."""
        firsts = [of[0] for of in judged(at(0.02), at(0.03), at(0.001))]
        assert [finding.p for finding in firsts] == pytest.approx([0.02, 0.03, 0.001])
        assert [finding.adjusted_p for finding in firsts] == pytest.approx([0.04, 0.04, 0.003])
        assert {finding.conclusion for finding in firsts} == {"holds"}

    def test_it_stands_in_the_way_of_what_may_be_chance(self):
        firsts = [of[0] for of in judged(at(0.03), at(0.2), at(-0.001))]
        assert [finding.conclusion for finding in firsts] == [
            "undecided",
            "undecided",
            "reversed",
        ]
        assert [finding.ground.cause for finding in firsts] == ["chance", "interval", "interval"]
        assert firsts[0].ground.reason == "p is 0.06 after Holm's adjustment"

    def test_a_comparison_that_two_claims_make_counts_once(self):
        same = at(0.04)
        assert [of[0].adjusted_p for of in judged(same, same)] == pytest.approx([0.04, 0.04])

    def test_what_cannot_be_judged_does_not_count(self):
        rules, estimates = [[Rule(kind="ordered", margin=0.0)]] * 2, [at(0.04), at(0.04)]
        ground = Ground(Cause.FEW_SEEDS, "few")
        first, other = findings(rules, estimates, [[None], [ground]])
        assert first[0].adjusted_p == pytest.approx(0.04)
        assert (other[0].conclusion, other[0].ground, other[0].p) == ("undecided", ground, None)

    def test_the_pairs_that_can_be_judged_of_a_claim_count(self):
        """Beside three other claims, what one pair denies has p times their number."""
        rule, ground = Rule(kind="ordered", margin=0.0), Ground(Cause.NEAR_CHANCE, "poor")
        estimates = [at(-0.03, 0.001), at(0.2), at(0.3), at(0.4)]
        rules = [[rule] * len(of_claim) for of_claim in estimates]
        obstacles = [[None, ground], [None], [None], [None]]
        blocked, lost = findings(rules, estimates, obstacles)[0]
        assert (blocked.conclusion, blocked.adjusted_p) == ("undecided", pytest.approx(0.12))
        assert (lost.conclusion, lost.p) == ("undecided", None)

    def test_a_difference_without_any_doubt_has_a_p_of_zero(self):
        sure = [Estimate(value=120.0, error=2.0, freedom=999.0)]
        found_of_both = findings(
            [[Rule(kind="ordered", margin=1.0)]] * 2, [sure, at(0.2)], [[None]] * 2
        )
        assert (found_of_both[0][0].conclusion, found_of_both[0][0].adjusted_p) == ("holds", 0.0)

    def test_p_of_a_denied_difference_is_of_one_on_the_margin(self):
        rules = [Rule(kind="alike", margin=1.0), Rule(kind="not_better", margin=1.0)]
        firsts = [of[0] for of in judged(at(0.01, margin=1.0), at(0.02, margin=1.0), rules=rules)]
        assert [finding.p for finding in firsts] == pytest.approx([0.01, 0.02])
        assert {finding.conclusion for finding in firsts} == {"does not hold: better"}

    def test_a_chain_holds_with_its_largest_p(self):
        rules = [Rule(kind="ordered", margin=0.0)] * 3
        assert claim_p(rules, at(0.01, 0.04, 0.001)) == pytest.approx(0.04)
        (of_pairs,) = judged(at(0.01, 0.04, 0.001))
        assert {finding.conclusion for finding in of_pairs} == {"holds"}

    def test_a_chain_is_reversed_with_its_smallest_p_times_its_pairs(self):
        rules = [Rule(kind="ordered", margin=0.0)] * 3
        assert claim_p(rules, at(0.01, -0.02, -0.5)) == pytest.approx(0.06)
        conclusions = [finding.conclusion for finding in judged(at(0.01, -0.02, -0.5))[0]]
        assert conclusions[1:] == ["undecided", "undecided"]
        assert judged(at(0.01, -0.01, 0.5))[0][1].conclusion == "reversed"

    def test_equal_presets_in_a_chain_are_seldom_told_apart(self):
        """Two pairs that share a preset: p of the claim is at most 0.05 in 5% of the cases."""
        rng, rules, runs = np.random.default_rng(0), [Rule(kind="ordered", margin=0.0)] * 2, 4000
        drawn = rng.normal(size=(runs, 3)) / 2**0.5
        told = 0
        for a, b, c in drawn:
            estimates = [Estimate(value=v, error=1.0, freedom=1e9) for v in (a - b, b - c)]
            told += claim_p(rules, estimates) <= 0.05
        assert told <= stats.binom.ppf(0.999, runs, 0.05)

    def test_a_pair_that_is_surer_than_its_claim_has_more_claims_behind_it(self):
        """As if the claim were this pair alone: 0.03 is the second smallest p of four."""
        others = [at(0.001), at(0.2), at(0.3)]
        unsure, sure = judged(at(0.84, 0.03), *others)[0]
        assert sure.adjusted_p == judged(at(0.03), *others)[0][0].adjusted_p == pytest.approx(0.09)
        assert (unsure.adjusted_p, sure.conclusion) == (pytest.approx(0.84), "undecided")

    @pytest.mark.parametrize("seed", range(20))
    def test_no_pair_is_less_sure_than_its_claim(self, seed):
        """So the pairs of a claim that holds hold."""
        claims = [at(*of) for of in np.random.default_rng(seed).uniform(size=(6, 3)) ** 4]
        rules = [Rule(kind="ordered", margin=0.0)] * 3
        alone = [[estimates[np.argmin([e.value for e in estimates])]] for estimates in claims]
        for pairs, (claim,) in zip(judged(*claims), judged(*alone), strict=True):
            assert max(finding.adjusted_p for finding in pairs) == pytest.approx(claim.adjusted_p)
            assert claim.p == pytest.approx(claim_p(rules, [f.estimate for f in pairs]))

    def test_what_a_p_was_multiplied_with_is_not_cut_off_at_one(self):
        """0.6 has one more behind it, and 0.7 is no surer than 0.6 x 2."""
        firsts = [of[0] for of in judged(at(0.001), at(0.002), at(0.7), at(0.6))]
        assert firsts[3].adjusted_p == 1.0
        assert [f.adjustment for f in firsts] == pytest.approx([4, 3, 1.2 / 0.7, 2])

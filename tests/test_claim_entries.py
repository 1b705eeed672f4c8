"""Entries of the ledger: rounded, with what their verdict rests on."""

from dataclasses import replace

import pytest

from benchmark.boards.claim_entries import verdict_entry
from benchmark.boards.claims_file import VerdictEntry
from benchmark.core.errors import checked
from benchmark.stats.claim_kinds import ORDERED, Conclusion, Side
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt, SeedPart
from benchmark.stats.verdicts import Flag, Limit, Rule, Verdict


def verdict(conclusion: Conclusion, **facts: object) -> Verdict:
    doubt = Doubt(images=1.0, interaction=0.0, image_count=1000, seeds=())
    comparison = Comparison(
        first="a",
        second="b",
        metric="rsum",
        titles=("A", "B"),
        difference=7.123456789,
        doubt=doubt,
    )
    rule = Rule(kind=ORDERED, margin=1 / 3)
    return Verdict(comparison=comparison, rule=rule, conclusion=conclusion, **facts)


def test_numbers_have_six_digits():
    entry = verdict_entry(verdict(Conclusion.HOLDS, adjusted_p=0.0123456789))
    assert (entry.first, entry.second, entry.metric) == ("A", "B", "rsum")
    assert (entry.difference, entry.margin, entry.p) == (7.12346, 0.333333, 0.0123457)
    assert entry.low == pytest.approx(7.12346 - 1.96, abs=0.01)


def test_p_is_that_of_a_conclusion_that_rests_on_it():
    entry = verdict_entry(verdict(Conclusion.NO_DIFFERENCE, adjusted_p=0.5))
    assert entry.p is None


def test_what_would_decide_it_is_a_number_or_a_remedy():
    limit = Limit(seeds=4, folds=2)
    entry = verdict_entry(verdict(Conclusion.UNDECIDED, limit=limit))
    assert (entry.seeds, entry.folds) == (4, 2)
    few = Flag("L", "few", blocks=True)
    blocked = verdict_entry(verdict(Conclusion.UNDECIDED, blocked=few))
    assert (blocked.seeds, blocked.remedy) == (None, "100 test queries")


def test_what_it_can_be_pooled_by_stands_in_it():
    part = SeedPart((3, 3), 1 / 3, 0.25, 12.0, is_own=False)
    doubt = Doubt(images=2 / 3, interaction=0.125, image_count=1000, seeds=(part,))
    made = verdict(Conclusion.HOLDS)
    made = replace(made, comparison=replace(made.comparison, doubt=doubt))
    entry = verdict_entry(made, 2)
    assert entry.part == 2 and not entry.is_blocked and entry.favours is None
    assert (entry.doubt.images, entry.doubt.seeds[0].variance) == (0.666667, 0.333333)
    assert entry == checked(VerdictEntry, entry.model_dump(mode="json"), "made")


@pytest.mark.parametrize(
    ("letter", "is_out_of_reach"), [("L", False), ("D", True), ("G", True)]
)
def test_an_obstacle_is_told_from_a_bias(letter, is_out_of_reach):
    obstacle = Flag(letter, "it", blocks=True)
    entry = verdict_entry(verdict(Conclusion.UNDECIDED, blocked=obstacle))
    assert (entry.is_blocked, entry.is_out_of_reach) == (True, is_out_of_reach)
    bias = Flag("U", "it", favours=Side.SECOND)
    blocked = bias._replace(blocks=True)
    entry = verdict_entry(
        verdict(Conclusion.UNDECIDED, blocked=blocked, biases=(bias,))
    )
    assert (entry.is_blocked, entry.favours) == (False, Side.SECOND)

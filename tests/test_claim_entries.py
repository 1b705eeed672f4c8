"""Entries of the ledger: rounded, with what their verdict rests on."""

import pytest

from benchmark.boards.claim_entries import verdict_entry
from benchmark.stats.claim_kinds import ORDERED, Conclusion
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt
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
    limit = Limit(seeds=4, images=2000, seeds_beside=2)
    entry = verdict_entry(verdict(Conclusion.UNDECIDED, limit=limit))
    assert (entry.seeds, entry.images, entry.seeds_beside) == (4, 2000, 2)
    few = Flag("L", "few", blocks=True)
    blocked = verdict_entry(verdict(Conclusion.UNDECIDED, blocked=few))
    assert (blocked.seeds, blocked.remedy) == (None, "100 test queries")


def test_controls_are_entries_of_their_own():
    control = verdict(Conclusion.REVERSED)
    entry = verdict_entry(verdict(Conclusion.REVERSED, controls=(control,)))
    assert [each.conclusion for each in entry.controls] == [Conclusion.REVERSED]

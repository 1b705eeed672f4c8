"""What all seasons together say on a claim, from made-up findings."""

import pytest
from made_ledger import at_level, compared, judged, row, season

from benchmark.boards.claim_ledger import (
    DRAWN,
    ELSEWHERE,
    UNPLAYABLE,
    UNTRAINED,
    Group,
    judged_again,
    ledger,
    untested_for,
)
from benchmark.contracts.datasets import people, shapes
from benchmark.papers.printed_tables import papers
from benchmark.stats.claim_kinds import Conclusion
from benchmark.stats.verdicts import Size


@pytest.mark.parametrize(
    ("conclusions", "group"),
    [
        (["not run"], "untested"),
        (["undecided", "not run"], "undecided"),
        (["holds", "undecided"], "holds"),
        (["holds", "reversed"], "depends on the test"),
        (["holds", "no difference beyond the margin"], "depends on the test"),
        (["undecided", "no difference beyond the margin"], "no difference"),
        (["no difference beyond the margin", "reversed"], "the opposite"),
        (["does not hold: better"], "a difference where none is claimed"),
        (["does not hold: worse", "undecided"], "a difference where none is claimed"),
    ],
)
def test_the_group_follows_from_all_findings(conclusions, group):
    sizes = {"size": Size.AS_PRINTED}
    assert row(*(judged(word, **sizes) for word in conclusions)).group == group


def test_smaller_is_what_is_smaller_in_a_test_that_holds():
    assert row(judged("holds"), judged("holds")).group == Group.SMALLER
    mixed = judged("holds"), judged("holds", size=Size.AS_PRINTED)
    assert row(*mixed).group == Group.SMALLER
    assert row(mixed[1], mixed[1]).group == Group.REPLICATED
    beside_undecided = judged("holds"), judged("undecided", size=Size.OPPOSITE)
    assert row(*beside_undecided).group == Group.SMALLER
    denied = next(
        claim for claim in papers()["scan"].claims if claim.parts[0].kind != "ordered"
    )
    told = [season("s", judged("holds", denied.id))]
    (of_claim,) = (
        r for r in ledger(told) if r.claim.id == denied.id and r.paper == "scan"
    )
    assert of_claim.group == Group.REPLICATED


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ({}, "over 100 seeds or 1,000 times the images"),
        ({"seeds": 1}, "1 more seed"),
        ({"seeds": 12, "images": 900}, "12 more seeds"),
        ({"images": 51_201}, "52,000 images"),
        ({"images": 51_201, "seeds_beside": 2}, "52,000 images with 2 more seeds"),
        ({"remedy": "a control"}, "a control"),
    ],
)
def test_what_would_decide_it_is_of_the_first_test(needs, words):
    """On the strongest features, whose mark stands first, whatever another season
    needs."""
    told = row(judged("undecided", **needs), judged("undecided", seeds=2))
    assert (told.needs, told.findings[1].needs) == (words, "2 more seeds")


def test_a_claim_that_holds_without_some_parts_is_counted_and_named():
    claim = next(claim for claim in papers()["scan"].claims if len(claim.parts) == 2)
    part = judged("holds", claim.id)
    whole = part.model_copy(update={"parts": part.parts * 2})
    for told, is_in_part in (([part], True), ([whole], False), ([part, whole], False)):
        seasons = [season(f"s{number}", finding) for number, finding in enumerate(told)]
        (of_claim,) = (of for of in ledger(seasons) if of.findings)
        assert (of_claim.group, of_claim.holds_in_part) == (Group.SMALLER, is_in_part)


def test_an_untested_claim_says_the_reason_of_each_season():
    reasons = ["a was not played", "a was not played", "b was not played"]
    not_run = judged("not run")
    own = row(*(not_run.model_copy(update={"reason": reason}) for reason in reasons))
    assert own.lacking == "a was not played in s0, s1; b was not played in s2"
    assert row(not_run, not_run).lacking == "the reason"
    assert row(judged("holds")).lacking == ""
    claims = [row.claim for row in ledger([])]
    reasons = {claim.id: untested_for(claim) for claim in claims}
    assert {
        claim.unplayed != "" for claim in claims if reasons[claim.id] == UNPLAYABLE
    } == {True}
    assert {
        claim.weights != "" for claim in claims if reasons[claim.id] == UNTRAINED
    } == {True}
    assert {claim.only_there for claim in claims if reasons[claim.id] == ELSEWHERE} == {
        True
    }


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([{"seeds": 2}, {"seeds": 9}], "9 more seeds"),
        ([{"seeds": 2}, {}], "over 100 seeds or 1,000 times the images"),
        ([{"seeds": 2}, {"remedy": "a control"}, {"remedy": "a control"}], "a control"),
        ([{"remedy": "a control"}, {"remedy": "3 seeds"}], "a control, 3 seeds"),
        ([{"seeds": 9}, {"seeds": 2, "difference": -1.0}], "2 more seeds"),
        ([{"seeds": 2}, {"conclusion": Conclusion.HOLDS}], "2 more seeds"),
        (
            [
                {"seeds": 2, "difference": -1.0},
                {"remedy": "a control", "withheld": "reversed"},
            ],
            "a control",
        ),
    ],
)
def test_of_a_claim_all_undecided_parts_have_to_be_decided(parts, words):
    undecided = {"conclusion": Conclusion.UNDECIDED}
    told = [compared(**(undecided | part)) for part in parts]
    decided = judged("undecided").model_copy(
        update={"parts": told, "decisive": len(told) - 1}
    )
    assert row(decided).needs == words


def test_what_counts_elsewhere_or_was_withheld_or_cannot_be_denied_decides_nothing():
    elsewhere = judged("reversed").model_copy(update={"is_elsewhere": True})
    alone = row(elsewhere)
    assert (alone.group, alone.findings, len(alone.alike)) == (Group.UNTESTED, [], 1)
    assert (
        row(elsewhere, judged("holds", size=Size.AS_PRINTED)).group == Group.REPLICATED
    )
    part = compared(conclusion="undecided", withheld="reversed")
    told = row(judged("undecided").model_copy(update={"parts": [part]}))
    assert (told.group, told.is_withheld) == (Group.UNDECIDED, True)
    assert not row(judged("undecided")).is_withheld
    name = next(claim.id for claim in papers()["cyclematch"].claims if claim.uncounted)
    told = judged("holds", name).model_copy(update={"paper": "cyclematch"})
    (of_claim,) = (r for r in ledger([season("s", told)]) if r.claim.id == name)
    assert of_claim.group == Group.UNCOUNTED


def test_photographs_decide_and_drawings_are_never_counted_with_them():
    drawn = season("s", judged("holds", size=Size.AS_PRINTED), split="drawn")
    groups = {
        "undecided": Group.UNDECIDED,
        "reversed": Group.REVERSED,
        "holds": Group.SMALLER,
    }
    for conclusion, group in groups.items():
        (of_claim,) = [
            r for r in ledger([drawn, season("t", judged(conclusion))]) if r.findings
        ]
        assert (of_claim.group, len(of_claim.photographs), len(of_claim.findings)) == (
            group,
            1,
            2,
        )
    (of_claim,) = [r for r in ledger([drawn]) if r.findings]
    assert (of_claim.group, of_claim.photographs) == (Group.DRAWINGS, [])
    assert {shapes.CARD.split, people.CARD.split} == {DRAWN}


@pytest.mark.parametrize(
    ("weak", "strong", "outcome"),
    [
        ("holds", "holds", "kept"),
        ("holds", "undecided", "undecided now"),
        ("holds", "reversed", "reversed"),
        ("undecided", "no difference beyond the margin", "decided now"),
        ("undecided", "undecided", "still undecided"),
    ],
)
def test_a_claim_on_stronger_features_is_compared_with_the_next_weaker_ones(
    weak, strong, outcome
):
    """The best row tells which features are stronger, not the order or the names of
    seasons."""
    levels = {"z": (strong, 290.0), "a": ("reversed", 150.0), "m": (weak, 250.0)}
    seasons = [at_level(name, *of) for name, of in levels.items()]
    seasons.append(season("drawn", judged("reversed"), title="Photos", split="drawn"))
    seasons.append(season("other", judged("reversed"), title="Other photos"))
    rows = ledger(seasons)
    (found,) = [of for of in rows if of.findings]
    places = [of.place for of in found.photographs if of.place.startswith("Photos")]
    assert places == ["Photos (z)", "Photos (m)", "Photos (a)"]
    assert [of.place for of in found.findings][-1] == "Photos (drawn)"
    (again,) = judged_again(rows)
    assert [of.place for of in (again.weak, again.strong)] == [
        "Photos (m)",
        "Photos (z)",
    ]
    assert again.outcome == outcome

"""What all seasons together say on a claim, from made-up findings."""

import numpy as np
import pandas as pd
import pytest
from made_boards import CLAIM, at_level, judged, row_of_first_claim, season

from benchmark.boards.claim_ledger import (
    ELSEWHERE,
    UNPLAYABLE,
    UNTRAINED,
    ledger,
    untested_for,
)
from benchmark.boards.claims_file import DRAWN, column
from benchmark.boards.grades import Grade
from benchmark.contracts.datasets import people, shapes
from benchmark.papers.printed_tables import papers
from benchmark.stats.significance import SeedPart


@pytest.mark.parametrize(
    ("findings", "grade"),
    [
        ([judged("not run")], Grade.UNTESTED),
        ([judged("holds"), judged("not run")], Grade.SEEN_ONCE),
        ([judged("holds"), judged("holds")], Grade.CONFIRMED),
        ([judged("reversed", difference=-4.0)], Grade.FAILS),
        ([judged("holds"), judged("reversed", difference=-4.0)], Grade.DEPENDS),
        ([judged("undecided", is_blocked=True)], Grade.UNDECIDED),
        (
            [judged("undecided", is_blocked=True, is_out_of_reach=True)],
            Grade.OUT_OF_REACH,
        ),
    ],
)
def test_the_grade_follows_from_all_findings(findings, grade):
    assert row_of_first_claim(*findings).grade == grade


def test_smaller_is_what_all_set_ups_show_to_be_smaller():
    assert row_of_first_claim(judged("holds")).graded.is_smaller
    as_printed = judged("holds", printed=2.5)
    assert not row_of_first_claim(as_printed).graded.is_smaller
    assert not row_of_first_claim(judged("reversed", difference=-4.0)).graded.is_smaller


def test_a_claim_that_holds_without_some_parts_is_counted_and_named():
    claim = next(claim for claim in papers()["scan"].claims if len(claim.parts) == 2)
    part = judged("holds", claim.id)
    second = part.parts[0].model_copy(update={"part": 1})
    whole = part.model_copy(update={"parts": [*part.parts, second]})
    for told, is_in_part in (([part], True), ([whole], False), ([part, whole], False)):
        seasons = [season(f"s{number}", finding) for number, finding in enumerate(told)]
        (of_claim,) = (of for of in ledger(seasons) if of.findings)
        assert of_claim.holds_in_part == is_in_part


def test_an_untested_claim_says_the_reason_of_each_season():
    reasons = ["no a", "no a", "no b"]
    not_run = judged("not run")
    own = row_of_first_claim(
        *(not_run.model_copy(update={"reason": reason}) for reason in reasons)
    )
    assert own.lacking == "no a in s0, s1; no b in s2"
    assert row_of_first_claim(not_run, not_run).lacking == "the reason"
    assert row_of_first_claim(judged("holds")).lacking == ""
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


def test_what_counts_elsewhere_or_is_not_counted_decides_nothing():
    elsewhere = judged("reversed").model_copy(update={"is_elsewhere": True})
    alone = row_of_first_claim(elsewhere)
    assert (alone.grade, alone.findings, len(alone.alike)) == (Grade.UNTESTED, [], 1)
    assert row_of_first_claim(elsewhere, judged("holds")).grade == Grade.SEEN_ONCE
    name = next(claim.id for claim in papers()["cyclematch"].claims if claim.uncounted)
    told = judged("holds", name).model_copy(update={"paper": "cyclematch"})
    (of_claim,) = (r for r in ledger([season("s", told)]) if r.claim.id == name)
    assert (of_claim.grade, of_claim.graded) == (Grade.UNCOUNTED, None)


def test_photographs_decide_and_drawings_are_never_counted_with_them():
    drawn = season("s", judged("holds"), split="drawn")
    grades = {0.0: Grade.NO_EFFECT, -4.0: Grade.FAILS, 2.0: Grade.SEEN_ONCE}
    for difference, grade in grades.items():
        told = judged("undecided", difference=difference)
        (of_claim,) = [r for r in ledger([drawn, season("t", told)]) if r.findings]
        assert of_claim.grade == grade
        assert (len(of_claim.photographs), len(of_claim.findings)) == (1, 2)
    (of_claim,) = [r for r in ledger([drawn]) if r.findings]
    assert (of_claim.grade, of_claim.photographs) == (Grade.DRAWINGS, [])
    assert {shapes.CARD.split, people.CARD.split} == {DRAWN}


def test_set_ups_stand_in_the_order_of_their_best_rows():
    levels = {"z": 290.0, "a": 150.0, "m": 250.0}
    seasons = [at_level(name, "holds", level) for name, level in levels.items()]
    seasons.append(season("drawn", judged("reversed"), title="Photos", split="drawn"))
    (found,) = [of for of in ledger(seasons) if of.findings]
    places = ["Photos (z)", "Photos (m)", "Photos (a)"]
    assert [of.place for of in found.findings] == [*places, "Photos (drawn)"]
    assert [finding.place for finding in found.photographs] == places


def test_evidence_of_the_same_images_is_pooled_image_by_image():
    noise = np.full(100, 0.1 / 1.96)
    turned = noise * np.tile([1.0, -1.0], 50)
    # images of one test set that do unlike things to the two differences
    name = column("scan", CLAIM.id, 0)
    seasons, evidence = [], {}
    for number in "ab":
        seasons.append(season(number, judged("holds"), test_images="x"))
        of_images = noise if number == "a" else turned
        table = pd.DataFrame({"dataset": f"d_{number}", name: of_images})
        evidence[number] = table
    errors = []
    for known in (evidence, {}):
        (of_claim,) = [r for r in ledger(seasons, known) if r.findings]
        verdict = of_claim.graded.decisive.verdict
        errors.append(verdict.comparison.estimate.error * 1.96)
    assert errors == pytest.approx([1 / np.sqrt(2), 1.0])


@pytest.mark.parametrize(("features", "is_repeated"), [("f", True), ("g", False)])
def test_a_season_that_repeats_another_names_the_one_that_counts(features, is_repeated):
    seeds = (SeedPart((3, 3), 0.0, 0.0, 40, is_own=False),)
    few = judged("holds", features="f")
    doubt = few.parts[0].doubt._replace(seeds=seeds)
    many = judged("holds", features=features, doubt=doubt)
    seasons = []
    for name, finding in {"few": few, "many": many}.items():
        seasons.append(season(name, finding, test_images="x"))
    (row,) = [row for row in ledger(seasons) if row.findings]
    of = {finding.place: finding for finding in row.photographs}
    of_few, of_many = of["Data of few (few)"], of["Data of many (many)"]
    assert row.repeated(of_few) is (of_many if is_repeated else None)
    assert row.repeated(of_many) is None

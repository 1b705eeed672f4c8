"""Verdicts as rows of a table and of the forest plot, from verdicts worked out by hand."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.analysis import claims
from benchmark.analysis.claims import Finding, Verdict
from benchmark.analysis.comparisons import Comparison
from benchmark.analysis.grounds import Cause, Ground
from benchmark.analysis.preset_titles import title_of
from benchmark.analysis.significance import Doubt, Estimate, SeedPart
from benchmark.analysis.verdict_rules import Conclusion, Limit, Rule, Size
from benchmark.papers.own_claims import OWN
from benchmark.papers.printed_tables import Claim
from benchmark.report.figures.forest import forest_rows
from benchmark.report.pages.claim_tables import (
    claims_table,
    counted,
    facts,
    headlines,
    limited,
    not_run_reasons,
    not_run_table,
    remark,
    verdict_table,
)
from benchmark.report.pages.contradictions import TESTS, evidence
from benchmark.report.table_formats import Table

ROOT = Path(__file__).parent.parent

PLUS_MINUS = "\N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}"
GAP = ",\N{NO-BREAK SPACE}"
HALF = 1.25  # of an interval
KNOWN = SeedPart((3, 3), 1e-12, 0.0, 1e9, is_own=False)  # trainings that hardly vary


def compared(
    first: str, second: str, conclusion: str = "holds", /, **facts: object
) -> claims.Tested:
    """A difference of 2.25 points, with an interval from 1 to 3.5."""
    level = 50.0 + "abc".index(first)  # of a 50, of b 51, of c 52, and a deviation of 0.5
    half = facts.get("half", HALF)
    known = {
        "first": first,
        "second": second,
        "titles": (title_of(first), title_of(second)),
        "metric": facts.get("metric", "i2t_r1"),
        "firsts": facts.get("firsts", [level - 0.5, level, level + 0.5]),
        "seconds": facts.get("seconds", [level + 0.5, level + 1, level + 1.5]),
        "difference": facts.get("difference", 2.25),
        "doubt": Doubt(
            images=(half / 1.959964) ** 2,
            interaction=0.0,
            image_count=10**9 if half else 0,
            seeds=(KNOWN,) if facts.get("is_known", True) else (),
        ),
        "is_of_these_trainings": not facts.get("is_known", True),
    }
    finding = Finding(
        conclusion=Conclusion(conclusion),
        ground=Ground(Cause.INTERVAL, "r"),
        estimate=Estimate(value=1.0, error=1.0, freedom=3.0),
        p=facts.get("p", 0.0123),
        adjusted_p=facts.get("adjusted_p", 0.0456),
    )
    return claims.Tested(
        comparison=Comparison(**known),
        rule=facts.get("rule", Rule(kind="ordered", margin=0.0)),
        printed=facts.get("printed", 4.3),
        on_other_images=finding,
        on_test_set=finding,
        size=facts.get("size"),
        limit=facts.get("limit"),
    )


def verdict(
    conclusion: str = "holds", *pairs: claims.Tested, on_test_set: str = "holds", **facts: object
) -> Verdict:
    """On as many presets as the pairs need, named a, b, c."""
    presets = list("abc"[: len(pairs) + 1])
    printed = facts.pop("values", [None] * len(presets))
    cautions, is_elsewhere = facts.pop("cautions", []), facts.pop("is_elsewhere", False)
    given = {
        "id": "c",
        "statement": "First beats second.",
        "where": "Section 4",
        "metric": "i2t_r1",
    }
    claim = Claim(**(given | {"presets": presets} | facts))
    return Verdict(
        paper="scan",
        claim=claim,
        conclusion=Conclusion(conclusion),
        on_test_set=Conclusion(on_test_set),
        cause=Cause.INTERVAL,
        reason="the reason",
        is_elsewhere=is_elsewhere,
        printed=printed,
        tested=list(pairs),
        cautions=cautions,
    )


def not_run(**facts: object) -> Verdict:
    """On a claim with presets, or without."""
    given = {"values": [], "presets": [], "unplayed": "not played"} | facts
    return verdict("not run", **given)


def rows(table: Table) -> list[dict[str, str]]:
    """By column, bold type left out."""
    texts = [[entry.text for entry in row] for row in table.entries]
    return [dict(zip(table.heads, row, strict=True)) for row in texts]


@pytest.mark.parametrize("word", ["holds", "reversed", "does not hold: better", "undecided"])
def test_a_verdict_stands_in_bold_with_all_its_numbers(word):
    table = claims_table("t", [verdict(word, compared("a", "b"))])
    (row,) = rows(table)
    assert list(row.values())[:-1] == [
        "First beats second.",
        word,
        "holds",
        "a beats b",
        "i2t R@1",
        "3",
        f"50.0 {PLUS_MINUS}0.5 against 51.0 {PLUS_MINUS}0.5",
        "+2.2",
        f"[+1.0{GAP}+3.5]",
        "0.012",
        "0.046",
        "+4.3",
    ]
    assert "the reason" in row["remark"] and "scan: Section 4" in row["remark"]
    assert [entry.text for entry in table.entries[0] if entry.is_bold] == [word]


def test_the_remark_says_what_would_decide_an_undecided_claim():
    pair = compared("a", "b", "undecided", limit=Limit(3, 1234), size=Size.SMALLER)
    said = remark(verdict("undecided", pair, cautions=["not converged: a"]))
    assert said == (
        "the reason; the difference is smaller than printed; 3 more seeds of each would decide it, "
        "or about 1,300 images; not converged: a. scan: Section 4."
    )
    as_printed = compared("a", "b", size=Size.AS_PRINTED)
    assert remark(verdict("holds", as_printed)) == "the reason. scan: Section 4."


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (Limit(1, None), "1 more seed of each would decide it"),
        (Limit(2, 999), "2 more seeds of each would decide it, or about 1,000 images"),
        (
            Limit(None, 3271),
            "no number of seeds decides this on 1,000 images; about 3,300 images would",
        ),
        (
            Limit(None, 52_001, 5),
            "no number of seeds decides this on 1,000 images; about 53,000 images with 5 more "
            "seeds would",
        ),
        (Limit(None, None), "neither more seeds nor more images would decide it"),
    ],
)
def test_what_limits_a_verdict_is_said_in_words(limit, words):
    assert limited(limit, 1000) == words


def test_a_single_training_that_others_carry_is_marked():
    carried = compared("a", "b", firsts=[50.0])
    said = "the spread of a single training is that of the other presets"
    assert said in remark(verdict("holds", carried))
    assert said not in remark(verdict("holds", compared("a", "b")))
    assert rows(claims_table("t", [verdict("holds", carried)]))[0]["seeds"] == "1, 3"


def test_a_sentence_about_another_dataset_is_named_so():
    (row,) = rows(claims_table("t", [verdict("holds", compared("a", "b"), is_elsewhere=True)]))
    assert row["claim"] == "Said of other data: First beats second."


def test_a_claim_on_one_preset_names_its_two_metrics():
    pair = compared("a", "", metric="mean_matched - mean_unmatched", seconds=[])
    alone = verdict("holds", pair, presets=["a"], metric="mean_matched - mean_unmatched")
    (row,) = rows(claims_table("t", [alone]))
    assert row["compared"] == "a: mean of matched above mean of unmatched"
    assert (row["seeds"], row["here"]) == ("3", f"50.0000 {PLUS_MINUS}0.5000")


@pytest.mark.parametrize(
    ("kind", "sign"), [("ordered", "beats"), ("alike", "is like"), ("not_better", "does not beat")]
)
def test_the_sign_says_what_is_claimed(kind, sign):
    claimed = verdict("holds", compared("a", "b"), kind=kind)
    (row,) = rows(claims_table("t", [claimed]))
    assert row["compared"] == f"a {sign} b"
    assert facts(claimed)[0].startswith(f"a {sign} b; 50.0")


def test_a_claim_on_three_presets_has_a_row_for_either_comparison():
    chain = verdict("holds", compared("a", "b"), compared("b", "c", difference=-0.5))
    first, second = rows(claims_table("t", [chain]))
    heads = ("claim", "on other images", "on this test set", "remark")
    assert [second[head] for head in heads] == [""] * 4
    assert [row["compared"] for row in (first, second)] == ["a beats b", "b beats c"]
    assert [row["difference"] for row in (first, second)] == ["+2.2", "-0.5"]
    assert second["here"] == f"51.0 {PLUS_MINUS}0.5 against 52.0 {PLUS_MINUS}0.5"


def test_what_is_not_known_is_a_dash_and_one_seed_has_no_spread():
    unknown = {"half": 0.0, "is_known": False, "p": None, "adjusted_p": None, "printed": None}
    pair = compared("a", "b", "undecided", firsts=[50.0], seconds=[51.0], **unknown)
    (row,) = rows(claims_table("t", [verdict("undecided", pair)]))
    assert row["here"] == "50.0 against 51.0"
    heads = ("95% interval", "p", "p after Holm", "printed")
    assert [row[head] for head in heads] == ["-"] * 4


def test_the_interval_of_one_seed_is_over_the_images_and_called_so():
    single = compared("a", "b", "undecided", firsts=[50.0], seconds=[51.0], is_known=False)
    head = "95% over test images, these trainings only"
    table = claims_table("t", [verdict("undecided", single, compared("b", "c"))])
    of_one, of_three = rows(table)
    assert (of_one["95% interval"], of_one[head]) == ("-", f"[+1.0{GAP}+3.5]")
    assert (of_three["95% interval"], of_three[head]) == (f"[+1.0{GAP}+3.5]", "-")
    assert head not in claims_table("t", [verdict("holds", compared("a", "b"))]).heads


def test_the_metric_has_its_own_decimals():
    scores = {"firsts": [0.16211, 0.16334, 0.16457], "seconds": [0.2, 0.2, 0.2]}
    facts = {"metric": "overlap_s", "difference": 0.0321, "half": 0.00201}
    pair = compared("a", "b", **facts, **scores)
    (row,) = rows(claims_table("t", [verdict("holds", pair, metric="overlap_s")]))
    assert row["metric"] == "S"
    assert row["here"] == f"0.1633 {PLUS_MINUS}0.0012 against 0.2000 {PLUS_MINUS}0.0000"
    assert row["difference"] == "+0.0321"
    assert row["95% interval"] == f"[+0.0301{GAP}+0.0341]"


def test_a_claim_that_was_not_run_has_its_reason_and_what_is_printed():
    lost = not_run(presets=["a", "b"], unplayed="", values=[67.9, 45.8])
    unplayed = not_run(printed=[39.6, 43.15, 44.53])
    unprinted = not_run()
    verdicts = [lost, unplayed, unprinted, verdict("holds", compared("a", "b"))]
    first, second, third = rows(not_run_table("t", verdicts))
    assert first == {
        "claim": "First beats second.",
        "remark": "scan: Section 4.",
        "why it was not run": "the reason",
        "compared": "a beats b",
        "metric": "i2t R@1",
        "printed": "67.9 against 45.8",
    }
    assert second["compared"] == "-"
    assert second["printed"].startswith("39.6 against 43.1") and "44.5" in second["printed"]
    assert third["printed"] == "-"


def test_either_table_has_what_the_other_has_not():
    run, other = verdict("holds", compared("a", "b")), not_run()
    assert (
        len(claims_table("t", [run, other]).rows) == len(not_run_table("t", [run, other]).rows) == 1
    )
    assert claims_table("t", [other]).rows == []
    assert not_run_table("t", [run]).rows == []
    assert claims_table("t", []).rows == not_run_table("t", []).rows == []


class TestVerdictTable:
    """The four columns of a page."""

    def test_a_row_has_claim_verdict_difference_and_print(self):
        table = verdict_table("t", [verdict("holds", compared("a", "b")), not_run()])
        (row,) = rows(table)
        assert list(row.values()) == [
            "First beats second.",
            "holds",
            f"i2t R@1 +2.2 [+1.0{GAP}+3.5]",
            "+4.3",
        ]
        assert [entry.text for entry in table.entries[0] if entry.is_bold] == ["holds"]

    def test_every_pair_of_several_is_named_below_its_claim(self):
        lost = compared("b", "c", "reversed", printed=None, difference=-9.0)
        chain = verdict("reversed", compared("a", "b"), lost)
        claim, first, second = rows(verdict_table("t", [chain]))
        assert list(claim.values()) == ["First beats second.", "reversed", "", ""]
        assert first["claim"].endswith("a beats b") and second["claim"].endswith("b beats c")
        assert (first["verdict"], first["printed"]) == ("holds", "+4.3")
        assert (second["verdict"], second["printed"]) == ("reversed", "-")

    def test_a_claim_on_the_same_comparison_names_the_other(self):
        others = [verdict("holds", compared("a", "b"), statement=said) for said in ("One.", "Two.")]
        first, second = rows(verdict_table("t", others))
        assert first["claim"] == "One. (same comparison as: Two)"
        assert second["claim"] == "Two. (same comparison as: One)"

    def test_claims_for_which_a_paper_is_known_are_answered_by_dataset(self):
        known = verdict("holds", compared("a", "b", size=Size.SMALLER), headline=True)
        here = {"D": [known, verdict("holds", compared("a", "b"), statement="Other.")]}
        answers = f"holds, i2t R@1 +2.2 [+1.0{GAP}+3.5], smaller than printed; printed +4.3"
        assert headlines("scan", here) == [("First beats second.", [("D", answers)])]
        lost = {"D": [not_run(headline=True)]}
        assert headlines("scan", lost) == [("First beats second.", [])]
        assert headlines("cyclematch", here) == []

    def test_remarks_on_sizes_keep_the_order_of_the_pairs(self):
        pairs = [compared("a", "b", size=Size.OPPOSITE), compared("b", "c", size=Size.LARGER)]
        said = "a beats b: opposite to printed; b beats c: larger than printed"
        assert said in remark(verdict("reversed", *pairs))

    def test_the_gravest_cautions_stand_beside_the_verdict(self):
        cautions = ["not converged: a", "unequal settings: epochs 1 and 2", "near chance: b"]
        (row,) = rows(verdict_table("t", [verdict("holds", compared("a", "b"), cautions=cautions)]))
        assert row["verdict"] == "holds (near chance, unequal settings)"
        undecided = verdict("undecided", compared("a", "b"), cautions=cautions)
        assert rows(verdict_table("t", [undecided]))[0]["verdict"] == "undecided"
        poor = replace(undecided, cause=Cause.NEAR_CHANCE)
        assert rows(verdict_table("t", [poor]))[0]["verdict"] == "undecided (near chance)"

    def test_an_interval_over_these_trainings_has_a_dagger(self):
        single = compared("a", "b", "undecided", firsts=[50.0], seconds=[51.0], is_known=False)
        (row,) = rows(verdict_table("t", [verdict("undecided", single)]))
        assert row["difference here, 95% interval"].endswith("]\N{NO-BREAK SPACE}\N{DAGGER}")

    def test_what_has_no_interval_has_none(self):
        pair = compared("a", "b", half=0.0, is_known=False)
        (row,) = rows(verdict_table("t", [verdict("undecided", pair)]))
        assert row["difference here, 95% interval"] == "i2t R@1 +2.2"

    def test_the_facts_name_levels_seeds_p_and_the_other_verdict(self):
        claimed = verdict("undecided", compared("a", "b"), on_test_set="reversed")
        first, second, last = facts(claimed)
        assert first == (
            f"a beats b; 50.0 {PLUS_MINUS}0.5 against 51.0 {PLUS_MINUS}0.5; seeds: 3; p 0.012; "
            "after Holm 0.046"
        )
        assert second == "on this test set: reversed"
        assert last == remark(claimed)

    def test_what_was_not_run_is_listed_by_its_reason(self):
        lost = [not_run(), verdict("holds", compared("a", "b")), not_run()]
        assert not_run_reasons(lost) == {"the reason": [lost[0], lost[2]]}


def test_conclusions_are_counted_in_words():
    pair = compared("a", "b")
    verdicts = [verdict(word, pair) for word in ("holds", "undecided", "undecided")]
    assert counted(verdicts) == "1 holds, 2 are undecided"
    verdicts.append(verdict("does not hold: worse", pair))
    assert "1 claims no loss where there is one" in counted(verdicts)


class TestForest:
    def test_a_row_has_the_numbers_of_its_comparison(self):
        (row,) = forest_rows(verdict("holds", compared("a", "b")))
        numbers = (row.difference, row.low, row.high, row.printed)
        assert numbers == pytest.approx((2.25, 1.0, 3.5, 4.3))
        assert (row.unit, row.conclusion, row.bounds) == ("i2t R@1", "holds", ())
        assert "First beats second." in row.label

    def test_the_interval_of_one_seed_is_marked(self):
        single = compared("a", "b", "undecided", firsts=[50.0], seconds=[51.0], is_known=False)
        drawn = forest_rows(verdict("undecided", single, compared("b", "c")))
        assert [row.is_of_these_trainings for row in drawn] == [True, False]

    def test_each_comparison_keeps_its_own_conclusion(self):
        pairs = compared("a", "b", "holds"), compared("b", "c", "reversed")
        drawn = forest_rows(verdict("reversed", *pairs))
        assert [row.conclusion for row in drawn] == ["holds", "reversed"]

    @pytest.mark.parametrize(
        ("kind", "bounds"), [("ordered", (-1, 1)), ("not_better", (1,)), ("alike", (-1, 1))]
    )
    def test_a_margin_is_drawn_on_the_sides_where_it_matters(self, kind, bounds):
        pair = compared("a", "b", rule=Rule(kind=kind, margin=1.0))
        assert forest_rows(verdict("holds", pair, kind=kind))[0].bounds == bounds
        assert forest_rows(verdict("holds", compared("a", "b")))[0].bounds == ()

    def test_only_what_was_compared_and_has_an_interval_has_a_row(self):
        assert forest_rows(not_run()) == []
        without = compared("a", "b", half=0.0, is_known=False)
        drawn = forest_rows(verdict("undecided", without, compared("b", "c")))
        assert ["b beats c" in row.label for row in drawn] == [True]


@pytest.mark.parametrize("word", [*Conclusion])
def test_what_contradicts_its_paper_has_its_evidence(word):
    """The tests of the methods that are linked are there."""
    agrees = word in (Conclusion.HOLDS, Conclusion.UNDECIDED, Conclusion.NOT_RUN)
    linked = evidence(verdict(word, compared("a", "b")), "shapes", {"a": "scan", "b": "vse"}, ())
    paths = re.findall(r"\]\(\.\./\.\./(tests/[^)]+)\)", linked)
    assert paths == ([] if agrees else [f"tests/test_{x}.py" for x in ("scan", "vse", "methods")])
    assert all((ROOT / path).is_file() for path in paths)
    assert linked.endswith("[training curves](datasets/shapes.md)") or agrees


def test_an_adaptive_fusion_has_the_checks_of_its_weights_as_well():
    lost, method_of = verdict("reversed", compared("a", "b")), {"a": "scan", "b": "vse"}
    linked = evidence(lost, "shapes", method_of, {"b"})
    assert f"({TESTS}/test_fusion.py)" in linked and "(papers/cyclematch.md)" in linked
    assert "fusion" not in evidence(lost, "shapes", method_of, {"c"})


def test_nothing_is_said_of_own_methods_and_own_claims():
    lost = verdict("reversed", compared("a", "b"))
    assert evidence(lost, "shapes", {}, ()) == ""
    assert evidence(replace(lost, paper=OWN), "shapes", {"a": "scan", "b": "vse"}, ()) == ""

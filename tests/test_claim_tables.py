"""Verdicts as rows of tables, from verdicts worked out by hand."""

import re
from dataclasses import replace
from pathlib import Path

import builders
import pytest
from refusals import holds

from benchmark.boards.claims import ClaimTest
from benchmark.papers.printed_tables import OWN, Claim, quantity, title_of
from benchmark.report.pages import claim_tables
from benchmark.report.tables import Table
from benchmark.stats.claim_kinds import KINDS, Conclusion
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt, SeedPart
from benchmark.stats.verdicts import Flag, Limit, Rule, Size, Verdict

ROOT = Path(__file__).parent.parent
STATEMENT = "First beats second."
MORE = r"\d+ more \w+"
HALF = 1.25  # of an interval
KNOWN = SeedPart((3, 3), 1e-12, 0.0, 1e9, is_own=False)  # trainings that hardly vary


def pair(
    first: str, second: str, conclusion: str = "holds", /, **facts: object
) -> Verdict:
    """A difference of 2.25 points, with an interval from 1 to 3.5."""
    # of a 50, of b 51, of c 52, and a deviation of 0.5
    level = 50.0 + "abc".index(first)
    half = facts.get("half", HALF)
    is_known = facts.get("is_known", True)
    metric = quantity(facts.get("metric", "i2t_r1"))
    comparison = Comparison(
        first=first,
        second=second,
        titles=(title_of(first), title_of(second)),
        metric=facts.get("metric", "i2t_r1"),
        heading=metric.heading,
        decimals=metric.decimals,
        firsts=facts.get("firsts", [level - 0.5, level, level + 0.5]),
        seconds=facts.get("seconds", [level + 0.5, level + 1, level + 1.5]),
        difference=facts.get("difference", 2.25),
        doubt=Doubt(
            images=(half / 1.959964) ** 2,
            interaction=0.0,
            image_count=10**9 if half else 0,
            seeds=(KNOWN,) if is_known else (),
        ),
        is_of_these_trainings=not is_known,
    )
    return Verdict(
        comparison=comparison,
        rule=Rule(kind=KINDS[facts.get("kind", "ordered")], margin=0.5),
        printed=facts.get("printed", 4.3),
        conclusion=Conclusion(conclusion),
        on_test_set=Conclusion(conclusion),
        reason="the reason",
        p=facts.get("p", 0.0123),
        adjusted_p=facts.get("adjusted_p", 0.0456),
        size=facts.get("size"),
        limit=facts.get("limit"),
    )


def judged_claim(*pairs: Verdict, **facts: object) -> ClaimTest:
    """With a part for each pair; without pairs a part that was not run."""
    of_verdict = {
        "paper": facts.pop("paper", "scan"),
        "flags": facts.pop("flags", [] if pairs else [Flag("R", "a not run")]),
        "is_elsewhere": facts.pop("is_elsewhere", False),
    }
    given = {"id": "c", "statement": STATEMENT, "where": "Section 4"}
    given["metric"] = "i2t_r1"
    compared = [pair.comparison for pair in pairs]
    given["parts"] = [
        {"presets": [x for x in (of.first, of.second) if x], "metric": of.metric}
        for of in compared
    ] or [["a", "b"]]
    return ClaimTest(claim=Claim(**(given | facts)), verdicts=list(pairs), **of_verdict)


def rows(table: Table) -> list[dict]:
    return table.frame.to_dict("records")


class TestPage:
    def test_a_row_has_claim_verdict_difference_print_and_letters(self):
        said = [Flag("C", "a"), Flag("N", "b"), Flag("U", "epochs 1 and 2")]
        undecided = judged_claim(pair("a", "b", "undecided"), flags=said)
        (row,) = rows(claim_tables.verdict_table("t", [undecided, judged_claim()]))
        assert (row["claim"], row["verdict"]) == (STATEMENT, "undecided")
        assert row["metric"] == "i2t R@1"
        shown = row["difference, 95% interval"]
        assert (shown.value, shown.low, shown.high) == pytest.approx((2.25, 1.0, 3.5))
        assert str(shown).replace("\xa0", " ") == "+2.2 [+1.0, +3.5]"
        assert (str(row["printed"]), row["flags"]) == ("+4.3", "NUC")

    def test_a_claim_with_several_parts_has_a_row_for_each_below_its_own(self):
        lost = pair(
            "b", "c", "reversed", printed=None, difference=-9.0, metric="t2i_r1"
        )
        held = pair("a", "b", kind="not_better")
        said = [Flag("C", "a")]
        head, *of_parts = rows(
            claim_tables.verdict_table("t", [judged_claim(held, lost, flags=said)])
        )
        assert (head["claim"], head["verdict"]) == (STATEMENT, "reversed")
        assert head["flags"] == "C" and head["difference, 95% interval"] is None
        names = [row["claim"] for row in of_parts]
        assert names == ["– a does not beat b", "– b beats c"]
        assert [row["verdict"] for row in of_parts] == ["holds", "reversed"]
        assert [row["metric"] for row in of_parts] == ["i2t R@1", "t2i R@1"]
        assert [row["flags"] for row in of_parts] == [None, None]
        assert of_parts[1]["printed"] is None

    def test_what_does_not_count_is_named_so(self):
        elsewhere = judged_claim(pair("a", "b"), is_elsewhere=True)
        uncounted = judged_claim(pair("a", "b"), uncounted="Undeniable.")
        of_both = rows(claim_tables.verdict_table("t", [elsewhere, uncounted]))
        first, second = (row["claim"] for row in of_both)
        assert holds(first, "other data", "not counted") and first.endswith(STATEMENT)
        assert second == f"Not counted: {STATEMENT}"
        told = rows(
            claim_tables.claims_table(
                "t", [judged_claim(pair("a", "b")), elsewhere, uncounted]
            )
        )
        assert [row["counted"] for row in told] == ["yes", "no", "no"]


class TestExport:
    def test_a_claim_has_a_row_per_part_with_all_its_numbers(self):
        lost = pair("b", "c", "reversed", difference=-0.5, adjusted_p=None)
        first, second = rows(
            claim_tables.claims_table("t", [judged_claim(pair("a", "b"), lost)])
        )
        words = [
            (row["on other images"], row["of this part"]) for row in (first, second)
        ]
        assert words == [("reversed", "holds"), ("reversed", "reversed")]
        assert (first["compared"], second["compared"]) == ("a beats b", "b beats c")
        assert (first["first"].value, first["first"].sd) == (50.0, 0.5)
        assert (second["second"].value, second["difference"].value) == (52.0, -0.5)
        assert (first["p"].value, first["p after Holm"].value) == (0.0123, 0.0456)
        assert (second["p after Holm"], first["seeds"], first["margin"].value) == (
            None,
            "3",
            0.5,
        )
        run, lost = rows(
            claim_tables.claims_table(
                "t", [judged_claim(pair("a", "b")), judged_claim()]
            )
        )
        assert (lost["on other images"], lost["remark"]) == ("not run", "a not run")
        assert (lost["difference"], lost["where"]) == (None, "Section 4")
        assert "the reason" in run["remark"]

    def test_a_claim_on_one_preset_and_all_parts_of_what_was_not_run_are_named(self):
        metric = "mean_matched - mean_unmatched"
        single = judged_claim(pair("a", "", metric=metric, seconds=[]))
        (row,) = rows(claim_tables.claims_table("t", [single]))
        assert row["compared"].startswith("a: ")
        assert holds(row["compared"], "matched", "above", "unmatched")
        assert row["second"] is None and str(row["first"]).startswith("50.0000")
        parts = [
            ["a", "b"],
            {"presets": ["c", "a"], "metric": "t2i_r1", "kind": "alike"},
        ]
        (row,) = rows(claim_tables.claims_table("t", [judged_claim(parts=parts)]))
        assert row["compared"] == "a beats b; c is like a"
        assert row["metric"] == "i2t R@1, t2i R@1"

    def test_the_sign_says_what_is_claimed(self):
        signs = {"ordered": "beats", "far": "is far above", "alike": "is like"}
        for kind, sign in (signs | {"not_better": "does not beat"}).items():
            facts = {"kind": kind, "printed": [60.0, 20.0]}
            run, lost = (
                judged_claim(pair("a", "b", kind=kind), **facts),
                judged_claim(**facts),
            )
            of_both = rows(claim_tables.claims_table("t", [run, lost]))
            assert [row["compared"] for row in of_both] == [f"a {sign} b"] * 2

    def test_the_remark_says_what_would_decide_it_and_what_speaks_against(self):
        open_ = pair("a", "b", "undecided", limit=Limit(3, 2), size=Size.SMALLER)
        of = judged_claim(open_, flags=[Flag("C", "1 of 3 trainings")])
        told = claim_tables.remark(of, open_)
        assert holds(told, "the reason", Size.SMALLER, "1 of 3 trainings")
        assert re.findall(MORE, told) == ["3 more seeds", "2 more folds"]


@pytest.mark.parametrize(
    ("limit", "more", "decides"),
    [
        (Limit(1, None), ["1 more seed"], True),
        (Limit(None, 1), ["1 more fold"], True),
        (Limit(None, None), ["20 more seeds", "20 more folds"], False),
    ],
)
def test_what_limits_a_verdict_is_said_in_words(limit, more, decides):
    told = claim_tables.decided_by(limit)
    assert re.findall(MORE, told) == more
    assert holds(told, "not even") != decides


def test_claims_without_effect_are_counted_apart_from_those_that_fail():
    words = (Conclusion.HOLDS, Conclusion.NO_DIFFERENCE, Conclusion.REVERSED)
    judged = [judged_claim(pair("a", "b", word)) for word in words]
    told = claim_tables.conclusion_counts(judged)
    assert told == "1 held, 1 without effect, 1 failed"


def test_more_seeds_or_more_folds_decide():
    told = claim_tables.decided_by(Limit(3, 2))
    assert told == "3 more seeds per row or 2 more folds of the same size"


@pytest.mark.parametrize("word", [*Conclusion])
def test_what_contradicts_its_paper_has_the_tests_of_its_methods(word):
    methods = {"a": "scan", "b": "vse"}
    outcomes = [
        builders.outcome(preset, method=name) for preset, name in methods.items()
    ]
    of_both = [builders.standing(made.record.preset, [made]) for made in outcomes]
    judged = (
        judged_claim(pair("a", "b", word))
        if word != Conclusion.NOT_RUN
        else judged_claim()
    )
    others = [replace(judged, paper=OWN), replace(judged, is_elsewhere=True)]
    listed = claim_tables.against_papers(builders.board(*of_both), [judged, *others])
    agrees = word in (Conclusion.HOLDS, Conclusion.UNDECIDED, Conclusion.NOT_RUN)
    assert len(listed) == (0 if agrees else 1)
    for of_paper, links in listed:
        paths = re.findall(r"\]\(\.\./\.\./(tests/[^)]+)\)", links)
        assert of_paper is judged and paths == [
            f"tests/test_{name}.py" for name in methods.values()
        ]
        assert all((ROOT / path).is_file() for path in paths)

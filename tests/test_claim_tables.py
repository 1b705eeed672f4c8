"""Verdicts as rows of a table and of the forest plot, from verdicts worked out by hand."""

import pytest

from benchmark.analysis import claims
from benchmark.analysis.claims import Cause, Conclusion, Verdict
from benchmark.analysis.comparisons import Comparison
from benchmark.papers.printed_tables import Claim
from benchmark.report.figures.forest import forest_rows
from benchmark.report.pages.claim_tables import claims_table, counted, not_run_table
from benchmark.report.table_formats import Table

PLUS_MINUS = "\N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}"
GAP = ",\N{NO-BREAK SPACE}"


def compared(
    first: str, second: str, conclusion: str = "holds", /, **facts: object
) -> claims.Tested:
    """A difference of 2.25 +- 0.5 points, with an interval from 1 to 3.5."""
    own = ("adjusted_p", "printed")
    level = 50.0 + "abc".index(first)  # of a 50, of b 51, of c 52, and a deviation of 0.5
    numbers = {
        "metric": "i2t_r1",
        "firsts": [level - 0.5, level, level + 0.5],
        "seconds": [level + 0.5, level + 1, level + 1.5],
        "difference": 2.25,
        "std": 0.5,
        "interval": (1.0, 3.5),
        "p": 0.001,
    }
    numbers |= {key: value for key, value in facts.items() if key not in own}
    shown = {"adjusted_p": 0.0123, "printed": 4.3} | {k: facts[k] for k in own if k in facts}
    comparison = Comparison(first=first, second=second, **numbers)
    ground = {"conclusion": Conclusion(conclusion), "cause": Cause.INTERVAL, "reason": "r"}
    return claims.Tested(comparison=comparison, **ground, **shown)


def verdict(
    conclusion: str = "holds", *pairs: claims.Tested, leans: str = "", **facts: object
) -> Verdict:
    """On as many presets as the pairs need, named a, b, c."""
    presets = list("abc"[: len(pairs) + 1])
    printed = facts.pop("values", [None] * len(presets))
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
        margin=claim.margin,
        conclusion=Conclusion(conclusion),
        cause=Cause.INTERVAL,
        reason="the reason",
        leans=Conclusion(leans) if leans else None,
        printed=printed,
        tested=list(pairs),
    )


def not_run(**facts: object) -> Verdict:
    """On a claim with presets, or without."""
    given = {"values": [], "presets": [], "unplayed": "not played"} | facts
    return verdict("not run", **given)


def rows(table: Table) -> list[dict[str, str]]:
    """By column, bold type left out."""
    texts = [[entry.text for entry in row] for row in table.entries]
    return [dict(zip(table.heads, row, strict=True)) for row in texts]


@pytest.mark.parametrize("word", ["holds", "does not hold", "undecided"])
def test_a_verdict_stands_in_bold_with_all_its_numbers(word):
    table = claims_table("t", [verdict(word, compared("a", "b"))])
    (row,) = rows(table)
    assert list(row.values())[:-1] == [
        "First beats second.",
        word,
        "a beats b",
        "i2t R@1",
        "3",
        f"50.0 {PLUS_MINUS}0.5 against 51.0 {PLUS_MINUS}0.5",
        "+2.2",
        f"[+1.0{GAP}+3.5]",
        "0.012",
        "+4.3",
    ]
    assert "the reason" in row["remark"] and "scan: Section 4" in row["remark"]
    assert [entry.text for entry in table.entries[0] if entry.is_bold] == [word]


def test_the_remark_says_what_an_undecided_claim_leans_to():
    leaning, upright = rows(
        claims_table(
            "t",
            [
                verdict("undecided", compared("a", "b"), leans="does not hold"),
                verdict("undecided", compared("a", "b")),
            ],
        )
    )
    assert "leans to: does not hold" in leaning["remark"]
    assert "leans" not in upright["remark"]


@pytest.mark.parametrize(
    ("kind", "sign"), [("ordered", "beats"), ("alike", "is like"), ("not_better", "does not beat")]
)
def test_the_sign_says_what_is_claimed(kind, sign):
    claimed = verdict("holds", compared("a", "b"), kind=kind)
    (row,) = rows(claims_table("t", [claimed]))
    assert row["compared"] == f"a {sign} b"
    (drawn,) = forest_rows(claimed)
    assert f"a {sign} b" in drawn.label


def test_a_claim_on_three_presets_has_a_row_for_either_comparison():
    chain = verdict("holds", compared("a", "b"), compared("b", "c", difference=-0.5))
    first, second = rows(claims_table("t", [chain]))
    assert [second[head] for head in ("claim", "verdict", "remark")] == ["", "", ""]
    assert [row["compared"] for row in (first, second)] == ["a beats b", "b beats c"]
    assert [row["difference"] for row in (first, second)] == ["+2.2", "-0.5"]
    assert second["here"] == f"51.0 {PLUS_MINUS}0.5 against 52.0 {PLUS_MINUS}0.5"


def test_what_is_not_known_is_a_dash_and_one_seed_has_no_spread():
    unknown = {"interval": None, "adjusted_p": None, "printed": None}
    pair = compared("a", "b", "undecided", firsts=[50.0], seconds=[51.0], **unknown)
    (row,) = rows(claims_table("t", [verdict("undecided", pair)]))
    assert row["here"] == "50.0 against 51.0"
    assert [row[head] for head in ("95% interval", "p, Holm", "printed")] == ["-", "-", "-"]


def test_the_interval_of_one_seed_is_over_the_images_and_called_so():
    single = compared("a", "b", "undecided", firsts=[50.0], seconds=[51.0])
    head = "95% over test images, these trainings only"
    table = claims_table("t", [verdict("undecided", single, compared("b", "c"))])
    one, three = rows(table)
    assert (one["95% interval"], one[head]) == ("-", f"[+1.0{GAP}+3.5]")
    assert (three["95% interval"], three[head]) == (f"[+1.0{GAP}+3.5]", "-")
    assert head not in claims_table("t", [verdict("holds", compared("a", "b"))]).heads


def test_the_metric_has_its_own_decimals():
    scores = {"firsts": [0.16211, 0.16334, 0.16457], "seconds": [0.2, 0.2, 0.2]}
    facts = {"metric": "overlap_s", "difference": 0.0321, "interval": (0.0301, 0.0342)}
    pair = compared("a", "b", **facts, **scores)
    (row,) = rows(claims_table("t", [verdict("holds", pair, metric="overlap_s")]))
    assert row["metric"] == "S"
    assert row["here"] == f"0.1633 {PLUS_MINUS}0.0012 against 0.2000 {PLUS_MINUS}0.0000"
    assert row["difference"] == "+0.0321"
    assert row["95% interval"] == f"[+0.0301{GAP}+0.0342]"


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


def test_conclusions_are_counted_in_words():
    pair = compared("a", "b")
    verdicts = [verdict(word, pair) for word in ("holds", "undecided", "undecided")]
    assert counted(verdicts) == "1 holds, 0 do not hold, 2 are undecided, 0 were not run"


class TestForest:
    def test_a_row_has_the_numbers_of_its_comparison(self):
        (row,) = forest_rows(verdict("holds", compared("a", "b")))
        assert (row.difference, row.low, row.high, row.printed) == (2.25, 1.0, 3.5, 4.3)
        assert (row.unit, row.conclusion, row.bounds) == ("i2t R@1", "holds", ())
        assert "First beats second." in row.label

    def test_the_interval_of_one_seed_is_marked(self):
        single = compared("a", "b", "undecided", firsts=[50.0], seconds=[51.0])
        drawn = forest_rows(verdict("undecided", single, compared("b", "c")))
        assert [row.is_of_test_set for row in drawn] == [True, False]

    def test_each_comparison_keeps_its_own_conclusion(self):
        pairs = compared("a", "b", "holds"), compared("b", "c", "does not hold")
        drawn = forest_rows(verdict("does not hold", *pairs))
        assert [row.conclusion for row in drawn] == ["holds", "does not hold"]

    @pytest.mark.parametrize(
        ("kind", "bounds"), [("ordered", ()), ("not_better", (1,)), ("alike", (-1, 1))]
    )
    def test_a_margin_is_drawn_on_the_sides_where_it_matters(self, kind, bounds):
        (row,) = forest_rows(verdict("holds", compared("a", "b"), kind=kind))
        assert row.bounds == bounds

    def test_only_what_was_compared_and_has_an_interval_has_a_row(self):
        assert forest_rows(not_run()) == []
        without = compared("a", "b", interval=None)
        drawn = forest_rows(verdict("undecided", without, compared("b", "c")))
        assert ["b beats c" in row.label for row in drawn] == [True]

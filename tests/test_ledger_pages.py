"""Tables and sentences of the ledger, from claims.json files made by hand."""

from pathlib import Path

import pytest
from made_boards import CLAIM, at_level, compared, judged, row_of_first_claim, season

from benchmark.boards.claim_ledger import ledger
from benchmark.boards.claims_file import read_evidence, read_seasons
from benchmark.papers.printed_tables import papers
from benchmark.report.markdown import inside
from benchmark.report.pages.claim_tables import OPEN
from benchmark.report.pages.ledger_pages import (
    NOT_KNOWN,
    SEE_ABOVE,
    SEE_ALL,
    anchor,
    evidence_table,
    findings,
    gains,
    leaders,
    matrix,
    needed,
    needs,
)
from benchmark.stats.claim_kinds import ORDERED, Conclusion
from benchmark.stats.significance import Doubt

COMMITTED = Path(__file__).parent.parent / "reports"


def doubt(error: float) -> Doubt:
    return Doubt(images=error**2, interaction=0.0, image_count=1000, seeds=())


def test_a_table_has_the_set_ups_together_and_each_with_its_parts():
    unknown = compared(low=None, high=None, is_blocked=True, doubt=doubt(0.0))
    parts = [unknown, compared(conclusion="reversed", part=1)]
    several = judged("reversed").model_copy(update={"parts": parts, "decisive": 1})
    of_claim = row_of_first_claim(judged("undecided", seeds=3), several)
    lines = evidence_table(of_claim).frame.to_dict("records")
    *pooled, first, head, _, _ = lines
    of_parts = lines[-2:]
    assert [line["test"] for line in pooled] == ["all set-ups: A over B"] * 2
    shown = pooled[0]["difference, 95% interval"]
    assert shown.value == 2.0
    assert shown.high - shown.low == pytest.approx(2.0, rel=1e-4)  # of one of them
    shown = first["difference, 95% interval"]
    assert (shown.value, shown.low, shown.high) == (2.0, 1.0, 3.0)
    assert (first["test"], str(first["printed"])) == ("Data of s0 (s0)", "+4.0")
    assert (first["would decide it"], first["verdict"]) == ("", "holds")
    assert (head["test"], head["verdict"]) == ("Data of s1 (s1)", "undecided")
    assert [of["verdict"] for of in of_parts] == ["undecided", "holds"]
    assert of_parts[0]["test"] == "– A over B"
    assert of_parts[0]["difference, 95% interval"].low is None


def test_what_would_decide_an_open_test_is_never_empty():
    seasons = read_seasons(COMMITTED)
    evidence = {of.season: read_evidence(COMMITTED, of.season) for of in seasons}
    open_by, metrics = [], set()
    for row in ledger(seasons, evidence):
        for line in evidence_table(row).frame.to_dict("records"):
            metrics.add(line["metric"])
            if line["verdict"] == Conclusion.UNDECIDED:
                open_by.append(line[OPEN])
    assert len(open_by) > 20 and all(open_by)
    assert {NOT_KNOWN, SEE_ABOVE, SEE_ALL} < set(open_by)
    assert "S (smaller is better)" in metrics and "S" not in metrics


def test_the_matrix_has_the_grade_all_set_ups_each_place_and_drawings_apart():
    told = [
        at_level("weak", "undecided", 250.0),
        at_level("strong", "holds", 290.0),
        season("d1", judged("reversed", difference=-2.0), split="drawn"),
        season("d2", judged("holds"), split="drawn"),
    ]
    rows = [of for of in ledger(told) if of.findings]
    text = matrix(rows, ["Photos (strong)", "Photos (weak)"])
    (line,) = text.splitlines()[2:]
    cells = [cell.strip() for cell in line.strip("|").split(" | ")]
    name, grade, printed, pooled, *effects = cells
    assert f"](#{anchor(rows[0])})" in name and inside(CLAIM.statement) in name
    assert grade == "\u25cf confirmed, by less than printed"
    assert printed == "rsum +4.0" and pooled.startswith("+2.0")
    assert effects[:2] == ["\u25cf\u00b0 +2.0"] * 2
    assert effects[2] == "\u2715\u00b0 -2.0, \u25cf\u00b0 +2.0"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"low": 1.0}, ""),
        ({"difference": 0.1, "doubt": doubt(1.2)}, "5 more folds of the same size"),
        ({"is_blocked": True, "remedy": "3 seeds"}, "3 seeds"),
    ],
)
def test_an_open_claim_says_what_would_decide_it(facts, words):
    assert needed(row_of_first_claim(judged("undecided", **facts))) == words


BEYOND = "more than 20 seeds or 20 folds"
TRIALS = {"is_blocked": True, "remedy": "equal trials"}
SEEDS = {"is_blocked": True, "remedy": "3 seeds"}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([{}], BEYOND),
        ([{"seeds": 1}], "1 more seed"),
        ([{"seeds": 12, "folds": 3}], "12 more seeds"),
        ([{"folds": 1}], "1 more fold"),
        ([{"folds": 4}], "4 more folds"),
        ([TRIALS], "equal trials"),
        ([{"seeds": 2}, {"seeds": 9}], "9 more seeds"),
        ([{"seeds": 3, "folds": 2}, {"folds": 4}], "4 more folds"),
        ([{"seeds": 2}, {}], BEYOND),
        ([{"seeds": 2}, SEEDS, SEEDS], "3 seeds"),
        ([TRIALS, SEEDS], "equal trials, 3 seeds"),
        ([{}, TRIALS], "equal trials"),
        ([{"seeds": 9}, {"seeds": 2, "difference": -1.0}], "2 more seeds"),
        ([{"seeds": 2}, {"conclusion": Conclusion.HOLDS}], "2 more seeds"),
        ([{"conclusion": Conclusion.HOLDS}], ""),
        ([{"seeds": 2}, {"conclusion": Conclusion.NOT_BETTER}], ""),
    ],
)
def test_all_undecided_parts_have_to_be_decided(parts, words):
    # but one that may deny the claim alone comes first; it is the decisive one
    undecided = {"conclusion": Conclusion.UNDECIDED}
    entries = [compared(**(undecided | part)) for part in parts]
    verdicts = [entry.verdict(ORDERED, "the reason") for entry in entries]
    assert needs(verdicts, verdicts[-1]) == words


def test_the_leader_stands_with_its_interval_and_how_many_rivals():
    told = season("s", judged("holds"))
    (line,) = leaders([told]).frame.to_dict("records")
    leader = told.datasets[0].leaders[0]
    assert line["best row"] == leader.best.title and line["rows"] == len(leader.places)
    assert len(leader.like(leader.best)) == 1
    assert line["not significantly different"] == f"1 of {len(leader.places) - 1}"
    level = line["level, 95% interval"]
    assert (level.value, level.low, level.high) == (leader.best.mean, 190.0, 210.0)
    assert line["flags"] == "extra input, best early"
    assert [of.title for of in leader.like(leader.best)] == ["B"]


def test_the_first_page_has_what_all_set_ups_say():
    claim = next(claim for claim in papers()["scan"].claims if claim.headline).id
    told = [season(name, judged("holds", claim)) for name in ("s0", "s1")]
    text = findings(told, ledger(told))
    assert "**Confirmed**" in text and "Best row" not in text
    assert "(by less) (in part), rsum +2.0" in text and "printed +4.0" in text
    alone = findings(told[:1], ledger(told[:1]))
    assert "**Seen once**" in alone and "**Confirmed**" not in alone


def test_rows_of_two_sets_of_features_stand_with_what_they_gain():
    told = [at_level("strong", "holds", 290.0), at_level("weak", "holds", 250.0)]
    lines = gains([*told, season("other", judged("holds"))]).frame.to_dict("records")
    best = lines[0]
    assert (best["weaker features"].value, best["stronger features"].value) == (
        250.0,
        290.0,
    )
    assert (best["gain"].value, len(lines)) == (40.0, 4)
    assert best["flags"] == "extra input"
    assert not len(gains(told[:1]))

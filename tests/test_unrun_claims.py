"""Why a part of a claim was not run on a board."""

import pytest
from builders import board, outcome, standing

from benchmark.boards.unrun_claims import not_run
from benchmark.papers.printed_tables import Claim

RSUM = {"metrics": {"rsum": 300.0, "p2r_bound": 50.0}}


def row(name: str, *, network: str | None = None, status: str = "ok", **facts: object):
    declared = {"network": network} if network else {}
    cell = outcome(name, 0, status=status, reason="why", **(RSUM | facts))
    return standing(name, [cell], **declared)


def claim(**facts: object) -> Claim:
    known = {"id": "c", "statement": "s", "where": "w", "metric": "p2r_bound"}
    return Claim(**(known | {"presets": ["a", "b"]} | facts))


def reason(claim: Claim, *rows) -> str:
    flag = not_run(board(*rows), claim, claim.parts[0])
    return flag.sentence if flag else ""


def test_of_rows_with_results_a_part_is_run():
    assert reason(claim(), row("a"), row("b")) == ""


def test_a_row_that_is_missing_or_failed_is_named():
    assert reason(claim(), row("a")).startswith("b ")
    assert "not applicable: why" in reason(
        claim(), row("a"), row("b", status="not_applicable", metrics={})
    )
    unmeasured = reason(claim(), row("a"), row("b", metrics={}))
    assert "of b" in unmeasured


def test_a_claim_about_a_setting_needs_it():
    wanted = claim(settings={"scaling": "component"})
    alike = {"options": {"scaling": "component"}}
    assert reason(wanted, row("a", **alike), row("b", **alike)) == ""
    other = {"options": {"scaling": "none"}}
    assert "none scaling" in reason(wanted, row("a", **alike), row("b", **other))


@pytest.mark.parametrize(("fed", "is_run"), [(("x", "y"), True), (("x", "x"), False)])
def test_what_a_paper_compares_by_networks_needs_two(fed, is_run):
    rows = []
    for name, network, in_paper in zip("ab", fed, ("vgg", "resnet"), strict=True):
        facts = {"image_features": {"settings": {"network": network}}}
        rows.append(row(name, network=in_paper, **facts))
    assert (reason(claim(), *rows) == "") == is_run


def test_what_cannot_be_played_says_why():
    unplayed = claim(presets=[], unplayed="No data.")
    assert reason(unplayed, row("a")) == "No data"

"""Tables of made-up layers."""

from types import SimpleNamespace

import numpy as np
from scipy.sparse import csr_matrix

from benchmark.report.pages import relevance_page
from benchmark.report.pages.relevance_page import SAME
from benchmark.report.tables import Table
from benchmark.stats.claim_kinds import Conclusion


def records(table: Table) -> list[dict]:
    return table.frame.to_dict("records")


def claim_test(statement: str, conclusion: Conclusion) -> SimpleNamespace:
    return SimpleNamespace(
        claim=SimpleNamespace(statement=statement),
        conclusion=conclusion,
        is_elsewhere=False,
        is_counted=True,
    )


def judged(statement: str, own: Conclusion, here: Conclusion) -> SimpleNamespace:
    return SimpleNamespace(
        own=claim_test(statement, own),
        here=claim_test(statement, here),
        steps=[(-1.0, 2.0)],
    )


def layer(name: str, *, partial: bool = False, claims: dict | None = None):
    said = csr_matrix(np.array([[1, 0, 1], [0, 1, 0]]))
    pairs = SimpleNamespace(queries=[0, 1], right=[(0, 0)], said=said)
    return SimpleNamespace(
        name=name,
        card={"rule": f"what {name} like", "partial": partial},
        pairs={"i2t": pairs},
        share_judged=lambda way: 25.0,
        judged_claims=claims or {},
    )


def test_first_answers_are_counted_of_layers_that_were_judged_in_part():
    layers = [layer("friends", partial=True), layer("all")]
    friends, whole = records(relevance_page.pairs(layers, "i2t"))
    assert (friends["layer"], friends["right"]) == ("friends", "what friends like")
    counts = ("queries", "right pairs", "judged pairs")
    assert [friends[name] for name in counts] == [2, 1, 3]
    share = "first answers judged (%)"
    assert (str(friends[share]), str(whole[share])) == ("25.0", "-")


def test_claims_whose_verdict_changes_stand_first():
    stays = judged("A wins.", Conclusion.HOLDS, Conclusion.HOLDS)
    moves = judged("B wins.", Conclusion.HOLDS, Conclusion.UNDECIDED)
    claims = {("p", "a"): stays, ("p", "b"): moves}
    table = relevance_page.verdicts([layer("friends", claims=claims)])
    first, second = records(table)
    assert [first["claim"], second["claim"]] == ["B wins.", "A wins."]
    assert second["friends"] == SAME
    assert first["friends"] == (
        f"{Conclusion.UNDECIDED}; own {Conclusion.HOLDS}; adds [-1.0, +2.0]"
    )

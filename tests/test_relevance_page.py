"""Tables of made-up layers."""

from types import SimpleNamespace

import numpy as np
from scipy.sparse import csr_matrix

from benchmark.report.pages import relevance_page
from benchmark.report.pages.relevance_page import SAME
from benchmark.report.tables import NONE, Table
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
    assert (str(friends[share]), str(whole[share])) == ("25.0", NONE)


def recalled(preset: str, value: float) -> SimpleNamespace:
    return SimpleNamespace(
        preset=preset,
        title=preset.upper(),
        mean=lambda metric: value,
        values=lambda metric: [value],
    )


def recalls_of(values: dict[str, float]) -> SimpleNamespace:
    rows = {preset: recalled(preset, value) for preset, value in values.items()}
    return SimpleNamespace(rows=list(rows.values()), row=rows.get)


def measured(name: str, queries: list[int], own: dict, here: dict) -> SimpleNamespace:
    made = layer(name)
    made.pairs["i2t"].queries = queries
    made.own = recalls_of(own)
    made.here = recalls_of(here)
    return made


def test_the_best_by_own_stands_first_and_own_once_for_equal_queries():
    own, here = {"a": 40.0, "b": 60.0}, {"a": 70.0, "b": 50.0}
    layers = [
        measured("friends", [0, 1], own, here),
        measured("all", [0, 1], own, here),
        measured("few", [1], {"a": 10.0, "b": 20.0}, here),
    ]
    lines = records(relevance_page.recall(layers, "i2t", 1))
    shown = [{head: str(cell) for head, cell in line.items()} for line in lines]
    by_layers = {"friends": "50.0", "all": "50.0", "few": "50.0"}
    first = {"preset": "B", "own": "60.0", "own, queries of few": "20.0"} | by_layers
    by_layers = {"friends": "70.0", "all": "70.0", "few": "70.0"}
    second = {"preset": "A", "own": "40.0", "own, queries of few": "10.0"} | by_layers
    assert shown == [first, second]


def test_a_changed_order_has_the_lead_of_each_by_what_puts_it_ahead():
    made = layer("friends")
    change = SimpleNamespace(
        first=recalled("a", 0.0), second=recalled("b", 0.0), own=5.0, here=-3.0
    )
    made.changes = lambda way: [change]
    (line,) = records(relevance_page.order([made], "i2t"))
    assert [line["ahead by own"], line["ahead by the layer"]] == ["A", "B"]
    assert [str(line["own"]), str(line["difference by it"])] == ["+5.0", "+3.0"]


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

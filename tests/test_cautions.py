"""What a verdict says against trusting it: on settings, on trials and on members of fusions."""

from dataclasses import replace
from functools import partial

import pytest
from builders import board, outcome, standing
from made_claims import MORE, around, claim, judge, played

from benchmark.analysis.boards import Standing
from benchmark.papers.claimed_quantities import quantity


@pytest.fixture
def claimed(monkeypatch):
    """Judge these claims, and no other, on a board."""
    return partial(judge, monkeypatch)


def test_a_fusion_beside_its_weaker_member_says_what_the_other_one_has(claimed):
    fused = played("f", around(12), fuse={"how": "average", "of": ["a", "b"]})
    results = board(fused, played("a", around(9)), played("b", around(11)))
    (of_weaker,) = claimed(results, claim("f", "a"))
    (of_better,) = claimed(results, claim("f", "b"))
    assert [said for said in of_weaker.cautions if said.startswith("weaker member")] == [
        f"weaker member: a; b alone has {quantity(MORE).heading} 11.0"
    ]
    assert not [said for said in of_better.cautions if said.startswith("weaker member")]


def test_settings_that_a_season_gives_one_of_two_presets_are_named(claimed):
    def scaled(preset: str, level: float, values: dict, **row: object) -> Standing:
        facts = {"options": {"epochs": 9, "depth": 1} | values, "scaled": ["batch", "depth"]}
        cells = [
            outcome(preset, seed, metrics={MORE: value}, **facts)
            for seed, value in enumerate(around(level))
        ]
        return standing(preset, cells, **row)

    def unequal(*of: Standing) -> list[str]:
        (verdict,) = claimed(board(*of), claim("a", "b"))
        return [said for said in verdict.cautions if said.startswith("unequal settings")]

    small = scaled("b", 10, {"batch": 32})
    assert unequal(scaled("a", 12, {"batch": 128}), small) == ["unequal settings: batch 128 and 32"]
    assert unequal(scaled("a", 12, {"batch": 32}), small) == []
    deep = scaled("a", 12, {"batch": 32, "depth": 9}, options={"depth": 4})
    assert unequal(deep, small) == []  # what the row is about
    evened = scaled("a", 12, {"batch": 32, "depth": 1}, options={"depth": 4})
    (verdict,) = claimed(board(evened, small), claim("a", "b"))
    assert "evened settings: depth" in verdict.cautions
    assert unequal(scaled("a", 12, {"batch": 128}, start="c"), small) == []
    by_default = [
        outcome("b", s, metrics={MORE: x}, options={"batch": 32, "depth": 1})
        for s, x in enumerate(around(10))
    ]
    assert unequal(scaled("a", 12, {"batch": 32}), standing("b", by_default)) == []


@pytest.mark.parametrize(
    ("tried", "said"),
    [
        ([], []),
        (["a"], ["tuned on one side: a"]),
        (["b"], ["tuned on one side: b"]),
        (["a", "b"], []),
        (["c"], []),
    ],
)
@pytest.mark.parametrize("methods", [("scan", "scan"), ("scan", "vse")])
def test_trials_of_one_side_are_named(tried, said, methods, claimed):
    """Beside another method, trials of any preset of a method count."""
    first, second, third = (
        standing(
            name,
            [
                outcome(name, seed, metrics={MORE: value}, method=method)
                for seed, value in enumerate(around(level))
            ],
        )
        for name, level, method in zip("abc", (12, 10, 9), (*methods, methods[0]), strict=True)
    )
    results = replace(board(first, second, third), tried=frozenset(tried))
    (verdict,) = claimed(results, claim("a", "b"))
    if tried == ["c"] and len(set(methods)) > 1:
        said = ["tuned on one side: a"]
    assert [caution for caution in verdict.cautions if caution.startswith("tuned")] == said

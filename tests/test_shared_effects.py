"""What tells effects apart that look alike on a page."""

from benchmark.analysis.shared_effects import Effect, remarks

FIRST = Effect("s", "One.", "rsum", "+4.2 [1, 2]", "A", "B")


def told(*effects: Effect) -> list[str]:
    return remarks([FIRST, *effects])


def test_one_comparison_under_two_claims_is_named_in_both_whichever_way_round():
    turned = FIRST._replace(claim="Two.", shown="-4.2 [-2, -1]", first="B", second="A")
    assert told(turned) == ["same comparison as: Two", "same comparison as: One"]


def test_equal_numbers_of_other_presets_name_their_pairs():
    assert told(FIRST._replace(claim="Two.", first="C")) == ["A against B", "C against B"]


def test_what_differs_needs_no_remark():
    others = [
        FIRST._replace(claim="Two.", first="C", shown="+4.3 [1, 2]"),
        FIRST._replace(claim="Three.", metric="S", first="D"),
        FIRST._replace(claim="Four.", where="t"),
    ]
    assert told(*others) == [""] * 4


def test_the_pair_of_a_claim_on_several_is_named():
    assert told(FIRST._replace(where="t", is_one_of_several=True)) == ["", "A against B"]
    assert remarks([FIRST._replace(second="", is_one_of_several=True)]) == ["A"]

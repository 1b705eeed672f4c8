"""Verdicts on made-up claims about made-up records, worked out by hand and with Student's t."""

from dataclasses import replace
from statistics import stdev

import pytest
from builders import board, outcome, standing
from scipy import stats

from benchmark.analysis import claims
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.claims import Cause, Conclusion, Verdict, counts, verdicts
from benchmark.analysis.comparisons import compare
from benchmark.papers.printed_tables import About, Claim, Paper, Row, Table, papers

ABOUT = About(title="t", authors="a", year=2019, venue="v", source="s")
MORE, LESS = "mean_matched", "overlap_s"  # is better; both without p here


def played(preset: str, values: list[float], metric: str = MORE) -> Standing:
    """Seeds 0, 1, ... with these values."""
    metrics = [{metric: value, "one_minus_ks": 1.0} for value in values]  # no S is above its bound
    return standing(preset, [outcome(preset, seed, metrics=m) for seed, m in enumerate(metrics)])


def claim(*presets: str, **facts: object) -> Claim:
    given = {"id": "c", "statement": "s", "where": "w", "metric": MORE, "presets": list(presets)}
    return Claim(**(given | facts))


@pytest.fixture
def claimed(monkeypatch):
    """Judge these claims, and no other, on a board."""

    def judge(on: Board, *made: Claim, tables: dict[str, Table] | None = None) -> list[Verdict]:
        numbered = [claim.model_copy(update={"id": f"c{n}"}) for n, claim in enumerate(made)]
        paper = Paper(paper=ABOUT, tables=tables or {}, claims=numbered)
        monkeypatch.setattr(claims, "papers", lambda: {"paper": paper})
        return verdicts(on)

    return judge


@pytest.fixture
def chances(monkeypatch):
    """Give every comparison of two presets the p that is set for them."""
    p_of: dict[tuple[str, str], float] = {}

    def compare_by_chance(on, pairs):
        compared = [(a.preset, b.preset, compare(on, a, b, metric)) for a, b, metric in pairs]
        return [replace(comparison, p=p_of[a, b]) for a, b, comparison in compared]

    monkeypatch.setattr(claims, "compare_all", compare_by_chance)
    return p_of


# The second preset has 10 with every seed, so the first one's values are the differences plus 10.
# Of three values m - e, m, m + e the interval is m -+ 4.302653 e / sqrt(3) = m -+ 2.484 e.
NARROW = [-0.1, 0.0, 0.1]  # -+ 0.2484
WIDE = [-1.0, 0.0, 1.0]  # -+ 2.484

CASES = [
    ("ordered", 1.0, NARROW, "holds", None, "the interval lies above zero"),
    ("ordered", -1.0, NARROW, "does not hold", None, "the interval lies below zero"),
    ("ordered", 1.0, WIDE, "undecided", "holds", "the interval covers zero"),
    ("ordered", -1.0, WIDE, "undecided", "does not hold", "the interval covers zero"),
    ("alike", 0.5, NARROW, "holds", None, "the interval lies within 1 of zero"),
    ("alike", -0.5, NARROW, "holds", None, "the interval lies within 1 of zero"),
    ("alike", 1.5, NARROW, "does not hold", None, "the interval lies farther than 1 from zero"),
    ("alike", -1.5, NARROW, "does not hold", None, "the interval lies farther than 1 from zero"),
    ("alike", 0.9, NARROW, "undecided", "holds", "reaches within 1 of zero and beyond"),
    ("alike", -1.1, NARROW, "undecided", "does not hold", "within 1 of zero and beyond"),
    ("alike", 0.0, WIDE, "undecided", "holds", "within 1 of zero and beyond"),
    ("not_better", -1.0, NARROW, "holds", None, "does not reach above the margin of 1"),
    ("not_better", 0.5, NARROW, "holds", None, "does not reach above the margin of 1"),
    ("not_better", 2.0, NARROW, "does not hold", None, "the interval lies above the margin of 1"),
    ("not_better", 1.1, NARROW, "undecided", "does not hold", "covers the margin of 1"),
    ("not_better", 0.9, NARROW, "undecided", "holds", "the interval covers the margin of 1"),
]


@pytest.mark.parametrize(("kind", "gap", "spread", "conclusion", "leans", "reason"), CASES)
def test_the_interval_decides(claimed, kind, gap, spread, conclusion, leans, reason):
    results = board(played("a", [10 + gap + e for e in spread]), played("b", [10.0] * 3))
    (verdict,) = claimed(results, claim("a", "b", kind=kind))
    assert (verdict.conclusion, verdict.leans, verdict.cause) == (conclusion, leans, Cause.INTERVAL)
    assert reason in verdict.reason
    low, high = verdict.tested[0].comparison.interval
    half = stats.t.ppf(0.975, 2) * stdev(spread) / 3**0.5
    assert (low, high) == pytest.approx((gap - half, gap + half))


def test_where_less_is_better_the_smaller_one_beats_the_larger(claimed):
    first, second = played("a", [0.1, 0.11, 0.12], LESS), played("b", [0.3] * 3, LESS)
    there, back = claimed(
        board(first, second), claim("a", "b", metric=LESS), claim("b", "a", metric=LESS)
    )
    assert (there.conclusion, back.conclusion) == ("holds", "does not hold")
    assert there.tested[0].comparison.difference == pytest.approx(0.19)


def test_a_claim_on_s_with_bins_that_are_too_coarse_is_undecided(claimed):
    coarse = [outcome("b", seed, metrics={LESS: 0.3, "one_minus_ks": 0.2}) for seed in range(3)]
    results = board(played("a", [0.1, 0.11, 0.12], LESS), standing("b", coarse))
    (verdict,) = claimed(results, claim("a", "b", metric=LESS))
    assert (verdict.conclusion, verdict.leans) == ("undecided", None)
    assert (verdict.cause, verdict.reason) == (
        Cause.COARSE_BINS,
        "the bins of S are too coarse for b",
    )
    assert [pair.conclusion for pair in verdict.tested] == ["undecided"]


@pytest.mark.parametrize(
    ("task", "changes", "fewest"),
    [
        ("retrieval", {"images": 99}, 99),
        ("retrieval", {"captions": 24}, 24),
        ("retrieval", {"phrases": 7}, None),
        ("localisation", {"phrases": 7}, 7),
        ("localisation", {"images": 12}, None),
    ],
)
def test_from_fewer_than_a_hundred_test_queries_nothing_is_concluded(
    claimed, task, changes, fewest
):
    presets = [
        standing(name, [outcome(name, seed, task=task, metrics={MORE: v}) for seed in range(3)])
        for name, v in (("a", 12.0), ("b", 10.0))
    ]
    counted = {"images": 100, "captions": 100, "phrases": 100} | changes
    results = board(*presets, counts={"test": counted})
    for verdict in claimed(results, claim("a", "b"), claim("b", "a")):
        pairs = [(pair.conclusion, pair.cause) for pair in verdict.tested]
        if fewest is None:
            assert verdict.cause == Cause.INTERVAL
        else:
            assert pairs == [(verdict.conclusion, verdict.cause)]
            assert (verdict.conclusion, verdict.leans) == (Conclusion.UNDECIDED, None)
            assert verdict.cause == Cause.FEW_QUERIES
            assert verdict.reason == f"nothing can be concluded from {fewest} test queries"


def test_queries_of_a_direction_that_is_not_retrieved_do_not_count(claimed):
    counted = {"images": 12, "captions": 100}
    results = board(played("a", [2.0] * 3), played("b", [1.0] * 3), counts={"test": counted})
    results.card["ways"] = ["t2i"]
    assert [verdict.conclusion for verdict in claimed(results, claim("a", "b"))] == ["holds"]


@pytest.mark.parametrize(("seeds", "reason"), [(1, "1 seed, 3"), (2, "2 seeds, 3 are needed")])
@pytest.mark.parametrize(("gap", "leans"), [(5.0, "holds"), (-5.0, "does not hold")])
def test_fewer_than_three_common_seeds_decide_nothing(claimed, seeds, reason, gap, leans):
    results = board(played("a", [10.0 + gap] * 3), played("b", [10.0] * seeds))
    (verdict,) = claimed(results, claim("a", "b"))
    assert (verdict.conclusion, verdict.leans) == ("undecided", leans)
    assert verdict.cause == Cause.FEW_SEEDS and reason in verdict.reason
    assert verdict.tested[0].comparison.seeds == seeds


def test_a_difference_on_the_margin_leans_nowhere(claimed):
    (verdict,) = claimed(board(played("a", [10.0]), played("b", [10.0])), claim("a", "b"))
    assert (verdict.conclusion, verdict.leans) == ("undecided", None)


class TestChance:
    def order(self, *levels: float) -> Board:
        named = dict(zip("abcd", levels, strict=False))
        return board(*(played(name, [level] * 3) for name, level in named.items()))

    def test_what_has_too_few_seeds_does_not_count_in_the_adjustment(self, claimed, chances):
        chances |= {("a", "b"): 0.04, ("c", "d"): 0.04}
        results = board(
            *(played(n, [v] * 3) for n, v in (("a", 2), ("b", 1))),
            played("c", [2.0]),
            played("d", [1.0]),
        )
        first, second = claimed(results, claim("a", "b"), claim("c", "d"))
        assert (first.conclusion, first.tested[0].adjusted_p) == ("holds", 0.04)
        assert second.tested[0].adjusted_p is None

    def test_p_guards_every_verdict_that_asserts_a_difference(self, claimed, chances):
        chances["a", "b"] = 0.06
        ahead, behind = self.order(3, 1), self.order(1, 3)
        for results, kind in ((ahead, "ordered"), (behind, "ordered"), (ahead, "not_better"),
                            (ahead, "alike")):  # fmt: skip
            (verdict,) = claimed(results, claim("a", "b", kind=kind))
            assert (verdict.conclusion, verdict.cause) == ("undecided", Cause.CHANCE), kind
        assert claimed(behind, claim("a", "b", kind="not_better"))[0].conclusion == "holds"
        close = self.order(2, 1)
        assert claimed(close, claim("a", "b", kind="alike"))[0].conclusion == "holds"

    def test_p_may_not_exceed_five_percent(self, claimed, chances):
        chances["a", "b"] = 0.05
        assert claimed(self.order(2, 1), claim("a", "b"))[0].conclusion == "holds"
        chances["a", "b"] = 0.0501
        (verdict,) = claimed(self.order(2, 1), claim("a", "b"))
        assert (verdict.conclusion, verdict.leans) == ("undecided", "holds")
        assert verdict.reason == "p is 0.0501 after Holm's adjustment"

    def test_it_is_adjusted_over_all_claims_of_the_board(self, claimed, chances):
        chances |= {("a", "b"): 0.02, ("b", "c"): 0.03, ("c", "d"): 0.001}
        made = [claim("a", "b"), claim("b", "c", "d"), claim("c", "d", kind="not_better")]
        first, second, third = claimed(self.order(4, 3, 2, 1), *made)
        # by hand: 0.001 x 3, 0.02 x 2, 0.03 x 1 but no less than 0.04
        assert [pair.adjusted_p for pair in first.tested] == pytest.approx([0.04])
        assert [pair.adjusted_p for pair in second.tested] == pytest.approx([0.04, 0.003])
        assert [pair.adjusted_p for pair in third.tested] == pytest.approx([0.003])
        assert [first.conclusion, second.conclusion] == ["holds", "holds"]
        chances["a", "b"] = 0.03  # 0.06 now, for both
        first, second, _ = claimed(self.order(4, 3, 2, 1), *made)
        assert first.reason == "p is 0.06 after Holm's adjustment"
        assert second.reason == "b over c: p is 0.06 after Holm's adjustment"

    def test_the_same_comparison_in_two_claims_counts_once(self, claimed, chances):
        chances["a", "b"] = 0.04
        drawn = claimed(self.order(2, 1), claim("a", "b"), claim("a", "b"))
        assert [verdict.conclusion for verdict in drawn] == ["holds", "holds"]

    def test_it_does_not_decide_what_is_no_order(self, claimed, chances):
        chances |= {("a", "b"): 0.9, ("b", "a"): 0.9}
        made = [claim("a", "b", kind="alike"), claim("b", "a", kind="not_better")]
        drawn = claimed(self.order(2, 1), *made)
        assert [verdict.conclusion for verdict in drawn] == ["holds", "holds"]


class TestSeveralPresets:
    def judge(self, claimed, **values: list[float]) -> Verdict:
        results = board(*(played(name, levels) for name, levels in values.items()))
        return claimed(results, claim(*values))[0]

    def test_every_pair_has_to_hold(self, claimed):
        verdict = self.judge(claimed, a=[3.0] * 3, b=[2.0] * 3, c=[1.0] * 3)
        assert (verdict.conclusion, verdict.reason) == (
            "holds",
            "each pair: the interval lies above zero",
        )
        assert [pair.comparison.second for pair in verdict.tested] == ["b", "c"]

    def test_one_pair_that_does_not_hold_decides(self, claimed):
        verdict = self.judge(claimed, a=[3.0, 9.0, 4.0], b=[2.0] * 3, c=[5.0] * 3)
        assert verdict.conclusion == "does not hold"
        assert verdict.reason == "b over c: the interval lies below zero"
        assert [pair.conclusion for pair in verdict.tested] == ["undecided", "does not hold"]

    def test_one_undecided_pair_leaves_it_undecided(self, claimed):
        verdict = self.judge(claimed, a=[3.0] * 3, b=[2.0] * 3, c=[1.9, 1.0, 2.2])
        assert (verdict.conclusion, verdict.leans) == ("undecided", "holds")
        assert verdict.reason == "b over c: the interval covers zero"


class TestNotRun:
    def lack(self, claimed, on: Board, made: Claim) -> tuple[Cause, str]:
        (verdict,) = claimed(on, made)
        assert (verdict.conclusion, verdict.leans, verdict.tested) == ("not run", None, [])
        return verdict.cause, verdict.reason

    def test_a_claim_without_presets_says_why(self, claimed):
        made = claim(unplayed="No times are printed.", printed=[3.0])
        expected = (Cause.UNPLAYABLE, "No times are printed")
        assert self.lack(claimed, board(), made) == expected

    def test_a_preset_that_the_season_lacks_is_named(self, claimed):
        results = board(played("a", [1.0] * 3))
        expected = (Cause.NOT_PLAYED, "b was not played")
        assert self.lack(claimed, results, claim("a", "b")) == expected

    def test_a_preset_that_failed_is_named_with_its_reason(self, claimed):
        reason = "two captions are needed"
        lost = standing("b", [outcome("b", status="not_applicable", reason=reason)])
        results = board(played("a", [1.0] * 3), lost)
        expected = (Cause.NO_RESULT, "b: not applicable: two captions are needed")
        assert self.lack(claimed, results, claim("a", "b")) == expected

    def test_a_metric_that_was_not_measured_is_named(self, claimed):
        results = board(played("a", [1.0] * 3), played("b", [1.0] * 3, LESS))
        expected = (Cause.NOT_MEASURED, "mean of matched of b was not measured")
        assert self.lack(claimed, results, claim("a", "b")) == expected

    def test_seeds_that_differ_cannot_be_compared(self, claimed):
        other = standing("b", [outcome("b", 7, metrics={MORE: 1.0})])
        reason = "no seed has mean of matched to compare for both a and b"
        lack = self.lack(claimed, board(played("a", [1.0]), other), claim("a", "b"))
        assert lack == (Cause.NO_COMMON_SEED, reason)


def test_the_values_shown_are_those_that_were_compared(claimed):
    results = board(played("a", [9.0, 2.0, 3.0, 4.0]), played("b", [1.0]))
    (verdict,) = claimed(results, claim("a", "b"))
    assert (verdict.tested[0].comparison.firsts, verdict.tested[0].comparison.seconds) == (
        [9.0],
        [1.0],
    )
    assert verdict.tested[0].comparison.difference == 8.0


def test_each_pair_of_a_chain_has_its_own_common_seeds(claimed):
    results = board(played("a", [9.0]), played("b", [5.0, 6.0, 7.0]), played("c", [1.0, 2.0, 3.0]))
    (verdict,) = claimed(results, claim("a", "b", "c"))
    assert [pair.comparison.firsts for pair in verdict.tested] == [[9.0], [5.0, 6.0, 7.0]]
    assert [pair.comparison.seconds for pair in verdict.tested] == [[5.0], [1.0, 2.0, 3.0]]


def test_a_failed_seed_is_left_out_of_the_values(claimed):
    lost = outcome("a", 3, status="failed", reason="the loss is NaN")
    first = standing("a", [*played("a", [3.0, 4.0, 5.5]).outcomes, lost])
    (verdict,) = claimed(board(first, played("b", [1.0] * 4)), claim("a", "b"))
    assert verdict.tested[0].comparison.firsts == [3.0, 4.0, 5.5]
    assert verdict.tested[0].comparison.seeds == 3
    assert verdict.conclusion == "holds"


class TestWhereItWasSaid:
    """What a paper says of 1,000 images of MSCOCO is about the folds, where there are some."""

    def folded(self, preset: str, whole: float, in_folds: float) -> Standing:
        metrics = {"rsum": whole, "fold_rsum": in_folds}
        return standing(preset, [outcome(preset, seed, metrics=metrics) for seed in range(3)])

    def board(self, folds: int) -> Board:
        """Of the whole split the second is better, of the folds the first."""
        results = board(self.folded("a", 1.0, 30.0), self.folded("b", 2.0, 20.0))
        results.card["folds"] = folds
        return results

    def test_with_folds_it_is_judged_by_their_means(self, claimed):
        at_1k, at_5k, anywhere = claimed(
            self.board(5),
            claim("a", "b", metric="rsum", place="mscoco_1k/test"),
            claim("a", "b", metric="rsum", place="mscoco_5k/test"),
            claim("a", "b", metric="rsum"),
        )
        assert (at_1k.conclusion, at_5k.conclusion, anywhere.conclusion) == (
            "holds",
            "does not hold",
            "does not hold",
        )
        assert at_1k.tested[0].comparison.difference == 10.0
        assert at_1k.claim.metric == "fold_rsum"

    def test_without_folds_it_is_judged_by_the_split(self, claimed):
        (verdict,) = claimed(
            self.board(1), claim("a", "b", metric="rsum", place="mscoco_1k/test", kind="alike")
        )
        assert (verdict.claim.metric, verdict.tested[0].comparison.difference) == ("rsum", -1.0)
        assert verdict.margin == 6.0

    def test_what_is_not_measured_on_folds_is_judged_by_the_split(self, claimed):
        results = board(played("a", [2.0] * 3), played("b", [1.0] * 3))
        results.card["folds"] = 5
        (verdict,) = claimed(results, claim("a", "b", place="mscoco_1k/test"))
        assert (verdict.claim.metric, verdict.conclusion) == (MORE, "holds")

    def test_the_printed_effect_is_that_of_the_paper(self, claimed):
        names = [f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
        rows = [
            Row(label=name, preset=name, numbers={"mscoco_1k/test": [level] * 6})
            for name, level in (("a", 50.0), ("b", 40.0))
        ]
        made = claim("a", "b", metric="rsum", place="mscoco_1k/test", table="1")
        table = Table(title="t", metrics=names, rows=rows)
        (verdict,) = claimed(self.board(5), made, tables={"1": table})
        assert (verdict.printed, verdict.tested[0].printed) == ([300.0, 240.0], 60.0)


def test_of_a_single_direction_the_margin_is_three_recalls_and_nothing_is_set_beside_it(claimed):
    results = board(played("a", [104.0] * 3, "rsum"), played("b", [100.0] * 3, "rsum"))
    made = claim("a", "b", metric="rsum", kind="alike", printed=[500.0, 480.0])
    (both,) = claimed(results, made)
    assert (both.margin, both.conclusion, both.tested[0].printed) == (6.0, "holds", 20.0)
    results.card["ways"] = ["t2i"]
    (verdict,) = claimed(results, made)
    assert (verdict.margin, verdict.conclusion) == (3.0, "does not hold")
    assert verdict.tested[0].printed is None and verdict.printed == [None, None]


def test_the_printed_effect_comes_from_the_table(claimed):
    rows = [
        Row(label="A", preset="a", numbers={"flickr30k/test": [0.25], "flickr30k/val": [0.5]}),
        Row(label="B", preset="b", numbers={"flickr30k/test": [0.75]}),
    ]
    table = Table(title="t", metrics=[LESS], rows=rows)
    results = board(played("a", [0.2] * 3, LESS), played("b", [0.5] * 3, LESS))
    made = claim("a", "b", metric=LESS, table="1", place="flickr30k/test")
    (verdict,) = claimed(results, made, tables={"1": table})
    assert verdict.printed == [0.25, 0.75]
    assert verdict.tested[0].printed == 0.5  # less is better: positive, as claimed


def test_the_printed_effect_may_stand_in_the_claim_or_nowhere(claimed):
    results = board(played("a", [2.0] * 3), played("b", [1.0] * 3))
    there, nowhere = claimed(results, claim("a", "b", printed=[5.0, 7.0]), claim("a", "b"))
    assert there.tested[0].printed == -2.0
    assert nowhere.tested[0].printed is None
    assert nowhere.printed == [None, None]


def test_all_four_verdicts_are_counted(claimed):
    results = board(played("a", [2.0] * 3), played("b", [1.0] * 3))
    made = [claim("a", "b"), claim("a", "c"), claim("b", "a"), claim("c", "a")]
    assert counts(claimed(results, *made)) == {
        "holds": 1,
        "does not hold": 1,
        "undecided": 0,
        "not run": 2,
    }


def test_every_claim_of_every_paper_gets_a_verdict():
    drawn = verdicts(board())
    expected = [(name, claim.id) for name, paper in papers().items() for claim in paper.claims]
    assert [(verdict.paper, verdict.claim.id) for verdict in drawn] == expected
    assert len(drawn) > 40
    assert {verdict.conclusion for verdict in drawn} == {Conclusion.NOT_RUN}
    assert all(verdict.reason for verdict in drawn)

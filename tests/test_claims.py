"""Verdicts on made-up claims about made-up records, worked out by hand and with Student's t."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import stdev

import numpy as np
import pandas as pd
import pytest
from builders import board, outcome, standing
from made_claims import LESS, MORE, around, blocks, claim, fed, judge, played, timed
from made_ranks import played as mapped
from made_ranks import prepare
from scipy import stats

from benchmark.boards import boards, claims, comparisons
from benchmark.boards.boards import Board
from benchmark.boards.claims import Verdict, metric_at, verdicts
from benchmark.boards.comparisons import Comparison
from benchmark.papers.printed_tables import Claim, Row, Table, effects, papers, quantity
from benchmark.season.plugins import presets
from benchmark.stats.significance import Doubt, SeedPart
from benchmark.stats.verdicts import Conclusion

ALL_PRESETS = list(presets())


@pytest.fixture
def claimed(monkeypatch):
    """Judge these claims, and no other, on a board."""
    return partial(judge, monkeypatch)


@pytest.mark.parametrize(
    ("kind", "gap", "spread", "conclusion"),
    [
        ("ordered", 2.0, 0.1, "holds"),
        ("ordered", -2.0, 0.1, "reversed"),
        ("ordered", 0.2, 0.1, "no difference beyond the margin"),
        ("ordered", 2.0, 2.0, "undecided"),
        ("alike", 0.2, 0.1, "holds"),
        ("alike", 2.0, 0.1, "does not hold: better"),
        ("alike", -2.0, 0.1, "does not hold: worse"),
        ("not_better", -2.0, 0.1, "holds"),
        ("not_better", 2.0, 0.1, "does not hold: better"),
    ],
)
def test_the_interval_of_all_trainings_decides(claimed, kind, gap, spread, conclusion):
    first, second = around(10 + gap, spread), around(10, spread)
    (verdict,) = claimed(board(played("a", first), played("b", second)), claim("a", "b", kind=kind))
    assert (verdict.conclusion, verdict.on_test_set, blocks(verdict)) == (
        conclusion,
        conclusion,
        "",
    )
    half = stats.t.ppf(0.975, 4) * stdev(first) * (2 / 3) ** 0.5
    ends = verdict.pairs[0].comparison.interval
    assert ends == pytest.approx((gap - half, gap + half))
    rests_on_p = conclusion in ("reversed", "does not hold: better", "does not hold: worse")
    rests_on_p |= (kind, conclusion) == ("ordered", "holds")
    kept = claims.compared(verdict)
    p = float(f"{verdict.pairs[0].adjusted_p:.6g}")
    assert (kept.p, kept.low) == (p if rests_on_p else None, float(f"{ends[0]:.6g}"))


def test_where_less_is_better_the_smaller_one_beats_the_larger(claimed):
    first, second = played("a", around(0.1, 0.01), LESS), played("b", around(0.3, 0.01), LESS)
    there, back = claimed(
        board(first, second), claim("a", "b", metric=LESS), claim("b", "a", metric=LESS)
    )
    assert (there.conclusion, back.conclusion) == ("holds", "reversed")
    assert there.pairs[0].comparison.difference == pytest.approx(0.2)


def test_a_claim_on_s_that_hangs_on_its_bins_is_undecided(claimed):
    coarse = [outcome("b", seed, metrics={LESS: 0.3, "one_minus_ks": 0.2}) for seed in range(3)]
    results = board(played("a", around(0.1, 0.01), LESS), standing("b", coarse))
    (verdict,) = claimed(results, claim("a", "b", metric=LESS))
    assert (verdict.conclusion, verdict.on_test_set) == ("undecided", "undecided")
    assert (blocks(verdict), verdict.reason) == ("Z", "S of b depends on its bins")
    assert verdict.pairs[0].limit is None


@pytest.mark.parametrize(
    ("task", "changes", "fewest"),
    [
        ("retrieval", {"images": 99}, 99),
        ("retrieval", {"captions": 24}, 24),
        ("retrieval", {"phrases": 7}, None),
        ("localisation", {"phrases": 7, "images": 12}, 7),
    ],
)
def test_from_fewer_than_a_hundred_test_queries_nothing_is_concluded(
    claimed, task, changes, fewest
):
    counted = {"images": 100, "captions": 100, "phrases": 100} | changes
    results = board(fed("a", 12, task=task), fed("b", 10, task=task), counts={"test": counted})
    (verdict,) = claimed(results, claim("a", "b"))
    if fewest is None:
        assert not blocks(verdict)
    else:
        assert (verdict.conclusion, verdict.on_test_set) == ("undecided", "undecided")
        assert blocks(verdict) == "L"
        assert verdict.reason == f"nothing can be concluded from {fewest} test queries"


def test_queries_of_a_direction_that_is_not_retrieved_do_not_count(claimed, monkeypatch):
    counted = {"images": 12, "captions": 100}
    results = board(played("a", around(12)), played("b", around(9)), counts={"test": counted})
    results.card["ways"] = ["t2i"]
    results.__dict__["groups"] = boards.Groups({}, np.arange(12))
    assert [verdict.conclusion for verdict in claimed(results, claim("a", "b"))] == ["holds"]


class TestFewTrainings:
    def test_one_training_each_decides_nothing(self, claimed):
        (verdict,) = claimed(board(played("a", [15.0]), played("b", [10.0])), claim("a", "b"))
        assert (verdict.conclusion, blocks(verdict)) == ("undecided", "S")
        assert verdict.reason == "1 seed, and no other preset tells how far trainings lie apart"

    def test_the_spread_of_enough_others_carries_it(self, claimed):
        others = [played(name, around(5)) for name in "cde"]
        results = board(played("a", [15.0]), played("b", [10.0]), *others)
        (verdict,) = claimed(results, claim("a", "b"))
        assert verdict.conclusion == "holds"
        half = stats.t.ppf(0.975, 6) * 0.1 * 2**0.5
        assert verdict.pairs[0].comparison.interval == pytest.approx((5 - half, 5 + half))

    def test_where_nothing_varies_nothing_is_concluded(self, claimed):
        """As a median rank of 6, 6 and 6."""
        results = board(played("a", [7.0] * 3), played("b", [6.0] * 3))
        (verdict,) = claimed(results, claim("a", "b"))
        assert (verdict.conclusion, blocks(verdict)) == ("undecided", "O")
        assert verdict.pairs[0].comparison.interval is None


class TestSeveralPresets:
    def judge(self, claimed, **values: list[float]) -> Verdict:
        results = board(*(played(name, levels) for name, levels in values.items()))
        return claimed(results, claim(*values))[0]

    def test_every_pair_has_to_hold(self, claimed):
        verdict = self.judge(claimed, a=around(14), b=around(12), c=around(10))
        assert (verdict.conclusion, verdict.reason) == (
            "holds",
            "each pair: the interval lies above zero",
        )
        assert [pair.comparison.second for pair in verdict.pairs] == ["b", "c"]

    def test_one_pair_that_is_reversed_decides(self, claimed):
        verdict = self.judge(claimed, a=around(14), b=around(10), c=around(12))
        assert verdict.conclusion == "reversed"
        assert verdict.reason == "b over c: the interval lies below zero"
        assert [pair.conclusion for pair in verdict.pairs] == ["holds", "reversed"]


def test_a_single_preset_is_tested_on_a_difference_of_metrics(claimed):
    metrics = [{"mean_matched": x, "mean_unmatched": 0.1} for x in around(0.5, 0.01)]
    preset = standing("a", [outcome("a", seed, metrics=m) for seed, m in enumerate(metrics)])
    made = claim("a", metric="mean_matched - mean_unmatched", printed=[0.9, 0.2])
    (verdict,) = claimed(board(preset), made)
    assert (verdict.conclusion, verdict.pairs[0].comparison.second) == ("holds", "")
    assert verdict.pairs[0].comparison.difference == pytest.approx(0.4)
    assert verdict.pairs[0].printed == pytest.approx(0.7)
    expected = stats.ttest_1samp(around(0.4, 0.01), 0).confidence_interval(0.95)
    assert verdict.pairs[0].comparison.interval == pytest.approx(tuple(expected))


def test_a_sentence_about_a_dataset_is_the_same_comparison_elsewhere(claimed):
    results = board(played("a", around(12)), played("b", around(10)), reader="flickr8k")
    made = claim("a", "b", place="flickr30k/test", only_there=True)
    assert [verdict.is_elsewhere for verdict in claimed(results, made)] == [True]
    results.card["reader"] = "flickr30k"
    assert [verdict.is_elsewhere for verdict in claimed(results, made)] == [False]
    general = claim("a", "b", place="mscoco_1k/test")
    assert [verdict.is_elsewhere for verdict in claimed(results, general)] == [False]


def test_a_claim_about_trained_weights_is_not_tested_with_random_ones(claimed):
    results = board(fed("a", 12, text_features={"weights": "random weights"}), fed("b", 10))
    needs, other = claimed(results, claim("a", "b", weights="a trained encoder"), claim("a", "b"))
    assert (needs.conclusion, needs.reason) == (
        "not run",
        "a was played with a random text encoder",
    )
    these = "the interval is for other trainings only"
    assert other.flags == [("T", "a", False), ("I", these, False)]


def test_a_claim_about_trained_word_vectors_is_not_tested_with_own_ones(claimed):
    own = {"deviations": ["word vectors: trained on the training captions"]}
    made = claim("a", "b", weights="word vectors of elsewhere")
    (verdict,) = claimed(board(fed("a", 12, **own), fed("b", 10)), made)
    assert (verdict.conclusion, verdict.reason) == (
        "not run",
        "a was played with other word vectors",
    )
    (verdict,) = claimed(board(fed("a", 12, **own), fed("b", 10, **own)), made)
    assert verdict.conclusion == "holds"


def test_a_claim_that_was_not_run_says_why(claimed):
    def lack(made: Claim, *rows: boards.Row) -> str:
        (verdict,) = claimed(board(*rows), made)
        assert (verdict.conclusion, verdict.on_test_set, verdict.pairs) == ("not run",) * 2 + ([],)
        assert blocks(verdict) == "R"
        return verdict.reason

    first, made = fed("a", 12), claim("a", "b")
    assert lack(claim(unplayed="No times are printed.", printed=[3.0])) == "No times are printed"
    assert lack(made, first) == "b was not played"
    lost = standing("b", [outcome("b", status="not_applicable", reason="two captions are needed")])
    assert lack(made, first, lost) == "b: not applicable: two captions are needed"
    assert lack(made, first, played("b", [1.0] * 3, LESS)) == "upper bound of b was not measured"
    # Presets of one encoder may be fed another one together; those of two may not.
    other = fed("a", 12, {"sentence": "bilstm_max"}, text_features={"encoder": "hglmm_1000"})
    alike = board(other, fed("b", 10, {"sentence": "bilstm_max"}))
    assert [verdict.conclusion for verdict in claimed(alike, made)] == ["holds"]
    apart = fed("b", 10, {"sentence": "hglmm"})
    assert lack(made, other, apart) == "a was played with hglmm_1000"


def test_what_networks_do_needs_two_of_them(claimed):
    def seen(preset: str, network: str, level: float) -> boards.Row:
        facts = {"image_features": {"settings": {"network": network}}, "method": "m"}
        return fed(preset, level, {"network": {"a": "resnet50", "b": "vgg19"}[preset]}, **facts)

    apart, alike = (
        board(seen("a", "mobile", 12), seen("b", of, 10)) for of in ("squeeze", "mobile")
    )
    assert [verdict.conclusion for verdict in claimed(apart, claim("a", "b"))] == ["holds"]
    (verdict,) = claimed(alike, claim("a", "b"))
    assert (blocks(verdict), verdict.reason) == ("R", "all were played with mobile")


def test_nothing_is_concluded_from_what_did_not_train(claimed):
    """Three times the rsum of random scores is 96 here."""
    results = board(played("a", around(120), "rsum"), played("b", around(90), "rsum"))
    (verdict,) = claimed(results, claim("a", "b", metric="rsum"))
    assert (verdict.conclusion, blocks(verdict)) == ("undecided", "N")
    assert verdict.reason == "next to nothing was learned by b"
    results = board(played("a", around(120), "rsum"), played("b", around(100), "rsum"))
    (verdict,) = claimed(results, claim("a", "b", metric="rsum"))
    assert verdict.conclusion == "holds"


class TestWhereItWasSaid:
    """What a paper says of 1,000 images of MSCOCO is about the folds, where there are some."""

    def folded(self, preset: str, whole: float, in_folds: float) -> boards.Row:
        values = zip(around(whole), around(in_folds), strict=True)
        metrics = [{"rsum": of_split, "fold_rsum": of_folds} for of_split, of_folds in values]
        return standing(preset, [outcome(preset, s, metrics=m) for s, m in enumerate(metrics)])

    def board(self, folds: int) -> Board:
        """Of the whole split the second is better, of the folds the first."""
        results = board(self.folded("a", 510.0, 530.0), self.folded("b", 520.0, 520.0))
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
            "reversed",
            "reversed",
        )
        assert at_1k.pairs[0].comparison.difference == pytest.approx(10.0)
        assert at_1k.claim.metric == "fold_rsum"

    def test_without_folds_it_is_judged_by_the_split(self, claimed):
        (verdict,) = claimed(
            self.board(1), claim("a", "b", metric="rsum", place="mscoco_1k/test", kind="alike")
        )
        assert verdict.claim.metric == "rsum"
        assert verdict.pairs[0].comparison.difference == pytest.approx(-10.0)
        assert verdict.pairs[0].rule.margin == 6.0

    def test_of_a_difference_of_metrics_both_are_of_the_folds(self, claimed):
        metrics = {"i2t_r1": 1.0, "t2i_r1": 2.0, "fold_i2t_r1": 3.0, "fold_t2i_r1": 4.0}
        preset = standing("a", [outcome("a", 0, metrics=metrics)])
        preset.played[0].record.metrics.update(metrics)
        results = board(preset, folds=5)
        made = claim("a", metric="t2i_r1 - i2t_r1", place="mscoco_1k/test")
        metric = metric_at(results, made.place, made.metric)
        assert metric == "fold_t2i_r1 - fold_i2t_r1"


def test_of_a_single_direction_the_margin_is_three_recalls_and_nothing_is_set_beside_it(claimed):
    results = board(played("a", around(103.5), "rsum"), played("b", around(100), "rsum"))
    made = claim("a", "b", metric="rsum", kind="alike", printed=[500.0, 498.0])
    (both,) = claimed(results, made)
    assert (both.pairs[0].rule.margin, both.conclusion, both.pairs[0].printed) == (6, "holds", 2)
    results.card["ways"] = ["t2i"]
    (verdict,) = claimed(results, made)
    assert (verdict.pairs[0].rule.margin, verdict.conclusion) == (3.0, "does not hold: better")
    assert verdict.pairs[0].printed is None


def test_of_equal_ranks_nothing_is_concluded_and_more_seeds_would_not_help(
    claimed, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    prepare()
    first, twin = (mapped("a", 1.0), mapped("b", 1.0))
    other = mapped("c", 2.0)
    same, apart = claimed(board(first, twin, other), *(claim("a", x, metric="rsum") for x in "bc"))
    assert (same.conclusion, same.reason, blocks(same)) == ("undecided", "identical results", "M")
    assert same.limits == [None]
    assert blocks(apart) == ""


def test_another_set_of_seeds_is_said(claimed):
    (verdict,) = claimed(
        board(played("a", around(12)), played("b", [10.0]), played("c", around(9))), claim("a", "b")
    )
    assert ("1", "seeds 0, 1 and 2 of a against seed 0 of b", False) in verdict.flags


def test_times_beside_other_stages_decide_nothing(claimed):
    rows = [timed("a", 5.0), timed("b", 6.0)]
    for row in rows:
        for cell in row.outcomes:
            facts = cell.record.cost.scoring.model_copy(update={"jobs": 2})
            object.__setattr__(cell.record.cost, "scoring", facts)
    (verdict,) = claimed(board(*rows), claim("a", "b", metric="per_pair"))
    assert (blocks(verdict), verdict.reason) == ("Y", "timed beside other stages")


def test_a_margin_of_time_is_a_share(claimed):
    """The paper saves 40% of 10: half of that of the 6 here is 1.2."""
    made = claim("a", "b", metric="per_pair", printed=[6.0, 10.0])
    (verdict,) = claimed(board(timed("a", 5.05), timed("b", 6)), made)
    assert verdict.pairs[0].rule.margin == pytest.approx(1.2)
    assert (verdict.conclusion, verdict.pairs[0].size) == ("no difference beyond the margin", None)


def test_times_of_unlike_machines_decide_nothing(claimed):
    kinds = (("a", 3, "x"), ("b", 6, "y"), ("c", 6, "x"))
    results = board(*(timed(name, mean, numerics={"fingerprint": of}) for name, mean, of in kinds))
    made = [claim("a", other, metric="per_pair", printed=[6.0, 10.0]) for other in "bc"]
    (unlike,), (alike,) = (claimed(results, of) for of in made)
    assert (unlike.conclusion, blocks(unlike)) == ("undecided", "Y")
    assert unlike.reason == "timed in 2 settings, of machine, threads or versions"
    assert alike.conclusion == "holds"


def test_the_printed_effect_comes_from_the_table(claimed):
    rows = [
        Row(label="A", preset="a", numbers={"flickr30k/test": [0.25], "flickr30k/val": [0.5]}),
        Row(label="B", preset="b", numbers={"flickr30k/test": [0.75]}),
    ]
    table = Table(title="t", metrics=[LESS], rows=rows)
    results = board(played("a", around(0.2), LESS), played("b", around(0.5), LESS))
    made = claim("a", "b", metric=LESS, table="1", place="flickr30k/test")
    (verdict,) = claimed(results, made, tables={"1": table})
    assert verdict.pairs[0].printed == 0.5  # less is better: positive, as claimed


def test_where_fine_tuning_cost_both_what_they_began_with_nothing_is_concluded(claimed):
    def tuned(name: str, level: float, *best: float) -> list[boards.Row]:
        """What it goes on from reached 100 on validation; one value for all seeds, or one each."""
        histories = [
            pd.DataFrame({"epoch": [1, 2, 3], "val_rsum": [best[seed % len(best)]] * 3})
            for seed in range(3)
        ]
        history = histories[0]
        facts = {"metrics": {MORE: 9.0}, "history": history.assign(val_rsum=100.0)}
        start = [outcome(f"{name}_start", seed, **facts) for seed in range(3)]
        cells = [
            outcome(name, seed, metrics={MORE: value}, history=histories[seed])
            for seed, value in enumerate(around(level))
        ]
        return [standing(f"{name}_start", start), standing(name, cells, start=f"{name}_start")]

    for best_of_b, conclusion in ((90, "undecided"), (110, "holds")):
        results = board(*tuned("a", 12, 90), *tuned("b", 10, best_of_b))
        (verdict,) = claimed(results, claim("a", "b"))
        assert verdict.conclusion == conclusion
    (partly,) = claimed(board(*tuned("a", 12, 90), *tuned("b", 10, 99, 99, 150)), claim("a", "b"))
    assert partly.conclusion == "holds"  # its mean did not fall
    (verdict,) = claimed(board(*tuned("a", 12, 90), *tuned("b", 10, 90)), claim("a", "b"))
    assert blocks(verdict) == "D" and verdict.limits == [None]


def test_a_pair_with_the_opposite_difference_decides_what_a_claim_needs(claimed):
    """Of several, the one that needs least; without one, all undecided pairs count."""
    levels = {"a": 10.0, "b": 10.5, "c": 7.5, "d": 12.7}
    results = board(*(played(name, around(level, 2.0)) for name, level in levels.items()))
    behind, ahead, twice = claimed(
        results, claim("a", "b", "c"), claim("b", "a", "c"), claim("c", "a", "d")
    )
    assert {t.conclusion for of in (behind, twice) for t in of.pairs} == {"undecided"}
    assert behind.limits == [behind.pairs[0].limit] and behind.limits[0]
    assert behind.decisive == behind.pairs[0]
    assert ahead.limits == [pair.limit for pair in ahead.pairs] and len(ahead.limits) == 2
    needs = [pair.limit.seeds for pair in twice.pairs]
    assert [limit.seeds for limit in twice.limits] == [min(needs)]
    assert twice.decisive.limit == twice.limits[0]


@pytest.mark.parametrize(
    ("levels", "conclusion"), [((10, 12, 15), "reversed"), ((20, 12, 10.5), "holds")]
)
def test_of_reversed_pairs_the_surest_decides_and_of_those_that_hold_the_least_sure(
    claimed, levels, conclusion
):
    rows = [played(name, around(of, 0.3)) for name, of in zip("abc", levels, strict=True)]
    (verdict,) = claimed(board(*rows), claim("a", "b", "c"))
    assert {pair.conclusion for pair in verdict.pairs} == {conclusion}
    assert verdict.decisive == verdict.pairs[1]


def said(verdict: Verdict, letter: str) -> list[str]:
    """The sentences of its flags of a letter."""
    return [flag.sentence for flag in verdict.flags if flag.letter == letter]


def test_settings_that_a_season_gives_one_of_two_presets_are_named(claimed):
    def scaled(preset: str, level: float, values: dict, **row: object) -> boards.Row:
        facts = {"options": {"epochs": 9, "depth": 1} | values, "scaled": ["batch", "depth"]}
        return fed(preset, level, row, **facts)

    def unequal(*of: boards.Row) -> list[str]:
        (verdict,) = claimed(board(*of), claim("a", "b"))
        return said(verdict, "U")

    small = scaled("b", 10, {"batch": 32})
    assert unequal(scaled("a", 12, {"batch": 128}), small) == ["batch 128 and 32"]
    assert unequal(scaled("a", 12, {"batch": 32}), small) == []
    deep = scaled("a", 12, {"batch": 32, "depth": 9}, options={"depth": 4})
    assert unequal(deep, small) == []  # what the row is about
    evened = scaled("a", 12, {"batch": 32, "depth": 1}, options={"depth": 4})
    (verdict,) = claimed(board(evened, small), claim("a", "b"))
    assert said(verdict, "Q") == ["depth"]
    assert unequal(scaled("a", 12, {"batch": 128}, start="c"), small) == []
    by_default = fed("b", 10, options={"batch": 32, "depth": 1})
    assert unequal(scaled("a", 12, {"batch": 32}), by_default) == []


@pytest.mark.parametrize(
    ("tried", "expected"), [(["a"], ["a"]), (["b"], ["b"]), (["a", "b"], []), (["c"], [])]
)
@pytest.mark.parametrize("methods", [("scan", "scan"), ("scan", "vse")])
def test_trials_of_one_side_are_named(tried, expected, methods, claimed):
    """Beside another method, trials of any preset of a method count."""
    facts = zip("abc", (12, 10, 9), (*methods, methods[0]), strict=True)
    rows = [fed(name, level, method=method) for name, level, method in facts]
    results = replace(board(*rows), tried=frozenset(tried))
    (verdict,) = claimed(results, claim("a", "b"))
    if tried == ["c"] and len(set(methods)) > 1:
        expected = ["a"]
    assert said(verdict, "H") == expected


def test_every_claim_of_every_paper_gets_a_verdict():
    drawn = verdicts(board(reader="folder"))
    expected = [(name, claim.id) for name, paper in papers().items() for claim in paper.claims]
    assert [(verdict.paper, verdict.claim.id) for verdict in drawn] == expected
    assert len(drawn) > 40
    assert {verdict.conclusion for verdict in drawn} == {Conclusion.NOT_RUN}
    assert all(verdict.reason for verdict in drawn)


class TestClaimsOfThePapers:
    """Every claim of every paper, its comparisons made up."""

    @pytest.fixture
    def judged(self, monkeypatch):
        """The verdicts on a board with every preset, given the comparison of each pair."""

        def judge(compare) -> list[Verdict]:
            monkeypatch.setattr(comparisons, "usable", lambda s, metric: {0: s.outcomes[0]})
            monkeypatch.setattr(comparisons, "is_coarse", lambda s: False)
            monkeypatch.setattr(comparisons, "compare", compare)
            standings = [standing(name, [outcome(name)]) for name in ALL_PRESETS]
            return verdicts(board(*standings, reader="flickr30k"))

        return judge

    def made(self, first, second, metric: str, difference: float, error: float) -> Comparison:
        part = SeedPart((5, 5), error**2 * 2.5, 0.0, 30, is_own=False)
        return Comparison(
            first=first.preset,
            second=second.preset if second else "",
            titles=(first.preset, second.preset if second else ""),
            metric=metric,
            firsts=[500.0] * 5,  # so that no level makes a margin smaller
            seconds=[500.0] * 5,
            difference=difference,
            doubt=Doubt(images=0.0, interaction=0.0, image_count=0, seeds=(part,)),
        )

    def printed(self) -> dict[tuple[str, str, str], float]:
        """The difference that a paper prints for a pair."""
        differences = {}
        for paper in papers().values():
            for printed in paper.claims:
                sign = -1 if quantity(printed.metric).less_is_better else 1
                pairs = list(pairwise([*printed.presets, *[""] * (len(printed.presets) == 1)]))
                of_paper = effects(paper, printed) if pairs else None
                for pair, values in zip(pairs, pairwise(of_paper or []), strict=False):
                    differences[(*pair, printed.metric)] = sign * (values[0] - values[1])
        return differences

    @pytest.mark.parametrize("noise", [-1.0, 0.0, 1.0])
    def test_each_holds_on_the_numbers_that_its_paper_prints(self, judged, noise):
        """With an error of a tenth of the margin and an estimate that is off by one error."""
        printed, tried = self.printed(), 0

        def compare(on, first, second, metric):
            key = (first.preset, second.preset if second else "", metric)
            gap = printed.get(key, 0.0)
            error = abs(gap) / 30 or 0.05
            return self.made(first, second, metric, gap + noise * error, error)

        for verdict in judged(compare):
            known = verdict.pairs and all(t.printed is not None for t in verdict.pairs)
            if known and quantity(verdict.claim.metric).unit in ("%", "share", "score"):
                tried += 1
                assert verdict.conclusion == Conclusion.HOLDS, verdict.claim.id
                assert {t.size for t in verdict.pairs} <= {"as printed", None}
        assert tried > 80

"""Verdicts on made-up claims about made-up records, worked out by hand and with Student's t."""

from dataclasses import replace
from functools import partial
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
from benchmark.boards.claim_ledger import Finding
from benchmark.boards.claims import Verdict, metric_at, verdicts
from benchmark.boards.comparisons import Comparison
from benchmark.boards.flags import BLOCKING
from benchmark.papers.printed_tables import (
    OWN,
    RECALLS,
    Claim,
    Row,
    Table,
    effects,
    papers,
    quantity,
)
from benchmark.season.plugins import presets
from benchmark.stats.significance import Doubt, SeedPart
from benchmark.stats.verdicts import Conclusion

ALL_PRESETS = list(presets())


@pytest.fixture
def claimed(monkeypatch):
    """Judge these claims of a paper, and no other, on a board."""
    return partial(judge, monkeypatch)


@pytest.fixture
def own(monkeypatch):
    """As `claimed`, of a season's own claims, which need no control."""
    return partial(judge, monkeypatch, paper=OWN)


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
def test_the_interval_of_all_trainings_decides(own, kind, gap, spread, conclusion):
    first, second = around(10 + gap, spread), around(10, spread)
    (verdict,) = own(board(played("a", first), played("b", second)), claim("a", "b", kind=kind))
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
    kept = claims.compared(verdict.pairs[0])
    p = float(f"{verdict.pairs[0].adjusted_p:.6g}")
    assert (kept.p, kept.low) == (p if rests_on_p else None, float(f"{ends[0]:.6g}"))


def test_where_less_is_better_the_smaller_one_beats_the_larger(own):
    first, second = played("a", around(0.1, 0.01), LESS), played("b", around(0.3, 0.01), LESS)
    there, back = own(
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


class TestSeveralParts:
    def judge(self, own, **values: list[float]) -> Verdict:
        results = board(*(played(name, levels) for name, levels in values.items()))
        return own(results, claim(*values))[0]

    def test_every_part_has_to_hold(self, own):
        verdict = self.judge(own, a=around(14), b=around(12), c=around(10))
        assert (verdict.conclusion, verdict.reason) == (
            "holds",
            "each pair: the interval lies above zero",
        )
        assert [pair.comparison.second for pair in verdict.pairs] == ["b", "c"]

    def test_one_part_that_is_reversed_decides(self, own):
        verdict = self.judge(own, a=around(14), b=around(10), c=around(12))
        assert verdict.conclusion == "reversed"
        assert verdict.reason == "b over c: the interval lies below zero"
        assert [pair.conclusion for pair in verdict.pairs] == ["holds", "reversed"]

    def test_each_has_a_kind_a_metric_and_a_number_of_presets_of_its_own(self, own):
        def cells(preset: str, level: float) -> boards.Row:
            facts = {"mean_matched": 0.5, "mean_unmatched": 0.6}
            of_seed = [
                facts | {MORE: x, LESS: 0.2 + x / 1000, "one_minus_ks": 1} for x in around(level)
            ]
            for number, metrics in enumerate(of_seed):
                metrics["mean_matched"] += number / 100
            return standing(
                preset, [outcome(preset, s, metrics=of) for s, of in enumerate(of_seed)]
            )

        made = claim(
            parts=[
                ["a", "b"],
                {"presets": ["b", "a"], "kind": "not_better"},
                {"presets": ["a", "b"], "metric": LESS},
                {"presets": ["a"], "metric": "mean_matched - mean_unmatched"},
            ]
        )
        (verdict,) = own(board(cells("a", 14), cells("b", 10)), made)
        words = ["holds", "holds", "reversed", "reversed"]
        assert [pair.conclusion for pair in verdict.pairs] == words
        assert verdict.pairs[3].comparison.titles == ("a", "")
        assert verdict.reason in (
            "a over b: the interval lies below zero",
            "a: the interval lies below zero",
        )

    def test_one_that_was_not_run_is_named_and_the_others_are_judged(self, claimed):
        results = board(played("a", around(14)), played("b", around(12)))
        (verdict,) = claimed(results, claim("a", "b", "c", "a"))
        assert (verdict.conclusion, len(verdict.pairs), blocks(verdict)) == ("holds", 1, "")
        assert said(verdict, "R") == ["in part: c was not played"]
        (verdict,) = claimed(results, claim("c", "a", "d"))
        assert (verdict.conclusion, verdict.reason, blocks(verdict)) == (
            "not run",
            "c was not played",
            "R",
        )


class TestControls:
    """Against its paper: a lies 2 below b; c below d, too, but e above f."""

    LEVELS = {"a": 10, "b": 12, "c": 10, "d": 12, "e": 12, "f": 10}
    AGAINST = "against the paper (reversed), "

    def judge(self, judge, *controls: list[str], **facts: object) -> Verdict:
        results = board(*(played(name, around(of)) for name, of in self.LEVELS.items()))
        return judge(results, claim("a", "b", controls=list(controls), **facts))[0]

    @pytest.mark.parametrize("controls", [[], [["x", "y"]], [["a", "y"]]])
    def test_without_one_that_was_run_nothing_is_concluded(self, claimed, controls):
        verdict = self.judge(claimed, *controls)
        assert (verdict.conclusion, verdict.on_test_set) == ("undecided", "undecided")
        assert (blocks(verdict), verdict.pairs[0].controls) == ("2", ())
        assert verdict.reason == f"{self.AGAINST}and no control of our set-up was run"
        assert claims.compared(verdict.pairs[0]).p is None

    @pytest.mark.parametrize("controls", [[["c", "d"]], [["c", "d"], ["x", "y"]]])
    def test_with_one_that_is_against_the_paper_the_verdict_stands(self, claimed, controls):
        verdict = self.judge(claimed, *controls)
        assert (verdict.conclusion, verdict.on_test_set) == ("reversed", "reversed")
        assert (blocks(verdict), verdict.reason) == ("", "the interval lies below zero")
        (control,) = claims.compared(verdict.pairs[0]).controls
        assert (control.first, control.second, control.conclusion) == ("c", "d", "reversed")
        assert control.difference == pytest.approx(-2.0)

    def test_with_one_that_is_not_against_it_nothing_is_concluded(self, claimed):
        verdict = self.judge(claimed, ["c", "d"], ["e", "f"])
        assert (verdict.conclusion, blocks(verdict)) == ("undecided", "2")
        assert verdict.reason == f"{self.AGAINST}but not in a control: e over f, holds"
        words = [control.conclusion for control in verdict.pairs[0].controls]
        assert words == ["reversed", "holds"]

    def test_a_control_of_which_nothing_is_concluded_is_not_against_it(self, claimed):
        """One of its rows has another text encoder."""
        rows = {name: played(name, around(of)) for name, of in self.LEVELS.items()}
        encoded = {"text_features": {"encoder": "hglmm_1000"}, "method": "vse"}
        rows["c"] = fed("c", 10, {"sentence": "bilstm_max"}, **encoded)
        (verdict,) = claimed(board(*rows.values()), claim("a", "b", controls=[["c", "d"]]))
        assert (verdict.conclusion, blocks(verdict)) == ("undecided", "2")
        assert verdict.reason == f"{self.AGAINST}but not in a control: c over d, undecided"

    def test_what_is_unfair_is_so_whatever_its_controls_say(self, claimed):
        verdict = self.judge(claimed, ["c", "d"], unfair="It is not fair.")
        assert (verdict.conclusion, blocks(verdict)) == ("undecided", "U")

    def test_what_agrees_with_its_paper_needs_none(self, claimed):
        (verdict,) = claimed(
            board(*(played(name, around(of)) for name, of in self.LEVELS.items())),
            claim("b", "a", controls=[["f", "e"]]),
        )
        assert (verdict.conclusion, verdict.pairs[0].controls) == ("holds", ())

    def test_a_season_s_own_claim_needs_none(self, own):
        assert self.judge(own).conclusion == "reversed"

    @pytest.mark.parametrize(
        ("first", "kind", "conclusion"),
        [
            ("b", "alike", "does not hold: better"),
            ("a", "alike", "does not hold: worse"),
            ("b", "not_better", "does not hold: better"),
            ("d", "ordered", "no difference beyond the margin"),
        ],
    )
    def test_every_verdict_against_a_paper_needs_one(self, claimed, first, kind, conclusion):
        second = {"a": "b", "b": "a", "d": "b"}[first]
        results = board(*(played(name, around(of)) for name, of in self.LEVELS.items()))
        (verdict,) = claimed(results, claim(first, second, kind=kind))
        assert (verdict.conclusion, blocks(verdict)) == ("undecided", "2")
        assert f"against the paper ({conclusion})" in verdict.reason
        made = claim(first, second, kind=kind, controls=[[first, second]])
        assert claimed(results, made)[0].conclusion == conclusion

    def test_each_part_has_controls_of_its_own(self, claimed):
        results = board(*(played(name, around(of)) for name, of in self.LEVELS.items()))
        parts = [{"presets": ["a", "b"], "controls": [["c", "d"]]}, ["a", "d"]]
        (verdict,) = claimed(results, claim(parts=parts))
        assert [pair.conclusion for pair in verdict.pairs] == ["reversed", "undecided"]
        assert verdict.conclusion == "reversed"
        assert [len(pair.controls) for pair in verdict.pairs] == [1, 0]

    def test_a_control_has_the_margin_of_its_part(self, claimed):
        """Half of what the table prints for the part."""
        rows = [
            Row(label=name, preset=name, numbers={"flickr30k_entities/test": [value]})
            for name, value in (("a", 50.4), ("b", 50.0))
        ]
        tables = {"1": Table(title="t", metrics=[MORE], rows=rows)}
        results = board(*(played(name, around(of)) for name, of in self.LEVELS.items()))
        facts = {"table": "1", "place": "flickr30k_entities/test", "controls": [["c", "d"]]}
        (verdict,) = claimed(results, claim("a", "b", **facts), tables=tables)
        (pair,) = verdict.pairs
        assert pair.margin == pair.controls[0].margin == pytest.approx(0.2)

    def test_what_is_against_it_on_the_test_set_alone_needs_one_too(self, claimed, monkeypatch):
        def compare(on, first, second, metric) -> Comparison:
            part = SeedPart((3, 3), 0.01, 0.0, 30, is_own=False)
            return Comparison(
                first=first.preset,
                second=second.preset,
                titles=(first.title, second.title),
                metric=metric,
                firsts=[10.0] * 3,
                seconds=[12.0] * 3,
                difference=-2.0,
                doubt=Doubt(images=9.0, interaction=0.0, image_count=100, seeds=(part,)),
            )

        monkeypatch.setattr(comparisons, "compare", compare)
        for controls in ([], [["e", "f"]]):
            verdict = self.judge(claimed, *controls)
            assert (verdict.conclusion, verdict.on_test_set) == ("undecided", "undecided")
            assert blocks(verdict) == "" and verdict.pairs[0].limit is not None


class TestFarAbove:
    """The paper prints 60 and 20: two thirds of the level are missing, of which half is a third."""

    PRINTED = {"kind": "far", "printed": [60.0, 20.0]}

    @pytest.mark.parametrize(
        ("first", "second", "conclusion", "reason"),
        [
            (12, 7, "holds", "the interval lies above 4"),
            (12, 9, "no difference beyond the margin", "does not reach above the margin of 4"),
            (9, 12, "no difference beyond the margin", "does not reach above the margin of 4"),
            (12, 8, "undecided", "the interval covers the margin of 4"),
        ],
    )
    def test_it_holds_above_half_of_the_printed_share(self, own, first, second, conclusion, reason):
        results = board(played("a", around(first)), played("b", around(second)))
        (verdict,) = own(results, claim("a", "b", **self.PRINTED))
        assert verdict.pairs[0].margin == pytest.approx(4.0)
        assert verdict.conclusion == verdict.on_test_set == conclusion
        assert reason in verdict.reason

    def test_a_share_is_one_of_a_single_direction_too(self, own):
        results = board(played("a", around(300), "rsum"), played("b", around(150), "rsum"))
        results.card["ways"] = ["t2i"]
        results.__dict__["groups"] = boards.Groups({}, np.arange(100))
        (verdict,) = own(results, claim("a", "b", metric="rsum", **self.PRINTED))
        assert (verdict.conclusion, verdict.pairs[0].printed) == ("holds", None)
        assert verdict.pairs[0].margin == pytest.approx(100.0)


class TestNotCounted:
    def judge(self, claimed, **facts: object) -> list[Verdict]:
        results = board(
            *(played(name, around(of, 0.5)) for name, of in {"a": 12, "b": 10, "c": 11}.items()),
            reader="flickr8k",
        )
        return claimed(results, claim("a", "b"), claim("a", "c", **facts))

    @pytest.mark.parametrize(
        "facts", [{"uncounted": "No."}, {"only_there": True, "place": "flickr30k/test"}]
    )
    def test_it_is_shown_and_neither_counted_nor_adjusted_with(self, claimed, facts):
        of_both = [verdict.pairs[0] for verdict in self.judge(claimed)]
        assert of_both[0].adjusted_p == pytest.approx(2 * of_both[0].p)
        verdicts = self.judge(claimed, **facts)
        assert [verdict.is_counted for verdict in verdicts] == [True, False]
        for verdict in verdicts:
            (pair,) = verdict.pairs
            assert pair.adjusted_p == pair.p and pair.conclusion == "holds"
        assert sum(claims.counts(verdicts).values()) == 1
        assert sum(claims.counts(self.judge(claimed)).values()) == 2


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
    assert lack(claim(unplayed="No times are printed.", printed=[3, 2])) == "No times are printed"
    assert lack(made, first) == "b was not played"
    lost = standing("b", [outcome("b", status="not_applicable", reason="two captions are needed")])
    assert lack(made, first, lost) == "b: not applicable: two captions are needed"
    assert lack(made, first, played("b", [1.0] * 3, LESS)) == "upper bound of b was not measured"
    # Presets of one encoder may be fed another one together; those of two may not.
    row, encoder = {"sentence": "bilstm_max"}, {"text_features": {"encoder": "hglmm_1000"}}
    other = fed("a", 12, row, **encoder)
    alike = board(other, fed("b", 10, row, **encoder))
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

    def test_with_folds_it_is_judged_by_their_means(self, own):
        at_1k, at_5k, anywhere = own(
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
        metrics = [verdict.pairs[0].comparison.metric for verdict in (at_1k, at_5k)]
        assert metrics == ["fold_rsum", "rsum"]

    def test_what_is_printed_of_them_stands_beside_them(self, own):
        rows = [
            Row(label=name, preset=name, numbers={"mscoco_1k/test": [50, 80, 90, 40, 70, last]})
            for name, last in (("a", 85), ("b", 81))
        ]
        tables = {"1": Table(title="t", metrics=list(RECALLS), rows=rows)}
        made = claim("a", "b", metric="rsum", place="mscoco_1k/test", table="1")
        (verdict,) = own(self.board(5), made, tables=tables)
        assert (verdict.pairs[0].printed, verdict.pairs[0].margin) == (4.0, 2.0)

    def test_without_folds_it_is_judged_by_the_split(self, own):
        (verdict,) = own(
            self.board(1), claim("a", "b", metric="rsum", place="mscoco_1k/test", kind="alike")
        )
        assert verdict.pairs[0].comparison.metric == "rsum"
        assert verdict.pairs[0].comparison.difference == pytest.approx(-10.0)
        assert verdict.pairs[0].rule.margin == 6.0

    def test_of_a_difference_of_metrics_both_are_of_the_folds(self, claimed):
        metrics = {"i2t_r1": 1.0, "t2i_r1": 2.0, "fold_i2t_r1": 3.0, "fold_t2i_r1": 4.0}
        preset = standing("a", [outcome("a", 0, metrics=metrics)])
        preset.played[0].record.metrics.update(metrics)
        results = board(preset, folds=5)
        metric = metric_at(results, "mscoco_1k/test", "t2i_r1 - i2t_r1")
        assert metric == "fold_t2i_r1 - fold_i2t_r1"


def test_of_a_single_direction_the_margin_is_three_recalls_and_nothing_is_set_beside_it(own):
    results = board(played("a", around(103.5), "rsum"), played("b", around(100), "rsum"))
    made = claim("a", "b", metric="rsum", kind="alike", printed=[500.0, 498.0])
    (both,) = own(results, made)
    assert (both.pairs[0].rule.margin, both.conclusion, both.pairs[0].printed) == (6, "holds", 2)
    results.card["ways"] = ["t2i"]
    (verdict,) = own(results, made)
    assert (verdict.pairs[0].rule.margin, verdict.conclusion) == (3.0, "does not hold: better")
    assert verdict.pairs[0].printed is None


def test_of_equal_ranks_nothing_is_concluded_and_more_seeds_would_not_help(
    own, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    prepare()
    first, twin = (mapped("a", 1.0), mapped("b", 1.0))
    other = mapped("c", 2.0)
    same, apart = own(board(first, twin, other), *(claim("a", x, metric="rsum") for x in "bc"))
    assert (same.conclusion, same.reason, blocks(same)) == ("undecided", "identical results", "M")
    assert same.pairs[0].limit is None
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


def test_a_margin_of_time_is_a_share(own):
    """The paper saves 40% of 10: half of that of the 6 here is 1.2."""
    made = claim("a", "b", metric="per_pair", printed=[6.0, 10.0])
    (verdict,) = own(board(timed("a", 5.05), timed("b", 6)), made)
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


@pytest.mark.parametrize(
    ("best_of_a", "best_of_b", "fallen"),
    [
        ([110], [110], ""),
        ([90], [110], "a"),
        ([110], [90], "b"),
        ([90], [90], "a and b"),
        ([110], [99, 150, 150], "b"),  # one training of three
    ],
)
def test_where_fine_tuning_cost_a_row_what_it_began_with_nothing_is_concluded(
    claimed, best_of_a, best_of_b, fallen
):
    results = board(*tuned("a", 12, *best_of_a), *tuned("b", 10, *best_of_b))
    (verdict,) = claimed(results, claim("a", "b"))
    if not fallen:
        assert (verdict.conclusion, blocks(verdict)) == ("holds", "")
    else:
        assert (verdict.conclusion, blocks(verdict)) == ("undecided", "D")
        assert verdict.reason == f"fine-tuning left {fallen} worse than it began"
        assert verdict.pairs[0].limit is None


def needs(verdict: Verdict) -> str:
    """What would decide it, as the ledger says."""
    parts = [claims.compared(pair) for pair in verdict.pairs]
    facts = {"paper": verdict.paper, "id": verdict.claim.id, "conclusion": verdict.conclusion}
    facts |= {"reason": "", "is_elsewhere": False, "cautions": [], "decisive": 0}
    return Finding(parts=parts, **facts).needs


def test_a_part_with_the_opposite_difference_decides_what_a_claim_needs(claimed):
    """Of several, the one that needs least; without one, that which needs most."""
    levels = {"a": 10.0, "b": 10.5, "c": 7.5, "d": 12.7}
    results = board(*(played(name, around(level, 2.0)) for name, level in levels.items()))
    ahead, behind, twice, never = claimed(
        results,
        claim(parts=[["b", "c"], ["d", "a"]]),
        claim(parts=[["d", "b"], ["c", "a"]]),
        claim(parts=[["c", "a"], ["a", "d"]]),
        claim(parts=[["b", "c"], ["b", "a"]]),  # too near for any number of seeds
    )
    seeds = [[pair.limit.seeds for pair in of.pairs] for of in (ahead, behind, twice, never)]
    assert needs(ahead) == f"{max(seeds[0])} more seeds" and seeds[0] == sorted(seeds[0])
    assert needs(behind) == f"{seeds[1][1]} more seeds" and behind.decisive == behind.pairs[1]
    assert needs(twice) == f"{seeds[2][1]} more seeds" and seeds[2][1] < seeds[2][0]
    assert twice.decisive == twice.pairs[1]
    assert needs(never) == "" and None in seeds[3]


@pytest.mark.parametrize(
    ("levels", "conclusion"), [((10, 12, 15), "reversed"), ((20, 12, 10.5), "holds")]
)
def test_of_reversed_parts_the_surest_decides_and_of_those_that_hold_the_least_sure(
    own, levels, conclusion
):
    rows = [played(name, around(of, 0.3)) for name, of in zip("abc", levels, strict=True)]
    (verdict,) = own(board(*rows), claim("a", "b", "c"))
    assert {pair.conclusion for pair in verdict.pairs} == {conclusion}
    assert verdict.decisive == verdict.pairs[1]


def said(verdict: Verdict, letter: str) -> list[str]:
    """The sentences of its flags of a letter."""
    return [flag.sentence for flag in verdict.flags if flag.letter == letter]


def scaled(preset: str, level: float, values: dict, **row: object) -> boards.Row:
    """A row whose season gives it these values of batch and depth."""
    facts = {"options": {"epochs": 9, "depth": 1} | values, "scaled": ["batch", "depth"]}
    return fed(preset, level, row, **facts)


def test_settings_that_a_season_gives_one_of_two_presets_block(claimed):
    def unequal(*of: boards.Row) -> list[str]:
        (verdict,) = claimed(board(*of), claim("a", "b"))
        told = said(verdict, "U")
        word = "undecided" if told else "holds"
        assert (blocks(verdict), verdict.conclusion) == ("U" * len(told), word)
        return told

    small = scaled("b", 10, {"batch": 32})
    assert unequal(scaled("a", 12, {"batch": 128}), small) == ["unequal settings: batch 128 and 32"]
    assert unequal(scaled("a", 12, {"batch": 32}), small) == []
    deep = scaled("a", 12, {"batch": 32, "depth": 9}, options={"depth": 4})
    assert unequal(deep, small) == []  # what the row is about
    evened = scaled("a", 12, {"batch": 32, "depth": 1}, options={"depth": 4})
    (verdict,) = claimed(board(evened, small), claim("a", "b"))
    assert said(verdict, "Q") == ["depth"] and blocks(verdict) == ""
    assert unequal(scaled("a", 12, {"batch": 128}, start="c"), small) == []
    by_default = fed("b", 10, options={"batch": 32, "depth": 1})
    assert unequal(scaled("a", 12, {"batch": 32}), by_default) == []


def test_times_of_unequal_settings_decide_nothing(claimed):
    rows = [
        timed(name, mean, options={"batch": batch}, scaled=["batch"])
        for name, mean, batch in (("a", 5, 32), ("b", 6, 128))
    ]
    (verdict,) = claimed(board(*rows), claim("a", "b", metric="per_pair"))
    assert (blocks(verdict), verdict.reason) == ("U", "unequal settings: batch 32 and 128")


def test_what_the_entry_of_a_claim_calls_unfair_is_undecided(claimed):
    results = board(fed("a", 12), fed("b", 10))
    (verdict,) = claimed(results, claim("a", "b", unfair="Twice the rows a step."))
    assert (verdict.conclusion, blocks(verdict)) == ("undecided", "U")
    assert verdict.reason == "Twice the rows a step"


class TestTrials:
    """a beats b; c is of a's method, and in no claim."""

    EPOCHS = pd.DataFrame({"epoch": [1, 2]})

    def judge(self, claimed, methods: str, tried: dict, untrained: str = "") -> Verdict:
        levels = zip("abc", (12, 10, 9), (*methods, methods[0]), strict=True)
        rows = [
            fed(name, of, method=method, history=None if name in untrained else self.EPOCHS)
            for name, of, method in levels
        ]
        return claimed(replace(board(*rows), tried=tried), claim("a", "b"))[0]

    @pytest.mark.parametrize(("tried", "expected"), [("a", "a"), ("b", "b"), ("ab", ""), ("c", "")])
    def test_of_one_method_the_row_that_its_settings_were_tried_on_is_named(
        self, claimed, tried, expected
    ):
        verdict = self.judge(claimed, "mm", {preset: ["rate=1"] for preset in tried})
        assert said(verdict, "H") == [f"settings were tried on {x} alone" for x in expected]
        assert (verdict.conclusion, blocks(verdict)) == ("holds", "")

    @pytest.mark.parametrize(
        ("tried", "untried"), [("a", "b"), ("b", "a"), ("c", "b"), ("ac", "b")]
    )
    def test_of_two_methods_one_without_any_blocks(self, claimed, tried, untried):
        """Those of any preset of a method count."""
        verdict = self.judge(claimed, "mn", {preset: ["rate=1"] for preset in tried})
        assert (verdict.conclusion, blocks(verdict)) == ("undecided", "H")
        assert verdict.reason == f"{untried} had no trials on validation, its opponent had"

    def test_what_has_no_epochs_needs_none(self, claimed):
        verdict = self.judge(claimed, "mn", {"a": ["rate=1"]}, untrained="b")
        assert (verdict.conclusion, blocks(verdict)) == ("holds", "")
        assert said(verdict, "H") == ["a: 1 trials (rate); b: no trials"]
        for untrained in ("", "b"):
            verdict = self.judge(claimed, "mn", {}, untrained)
            assert said(verdict, "H") == [] and verdict.conclusion == "holds"

    def test_more_of_them_on_one_side_are_named(self, claimed):
        tried = {"a": ["rate=1 epochs=3"], "c": ["rate=2"], "b": ["rate=3"]}
        verdict = self.judge(claimed, "mn", tried)
        assert said(verdict, "H") == ["a: 2 trials (epochs, rate); b: 1 trials (rate)"]
        assert (verdict.conclusion, blocks(verdict)) == ("holds", "")
        alike = self.judge(claimed, "mn", {"a": ["rate=1"], "b": ["rate=2"]})
        assert said(alike, "H") == []


@pytest.mark.parametrize(("others", "blocked"), [("", ""), ("a", "G"), ("b", "G"), ("ab", "")])
def test_another_text_encoder_on_one_side_alone_blocks(claimed, others, blocked):
    rows = []
    for name, level, method in (("a", 12, "m"), ("b", 10, "n")):
        encoder = "hglmm_1000" if name in others else "bilstm_max_h512"
        facts = {"text_features": {"encoder": encoder}, "method": method}
        rows.append(fed(name, level, {"sentence": "bilstm_max"}, **facts))
    (verdict,) = claimed(board(*rows), claim("a", "b"))
    assert blocks(verdict) == blocked
    if blocked:
        assert verdict.conclusion == "undecided"
        assert verdict.reason == f"{others} reads another text encoder than in its paper"
    else:
        assert verdict.conclusion == "holds"


class TestSettingsOfAClaim:
    MADE = {"settings": {"scaling": "common"}}

    def row(self, preset: str, level: float, scaling: str = "common", **row: object) -> boards.Row:
        return fed(preset, level, row, options={"scaling": scaling} if scaling else {})

    @pytest.mark.parametrize(
        ("scaling", "lack"),
        [
            ("common", ""),
            ("component", "b was played with component scaling"),
            ("", "b was played with another scaling"),
        ],
    )
    def test_both_rows_have_to_have_them(self, claimed, scaling, lack):
        results = board(self.row("a", 12), self.row("b", 10, scaling))
        (verdict,) = claimed(results, claim("a", "b", **self.MADE))
        assert verdict.conclusion == ("not run" if lack else "holds")
        assert blocks(verdict) == ("R" if lack else "")
        assert not lack or verdict.reason == lack
        assert claimed(results, claim("a", "b"))[0].conclusion == "holds"

    def test_they_are_those_of_all_trainings_of_a_row(self, claimed):
        """Here of what it goes on from and scores differently."""
        again = self.row("b", 10, start="c", options={"trains": False})
        for scaling, conclusion in (("common", "holds"), ("component", "not run")):
            results = board(self.row("a", 12), again, self.row("c", 9, scaling))
            assert claimed(results, claim("a", "b", **self.MADE))[0].conclusion == conclusion
        (verdict,) = claimed(board(self.row("a", 12), again), claim("a", "b", **self.MADE))
        assert verdict.reason == "b was played with another scaling"

    def test_a_control_has_to_have_them_too(self, claimed):
        rows = [self.row("a", 10), self.row("b", 12), self.row("c", 10), self.row("d", 12, "")]
        made = claim("a", "b", controls=[["c", "d"]], **self.MADE)
        (verdict,) = claimed(board(*rows), made)
        assert (verdict.conclusion, blocks(verdict)) == ("undecided", "2")
        (verdict,) = claimed(board(*rows[:3], self.row("d", 12)), made)
        assert verdict.conclusion == "reversed"


@pytest.mark.parametrize(
    ("kind", "printed", "is_narrow"),
    [
        ("alike", [108.0, 100.0], False),  # twice 8, or a tenth of 104
        ("alike", [112.0, 100.0], True),
        ("alike", [100.0, 112.0], True),
        ("not_better", [112.0, 100.0], True),
        ("not_better", [100.0, 112.0], False),  # what it denies is not printed
        ("ordered", [300.0, 100.0], False),
    ],
)
def test_a_margin_below_the_printed_difference_that_is_denied_is_named(
    claimed, kind, printed, is_narrow
):
    results = board(played("a", around(104), "rsum"), played("b", around(103), "rsum"))
    (verdict,) = claimed(results, claim("a", "b", metric="rsum", kind=kind, printed=printed))
    narrow = ["the printed difference is more than a tenth of the level here"]
    assert said(verdict, "3") == narrow * is_narrow


def test_the_list_of_what_blocks_is_complete(claimed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare()
    a, b = fed("a", 12), fed("b", 10)
    coarse = [outcome("b", seed, metrics={LESS: 0.3, "one_minus_ks": 0.2}) for seed in range(3)]
    encoded = {"text_features": {"encoder": "hglmm_1000"}, "method": "vse"}
    trained = [fed(x, of, method=x, history=TestTrials.EPOCHS) for x, of in (("a", 12), ("b", 10))]
    machines = [timed(x, 3, numerics={"fingerprint": x}) for x in "ab"]
    of = {"metric": "rsum"}
    cases = {
        "L": (board(a, b, counts={"test": {"images": 99, "captions": 100}}), {}),
        "M": (board(mapped("p", 1.0), mapped("q", 1.0)), of | {"presets": ["p", "q"]}),
        "Y": (board(*machines), {"metric": "per_pair"}),
        "N": (board(played("a", around(120), "rsum"), played("b", around(90), "rsum")), of),
        "D": (board(*tuned("a", 12, 110), *tuned("b", 10, 90)), {}),
        "U": (board(scaled("a", 12, {"batch": 1}), scaled("b", 10, {"batch": 2})), {}),
        "H": (replace(board(*trained), tried={"a": ["rate=1"]}), {}),
        "G": (board(fed("a", 12, {"sentence": "bilstm_max"}, **encoded), b), {}),
        "Z": (board(played("a", around(0.1, 0.01), LESS), standing("b", coarse)), {"metric": LESS}),
        "S": (board(played("a", [15.0]), played("b", [10.0])), {}),
        "O": (board(played("a", [7.0] * 3), played("b", [6.0] * 3)), {}),
        "2": (board(played("a", around(10)), played("b", around(12))), {}),
    }
    for letter, (on, facts) in cases.items():
        (verdict,) = claimed(on, claim("a", "b", **facts))
        found = verdict.conclusion, verdict.on_test_set, blocks(verdict)
        assert found == ("undecided", "undecided", letter)
        assert verdict.pairs[0].limit is None, letter
    assert cases.keys() == BLOCKING.keys()


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
            settings = {
                k: v
                for paper in papers().values()
                for claim in paper.claims
                for k, v in claim.settings.items()
            }
            rows = [standing(name, [outcome(name, options=settings)]) for name in ALL_PRESETS]
            return verdicts(board(*rows, reader="flickr30k"))

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
            for part in (part for made in paper.claims for part in made.parts):
                sign = -1 if quantity(part.metric).less_is_better else 1
                values = effects(paper, part) if part.presets else None
                if values:
                    pair = (*part.presets, *[""] * (len(part.presets) == 1))
                    differences[(*pair, part.metric)] = sign * (values[0] - values[1])
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
            units = {quantity(pair.comparison.metric).unit for pair in verdict.pairs}
            if known and verdict.claim.unfair:
                assert blocks(verdict) and verdict.conclusion == Conclusion.UNDECIDED
            elif known and units <= {"%", "share", "score"}:
                tried += 1
                assert verdict.conclusion == Conclusion.HOLDS, verdict.claim.id
                assert {t.size for t in verdict.pairs} <= {"as printed", None}
        assert tried > 50

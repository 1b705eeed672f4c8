"""Verdicts on made-up claims about made-up records, worked out by hand and with Student's t."""

from functools import partial
from itertools import pairwise
from statistics import stdev

import numpy as np
import pytest
from builders import board, outcome, standing
from made_claims import LESS, MORE, around, claim, judge, played
from scipy import stats

from benchmark.analysis import claims, comparisons, image_noise, season_claims
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.claims import Verdict, counts, verdicts
from benchmark.analysis.comparisons import Comparison
from benchmark.analysis.grounds import Cause
from benchmark.analysis.significance import Doubt, SeedPart
from benchmark.analysis.verdict_rules import Conclusion
from benchmark.papers.claimed_quantities import quantity
from benchmark.papers.printed_tables import Claim, Row, Table, effects, papers
from benchmark.season.presets import presets

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
    assert (verdict.conclusion, verdict.cause) == (conclusion, Cause.INTERVAL)
    assert verdict.on_test_set == conclusion
    assert verdict.reason == verdict.tested[0].on_other_images.ground.reason
    half = stats.t.ppf(0.975, 4) * stdev(first) * (2 / 3) ** 0.5
    ends = verdict.tested[0].comparison.interval
    assert ends == pytest.approx((gap - half, gap + half))
    rests_on_p = conclusion in ("reversed", "does not hold: better", "does not hold: worse")
    rests_on_p |= (kind, conclusion) == ("ordered", "holds")
    adjusted_p = verdict.tested[0].on_other_images.adjusted_p
    assert season_claims._p(verdict) == (adjusted_p if rests_on_p else None)


def test_where_less_is_better_the_smaller_one_beats_the_larger(claimed):
    first, second = played("a", around(0.1, 0.01), LESS), played("b", around(0.3, 0.01), LESS)
    there, back = claimed(
        board(first, second), claim("a", "b", metric=LESS), claim("b", "a", metric=LESS)
    )
    assert (there.conclusion, back.conclusion) == ("holds", "reversed")
    assert there.tested[0].comparison.difference == pytest.approx(0.2)


def test_a_claim_on_s_that_hangs_on_its_bins_is_undecided(claimed):
    coarse = [outcome("b", seed, metrics={LESS: 0.3, "one_minus_ks": 0.2}) for seed in range(3)]
    results = board(played("a", around(0.1, 0.01), LESS), standing("b", coarse))
    (verdict,) = claimed(results, claim("a", "b", metric=LESS))
    assert (verdict.conclusion, verdict.on_test_set) == ("undecided", "undecided")
    assert (verdict.cause, verdict.reason) == (Cause.COARSE_BINS, "S of b hangs on its bins")
    assert verdict.tested[0].limit is None


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
        standing(
            name,
            [outcome(name, s, task=task, metrics={MORE: x}) for s, x in enumerate(around(level))],
        )
        for name, level in (("a", 12.0), ("b", 10.0))
    ]
    counted = {"images": 100, "captions": 100, "phrases": 100} | changes
    results = board(*presets, counts={"test": counted})
    for verdict in claimed(results, claim("a", "b"), claim("b", "a")):
        if fewest is None:
            assert verdict.cause == Cause.INTERVAL
        else:
            assert (verdict.conclusion, verdict.on_test_set) == ("undecided", "undecided")
            assert verdict.cause == Cause.FEW_QUERIES
            assert verdict.reason == f"nothing can be concluded from {fewest} test queries"


def test_queries_of_a_direction_that_is_not_retrieved_do_not_count(claimed, monkeypatch):
    monkeypatch.setattr(image_noise, "choices", lambda dataset: 12.0)
    counted = {"images": 12, "captions": 100}
    results = board(played("a", around(12)), played("b", around(9)), counts={"test": counted})
    results.card["ways"] = ["t2i"]
    assert [verdict.conclusion for verdict in claimed(results, claim("a", "b"))] == ["holds"]


class TestFewTrainings:
    def test_one_training_each_decides_nothing(self, claimed):
        (verdict,) = claimed(board(played("a", [15.0]), played("b", [10.0])), claim("a", "b"))
        assert (verdict.conclusion, verdict.cause) == ("undecided", Cause.FEW_SEEDS)
        assert verdict.reason == "1 seed, and no other preset tells how far trainings lie apart"

    def test_one_training_beside_three_takes_too_few_degrees_of_freedom(self, claimed):
        results = board(played("a", [15.0]), played("b", around(10)))
        (verdict,) = claimed(results, claim("a", "b"))
        assert (verdict.conclusion, verdict.cause) == ("undecided", Cause.FEW_SEEDS)

    def test_the_spread_of_enough_others_carries_it(self, claimed):
        others = [played(name, around(5)) for name in "cde"]
        results = board(played("a", [15.0]), played("b", [10.0]), *others)
        (verdict,) = claimed(results, claim("a", "b"))
        assert verdict.conclusion == "holds"
        half = stats.t.ppf(0.975, 6) * 0.1 * 2**0.5
        assert verdict.tested[0].comparison.interval == pytest.approx((5 - half, 5 + half))

    def test_where_nothing_varies_nothing_is_concluded(self, claimed):
        """As a median rank of 6, 6 and 6."""
        results = board(played("a", [7.0] * 3), played("b", [6.0] * 3))
        (verdict,) = claimed(results, claim("a", "b"))
        assert (verdict.conclusion, verdict.cause) == ("undecided", Cause.NO_SPREAD)
        assert verdict.tested[0].comparison.interval is None


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
        assert [pair.comparison.second for pair in verdict.tested] == ["b", "c"]

    def test_one_pair_that_is_reversed_decides(self, claimed):
        verdict = self.judge(claimed, a=around(14), b=around(10), c=around(12))
        assert verdict.conclusion == "reversed"
        assert verdict.reason == "b over c: the interval lies below zero"
        assert [pair.conclusion for pair in verdict.tested] == ["holds", "reversed"]

    def test_one_pair_without_a_difference_denies_it(self, claimed):
        verdict = self.judge(claimed, a=around(14), b=around(10), c=around(9.8))
        assert verdict.conclusion == "no difference beyond the margin"
        assert verdict.reason == "b over c: the interval lies within 1 of zero"

    def test_one_undecided_pair_leaves_it_undecided(self, claimed):
        verdict = self.judge(claimed, a=around(30, 1), b=around(12, 1), c=around(11, 1))
        assert verdict.conclusion == "undecided"
        assert verdict.reason.startswith("b over c: ")


def test_a_single_preset_is_tested_on_a_difference_of_metrics(claimed):
    metrics = [{"mean_matched": x, "mean_unmatched": 0.1} for x in around(0.5, 0.01)]
    preset = standing("a", [outcome("a", seed, metrics=m) for seed, m in enumerate(metrics)])
    made = claim("a", metric="mean_matched - mean_unmatched", printed=[0.9, 0.2])
    (verdict,) = claimed(board(preset), made)
    assert (verdict.conclusion, verdict.tested[0].comparison.second) == ("holds", "")
    assert verdict.tested[0].comparison.difference == pytest.approx(0.4)
    assert verdict.tested[0].printed == pytest.approx(0.7)
    expected = stats.ttest_1samp(around(0.4, 0.01), 0).confidence_interval(0.95)
    assert verdict.tested[0].comparison.interval == pytest.approx(tuple(expected))


def test_a_sentence_about_a_dataset_is_the_same_comparison_elsewhere(claimed):
    results = board(played("a", around(12)), played("b", around(10)), reader="flickr8k")
    made = claim("a", "b", place="flickr30k/test", only_there=True)
    assert [verdict.is_elsewhere for verdict in claimed(results, made)] == [True]
    results.card["reader"] = "flickr30k"
    assert [verdict.is_elsewhere for verdict in claimed(results, made)] == [False]
    general = claim("a", "b", place="mscoco_1k/test")
    assert [verdict.is_elsewhere for verdict in claimed(results, general)] == [False]


def test_a_claim_about_trained_weights_is_not_tested_with_random_ones(claimed):
    facts = {"weights": "random weights"}
    cells = [
        outcome("a", seed, metrics={MORE: value}, text_features=facts)
        for seed, value in enumerate(around(12))
    ]
    results = board(standing("a", cells), played("b", around(10)))
    (verdict,) = claimed(results, claim("a", "b", weights="a trained encoder"))
    assert (verdict.conclusion, verdict.reason) == (
        "not run",
        "a was played with a random text encoder",
    )


def test_a_claim_about_trained_word_vectors_is_not_tested_with_own_ones(claimed):
    def fed(preset: str, level: float, *deviations: str) -> Standing:
        facts = {"deviations": list(deviations)}
        cells = [
            outcome(preset, seed, metrics={MORE: value}, **facts)
            for seed, value in enumerate(around(level))
        ]
        return standing(preset, cells)

    own = "word vectors: trained on the training captions"
    made = claim("a", "b", weights="word vectors of elsewhere")
    (verdict,) = claimed(board(fed("a", 12, own), fed("b", 10)), made)
    assert (verdict.conclusion, verdict.reason) == (
        "not run",
        "a was played with other word vectors",
    )
    (verdict,) = claimed(board(fed("a", 12, own), fed("b", 10, own)), made)
    assert verdict.conclusion == "holds"


def test_a_verdict_warns_of_presets_that_are_not_what_the_paper_has(claimed):
    facts = {"weights": "random weights"}
    cells = [
        outcome("a", seed, metrics={MORE: value}, text_features=facts)
        for seed, value in enumerate(around(12))
    ]
    (verdict,) = claimed(board(standing("a", cells), played("b", around(10))), claim("a", "b"))
    these = "these test images: the interval is for other trainings only"
    assert verdict.cautions == ["random text encoder: a", these]


class TestNotRun:
    def lack(self, claimed, on: Board, made: Claim) -> tuple[Cause, str]:
        (verdict,) = claimed(on, made)
        assert (verdict.conclusion, verdict.on_test_set, verdict.tested) == ("not run",) * 2 + ([],)
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
        expected = (Cause.NOT_MEASURED, "upper bound of b was not measured")
        assert self.lack(claimed, results, claim("a", "b")) == expected

    def test_what_text_vectors_do_needs_those_of_the_paper(self, claimed):
        """Presets of one encoder may be fed another one together; those of two may not."""
        facts = {"text_features": {"encoder": "hglmm_1000"}}
        fed = [outcome("a", s, metrics={MORE: v}, **facts) for s, v in enumerate(around(12))]
        first, made = standing("a", fed, sentence="bilstm_max"), claim("a", "b")
        alike = board(first, played("b", around(10), sentence="bilstm_max"))
        assert [verdict.conclusion for verdict in claimed(alike, made)] == ["holds"]
        expected = (Cause.NOT_PLAYED, "a was played with hglmm_1000")
        other = played("b", around(10), sentence="hglmm")
        assert self.lack(claimed, board(first, other), made) == expected

    def test_methods_may_be_compared_whatever_text_vectors_they_read(self, claimed):
        facts = {"text_features": {"encoder": "hglmm_1000"}, "method": "of vectors"}
        fed = [outcome("a", s, metrics={MORE: v}, **facts) for s, v in enumerate(around(12))]
        results = board(standing("a", fed, sentence="bilstm_max"), played("b", around(10)))
        assert [verdict.conclusion for verdict in claimed(results, claim("a", "b"))] == ["holds"]

    def test_what_networks_do_needs_two_of_them(self, claimed):
        def fed(preset: str, network: str, level: float) -> Standing:
            facts = {"image_features": {"settings": {"network": network}}, "method": "m"}
            cells = [
                outcome(preset, s, metrics={MORE: v}, **facts) for s, v in enumerate(around(level))
            ]
            return standing(preset, cells, network={"a": "resnet50", "b": "vgg19"}[preset])

        made = claim("a", "b")
        apart = board(fed("a", "mobile", 12), fed("b", "squeeze", 10))
        assert [verdict.conclusion for verdict in claimed(apart, made)] == ["holds"]
        alike = board(fed("a", "mobile", 12), fed("b", "mobile", 10))
        expected = (Cause.NOT_PLAYED, "all were played with mobile")
        assert self.lack(claimed, alike, made) == expected


def test_the_values_shown_are_those_that_were_compared(claimed):
    lost = outcome("a", 4, status="failed", reason="the loss is NaN")
    first = standing("a", [*played("a", [9.0, 2.0, 3.0, 4.0]).outcomes, lost])
    (verdict,) = claimed(board(first, played("b", [1.0, 1.5])), claim("a", "b"))
    comparison = verdict.tested[0].comparison
    assert (comparison.firsts, comparison.seconds) == ([9.0, 2.0, 3.0, 4.0], [1.0, 1.5])
    assert comparison.difference == pytest.approx(4.5 - 1.25)


def test_nothing_is_concluded_from_what_did_not_train(claimed):
    """Three times the rsum of random scores is 96 here."""
    results = board(played("a", around(120), "rsum"), played("b", around(90), "rsum"))
    (verdict,) = claimed(results, claim("a", "b", metric="rsum"))
    assert (verdict.conclusion, verdict.cause) == ("undecided", Cause.NEAR_CHANCE)
    assert verdict.reason == "next to nothing was learned by b"
    results = board(played("a", around(120), "rsum"), played("b", around(100), "rsum"))
    (verdict,) = claimed(results, claim("a", "b", metric="rsum"))
    assert verdict.conclusion == "holds"


class TestWhereItWasSaid:
    """What a paper says of 1,000 images of MSCOCO is about the folds, where there are some."""

    def folded(self, preset: str, whole: float, in_folds: float) -> Standing:
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
        assert at_1k.tested[0].comparison.difference == pytest.approx(10.0)
        assert at_1k.claim.metric == "fold_rsum"

    def test_without_folds_it_is_judged_by_the_split(self, claimed):
        (verdict,) = claimed(
            self.board(1), claim("a", "b", metric="rsum", place="mscoco_1k/test", kind="alike")
        )
        assert verdict.claim.metric == "rsum"
        assert verdict.tested[0].comparison.difference == pytest.approx(-10.0)
        assert verdict.tested[0].rule.margin == 6.0

    def test_what_is_not_measured_on_folds_is_judged_by_the_split(self, claimed):
        results = board(played("a", around(12)), played("b", around(10)))
        results.card["folds"] = 5
        (verdict,) = claimed(results, claim("a", "b", place="mscoco_1k/test"))
        assert (verdict.claim.metric, verdict.conclusion) == (MORE, "holds")

    def test_of_a_difference_of_metrics_both_are_of_the_folds(self, claimed):
        metrics = {"i2t_r1": 1.0, "t2i_r1": 2.0, "fold_i2t_r1": 3.0, "fold_t2i_r1": 4.0}
        preset = standing("a", [outcome("a", 0, metrics=metrics)])
        preset.played[0].record.metrics.update(metrics)
        results = board(preset, folds=5)
        made = claim("a", metric="t2i_r1 - i2t_r1", place="mscoco_1k/test")
        assert claims.comparability.metric_at(results, made.place, made.metric) == (
            "fold_t2i_r1 - fold_i2t_r1"
        )

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
    results = board(played("a", around(103.5), "rsum"), played("b", around(100), "rsum"))
    made = claim("a", "b", metric="rsum", kind="alike", printed=[500.0, 498.0])
    (both,) = claimed(results, made)
    assert (both.tested[0].rule.margin, both.conclusion, both.tested[0].printed) == (6, "holds", 2)
    results.card["ways"] = ["t2i"]
    (verdict,) = claimed(results, made)
    assert (verdict.tested[0].rule.margin, verdict.conclusion) == (3.0, "does not hold: better")
    assert verdict.tested[0].printed is None and verdict.printed == [None, None]


def test_a_margin_of_time_is_a_share(claimed):
    """The paper saves 40% of 10: half of that of the 6 here is 1.2."""
    cells = {
        name: [
            outcome(name, seed, seconds={"per_pair": 1e-6 * level})
            for seed, level in enumerate(around(mean, 0.03))
        ]
        for name, mean in (("a", 5.05), ("b", 6))
    }
    results = board(*(standing(name, of) for name, of in cells.items()))
    (verdict,) = claimed(results, claim("a", "b", metric="per_pair", printed=[6.0, 10.0]))
    assert verdict.tested[0].rule.margin == pytest.approx(1.2)
    assert (verdict.conclusion, verdict.tested[0].size) == ("no difference beyond the margin", None)


def test_times_of_unlike_machines_decide_nothing(claimed):
    cells = {
        name: [
            outcome(name, seed, seconds={"per_pair": 1e-6 * level}, numerics={"fingerprint": kind})
            for seed, level in enumerate(around(mean, 0.03))
        ]
        for name, mean, kind in (("a", 3, "x"), ("b", 6, "y"), ("c", 6, "x"))
    }
    results = board(*(standing(name, of) for name, of in cells.items()))
    made = [claim("a", other, metric="per_pair", printed=[6.0, 10.0]) for other in "bc"]
    (unlike,), (alike,) = (claimed(results, of) for of in made)
    assert (unlike.conclusion, unlike.cause) == ("undecided", "unlike machines")
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
    assert verdict.printed == [0.25, 0.75]
    assert verdict.tested[0].printed == 0.5  # less is better: positive, as claimed


def test_the_printed_effect_may_stand_in_the_claim_or_nowhere(claimed):
    results = board(played("a", around(12)), played("b", around(10)))
    there, nowhere = claimed(results, claim("a", "b", printed=[5.0, 7.0]), claim("a", "b"))
    assert there.tested[0].printed == -2.0
    assert nowhere.tested[0].printed is None
    assert nowhere.printed == [None, None]


def test_all_conclusions_are_counted(claimed):
    results = board(*(played(n, around(v)) for n, v in (("a", 14), ("b", 12), ("d", 11.9))))
    made = [claim("a", "b"), claim("a", "c"), claim("b", "a"), claim("b", "d"), claim("c", "a")]
    made += [claim("a", "b", kind="alike"), claim("b", "a", kind="alike")]
    assert counts(claimed(results, *made)) == {
        "holds": 1,
        "reversed": 1,
        "no difference beyond the margin": 1,
        "does not hold: better": 1,
        "does not hold: worse": 1,
        "undecided": 0,
        "not run": 2,
    }


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
            known = verdict.tested and all(t.printed is not None for t in verdict.tested)
            if known and quantity(verdict.claim.metric).unit in ("%", "share", "score"):
                tried += 1
                assert verdict.conclusion == Conclusion.HOLDS, verdict.claim.id
                assert {t.size for t in verdict.tested} <= {"as printed", None}
        assert tried > 80

    @pytest.mark.parametrize("error", [0.02, 0.3, 2.0, 10.0])
    @pytest.mark.parametrize("seed", range(4))
    def test_no_two_contradict_each_other_whatever_the_effects(self, judged, error, seed):
        """Effects of every size and sign, one for each pair of presets and metric."""
        rng, drawn = np.random.default_rng(seed), {}

        def compare(on, first, second, metric):
            names = (first.preset, second.preset if second else "")
            key = (*sorted(names), metric)
            if key not in drawn:
                drawn[key] = rng.choice([-1, 1]) * 10 ** rng.uniform(-2, 2)
            sign = 1 if names == key[:2] else -1
            return self.made(first, second, metric, sign * drawn[key], error)

        allowed: dict[tuple, list[tuple[float, float]]] = {}
        for verdict in judged(compare):
            for pair in verdict.tested:
                names = (pair.comparison.first, pair.comparison.second)
                key = (*sorted(names), pair.comparison.metric)
                for finding in (pair.on_other_images, pair.on_test_set):
                    low, high = pair.rule.allowed(finding.conclusion)
                    ends = (low, high) if names == key[:2] else (-high, -low)
                    allowed.setdefault(key, []).append(ends)
        assert max(map(len, allowed.values())) >= 4
        for key, ranges in allowed.items():
            assert max(low for low, _ in ranges) < min(high for _, high in ranges), key

"""The verdict in a few lines, of made-up boards whose numbers are worked out by hand."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import builders
import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from benchmark.analysis.boards import Board, Outcome, Standing
from benchmark.analysis.claims import Verdict
from benchmark.analysis.grounds import Cause
from benchmark.analysis.verdict_rules import Conclusion, Limit
from benchmark.papers.own_claims import OWN
from benchmark.papers.printed_tables import Claim
from benchmark.report.costs import training_seconds
from benchmark.report.pages.summary import NOT_COMPARED, budget, sentences

IMAGES, EACH = 40, 2
CAPTIONS = IMAGES * EACH
THESE = "95% over test images, these trainings only:"
PERFECT, POOR = 0, 20  # rank of every query: an rsum of 600, and of 0


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """The prepared dataset."""
    monkeypatch.chdir(tmp_path)
    builders.prepare("flickr30k", np.repeat(np.arange(IMAGES), EACH))


def outcome(preset: str, seed: int, rank: int | None, **facts: object) -> Outcome:
    """A cell all of whose queries have this rank; None: it failed. `noisy`: but those of a few
    images, of one more with every other seed."""
    ranks = {} if rank is None else {"i2t": np.full(IMAGES, rank), "t2i": np.full(CAPTIONS, rank)}
    for way, ranks_Q in ranks.items() if facts.get("noisy") else ():
        ranks_Q[: (2 + seed % 2) * (EACH if way == "t2i" else 1)] = PERFECT + POOR - rank
    scores = {"overlap_s": facts.get("overlap", 0.3), "one_minus_ks": facts.get("bound", 0.4)}
    return builders.outcome(
        preset,
        seed,
        ranks=ranks,
        seconds={"per_image": facts.get("per_image", 1e-3), "per_pair": 1e-5},
        training=facts.get("training", [9.0]),
        dataset="flickr30k",
        images=IMAGES,
        captions=CAPTIONS,
        deviations=facts.get("deviations", ["cnn"]),
        status="failed" if rank is None else "ok",
        metrics=scores,
    )


def standing(preset: str, *ranks: int | None, title: str = "", **facts: object) -> Standing:
    """One seed per rank."""
    outcomes = [outcome(preset, seed, rank, **facts) for seed, rank in enumerate(ranks)]
    return builders.standing(preset, outcomes, title or preset.upper())


def board(*standings: Standing) -> Board:
    card = {"split": "karpathy", "reader": "flickr30k"}
    return builders.board(*standings, dataset="flickr30k", **card)


def verdict(
    conclusion: str,
    statement: str = "A beats B.",
    cause: Cause = Cause.INTERVAL,
    limit: Limit | None = None,
) -> Verdict:
    claim = Claim(id="c", statement=statement, where="w", metric="rsum", presets=["a", "b"])
    return Verdict(
        paper="scan",
        claim=claim,
        conclusion=Conclusion(conclusion),
        on_test_set=Conclusion(conclusion),
        cause=cause,
        reason="",
        is_elsewhere=False,
        printed=[],
        tested=[
            SimpleNamespace(
                limit=limit,
                conclusion=Conclusion(conclusion),
                comparison=SimpleNamespace(difference=1.0),
            )
        ],
        cautions=[],
    )


def line(start: str, lines: list[str]) -> str:
    (line,) = [line for line in lines if line.startswith(start)]
    return line


def test_there_are_seven_lines_where_everything_happened():
    judged = [verdict("holds"), verdict("reversed"), verdict("undecided")]
    lines = sentences(board(standing("a", PERFECT), standing("b", POOR, None)), judged)
    assert len(lines) == 7
    assert all(lines) and not any("\n" in line for line in lines)


def test_where_nothing_happened_there_are_fewer_and_none_is_empty():
    lines = sentences(board(standing("a", PERFECT)), [])
    assert 0 < len(lines) < 7
    assert all(lines)


def test_without_any_result_that_is_said_and_nothing_else():
    first, second = sentences(board(standing("a", None, None), standing("b", None)), [])
    assert first == "No preset has a result."
    assert "3 of 3" in second and "(datasets/flickr30k.md)" in second


class TestSmallTestSets:
    FEW = "Nothing can be concluded from 99 test queries: 100 are needed in every direction."

    def small(self, *standings: Standing, **changes: int) -> list[str]:
        counted = {"images": 100, "captions": 100, "phrases": 100} | changes
        few = board(*standings)
        few.card["counts"] = {"test": counted}
        return sentences(few, [verdict("undecided", cause=Cause.FEW_QUERIES)])

    @pytest.mark.parametrize("kind", ["images", "captions"])
    def test_that_is_said_first_and_no_winner_is_named(self, kind):
        lines = self.small(standing("a", PERFECT), standing("poor", POOR), **{kind: 99})
        assert lines[0] == self.FEW
        assert not [line for line in lines if line.startswith(("Best", "Matched", "Undecided"))]

    def test_of_phrases_it_is_said_of_phrases(self):
        presets = standing("a", PERFECT), localiser("p", 20), localiser("q", 1)
        lines = self.small(*presets, phrases=99)
        assert lines[0] == (
            "On localising phrases, nothing can be concluded from 99 test queries: 100 are needed."
        )
        assert not [line for line in lines if line.startswith("Best at")]
        assert line("Best:", lines)

    def test_a_hundred_are_enough(self):
        assert self.small(standing("a", PERFECT))[0].startswith("Best:")

    def test_a_task_that_is_not_played_needs_no_queries(self):
        assert self.small(standing("a", PERFECT), phrases=0)[0].startswith("Best:")


class TestBest:
    def presets(self, seeds: int = 3, **ranks: int) -> list[Standing]:
        return [standing(name, *[rank] * seeds, noisy=True) for name, rank in ranks.items()]

    def test_it_stands_with_its_interval_and_those_who_cannot_be_told_apart_from_it(self):
        standings = board(*self.presets(poor=POOR, a=PERFECT, b=PERFECT))
        best = line("Best:", sentences(standings, []))
        assert re.search(r"\*\*A\*\*, rsum 565.0 \(95% interval \[4\d\d.\d,.5\d\d.\d\]\)", best)
        assert "; the best with a probability of 50%" in best
        assert best.endswith(", unadjusted; not distinguishable from it: B.")

    def test_of_one_training_the_interval_says_so(self):
        best = line("Best:", sentences(board(*self.presets(1, a=PERFECT)), []))
        assert re.fullmatch(
            r"Best: \*\*A\*\*, rsum 570.0 \(" + THESE + r" \[\d+.\d,.\d+.\d\]\)\.", best
        )

    def test_one_that_all_others_are_told_apart_from_stands_alone(self):
        best = line("Best:", sentences(board(*self.presets(poor=POOR, a=PERFECT)), []))
        assert best.endswith(
            "; the best with a probability of >99%; every other preset is distinguishable from it."
        )
        best = line("Best:", sentences(board(*self.presets(1, poor=POOR, a=PERFECT)), []))
        assert best.endswith(f"; {NOT_COMPARED}.")

    def test_where_there_is_one_preset_there_are_no_others(self):
        best = line("Best:", sentences(board(standing("a", PERFECT)), []))
        assert "**A**" in best and "other" not in best and "distinguishable" not in best

    def test_it_is_the_mean_over_the_seeds_that_ranks(self):
        standings = board(standing("a", PERFECT, POOR), standing("b", PERFECT, None, PERFECT))
        assert "**B**, rsum 600.0" in line("Best:", sentences(standings, []))

    def test_of_many_that_are_alike_six_are_named(self):
        alike = self.presets(**dict.fromkeys("abcdefghi", PERFECT))
        best = line("Best:", sentences(board(*alike), []))
        assert "B; C; D; E and 4 more." in best


def localiser(preset: str, hits: int, *, seeds: int = 1) -> Standing:
    """Of 40 phrases, one an image, so many are right at once and the others never."""
    builders.write_regions(Path("data/prepared/flickr30k"), builders.ids("i", range(IMAGES)))
    ranks = {"p2r": np.repeat([PERFECT, POOR], [hits, IMAGES - hits])}
    limits = {"p2r_bound": 90.0, "p2r_chance_r1": 7.5}
    facts = {"dataset": "flickr30k", "task": "localisation", "deviations": ["cnn"]}
    outcomes = [
        builders.outcome(preset, seed, ranks=ranks, metrics=limits, **facts)
        for seed in range(seeds)
    ]
    return builders.standing(preset, outcomes, preset.upper())


class TestLocalising:
    def test_the_best_stands_with_its_interval_chance_and_bound(self):
        """20 of 40 images: about 50 -+ 1.96 sqrt(0.25 / 40) = 50 -+ 15.5"""
        standings = board(standing("a", POOR), localiser("p", 20), localiser("q", 1))
        told = line("Best at", sentences(standings, []))
        assert told.startswith("Best at localising phrases: **P**, R@1 50.0 (" + THESE)
        low, high = map(float, re.search(r"\[(.+),\N{NO-BREAK SPACE}(.+?)\]", told).groups())
        assert (low, high) == pytest.approx((34.5, 65.5), abs=3)
        assert told.endswith(f"; by chance 7.5, at most 90.0); {NOT_COMPARED}.")
        best = line("Best:", sentences(standings, []))
        low, high = map(float, re.search(r"\[(.+),\N{NO-BREAK SPACE}(.+?)\]", best).groups())
        assert "**A**, rsum 0.0" in best and low == 0 < high

    def test_those_who_cannot_be_told_apart_are_named(self):
        standings = board(localiser("p", 20, seeds=3), localiser("q", 19, seeds=3))
        assert line("Best at", sentences(standings, [])).endswith("not distinguishable from it: Q.")

    def test_where_nothing_but_phrases_was_asked_nothing_else_is_told(self):
        lines = sentences(board(localiser("p", 20)), [])
        starts = [line.split()[0] for line in lines]
        assert starts == ["Best", "None", "Printed"]

    def test_where_no_phrase_was_asked_nothing_is_told(self):
        assert "localising" not in " ".join(sentences(board(standing("a", PERFECT)), []))


class TestCheapest:
    def test_a_query_is_encoded_once_and_scored_with_every_caption(self):
        """1 ms and 80 times 0.01 ms; the other takes 2 ms and the same."""
        standings = board(standing("a", PERFECT, per_image=2e-3), standing("b", POOR))
        cheapest = line("Cheapest", sentences(standings, []))
        assert "fastest with B (1.80 ms, rsum 0.0)" in cheapest

    def test_a_training_costs_what_it_goes_on_from_too(self):
        """100 and 20 s: the network that was trained for 20 s alone is no cheaper one."""
        start = standing("a", POOR, training=[100.0])
        of = [outcome("b", 0, PERFECT, training=[20.0])]
        further = builders.standing("b", of, title="B", start="a")
        drawn = board(start, further, standing("c", POOR, training=[90.0]))
        assert training_seconds(drawn, further) == 120.0
        assert "to train: C (90 s" in line("Cheapest", sentences(drawn, []))

    def test_where_only_captions_are_queries_each_is_scored_with_every_image(self):
        """2 ms and 40 times 0.01 ms, instead of 1 ms and 80 times."""
        both = outcome("p", 0, PERFECT)
        both = replace(both, scoring=builders.cost(per_image=1e-3, per_caption=2e-3, per_pair=1e-5))
        only = {k: v for k, v in both.record.metrics.items() if not k.startswith("i2t")}
        captions = replace(both, record=both.record.model_copy(update={"metrics": only}))
        for played, milliseconds in ((both, "1.80"), (captions, "2.40")):
            preset = builders.standing("p", [played], "P")
            both_presets = board(preset, standing("slow", POOR, per_image=9.0))
            assert f"with P ({milliseconds} ms," in line("Cheapest", sentences(both_presets, []))

    def test_training_is_all_trainings_together_and_the_least_of_all_is_named(self):
        """0.04 s is kept as 0.0 s, and is less than all others."""
        standings = board(
            standing("a", PERFECT, training=[30.0, 31.0]),
            standing("b", POOR, training=[40.0]),
            standing("c", POOR, training=[0.0]),
        )
        cheapest = line("Cheapest", sentences(standings, []))
        assert "to train: C (0 s, rsum 0.0)" in cheapest
        standings = board(standing("d", PERFECT, training=[3.0, 4.0]), standing("e", POOR))
        assert "to train: D (7 s, rsum 600.0)" in line("Cheapest", sentences(standings, []))

    def test_times_closer_than_a_tenth_are_a_tie(self):
        times = {"a": 10.0, "b": 10.9, "c": 11.2}
        standings = board(*(standing(name, POOR, training=[t]) for name, t in times.items()))
        cheapest = line("Cheapest", sentences(standings, []))
        assert "to train: A (10 s, rsum 0.0); B (11 s, rsum 0.0)." in cheapest

    def test_of_the_times_of_the_seeds_the_median_counts(self):
        played = [outcome("p", seed, POOR, training=[t]) for seed, t in enumerate((1.0, 5.0, 99.0))]
        preset = builders.standing("p", played, "P")
        slower = standing("slow", POOR, training=[9.0])
        lines = sentences(board(preset, slower), [])
        assert "to train: P (5 s," in line("Cheapest", lines)

    @pytest.mark.parametrize("what", ["threads", "workers"])
    def test_what_was_timed_with_other_threads_or_workers_is_not_compared(self, what):
        timed = outcome("p", 0, POOR)
        slow = replace(timed, scoring=timed.scoring.model_copy(update={what: 7}))
        both = board(standing("a", POOR), builders.standing("p", [slow], "P"))
        assert not [told for told in sentences(both, []) if told.startswith("Cheapest")]

    def test_what_another_kind_of_processor_timed_is_not_compared(self):
        """It computes other bytes, as its fingerprint says."""
        timed = outcome("p", 0, POOR, training=[1.0])
        numerics = {"mode": "intel", "threads": 1, "fingerprint": "ab12"}
        other = replace(timed, record=timed.record.model_copy(update={"numerics": numerics}))
        alike = [standing(name, POOR, training=[t]) for name, t in (("a", 9.0), ("b", 8.0))]
        standings = board(*alike, builders.standing("p", [other], "P"))
        cheapest = line("Cheapest", sentences(standings, []))
        assert cheapest.startswith("Cheapest, of the 2 presets that were timed alike: ")
        assert "to train: B (8 s, rsum 0.0)." in cheapest


class TestClaims:
    def lines(self, *judged: Verdict) -> list[str]:
        return sentences(board(standing("a", PERFECT)), list(judged))

    def claims(self, lines: list[str]) -> str:
        (line,) = [line for line in lines if "(claims.md)" in line]
        return line

    def test_they_are_counted(self):
        judged = ["holds"] * 3 + ["reversed"] * 2 + ["undecided"] * 4 + ["not run"] * 5
        counted = self.claims(self.lines(*map(verdict, judged)))
        assert "14 claims" in counted
        assert "3 hold, 2 are reversed, 4 are undecided, 5 were not run" in counted

    def test_one_is_one(self):
        judged = ["holds", "does not hold: better", "undecided", "not run"]
        counted = self.claims(self.lines(*map(verdict, judged)))
        assert "1 holds, 1 claims no gain where there is one, 1 is undecided, 1 was" in counted

    def test_own_ones_come_first_with_why_their_presets_may_share_a_group(self):
        own = replace(verdict("holds", limit=Limit(1, 100)), paper=OWN)
        of_papers = [verdict("reversed"), verdict("not run")]
        said = self.claims(self.lines(*of_papers, own))
        assert said.startswith(
            "Of the season's own claims, 1 holds; of the papers' 2 claims, 1 is reversed, "
            "1 was not run: [claims](claims.md). Own claims are adjusted for each other only"
        )
        assert "adjusted" not in self.claims(self.lines(*of_papers))
        untested = self.claims(self.lines(verdict("not run"), replace(own, tested=[])))
        assert "; none of the papers' claims was tested: " in untested
        assert "adjusted" not in untested

    def test_those_that_fail_are_named_and_from_the_fifth_on_counted(self):
        kinds = ["reversed", "does not hold: worse"] * 4
        judged = [verdict(kind, f"Failing {n}.") for n, kind in enumerate(kinds)]
        judged += [verdict("holds", "Kept."), verdict("not run", "Not.")]
        judged += [verdict("no difference beyond the margin", "Equal.")]
        lines = self.lines(*judged)
        named = "; ".join(f"Failing {n}" for n in range(4))
        assert line("Not holding", lines) == f"Not holding: {named} and 4 more."
        assert line("No difference", lines) == "No difference beyond the margin: Equal."
        assert "Not." not in " ".join(lines) and "Kept" not in " ".join(lines)

    def test_of_the_undecided_it_says_what_would_decide_them(self):
        judged = [
            verdict("undecided", cause=Cause.FEW_SEEDS),
            verdict("undecided", limit=Limit(3, 2000)),
            verdict("undecided", limit=Limit(None, 2000)),
            verdict("undecided", limit=Limit(None, None)),
        ]
        lines = self.lines(*judged)
        assert line("Undecided", lines) == (
            "Undecided claims: 4; more seeds would decide 1, only more images 1, "
            "a second training is missing for 1, neither alone decides 1."
        )
        assert not [line for line in lines if line.startswith(("Holding", "Not holding"))]

    def test_where_none_is_undecided_nothing_is_told_of_them(self):
        assert not [line for line in self.lines(verdict("holds")) if line.startswith("Undecided")]


def test_the_budget_counts_every_training_once():
    played = standing("a", PERFECT, PERFECT, training=[5400.0])
    history = pd.DataFrame({"epoch": [1, 2]})
    own = [
        replace(played.outcomes[0], history=history),
        replace(played.outcomes[1], history=history),
    ]
    fused = standing("fused", PERFECT, training=[5400.0, 5400.0])  # of members, which are counted
    said = budget(board(replace(played, outcomes=own), fused))
    assert said.startswith("Budget: 2 epochs, 1 to 2 seeds of a preset; ")
    assert "; 2 trainings took 3.0 hours, one after the other." in said


class TestPrinted:
    def test_other_features_make_them_orientation(self):
        lines = sentences(board(standing("scan_t2i_avg", PERFECT)), [])
        assert line("Printed", lines).startswith("Printed numbers are for orientation: no paper")

    def test_presets_that_a_paper_measured_alike_are_counted(self):
        own = standing("scan_t2i_avg", PERFECT, deviations=[])
        lines = sentences(board(own, standing("made_up", POOR, deviations=[])), [])
        assert line("Printed", lines).endswith("compared with ours for 1 preset.")
        other = standing("scan_i2t_avg", PERFECT, deviations=[])
        lines = sentences(board(own, other), [])
        assert line("Printed", lines).endswith("compared with ours for 2 presets.")


def test_cells_without_a_result_are_counted_with_the_way_to_the_reasons():
    lines = sentences(board(standing("a", PERFECT, None), standing("b", None)), [])
    assert line("Cells", lines).startswith("Cells without a result: 2 of 3")
    assert "(datasets/flickr30k.md)" in line("Cells", lines)
    lines = sentences(board(standing("c", PERFECT)), [])
    assert not [text for text in lines if text.startswith("Cells")]


def test_titles_and_statements_stay_text():
    hostile = "1. a | b <script>x</script> ](http://evil.example) `c` **d**"
    alike = [standing(name, PERFECT, title=hostile) for name in "ab"]
    judged = [verdict(word, hostile) for word in ("holds", "reversed")]
    lines = sentences(board(*alike), judged)
    assert sum("script" in text for text in lines) >= 3
    parser = MarkdownIt("commonmark").enable("table")
    for number, text in enumerate(lines):
        tokens = parser.parse(f"{number}. {text}\n")
        (inline,) = [token for token in tokens if token.type == "inline"]
        kinds = {child.type for child in inline.children}
        assert kinds <= {"text", "strong_open", "strong_close", "link_open", "link_close"}
        hrefs = {child.attrs["href"] for child in inline.children if child.type == "link_open"}
        assert hrefs <= {"claims.md", "datasets/flickr30k.md"}
        if "script" in text:
            shown = "".join(child.content for child in inline.children)
            assert hostile in shown

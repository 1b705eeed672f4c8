"""The verdict in ten lines, of made-up boards whose numbers are worked out by hand."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from benchmark.analysis.boards import Board, Outcome, Standing
from benchmark.analysis.claims import Verdict
from benchmark.core.files import write_json
from benchmark.core.provenance import Provenance
from benchmark.core.records import Record
from benchmark.papers.printed_tables import Claim
from benchmark.protocol import rules
from benchmark.report.pages.summary import lines
from benchmark.season.presets import Preset

IMAGES, EACH = 40, 2
CAPTIONS = IMAGES * EACH
PERFECT, POOR = 0, 20  # rank of every query: an rsum of 600, and of 0


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """The prepared dataset."""
    monkeypatch.chdir(tmp_path)
    folder = Path("data/prepared/flickr30k")
    folder.mkdir(parents=True)
    ids = [f"i{n}" for n in range(IMAGES)]
    images = {"image_id": ids, "split": "test", "group": ids}
    captions = {
        "caption_id": [f"c{n}" for n in range(CAPTIONS)],
        "image_id": np.repeat(images["image_id"], EACH),
        "split": "test",
    }
    pd.DataFrame(images).to_parquet(folder / "images.parquet")
    pd.DataFrame(captions).to_parquet(folder / "captions.parquet")
    pd.DataFrame({"image_id": []}).to_parquet(folder / "regions.parquet")
    write_json(folder / "card.json", {})


def outcome(preset: str, seed: int, rank: int | None, **facts: object) -> Outcome:
    """A cell all of whose queries have this rank; None: it failed."""
    folder = Path(f"results/{preset}/{seed}")
    folder.mkdir(parents=True)
    ranks = {} if rank is None else {"i2t": np.full(IMAGES, rank), "t2i": np.full(CAPTIONS, rank)}
    ids = {"i2t": [f"i{n}" for n in range(IMAGES)], "t2i": [f"c{n}" for n in range(CAPTIONS)]}
    frames = [
        pd.DataFrame({"direction": way, "query": ids[way], "rank": found})
        for way, found in ranks.items()
    ]
    if frames:
        pd.concat(frames).to_parquet(folder / "scores/ranks.parquet")
    metrics = {"overlap_s": facts.get("overlap", 0.3), "one_minus_ks": facts.get("bound", 0.4)}
    record = Record(
        protocol_version=rules.VERSION,
        season="try",
        dataset="flickr30k",
        split="made/test",
        images=IMAGES,
        captions=CAPTIONS,
        manifest_sha256="m",
        preset=preset,
        method="scan",
        family="paper",
        seed=seed,
        options={},
        scaled=[],
        image_features={},
        text_features={},
        deviations=facts.get("deviations", ["cnn"]),
        parameters=1,
        selected_epoch=1,
        status="ok" if ranks else "failed",
        metrics=rules.retrieval_metrics(ranks) | metrics if ranks else {},
    )
    return Outcome(
        folder=folder,
        record=record,
        trainings=tuple(cost(training=s) for s in facts.get("training", [9.0])),
        scoring=cost(per_image=facts.get("per_image", 1e-3), per_pair=1e-5),
        history=None,
    )


def cost(**seconds: float) -> Provenance:
    return Provenance(
        git_commit="",
        packages={},
        machine="",
        device="cpu",
        threads=1,
        seconds=seconds,
        peak_memory_mib=0.0,
        peak_device_memory_mib=None,
    )


def standing(preset: str, *ranks: int | None, title: str = "", **facts: object) -> Standing:
    """A seed a rank."""
    outcomes = [outcome(preset, seed, rank, **facts) for seed, rank in enumerate(ranks)]
    return Standing(preset=preset, row=Preset(title=title or preset.upper()), outcomes=outcomes)


def board(*standings: Standing) -> Board:
    return Board(
        dataset="flickr30k",
        card={"split": "karpathy", "reader": "flickr30k"},
        standings=list(standings),
    )


def verdict(word: str, statement: str = "A beats B.", leans: str = "", reason: str = "") -> Verdict:
    claim = Claim(id="c", statement=statement, where="w", metric="rsum", presets=["a", "b"])
    return Verdict(
        paper="scan",
        claim=claim,
        margin=0.0,
        verdict=word,
        reason=reason,
        leans=leans,
        printed=[],
        tested=[],
    )


def line(start: str, found: list[str]) -> str:
    (one,) = [line for line in found if line.startswith(start)]
    return one


def test_there_are_ten_lines_where_everything_happened():
    judged = [verdict("holds"), verdict("does not hold"), verdict("undecided")]
    found = lines(board(standing("a", PERFECT), standing("b", POOR, None)), judged)
    assert len(found) == 10
    assert all(found) and not any("\n" in one for one in found)


def test_where_nothing_happened_there_are_fewer_and_none_is_empty():
    found = lines(board(standing("a", PERFECT)), [])
    assert 0 < len(found) < 10
    assert all(found)


def test_without_any_result_that_is_said_and_nothing_else():
    first, second = lines(board(standing("a", None, None), standing("b", None)), [])
    assert first == "No preset has a result."
    assert "3 of 3" in second and "(datasets/flickr30k.md)" in second


class TestBest:
    def test_it_stands_with_its_interval_and_those_who_cannot_be_told_apart_from_it(self):
        found = board(standing("poor", POOR), standing("a", PERFECT), standing("b", PERFECT))
        best = line("Best", lines(found, []))
        assert "**A**, rsum 600.0" in best
        assert "[600.0,\N{NO-BREAK SPACE}600.0]" in best
        assert "not told apart from it: B." in best
        assert "POOR" not in best

    def test_one_that_all_others_are_told_apart_from_stands_alone(self):
        found = board(standing("poor", POOR), standing("a", PERFECT))
        best = line("Best", lines(found, []))
        assert best.endswith("every other preset is told apart from it.")

    def test_where_there_is_one_preset_there_are_no_others(self):
        best = line("Best", lines(board(standing("a", PERFECT)), []))
        assert "**A**" in best and "other" not in best and "apart" not in best

    def test_it_is_the_mean_over_the_seeds_that_ranks(self):
        found = board(standing("a", PERFECT, POOR), standing("b", PERFECT, None, PERFECT))
        assert "**B**, rsum 600.0" in line("Best", lines(found, []))

    def test_of_many_that_are_alike_six_are_named(self):
        alike = [standing(name, PERFECT) for name in "abcdefghi"]
        best = line("Best", lines(board(*alike), []))
        assert "B, C, D, E, F, G and 2 more." in best


def localiser(preset: str, hits: int, *, seeds: int = 1) -> Standing:
    """Of 40 phrases, one an image, so many are right at once and the others never."""
    Path("data/prepared/flickr30k").mkdir(parents=True, exist_ok=True)
    owners = {"phrase_id": [f"p{n}" for n in range(IMAGES)]}
    owners["image_id"] = [f"i{n}" for n in range(IMAGES)]
    pd.DataFrame(owners).to_parquet("data/prepared/flickr30k/regions.parquet")
    ranks = np.repeat([PERFECT, POOR], [hits, IMAGES - hits])
    share = 100 * hits / IMAGES
    metrics = dict.fromkeys(("p2r_r1", "p2r_r5", "p2r_r10"), share)
    metrics |= {"rsum": 3 * share, "p2r_bound": 90.0, "p2r_chance_r1": 7.5}
    cells = []
    for seed in range(seeds):
        found = outcome(preset, seed, PERFECT)
        frame = pd.DataFrame({"direction": "p2r", "query": owners["phrase_id"], "rank": ranks})
        frame.to_parquet(found.folder / "scores/ranks.parquet")
        told = found.record.model_copy(update={"task": "localisation", "metrics": metrics})
        cells.append(replace(found, record=told))
    return Standing(preset=preset, row=Preset(title=preset.upper()), outcomes=cells)


class TestLocalising:
    def test_the_best_stands_with_its_interval_chance_and_bound(self):
        """20 of 40 images: 50 -+ 1.96 sqrt(0.25 / 40) = 50 -+ 15.5"""
        found = board(standing("a", POOR), localiser("p", 20), localiser("q", 1))
        told = line("Localises", lines(found, []))
        assert told.startswith("Localises phrases best: **P**, R@1 50.0 (95% interval [")
        low, high = map(float, re.search(r"\[(.+),\N{NO-BREAK SPACE}(.+?)\]", told).groups())
        assert (low, high) == pytest.approx((34.5, 65.5), abs=3)
        assert told.endswith(
            "; by chance 7.5, at most 90.0); every other preset is told apart from it."
        )
        best = line("Best", lines(found, []))
        assert "**A**, rsum 0.0" in best and best.endswith("[0.0,\N{NO-BREAK SPACE}0.0]).")

    def test_those_who_cannot_be_told_apart_are_named(self):
        found = board(localiser("p", 20), localiser("q", 19))
        assert line("Localises", lines(found, [])).endswith("not told apart from it: Q.")

    def test_where_nothing_but_phrases_was_asked_nothing_else_is_told(self):
        found = lines(board(localiser("p", 20)), [])
        starts = [one.split()[0] for one in found]
        assert starts == ["Localises", "Of", "Printed", "Presets", "Cells"]

    def test_where_no_phrase_was_asked_nothing_is_told(self):
        assert "Localises" not in " ".join(lines(board(standing("a", PERFECT)), []))


class TestCheapest:
    def test_a_query_is_encoded_once_and_scored_with_every_caption(self):
        """1 ms and 80 times 0.01 ms; the other takes 2 ms and the same."""
        found = board(standing("a", PERFECT, per_image=2e-3), standing("b", POOR))
        cheapest = line("Cheapest", lines(found, []))
        assert "the least with B (1.8 ms, rsum 0.0)" in cheapest

    def test_where_only_captions_are_queries_each_is_scored_with_every_image(self):
        """2 ms and 40 times 0.01 ms, instead of 1 ms and 80 times."""
        one = outcome("p", 0, PERFECT)
        one = replace(one, scoring=cost(per_image=1e-3, per_caption=2e-3, per_pair=1e-5))
        only = {k: v for k, v in one.record.metrics.items() if not k.startswith("i2t")}
        told = replace(one, record=one.record.model_copy(update={"metrics": only}))
        for found, milliseconds in ((one, "1.8"), (told, "2.4")):
            preset = Standing(preset="p", row=Preset(title="P"), outcomes=[found])
            assert f"with P ({milliseconds} ms," in line("Cheapest", lines(board(preset), []))

    def test_training_is_all_trainings_together_and_a_preset_without_has_none(self):
        found = board(
            standing("a", PERFECT, training=[30.0, 31.0]),
            standing("b", POOR, training=[40.0]),
            standing("c", POOR, training=[0.0]),
        )
        cheapest = line("Cheapest", lines(found, []))
        assert "training with B (40 s, rsum 0.0)" in cheapest
        found = board(standing("d", PERFECT, training=[3.0, 4.0]), standing("e", POOR))
        assert "training with D (7 s, rsum 600.0)" in line("Cheapest", lines(found, []))

    def test_where_nothing_was_trained_there_still_is_a_line(self):
        found = board(standing("a", PERFECT, training=[0.0]))
        assert "A (0 s" in line("Cheapest", lines(found, []))


class TestClaims:
    def told(self, *judged: Verdict) -> list[str]:
        return lines(board(standing("a", PERFECT)), list(judged))

    def claims(self, found: list[str]) -> str:
        (one,) = [line for line in found if "(claims.md)" in line]
        return one

    def test_they_are_counted(self):
        judged = ["holds"] * 3 + ["does not hold"] * 2 + ["undecided"] * 4 + ["not run"] * 5
        counted = self.claims(self.told(*map(verdict, judged)))
        assert "14 claims" in counted
        assert "3 hold, 2 do not hold, 4 are undecided, 5 were not run" in counted

    def test_one_is_one(self):
        judged = ["holds", "does not hold", "undecided", "not run"]
        counted = self.claims(self.told(*map(verdict, judged)))
        assert "1 holds, 1 does not hold, 1 is undecided, 1 was not run" in counted

    def test_those_with_a_verdict_are_named_and_from_the_seventh_on_counted(self):
        judged = [verdict("holds", f"Holding {n}.") for n in range(8)]
        judged += [verdict("does not hold", "Failing."), verdict("not run", "Unplayed.")]
        found = self.told(*judged)
        named = "; ".join(f"Holding {n}" for n in range(6))
        assert line("Holding", found) == f"Holding: {named} and 2 more."
        assert line("Not holding", found) == "Not holding: Failing."
        assert "Unplayed" not in " ".join(found)

    def test_of_the_undecided_it_is_told_what_they_lean_to_and_what_they_lack(self):
        few = "1 seed, 3 are needed"
        judged = [
            verdict("undecided", leans="holds", reason=few),
            verdict("undecided", leans="does not hold", reason="the interval covers zero"),
            verdict("undecided", reason=f"a over b: {few}"),
        ]
        found = self.told(*judged)
        told = "Undecided claims: 3, leaning to holding: 1, with too few seeds for a verdict: 2."
        assert told in found
        assert not [one for one in found if one.startswith(("Holding", "Not holding"))]

    def test_where_none_is_undecided_nothing_is_told_of_them(self):
        assert not [one for one in self.told(verdict("holds")) if one.startswith("Undecided")]


class TestPrinted:
    def test_other_features_make_them_orientation(self):
        found = lines(board(standing("scan_t2i_avg", PERFECT)), [])
        assert line("Printed", found).startswith("Printed numbers stand beside ours")

    def test_presets_that_a_paper_measured_alike_are_counted(self):
        own = standing("scan_t2i_avg", PERFECT, deviations=[])
        found = lines(board(own, standing("made_up", POOR, deviations=[])), [])
        assert line("Printed", found).endswith("compared with ours for 1 preset.")
        other = standing("scan_i2t_avg", PERFECT, deviations=[])
        found = lines(board(own, other), [])
        assert line("Printed", found).endswith("compared with ours for 2 presets.")


class TestOverlap:
    def test_the_least_is_named_but_none_whose_bins_are_too_coarse(self):
        found = board(
            standing("a", PERFECT, overlap=0.5, bound=0.6),
            standing("b", POOR, overlap=0.1234, bound=0.2),
            standing("coarse", POOR, overlap=0.05, bound=0.01),
        )
        assert line("Matched", lines(found, [])).endswith("least with B: S = 0.123.")

    def test_where_all_are_too_coarse_nothing_is_told(self):
        found = lines(board(standing("a", PERFECT, overlap=0.5, bound=0.1)), [])
        assert not [one for one in found if one.startswith("Matched")]


class TestSeeds:
    def test_three_are_enough_and_failed_ones_do_not_count(self):
        three = standing("a", PERFECT, PERFECT, PERFECT)
        lost = standing("b", POOR, POOR, None)
        told = line("Presets played", lines(board(three, lost), []))
        assert "with 3 seeds or more: 1 of 2; of the others" in told

    def test_where_all_have_enough_there_are_no_others(self):
        told = line("Presets played", lines(board(standing("a", *[PERFECT] * 3)), []))
        assert told == "Presets played with 3 seeds or more: 1 of 1."


def test_cells_without_a_result_are_counted_with_the_way_to_the_reasons():
    found = lines(board(standing("a", PERFECT, None), standing("b", None)), [])
    assert line("Cells", found).startswith("Cells without a result: 2 of 3")
    assert "(datasets/flickr30k.md)" in line("Cells", found)
    assert line("Cells", lines(board(standing("c", PERFECT)), [])) == "Cells with a result: all 1."


def test_titles_and_statements_stay_text():
    hostile = "1. a | b <script>x</script> ](http://evil.example) `c` **d**"
    alike = [standing(name, PERFECT, title=hostile) for name in "ab"]
    judged = [verdict(word, hostile) for word in ("holds", "does not hold")]
    found = lines(board(*alike), judged)
    assert sum("script" in one for one in found) >= 5
    parser = MarkdownIt("commonmark").enable("table")
    for number, one in enumerate(found):
        tokens = parser.parse(f"{number}. {one}\n")
        (inline,) = [token for token in tokens if token.type == "inline"]
        kinds = {child.type for child in inline.children}
        assert kinds <= {"text", "strong_open", "strong_close", "link_open", "link_close"}
        hrefs = {child.attrs["href"] for child in inline.children if child.type == "link_open"}
        assert hrefs <= {"claims.md", "datasets/flickr30k.md"}
        if "script" in one:
            shown = "".join(child.content for child in inline.children)
            assert hostile in shown

"""What pages show of a board, from made-up boards whose numbers are worked out by hand."""

from dataclasses import replace

import builders
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats

from benchmark.analysis import validity
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.departures import Departure
from benchmark.papers.printed_tables import papers
from benchmark.report.figures.printed_to_here import (
    FEWEST,
    alt_text,
    bars,
    caption,
    gap_of,
    waterfall,
)
from benchmark.report.figures.rank_intervals import rank_intervals, rank_rows
from benchmark.report.pages.careful_rows import careful_rows
from benchmark.report.pages.leaderboards import (
    MOST,
    first_page,
    is_of_these_trainings,
    leaderboard,
    recalls,
    spread_sentence,
)
from benchmark.report.pages.replay_tables import (
    comparability_sentences,
    has_numbers,
    replay_tables,
    unmeasured,
)
from benchmark.report.table_formats import Table

IMAGES, EACH = 40, 2
PERFECT, POOR = 0, 20  # rank of every query: an rsum of 600, and of 0
SCAN = papers()["scan"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """The prepared dataset."""
    monkeypatch.chdir(tmp_path)
    builders.prepare("flickr30k", np.repeat(np.arange(IMAGES), EACH))


def standing(preset: str, *ranks: int | None, **facts: object) -> Standing:
    """One seed per rank that all its queries have; None: it failed."""
    outcomes = []
    for seed, rank in enumerate(ranks):
        queries = {"i2t": IMAGES, "t2i": IMAGES * EACH} if rank is not None else {}
        given = {
            "ranks": {way: np.full(count, rank) for way, count in queries.items()},
            "seconds": {"per_image": 1e-3, "per_pair": 1e-5},
            "training": [9.0],
            "dataset": "flickr30k",
            "images": IMAGES,
            "captions": IMAGES * EACH,
            "deviations": ["cnn"],
            "status": "failed" if rank is None else "ok",
            "metrics": {"overlap_s": 0.3, "one_minus_ks": 0.4},
        }
        outcomes.append(builders.outcome(preset, seed, **(given | facts)))
    return builders.standing(preset, outcomes, preset.upper())


def board(*standings: Standing) -> Board:
    card = {"split": "karpathy", "reader": "flickr30k", "title": "Made"}
    return builders.board(*standings, dataset="flickr30k", **card)


def texts(table: Table) -> list[dict[str, str]]:
    rows = [[entry.text for entry in row] for row in table.entries]
    return [dict(zip(table.heads, row, strict=True)) for row in rows]


class TestLeaderboard:
    def test_it_has_eight_columns_and_the_best_first(self):
        table = leaderboard(board(standing("b", POOR), standing("a", PERFECT)))
        assert len(table.heads) == 8
        first, second = texts(table)
        assert (first["preset"], first["rsum"], first["i2t R@1"]) == ("A", "600.0", "100.0")
        assert (second["preset"], second["rsum"]) == ("B", "0.0")

    def test_how_far_trainings_lie_apart_is_told_where_it_is_known(self):
        several = board(standing("b", 1, 5, 10), standing("a", 0, 1, 5))
        ranks = [standing.values("rsum") for standing in several.standings]
        deviation = np.mean([np.var(of, ddof=1) for of in ranks]) ** 0.5
        said = spread_sentence(several)
        assert f"standard deviation of {deviation:.1f} in rsum, pooled over 2 rows with 4" in said
        assert f"p {stats.bartlett(*ranks).pvalue:.2g}. So few rows do not tell" in said
        assert spread_sentence(board(standing("b", POOR), standing("a", PERFECT))) == ""
        assert spread_sentence(board()) == ""

    def test_rows_that_vary_far_more_are_named(self):
        ranks = {"a": (5, 1, 1, 1), "b": (1, 5, 1, 1), "c": (1, 1, 5, 1), "d": (1, 1, 1, 5)}
        steady = [standing(name, *of) for name, of in ranks.items()]
        said = spread_sentence(board(*steady, standing("wide", PERFECT, POOR, PERFECT, POOR)))
        deviation = np.std([600, 0, 600, 0], ddof=1)
        assert "pooled over 4 rows with 12" in said and "So all these rows have" in said
        assert said.endswith(f"Not pooled, as they vary far more: WIDE ({deviation:.1f}).")

    def test_rows_that_could_not_be_compared_are_of_no_group(self):
        single = board(standing("b", POOR), standing("a", PERFECT))
        several = board(standing("b", POOR, POOR, 11), standing("a", PERFECT, PERFECT, 1))
        assert [row["group"] for row in texts(leaderboard(single))] == ["-", "-"]
        assert [row["group"] for row in texts(leaderboard(several))] == ["a", "b"]
        brought = standing("b", POOR, method="brought", family="brought")
        beside = board(standing("a", PERFECT, PERFECT, 1), brought)  # of one row alone
        assert [row["group"] for row in texts(leaderboard(beside))] == ["-", "-"]

    def test_what_has_no_result_comes_last(self):
        table = leaderboard(board(standing("lost", None, None), standing("a", PERFECT)))
        assert [row["preset"] for row in texts(table)] == ["A", "LOST"]
        lost = texts(table)[1]
        assert (lost["rsum"], lost["seeds"], lost["lacks"]) == ("failed", "0 of 2", "-")

    def test_the_first_page_cuts_only_long_boards_and_keeps_rows_of_no_paper(self):
        of_papers = [standing(f"p{n:02}", n) for n in range(MOST)]
        whole, said = first_page(board(*of_papers))
        assert (len(whole.rows), said) == (MOST, "")
        brought = standing("z", POOR, method="brought", family="brought")
        own = standing("y", POOR, method="examples/y.py")
        cut, said = first_page(board(*of_papers, brought, own))
        assert [row["preset"] for row in texts(cut)] == ["P00", "Z", "Y"]
        assert said.startswith("Rows: the best of every method, and those of no paper: ranks ")
        assert f"ranks 1, {MOST + 1}, {MOST + 2}. {MOST - 1} more are on the dataset's page" in said
        others = [standing(f"o{n:02}", POOR, method=f"m{n}") for n in range(MOST - 1)]
        cut, said = first_page(board(*of_papers[:2], *others))
        assert len(cut.rows) == MOST and said.startswith("Rows: the best of every method: ranks ")
        assert "1 more is on the dataset's page" in said

    def test_an_interval_over_the_test_images_only_has_a_dagger(self):
        single = board(standing("a", PERFECT))
        (row,) = texts(leaderboard(single))
        assert row["95% interval"].endswith("\N{DAGGER}") and is_of_these_trainings(single)
        three = board(standing("a", PERFECT, PERFECT, PERFECT), standing("b", 0, 1, POOR))
        assert not is_of_these_trainings(three)

    def test_without_any_result_there_is_none(self):
        assert leaderboard(board(standing("a", None))) is None

    def test_a_direction_has_its_recalls(self):
        (row,) = texts(recalls(board(standing("a", PERFECT)), "t2i"))
        assert list(row) == ["preset", "t2i R@1", "t2i R@5", "t2i R@10", "t2i MedR"]
        assert list(row.values())[1:4] == ["100.0"] * 3
        assert recalls(board(standing("a", PERFECT)), "s2s") is None


class TestMarks:
    def test_each_departure_has_the_letter_of_its_place(self, monkeypatch):
        letters = {
            Departure.RISING: "C",
            Departure.FEW: "S",
            Departure.FEATURES: "F",
            Departure.REGIONS: "F",
            Departure.WORDS: "F",
            Departure.TEXT: "T",
            Departure.INPUT: "X",
            Departure.SPLIT: "P",
            Departure.COMMIT: "K",
            Departure.CHANCE: "N",
        }
        order = "CSFTXPKN"
        monkeypatch.setattr(validity, "is_convergence_known", lambda *_: True)
        for kind, letter in letters.items():
            monkeypatch.setattr(validity, "departures", lambda *_, kind=kind: {kind: "said"})
            shown = validity.marks(None, standing("a", PERFECT))
            assert shown == "".join(x if x == letter else validity.HAS for x in order)
        for kind in (Departure.BUDGET, Departure.ENSEMBLE):  # of no mark
            monkeypatch.setattr(validity, "departures", lambda *_, kind=kind: {kind: "said"})
            assert validity.marks(None, standing("a", PERFECT)) == validity.HAS * len(order)

    def test_where_there_is_no_sense_in_asking_a_dash_stands(self, monkeypatch):
        every = {kind: "said" for mark in validity.MARKS for kind in mark.departures}
        monkeypatch.setattr(validity, "departures", lambda *_: every)
        monkeypatch.setattr(validity, "is_convergence_known", lambda *_: True)
        own = standing("own", PERFECT, method="examples/own.py")
        assert validity.marks(None, own) == "CS-TXPKN"
        brought = standing("brought", PERFECT, method="brought", family="brought")
        assert validity.marks(None, brought) == "-----PKN"
        assert validity.marks(None, standing("a", PERFECT)) == "CSFTXPKN"
        assert "fewer than 3 seeds" not in validity.lacks("-----PKN")
        monkeypatch.setattr(validity, "is_convergence_known", lambda *_: False)
        assert validity.marks(None, standing("a", PERFECT)) == "-SFTXPKN"

    def test_they_stand_in_the_row_in_type_of_equal_width(self):
        table = leaderboard(board(standing("a", PERFECT)))
        marks = table.entries[0][-1]
        assert marks.is_code and marks.text[1] == "S" and len(marks.text) == 8


class TestCarefulRows:
    def test_rows_come_with_what_they_lack_beyond_all_others_the_worst_first(self):
        known = {"deviations": ["image features: cnn"]}
        other = known | {"text_features": {"weights": "random weights"}}
        few, both = standing("few", PERFECT, **known), standing("both", PERFECT, **other)
        common, *own = careful_rows(board(few, standing("ok", *[PERFECT] * 3, **known), both))
        assert common == (
            "All 3 rows of retrieval: other features, regions, word vectors or text encoder than "
            "the paper's."
        )
        assert own == [
            "**fewer than 3 seeds; text encoder with random weights**: BOTH.",
            "**fewer than 3 seeds**: FEW.",
            "**nothing else to note**: OK.",
        ]

    def test_a_row_as_bad_as_random_scores_says_so(self):
        known = {"deviations": []}
        poor, good = standing("poor", *[POOR] * 3, **known), standing("good", *[0] * 3, **known)
        assert careful_rows(board(good, poor)) == [
            "**near chance**: POOR.",
            "**nothing to note**: GOOD.",
        ]

    def test_of_rows_that_lack_nothing_there_is_no_list(self):
        assert careful_rows(board(standing("ok", *[PERFECT] * 3, deviations=[]))) == []


def titles(figure: Figure) -> list[str]:
    """Of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


class TestRankFigure:
    def test_rows_are_those_of_the_leaderboard(self):
        presets = board(standing("b", POOR, POOR), standing("a", PERFECT, PERFECT))
        first, second = rank_rows(presets, "rsum")
        assert (first.title, first.mean, first.seeds) == ("A", 600.0, 2)
        assert (second.title, second.mean) == ("B", 0.0)
        (axes,) = rank_intervals([first, second], "rsum").axes
        assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "B"]

    def test_a_band_is_behind_rows_that_cannot_be_told_apart_from_the_best(self):
        def places(*presets: Standing) -> list[float]:
            figure = rank_intervals(rank_rows(board(*presets), "rsum"), "rsum")
            said = "not told apart from the best" in titles(figure)
            assert said == bool(figure.axes[0].patches)
            return [band.get_y() + 0.5 for band in figure.axes[0].patches]

        best = [standing("a", PERFECT, PERFECT, 1), standing("b", PERFECT, 1, PERFECT)]
        assert places(*best, standing("c", POOR, POOR, 11)) == [0, 1]
        assert places(standing("a", PERFECT), standing("c", POOR)) == []  # not compared

    def test_where_nothing_is_known_of_trainings_convergence_is_not_said(self):
        brought = standing("b", POOR, method="brought", family="brought")
        figure = rank_intervals(rank_rows(board(standing("a", PERFECT), brought), "rsum"), "rsum")
        assert "convergence not known" in titles(figure)
        curve = pd.DataFrame({"epoch": [1, 2, 3], "val_rsum": [500.0, 500.0, 500.0]})
        known = board(standing("a", PERFECT, history=curve))
        of_known = rank_intervals(rank_rows(known, "rsum"), "rsum")
        assert "convergence not known" not in titles(of_known)


class TestGap:
    """SCAN i-t AVG prints an rsum of 452.2, without hard negatives 380.8 (tables 1 and 4)."""

    def test_without_other_rows_all_of_it_is_elsewhere(self):
        gap = gap_of(board(standing("scan_i2t_avg", POOR)), SCAN, SCAN.main)
        assert (gap.printed, gap.here, gap.steps) == (pytest.approx(452.2), 0.0, [])
        assert gap.elsewhere == pytest.approx(452.2)
        assert [step.what for step in bars(gap)] == ["printed, flickr30k", "elsewhere", "here"]

    def test_a_step_is_what_the_gap_of_the_other_row_is_smaller(self):
        two_rows = board(standing("scan_i2t_avg", POOR), standing("scan_all_negatives", POOR))
        gap = gap_of(two_rows, SCAN, SCAN.main)
        ((what, value),) = gap.steps
        assert "hard negatives" in what and value == pytest.approx(452.2 - 380.8)
        assert gap.elsewhere == pytest.approx(380.8)
        levels = [(step.start, step.end) for step in bars(gap)]
        assert levels[1] == pytest.approx((452.2, 380.8))
        assert levels[2] == pytest.approx((380.8, 0.0))

    def test_the_caption_says_what_differs_and_was_not_played(self):
        other = board(standing("scan_i2t_avg", POOR, scaled=["epochs"]))
        other.card["reader"] = "flickr8k"
        gap = gap_of(other, SCAN, SCAN.main)
        said = caption(gap)
        assert said.startswith(
            "Printed less ours is 452.2: 0.0 in the steps that were played, 452.2 elsewhere. Known "
            "to differ, "
        )
        assert gap.differs[0].startswith("data: Made") and gap.differs[0] in said
        assert "options epochs" in said
        assert "scan_all_negatives, for gain of hard negatives, paper minus here (table 4)" in said
        assert waterfall(gap).axes
        played = board(standing("scan_i2t_avg", POOR), standing("scan_all_negatives", POOR))
        assert "scan_all_negatives" not in caption(gap_of(played, SCAN, SCAN.main))
        assert "452.2 printed on flickr30k, 0.0 here" in alt_text(gap_of(other, SCAN, SCAN.main))

    def test_the_caption_says_where_steps_lead_away_from_ours(self):
        other = board(standing("scan_i2t_avg", POOR, scaled=["epochs"]))
        gap = replace(gap_of(other, SCAN, SCAN.main), steps=[("a step", -12.5)])
        said = "Printed less ours is 452.2: -12.5 in the steps that were played, 464.7 elsewhere."
        assert caption(gap).startswith(said)

    def test_of_little_other_data_there_is_none(self):
        """Of another dataset, or of few training images alone, there is one."""
        for reader, images, is_drawn in (
            ("folder", FEWEST - 1, False),
            ("folder", FEWEST, True),
            ("flickr30k", FEWEST - 1, True),
        ):
            played = board(standing("scan_i2t_avg", POOR))
            counts = played.card["counts"] | {"train": {"images": images}}
            made = replace(played, card=played.card | {"reader": reader, "counts": counts})
            assert (gap_of(made, SCAN, SCAN.main) is not None) == is_drawn

    def test_without_the_main_row_there_is_none(self):
        assert gap_of(board(standing("scan_t2i_avg", POOR)), SCAN, SCAN.main) is None
        assert gap_of(board(standing("scan_i2t_avg", None)), SCAN, SCAN.main) is None


class TestReplayTables:
    def test_an_entry_has_the_printed_and_the_measured_number(self):
        tables = replay_tables(SCAN, board(standing("scan_i2t_avg", POOR, POOR, POOR)))
        (row,) = texts(tables["1 flickr30k/test"])
        assert row["row"] == "SCAN i-t AVG"
        assert row["i2t R@1"].startswith("67.9\N{NO-BREAK SPACE}\N{RIGHTWARDS ARROW} 0.0")
        assert row["rsum"].startswith("452.2\N{NO-BREAK SPACE}\N{RIGHTWARDS ARROW} 0.0")

    def test_a_row_that_an_earlier_table_has_is_left_out(self):
        """Tables 3 and 4 print the numbers of table 1 once more; table 5 has times beside them."""
        tables = replay_tables(SCAN, board(standing("scan_i2t_avg", POOR)))
        assert list(tables) == ["1 flickr30k/test", "2 mscoco_1k/test", "5 flickr30k/test"]

    def test_what_is_not_measured_is_named_and_has_no_table(self):
        played = board(standing("scan_i2t_avg", POOR))
        assert has_numbers(SCAN, [played]) and unmeasured(SCAN, [played]) == ""
        others = board(standing("scan_i2t_sum", POOR))
        assert unmeasured(SCAN, [others]) == "1, 2, 3, 5"
        assert not has_numbers(SCAN, [board(standing("scan_i2t_avg", None))])

    def test_whether_it_can_be_compared_is_said_once(self):
        same = board(standing("scan_i2t_avg", POOR, deviations=[]))
        assert "Comparable: SCAN i-t AVG" in " ".join(comparability_sentences(SCAN, same))
        other = board(standing("scan_i2t_avg", POOR))
        assert "other features" in " ".join(comparability_sentences(SCAN, other))

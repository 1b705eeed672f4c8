"""What pages show of a board, from made-up boards whose numbers are worked out by
hand."""

from dataclasses import replace

import builders
import numpy as np
import pandas as pd
import pytest
from refusals import holds

from benchmark.boards import flags
from benchmark.boards.boards import Board, Row
from benchmark.boards.claims_file import Made
from benchmark.report.pages import (
    dataset_page,
    result_tables,
    season_pages,
)
from benchmark.report.pages.result_tables import (
    SHOWN,
    first_page,
    leaderboard,
    of_direction,
)
from benchmark.report.tables import DAGGER, Table
from benchmark.scoring import METRICS, table_metrics

IMAGES, EACH = 40, 2
PERFECT, POOR = 0, 20  # rank of every query: an rsum of 600, and of 0
SCORES = {"overlap_s": 0.3, "one_minus_ks": 0.4, "overlap_range": [-1.0, 1.0]}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """The prepared dataset."""
    monkeypatch.chdir(tmp_path)
    builders.prepare("flickr30k", np.repeat(np.arange(IMAGES), EACH))


def row(
    preset: str, *ranks: int | None, start: str | None = None, **facts: object
) -> Row:
    """A rank of all queries per seed; None: it failed."""
    outcomes = []
    for seed, rank in enumerate(ranks):
        queries = {"i2t": IMAGES, "t2i": IMAGES * EACH} if rank is not None else {}
        given = {
            "ranks": {way: np.full(count, rank) for way, count in queries.items()},
            "seconds": {"per_image": 1e-3, "per_caption": 2e-3, "per_pair": 1e-5},
            "training": [9.0],
            "dataset": "flickr30k",
            "images": IMAGES,
            "captions": IMAGES * EACH,
            "departures": [{"aspect": "image_network", "here": "cnn"}],
            "status": "failed" if rank is None else "ok",
            "reason": "the loss is NaN" if rank is None else "",
            "metrics": SCORES,
        }
        outcomes.append(builders.outcome(preset, seed, **(given | facts)))
    return builders.standing(preset, outcomes, preset.upper(), start=start)


def board(*rows: Row, **card: object) -> Board:
    facts = {
        "split": "karpathy",
        "reader": "flickr30k",
        "title": "Made",
        "leakage": {"notes": []},
    }
    return builders.board(*rows, dataset="flickr30k", **(facts | card))


def shown_cells(table: Table) -> list[dict[str, str]]:
    return [{head: str(cell) for head, cell in line.items()} for line in records(table)]


def records(table: Table) -> list[dict]:
    return table.frame.to_dict("records")


def shown_ranks(results: Board) -> list[str]:
    return [str(line["rank"]) for line in records(leaderboard(results))]


class TestLeaderboard:
    def test_over_seeds_it_is_their_mean_and_deviation_unless_all_gave_the_same(self):
        (only,) = records(leaderboard(board(row("a", 0, 1, 5))))
        rsums = [600, 400, 200]
        assert only["rsum"].value == np.mean(rsums)
        assert only["rsum"].sd == pytest.approx(np.std(rsums, ddof=1))
        (only,) = records(leaderboard(board(row("a", PERFECT, PERFECT, PERFECT))))
        assert (only["rsum"].value, only["rsum"].sd) == (600, None)
        (only,) = records(leaderboard(board(row("a", PERFECT, PERFECT, 5))))
        rsums = [600, 600, 200]
        assert only["rsum"].value == pytest.approx(np.mean(rsums))
        assert only["rsum"].sd == pytest.approx(np.std(rsums, ddof=1))

    def test_rows_that_could_not_be_compared_have_bare_ranks_and_single_trainings_a_dagger(
        self,
    ):
        single = board(row("b", POOR), row("a", PERFECT))
        several = board(row("b", POOR, POOR, 11), row("a", PERFECT, PERFECT, 1))
        assert shown_ranks(single) == ["1", "2"]
        assert shown_ranks(several) == [f"{rank} [{rank}-{rank}]" for rank in (1, 2)]
        alike = [row(name, POOR, PERFECT, 1) for name in "abcd"]
        expected = [f"{rank} [1-4]" for rank in (1, 2, 3, 4)]
        assert shown_ranks(board(*alike)) == expected
        external = row("b", POOR, method="brought", family="brought")
        beside = board(row("a", PERFECT, PERFECT, 1), external)
        assert shown_ranks(beside) == ["1", "2"]
        (only,) = records(leaderboard(board(row("a", PERFECT))))
        ends = only["95% interval"]
        assert (ends.note, ends.high) == (DAGGER, 600) and 500 < ends.low < 600
        three = board(row("a", PERFECT, PERFECT, PERFECT), row("b", 0, 1, POOR))
        assert {line["95% interval"].note for line in records(leaderboard(three))} == {
            ""
        }

    def test_failed_cells_come_last_and_are_counted(self):
        one_lost = board(
            row("lost", None, None), row("some", None, 1), row("a", PERFECT)
        )
        assert [line["preset"] for line in shown_cells(leaderboard(one_lost))] == [
            "A",
            "SOME",
            "LOST",
        ]
        _, some, lost = shown_cells(leaderboard(one_lost))
        assert (lost["rsum"], lost["seeds"].replace("\xa0", " ")) == (
            "failed",
            "0 of 2",
        )
        assert (some["rsum"], some["seeds"].replace("\xa0", " ")) == ("400.0", "1 of 2")
        failures = records(result_tables.failures(one_lost))
        told = [(line["preset"], line["seed"]) for line in failures]
        assert told == [("LOST", 0), ("LOST", 1), ("SOME", 0)]
        assert {line["reason"] for line in failures} == {"the loss is NaN"}
        lost = row("n", None, status="not_applicable", reason="needs 5 captions")
        assert shown_cells(leaderboard(board(lost)))[0]["rsum"] == "not applicable"

    def test_the_first_page_has_the_best_of_each_method_then_the_next_best_and_external_rows(
        self,
    ):
        of_one = [row(f"p{n}", n, method="one") for n in range(SHOWN + 1)]
        table = first_page(
            board(*of_one, row("other", 8, method="other"), row("lost", None))
        )
        shown = [(line["rank"], line["preset"]) for line in records(table)]
        others = [(n + 1, f"P{n}") for n in range(SHOWN - 1)]
        assert shown == [*others, (SHOWN + 2, "OTHER")]
        assert "seeds" not in table.frame
        assert len(first_page(board(*of_one[:2]))) == 2
        of_papers = [row(f"p{n}", n, method=f"m{n}") for n in range(SHOWN + 1)]
        external = row("z", POOR, method="brought", family="brought")
        own = row("y", PERFECT, method="examples/y.py")
        shown = [
            line["preset"]
            for line in records(first_page(board(*of_papers, external, own)))
        ]
        assert shown == ["P0", "Y", *(f"P{n}" for n in range(1, SHOWN - 1)), "Z"]
        behind = row("x", POOR, method="examples/x.py")
        table = first_page(board(*of_papers, behind))
        shown = [line["preset"] for line in records(table)]
        assert shown == [*(f"P{n}" for n in range(SHOWN - 1)), "X"]


@pytest.mark.parametrize(
    ("corrected", "shown"), [("", ["A", "B"]), ("a", ["B"]), ("ab", ["A", "B"])]
)
def test_corrected_scores_are_not_beside_others_on_the_first_page(
    monkeypatch, corrected, shown
):
    monkeypatch.setattr(
        result_tables, "is_corrected", lambda row: row.preset in corrected
    )
    both = board(row("a", PERFECT, method="m"), row("b", POOR, method="m"))
    assert [line["preset"] for line in records(first_page(both))] == shown
    own = [row(name, PERFECT, method=f"examples/{name}.py") for name in "ab"]
    assert [line["preset"] for line in records(first_page(board(*own)))] == shown


def test_a_direction_has_its_recalls():
    (only,) = shown_cells(of_direction(board(row("a", PERFECT)), "t2i"))
    assert list(only) == [
        "preset",
        *(METRICS[name].heading for name in table_metrics("t2i")),
    ]
    assert [only[f"t2i {name}"] for name in ("R@1", "R@5", "R@10", "MedR")] == [
        "100.0"
    ] * 3 + ["1"]
    assert len(of_direction(board(row("a", PERFECT)), "s2s")) == 0


def test_folds_are_their_means_with_their_spread():
    """Two folds: R@1 of 100 and 60 with the first seed, of 80 and 60 with the
    second."""
    names = [
        f"{way}_{name}"
        for way in ("i2t", "t2i")
        for name in ("r1", "r5", "r10", "medr")
    ]
    seeds = ([100.0, 60.0], [80.0, 60.0])
    outcomes = []
    for seed, values in enumerate(seeds):
        metrics = {f"fold_{name}": 75.0 for name in [*names, "rsum"]}
        metrics["fold_values"] = {name: values for name in [*names, "rsum"]}
        ranks = {"i2t": np.zeros(IMAGES, int), "t2i": np.zeros(IMAGES * EACH, int)}
        ranks |= {f"{way}_fold": ranks_Q for way, ranks_Q in ranks.items()}
        facts = {"dataset": "flickr30k", "metrics": metrics, "ranks": ranks}
        outcomes.append(builders.outcome("a", seed, **facts))
    folded = board(builders.standing("a", outcomes), folds=2)
    (only,) = records(result_tables.folds(folded))
    for head in ("i2t R@1", "t2i R@10", "rsum"):
        assert only[head].value == np.mean([90, 60])
        assert only[head].sd == pytest.approx(np.std([90, 60], ddof=1))
    assert only["95% of rsum"].low < 75 < only["95% of rsum"].high
    assert len(result_tables.folds(board(row("a", PERFECT)))) == 0


def test_an_s_above_its_bound_is_marked_and_never_the_best():
    coarse = {"overlap_s": 0.1, "one_minus_ks": 0.01, "overlap_range": [0.0, 0.5]}
    table = result_tables.overlaps(board(row("a", 0), row("c", 0, metrics=coarse)))
    fine, marked = records(table)
    assert str(marked["S"]) == "0.100\xa0*" and not marked["S"].is_best
    assert fine["S"].is_best and fine["S"].note == ""
    assert (fine["range"], marked["range"]) == ("-1 to 1", "0 to 0.5")
    # ranks alone
    assert len(result_tables.overlaps(board(row("a", 0, metrics={})))) == 0


def test_how_rsum_depends_on_s_is_told_of_many_rows_without_corrected_ones():
    def made(number: int, rsum: float, **more: object) -> Row:
        metrics = SCORES | {"overlap_s": number / 20, "rsum": rsum} | more
        return row(f"r{number}", PERFECT, metrics=metrics, method=f"m{number % 5}")

    rows = [made(number, 300.0 - number) for number in range(10)]
    found = dataset_page.overlap_and_rsum(board(*rows).retrieval)
    assert (found.count, found.groups, found.value) == (10, 5, pytest.approx(-1))
    corrected = made(15, 400.0, correction={"how": "nnn"})
    assert dataset_page.overlap_and_rsum(board(corrected, *rows)) == found
    assert dataset_page.overlap_and_rsum(board(*rows[1:])) is None


def test_a_training_costs_what_it_goes_on_from_as_well():
    start = row("a", 0, 0, training=[9.0])
    going_on = row("b", 0, start="a", training=[5.0])
    both = board(start, going_on)
    assert result_tables.training_seconds(both, both.row("b")) == 14.0
    lines = {line["preset"]: line for line in records(result_tables.costs(both))}
    assert lines["B"]["training (s)"].value == 14.0
    assert lines["A"]["encode an image (ms)"].value == pytest.approx(1.0)
    assert lines["A"]["score a pair (\N{MICRO SIGN}s)"].value == pytest.approx(10.0)
    assert "GPU memory (MiB)" not in lines["A"] and "epochs" not in lines["A"]
    curve = pd.DataFrame({"epoch": [1, 2, 3], "loss": 1.0, "val_rsum": [1.0, 2.0, 3.0]})
    (only,) = records(result_tables.costs(board(row("a", 0, history=curve))))
    assert only["epochs"] == "3"
    assert Made.of(board(row("a", 0, 1, history=curve))).trainings == 2
    trained = [row("a", 0, history=curve[:length]).outcomes[0] for length in (3, 1)]
    (only,) = records(result_tables.costs(board(builders.standing("a", trained))))
    assert only["epochs"] == "1 to 3"
    external = row("b", POOR, method="brought", family="brought")
    assert len(result_tables.costs(board(external))) == 0


def test_a_query_is_encoded_once_and_scored_with_all_items_of_the_other_kind():
    of_images = row("a", 0)
    alone = {"t2i": np.zeros(IMAGES * EACH, int)}
    of_captions = row("a", 0, ranks=alone)
    seconds = 1e-3 + IMAGES * EACH * 1e-5
    assert result_tables.query_seconds(of_images) == pytest.approx(seconds)
    seconds = 2e-3 + IMAGES * 1e-5
    assert result_tables.query_seconds(of_captions) == pytest.approx(seconds)


def test_a_row_has_what_blocks_its_verdicts_and_what_not_all_rows_have():
    features = {"departures": [{"aspect": "image_network", "here": "cnn"}]}
    plain = row("a", 0, scaled=["epochs", "gone"], options={"epochs": 3}, **features)
    other = row("b", 0, 1, 2, **features)
    both = board(plain, other)
    shared = result_tables.shared_flags(both)
    assert shared and not set(shared) & flags.BLOCKING.keys()
    of_a, of_b = records(result_tables.of_each_row(both))
    assert (of_a["row"], of_a["options changed"], of_b["options changed"]) == (
        "A",
        1,
        0,
    )
    assert of_b["no verdict against"] == ""
    for line, of in ((of_a, plain), (of_b, other)):
        own = set(flags.letters(flags.row_flags(both, of))) - set(shared)
        told = {flags.NAMES[letter] for letter in own}
        names = f"{line['no verdict against']}, {line['warns']}"
        assert told == {name for name in flags.NAMES.values() if name in names}
    (alone,) = records(result_tables.of_each_row(board(plain)))
    assert alone["no verdict against"] == "any row (fewer than 3 seeds)"
    shown = [line["flags"] or "" for line in records(leaderboard(both))]
    assert not set("".join(shown)) & set(shared)


def test_how_far_trainings_lie_apart():
    several = board(row("b", 1, 5, 10), row("a", 0, 1, 5))
    rsums = [each.values("rsum") for each in several.rows]
    known = dataset_page.seed_spread(several)
    deviation = np.mean([np.var(of, ddof=1) for of in rsums]) ** 0.5
    assert known["of"].pooled.variance ** 0.5 == pytest.approx(deviation)
    assert not known["of"].outliers
    assert dataset_page.seed_spread(board(row("b", POOR), row("a", PERFECT))) == {}
    assert dataset_page.seed_spread(board()) == {}
    ranks = {"a": (5, 1, 1, 1), "b": (1, 5, 1, 1), "c": (1, 1, 5, 1), "d": (1, 1, 1, 5)}
    steady = [row(name, *of) for name, of in ranks.items()]
    wide = dataset_page.seed_spread(
        board(*steady, row("wide", PERFECT, POOR, PERFECT, POOR))
    )
    assert set(wide["of"].outliers) == {"wide"}
    deviation = wide["of"].own["wide"].variance ** 0.5
    assert deviation == pytest.approx(np.std([600, 0, 600, 0], ddof=1))


def test_the_summary_has_the_best_with_its_interval_and_its_rivals():
    def lines(of: Board) -> list[str]:
        return [line for line in season_pages.summary(of, []).splitlines() if line]

    text = lines(board(row("a", PERFECT, 1, 5), row("b", 1, 5, PERFECT)))[0]
    assert "**A**, rsum 400.0" in text and "Not significantly different: B." in text
    apart = board(row("b", POOR, POOR, 11), row("a", PERFECT, PERFECT, 1))
    assert "All other rows" in lines(apart)[0]
    single = board(row("b", POOR), row("a", PERFECT))
    assert "other trainings" in lines(single)[0]
    assert "only row" in lines(board(row("a", PERFECT)))[0]
    small = board(
        row("a", 0), row("b", 1), counts={"test": {"images": 9, "captions": 18}}
    )
    assert "9 test queries" in lines(small)[0]
    assert not any("Best" in line for line in lines(small))
    lost = lines(board(row("a", None, None), row("b", None)))
    assert "No preset has" in lost[0]
    assert "3 of 3" in lost[-1] and "(datasets/flickr30k.md)" in lost[-1]


def test_the_summary_names_the_rows_that_are_chosen_otherwise():
    plain = board(row("b", 1, 5, PERFECT), row("a", PERFECT, 1, 5))
    assert "Chosen" not in season_pages.summary(plain, [])
    better = row("a_nnn", PERFECT, PERFECT, 1)
    for outcome in better.outcomes:
        outcome.record.metrics["correction"] = {"how": "nnn"}
    for number, each in enumerate(plain.rows):
        for outcome in each.outcomes:
            outcome.record.history["val_rsum"] = [200.0 - number]
    told = season_pages.summary(board(better, *plain.rows), [])
    line = next(line for line in told.splitlines() if "Chosen" in line)
    assert "**A_NNN**" in line and "from 3 rows, 1 corrected" in line
    assert line.count("B, 400.0") == 2
    assert holds(line, "best uncorrected", "best on validation")


def test_a_metric_says_whether_leaderboards_show_it(monkeypatch):
    median = METRICS["i2t_medr"]
    shown = replace(median, in_leaderboards=("i2t",))
    monkeypatch.setitem(METRICS, median.name, shown)
    (line,) = records(leaderboard(board(row("a", 0, 1, 5))))
    assert median.heading in line and METRICS["i2t_r5"].heading not in line

"""One result beside a printed number, and how often it errs."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_ranks import SETTINGS, draw, true_mean
from report_seasons import enter_played_season
from scipy import stats

from benchmark.__main__ import main
from benchmark.boards import comparisons
from benchmark.boards.season_boards import read_boards
from benchmark.commands.against_printed import (
    Place,
    PrintedComparison,
    against_of_file,
    place_of,
)
from benchmark.commands.judged_results import Question
from benchmark.papers.printed_numbers import Rounded
from benchmark.stats.claim_kinds import ALIKE
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt, SeedPart

COUNT = 400
NUMBER = Rounded.of("50.0")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, share: float, seeds: int = 1, flipped: int = 0) -> None:
    """Hits of COUNT queries; each seed has other hits in the first `flipped` of
    them."""
    hit = np.arange(COUNT) % 100 < 100 * share
    tables = []
    for seed in range(seeds):
        hits = hit.copy()
        hits[:flipped] = np.random.default_rng(seed).random(flipped) < share
        columns = {"query": range(COUNT), "value": hits.astype(int), "seed": seed}
        tables.append(pd.DataFrame(columns))
    pd.concat(tables).to_csv(name, index=False)


def found(capsys, *words: object, status: int = 0) -> dict:
    capsys.readouterr()
    words = ["judge", *map(str, words), "--format", "json"]
    assert main(words) == status
    (facts,) = json.loads(capsys.readouterr().out)
    return facts


@pytest.mark.parametrize(
    ("interval", "place"),
    [
        ((47.0, 49.94), Place.BELOW),
        ((47.0, 49.96), Place.UNDECIDED),  # which is rounded to 50.0
        ((50.06, 53.0), Place.ABOVE),
        ((49.0, 51.0), Place.COMPATIBLE),
        ((48.9, 51.0), Place.UNDECIDED),
    ],
)
def test_a_place_follows_from_interval_rounding_and_margin(interval, place):
    assert place_of(interval, NUMBER, 1.0) == place


def test_the_interval_of_hits_is_wilsons(capsys):
    write("mine.csv", 0.6)
    facts = found(capsys, "mine.csv", "--printed", "60.2")
    ends = stats.binomtest(240, COUNT).proportion_ci(0.95, "wilson")
    # the variance of a mean over n has n - 1, and t replaces the normal's quantile
    assert (facts["low"], facts["high"]) == pytest.approx(
        (100 * ends.low, 100 * ends.high), abs=0.05
    )
    assert (facts["level"], facts["margin"]) == (60.0, 1.0)
    assert facts["conclusion"] == "undecided" and facts["seeds"] == 1
    assert facts["on_test_set"] is None and facts["is_of_these_trainings"]


@pytest.mark.parametrize(
    ("number", "status", "place"),
    [("70", 1, "below"), ("50.0", 1, "above"), ("60.0", 2, "undecided")],
)
def test_check_exits_with_the_place(number, status, place, capsys):
    write("mine.csv", 0.6)
    words = ("mine.csv", "--printed", number, "--check")
    assert found(capsys, *words, status=status)["conclusion"] == place


def test_a_margin_lets_a_result_be_compatible(capsys):
    write("mine.csv", 0.6)
    words = ("mine.csv", "--printed", "60.0", "--margin", "6", "--check")
    assert found(capsys, *words)["conclusion"] == "compatible"


def test_other_trainings_alone_may_decide(capsys):
    write("mine.csv", 0.6, seeds=8, flipped=6)
    facts = found(capsys, "mine.csv", "--printed", "61.8")
    assert facts["conclusion"] == "undecided"
    assert facts["on_test_set"]["conclusion"] == "below"
    low, high = facts["on_test_set"]["interval"]
    assert facts["low"] < low < facts["level"] < high < facts["high"]


@pytest.mark.parametrize(
    ("interval", "expected"),
    [((47.0, 53.0), (48.04, 51.96)), ((48.5, 51.5), (48.5, 51.5))],
)
def test_other_trainings_alone_are_no_less_sure_than_other_images_too(
    interval, expected
):
    # their standard error is 1, so that they reach 1.96 to each side of 50
    part = SeedPart((2,), 2.0, 0.0, 1e6, is_own=True)
    compared = Comparison(
        first="mine",
        second="",
        firsts=[49.0, 51.0],
        difference=50.0,
        doubt=Doubt(images=0.0, interaction=0.0, image_count=0, seeds=(part,)),
    )
    placed = PrintedComparison(
        comparison=compared,
        printed=NUMBER,
        interval=interval,
        margin=1.0,
        queries=COUNT,
        unit="queries",
    )
    assert placed.on_test_set.interval == pytest.approx(expected, abs=0.001)


def test_a_number_may_be_what_the_largest_value_is_rounded_to(capsys):
    values = np.where(np.arange(COUNT) % 2, 0.456, 0.123)
    frame = pd.DataFrame({"query": range(COUNT), "value": values})
    frame.to_csv("mine.csv", index=False)
    for number, place in (("0.46", "below"), ("0.12", "above")):
        facts = found(capsys, "mine.csv", "--printed", number)
        assert facts["conclusion"] == place
    assert main(["judge", "mine.csv", "--printed", "0.47"]) == 2


def test_few_queries_and_equal_values_decide_nothing(capsys):
    write("mine.csv", 0.6)
    pd.read_csv("mine.csv").head(60).to_csv("few.csv", index=False)
    facts = found(capsys, "few.csv", "--printed", "10.0")
    assert facts["conclusion"] == "undecided" and "60 queries" in facts["reason"]
    columns = {"query": range(COUNT), "value": 3.5}
    pd.DataFrame(columns).to_csv("same.csv", index=False)
    facts = found(capsys, "same.csv", "--printed", "3.5")
    assert facts["conclusion"] == "undecided" and "varies" in facts["reason"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--printed", "many"), "--printed: expected a number"),
        (("--printed", "0.602"), "did you mean 60.2?"),
        (("--printed", "602"), "between 0 and 100"),
        (("b.csv", "--printed", "60"), "one result alone"),
        (("--printed", "60", "--claim", "A > B"), "one result alone"),
        ((), "expected two results"),
    ],
)
def test_what_cannot_be_asked_is_refused(words, message, capsys):
    write("mine.csv", 0.6)
    assert main(["judge", "mine.csv", *words]) == 2
    assert message in capsys.readouterr().err
    assert main(["judge", "mine.csv", *words, "--check"]) == 3


def test_a_page_names_result_number_and_place(capsys):
    write("mine.csv", 0.6)
    assert main(["judge", "mine.csv", "--printed", "70", "--out", "page.md"]) == 0
    head = Path("page.md").read_text(encoding="utf-8").splitlines()[0]
    assert head == "## mine.csv beside the printed 70 by value: below"


def test_a_preset_of_a_season_has_the_interval_of_its_report(
    tmp_path_factory, tmp_path, monkeypatch, capsys
):
    params = enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)
    (board, *_) = read_boards(params)
    row = board.ranked[0]
    words = (f"{params.season}:{row.preset}", "--dataset", board.dataset)
    assert main(["judge", *words, "--printed", "12.0"]) == 2
    assert "no --metric" in capsys.readouterr().err
    facts = found(capsys, *words, "--printed", "12.0", "--metric", "rsum")
    low, high = comparisons.interval(board, row, "rsum")
    assert (facts["low"], facts["high"]) == pytest.approx((low, high), rel=1e-4)
    assert facts["level"] == pytest.approx(row.mean("rsum"), rel=1e-4)
    assert facts["seeds"] == len(row.played) and facts["unit"] == "images"
    is_small = board.is_small(row.task)
    assert facts["conclusion"] == ("undecided" if is_small else "above")
    assert main(["judge", *words, "--printed", "12", "--metric", "i2t_medr"]) == 2


@pytest.mark.simulation
@pytest.mark.parametrize("name", SETTINGS)
def test_a_printed_number_that_is_the_true_mean_is_seldom_missed(name):
    setting, runs = SETTINGS[name], 2000
    # two decimals; a false alarm is a place below or above
    rng = np.random.default_rng(list(SETTINGS).index(name))
    metric = "r5" if setting.kind == "ranks" else None
    question = Question(kind=ALIKE, metric=metric, margin=1.0)
    number = Rounded(true_mean(setting, 0.0), 2)
    false = 0
    for _ in range(runs):
        _, result = draw(setting, 0.0, rng)
        place = against_of_file(result, [], number, question).conclusion
        false += place in (Place.BELOW, Place.ABOVE)
    print(f"\n{name} | {100 * false / runs:.1f}", flush=True)
    assert false <= stats.binom.ppf(0.999, runs, 0.05)

"""The page on the folds of a dataset."""

from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace

import pytest
from made_ranks import prepare
from test_season_boards import COUNT, differences, fold_board, together

from benchmark.boards.claims import ClaimTest
from benchmark.boards.comparisons import compare
from benchmark.boards.season_boards import levels
from benchmark.papers.printed_tables import Claim
from benchmark.report.pages import folds_page
from benchmark.report.pages.folds_page import (
    DifferenceOverFolds,
    board_of_all,
    differences_table,
    place_of_official,
    shrinkage,
)
from benchmark.stats.claim_kinds import KINDS
from benchmark.stats.verdicts import Rule, Verdict

SEEDS = (0, 1, 2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare()


@pytest.fixture
def official():
    return fold_board(0, SEEDS)


@pytest.fixture
def folds():
    return together([fold_board(number) for number in range(1, COUNT)])


def over_folds(official, folds) -> DifferenceOverFolds:
    every = board_of_all(official, folds)
    comparison = compare(folds, *folds.rows, "rsum")
    rule = Rule(kind=KINDS["ordered"], margin=6.0)
    part = {"presets": ["better", "worse"], "metric": "rsum"}
    claim = Claim(id="better", statement="Better.", where="here", parts=[part])
    verdict = Verdict(comparison=comparison, rule=rule)
    return DifferenceOverFolds(
        claim=ClaimTest(paper="p", claim=claim, is_elsewhere=False, verdicts=[verdict]),
        verdict=verdict,
        official=compare(official, *official.rows, "rsum"),
        every=compare(every, *every.rows, "rsum"),
    )


def test_the_official_split_is_one_fold_more_with_the_mean_of_its_seeds(
    official, folds
):
    of = over_folds(official, folds)
    expected = [*differences([official]), *differences(list(folds.fold_boards))]
    assert list(of.by_fold) == pytest.approx(expected)
    assert of.every.difference == pytest.approx(fmean(expected))


def test_a_row_that_the_official_split_lacks_is_not_of_all_folds(official, folds):
    lacking = replace(official, rows=official.rows[:1])
    assert [row.preset for row in board_of_all(lacking, folds).rows] == ["better"]


def test_how_many_folds_are_harder_is_counted_over_rows(official, folds):
    known = levels(folds, official, "rsum")
    place = place_of_official(known)
    means = []
    for fold in folds.fold_boards:
        means.append(fmean(row.mean("rsum") for row in fold.rows))
    there = fmean(row.mean("rsum") for row in official.rows)
    assert place.official == pytest.approx(there)
    assert (place.lowest, place.highest) == pytest.approx((min(means), max(means)))
    assert place.harder == sum(mean < there for mean in means)


def test_a_difference_stands_with_that_of_the_official_split_and_of_all(
    official, folds
):
    of = over_folds(official, folds)
    every = board_of_all(official, folds)
    (line,) = differences_table([of], every).rows
    text = " ".join(map(str, line))
    assert f"{of.official.difference:+.1f}" in text
    assert f"{of.every.difference:+.1f}" in text
    low, high = of.official.interval
    lowest, highest = of.every.interval
    assert shrinkage([of]) == pytest.approx((highest - lowest) / (high - low))


def test_a_difference_is_positive_where_the_first_is_better(official, folds):
    facts = {"firsts": [3.0, 5.0], "seconds": [1.0, 9.0], "second": "b"}
    made = over_folds(official, folds)
    for metric, expected in (("t2i_medr", [-2.0, 4.0]), ("t2i_r1", [2.0, -4.0])):
        every = SimpleNamespace(metric=metric, **facts)
        assert replace(made, every=every).by_fold.tolist() == expected


def test_the_page_of_few_rows_is_filled(official, folds, monkeypatch):
    monkeypatch.setattr(folds_page, "claim_tests", lambda board: [])
    titled = replace(official, card=official.card | {"title": "Made"})
    page = folds_page.folds_page(titled, folds)
    assert page.count("fold 1") == 1
    assert "Made" in page
    assert "## Claims" not in page

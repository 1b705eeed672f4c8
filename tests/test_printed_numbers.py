"""Numbers as papers print them, and numbers that no ranks can give: made-up rows with one
number changed, and tables of random ranks."""

import numpy as np
import pytest

from benchmark.data.results import Ranks
from benchmark.papers.printed_numbers import Audited, Rounded, findings
from benchmark.scoring.metrics import ALL_RANKS, RANK_METRICS, rank_metrics

QUERIES = {"i2t": 1000, "t2i": 5000}
RIGHT = {  # of 1,000 images and 5,000 captions
    "i2t_r1": "43.10",
    "i2t_r5": "70.20",
    "i2t_r10": "80.00",
    "i2t_medr": "2",
    "i2t_mrr": "55.0",
    "t2i_r1": "33.02",
    "t2i_r5": "60.0",
    "t2i_r10": "72.24",
    "rsum": "358.6",
    "mean": "59.76",
}


def rules(folds: int = 1, **numbers: str) -> set[str]:
    changed = {name: Rounded.of(text) for name, text in (RIGHT | numbers).items()}
    row = Audited(label="row", numbers=changed, queries=QUERIES, folds=folds)
    return {str(finding.rule) for finding in findings([row])}


def test_a_right_row_is_right():
    assert rules() == set()


@pytest.mark.parametrize(
    ("first", "second", "is_wrong"),
    [
        ("58.65", "58.6", False),  # cut off, or rounded down
        ("58.6", "58.55", False),
        ("59", "58.51", False),
        ("58.72", "58.6", True),
        ("60", "58.61", True),
        ("58.66", "58.65", True),
    ],
)
def test_recalls_at_other_decimals_may_be_equal(first, second, is_wrong):
    numbers = {"i2t_r5": Rounded.of(first), "i2t_r10": Rounded.of(second)}
    found = findings([Audited(label="row", numbers=numbers, queries={})])
    assert [str(finding.rule) for finding in found] == ["order"] * is_wrong


def test_recalls_of_growing_k_may_be_equal():
    equal = {
        "t2i_r1": "0",
        "t2i_r5": "0",
        "t2i_r10": "0",
        "rsum": "193.3",
        "mean": "32.2",
    }
    assert "order" not in rules(**equal)


@pytest.mark.parametrize(
    ("metric", "number", "rule"),
    [
        ("i2t_r1", "43.15", "count"),
        ("t2i_r1", "33.01", "count"),
        ("i2t_r1", "43.1", None),  # which may be 43.10
        ("i2t_r5", "42.20", "order"),
        ("t2i_r10", "100.2", "range"),
        ("i2t_medr", "0", "range"),
        ("i2t_medr", "2.3", "range"),
        ("i2t_medr", "1", "median"),
        ("i2t_medr", "6", "median"),
        ("i2t_medr", "1.5", "median"),
        ("i2t_medr", "5", None),
        ("i2t_mrr", "43.0", "mrr"),
        ("i2t_mrr", "61.0", "mrr"),
        ("rsum", "359.1", "sum"),
        ("rsum", "358.5", None),  # of recalls that were not rounded
        ("mean", "59.81", "sum"),  # more than 0.005 + 0.075 / 6 from 59.76
        ("mean", "59.91", "sum"),
        ("i2t_mean", "64.43", None),
        ("i2t_mean", "55.09", "sum"),
        ("t2i_r5", "41.0", "shape"),
    ],
)
def test_one_wrong_number_is_found(metric, number, rule):
    assert ({rule} if rule else set()) <= rules(**{metric: number})
    if rule is None:
        assert rules(**{metric: number}) == set()


@pytest.mark.parametrize(
    ("metric", "number", "code"),
    [
        ("rsum", "386.6", "SCAN"),  # six times the i2t_mean
        ("i2t_mean", "55.09", "SCAN"),
        ("t2i_mean", "358.5", "SCAN"),
        ("rsum", "2151.4", "VSE++"),
        ("rsum", "386.0", ""),
    ],
)
def test_a_misprint_is_named_with_the_code_that_prints_it(metric, number, code):
    changed = {n: Rounded.of(text) for n, text in (RIGHT | {metric: number}).items()}
    (finding,) = findings([Audited(label="row", numbers=changed, queries=QUERIES)])
    assert (
        (f"{code}'s code" in finding.because) if code else "code" not in finding.because
    )


@pytest.mark.parametrize(("tenth", "expected"), [("24.0", set()), ("28.0", {"shape"})])
def test_later_places_are_too_frequent_beyond_four_deviations(tenth, expected):
    """Ranks 2 to 5 have 1% of 1,000 queries each, ranks 6 to 10 2% or 2.8%. Without 0.2
    points of rounding that is 0.8 or 1.6 more, where four deviations are
    4 sqrt((0.04 / 16 + 0.1 / 25) / 1000) = 1.02% and, with 0.14 for 0.1, 1.14%."""
    texts = {"i2t_r1": "10.0", "i2t_r5": "14.0", "i2t_r10": tenth}
    numbers = {name: Rounded.of(text) for name, text in texts.items()}
    row = Audited(label="row", numbers=numbers, queries=QUERIES)
    assert {str(finding.rule) for finding in findings([row])} == expected


def test_means_of_folds_have_more_decimals():
    assert "count" in rules(i2t_r1="43.12")
    assert "count" not in rules(folds=5, i2t_r1="43.12")
    assert rules(folds=5, i2t_medr="2.2") == set()
    assert "median" in rules(folds=5, i2t_medr="1.0")


@pytest.mark.parametrize(("number", "expected"), [("9.2", set()), ("9.5", {"mrr"})])
def test_of_ranks_beyond_ten_the_first_is_eleven(number, expected):
    texts = dict.fromkeys(("i2t_r1", "i2t_r5", "i2t_r10"), "0.0")
    numbers = {name: Rounded.of(text) for name, text in texts.items()}
    numbers["i2t_mrr"] = Rounded.of(number)
    row = Audited(label="row", numbers=numbers, queries=QUERIES)
    assert {str(finding.rule) for finding in findings([row])} == expected


@pytest.mark.parametrize("decimals", [1, 2, 3])
@pytest.mark.parametrize("folds", [1, 5])
@pytest.mark.parametrize("cut", [False, True])
def test_rounded_or_cut_off_numbers_of_real_ranks_are_never_called_wrong(
    decimals, folds, cut
):
    rng = np.random.default_rng(decimals)
    for quality in (0.0, 0.5, 1.0, 2.0, 4.0):
        numbers, exactly = {}, {}
        for way, queries in QUERIES.items():
            measured = []
            for _ in range(folds):
                luck = rng.random(queries) ** (1 + quality * 4)
                ranks = Ranks.of_best((1000 * luck).astype(int))
                metrics = (*RANK_METRICS, *ALL_RANKS)
                measured.append(rank_metrics(way, ranks, metrics))
            for name in measured[0]:
                exactly[name] = np.mean([of_fold[name] for of_fold in measured])
                numbers[name] = printed_as(exactly[name], decimals, cut)
        terms = [f"{way}_r{k}" for way in QUERIES for k in (1, 5, 10)]
        of_printed = sum(float(str(numbers[term])) for term in terms)
        for exact in (of_printed, sum(exactly[term] for term in terms)):
            numbers["rsum"] = printed_as(exact, decimals, cut)
            numbers["mean"] = printed_as(exact / 6, decimals, cut)
            row = Audited(label="row", numbers=numbers, queries=QUERIES, folds=folds)
            assert findings([row]) == [], (quality, numbers)


def test_cut_off_recalls_add_up_to_less_than_their_sum():
    cut_off = dict.fromkeys(("i2t_r1", "t2i_r1"), "33.3")
    cut_off |= dict.fromkeys(("i2t_r5", "t2i_r5"), "55.5")
    cut_off |= dict.fromkeys(("i2t_r10", "t2i_r10"), "67.7")
    right = cut_off | {"rsum": "313.5"}  # of 33.39, 55.59 and 67.79
    for rsum, expected in (("313.5", set()), ("313.7", {"sum"}), ("312.6", {"sum"})):
        numbers = {n: Rounded.of(text) for n, text in (right | {"rsum": rsum}).items()}
        found = findings([Audited(label="row", numbers=numbers, queries={})])
        assert {str(finding.rule) for finding in found} == expected


def printed_as(value: float, decimals: int, cut: bool) -> Rounded:
    if cut:
        value = np.floor(value * 10**decimals + 1e-9) / 10**decimals
    return Rounded.of(f"{value:.{decimals}f}")


# Numbers as they are printed ----------------------------------------------------------


@pytest.mark.parametrize(
    "text, value, decimals",
    [("58.6", 58.6, 1), ("58,60", 58.6, 2), ("43", 43.0, 0), (".5", 0.5, 1)],
)
def test_a_number_keeps_its_decimals(text, value, decimals):
    number = Rounded.of(text)
    assert (number.value, number.decimals) == (value, decimals)
    assert str(number) == f"{value:.{decimals}f}"


@pytest.mark.parametrize("text", ["", ".", "1.2.3", "-5", "nan", "1e3", "12345678"])
def test_other_texts_are_no_numbers(text):
    assert Rounded.of(text) is None


def test_what_is_rounded_to_a_number_is_that_number():
    number = Rounded.of("58.6")
    assert number.half == pytest.approx(0.05)
    assert number.is_that_of(58.64) and number.is_that_of(58.55)
    assert not number.is_that_of(58.66)


def test_a_fraction_may_be_a_percentage():
    percentage = Rounded.of("0.586").in_percent
    assert (percentage.value, percentage.decimals) == (pytest.approx(58.6), 1)
    assert Rounded.of("0.5").in_percent is None  # too many numbers would be it
    assert Rounded.of("58.6").in_percent is None
    assert Rounded.of("0.58%").is_percent

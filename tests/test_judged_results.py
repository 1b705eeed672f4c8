"""A pair of results from anywhere, as it is put to the rules of verdicts."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from benchmark.commands.judged_results import (
    Question,
    effective_clusters,
    fewest_queries,
    of_files,
)
from benchmark.commands.result_files import KEY, SAME, Kind, Result
from benchmark.stats.claim_kinds import ORDERED

COUNT = 200
ASKED = Question(kind=ORDERED, metric=None, margin=None)


def result(name: str, hits: np.ndarray, clusters: np.ndarray | None = None) -> Result:
    keys = [["i2t"] * len(hits), list(map(str, range(len(hits))))]
    index = pd.MultiIndex.from_arrays(keys, names=KEY)
    owner = np.arange(len(hits)) if clusters is None else clusters
    facts = pd.DataFrame({"cluster": owner, **SAME}, index)
    table = pd.DataFrame({0: hits.astype(float)}, index)
    return Result(
        name=name, kind=Kind.HITS, table=table, facts=facts, depth=0, notes=[]
    )


@pytest.fixture
def hits() -> np.ndarray:
    return np.random.default_rng(0).random(COUNT) < 0.5


def test_the_difference_is_in_points_of_a_recall(hits):
    better = hits.copy()
    better[np.flatnonzero(~hits)[:20]] = True
    first, second = result("a", better), result("b", hits)
    judged = of_files(first, second, [first, second], ASKED)
    assert judged.verdict.difference == pytest.approx(10.0)
    assert (judged.queries, judged.unit) == (COUNT, "queries")
    assert judged.verdict.blocked is None and judged.verdict.margin == 1.0


def test_identical_results_and_few_clusters_let_nothing_be_concluded(hits):
    same = result("a", hits), result("b", hits)
    assert of_files(*same, same, ASKED).verdict.blocked.letter == "M"
    few = np.zeros(COUNT, int)
    few[:2] = 1
    both = result("a", hits, few), result("b", ~hits, few)
    assert of_files(*both, both, ASKED).verdict.blocked.letter == "L"


def test_equal_hits_are_identical_whatever_a_hit_is_called(hits):
    same = result("a", hits), result("b", 100 * hits)
    assert of_files(*same, same, ASKED).verdict.blocked.letter == "M"


@pytest.mark.parametrize("margin", [-1.0, np.nan, np.inf])
def test_a_margin_is_a_number_from_0(margin):
    with refused("--margin", expected="a number from 0"):
        Question(kind=ORDERED, metric=None, margin=margin)


def test_clusters_are_worth_fewer_where_one_has_most_queries(hits):
    even = result("a", hits, np.arange(COUNT) // 2)
    assert effective_clusters(even) == pytest.approx(COUNT / 2)
    assert fewest_queries(even) == COUNT
    sizes = np.r_[np.zeros(COUNT - 2, int), 1, 2]
    assert effective_clusters(result("b", hits, sizes)) < 1.1

"""A pair of results from anywhere, as it is put to the rules of verdicts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from scipy import stats

from benchmark.commands.judged_results import (
    Question,
    effective_clusters,
    fewest_queries,
    interval_of_level,
    measured_together,
    of_files,
    too_few,
)
from benchmark.commands.result_files import KEY, SAME, Kind, Result
from benchmark.stats.claim_kinds import ORDERED
from benchmark.stats.significance import score_interval

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


def test_the_direction_with_fewest_queries_counts(hits):
    both = result("a", hits)
    ways = ["i2t"] * 30 + ["t2i"] * (COUNT - 30)
    keys = [ways, both.table.index.get_level_values("query")]
    index = pd.MultiIndex.from_arrays(keys, names=KEY)
    table, facts = both.table.set_axis(index), both.facts.set_axis(index)
    both = replace(both, table=table, facts=facts)
    assert fewest_queries(both) == 30
    assert too_few(both).letter == "L" and too_few(result("b", hits)) is None


def test_the_level_of_few_clusters_has_the_quantile_of_student(hits):
    """Ten clusters of equal size: Wilson's interval with the variance of their means,
    and t with nine degrees of freedom for the normal's quantile."""
    one = result("a", hits, np.arange(COUNT) // (COUNT // 10))
    ends = interval_of_level(one, measured_together([one], [], None))
    means = 100 * hits.reshape(10, -1).mean(1)
    wilson = score_interval(means.mean(), means.var(ddof=1) / 10, 100.0, 10)
    wider = stats.t.ppf(0.975, 9) / stats.norm.ppf(0.975)
    expected = means.mean() + wider * (np.array(wilson) - means.mean())
    assert ends == pytest.approx(expected)


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

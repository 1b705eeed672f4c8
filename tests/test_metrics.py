"""Metrics: declared once, measured from ranks of all relevant items, and in their
ranges."""

import numpy as np
import pytest
from oracles import ranking as naive
from oracles import whole_matrices

from benchmark.data.results import Ranks
from benchmark.scoring import METRICS, metrics
from benchmark.scoring.metrics import RANK_METRICS, query_terms
from benchmark.scoring.ranking import localisation_ranks, ranks_of
from benchmark.scoring.relevance import Relevance

SETTINGS = {"overlap_range", "overlap_bins"}  # of S, in a record beside its metrics
INTERVAL = {"overlap_s_low", "overlap_s_high"}


def percent_found_of_7(ranks: Ranks) -> np.ndarray:
    hits = np.bincount(ranks.queries, ranks.values < 7, minlength=len(ranks))
    return 100 * hits / ranks.counts


def test_a_metric_of_all_relevant_items_is_one_entry(monkeypatch):
    entry = metrics.Metric(
        name="of7",
        heading="of 7",
        formula="share of the first 7",
        compute=lambda ranks: float(percent_found_of_7(ranks).mean()),
        of_queries=percent_found_of_7,
        directions=metrics.ALL,
        needs_all=True,
        **metrics.PERCENT,
    )
    monkeypatch.setattr(metrics, "RANK_METRICS", (entry, *RANK_METRICS))
    monkeypatch.setattr(metrics, "METRICS", metrics._by_name())
    rng = np.random.default_rng(0)
    scores, relevant = (
        rng.integers(0, 9, (7, 40)).astype(np.float32),
        rng.random((7, 40)) < 0.3,
    )
    relevant[:, 0] = True
    ranks = ranks_of(scores, relevant)
    found = metrics.rank_metrics("t2i", ranks, metrics.RANK_METRICS)
    assert found["t2i_of7"] == metrics.METRICS["t2i_of7"].compute(ranks) > 0
    assert "t2i_of7" in metrics.table_metrics("t2i")
    # Results of which only the best ranks are known lack it, and have all the others.
    old = metrics.rank_metrics("t2i", Ranks.of_best(ranks.best), metrics.RANK_METRICS)
    assert set(found) - set(old) == {"t2i_of7"}
    assert metrics.rank_metrics("t2i", ranks) == old


@pytest.mark.parametrize("seed", range(3))
def test_metrics_are_those_of_loops(seed):
    best = np.random.default_rng(seed).poisson(6, 51 + seed)
    ranks, loops = Ranks.of_best(best), best.tolist()
    found = metrics.rank_metrics("i2t", ranks)
    for k in (1, 5, 10):
        assert found[f"i2t_r{k}"] == pytest.approx(naive.recall_at(loops, k))
    assert found["i2t_medr"] == naive.median_rank(loops)
    assert found["i2t_meanr"] == pytest.approx(naive.mean_rank(loops))
    for metric in RANK_METRICS:
        if metric.of_queries:
            assert metric.of_queries(ranks).mean() == pytest.approx(
                metric.compute(ranks)
            )


def all_metrics(rng: np.random.Generator) -> dict:
    relevance = Relevance.of(np.arange(8), np.repeat(np.arange(8), 2), folds=2)
    relevant = relevance.matrix
    scores = {"i2t": np.clip(rng.normal(0.3 * relevant, 0.3), -1, 1)}
    scores["t2i"] = scores["i2t"].T
    numbers = metrics.retrieval_metrics(whole_matrices.ranks_by_way(scores, relevant))
    numbers |= whole_matrices.tie_gap(scores, relevant)
    numbers |= whole_matrices.score_metrics(
        scores["i2t"][relevant], scores["i2t"][~relevant]
    )
    numbers |= metrics.overlap_interval(numbers["overlap_s"], rng.uniform(0, 1, 50))
    within = whole_matrices.fold_ranks(scores, relevant, relevance)
    numbers |= metrics.fold_metrics(within, relevance.fold_of_query)
    numbers |= metrics.rank_metrics("s2s", Ranks.of_best(rng.integers(0, 9, 12)))
    ious, proposals = rng.uniform(0, 1, (9, 4)), rng.normal(size=(9, 4))
    ious[:3, 2:] = np.nan
    lost = localisation_ranks(proposals, ious)
    return numbers | metrics.localisation_metrics(lost, ious >= 0.5, ~np.isnan(ious))


@pytest.mark.parametrize("seed", range(3))
def test_every_number_of_a_record_is_declared_and_in_its_range(seed):
    numbers = all_metrics(np.random.default_rng(seed))
    assert set(numbers) - set(METRICS) == SETTINGS | INTERVAL | {"fold_values"}
    times = {"per_pair", "per_image", "per_caption", "per_batch"}
    lacks = {name for name in set(METRICS) - set(numbers) if METRICS[name].in_records}
    assert lacks == times  # of s2s the best ranks alone are known
    for name in set(numbers) & set(METRICS):
        low, high = METRICS[name].range
        assert low <= numbers[name] <= high, name


def test_rsum_adds_up_the_recalls_of_the_directions_that_a_record_has():
    names = [term.name for term in query_terms("rsum", {"t2i_r1", "s2s_r1"})]
    assert names == ["t2i_r1", "t2i_r5", "t2i_r10"]
    assert [term.name for term in query_terms("s2s_r5", {})] == ["s2s_r5"]
    assert query_terms("i2t_medr", {"i2t_r1"}) == query_terms("overlap_s", {}) == []
    ranks = {"t2i": Ranks.of_best(np.array([0, 3, 30]))}
    assert metrics.retrieval_metrics(ranks)["rsum"] == pytest.approx(
        100 / 3 + 2 * 200 / 3
    )

"""Ranks and recalls against sorting, literals, invariances and trec_eval's own success@K."""

import ir_measures
import numpy as np
import pytest
from oracles import ranking as naive

from benchmark.protocol import (
    metrics,
    optimistic_ranks,
    positive_ranks,
    rank_metrics,
    retrieval_metrics,
)


def problem(queries: int, gallery: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores with many ties, and relevance with one to all items per query."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, max(2, gallery // 2), (queries, gallery)).astype(np.float32)
    relevant = rng.random((queries, gallery)) < 0.3
    relevant[np.arange(queries), rng.integers(0, gallery, queries)] = True
    return scores, relevant


def wanted(relevant: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(row).tolist() for row in relevant]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (7, 7), (6, 30), (30, 6)])
def test_ranks_are_those_of_sorting(shape, seed):
    scores, relevant = problem(*shape, seed)
    expected = naive.ranks(scores, wanted(relevant))
    assert positive_ranks(scores, relevant).tolist() == expected


@pytest.mark.parametrize("seed", [0, 1])
def test_ranks_of_the_other_direction(seed):
    scores, _ = problem(8, 40, seed)
    relevant = np.arange(8)[:, None] == np.repeat(np.arange(8), 5)[None, :]
    expected = naive.ranks(scores.T, wanted(relevant.T))
    assert positive_ranks(scores.T, relevant.T).tolist() == expected


def test_optimistic_ranks_win_every_tie():
    scores, relevant = problem(20, 15, 3)
    # of each tie the relevant item moves ahead, so that no tie is left to be broken
    expected = naive.ranks(scores + relevant * 0.5, wanted(relevant))
    assert optimistic_ranks(scores, relevant).tolist() == expected
    assert expected != positive_ranks(scores, relevant).tolist()


def test_a_constant_matrix_scores_nothing():
    relevant = np.arange(12)[:, None] == np.repeat(np.arange(12), 5)[None, :]
    scores = np.full((12, 60), 0.5)
    ranks = positive_ranks(scores, relevant)
    assert ranks.tolist() == [55] * 12  # all items but the query's own five go before
    assert metrics.recall_at(1, ranks) == metrics.recall_at(10, ranks) == 0
    assert metrics.recall_at(1, optimistic_ranks(scores, relevant)) == 100


def test_ties_between_relevant_items_cost_nothing():
    scores = np.array([[0.9, 0.9, 0.1, 0.9]])
    assert positive_ranks(scores, np.array([[True, True, False, True]])).tolist() == [0]
    assert positive_ranks(scores, np.array([[True, True, False, False]])).tolist() == [1]


def test_order_of_the_gallery_does_not_matter():
    scores, relevant = problem(25, 40, 5)
    order = np.random.default_rng(0).permutation(40)
    shuffled = positive_ranks(scores[:, order], relevant[:, order])
    assert shuffled.tolist() == positive_ranks(scores, relevant).tolist()


def test_only_the_order_of_scores_matters():
    scores, relevant = problem(25, 40, 6)
    expected = positive_ranks(scores, relevant).tolist()
    for transform in (lambda x: x**3, lambda x: np.exp(x / 4), lambda x: 2 * x - 1000):
        assert positive_ranks(transform(scores), relevant).tolist() == expected


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(bad):
    scores, relevant = problem(4, 5, 0)
    scores[2, 3] = bad
    for ranks in (positive_ranks, optimistic_ranks):
        with pytest.raises(ValueError, match="scores contain NaN or infinity"):
            ranks(scores, relevant)


def test_shapes_that_differ_are_refused():
    scores, relevant = problem(4, 5, 0)
    with pytest.raises(ValueError, match=r"share a shape, got \(4, 5\) and \(5, 4\)"):
        positive_ranks(scores, relevant.T)
    with pytest.raises(ValueError, match="share a shape"):
        positive_ranks(scores, relevant[:1])  # would broadcast


def test_a_query_without_a_relevant_item_is_refused():
    scores, relevant = problem(4, 5, 0)
    relevant[1] = False
    with pytest.raises(ValueError, match="every query needs at least one relevant item"):
        positive_ranks(scores, relevant)


def test_summaries_of_literal_ranks():
    ranks = np.array([0, 4, 5, 9, 10, 1])
    assert rank_metrics("i2t", ranks) == {
        "i2t_r1": pytest.approx(100 / 6),
        "i2t_r5": pytest.approx(300 / 6),
        "i2t_r10": pytest.approx(500 / 6),
        "i2t_medr": 5,  # floor(4.5) + 1
        "i2t_meanr": pytest.approx(29 / 6 + 1),
    }
    assert metrics.median_rank(np.array([7, 0, 2])) == 3
    assert metrics.median_rank(np.array([0])) == 1
    assert metrics.mean_rank(np.array([0, 1, 2, 7])) == 3.5


def test_rsum_adds_six_recalls():
    ranks = {"i2t": np.array([0, 4, 5, 9]), "t2i": np.array([99, 7])}
    # R@1, R@5 and R@10: 25, 50 and 100 of i2t; 0, 0 and 50 of t2i
    assert retrieval_metrics(ranks)["rsum"] == 225
    assert retrieval_metrics({"t2i": ranks["t2i"]})["rsum"] == 50


def test_recall_is_the_success_of_trec_eval():
    rng = np.random.default_rng(8)
    queries, gallery = 30, 50
    scores = rng.permuted(np.tile(np.arange(gallery), (queries, 1)), axis=1)  # no ties
    _, relevant = problem(queries, gallery, 9)
    relevant &= rng.random(relevant.shape) < 0.2
    relevant[np.arange(queries), rng.integers(0, gallery, queries)] = True
    run = [
        ir_measures.ScoredDoc(f"q{q}", f"d{d}", float(scores[q, d]))
        for q in range(queries)
        for d in range(gallery)
    ]
    qrels = [
        ir_measures.Qrel(f"q{q}", f"d{d}", int(relevant[q, d]))
        for q in range(queries)
        for d in range(gallery)
    ]
    measures = [ir_measures.Success @ k for k in (1, 5, 10)]
    expected = ir_measures.calc_aggregate(measures, qrels, run)
    ranks = positive_ranks(scores, relevant)
    for k, measure in zip((1, 5, 10), measures, strict=True):
        assert metrics.recall_at(k, ranks) == pytest.approx(100 * expected[measure])
    assert 0 < metrics.recall_at(1, ranks) < metrics.recall_at(10, ranks) < 100

"""One rule for ties: test, validation and TREC runs count them against the method; and
what the mean over all orders of equal items would be."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from oracles import ranking as naive
from scipy import sparse

from benchmark.commands.trec_runs import places_of
from benchmark.data.rank_keys import I2T
from benchmark.scoring import ranking, ties
from benchmark.scoring.evaluation import of_retrieval
from benchmark.scoring.ranking import BestItems, LayerRanks, Matrices, Tile, ranks_of
from benchmark.scoring.relevance import LayerPairs, Relevance
from benchmark.scoring.ties import TiedItems, stands_before
from benchmark.scoring.validation import retrieval_recalls


def test_an_equal_score_stands_before_the_relevant_item():
    scores = [0.1, 0.5, 0.9]
    for kind in (np.array, torch.tensor, pd.Series):
        assert stands_before(kind(scores), 0.5).tolist() == [False, True, True]


def test_what_is_no_number_stands_before_nothing():
    assert not stands_before(np.array([np.nan, 1.0]), np.nan).any()


@pytest.mark.parametrize("seed", range(5))
def test_all_who_count_ranks_agree_on_scores_with_many_ties(seed):
    rng = np.random.default_rng(seed)
    scores_QG = rng.integers(0, 4, (12, 12)).astype(np.float32)
    relevant_QG = np.eye(12, dtype=bool) | (rng.random((12, 12)) < 0.1)
    wanted = [np.flatnonzero(row) for row in relevant_QG]
    expected = naive.best_ranks(scores_QG, wanted)
    assert ranks_of(scores_QG, relevant_QG).best.tolist() == expected
    recalls = retrieval_recalls(
        torch.from_numpy(scores_QG), torch.from_numpy(relevant_QG), ["i2t"]
    )
    for k in (1, 5, 10):
        share = 100 * np.mean(np.array(expected) < k)
        assert recalls[f"i2t_r{k}"] == pytest.approx(share)
    queries, items = np.indices(scores_QG.shape)
    run = {
        "query": queries.ravel(),
        "item": items.ravel(),
        "height": scores_QG.ravel(),
        "is_relevant": relevant_QG.ravel(),
    }
    assert places_of(pd.DataFrame(run))["before"].tolist() == expected


@pytest.mark.parametrize("seed", range(5))
def test_the_other_rule_is_one_file(seed, monkeypatch):
    monkeypatch.setattr(ranking, "stands_before", ties.by_other_rule)
    monkeypatch.setattr(ranking, "by_other_rule", ties.stands_before)
    monkeypatch.setattr(ranking, "comes_last", lambda is_own: ~ties.comes_last(is_own))
    rng = np.random.default_rng(seed)
    scores_QG = rng.integers(0, 4, (12, 12)).astype(np.float32)
    relevant_QG = np.eye(12, dtype=bool) | (rng.random((12, 12)) < 0.1)
    every = np.arange(12)
    tile = Tile(every, every, {I2T: scores_QG})
    counts = LayerRanks(I2T, LayerPairs(sparse.csr_array(relevant_QG.astype(np.int8))))
    counts.see(tile)
    counts.add(tile)
    nearest = BestItems(every, every, 12)
    nearest.add(every, every, scores_QG)
    own_Q = np.diag(scores_QG)
    for query in every:
        height_G, is_right_G = scores_QG[query], relevant_QG[query]
        best = height_G[is_right_G].max()
        is_tied_G = height_G == best
        assert counts.ranks.best[query] == (height_G > best).sum()
        assert counts.tied.before[query] == (height_G > best).sum()
        assert counts.tied.relevant[query] == (is_tied_G & is_right_G).sum()
        assert counts.tied.others[query] == (is_tied_G & ~is_right_G).sum()
        place = nearest.items[query].tolist().index(query)
        assert place == (height_G > own_Q[query]).sum()


def share_found_in_all_orders(scores: list, relevant: set[int], k: int) -> float:
    """By going through all orders of equal items."""
    hits = orders = 0
    for order in permutations(range(len(scores))):
        heights = [scores[item] for item in order]
        if heights == sorted(heights, reverse=True):
            orders += 1
            hits += any(item in relevant for item in order[:k])
    return 100 * hits / orders


@pytest.mark.parametrize("seed", range(6))
def test_the_mean_over_orders_of_ties_is_that_of_all_permutations(seed):
    rng = np.random.default_rng(seed)
    scores_QG = rng.integers(0, 3, (4, 7)).astype(np.float32)
    relevant_QG = rng.random((4, 7)) < 0.4
    relevant_QG[:, 0] = True
    tied = tied_items(scores_QG, relevant_QG)
    for k in (1, 2, 3, 5, 7):
        naively = [
            share_found_in_all_orders(list(scores), {*np.flatnonzero(relevant)}, k)
            for scores, relevant in zip(scores_QG, relevant_QG, strict=True)
        ]
        misses, hits, mean = tied.recalls_at(k)
        assert mean == pytest.approx(np.mean(naively))
        assert misses == 100 * np.mean(ranks_of(scores_QG, relevant_QG).best < k)
        assert misses <= mean <= hits


def test_the_mean_over_orders_of_ties_is_that_of_many_drawn_ones():
    rng = np.random.default_rng(0)
    scores_QG = rng.integers(0, 12, (40, 60)).astype(np.float32)
    relevant_QG = rng.random((40, 60)) < 0.08
    relevant_QG[np.arange(40), rng.integers(0, 60, 40)] = True
    tied, drawn = tied_items(scores_QG, relevant_QG), []
    for _ in range(4000):  # noise far below the steps of the scores
        noisy_QG = scores_QG + rng.random(scores_QG.shape) / 2
        best_Q = np.where(relevant_QG, noisy_QG, -1).max(1, keepdims=True)
        drawn.append((noisy_QG > best_Q).sum(1))
    for k in (1, 5, 10):
        shares = 100 * (np.array(drawn) < k).mean(1)
        error = shares.std() / np.sqrt(len(shares))
        assert abs(tied.recalls_at(k)[2] - shares.mean()) < 4 * error
        assert error < 0.2


def test_without_ties_nothing_hangs_on_their_order():
    rng = np.random.default_rng(1)
    scores_QG = rng.permutation(50).reshape(5, 10).astype(np.float64)
    tied = tied_items(scores_QG, np.eye(5, 10, dtype=bool))
    for k in (1, 3, 10):
        misses, hits, mean = tied.recalls_at(k)
        assert misses == hits == pytest.approx(mean)


@pytest.mark.parametrize("size", [(1, 1), (3, 4), (8, 9)])
def test_tied_items_are_counted_in_both_directions_whatever_the_tiles(size):
    rng = np.random.default_rng(2)
    scores_IC = rng.integers(0, 4, (6, 12)).astype(np.float32)
    relevance = Relevance.of(np.arange(6), np.repeat(np.arange(6), 2))
    ties = of_retrieval(Matrices(size, i2t=scores_IC), relevance).ties
    owns_IC = np.equal.outer(np.arange(6), np.repeat(np.arange(6), 2))
    for way, scores, owns in (
        ("i2t", scores_IC, owns_IC),
        ("t2i", scores_IC.T, owns_IC.T),
    ):
        expected = tied_items(scores, owns)
        for name in ("before", "relevant", "others"):
            assert np.array_equal(getattr(ties[way], name), getattr(expected, name))


def tied_items(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> TiedItems:
    best_Q1 = np.where(relevant_QG, scores_QG, -np.inf).max(1, keepdims=True)
    is_tied_QG = scores_QG == best_Q1
    return TiedItems(
        before=(scores_QG > best_Q1).sum(1),
        relevant=(is_tied_QG & relevant_QG).sum(1),
        others=(is_tied_QG & ~relevant_QG).sum(1),
    )

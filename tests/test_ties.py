"""One rule for ties: test, validation and TREC runs count them against the method."""

import numpy as np
import pandas as pd
import pytest
import torch
from oracles import ranking as naive

from benchmark.commands.trec_runs import places_of
from benchmark.scoring.ranking import ranks_of
from benchmark.scoring.ties import stands_before
from benchmark.train.selection import retrieval_recalls


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
    expected = naive.ranks(scores_QG, wanted)
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

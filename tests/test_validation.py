"""The recalls of validation, and which epoch is kept by them."""

import pytest
import torch

from benchmark.scoring import validation
from benchmark.train.resumable_loop import best_epoch


@pytest.mark.parametrize(
    ("rsums", "epoch"), [([5.0], 1), ([1.0, 3.0, 2.0], 2), ([3.0, 1.0, 3.0], 1)]
)
def test_the_earliest_of_the_best_epochs_is_kept(rsums, epoch):
    assert best_epoch(rsums) == epoch


def test_ties_count_as_misses():
    scores, relevant = torch.zeros(20, 20), torch.eye(20, dtype=torch.bool)
    recalls = validation.retrieval_recalls(scores, relevant, ["i2t", "t2i"])
    assert set(recalls.values()) == {0.0}
    scores.fill_diagonal_(1.0)
    recalls = validation.retrieval_recalls(scores, relevant, ["t2i"])
    assert recalls == {"t2i_r1": 100, "t2i_r5": 100, "t2i_r10": 100, "rsum": 300}


def test_a_phrase_without_a_right_proposal_is_a_miss_at_every_cutoff():
    ious = torch.tensor([[0.5, 0.1, torch.nan], [0.4, 0.49, 0.0]])
    scores = torch.tensor([[1.0, 0.0, torch.nan], [1.0, 0.0, 0.0]])
    recalls = validation.localisation_recalls(scores, ious)
    assert recalls == {"p2r_r1": 50, "p2r_r5": 50, "p2r_r10": 50, "rsum": 150}


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_scores_that_are_not_finite_are_refused(value):
    scores, relevant = torch.full((2, 2), value), torch.eye(2, dtype=torch.bool)
    with pytest.raises(validation.NotFiniteError):
        validation.retrieval_recalls(scores, relevant, ["i2t"])
    ious = torch.tensor([[0.5, torch.nan], [0.5, 0.1]])
    with pytest.raises(validation.NotFiniteError):
        validation.localisation_recalls(scores, ious)
    scores[1], scores[0, 0] = 0.0, 0.0  # of a missing proposal alone
    recalls = validation.localisation_recalls(scores, ious)
    assert recalls["p2r_r5"] == 100

"""The similarity network for phrases: its options, and which pairs it counts. Its loss
and scores are compared with loops in test_two_branch_similarity.py."""

import pytest
import torch

from benchmark.contracts.methods import OptionError
from benchmark.contracts.methods import two_branch_phrase_similarity as method

IOUS = torch.tensor([[0.9, 0.5, 0.1], [0.9, 0.8, 0.5]])


def test_a_phrase_whose_image_has_no_negative_region_gives_no_pair():
    rows, regions, others = method.pairs(IOUS, method.Config())
    assert rows.tolist() == [0, 0]
    assert regions.tolist() == [0, 1]  # the true region, and the proposal near it
    assert others.tolist() == [3, 3]  # the only one that is far


def test_without_augmentation_the_true_region_is_the_only_positive_one():
    rows, regions, _ = method.pairs(IOUS, method.Config(augmented=False))
    assert (rows.tolist(), regions.tolist()) == ([0], [0])


@pytest.mark.parametrize("layers", [0, 4])
def test_other_numbers_of_joint_layers_are_refused(layers):
    with pytest.raises(OptionError) as error:
        method.Config(joint_layers=layers)
    assert (error.value.option, error.value.found) == ("joint_layers", layers)


def test_the_last_epoch_counts_and_the_rate_stays():
    (phase,) = method.recipe(method.Config(epochs=3))
    assert phase.keeps == "last"
    assert phase.learning_rates == (0.001,) * 3

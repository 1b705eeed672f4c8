"""Distances, triplets and draws that several methods share, by loops and by hand."""

import math

import torch

from benchmark.layers import losses

IDS = torch.tensor([0, 0, 1, 2, 1])


def test_a_distance_is_that_of_unit_vectors():
    x = torch.nn.functional.normalize(torch.randn(3, 4, dtype=torch.float64), dim=1)
    expected = torch.cdist(x, x)
    torch.testing.assert_close(losses.distance(x, x).fill_diagonal_(0), expected)
    assert losses.distance(x.bfloat16(), x.bfloat16()).dtype == torch.float32


def test_the_hardest_triplets_are_those_of_a_loop():
    torch.manual_seed(0)
    positive, candidates = torch.rand(4), torch.rand(4, 6)
    is_negative = torch.rand(4, 6) < 0.6
    for k in (1, 2, 9):
        total = 0.0
        for row in range(4):
            hinges = []
            for column in range(6):
                if is_negative[row, column]:
                    gap = 0.2 + positive[row] - candidates[row, column]
                    hinges.append(max(0.0, gap.item()))
            total += sum(sorted(hinges, reverse=True)[:k])
        loss = losses.hardest_triplets(positive, candidates, is_negative, 0.2, k)
        assert math.isclose(loss, total / (4 * k), rel_tol=1e-5)


def test_hinges_of_wrong_captions_and_images_by_hand():
    scores = torch.tensor([[0.9, 0.8], [0.1, 0.5]])
    captions, images = losses.hinges(scores, ~torch.eye(2, dtype=bool), 0.2)
    torch.testing.assert_close(captions, torch.tensor([[0.0, 0.1], [0.0, 0.0]]))
    torch.testing.assert_close(images, torch.tensor([[0.0, 0.5], [0.0, 0.0]]))


def test_rows_of_one_group_are_no_negatives():
    assert losses.pairs_within(IDS) == 4
    assert losses.first_of_its_group(IDS).tolist() == [1, 0, 1, 1, 0]
    assert losses.differ(IDS)[0].tolist() == [0, 0, 1, 1, 1]


def test_a_text_without_neighbours_costs_nothing():
    distances = torch.rand(3, 3, requires_grad=True)
    loss = losses.text_neighbourhood(distances, torch.arange(3), 0.1, 2)
    loss.backward()
    assert loss == 0 and distances.grad.abs().sum() == 0


def test_draws_are_different_allowed_columns():
    torch.manual_seed(0)
    allowed = torch.tensor([[1, 1, 0, 1], [0, 0, 1, 0]], dtype=bool)
    columns, are_drawn = losses.draw(allowed, 2)
    assert are_drawn.tolist() == [[1, 1], [1, 0]]
    assert set(columns[0].tolist()) <= {0, 1, 3} and columns[1, 0] == 2


def test_the_logistic_loss_of_a_label():
    p = torch.tensor([0.0, 50.0], dtype=torch.bfloat16)
    torch.testing.assert_close(losses.logistic(p, -1), torch.tensor([math.log(2), 50]))

"""Branches of two-branch networks: their layers, and encodings of proposals."""

from types import SimpleNamespace

import torch
from torch import nn

from benchmark.layers import branches


def widths(network: nn.Module) -> list[tuple[int, int]]:
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    return [(layer.in_features, layer.out_features) for layer in layers]


def test_layers_between_a_product_and_its_score():
    assert widths(branches.joint(8, 3, 6, 4)) == [(8, 6), (6, 4), (4, 1)]
    assert widths(branches.joint(8, 2, 6, 4)) == [(8, 4), (4, 1)]
    assert widths(branches.joint(8, 1, 6, 4)) == [(8, 1)]
    assert isinstance(branches.joint(8, 2, 6, 4)[-1], nn.Linear)


def test_layers_start_as_in_tensorflow():
    torch.manual_seed(0)
    network = branches.nonlinear_branch(5, 7, 3, 0.5, 0.1)
    branches.start_from_glorot(network)
    bound = (6 / (5 + 7)) ** 0.5
    assert network[0].weight.abs().max() <= bound and not network[0].bias.any()


def test_each_proposal_is_encoded_once_and_missing_ones_are_zeros():
    batch = SimpleNamespace(
        regions=torch.tensor([[1.0], [2.0], [3.0]]),
        proposals=torch.tensor([[[4.0], [5.0]], [[6.0], [7.0]]]),
        image_of_row=torch.tensor([0, 1, 1]),
        ious=torch.tensor([[0.1, 0.2], [0.3, torch.nan], [0.4, torch.nan]]),
        present=3,
    )
    sizes = []

    def encode(images: torch.Tensor) -> tuple[torch.Tensor]:
        sizes.append(len(images))
        return (10 * images,)

    model = SimpleNamespace(encode_images=encode)
    regions, proposals = branches.encode_regions(model, batch)
    assert regions.tolist() == [[10], [20], [30]] and sizes == [6]
    assert proposals.tolist() == [[[40], [50]], [[60], [0]]]

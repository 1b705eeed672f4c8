"""The branches of two-branch networks, what joins them, and how their layers start.

Both networks of paper 002 have the same branches: "It shares the same architecture of
the two branches as the embedding network" (Section 3.3). L2 normalisation follows in
the models.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

from benchmark.contracts.methods import Matcher, RegionBatch


def linear_branch(input_size: int, hidden_size: int) -> nn.Sequential:
    """Paper 002, Section 4.2: the first FC layer alone."""
    return nn.Sequential(nn.Linear(input_size, hidden_size))


def nonlinear_branch(
    input_size: int,
    hidden_size: int,
    embedding_size: int,
    dropout: float,
    norm_momentum: float,
) -> nn.Sequential:
    """Paper 002, Section 3.2.1: FC, ReLU, dropout (Section 5.3), FC, batch norm."""
    return nn.Sequential(
        nn.Linear(input_size, hidden_size),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden_size, embedding_size),
        nn.BatchNorm1d(embedding_size, momentum=norm_momentum),
    )


def joint(
    product_size: int, layers: int, first_size: int, last_size: int
) -> nn.Sequential:
    """Paper 002, Section 4.3: from a product of two branches to a score, with ReLU
    between the FC layers. Between three layers there are `first_size` and `last_size`
    numbers, between two `last_size`."""
    between = (first_size, last_size)[3 - layers :]
    modules = []
    for inner, outer in pairwise((product_size, *between, 1)):
        modules += [nn.Linear(inner, outer), nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def encode_regions(model: Matcher, batch: RegionBatch) -> tuple[Tensor, Tensor]:
    """Encodings of the true regions (B, D), and of the proposals of the images (U, P,
    D).

    All pass through the network at once, each proposal once, so that a batch norm
    treats them alike. Where an image has fewer than P proposals, the missing ones are
    zeros and take no part.
    """
    shape = batch.proposals.shape[:2]
    rows = len(batch.regions)
    there_UP = torch.zeros(shape, dtype=torch.bool, device=batch.regions.device)
    there_UP = there_UP.index_copy(0, batch.image_of_row, ~batch.ious.isnan())
    there_N = there_UP.flatten().nonzero_static(size=batch.present)[:, 0]
    proposals_NF = batch.proposals.flatten(0, 1).index_select(0, there_N)
    (x_ND,) = model.encode_images(torch.cat([batch.regions, proposals_NF]))
    spread = x_ND.new_zeros(there_UP.numel(), x_ND.shape[-1])
    proposals_UPD = spread.index_copy(0, there_N, x_ND[rows:]).unflatten(0, shape)
    return x_ND[:rows], proposals_UPD


def start_from_glorot(model: nn.Module) -> None:
    """Glorot's uniform weights and zero biases for every FC layer: TensorFlow's
    default."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

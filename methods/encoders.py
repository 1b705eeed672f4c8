"""What several methods put before their embedding.

Both networks of paper 002 have the same branches: "It shares the same architecture of the two
branches as the embedding network" (Section 3.3). L2 normalisation follows in the models.
"""

from torch import nn


def linear_branch(input_size: int, hidden_size: int) -> nn.Sequential:
    """Paper 002, Section 4.2: the first FC layer alone."""
    return nn.Sequential(nn.Linear(input_size, hidden_size))


def nonlinear_branch(
    input_size: int, hidden_size: int, embedding_size: int, dropout: float, norm_momentum: float
) -> nn.Sequential:
    """Paper 002, Section 3.2.1: FC, ReLU, dropout (Section 5.3), FC, batch norm."""
    return nn.Sequential(
        nn.Linear(input_size, hidden_size),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden_size, embedding_size),
        nn.BatchNorm1d(embedding_size, momentum=norm_momentum),
    )


def start_from_glorot(model: nn.Module) -> None:
    """Glorot's uniform weights and zero biases for every FC layer: TensorFlow's default."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

"""Two-branch similarity network. Wang, Li, Huang, Lazebnik, TPAMI 2019 (paper 002).

No code of it was released. Assumed where the paper is silent:
- the setup of Section 5.3 holds for both networks ("we train our networks"): HGLMM vectors, layers
  of 2048 and 512, Adam at 0.0001, dropout after the ReLU of each branch and not after the product;
- 500 positive pairs per batch, as for the embedding network (Section 5.1), and as many negatives;
- the sentence of a negative pair comes from another row of the batch, uniformly among those of
  other images (Section 5.1: "randomly sampling a sentence not associated with the image"); a row
  that has no such sentence has no negative pair;
- the loss is the mean over positive and negative pairs (Eq. 7 sums), so that the learning rate
  keeps its meaning;
- two joint FC layers are 512 x 256 and 256 x 1, one is 512 x 1 (Section 4.3 names three);
- the linear variant multiplies the outputs of its first FC layers, so the first joint FC is larger;
- FC layers start from Glorot's uniform distribution with zero bias, and training takes 20 epochs at
  a constant rate: the embedding network's code.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Batch,
    Captions,
    Encoding,
    Inputs,
    OptionError,
    Phase,
    Rate,
    Share,
    Size,
    Sizes,
)
from benchmark.layers.branches import joint, linear_branch, nonlinear_branch, start_from_glorot
from benchmark.layers.losses import differ, logistic
from benchmark.layers.precision import in_float32, unit


@dataclass(frozen=True, kw_only=True)
class Config:
    nonlinear: bool = True  # Section 4.2: two FC layers per branch, or the first one only
    hidden_size: Size = 2048  # Section 5.3, both branches
    embedding_size: Size = 512  # Section 5.3
    dropout: Share = 0.5  # Section 5.3, after the ReLU
    joint_layers: Size = 3  # Section 3.3; Section 4.4 tries 1 and 2
    joint_size: Size = 512  # Section 4.3, outputs of the first of three
    last_joint_size: Size = 256  # Section 4.3, inputs of the last one
    batch_size: Size = 500  # Section 5.1, positive pairs
    learning_rate: Rate = 0.0001  # Section 5.3
    epochs: Size = 20  # assumed, as for the embedding network

    def __post_init__(self) -> None:
        if self.joint_layers not in (1, 2, 3):
            raise OptionError("joint_layers", "1, 2 or 3", self.joint_layers)


def inputs(config: Config) -> Inputs:
    return Inputs(image="pooled", text="sentence")


def recipe(config: Config) -> list[Phase]:
    """Section 5.3: Adam at one rate."""
    phase = Phase(
        epochs=config.epochs,
        learning_rates=(config.learning_rate,) * config.epochs,
        batch_size=config.batch_size,
    )
    return [phase]


def others(group_ids: Tensor) -> tuple[Tensor, Tensor]:
    """(B,) for each row a random row that shows another image; (B,) bool, whether there is one."""
    different_BB = differ(group_ids)
    lots_BB = torch.rand(different_BB.shape, device=group_ids.device)
    return lots_BB.masked_fill(~different_BB, -1.0).argmax(1), different_BB.any(1)


def branch(input_size: int, config: Config) -> nn.Sequential:
    """One side of the network; L2 normalisation follows in `Model`."""
    if not config.nonlinear:
        return linear_branch(input_size, config.hidden_size)
    return nonlinear_branch(
        input_size, config.hidden_size, config.embedding_size, config.dropout, norm_momentum=0.1
    )


class Model(nn.Module):
    """Scores pairs by a network. Encodings: unit vectors (I, D) and (C, D)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.image_branch = branch(sizes.image, config)
        self.text_branch = branch(sizes.text, config)
        product_size = config.embedding_size if config.nonlinear else config.hidden_size
        self.joint = joint(
            product_size, config.joint_layers, config.joint_size, config.last_joint_size
        )
        start_from_glorot(self)

    def encode_images(self, images: Tensor) -> Encoding:
        return (unit(self.image_branch(images)),)

    def encode_captions(self, captions: Captions) -> Encoding:
        return (unit(self.text_branch(captions.values)),)

    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """p of every pair, shape (I, C). Holds all I x C products: meant for tiles."""
        return self._score(images[0][:, None] * captions[0][None])

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Eq. 7 over B positive pairs and a negative one for each (Sections 3.3 and 5.1)."""
        (x_BD,), (y_BD,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        other_B, has_other_B = others(batch.group_ids)
        positive_B, negative_B = self._score(
            torch.cat([x_BD * y_BD, x_BD * y_BD.index_select(0, other_B)])
        ).chunk(2)
        pairs = 2 * len(x_BD)
        return {
            "matched": logistic(positive_B, 1).sum() / pairs,
            "mismatched": (logistic(negative_B, -1) * has_other_B).sum() / pairs,
        }

    @in_float32
    def _score(self, product: Tensor) -> Tensor:
        return self.joint(product).squeeze(-1)

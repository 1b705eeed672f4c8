"""Two-branch similarity network for phrases and regions. Wang, Li, Huang, Lazebnik, TPAMI 2019
(paper 002, Sections 3.3 and 4, Algorithm 1).

No code of it was released. Assumed where the paper is silent:
- the true region is one of the augmented positives: they augment the "ground truth regions"
  (Section 4.2), and its IoU with itself is 1; IoU is at least 0.7 (Algorithm 1; Section 4.1 has
  more than 0.7);
- every positive pair draws its negative region by itself, so that one may serve several pairs;
  a phrase whose image has no negative region gives no pair, as the pairs must balance;
- the loss is the mean over positive and negative pairs (Eq. 7 sums), so that the learning rate
  keeps its meaning, and a phrase with many positives counts as often;
- two joint FC layers are 512 x 256 and 256 x 1, one is 512 x 1 (Section 4.3 names three);
- the linear variant multiplies the outputs of its first FC layers, so the first joint FC is larger;
- the batch norm of regions sees the true ones and all proposals of the batch's images;
- the rate is constant ("initial", no decay is named), and the last epoch counts, without a choice
  on validation; FC layers start from Glorot's uniform distribution with zero bias, as in the
  embedding network's code.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Captions,
    Encoding,
    Fraction,
    Inputs,
    OptionError,
    Phase,
    Rate,
    RegionBatch,
    Size,
    Sizes,
)
from benchmark.layers.branches import (
    encode_regions,
    joint,
    linear_branch,
    nonlinear_branch,
    start_from_glorot,
)
from benchmark.layers.losses import draw, logistic
from benchmark.layers.precision import in_float32, unit


@dataclass(frozen=True, kw_only=True)
class Config:
    nonlinear: bool = True  # Section 4.2: two FC layers per branch, or the first one only
    hidden_size: Size = 1024  # Section 4.3, both branches
    embedding_size: Size = 512  # Section 4.3
    joint_layers: Size = 3  # Section 3.3; Section 4.4 tries 1 and 2
    joint_size: Size = 512  # Section 4.3, outputs of the first of three
    last_joint_size: Size = 256  # Section 4.3, inputs of the last one
    augmented: bool = True  # assumed to keep the true region; Algorithm 1, step 2: all near it
    positive_iou: Fraction = 0.7  # Algorithm 1, IoU of a positive region, at least
    negative_iou: Fraction = 0.3  # Algorithm 1, below it a region is negative
    batch_size: Size = 100  # Algorithm 1, phrases with their true regions
    learning_rate: Rate = 0.001  # Section 4.3
    epochs: Size = 8  # Section 4.3

    def __post_init__(self) -> None:
        if self.joint_layers not in (1, 2, 3):
            raise OptionError("joint_layers", "1, 2 or 3", self.joint_layers)


def inputs(config: Config) -> Inputs:
    return Inputs(task="localisation", image="proposals", text="phrase")


def recipe(config: Config) -> list[Phase]:
    """Section 4.3: Adam at one rate."""
    phase = Phase(
        epochs=config.epochs,
        learning_rates=(config.learning_rate,) * config.epochs,
        batch_size=config.batch_size,
        keeps="last",  # as for the embedding network
    )
    return [phase]


def positives(ious_BP: Tensor, config: Config) -> Tensor:
    """(B, 1 + P) bool, steps 2 and 3 of Algorithm 1: which regions of a row's image are positive.
    Regions are numbered 0 for the true one and 1 + p for proposal p."""
    true_B1 = torch.ones_like(ious_BP[:, :1], dtype=torch.bool)
    near_BP = (ious_BP >= config.positive_iou) & config.augmented
    has_negative_B1 = (ious_BP < config.negative_iou).any(1, keepdim=True)
    return torch.cat([true_B1, near_BP], dim=1) & has_negative_B1


def pairs(
    ious_BP: Tensor, config: Config, count: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The N positive pairs: their rows, their regions and as many negative regions (N,). `count`
    is N, where that is known without asking a GPU."""
    positive_BR = positives(ious_BP, config)
    count = int(positive_BR.sum()) if count is None else count
    row_N, positive_N = positive_BR.nonzero_static(size=count).unbind(1)
    column_N1, _ = draw((ious_BP < config.negative_iou)[row_N], 1)
    return row_N, positive_N, 1 + column_N1[:, 0]


def branch(input_size: int, config: Config) -> nn.Sequential:
    """One side of the network; L2 normalisation follows in `Model`. No dropout (Section 5.3)."""
    if not config.nonlinear:
        return linear_branch(input_size, config.hidden_size)
    sizes = (config.hidden_size, config.embedding_size)
    return nonlinear_branch(input_size, *sizes, dropout=0.0, norm_momentum=0.1)


class Model(nn.Module):
    """Scores pairs by a network. Encodings: unit vectors (N, D) of regions, (C, D) of phrases."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
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
        """p of every pair, shape (N, C). Holds all N x C products: meant for tiles."""
        return self._score(images[0][:, None] * captions[0][None])

    def loss(self, batch: RegionBatch) -> dict[str, Tensor]:
        """Eq. 7 over the positive pairs of the batch and a negative one for each."""
        (y_BD,) = self.encode_captions(batch.phrases)
        true_BD, proposals_UPD = encode_regions(self, batch)
        x_BRD = torch.cat([true_BD[:, None], proposals_UPD[batch.image_of_row]], dim=1)
        positive_pairs = int(positives(batch.counted_ious, self.config).sum())
        row_N, positive_N, negative_N = pairs(batch.ious, self.config, positive_pairs)
        regions_2N = torch.cat([positive_N, negative_N])
        rows_2N = row_N.repeat(2)
        scores_2N = self._score(x_BRD[rows_2N, regions_2N] * y_BD[rows_2N])
        matched_N, mismatched_N = scores_2N.chunk(2)
        count = max(len(scores_2N), 1)
        return {
            "matched": logistic(matched_N, 1).sum() / count,
            "mismatched": logistic(mismatched_N, -1).sum() / count,
        }

    @in_float32
    def _score(self, product: Tensor) -> Tensor:
        return self.joint(product).squeeze(-1)

"""Two-branch embedding network. Wang, Li, Huang, Lazebnik, TPAMI 2019 (paper 002).

Reference code: github.com/lwwang/Two_branch_network at 03f106f.
Assumed where the paper is silent or differs from that code:
- each loss term is the mean over its rows x K slots, empty ones included (code; Eq. 6 sums), so
  that the paper's learning rate keeps its meaning;
- an image that fills several rows of a batch is one candidate x' (Section 5.1: "an image in the
  mini-batch"), and a sentence of the same image is never a negative (the code's repeats are);
- neighbours are taken pair by pair, as Eq. 5 is written (the code takes the farthest neighbour);
- the neighbourhood term is on from the first step (code);
- FC layers start from Glorot's uniform distribution with zero bias (code);
- 20 epochs at a constant learning rate (code; the paper names an initial rate and no end).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods import Batch, Captions, Encoding, Inputs, Phase, Sizes

INPUTS = Inputs(image="pooled", text="sentence")


@dataclass(frozen=True, kw_only=True)
class Config:
    nonlinear: bool = True  # Section 4.2: two FC layers a branch, or the first one only
    hidden_size: int = 2048  # Section 5.3, both branches
    embedding_size: int = 512  # Section 5.3
    dropout: float = 0.5  # Section 5.3, after the ReLU
    margin: float = 0.05  # Section 3.2.2
    lambda1: float = 1.0  # Section 5.2, image anchor
    lambda2: float = 1.5  # Section 5.2, sentence anchor; 0: single-directional
    lambda4: float = 0.0  # Section 5.2, sentence neighbourhood; 0.05 with constraints
    top_k: int = 10  # Section 5.1, triplets kept per pair and direction
    neighbourhood_sampling: bool = False  # Section 3.2.3: two sentences for every image
    batch_size: int = 500  # Section 5.1
    learning_rate: float = 0.0001  # Section 5.3
    epochs: int = 20  # official train_embedding_nn.py

    def __post_init__(self) -> None:
        if self.lambda4 and not self.neighbourhood_sampling:
            raise ValueError("lambda4: neighbourhood constraints need neighbourhood_sampling: true")


def recipe(config: Config) -> list[Phase]:
    """Section 5.3: Adam at one rate."""
    phase = Phase(
        epochs=config.epochs,
        learning_rates=(config.learning_rate,) * config.epochs,
        batch_size=config.batch_size,
        captions_per_image=2 if config.neighbourhood_sampling else 1,
    )
    return [phase]


def distance(x_AD: Tensor, y_BD: Tensor) -> Tensor:
    """Euclidean distance (A, B) of unit vectors, in float32 or better: the margin is 0.05, and a
    bfloat16 cosine near 1 moves in steps of 0.004."""
    with torch.autocast(x_AD.device.type, enabled=False):
        cosine_AB = x_AD.to(torch.promote_types(x_AD.dtype, torch.float32)) @ y_BD.T.to(
            torch.promote_types(y_BD.dtype, torch.float32)
        )
    return (2 - 2 * cosine_AB).clamp_min(1e-12).sqrt()


def hardest_triplets(positive_R: Tensor, candidates_RN: Tensor, negative_RN: Tensor, margin, k):
    """Mean over R rows x k slots of [m + d(positive) - d(negative)]+ for the k highest values.

    Eqs. 3 and 5 with the mining of Section 5.1. `negative_RN` tells which candidates count.
    """
    hinge_RN = F.relu(margin + positive_R[:, None] - candidates_RN) * negative_RN
    kept = hinge_RN.topk(min(k, hinge_RN.shape[1]), dim=1).values
    return kept.sum() / (len(positive_R) * k)


def image_anchor(d_BB: Tensor, image_ids: Tensor, margin: float, k: int) -> Tensor:
    """First term of Eq. 3: triplets (x, y, y'). d_BB[b, c] is d(image b, text c)."""
    return hardest_triplets(d_BB.diagonal(), d_BB, _differ(image_ids), margin, k)


def sentence_anchor(d_BB: Tensor, image_ids: Tensor, margin: float, k: int) -> Tensor:
    """Second term of Eq. 3: triplets (y, x, x'), every image of the batch once."""
    negative_BB = _differ(image_ids) & _first_of_its_image(image_ids)
    return hardest_triplets(d_BB.diagonal(), d_BB.T, negative_BB, margin, k)


def sentence_neighbourhood(d_BB: Tensor, image_ids: Tensor, margin: float, k: int) -> Tensor:
    """Fourth term of Eq. 6, from Eq. 5. d_BB[b, c] is d(text b, text c)."""
    same_BB = ~_differ(image_ids)
    same_BB.fill_diagonal_(False)
    rows, neighbours = same_BB.nonzero(as_tuple=True)
    if not len(rows):
        return d_BB.sum() * 0.0
    negative_RB = _differ(image_ids)[rows]
    return hardest_triplets(d_BB[rows, neighbours], d_BB[rows], negative_RB, margin, k)


def branch(input_size: int, config: Config) -> nn.Sequential:
    """FC, ReLU, dropout, FC, batch norm (Section 3.2.1); linear: the first FC only (4.2).

    L2 normalisation follows in `Model`.
    """
    first = nn.Linear(input_size, config.hidden_size)
    if not config.nonlinear:
        return nn.Sequential(first)
    last = nn.Linear(config.hidden_size, config.embedding_size)
    norm = nn.BatchNorm1d(config.embedding_size)
    return nn.Sequential(first, nn.ReLU(), nn.Dropout(config.dropout), last, norm)


class Model(nn.Module):
    """Two branches into one space. Encodings: unit vectors (I, D) and (C, D)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        self.image_branch = branch(sizes.image, config)
        self.text_branch = branch(sizes.text, config)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def encode_images(self, images: Tensor) -> Encoding:
        return (F.normalize(self.image_branch(images), dim=-1),)

    def encode_captions(self, captions: Captions) -> Encoding:
        return (F.normalize(self.text_branch(captions.values), dim=-1),)

    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """Cosine, shape (I, C): orders pairs as the Euclidean distance does (Section 3.1)."""
        return images[0] @ captions[0].T

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Eq. 6 with lambda3 = 0, as Section 5.2 sets it for sentences."""
        (x_BD,), (y_BD,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        d_BB, ids, c = distance(x_BD, y_BD), batch.image_ids, self.config
        terms = {"image_anchor": c.lambda1 * image_anchor(d_BB, ids, c.margin, c.top_k)}
        if c.lambda2:
            terms["sentence_anchor"] = c.lambda2 * sentence_anchor(d_BB, ids, c.margin, c.top_k)
        if c.lambda4:
            term = sentence_neighbourhood(distance(y_BD, y_BD), ids, c.margin, c.top_k)
            terms["sentence_neighbourhood"] = c.lambda4 * term
        return terms


def _differ(image_ids: Tensor) -> Tensor:
    return image_ids[:, None] != image_ids[None, :]


def _first_of_its_image(image_ids: Tensor) -> Tensor:
    """(B,) bool: the rows whose image no earlier row shows."""
    return torch.triu(~_differ(image_ids)).float().argmax(0) == torch.arange(
        len(image_ids), device=image_ids.device
    )

"""Projection heads: a small network on each side of frozen vectors, under one of six losses.

What people try first today: an image vector and a sentence vector from pretrained networks, two
linear layers on each, cosines. On equal features, networks and steps the losses of six papers are
the rows of one table:

    info_nce          CLIP, Radford et al., ICML 2021: softmax over the batch, both ways
    sigmoid           SigLIP, Zhai et al., ICCV 2023: every pair for itself
    all_negatives     VSE0, the sum of hinges of Faghri et al., VSE++, BMVC 2018
    hardest_negative  VSE++, its hardest hinge
    top_k             two-branch networks, paper 002, Eq. 3, without its neighbourhoods
    instance          dual-path, paper 001, Eqs. 5 to 8

Reference code: github.com/openai/CLIP at 0845fc4 (model.py; no training),
github.com/google-research/big_vision at 179d020 (siglip.py), and what the methods `vse`,
`two_branch_embedding` and `dual_path` name. The texts of CLIP and SigLIP were not at hand: what is
said to be in a section of theirs is unchecked.
Departs from the papers:
- nothing but the heads is trained, and their networks are no paper's;
- another caption of the same image takes no part as a negative (CLIP, SigLIP: it is one);
- Adam, no weight decay, no warm-up, batches of hundreds (CLIP, SigLIP: AdamW or Adafactor,
  thousands and more);
- half of the numbers of a frozen vector are dropped in training: with dropout between the layers
  alone, validation on Flickr8k falls from the third epoch on;
- the instance loss has no dropout of its own, and starts from PyTorch's weights.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Batch,
    Captions,
    Count,
    Encoding,
    Inputs,
    Phase,
    Rate,
    Share,
    Size,
    Sizes,
    Weight,
)
from benchmark.layers.losses import (
    differ,
    distance,
    first_of_its_group,
    hardest_triplets,
    hinges,
)
from benchmark.layers.precision import in_float32, unit, wide

LARGEST = 100.0  # CLIP, Section 2.5: logits are scaled by no more


@dataclass(frozen=True, kw_only=True)
class Config:
    loss: Literal[
        "info_nce", "sigmoid", "all_negatives", "hardest_negative", "top_k", "instance"
    ] = "info_nce"
    hidden_size: Size = 1024  # assumed, both heads
    embedding_size: Size = 512  # assumed
    input_dropout: Share = 0.5  # assumed, of the frozen vectors
    dropout: Share = 0.2  # assumed, after the ReLU
    temperature: Rate = 0.07  # CLIP, Section 2.5; official SigLIP: 0.1, t = log 10. It is learned
    bias: float = -10.0  # official SigLIP, b; it is learned
    margin: Weight = 0.2  # official VSE++; paper 002, Section 3.2.2: 0.05
    top_k: Size = 10  # paper 002, Section 5.1
    lambda2: Weight = 1.5  # paper 002, Section 5.2: sentence anchor
    batch_size: Size = 256  # assumed
    learning_rate: Rate = 0.001  # assumed
    epochs: Size = 12  # assumed
    decay_after: Count = 9  # assumed: learning rate / 10 from here on


def inputs(config: Config) -> Inputs:
    return Inputs(image="pooled", text="sentence", caption_similarity=True)


def recipe(config: Config) -> list[Phase]:
    """Adam; its rate falls once."""
    c = config
    rates = tuple(c.learning_rate * (1.0 if e < c.decay_after else 0.1) for e in range(c.epochs))
    return [Phase(epochs=c.epochs, learning_rates=rates, batch_size=c.batch_size)]


def head(input_size: int, config: Config) -> nn.Sequential:
    """Dropout, linear, ReLU, dropout, linear; unit length follows in `Model`."""
    return nn.Sequential(
        nn.Dropout(config.input_dropout),
        nn.Linear(input_size, config.hidden_size),
        nn.ReLU(),
        nn.Dropout(config.dropout),
        nn.Linear(config.hidden_size, config.embedding_size),
    )


class Model(nn.Module):
    """Two heads into one space. Encodings: unit vectors (I, D) and (C, D)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config, D = config, config.embedding_size
        self.image_head, self.text_head = head(sizes.image, config), head(sizes.text, config)
        if config.loss in ("info_nce", "sigmoid"):
            self.t = nn.Parameter(torch.tensor(-math.log(config.temperature)))
        if config.loss == "sigmoid":
            self.b = nn.Parameter(torch.tensor(config.bias))
        if config.loss == "instance":
            self.share = nn.Linear(D, sizes.classes, bias=False)  # W_share

    def encode_images(self, images: Tensor) -> Encoding:
        return (unit(self.image_head(images)),)

    def encode_captions(self, captions: Captions) -> Encoding:
        return (unit(self.text_head(captions.values)),)

    @in_float32
    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """Cosine, shape (I, C)."""
        return images[0] @ captions[0].T

    @in_float32
    def caption_similarity(self, captions: Encoding, others: Encoding) -> Tensor:
        """Cosine of sentences, shape (C, C)."""
        return captions[0] @ others[0].T

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The loss of `Config.loss`, of what the heads give before it has unit length."""
        f_BD, g_BD = self.image_head(batch.images), self.text_head(batch.captions.values)
        return LOSSES[self.config.loss](self, f_BD, g_BD, batch)


@in_float32
def softmax_pairs(scores_BB: Tensor, negative_BB: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """CLIP, Fig. 3, of scores[i, c] of image i and caption c: half the mean cross-entropy of the
    own caption among each row's, and of the own image among each column's."""
    own_B = torch.arange(len(scores_BB), device=scores_BB.device)
    counts_BB = negative_BB | (own_B[:, None] == own_B)
    logits_BB = (t.exp() * scores_BB).masked_fill(~counts_BB, -math.inf)
    return F.cross_entropy(logits_BB, own_B) / 2, F.cross_entropy(logits_BB.T, own_B) / 2


@in_float32
def sigmoid_pairs(scores_BB: Tensor, negative_BB: Tensor, t: Tensor, b: Tensor) -> Tensor:
    """SigLIP's loss: -log sigmoid(z (t x . y + b)) of all pairs, summed, over the rows; the label z
    is 1 on the diagonal and -1 for negatives."""
    logits_BB = t.exp() * scores_BB + b
    right = F.softplus(-logits_BB.diagonal()).sum()
    return (right + (F.softplus(logits_BB) * negative_BB).sum()) / len(scores_BB)


def info_nce(model: Model, f_BD: Tensor, g_BD: Tensor, batch: Batch) -> dict[str, Tensor]:
    with torch.no_grad():
        model.t.clamp_(max=math.log(LARGEST))
    scores_BB = model.similarity((unit(f_BD),), (unit(g_BD),))
    captions, images = softmax_pairs(scores_BB, differ(batch.group_ids), model.t)
    return {"image_anchor": captions, "caption_anchor": images}


def sigmoid(model: Model, f_BD: Tensor, g_BD: Tensor, batch: Batch) -> dict[str, Tensor]:
    scores_BB = model.similarity((unit(f_BD),), (unit(g_BD),))
    return {"pairs": sigmoid_pairs(scores_BB, differ(batch.group_ids), model.t, model.b)}


def all_negatives(model: Model, f_BD: Tensor, g_BD: Tensor, batch: Batch) -> dict[str, Tensor]:
    captions_BB, images_BB = _hinges(model, f_BD, g_BD, batch)
    return {"image_anchor": captions_BB.sum(), "caption_anchor": images_BB.sum()}


def hardest_negative(model: Model, f_BD: Tensor, g_BD: Tensor, batch: Batch) -> dict[str, Tensor]:
    captions_BB, images_BB = _hinges(model, f_BD, g_BD, batch)
    return {"image_anchor": captions_BB.amax(1).sum(), "caption_anchor": images_BB.amax(0).sum()}


def _hinges(model: Model, f_BD: Tensor, g_BD: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    scores_BB = model.similarity((unit(f_BD),), (unit(g_BD),))
    return hinges(scores_BB, differ(batch.group_ids), model.config.margin)


def top_k(model: Model, f_BD: Tensor, g_BD: Tensor, batch: Batch) -> dict[str, Tensor]:
    """As in paper 002, every image of the batch is one candidate, however many rows it fills."""
    c, d_BB, negative_BB = model.config, distance(unit(f_BD), unit(g_BD)), differ(batch.group_ids)
    once_BB = negative_BB & first_of_its_group(batch.group_ids)
    image_anchor = hardest_triplets(d_BB.diagonal(), d_BB, negative_BB, c.margin, c.top_k)
    caption_anchor = hardest_triplets(d_BB.diagonal(), d_BB.T, once_BB, c.margin, c.top_k)
    return {"image_anchor": image_anchor, "caption_anchor": c.lambda2 * caption_anchor}


def instance(model: Model, f_BD: Tensor, g_BD: Tensor, batch: Batch) -> dict[str, Tensor]:
    return {
        "visual": F.cross_entropy(wide(model.share(f_BD)), batch.class_ids),
        "textual": F.cross_entropy(wide(model.share(g_BD)), batch.class_ids),
    }


LOSSES: dict[str, Callable[[Model, Tensor, Tensor, Batch], dict[str, Tensor]]] = {
    loss.__name__: loss
    for loss in (info_nce, sigmoid, all_negatives, hardest_negative, top_k, instance)
}

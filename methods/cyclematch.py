"""CycleMatch: cycle-consistent embeddings. Y. Liu, PhD thesis, Leiden 2018, Chapter 6 (paper 003).

There is no public code. Where the paper is silent, the layers follow an earlier network of the
same author, github.com/yuLiu24/RRF-Net at e77a705; all of this is assumed:
- fc1 ReLU dropout 0.5, fc2 BN ReLU, fc3 BN ReLU, fc4 BN; a layer before a BN has no bias, which
  the BN would take away; f^(3) is what leaves fc3's ReLU;
- weights start from a Gaussian of deviation 0.05, biases from zero;
- v and t are centred and divided by one deviation, before everything: they are targets too
  (Eqs. 6.1 and 6.4), so nothing of them is learnt, and f_I2T(v), which leaves a BN, enters the
  second mapping at about the scale of t. One deviation for all components keeps what is near what
  (`scaling`); one for each would whiten sentence vectors that are principal components, whose
  unmatched cosines, and so the areas of Eq. 6.9, shrink by a factor of three;
- the running statistics of a mapping's BNs are those of real features, v for f_I2T and t for f_T2I,
  since scores let nothing else pass (Eq. 6.7); a way back, as f_T2I(f_I2T(v)), leaves them alone;
- each half of a term is a mean over its rows x K slots, empty ones included (Eq. 6.2 sums, which
  would multiply the learning rate of 0.1 by 25,000);
- the learning rate falls after 20 and 40 epochs (paper: when the loss stabilises); biases learn and
  decay as weights do (RRF-Net: twice as fast, no decay).
Assumed without such a precedent:
- a caption of the same image is never a negative, and an image that fills several rows of a batch
  is one negative; that holds for everything computed from it, as f_I2T(v) or its reconstruction;
- T2I2T is I2T2I with v and t exchanged, so alpha weights the half that ranks f_T2I(t-) for v;
- Table 6.1 gives CycleMatch(I2T2I) the I2T2I branch "and an I->T dual mapping", which the branch
  has already (Eq. 6.6): taken as T->I. Without it f_T2I, and so the visual score, would never meet
  a text in training. CycleMatch(T2I2T) likewise;
- LatentMatch ranks as Eq. 6.2 does and has no fourth layers;
- sentences are compared by the cosine of their f_T2I(t).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

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
    Weight,
)
from benchmark.layers.losses import differ, first_of_its_group, hardest_triplets
from benchmark.layers.precision import in_float32, unit


@dataclass(frozen=True, kw_only=True)
class Config:
    variant: str = "cycle"  # Table 6.1, a key of VARIANTS
    scaling: str = "common"  # assumed, a key of SCALINGS; of v and t
    hidden_size: Size = 2048  # Section 6.4.1, fc1
    embedding_size: Size = 512  # Section 6.4.1, fc2 and fc3, the latent space
    dropout: Share = 0.5  # assumed (RRF-Net), after fc1
    initial_deviation: Rate = 0.05  # assumed (RRF-Net)
    margin: Weight = 0.1  # Section 6.4.1
    alpha: Weight = 2.0  # Section 6.4.1, second half of Eqs. 6.2, 6.4 and 6.5
    top_k: Size = 50  # Section 6.4.1, negatives
    batch_size: Size = 500  # Section 6.4.1
    learning_rate: Rate = 0.1  # Section 6.4.1
    decay_every: Size = 20  # assumed (RRF-Net): epochs after which the learning rate is a tenth
    momentum: Share = 0.9  # Section 6.4.1
    weight_decay: Weight = 0.0005  # Section 6.4.1
    epochs: Size = 60  # Section 6.4.1

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise OptionError("variant", f"one of {', '.join(VARIANTS)}", self.variant)
        if self.scaling not in SCALINGS:
            raise OptionError("scaling", f"one of {', '.join(SCALINGS)}", self.scaling)


def inputs(config: Config) -> Inputs:
    return Inputs(image="pooled", text="sentence", scores=spaces(config), caption_similarity=True)


def spaces(config: Config) -> tuple[str, ...]:
    """The spaces that images and texts are matched in (Section 6.4.2)."""
    return ("latent",) if config.variant == "latent" else ("visual", "textual", "latent")


def recipe(config: Config) -> list[Phase]:
    """Section 6.4.1: SGD with momentum, the learning rate divided by 10 in steps."""
    steps = [epoch // config.decay_every for epoch in range(config.epochs)]
    phase = Phase(
        epochs=config.epochs,
        learning_rates=tuple(config.learning_rate / 10**step for step in steps),
        batch_size=config.batch_size,
        optimiser="sgd",
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )
    return [phase]


class Mapping(nn.Module):
    """FC^(1) to FC^(4), Section 6.4.1: `latent` is f^(3), `last` leads from it to f."""

    def __init__(self, source_size: int, target_size: int, config: Config) -> None:
        super().__init__()
        hidden, D = config.hidden_size, config.embedding_size
        first = [nn.Linear(source_size, hidden), nn.ReLU(), nn.Dropout(config.dropout)]
        second = [nn.Linear(hidden, D, bias=False), nn.BatchNorm1d(D), nn.ReLU()]
        third = [nn.Linear(D, D, bias=False), nn.BatchNorm1d(D), nn.ReLU()]
        self.latent = nn.Sequential(*first, *second, *third)
        if config.variant != "latent":
            fourth = [nn.Linear(D, target_size, bias=False), nn.BatchNorm1d(target_size)]
            self.last = nn.Sequential(*fourth)


class CommonScale(nn.BatchNorm1d):
    """(x - mean) / deviation with a mean for each component of x (B, D), and the deviation of all:
    the root of their mean variance. Statistics of the batch, or those remembered, as a batch
    norm's."""

    def forward(self, x_BD: Tensor) -> Tensor:
        if self.training:
            super().forward(x_BD)  # remembers the statistics
            mean_D, variance_D = x_BD.mean(0), x_BD.var(0, correction=0)
        else:
            mean_D, variance_D = self.running_mean, self.running_var
        return (x_BD - mean_D) * torch.rsqrt(variance_D.mean() + self.eps)


SCALINGS = {"common": CommonScale, "component": nn.BatchNorm1d}


@contextmanager
def untracked(mapping: Mapping) -> Iterator[None]:
    """Batch norms still normalise with the statistics of the batch, but do not remember them."""
    norms = [module for module in mapping.modules() if isinstance(module, nn.BatchNorm1d)]
    remembered = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, remembered, strict=True):
            norm.momentum = momentum


class Cycle:
    """x, f^(3)(x), f(x), g^(3)(f(x)), g(f(x)): one branch of Figure 6.3, f and g the mappings.

    Each is computed when it is first read: what a variant does not match costs nothing and leaves
    no trace in a batch norm.
    """

    def __init__(self, x_BF: Tensor, there: Mapping, back: Mapping) -> None:
        self.source, self.there, self.back = x_BF, there, back

    @cached_property
    def latent(self) -> Tensor:
        return self.there.latent(self.source)

    @cached_property
    def dual(self) -> Tensor:
        return self.there.last(self.latent)

    @cached_property
    def returning_latent(self) -> Tensor:
        with untracked(self.back):
            return self.back.latent(self.dual)

    @cached_property
    def reconstructed(self) -> Tensor:
        """Eq. 6.3."""
        with untracked(self.back):
            return self.back.last(self.returning_latent)


class Term(NamedTuple):
    """Rows x to be matched with rows y, and whether x and y are computed from images or texts."""

    matched: Callable[[Cycle, Cycle], tuple[Tensor, Tensor]]
    x: str
    y: str


TERMS = {  # v and t are the cycles that start from the images and from the texts
    "i2t2i_dual": Term(lambda v, t: (v.dual, t.source), "image", "text"),  # Eq. 6.2
    "i2t2i_reconstructed": Term(lambda v, t: (v.reconstructed, v.source), "image", "image"),  # 6.4
    "i2t2i_latent": Term(lambda v, t: (v.latent, v.returning_latent), "image", "image"),  # 6.5
    "t2i2t_dual": Term(lambda v, t: (t.dual, v.source), "text", "image"),  # Section 6.3.3
    "t2i2t_reconstructed": Term(lambda v, t: (t.reconstructed, t.source), "text", "text"),
    "t2i2t_latent": Term(lambda v, t: (t.latent, t.returning_latent), "text", "text"),
    "latent_match": Term(lambda v, t: (v.latent, t.latent), "image", "text"),  # Table 6.1
}
DUAL = ("i2t2i_dual", "t2i2t_dual")
RECONSTRUCTED = ("i2t2i_reconstructed", "t2i2t_reconstructed")
VARIANTS = {  # Table 6.1: the terms that a variant's loss sums
    "latent": ("latent_match",),
    "dual": DUAL,
    "without_latent": (*DUAL, *RECONSTRUCTED),
    "i2t2i": (*DUAL, "i2t2i_reconstructed", "i2t2i_latent"),
    "t2i2t": (*DUAL, "t2i2t_reconstructed", "t2i2t_latent"),
    "cycle": (*DUAL, *RECONSTRUCTED, "i2t2i_latent", "t2i2t_latent"),  # Eq. 6.6
}


@in_float32
def cosine(x_AD: Tensor, y_BD: Tensor) -> Tensor:
    """s of Eq. 6.1 for all pairs, (A, B), in float32 or better: the margin is 0.1, and a bfloat16
    cosine near 1 moves in steps of 0.004."""
    return unit(x_AD) @ unit(y_BD).T


def ranking(
    s_BB: Tensor, x_negative_BB: Tensor, y_negative_BB: Tensor, config: Config
) -> tuple[Tensor, Tensor]:
    """The halves of Eqs. 6.2, 6.4 and 6.5: x_i among the negatives y, y_i among the negatives x.

    s_BB[i, j] is s(x_i, y_j); row i of a mask tells which x, or y, are negatives of pair i.
    """
    d_BB, c = -s_BB, config
    first = hardest_triplets(d_BB.diagonal(), d_BB, y_negative_BB, c.margin, c.top_k)
    second = hardest_triplets(d_BB.diagonal(), d_BB.T, x_negative_BB, c.margin, c.top_k)
    return first, c.alpha * second


class Model(nn.Module):
    """Two mappings, I2T and T2I, and three spaces to match in.

    Encodings: unit vectors in the visual, textual and latent space, (v, f_I2T(v), f_I2T^(3)(v))
    for images and (f_T2I(t), t, f_T2I^(3)(t)) for captions; LatentMatch has only the latent ones.
    """

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        self.only_latent = config.variant == "latent"
        scaling = SCALINGS[config.scaling]
        self.image_norm = scaling(sizes.image, affine=False)
        self.text_norm = scaling(sizes.text, affine=False)
        self.i2t = Mapping(sizes.image, sizes.text, config)
        self.t2i = Mapping(sizes.text, sizes.image, config)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=config.initial_deviation)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def from_images(self, images: Tensor) -> Cycle:
        return Cycle(self.image_norm(images), self.i2t, self.t2i)

    def from_texts(self, captions: Captions) -> Cycle:
        return Cycle(self.text_norm(captions.values), self.t2i, self.i2t)

    def encode_images(self, images: Tensor) -> Encoding:
        v = self.from_images(images)
        return _units(v.latent) if self.only_latent else _units(v.source, v.dual, v.latent)

    def encode_captions(self, captions: Captions) -> Encoding:
        t = self.from_texts(captions)
        return _units(t.latent) if self.only_latent else _units(t.dual, t.source, t.latent)

    @in_float32
    def scores(self, images: Encoding, captions: Encoding) -> dict[str, Tensor]:
        """Eq. 6.7, each (I, C)."""
        pairs = zip(spaces(self.config), images, captions, strict=True)
        return {space: x_ID @ y_CD.T for space, x_ID, y_CD in pairs}

    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """Section 6.4.2, (I, C): the average of visual and textual score, or the latent score."""
        scores = self.scores(images, captions)
        if self.only_latent:
            return scores["latent"]
        return (scores["visual"] + scores["textual"]) / 2

    @in_float32
    def caption_similarity(self, captions: Encoding, others: Encoding) -> Tensor:
        """(C, C) in the visual space; LatentMatch: in the latent space."""
        return captions[0] @ others[0].T

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Eq. 6.6, or those of its terms that the variant has."""
        v, t = self.from_images(batch.images), self.from_texts(batch.captions)
        others_BB = differ(batch.group_ids)
        negative = {"text": others_BB, "image": others_BB & first_of_its_group(batch.group_ids)}
        terms = {}
        for name in VARIANTS[self.config.variant]:
            matched, x, y = TERMS[name]
            s_BB = cosine(*matched(v, t))
            terms[name] = sum(ranking(s_BB, negative[x], negative[y], self.config))
        return terms


def _units(*vectors: Tensor) -> Encoding:
    return tuple(unit(x) for x in vectors)

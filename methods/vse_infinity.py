"""VSE-infinity: a learned pooling of regions and of words. Chen, Hu, Wu, Jiang, Wang, Learning the
Best Pooling Strategy for Visual Semantic Embedding, CVPR 2021.

Reference code: github.com/woodfrog/vse_infty at 05a1474, for region features and BERT. The paper's
text was not at hand: what stands here is from that code. Its branch `bigru` was not at hand either;
the GRU is that of `vse`, with the code's pooling over its states.
Departs from it:
- the transformer of `text: contextual` is frozen, and its words are neither masked nor dropped in
  training (code: fine-tuned at a tenth of the rate; a fifth of the words is masked, replaced or
  dropped);
- Adam without the code's decoupled weight decay of 0.0001, which takes a 20-millionth of every
  weight a step; its moments start anew after the warm-up;
- at least one region of an image is kept, and regions are dropped behind the MLP, so that its
  batch norm sees all of them (code: those that are kept, and the zeros that fill a batch up);
- a second caption of the same image is no negative (code: the diagonal alone is none);
- the last, smaller batch of an epoch is not left out.
The code warms up the loss alone where images are regions: the rate has no warm-up.
Assumed: <start> and <end> are words; word vectors start from U(-0.1, 0.1); the FC after a
transformer starts as PyTorch's, as in the code.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Batch,
    Captions,
    Count,
    Encoding,
    Inputs,
    NotApplicableError,
    OptionError,
    Phase,
    Rate,
    Share,
    Size,
    Sizes,
    Weight,
)
from benchmark.layers.losses import differ, hinges
from benchmark.layers.precision import in_float32, unit, wide
from benchmark.layers.recurrence import states

# Shape legend, beyond the contract: N items of K vectors each (regions or words), of which `kept`
# ones count; P numbers encode a position.

WARM_UP, REST = ("all_captions", "all_images"), ("image_anchor", "caption_anchor")  # loss terms


@dataclass(frozen=True, kw_only=True)
class Config:
    text: Literal["bigru", "contextual"] = "bigru"  # branches of the official code
    image_pooling: Literal["gpo", "average", "max"] = "gpo"  # the paper's comparison of poolings
    text_pooling: Literal["gpo", "average", "max"] = "gpo"
    regions: Size = 36  # official data, the most salient ones
    region_dropout: Share = 0.2  # official image_caption.py: size augmentation
    embedding_size: Size = 1024  # official arguments.py; half of it is the MLP's hidden layer
    word_size: Size = 300  # official arguments.py
    position_size: Size = 32  # official encoders.py: GPO(32, 32), even
    state_size: Size = 32  # official encoders.py
    temperature: Rate = 0.1  # official gpo.py, of the softmax over positions
    margin: Weight = 0.2  # official arguments.py
    warm_up_epochs: Count = 1  # official train_region.sh: on all negatives
    batch_size: Size = 128  # official arguments.py
    clip_norm: Rate = 2.0  # official arguments.py
    learning_rate: Rate = 0.0005  # official train_region.sh
    epochs: Size = 25  # official train_region.sh, warm-up included
    decay_after: Count = 15  # official train_region.sh: learning rate / 10 from here on
    min_count: Size = 4  # official vocabulary, SCAN's: rarer words become <unk>

    def __post_init__(self) -> None:
        if self.position_size % 2:
            raise OptionError("position_size", "an even number", self.position_size)


def inputs(config: Config) -> Inputs:
    return Inputs(
        image="regions",
        text="tokens" if config.text == "bigru" else "contextual",
        min_count=config.min_count,
        caption_similarity=True,
    )


def recipe(config: Config) -> list[Phase]:
    """Hinges of all negatives for the first epochs, then of the hardest."""
    c = config
    rates = tuple(c.learning_rate * (1.0 if e < c.decay_after else 0.1) for e in range(c.epochs))
    parts = (rates[: c.warm_up_epochs], WARM_UP), (rates[c.warm_up_epochs :], REST)
    return [
        Phase(
            epochs=len(part),
            learning_rates=part,
            batch_size=c.batch_size,
            clip_norm=c.clip_norm,
            terms=terms,
        )
        for part, terms in parts
        if part
    ]


def position_encodings(count: int, size: int) -> Tensor:
    """(K, P): sine and cosine of position / 10000^(2 i / P), in turn."""
    rates_P = torch.tensor([10000.0 ** (-2 * i / size) for i in range(size // 2)])
    angles_KP = torch.arange(count)[:, None] * rates_P
    return torch.stack([angles_KP.sin(), angles_KP.cos()], -1).flatten(1)


def weighted(x_NKD: Tensor, kept_NK: Tensor, weights_NK: Tensor) -> Tensor:
    """(N, D): of each number d the kept values, the greatest first, times the weights of their
    places. Places beyond the kept ones have weight 0."""
    sorted_NKD = x_NKD.masked_fill(~kept_NK[..., None], -math.inf).sort(1, descending=True).values
    there_NK1 = kept_NK.sort(1, descending=True).values[..., None]
    return (sorted_NKD.masked_fill(~there_NK1, 0.0) * weights_NK[..., None]).sum(1)


class Gpo(nn.Module):
    """The generalised pooling operator: a GRU reads the encoded places 1 to n, and a softmax of
    what it says of each is its weight. So the weights follow from how many vectors there are."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.size, self.temperature = config.position_size, config.temperature
        self.gru = nn.GRU(self.size, config.state_size, batch_first=True, bidirectional=True)
        self.score = nn.Linear(config.state_size, 1, bias=False)

    def weights(self, counts: Tensor, width: int) -> Tensor:
        """(N, K) weights of the first `counts` (N,) of K places, which sum to 1; 0 for the rest.
        Counts come on the host: one row is computed for all that are equal."""
        device = self.score.weight.device
        counts_U, row_N = counts.unique(return_inverse=True)
        positions_KP = position_encodings(width, self.size).to(self.score.weight)
        positions_UKP = positions_KP.expand(len(counts_U), -1, -1)
        counted = Captions(values=positions_UKP, lengths=counts_U, lengths_on_host=counts_U)
        states_UKX = states(self.gru, positions_UKP, counted)
        scores_UK = wide(self.score(states_UKX.unflatten(-1, (2, -1)).mean(-2)).squeeze(-1))
        beyond_UK = (torch.arange(width) >= counts_U[:, None]).to(device)
        weights_UK = (scores_UK / self.temperature).masked_fill(beyond_UK, -math.inf).softmax(1)
        return weights_UK[row_N.to(device)]

    def forward(self, x_NKD: Tensor, kept_NK: Tensor, counts: Tensor) -> Tensor:
        return weighted(wide(x_NKD), kept_NK, self.weights(counts, x_NKD.shape[1]))


class Average(nn.Module):
    def forward(self, x_NKD: Tensor, kept_NK: Tensor, counts: Tensor) -> Tensor:
        kept_NK1 = kept_NK[..., None]
        return (wide(x_NKD) * kept_NK1).sum(1) / kept_NK1.sum(1)


class Maximum(nn.Module):
    def forward(self, x_NKD: Tensor, kept_NK: Tensor, counts: Tensor) -> Tensor:
        return x_NKD.masked_fill(~kept_NK[..., None], -math.inf).amax(1)


def pooling(name: str, config: Config) -> nn.Module:
    """(N, K, D) vectors, which of them are kept (N, K), and how many (N,) on the host -> (N, D)."""
    return Gpo(config) if name == "gpo" else {"average": Average, "max": Maximum}[name]()


def some_kept(count: int, width: int, dropout: float) -> Tensor:
    """(N, K) bool on the host: each one but with probability `dropout`, at least one a row."""
    lots_NK = torch.rand(count, width)
    return (lots_NK >= dropout) | (lots_NK == lots_NK.amax(1, keepdim=True))


class Mlp(nn.Module):
    """FC of regions plus a two-layer network of them: official encoders.py and mlp.py."""

    def __init__(self, size: int, D: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, D)
        self.hidden, self.norm = nn.Linear(size, D // 2), nn.BatchNorm1d(D // 2)
        self.out = nn.Linear(D // 2, D)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x_NKF: Tensor) -> Tensor:
        x_MF = x_NKF.flatten(0, 1)
        y_MD = self.out(self.norm(self.hidden(x_MF)).relu()) + self.linear(x_MF)
        return y_MD.unflatten(0, x_NKF.shape[:2])


class Model(nn.Module):
    """Regions and words, each pooled to one vector. Encodings: unit vectors (I, D) and (C, D)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config, D = config, config.embedding_size
        self.project = Mlp(sizes.image, D)
        self.image_pooling = pooling(config.image_pooling, config)
        self.text_pooling = pooling(config.text_pooling, config)
        if config.text == "bigru":
            self.embed = nn.Embedding(sizes.text, config.word_size, padding_idx=0)
            self.gru = nn.GRU(config.word_size, D, batch_first=True, bidirectional=True)
            nn.init.uniform_(self.embed.weight, -0.1, 0.1)
        else:
            self.describe = nn.Linear(sizes.text, D)

    def encode_images(self, images: Tensor) -> Encoding:
        """In training a region in five is dropped: size augmentation."""
        c, (count, found, _) = self.config, images.shape
        if found < c.regions:
            raise NotApplicableError(f"regions: expected {c.regions} or more, found {found}")
        kept_IR = torch.ones(count, c.regions, dtype=torch.bool)
        if self.training:
            kept_IR = some_kept(count, c.regions, c.region_dropout)
        on_device_IR = kept_IR.to(images.device, non_blocking=True)
        regions_IRD = self.project(images[:, : c.regions])
        return (unit(self.image_pooling(regions_IRD, on_device_IR, kept_IR.sum(1))),)

    def encode_captions(self, captions: Captions) -> Encoding:
        """States of a GRU, the mean of both directions, or a linear layer of the given vectors."""
        if self.config.text == "bigru":
            states_CWX = states(self.gru, self.embed(captions.values), captions)
            words_CWD = states_CWX.unflatten(-1, (2, -1)).mean(-2)
        else:
            words_CWD = self.describe(captions.values)
        place_W = torch.arange(words_CWD.shape[1], device=words_CWD.device)
        kept_CW = place_W < captions.lengths[:, None]
        return (unit(self.text_pooling(words_CWD, kept_CW, captions.counts)),)

    @in_float32
    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """Cosine, shape (I, C)."""
        return images[0] @ captions[0].T

    @in_float32
    def caption_similarity(self, captions: Encoding, others: Encoding) -> Tensor:
        """Cosine of sentences, shape (C, C)."""
        return captions[0] @ others[0].T

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Hinges of all negatives and of the hardest, each summed over the rows; a phase takes one
        of the two."""
        images, captions = self.encode_images(batch.images), self.encode_captions(batch.captions)
        scores_BB = self.similarity(images, captions)
        captions_BB, images_BB = hinges(scores_BB, differ(batch.group_ids), self.config.margin)
        return {
            "all_captions": captions_BB.sum(),
            "all_images": images_BB.sum(),
            "image_anchor": captions_BB.amax(1).sum(),
            "caption_anchor": images_BB.amax(0).sum(),
        }
